"""How parts are chosen to be left out: walks that ask one question after the other.

A walk is a value. It has a set of parts that is known to be interesting (`kept`), proposes a
smaller one (`candidate`), and is told whether that is interesting too (`after`), which gives the
walk as it stands then. So a walk can be saved, resumed, and followed into answers that are not
known yet, which is how idle workers get something to do.

Invariants: `kept` is in the order of the original; a candidate is a strict part of `kept`; a part
is never there without the parts that it needs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

Indices: TypeAlias = tuple[int, ...]
Needs: TypeAlias = Sequence[Collection[int]]
"""For each part, the earlier parts that it cannot do without; nothing if no part needs another."""

_DECAY = 0.9
"""How much of what was learnt about the share of needed parts stays after each one that was met."""
_WORTH_HALVING = 1 / 3
"""Pieces are halved as long as so many of them could go."""


@dataclass(frozen=True)
class Halves:
    """Both halves, then quarters, and so on, as long as many of them can go.

    Where several causes would do, this leaves a small one: a large cause seldom lies in what is
    kept. A gallop would choose the one that ends first, however large it is.
    """

    kept: Indices
    length: int
    end: int
    """The piece that is looked at ends here."""
    levels: int
    """So many lengths are tried in any case."""
    gone: int = 0
    stayed: int = 0
    """How many pieces of this length could go, and how many could not."""

    odds: ClassVar[float] = 0.3

    @classmethod
    def begin(cls, kept: Indices, levels: int = 1) -> Halves:
        """The walk before its first question."""
        return cls(kept, _half(len(kept)), len(kept), levels)

    def candidate(self, needs: Needs = ()) -> Indices | None:
        """What to try next; None when the walk is over.

        >>> Halves.begin((3, 5, 8, 9)).candidate()
        (3, 5)
        """
        return _without(self.kept, self.end - self.length, self.end, needs) if self.length else None

    def after(self, works: bool, needs: Needs = ()) -> Halves:
        """The walk when it is known whether the candidate is interesting."""
        kept = (self.candidate(needs) or ()) if works else self.kept
        end = max(0, self.end - self.length)
        gone, stayed = self.gone + works, self.stayed + (not works)
        if end and len(kept) > self.length:
            return replace(self, kept=kept, end=end, gone=gone, stayed=stayed)
        worth = self.levels > 1 or gone >= _WORTH_HALVING * (gone + stayed)
        length = _half(self.length) if worth else 0
        return Halves(kept, length, len(kept), self.levels - 1)


@dataclass(frozen=True)
class Gallop:
    """From the back, a stretch at a time that is long enough to be free about every second time.

    The length follows from how many parts were needed lately. A stretch that cannot go is halved
    until the part that is needed is found; that one is kept, and not tried again in this walk. So n
    parts of which k are needed cost about k * log2(n / k) runs, near the information bound, where
    ddmin costs several times that. Every stretch that is left out has been tried.
    """

    kept: Indices
    end: int
    """The parts from here on are needed, as far as this walk knows."""
    unit: int = 1
    """How many parts stand or fall together; lengths below are in units, counted from `end`."""
    length: int = 0
    """Of the stretch before `end` that is looked at."""
    tried: int = 0
    """How much of it the candidate leaves out."""
    works: int = 0
    """Without as much it is interesting..."""
    fails: int = 0
    """...and without as much it is not, or it is more than the stretch has."""
    removed: float = 1.0
    needed: float = 1.0
    """How many units could go lately, and how many could not."""

    odds: ClassVar[float] = 0.5

    @classmethod
    def begin(cls, kept: Indices, needs: Needs = (), unit: int = 1) -> Gallop:
        """The walk before its first question."""
        removed = max(1.0, len(kept) / unit / 8)
        return cls(kept, len(kept), unit, removed=removed)._at_next_stretch(needs)

    def candidate(self, needs: Needs = ()) -> Indices | None:
        """What to try next; None when the walk is over.

        >>> Gallop.begin((3, 5, 8)).candidate()
        (3, 5)
        """
        if not self.end:
            return None
        return self.kept[: self._start(self.tried)] + self.kept[self.end :]

    def after(self, works: bool, needs: Needs = ()) -> Gallop:
        """The walk when it is known whether the candidate is interesting."""
        found = replace(self, works=self.tried) if works else replace(self, fails=self.tried)
        if found.fails - found.works > 1:
            return replace(found, tried=(found.works + found.fails) // 2)
        return found._without_stretch()._at_next_stretch(needs)

    def _start(self, units: int) -> int:
        return max(0, self.end - units * self.unit)

    def _without_stretch(self) -> Gallop:
        start = self._start(self.works)
        kept = self.kept[:start] + self.kept[self.end :]
        removed = self.removed + self.works
        if self.works == self.length:
            return replace(self, kept=kept, end=start, removed=removed)
        end = self._start(self.works + 1)
        needed = self.needed * _DECAY + 1
        return replace(self, kept=kept, end=end, removed=removed * _DECAY, needed=needed)

    def _at_next_stretch(self, needs: Needs) -> Gallop:
        """What a needed part needs is needed as well: it is passed over without a question."""
        walk = self
        pinned = needed_by(self.kept[self.end :], needs) if needs else set()
        while walk.end and not pinned.isdisjoint(walk.kept[walk._start(1) : walk.end]):
            walk = replace(walk, end=walk._start(1))
        # With a share p of needed parts, a stretch of ln 2 / p has none of them half of the time.
        length = round(0.7 * (self.removed + self.needed) / self.needed)
        length = max(1, min(length, -(-walk.end // self.unit)))
        while length > 1 and not pinned.isdisjoint(walk.kept[walk._start(length) : walk.end]):
            length -= 1
        return replace(walk, length=length, tried=length, works=0, fails=length + 1)


@dataclass(frozen=True)
class Complements:
    """All but one piece of a given length, from the back, round and round; then half the length.

    What depends on what does not always let a stretch go that ends at a part that is needed now:
    the two braces of a block can only go together. The last length is the smallest asked for, and
    with that the walk ends when a whole round has removed nothing.
    """

    kept: Indices
    length: int
    end: int
    """The piece that is looked at ends here."""
    failed: int = 0
    """How many parts were tried in vain since the last that could go."""
    shortest: int = 1
    shifted: bool = False
    """Whether the pieces begin in the middle of those of a walk that is not shifted."""

    odds: ClassVar[float] = 0.1

    @classmethod
    def begin(
        cls, kept: Indices, length: int, shortest: int = 1, shifted: bool = False
    ) -> Complements:
        """The walk before its first question."""
        length = max(length, shortest)
        return cls(kept, length, len(kept), 0, shortest, shifted)._at_length(length)

    def candidate(self, needs: Needs = ()) -> Indices | None:
        """What to try next; None when the walk is over.

        >>> Complements.begin((3, 5, 8, 9), length=2).candidate()
        (3, 5)
        """
        if self.length < self.shortest or not self.kept:
            return None
        return _without(self.kept, self.end - self.length, self.end, needs)

    def after(self, works: bool, needs: Needs = ()) -> Complements:
        """The walk when it is known whether the candidate is interesting."""
        start = max(0, self.end - self.length)
        failed = self.failed + self.end - start
        kept = self.kept
        if works:
            kept = self.candidate(needs) or ()
            failed = 0
        found = replace(self, kept=kept, end=start or len(kept), failed=failed)
        if failed < len(kept) and (start or self.length == self.shortest):
            return found
        shorter = max(self.length // 2, self.shortest) if self.length > self.shortest else 0
        return found._at_length(shorter)

    def _at_length(self, length: int) -> Complements:
        last = len(self.kept)
        end = max(last - length // 2, 1) if self.shifted and last else last
        return replace(self, length=length, end=end, failed=0)


Walk: TypeAlias = Halves | Gallop | Complements


def _half(length: int) -> int:
    """Rounded up, so that two are enough; one part has no halves."""
    return (length + 1) // 2 if length > 1 else 0


def _without(kept: Indices, start: int, end: int, needs: Needs) -> Indices:
    """What is left when a piece goes, and with it what needs some of it."""
    piece = kept[max(0, start) : end]
    gone = {*piece, *needing(piece, kept, needs)}
    return tuple(part for part in kept if part not in gone)


def needed_by(parts: Collection[int], needs: Needs) -> set[int]:
    """What these parts need, directly or not, and themselves.

    >>> sorted(needed_by([3], [[], [], [0], [2]]))
    [0, 2, 3]
    """
    found: set[int] = set()
    ahead = list(parts)
    while ahead:
        part = ahead.pop()
        if part not in found:
            found.add(part)
            ahead.extend(needs[part])
    return found


def needing(gone: Collection[int], kept: Indices, needs: Needs) -> set[int]:
    """The parts among `kept` that need one of those that go, directly or not.

    >>> sorted(needing([0], (0, 1, 2, 3), [[], [], [0], [2]]))
    [2, 3]
    """
    lost = set(gone)
    if needs:
        for part in kept:  # what a part needs comes before it, so once through is enough
            if not lost.isdisjoint(needs[part]):
                lost.add(part)
    return lost - set(gone)
