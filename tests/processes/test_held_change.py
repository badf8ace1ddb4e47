"""A change of the process is undone by the last who holds it, whatever they do."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from swarmtest.processes.held_change import HeldChange


class Holder:
    """Something that can be forgotten."""


class Recorded:
    """A change that is recorded, and may fail after its first half."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.fails = False
        self.change = HeldChange(self._make)

    def _make(self, undo: ExitStack) -> None:
        undo.callback(self.seen.append, "undone")
        self.seen.append("made")
        if self.fails:
            raise KeyboardInterrupt


def test_who_comes_first_makes_it_and_the_last_undoes_it_in_any_order() -> None:
    for first in (0, 1):
        recorded, holders = Recorded(), [Holder(), Holder()]
        let_go = [recorded.change.hold(holder) for holder in holders]
        let_go[first]()
        let_go[first]()
        assert recorded.seen == ["made"]
        let_go[1 - first]()
        assert recorded.seen == ["made", "undone"]


def test_a_holder_that_is_forgotten_lets_go() -> None:
    recorded = Recorded()
    holder = Holder()
    recorded.change.hold(holder)
    del holder
    assert recorded.seen == ["made", "undone"]


def test_a_change_that_is_interrupted_is_undone_and_can_be_made_again() -> None:
    recorded, holder = Recorded(), Holder()
    recorded.fails = True
    with pytest.raises(KeyboardInterrupt):
        recorded.change.hold(holder)
    assert recorded.seen == ["made", "undone"]
    recorded.fails = False
    recorded.change.hold(holder)()
    assert recorded.seen == ["made", "undone"] * 2
