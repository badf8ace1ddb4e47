"""The machines that the benchmarks test: the papers' and the blog's examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, ClassVar

from swarmtest import Machine, action, integers


class StackProgram:
    """push, pop and add on a stack: the blog's program."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def push(self, value: int) -> None:
        self.items.append(value)

    def pop(self) -> None:
        if self.items:
            self.items.pop()

    def add(self) -> None:
        items = self.items
        if len(items) >= 2:
            items.append(items.pop() + items.pop())


class PushPopAdd(Machine):
    """The machine of `throughput.py`: 50 steps, nothing to find."""

    steps = 50

    def start(self) -> None:
        self.program = StackProgram()

    @action(value=integers(0, 9))
    def push(self, value: int) -> None:
        self.program.push(value)

    @action
    def pop(self) -> None:
        self.program.pop()

    @action
    def add(self) -> None:
        self.program.add()


class Busy(Machine):
    """Tests of about 0.4 ms, for what an executor adds to a test: 50 steps, nothing to find."""

    steps = 50

    def start(self) -> None:
        self.sum = 0

    def work(self) -> None:
        for number in range(200):
            self.sum += number

    @action
    def first(self) -> None:
        self.work()

    @action
    def second(self) -> None:
        self.work()

    @action
    def third(self) -> None:
        self.work()


def half_normal(rng: Random) -> int:
    """Draw a number of steps."""
    return max(1, round(abs(rng.gauss(0, 25))))


class Overflow32(Machine):
    """A stack for 32 elements with push and pop only (swarm testing, section 1 and figure 1).

    "The generator randomly chooses an input length": the paper does not say how. Half-normal with
    a standard deviation of 25 comes near both of its numbers: exactly 1 in 446,000 and 1 in 15.7.
    """

    capacity = 32

    steps: ClassVar[int | tuple[int, int] | Callable[[Random], int]] = half_normal

    def start(self) -> None:
        self.depth = 0

    @action
    def push(self) -> None:
        assert self.depth < self.capacity, "overflow"
        self.depth += 1

    @action
    def pop(self) -> None:
        if self.depth:
            self.depth -= 1


class Depth(Overflow32):
    """The blog's first bug: the stack is deep; 100 steps."""

    steps = 100


class DepthWithAdd(Overflow32):
    """The same with a third action that also takes elements away; 200 steps."""

    steps = 200

    @action
    def add(self) -> None:
        if self.depth >= 2:
            self.depth -= 1


class Ratio(Machine):
    """The blog's second bug: `optimize` on a long history with five pops or more to each push."""

    steps = 200

    def start(self) -> None:
        self.pushes = self.pops = self.history = 0

    @action
    def push(self) -> None:
        self.pushes += 1
        self.history += 1

    @action
    def pop(self) -> None:
        self.pops += 1
        self.history += 1

    @action
    def optimize(self) -> None:
        self.history += 1
        assert not (self.history > 100 and self.pops >= 5 * self.pushes > 0), "optimizer bug"


class OpenFiles(Machine):
    """64 opens without a close, 9 file-system calls, 512 steps (swarm testing, section 2.1)."""

    steps = 512

    def start(self) -> None:
        self.opened = 0

    @action
    def open(self) -> None:
        self.opened += 1
        assert self.opened < 64, "descriptor table overflow"

    @action
    def close(self) -> None:
        self.opened = 0


class HalfAsCommon(Machine):
    """The blog's last bug: of ten features, three are half as common as three others; 512 steps.

    Half as common: when the test ends, each of the three has been used 0.3 to 0.7 times as often
    as each of the other three, and at least ten times.
    """

    steps = 512

    def start(self) -> None:
        self.counts = [0] * 10

    def stop(self) -> None:
        rare, common = self.counts[:3], self.counts[3:6]
        low, high = max(10, 0.3 * max(common)), 0.7 * min(common)
        assert not (min(rare) >= low and max(rare) <= high), "ratio bug"


def _add_plain_actions(
    cls: type[Machine], names: Iterable[str], method: Callable[[str], Callable[[Any], None]]
) -> None:
    """Give a machine class one action per name, each calling `method(name)`."""
    for name in names:
        made = method(name)
        made.__name__ = name
        setattr(cls, name, action(made))


def _counting(number: int) -> Callable[[HalfAsCommon], None]:
    def count(self: HalfAsCommon) -> None:
        self.counts[number] += 1

    return count


_add_plain_actions(
    OpenFiles,
    ["read", "write", "lseek", "mkdir", "rmdir", "unlink", "sync"],
    lambda name: lambda self: None,
)
_add_plain_actions(
    HalfAsCommon,
    [f"f{number}" for number in range(10)],
    lambda name: _counting(int(name[1:])),
)


def _wide(count: int) -> type[Machine]:
    """Return a machine of 50 steps with so many actions, which do next to nothing."""

    def start(self: Any) -> None:
        self.counts = [0] * 8

    def counting(name: str) -> Callable[[Any], None]:
        number = int(name[1:]) % 8

        def count_call(self: Any) -> None:
            self.counts[number] += 1

        return count_call

    body = {"steps": 50, "start": start, "__module__": __name__, "__doc__": f"{count} actions."}
    machine = type(f"Wide{count}", (Machine,), body)
    _add_plain_actions(machine, [f"f{number}" for number in range(count)], counting)
    return machine


Wide3, Wide30, Wide300, Wide1000 = map(_wide, (3, 30, 300, 1000))
