"""Which walk comes after which: the whole of a reduction as one value.

1. Suggestions: smaller sets that somebody has reason to believe in, and nothing at all.
2. A gallop through all parts: few questions, and no single part can go where the criterion is
   monotone (more parts never make it worse). Many parts are galloped through in large units first,
   then in smaller ones: where parts hang together, as lines of a program do, what is not taken out
   as a whole is hard to get rid of. Units are no use where few parts are needed; then they end.
3. Another cause: is it still interesting without all that was found to be needed? Then there is a
   cause that shares nothing with it, and that may be smaller; it is given up when it is not.
4. Pieces of what is left, from halves down to two: what can only go together.
5. Single parts until none can go: that is what makes the answer 1-minimal, verified.

Again from 4 on, as long as 4 or 5 could remove something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from swarmtest.reduction.walks import Complements, Gallop, Indices, Needs, Walk, needing

SUGGESTED, GALLOP, ANOTHER, ANOTHER_GALLOP, PIECES, SINGLES, DONE = (
    "suggested",
    "gallop",
    "another",
    "another gallop",
    "pieces",
    "singles",
    "done",
)
_NO_WALK = Gallop((), 0)
_WORTH_ANOTHER_ROUND = 0.9
"""Pieces are tried again before single parts if no more than this share was left of the parts."""
_FRUITLESS = 2
"""After as many causes that are no smaller, no more are looked for."""
_SMALL = 3
"""A cause of no more parts is small enough."""
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
    stage: str = SUGGESTED
    walk: Walk = _NO_WALK
    suggestions: tuple[Indices, ...] = ()
    """What is to be tried before anything else."""
    avoided: Indices = ()
    """The causes that are known: another one has none of their parts."""
    fruitless: int = 0
    """How many causes were looked at, since the best, that are no smaller."""
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
        return self.walk.odds if self.stage in (GALLOP, ANOTHER_GALLOP) else 0.1

    def candidate(self) -> Indices | None:
        """What to try next; None when nothing more can go."""
        if self.stage == DONE:
            return None
        if self.stage == SUGGESTED:
            return self.suggestions[0]
        return self._elsewhere() if self.stage == ANOTHER else self.walk.candidate(self.needs)

    def after(self, works: bool) -> Plan:
        """The plan when it is known whether the candidate is interesting."""
        if self.stage == SUGGESTED:
            return self._after_suggestion(works)._settled()
        if self.stage == ANOTHER:
            if not works:
                return self._in_pieces()._settled()
            elsewhere = Gallop.begin(self._elsewhere(), self.needs)
            return replace(self, stage=ANOTHER_GALLOP, walk=elsewhere)._settled()
        walk: Walk = self.walk.after(works, self.needs)
        kept = self.kept if self.stage == ANOTHER_GALLOP else walk.kept
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
        while plan.stage != DONE and not plan._has_question():
            plan = plan._next()
        return plan

    def _has_question(self) -> bool:
        if self.stage == SUGGESTED:
            return bool(self.suggestions) and self.suggestions[0] != self.kept
        if self.stage == ANOTHER:
            return _SMALL < len(self.kept) <= len(self._elsewhere())
        if self.stage == ANOTHER_GALLOP and self._is_no_better():
            return False
        return self.walk.candidate(self.needs) is not None

    def _is_no_better(self) -> bool:
        """Whether as many parts are needed here as in the cause that is known."""
        assert isinstance(self.walk, Gallop)
        return len(self.walk.kept) - self.walk.end >= len(self.kept)

    def _next(self) -> Plan:
        if self.stage == SUGGESTED:
            return self._galloping(_first_unit(len(self.kept)))
        if self.stage == GALLOP and isinstance(self.walk, Gallop) and self.walk.unit > 1:
            sparse = len(self.kept) <= self.size_before / 2
            return self._galloping(1 if sparse else self.walk.unit // _COARSER)
        if self.stage == GALLOP and not self.avoided:
            return replace(self, avoided=self.kept)._at(ANOTHER)
        if self.stage == ANOTHER_GALLOP:
            return self._after_another()
        if self.stage == PIECES and len(self.kept) >= _WORTH_ANOTHER_ROUND * self.size_before:
            return self._at(SINGLES)
        if self.stage == SINGLES:
            return self._after_round()
        return self._in_pieces()

    def _after_another(self) -> Plan:
        """Look on, without that cause (or as much of it as is known) in the way."""
        assert isinstance(self.walk, Gallop)
        better = len(self.walk.kept) < len(self.kept)
        known = self.walk.kept if better else self.walk.kept[self.walk.end :]
        plan = replace(
            self,
            kept=known if better else self.kept,
            avoided=tuple(sorted({*self.avoided, *known})),
            fruitless=0 if better else self.fruitless + 1,
        )
        return plan._at(ANOTHER) if plan.fruitless < _FRUITLESS else plan._in_pieces()

    def _galloping(self, unit: int) -> Plan:
        walk = Gallop.begin(self.kept, self.needs, unit)
        return replace(self, stage=GALLOP, walk=walk, size_before=len(self.kept))

    def _after_round(self) -> Plan:
        """If nothing was removed in the first round, that is all; else pieces are shifted again."""
        removed = len(self.kept) < self.size_before
        plan = replace(self, in_vain=0 if removed else self.in_vain + 1)
        return plan._at(DONE) if plan.in_vain == min(2, self.round) else plan._in_pieces()

    def _in_pieces(self) -> Plan:
        again = replace(self, size_before=len(self.kept), round=self.round + 1)
        return again._at(PIECES)

    def _at(self, stage: str) -> Plan:
        walk: Walk = _NO_WALK
        if stage == PIECES:
            half = len(self.kept) // 2
            walk = Complements.begin(self.kept, half, shortest=2, shifted=self.round % 2 == 0)
        elif stage == SINGLES:
            walk = Complements.begin(self.kept, 1)
        return replace(self, stage=stage, walk=walk)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON data, without what each part needs."""
        data = {key: value for key, value in vars(self).items() if key not in ("walk", "needs")}
        return {**data, "walk": vars(self.walk)}

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
            data["stage"],
            Complements(**walk) if "shortest" in walk else Gallop(**walk),
            tuple(tuple(suggestion) for suggestion in data["suggestions"]),
            tuple(data["avoided"]),
            data["fruitless"],
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
