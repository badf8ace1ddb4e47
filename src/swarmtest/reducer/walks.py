"""Walks: algorithms that choose, one question after the other, which parts to leave out.

A walk is an immutable value. It has a set of parts that is known to be interesting (`kept`),
proposes a smaller one (`candidate`), and returns the next walk once it is known whether that is
interesting too (`after`). So a walk can be saved, resumed, and followed into answers that are not
known yet, which is how idle workers get something to do.

Invariants: `kept` is in the order of the original; a candidate is a strict subset of `kept`; a part
is never included without the parts that it needs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

Indices: TypeAlias = tuple[int, ...]
Needs: TypeAlias = Sequence[Collection[int]]
"""For each part, the earlier parts that it needs; empty if no part needs another."""

_DECAY = 0.9
"""The share of what was learnt about needed parts that is kept after each further needed part."""
_WORTH_HALVING = 1 / 3
"""Pieces are halved as long as at least this share of them could be removed."""


@dataclass(frozen=True)
class Halves:
    """A walk that tries to remove both halves, then quarters, and so on, while many can be removed.

    If several causes would do, this leaves a small one, because a large cause is seldom completely
    within what is kept. A gallop would choose the cause that ends first, however large it is.
    """

    kept: Indices
    length: int
    end: int
    """Where the current piece ends."""
    levels: int
    """How many lengths are tried in any case."""
    gone: int = 0
    stayed: int = 0
    """How many pieces of this length could be removed (`gone`), and how many could not."""

    odds: ClassVar[float] = 0.3
    """About how often a candidate of this walk is interesting."""

    @classmethod
    def begin(cls, kept: Indices, levels: int = 1) -> Halves:
        """Return the walk before its first question."""
        return cls(kept, _half(len(kept)), len(kept), levels)

    def candidate(self, needs: Needs = ()) -> Indices | None:
        """Return the parts to try next; None if the walk is over.

        >>> Halves.begin((3, 5, 8, 9)).candidate()
        (3, 5)
        """
        return _without(self.kept, self.end - self.length, self.end, needs) if self.length else None

    def after(self, works: bool, needs: Needs = ()) -> Halves:
        """Return the walk once it is known whether the candidate is interesting."""
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
    """A walk from the back, in stretches so long that about half of them can be removed.

    The length of a stretch follows from how many parts were needed recently. A stretch that cannot
    be removed is halved until the needed part is found; that one is kept, and not tried again in
    this walk. So n parts of which k are needed cost about k * log2(n / k) runs, which is near the
    information bound; ddmin costs several times as many. Every stretch that is left out has been
    tried.
    """

    kept: Indices
    end: int
    """The parts from here on are needed, as far as this walk knows."""
    unit: int = 1
    """How many parts are removed or kept together; lengths below are in units, counted back from
    `end`."""
    length: int = 0
    """The length of the current stretch before `end`."""
    tried: int = 0
    """How much of the stretch the candidate leaves out."""
    works: int = 0
    """The longest part of the stretch without which the rest is known to be interesting."""
    fails: int = 0
    """The shortest part without which it is known not to be; longer than the stretch if none is
    known."""
    removed: float = 1.0
    needed: float = 1.0
    """How many units could be removed recently (`removed`), and how many were needed."""

    odds: ClassVar[float] = 0.5
    """About how often a candidate of this walk is interesting."""

    @classmethod
    def begin(cls, kept: Indices, needs: Needs = (), unit: int = 1) -> Gallop:
        """Return the walk before its first question."""
        removed = max(1.0, len(kept) / unit / 8)
        return cls(kept, len(kept), unit, removed=removed)._at_next_stretch(needs)

    def candidate(self, needs: Needs = ()) -> Indices | None:
        """Return the parts to try next; None if the walk is over.

        >>> Gallop.begin((3, 5, 8)).candidate()
        (3, 5)
        """
        if not self.end:
            return None
        return self.kept[: self._start(self.tried)] + self.kept[self.end :]

    def after(self, works: bool, needs: Needs = ()) -> Gallop:
        """Return the walk once it is known whether the candidate is interesting."""
        walk = replace(self, works=self.tried) if works else replace(self, fails=self.tried)
        if walk.fails - walk.works > 1:
            return replace(walk, tried=(walk.works + walk.fails) // 2)
        return walk._without_stretch()._at_next_stretch(needs)

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
        """Return the walk at the next stretch that can be asked about.

        What a needed part needs is needed as well, and is skipped without a question.
        """
        walk = self
        pinned = needed_by(self.kept[self.end :], needs) if needs else set()
        while walk.end and not pinned.isdisjoint(walk.kept[walk._start(1) : walk.end]):
            walk = replace(walk, end=walk._start(1))
        # If a share p of the parts is needed, half of the stretches of length ln 2 / p have none.
        length = round(0.7 * (self.removed + self.needed) / self.needed)
        length = max(1, min(length, -(-walk.end // self.unit)))
        while length > 1 and not pinned.isdisjoint(walk.kept[walk._start(length) : walk.end]):
            length -= 1
        return replace(walk, length=length, tried=length, works=0, fails=length + 1)


@dataclass(frozen=True)
class Complements:
    """A walk that tries all but one piece of a given length, from the back; then half the length.

    After the piece at the front it starts again at the back. Dependencies may prevent the removal
    of a stretch next to a needed part: the two braces of a block, for example, can only be removed
    together. The last length is `shortest`; with that length, the walk ends when a whole round has
    removed nothing.
    """

    kept: Indices
    length: int
    end: int
    """Where the current piece ends."""
    failed: int = 0
    """How many parts were tried without success since the last removal."""
    shortest: int = 1
    shifted: bool = False
    """Whether the pieces begin in the middle of those of a walk that is not shifted."""

    odds: ClassVar[float] = 0.1
    """About how often a candidate of this walk is interesting."""

    @classmethod
    def begin(
        cls, kept: Indices, length: int, shortest: int = 1, shifted: bool = False
    ) -> Complements:
        """Return the walk before its first question."""
        length = max(length, shortest)
        return cls(kept, length, len(kept), 0, shortest, shifted)._at_length(length)

    def candidate(self, needs: Needs = ()) -> Indices | None:
        """Return the parts to try next; None if the walk is over.

        >>> Complements.begin((3, 5, 8, 9), length=2).candidate()
        (3, 5)
        """
        if self.length < self.shortest or not self.kept:
            return None
        return _without(self.kept, self.end - self.length, self.end, needs)

    def after(self, works: bool, needs: Needs = ()) -> Complements:
        """Return the walk once it is known whether the candidate is interesting."""
        start = max(0, self.end - self.length)
        failed = self.failed + self.end - start
        kept = self.kept
        if works:
            kept = self.candidate(needs) or ()
            failed = 0
        walk = replace(self, kept=kept, end=start or len(kept), failed=failed)
        if failed < len(kept) and (start or self.length == self.shortest):
            return walk
        shorter = max(self.length // 2, self.shortest) if self.length > self.shortest else 0
        return walk._at_length(shorter)

    def _at_length(self, length: int) -> Complements:
        last = len(self.kept)
        end = max(last - length // 2, 1) if self.shifted and last else last
        return replace(self, length=length, end=end, failed=0)


Walk: TypeAlias = Halves | Gallop | Complements


def _half(length: int) -> int:
    """Return half the length, rounded up so that two pieces are enough; 0 for a single part."""
    return (length + 1) // 2 if length > 1 else 0


def _without(kept: Indices, start: int, end: int, needs: Needs) -> Indices:
    """Return what is left without a piece and without the parts that need some of it."""
    piece = kept[max(0, start) : end]
    gone = {*piece, *needing(piece, kept, needs)}
    return tuple(part for part in kept if part not in gone)


def needed_by(parts: Collection[int], needs: Needs) -> set[int]:
    """Return these parts and all that they need, directly or indirectly.

    >>> sorted(needed_by([3], [[], [], [0], [2]]))
    [0, 2, 3]
    """
    needed: set[int] = set()
    ahead = list(parts)
    while ahead:
        part = ahead.pop()
        if part not in needed:
            needed.add(part)
            ahead.extend(needs[part])
    return needed


def needing(gone: Collection[int], kept: Indices, needs: Needs) -> set[int]:
    """Return the parts of `kept` that need one of those removed, directly or indirectly.

    >>> sorted(needing([0], (0, 1, 2, 3), [[], [], [0], [2]]))
    [2, 3]
    """
    lost = set(gone)
    if needs:
        for part in kept:  # a part comes after those that it needs, so one pass is enough
            if not lost.isdisjoint(needs[part]):
                lost.add(part)
    return lost - set(gone)
