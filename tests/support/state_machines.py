"""State machines as Hypothesis users write them."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass

from hypothesis import assume, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)


@dataclass
class Point:
    x: int
    y: int


class Stack(RuleBasedStateMachine):
    """Overflows at 8: rarely with pop and clear, always without."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[int] = []

    @rule(value=st.integers(0, 9))
    def push(self, value: int) -> None:
        assert len(self.items) < 8, "overflow"
        self.items.append(value)

    @precondition(lambda self: self.items)
    @rule()
    def pop(self) -> None:
        self.items.pop()

    @rule()
    def clear(self) -> None:
        self.items.clear()
        event("cleared")


StackTest = Stack.TestCase


class ShortStackTest(Stack.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(stateful_step_count=7)


class Files(RuleBasedStateMachine):
    """Everything a state machine can have; too many open files break an invariant."""

    files = Bundle("files")
    names = Bundle("names")

    @initialize(target=names, count=st.integers(1, 3))
    def name_some(self, count: int) -> object:
        return multiple(*(f"file {n}" for n in range(count)))

    @initialize()
    def begin(self) -> None:
        self.open_files: list[list[object]] = []
        self.torn_down = False

    @rule(target=files, name=names)
    def open(self, name: str) -> list[object]:
        assert name.startswith("file ")
        self.open_files.append([name])
        return self.open_files[-1]

    @rule(file=consumes(files))
    def close(self, file: list[object]) -> None:
        # Fails if a closed file is ever handed out again.
        self.open_files = [f for f in self.open_files if f is not file]
        assert file != [None], "closed twice"
        file[:] = [None]

    @rule(
        file=files,
        others=st.lists(st.deferred(lambda: Files.files), max_size=2),
        at=st.builds(Point, st.integers(), st.just(2)),
    )
    def link(self, file: list[object], others: list[list[object]], at: Point) -> None:
        assert all(any(other is f for f in self.open_files) for other in [file, *others])
        file.append(at.x)

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        if self.open_files:
            file = data.draw(st.sampled_from(range(len(self.open_files))))
            assert self.open_files[file]

    @invariant()
    def few(self) -> None:
        assert len(self.open_files) < 6

    def teardown(self) -> None:
        self.torn_down = True


class Single(RuleBasedStateMachine):
    """Has one rule, which Hypothesis need not choose."""

    total = 0

    @rule(values=st.lists(st.integers(0, 9), min_size=2, max_size=4), by=st.integers(0, 9))
    def add(self, values: list[int], by: int) -> None:
        print("adding")
        self.total += sum(values) * by
        assert self.total % 7 != 5


class Forcing(Single):
    """Draws collections of a least size: Hypothesis forces their first elements."""

    @rule()
    def rest(self) -> None: ...


class Careful(RuleBasedStateMachine):
    """One rule gives up in its body, one never gets arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.done = 0

    @rule(value=st.integers(0, 9))
    def step(self, value: int) -> None:
        self.done += 1

    @rule()
    def give_up(self) -> None:
        assume(False)

    @rule(value=st.integers().filter(lambda value: False))
    def impossible(self, value: int) -> None:
        raise AssertionError("never")


class Gambler(RuleBasedStateMachine):
    """Uses the global random generator."""

    @rule()
    def toss(self) -> None:
        assert random.random() < 0.9 or random.random() < 0.5


class Deadly(RuleBasedStateMachine):
    """Ends its process, after a draw in the body."""

    @rule(data=st.data(), by=st.integers(1, 5))
    def die(self, data: st.DataObject, by: int) -> None:
        if data.draw(st.integers(0, 3)) == 3:
            os.abort()

    @rule()
    def rest(self) -> None: ...
