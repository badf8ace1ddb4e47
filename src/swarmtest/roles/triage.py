"""Which faults to look at first, which may be one bug, and which may be two.

Order: faults whose features are known go before those with too little data, and rare ones before
frequent ones: a fault that one test in 50,000 shows is the one that nobody else will find again.

Two signatures, one bug: if no feature is found more often in the tests of one fault than in those
of the other, and both have triggers or suppressors, nothing in the features tells them apart. And
if one fault needs everything that another needs, and more, it may be the other one, seen through
the additional feature, unless that feature also changes how often either of them shows.

One signature, two bugs: if the tests of a fault have one feature *or* another, each unneeded where
the other is, there may be two ways to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swarmtest.analysis.bit_counts import Bools
from swarmtest.analysis.cells import INSUFFICIENT, SUPPRESSOR, TRIGGER
from swarmtest.analysis.intervals import benjamini_hochberg, normal_p_value, wilson_interval
from swarmtest.core.constraints import Constraint
from swarmtest.core.errors import UserError
from swarmtest.core.targets import Target
from swarmtest.roles.pairs import Pair
from swarmtest.roles.roles import FeatureRole
from swarmtest.roles.study import Study

# -------------------------------------------------------------------------------------------------
# The combination of features that a fault needs, and how to keep it out of new tests.
#
# A campaign that keeps running into a known fault finds no other: the fault ends the tests that
# might have shown it. Keeping its combination out (`swarmtest run --avoid`) lets the others be
# found, and costs only those configurations.
#
# The combination is built from the fault's discovered triggers (in) and suppressors (out), one by
# one, each time the one that separates failing tests from passing ones best, as long as that
# helps.
# "Better" is the share of the failing tests that match minus the share of the passing ones that
# do.

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


# -------------------------------------------------------------------------------------------------

_PASSIVE = 0.2
"""A feature that only takes steps from the others shifts its share by less than this."""


@dataclass(frozen=True)
class TriagedFault:
    """A fault, how often it shows, and what is known about its features."""

    fault: Target
    hits: int
    fraction: float
    low: float
    high: float
    """The share of tests that show it, with its interval."""
    triggers: tuple[str, ...]
    suppressors: tuple[str, ...]
    """Those that survive the correction for many comparisons, the clearest first."""
    missing_hits: int
    """Hits that are still needed before roles can be told; 0 if there are enough."""
    combination: CommonFeatures | None
    """The features that make nearly all of its tests; None if there is no such thing."""
    two_causes: tuple[Pair, ...]
    """Features of which one or the other is enough: perhaps two bugs behind one signature."""

    @property
    def explained(self) -> bool:
        """Whether anything is known about its features."""
        return bool(self.triggers or self.suppressors)

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        return {
            "fault": self.fault.name,
            "signature": self.fault.detail,
            "hits": self.hits,
            "fraction": [self.fraction, self.low, self.high],
            "triggers": list(self.triggers),
            "suppressors": list(self.suppressors),
            "missing_hits": self.missing_hits,
            "combination": self.combination.to_json() if self.combination else None,
            "two_causes": [pair.to_json() for pair in self.two_causes],
        }


@dataclass(frozen=True)
class Relation:
    """Two faults that may be one bug."""

    one: Target
    other: Target
    beyond: tuple[str, ...] = ()
    """What `other` needs beyond what `one` needs; empty: no feature tells them apart."""

    def sentence(self) -> str:
        """In words.

        >>> Relation(Target("fault", "a1"), Target("fault", "b2"), ("sync",)).sentence()
        'b2 needs all that a1 needs, and sync: perhaps the same bug, seen through sync'
        """
        one, other = self.one.name, self.other.name
        if self.beyond:
            names = " and ".join(self.beyond)
            return (
                f"{other} needs all that {one} needs, and {names}: perhaps the same bug, seen "
                f"through {names}"
            )
        return f"{one} and {other}: no feature tells them apart: perhaps one bug"


@dataclass(frozen=True)
class Triage:
    """All faults of a study in the order in which to look at them, and how they are related."""

    faults: tuple[TriagedFault, ...]
    relations: tuple[Relation, ...]


def triage(study: Study) -> Triage:
    """Order the faults and find relations between them."""
    rate = 1 - study.confidence
    roles = {fault: study.roles(fault) for fault in study.faults}
    triaged = [_triaged(study, fault, roles[fault], rate) for fault in study.faults]
    triaged.sort(key=lambda one: (not one.explained, one.hits, one.fault.name))
    explained = [one.fault for one in triaged if one.explained]
    relations = [
        relation
        for at, one in enumerate(explained)
        for other in explained[at + 1 :]
        if (relation := _relation(study, one, roles[one], other, roles[other], rate)) is not None
    ]
    return Triage(tuple(triaged), tuple(relations))


def _triaged(study: Study, fault: Target, roles: list[FeatureRole], rate: float) -> TriagedFault:
    hits = int(study.hit(fault).sum())
    low, high = wilson_interval(hits, study.evidence.n, study.confidence)
    clearest = sorted(roles, key=lambda r: -abs(r.estimate - r.base))
    triggers, suppressors = (
        tuple(r.feature for r in clearest if r.role == role and r.is_discovery(rate))
        for role in (TRIGGER, SUPPRESSOR)
    )
    unknown = all(r.role == INSUFFICIENT for r in roles)
    return TriagedFault(
        fault,
        hits,
        hits / study.evidence.n,
        low,
        high,
        triggers,
        suppressors,
        max(r.missing_hits for r in roles) if unknown else 0,
        common_features(study, fault) if triggers or suppressors else None,
        tuple(pair for pair in study.pairs(fault) if pair.either),
    )


def _relation(
    study: Study,
    one: Target,
    one_roles: list[FeatureRole],
    other: Target,
    other_roles: list[FeatureRole],
    rate: float,
) -> Relation | None:
    if not _told_apart(one_roles, other_roles, rate):
        return Relation(one, other)
    first, second = _needed(one_roles, rate), _needed(other_roles, rate)
    if not (first and second and (first < second or second < first)):
        return None
    beyond = first ^ second
    # One bug that shows in two ways shows about as often with the feature that makes the difference
    # as without it, if both ways are counted.
    either = study.roles_of_either(one, other)
    if any(r.feature in beyond and abs(r.share - r.base) > _PASSIVE for r in either):
        return None
    less, more = (one, other) if first < second else (other, one)
    return Relation(less, more, tuple(sorted(beyond)))


def _needed(roles: list[FeatureRole], rate: float) -> set[str]:
    """Triggers that are in every test that shows the fault."""
    return {r.feature for r in roles if r.role == TRIGGER and r.share == 1 and r.is_discovery(rate)}


def _told_apart(one: list[FeatureRole], other: list[FeatureRole], rate: float) -> bool:
    """Whether some feature is more often in the tests of one fault than in the other's."""
    p_values = [
        _difference(a, b) for a, b in zip(one, other, strict=True) if a.hits >= 1 and b.hits >= 1
    ]
    return bool((benjamini_hochberg(p_values) <= rate).any()) if p_values else False


def _difference(a: FeatureRole, b: FeatureRole) -> float:
    """The p-value of two shares being the same, each measured from its own base rate."""
    shift = (a.share - a.base) - (b.share - b.base)
    pooled = (a.share * a.hits + b.share * b.hits + 1) / (a.hits + b.hits + 2)
    spread = np.sqrt(pooled * (1 - pooled) * (1 / a.hits + 1 / b.hits))
    return float(normal_p_value(shift / spread))
