"""The order of the walks of a reduction, as one immutable value.

1. Suggestions: smaller sets that the caller expects to be interesting, and the empty set.
2. Halves, and pieces of them as long as many can be removed: this finds a small cause if there are
   several.
3. A gallop through all parts. It asks few questions, and afterwards no single part can be removed
   if the criterion is monotone (more parts never make it worse). Many parts are galloped through in
   large units first and then in smaller ones: where parts depend on each other, as lines of a
   program do, it is hard to remove piece by piece what was not removed as a whole. Units are of no
   use where few parts are needed; then they are given up.
4. Another cause, if no half could be removed, or if the needed parts are close together, so that
   halves say nothing about the size of the cause: is the test still interesting without all parts
   that were found to be needed? Then there is a cause that shares no part with the first one. It is
   given up when it does not seem to be smaller.
5. Single parts until none can be removed: this verifies that the result is 1-minimal. Then pairs of
   neighbours: the two braces of a block can only be removed together. If no pair could be removed,
   the reduction is done.
6. Pieces of what is left, from halves down to two parts, and single parts again, as long as that
   removes something. If the criterion is known not to be monotone, this comes at once, instead of
   5: a unit that could not be removed as a whole has been removed bit by bit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from swarmtest.reducer.walks import Complements, Gallop, Halves, Indices, Needs, Walk, needing


class Stage(StrEnum):
    """The stage of a reduction."""

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
"""Pieces are tried again before single parts if at most this share of the parts was left."""
_WORTH_HALVES = 16
"""Fewer parts are not halved: a gallop keeps the first ones, which are often the simpler ones."""
_SMALL = 3
"""No other cause is searched for if the known one has at most this many parts."""
_PATIENCE, _PROMISE = 0.2, 0.7
"""The share of the known cause's size that another cause may need from the start, and how much that
allowance grows until all parts have been seen."""
_MANY, _COARSER, _FEW_UNITS = 256, 4, 12
"""If there are more parts than the first number, they are first taken in units of a power of the
second, at least as many units as the third."""


@dataclass(frozen=True)
class ReductionPlan:
    """The progress of a reduction, without the answers of the criterion.

    >>> plan = ReductionPlan.begin(3)
    >>> plan.candidate()
    ()
    >>> plan.after(works=False).candidate()
    (0, 1)
    """

    count: int
    """How many parts the original has."""
    kept: Indices
    """The smallest set of parts that this plan knows to be interesting."""
    stage: Stage = Stage.SUGGESTED
    walk: Walk = _NO_WALK
    suggestions: tuple[Indices, ...] = ()
    """The sets to try before anything else."""
    chosen: bool = False
    """Whether a suggestion or a half may already have chosen one of several causes."""
    avoided: Indices = ()
    """The parts of the known causes: another cause has none of them."""
    blocks: tuple[tuple[int, int], ...] = ()
    """The first and last parts of the units that could not be removed as a whole."""
    size_before: int = 0
    """How many parts were left when this gallop, or this round of pieces and single parts,
    began."""
    round: int = 0
    """How many rounds of pieces and single parts there were."""
    in_vain: int = 0
    """How many of the last rounds removed nothing."""
    needs: Needs = ()

    @classmethod
    def begin(
        cls, count: int, suggestions: tuple[Indices, ...] = (), needs: Needs = ()
    ) -> ReductionPlan:
        """Return the plan before its first question."""
        return cls(
            count, tuple(range(count)), suggestions=((), *suggestions), needs=needs
        )._at_question()

    @property
    def odds(self) -> float:
        """Return the approximate probability that the candidate is interesting."""
        return 0.1 if self.stage in (Stage.SUGGESTED, Stage.ANOTHER) else self.walk.odds

    def candidate(self) -> Indices | None:
        """Return the parts to try next; None if nothing more can be removed."""
        if self.stage == Stage.DONE:
            return None
        if self.stage == Stage.SUGGESTED:
            return self.suggestions[0]
        return self._elsewhere() if self.stage == Stage.ANOTHER else self.walk.candidate(self.needs)

    def after(self, works: bool) -> ReductionPlan:
        """Return the plan once it is known whether the candidate is interesting."""
        if self.stage == Stage.SUGGESTED:
            return self._after_suggestion(works)._at_question()
        if self.stage == Stage.ANOTHER:
            if not works:
                return self._checking()._at_question()
            elsewhere = Halves.begin(self._elsewhere(), levels=2)
            return replace(self, stage=Stage.ANOTHER_HALVES, walk=elsewhere)._at_question()
        walk: Walk = self.walk.after(works, self.needs)
        kept = (
            self.kept if self.stage in (Stage.ANOTHER_HALVES, Stage.ANOTHER_GALLOP) else walk.kept
        )
        return replace(self, walk=walk, kept=kept)._at_question()

    def _after_suggestion(self, works: bool) -> ReductionPlan:
        tried, *rest = self.suggestions
        return replace(
            self, kept=tried if works else self.kept, suggestions=() if works else tuple(rest)
        )

    def _elsewhere(self) -> Indices:
        """Return the parts that are not, and do not need, parts of the known causes."""
        whole = tuple(range(self.count))
        gone = {*self.avoided, *needing(self.avoided, whole, self.needs)}
        return tuple(part for part in whole if part not in gone)

    def _at_question(self) -> ReductionPlan:
        """Return the plan at its next question, skipping stages that have none."""
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
        """Return whether this cause seems to need about as many parts as the known one."""
        assert isinstance(self.walk, Gallop)
        needed = len(self.walk.kept) - self.walk.end
        seen = 1 - self.walk.end / max(1, self.size_before)
        return needed >= len(self.kept) * (_PATIENCE + _PROMISE * seen)

    def _next(self) -> ReductionPlan:
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

    def _after_gallop(self) -> ReductionPlan:
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
        """Return whether the cause is in one place: halves lead there however large it is."""
        return bool(self.kept) and self.kept[-1] - self.kept[0] < 2 * len(self.kept)

    def _after_another(self) -> ReductionPlan:
        """Continue with a third cause if the second one is smaller."""
        if len(self.walk.kept) >= len(self.kept):
            return self._checking()
        smaller = self.walk.kept
        avoided = (*self.avoided, *smaller)
        return replace(self._at(Stage.ANOTHER), kept=smaller, avoided=avoided, blocks=())

    def _galloping(self, unit: int) -> ReductionPlan:
        walk = Gallop.begin(self.kept, self.needs, unit)
        return replace(self._at(Stage.GALLOP, walk), size_before=len(self.kept))

    def _checking(self) -> ReductionPlan:
        if self._is_not_monotone():
            return self._in_pieces()
        walk = Complements.begin(self.kept, 1)
        return replace(self._at(Stage.CHECK, walk), size_before=len(self.kept))

    def _is_not_monotone(self) -> bool:
        """Return whether all parts of a unit are gone that could not be removed as a whole."""
        return any(
            bisect_left(self.kept, first) == bisect_right(self.kept, last)
            for first, last in self.blocks
        )

    def _has_shrunk(self) -> bool:
        return len(self.kept) < self.size_before

    def _after_round(self) -> ReductionPlan:
        """End the reduction, or try pieces again, shifted.

        The first round ends the reduction if it removes nothing; later, two such rounds in a row
        do.
        """
        plan = replace(self, in_vain=0 if self._has_shrunk() else self.in_vain + 1)
        return plan._at(Stage.DONE) if plan.in_vain == min(2, self.round) else plan._in_pieces()

    def _in_pieces(self) -> ReductionPlan:
        turn = self.round + 1
        half = len(self.kept) // 2
        walk = Complements.begin(self.kept, half, shortest=2, shifted=turn % 2 == 0)
        return replace(self._at(Stage.PIECES, walk), size_before=len(self.kept), round=turn)

    def _at(self, stage: Stage, walk: Walk = _NO_WALK) -> ReductionPlan:
        return replace(self, stage=stage, walk=walk)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON data, without `needs`."""
        data = {key: value for key, value in vars(self).items() if key not in ("walk", "needs")}
        return {**data, "walk": vars(self.walk), "walking": type(self.walk).__name__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], needs: Needs = ()) -> ReductionPlan:
        """Return the plan that `to_json` described.

        >>> plan = ReductionPlan.begin(3).after(works=False)
        >>> ReductionPlan.from_json(plan.to_json()) == plan
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
    """Return how many parts the first gallop treats as one."""
    unit = 1
    while count > _MANY and unit * _COARSER * _FEW_UNITS <= count:
        unit *= _COARSER
    return unit
