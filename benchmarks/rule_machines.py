"""The papers' examples as state machines of Hypothesis, as its users write them."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, precondition, rule


class Depth(RuleBasedStateMachine):
    """A stack for 32 values, push and pop; 100 steps."""

    steps = 100
    depth = 0

    @rule(value=st.integers(0, 9))
    def push(self, value: int) -> None:
        assert self.depth < 32, "overflow"
        self.depth += 1

    @rule()
    def pop(self) -> None:
        self.depth = max(0, self.depth - 1)


class DepthWithAdd(Depth):
    """The same with a third rule that also takes values away; 200 steps."""

    steps = 200

    @precondition(lambda self: self.depth >= 2)
    @rule()
    def add(self) -> None:
        self.depth -= 1


class Ratio(RuleBasedStateMachine):
    """`optimize` on a long history with five pops or more to each push; 200 steps."""

    steps = 200
    pushes = pops = history = 0

    @rule()
    def push(self) -> None:
        self.pushes += 1
        self.history += 1

    @rule()
    def pop(self) -> None:
        self.pops += 1
        self.history += 1

    @rule()
    def optimize(self) -> None:
        self.history += 1
        assert not (self.history > 100 and self.pops >= 5 * self.pushes > 0), "optimizer bug"


class OpenFiles(RuleBasedStateMachine):
    """32 files open at once, 9 calls, files from a bundle; 200 steps."""

    steps = 200
    opened = 0
    files = Bundle("files")

    @rule(target=files)
    def open(self) -> int:
        self.opened += 1
        assert self.opened < 32, "descriptor table overflow"
        return self.opened

    @rule(file=consumes(files))
    def close(self, file: int) -> None:
        self.opened -= 1

    @rule(file=files, size=st.integers(0, 4096))
    def read(self, file: int, size: int) -> None: ...

    @rule(file=files, data=st.binary(max_size=8))
    def write(self, file: int, data: bytes) -> None: ...

    @rule(file=files, offset=st.integers(0, 2**31))
    def lseek(self, file: int, offset: int) -> None: ...

    @rule()
    def mkdir(self) -> None: ...

    @rule()
    def rmdir(self) -> None: ...

    @rule()
    def unlink(self) -> None: ...

    @rule()
    def sync(self) -> None: ...


class Values(RuleBasedStateMachine):
    """A bug that no rule suppresses: a list of numbers with a large sum; 50 steps."""

    steps = 50

    @rule(values=st.lists(st.integers(0, 100)))
    def total(self, values: list[int]) -> None:
        assert sum(values) < 1000, "large"

    @rule(value=st.integers())
    def one(self, value: int) -> None: ...

    @rule(word=st.text())
    def word(self, word: str) -> None: ...
