"""Which walk comes after which: the whole of a reduction as one value.

1. Suggestions: smaller sets that somebody has reason to believe in, and nothing at all.
2. Halves, and pieces of them as long as many can go: a small cause, where there are several.
3. A gallop through all parts: few questions, and no single part can go where the criterion is
   monotone (more parts never make it worse). Many parts are galloped through in large units first,
   then in smaller ones: where parts hang together, as lines of a program do, what is not taken out
   as a whole is hard to get rid of. Units are no use where few parts are needed; then they end.
4. Another cause, if no half could go, or if what is needed stands together, so that halves say
   nothing on its size: is it still interesting without all that was found to be needed? Then there
   is a cause that shares nothing with it; it is given up when it seems no smaller.
5. Single parts until none can go: that is what makes the answer 1-minimal, verified. Then pairs of
   neighbours: the two braces of a block can only go together. If none of those could go, that is
   all.
6. Pieces of what is left, from halves down to two, and single parts again, as long as they could
   remove something. Where the criterion is known not to be monotone, that comes at once instead of
   5: a unit that could not go as a whole has gone bit by bit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from swarmtest.reducer.walks import Complements, Gallop, Halves, Indices, Needs, Walk, needing


class Stage(StrEnum):
    """What a reduction is at."""

    SUGGESTED = "suggested"
    HALVES = "halves"
    GALLOP = "gallop"
    ANOTHER = "another"
    ANOTHER_HALVES = "another halves"
    ANOTHER_GALLOP = "another gallop"
    CHECK = "check"
    PAIRS = "pairs"
    PIECES = "pieces"
    SINGLES = "singles"
    DONE = "done"


_WALKS: dict[str, type[Walk]] = {kind.__name__: kind for kind in (Halves, Gallop, Complements)}
_NO_WALK = Gallop((), 0)
_WORTH_ANOTHER_ROUND = 0.9
"""Pieces are tried again before single parts if no more than this share was left of the parts."""
_WORTH_HALVES = 16
"""Fewer parts are not halved: a gallop leaves the first ones, which are often the simpler ones."""
_SMALL = 3
"""A cause of no more parts is small enough."""
_PATIENCE, _PROMISE = 0.2, 0.7
"""Of the size of the cause that is known: what another may need from the start, and in all."""
_MANY, _COARSER, _FEW_UNITS = 256, 4, 12
"""More parts than these are first taken in units of a power of 4, of which there are some 12."""


@dataclass(frozen=True)
class Plan:
    """How far a reduction has come, apart from the questions that have been answered.

    >>> plan = Plan.begin(3)
    >>> plan.candidate()
    ()
    >>> plan.after(works=False).candidate()
    (0, 1)
    """

    count: int
    """How many parts there were."""
    kept: Indices
    """The smallest set of parts that this plan knows to be interesting."""
    stage: Stage = Stage.SUGGESTED
    walk: Walk = _NO_WALK
    suggestions: tuple[Indices, ...] = ()
    """What is to be tried before anything else."""
    chosen: bool = False
    """Whether one among several causes may have been chosen already, by a suggestion or a half."""
    avoided: Indices = ()
    """The causes that are known: another one has none of their parts."""
    blocks: tuple[tuple[int, int], ...] = ()
    """First and last parts of the units that could not go as a whole."""
    size_before: int = 0
    """How many parts were left when this gallop, or round of pieces and single parts, began."""
    round: int = 0
    """How many times pieces and single parts have been tried."""
    in_vain: int = 0
    """How many of the last rounds have removed nothing."""
    needs: Needs = ()

    @classmethod
    def begin(cls, count: int, suggestions: tuple[Indices, ...] = (), needs: Needs = ()) -> Plan:
        """The plan before its first question."""
        return cls(
            count, tuple(range(count)), suggestions=((), *suggestions), needs=needs
        )._settled()

    @property
    def odds(self) -> float:
        """How likely it is, about, that the candidate is interesting."""
        return 0.1 if self.stage in (Stage.SUGGESTED, Stage.ANOTHER) else self.walk.odds

    def candidate(self) -> Indices | None:
        """What to try next; None when nothing more can go."""
        if self.stage == Stage.DONE:
            return None
        if self.stage == Stage.SUGGESTED:
            return self.suggestions[0]
        return self._elsewhere() if self.stage == Stage.ANOTHER else self.walk.candidate(self.needs)

    def after(self, works: bool) -> Plan:
        """The plan when it is known whether the candidate is interesting."""
        if self.stage == Stage.SUGGESTED:
            return self._after_suggestion(works)._settled()
        if self.stage == Stage.ANOTHER:
            if not works:
                return self._checking()._settled()
            elsewhere = Halves.begin(self._elsewhere(), levels=2)
            return replace(self, stage=Stage.ANOTHER_HALVES, walk=elsewhere)._settled()
        walk: Walk = self.walk.after(works, self.needs)
        kept = (
            self.kept if self.stage in (Stage.ANOTHER_HALVES, Stage.ANOTHER_GALLOP) else walk.kept
        )
        return replace(self, walk=walk, kept=kept)._settled()

    def _after_suggestion(self, works: bool) -> Plan:
        tried, *rest = self.suggestions
        return replace(
            self, kept=tried if works else self.kept, suggestions=() if works else tuple(rest)
        )

    def _elsewhere(self) -> Indices:
        whole = tuple(range(self.count))
        gone = {*self.avoided, *needing(self.avoided, whole, self.needs)}
        return tuple(part for part in whole if part not in gone)

    def _settled(self) -> Plan:
        """The plan at its next question: stages that have none are passed."""
        plan = self
        while plan.stage != Stage.DONE and not plan._has_question():
            plan = plan._next()
        return plan

    def _has_question(self) -> bool:
        if self.stage == Stage.SUGGESTED:
            return bool(self.suggestions) and self.suggestions[0] != self.kept
        if self.stage == Stage.ANOTHER:
            return _SMALL < len(self.kept) <= len(self._elsewhere())
        if self.stage == Stage.ANOTHER_GALLOP and self._is_no_better():
            return False
        return self.walk.candidate(self.needs) is not None

    def _is_no_better(self) -> bool:
        """Whether about as many parts seem to be needed here as in the cause that is known."""
        assert isinstance(self.walk, Gallop)
        needed = len(self.walk.kept) - self.walk.end
        seen = 1 - self.walk.end / max(1, self.size_before)
        return needed >= len(self.kept) * (_PATIENCE + _PROMISE * seen)

    def _next(self) -> Plan:
        match self.stage:
            case Stage.SUGGESTED:
                halves = Halves.begin(self.kept) if len(self.kept) >= _WORTH_HALVES else _NO_WALK
                return self._at(Stage.HALVES, halves)
            case Stage.HALVES:
                chosen = replace(self, chosen=len(self.kept) < self.count)
                return chosen._galloping(_first_unit(len(self.kept)))
            case Stage.GALLOP:
                return self._after_gallop()
            case Stage.ANOTHER:
                return self._checking()
            case Stage.ANOTHER_HALVES:
                walk = Gallop.begin(self.walk.kept, self.needs)
                return replace(self._at(Stage.ANOTHER_GALLOP, walk), size_before=len(walk.kept))
            case Stage.ANOTHER_GALLOP:
                return self._after_another()
            case Stage.CHECK:
                pairs = Complements.begin(self.kept, 2, shortest=2)
                return replace(self._at(Stage.PAIRS, pairs), size_before=len(self.kept))
            case Stage.PAIRS:
                first_round = replace(self, round=1)
                return first_round._in_pieces() if self._has_shrunk() else self._at(Stage.DONE)
            case Stage.PIECES:
                far = len(self.kept) < _WORTH_ANOTHER_ROUND * self.size_before
                singles = Complements.begin(self.kept, 1)
                return self._in_pieces() if far else self._at(Stage.SINGLES, singles)
            case _:
                return self._after_round()

    def _after_gallop(self) -> Plan:
        assert isinstance(self.walk, Gallop)
        if (unit := self.walk.unit) > 1:
            ends = range(len(self.kept), 0, -unit)
            blocks = [(self.kept[max(0, end - unit)], self.kept[end - 1]) for end in ends]
            sparse = len(self.kept) <= self.size_before / 2
            noted = replace(self, blocks=(*self.blocks, *blocks))
            return noted._galloping(1 if sparse else unit // _COARSER)
        if self.chosen and not self._stands_together():
            return self._checking()
        return replace(self._at(Stage.ANOTHER), avoided=self.kept)

    def _stands_together(self) -> bool:
        """Whether the cause is at one place: halves lead there however large it is."""
        return bool(self.kept) and self.kept[-1] - self.kept[0] < 2 * len(self.kept)

    def _after_another(self) -> Plan:
        """Look on for a third if that is smaller."""
        if len(self.walk.kept) >= len(self.kept):
            return self._checking()
        known = self.walk.kept
        avoided = (*self.avoided, *known)
        return replace(self._at(Stage.ANOTHER), kept=known, avoided=avoided, blocks=())

    def _galloping(self, unit: int) -> Plan:
        walk = Gallop.begin(self.kept, self.needs, unit)
        return replace(self._at(Stage.GALLOP, walk), size_before=len(self.kept))

    def _checking(self) -> Plan:
        if self._is_not_monotone():
            return self._in_pieces()
        walk = Complements.begin(self.kept, 1)
        return replace(self._at(Stage.CHECK, walk), size_before=len(self.kept))

    def _is_not_monotone(self) -> bool:
        """Whether a unit that could not go is gone: less was enough where more was not."""
        return any(
            bisect_left(self.kept, first) == bisect_right(self.kept, last)
            for first, last in self.blocks
        )

    def _has_shrunk(self) -> bool:
        return len(self.kept) < self.size_before

    def _after_round(self) -> Plan:
        """If nothing was removed in the first round, that is all; else pieces are shifted again."""
        plan = replace(self, in_vain=0 if self._has_shrunk() else self.in_vain + 1)
        return plan._at(Stage.DONE) if plan.in_vain == min(2, self.round) else plan._in_pieces()

    def _in_pieces(self) -> Plan:
        turn = self.round + 1
        half = len(self.kept) // 2
        walk = Complements.begin(self.kept, half, shortest=2, shifted=turn % 2 == 0)
        return replace(self._at(Stage.PIECES, walk), size_before=len(self.kept), round=turn)

    def _at(self, stage: Stage, walk: Walk = _NO_WALK) -> Plan:
        return replace(self, stage=stage, walk=walk)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON data, without what each part needs."""
        data = {key: value for key, value in vars(self).items() if key not in ("walk", "needs")}
        return {**data, "walk": vars(self.walk), "walking": type(self.walk).__name__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], needs: Needs = ()) -> Plan:
        """The plan that `to_json` gave.

        >>> plan = Plan.begin(3).after(works=False)
        >>> Plan.from_json(plan.to_json()) == plan
        True
        """
        walk = {**data["walk"], "kept": tuple(data["walk"]["kept"])}
        return cls(
            data["count"],
            tuple(data["kept"]),
            Stage(data["stage"]),
            _WALKS[data["walking"]](**walk),
            tuple(tuple(suggestion) for suggestion in data["suggestions"]),
            data["chosen"],
            tuple(data["avoided"]),
            tuple((first, last) for first, last in data["blocks"]),
            data["size_before"],
            data["round"],
            data["in_vain"],
            needs,
        )


def _first_unit(count: int) -> int:
    unit = 1
    while count > _MANY and unit * _COARSER * _FEW_UNITS <= count:
        unit *= _COARSER
    return unit
