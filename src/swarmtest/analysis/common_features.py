"""The combination of features that a fault needs, and how to keep it out of new tests.

A campaign that keeps running into a known fault finds no other: the fault ends the tests that
might have shown it. Keeping its combination out (`swarmtest run --avoid`) lets the others be
found, and costs only those configurations.

The combination is built from the fault's discovered triggers (in) and suppressors (out), one by
one, each time the one that separates failing tests from passing ones best, as long as that helps.
"Better" is the share of the failing tests that match minus the share of the passing ones that do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swarmtest.analysis.bits import Bools
from swarmtest.analysis.roles import SUPPRESSOR, TRIGGER
from swarmtest.analysis.study import Study
from swarmtest.errors import UserError
from swarmtest.space import Constraint
from swarmtest.targets import Target

_MOST = 0.5
"""A combination that fewer of the failing tests have is not what the fault needs."""
_GAIN = 0.005
"""A feature that separates less than this better is not worth a word in the combination."""


@dataclass(frozen=True)
class CommonFeatures:
    """Features that are in, and features that are out, in (nearly) all tests of a fault.

    >>> print(CommonFeatures(("push",), ("pop", "add"), 1.0, 0.02))
    push without pop, add
    """

    inside: tuple[str, ...]
    outside: tuple[str, ...]
    failing: float
    """The share of the tests that show the fault in which all this holds."""
    passing: float
    """The share of the other tests in which all this holds: what avoiding it costs."""

    def __str__(self) -> str:
        inside, outside = ", ".join(self.inside), ", ".join(self.outside)
        if not inside:
            return f"test without {outside}"
        return f"{inside} without {outside}" if outside else inside

    def forbidden(self, fault: str) -> Constraint:
        """The constraint that keeps the combination out."""
        return Constraint(self.outside, self.inside, f"avoid fault {fault}: no {self}")

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        return {**vars(self), "text": str(self)}


def common_features(study: Study, fault: Target) -> CommonFeatures | None:
    """What nearly all tests of a fault have in common and others have not; None: nothing."""
    rate = 1 - study.confidence
    literals = {
        (role.feature, role.role == TRIGGER): i
        for i, role in enumerate(study.roles(fault))
        if role.role in (TRIGGER, SUPPRESSOR) and role.is_discovery(rate)
    }

    def column(one: tuple[str, bool]) -> Bools:
        holds: Bools = study.evidence.enabled[:, literals[one]] == one[1]
        return holds

    hit = study.hit(fault)
    chosen: list[tuple[str, bool]] = []
    left = list(literals)
    match: Bools = np.ones(study.evidence.n, bool)
    while left:
        best = max(left, key=lambda one: _separates(match & column(one), hit))
        better = match & column(best)
        if _separates(better, hit) < _separates(match, hit) + _GAIN:
            break
        chosen.append(best)
        match = better
        left.remove(best)
    if not chosen or match[hit].mean() < _MOST:
        return None
    # What holds in all of the matching failing tests narrows the combination at no cost.
    for one in [one for one in left if column(one)[match & hit].all()]:
        chosen.append(one)
        match = match & column(one)
    names = study.evidence.features
    inside, outside = (
        tuple(sorted((name for name, is_in in chosen if is_in == wanted), key=names.index))
        for wanted in (True, False)
    )
    return CommonFeatures(inside, outside, *_shares(match, hit))


def _shares(match: Bools, hit: Bools) -> tuple[float, float]:
    failing, passing = (float(match[g].mean()) if g.any() else 0.0 for g in (hit, ~hit))
    return failing, passing


def _separates(match: Bools, hit: Bools) -> float:
    failing, passing = _shares(match, hit)
    return failing - passing


def avoiding(study: Study, faults: list[Target]) -> list[tuple[Target, CommonFeatures]]:
    """The combinations to keep out for known faults; an error tells which fault has none."""
    found = []
    for fault in faults:
        shared = common_features(study, fault)
        if shared is None:
            more = max(role.missing_hits for role in study.roles(fault))
            why = (
                f"insufficient data, {more} more hits needed"
                if more
                else "no features are known that most of its tests share"
            )
            raise UserError(f"fault {fault.name} cannot be avoided: {why}")
        found.append((fault, shared))
    return found
