"""Triage: which faults to look at first, which may be one bug or two, and how to avoid them.

Order: faults whose features are known come before those with too little data, and rare ones before
frequent ones: if one test in 50,000 shows a fault, nobody else will find it again.

Two signatures, one bug: one cause is weighed against two. With one cause, a feature shifts the odds
of both faults alike; with two, some feature shifts them differently. If the tests speak clearly for
one cause, the two may be one bug; if they speak for neither, there are too few hits to tell. (That
no difference is significant is no evidence: between two faults with ten hits each, few are.) And if
one fault needs everything that another needs, and more, it may be the other one, seen through the
additional feature, unless that feature also changes how often either of them shows.

One signature, two bugs: if the tests of a fault have one feature *or* another, each unneeded where
the other is present, there may be two ways to it.

A campaign that keeps finding a known fault finds no other: the fault ends the tests that might
have shown one. `common_features` finds the combination of features that a fault needs; keeping it
out of new tests (`swarmtest run --avoid`) lets other faults be found, and costs only those
configurations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swarmtest.analysis.bit_counts import Words, packed_column
from swarmtest.analysis.intervals import Floats
from swarmtest.analysis.role_cells import INSUFFICIENT, SUPPRESSOR, TRIGGER
from swarmtest.core.constraints import Constraint
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.core.targets import Target
from swarmtest.roles.effects import hitting_rate
from swarmtest.roles.pairs import Pair
from swarmtest.roles.roles import FeatureRole
from swarmtest.roles.study import Study

_MOST = 0.5
"""A fault does not need a combination that fewer than this share of its tests have."""
_GAIN = 0.005
"""A feature that improves the separation by less than this is left out of a combination."""
_CLEAR = 3.0
"""One cause, or two, is said if it is this much more likely than the other (Jeffreys 1961)."""
_DIFFERENT = 2.0
"""How many features two different causes treat differently, on average."""
_GRID = (np.arange(200) + 0.5) / 200
_FACTORS = _GRID / (1 - _GRID)
"""Factors of odds that take a fair coin to every probability alike."""
_NAMED = 3
"""How many uncertain pairs of faults are named."""
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
    """The hits still needed to compute roles; 0 if there are enough."""
    combination: CommonFeatures | None
    """The features that nearly all of its tests have in common; None if there are none."""
    two_causes: tuple[Pair, ...]
    """Pairs of features of which either is enough: perhaps two bugs with one signature."""

    @property
    def explained(self) -> bool:
        """Return whether anything is known about its features."""
        return bool(self.triggers or self.suppressors)

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
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
class FaultRelation:
    """Two faults that may be one bug."""

    one: Target
    other: Target
    beyond: tuple[str, ...] = ()
    """What `other` needs beyond what `one` needs; empty if no feature distinguishes them."""
    uncertain: bool = False
    """Whether there are too few hits to tell one cause from two."""

    def sentence(self) -> str:
        """Describe the relation in words.

        >>> FaultRelation(Target("fault", "a1"), Target("fault", "b2"), ("sync",)).sentence()
        'b2 needs all that a1 needs, and sync: perhaps the same bug, seen through sync'
        """
        one, other = self.one.name, self.other.name
        if self.beyond:
            names = " and ".join(self.beyond)
            return (
                f"{other} needs all that {one} needs, and {names}: perhaps the same bug, seen "
                f"through {names}"
            )
        if self.uncertain:
            return f"{one} and {other}: too few hits to tell whether they are one bug"
        return f"{one} and {other}: no feature tells them apart: perhaps one bug"


@dataclass(frozen=True)
class Triage:
    """All faults of a study in the order in which to look at them, and how they are related."""

    faults: tuple[TriagedFault, ...]
    relations: tuple[FaultRelation, ...]

    def sentences(self) -> list[str]:
        """Describe the relations; those that are uncertain, of which there may be many, at once."""
        told = [r.sentence() for r in self.relations if not r.uncertain]
        uncertain = [r for r in self.relations if r.uncertain]
        if len(uncertain) < 2:
            return told + [r.sentence() for r in uncertain]
        named = [f"{r.one.name} and {r.other.name}" for r in uncertain[:_NAMED]]
        more = len(uncertain) - len(named)
        rest = f", and {plural(more, 'more pair')}" if more else ""
        return [
            *told,
            f"too few hits to tell which of these are one bug: {', '.join(named)}{rest}",
        ]


def triage(study: Study, faults: Sequence[Target] | None = None) -> Triage:
    """Order the faults of a study, or some of them, and find relations between them.

    Every fault is compared with every other, so a page passes only the faults that it shows.
    """
    rate = 1 - study.confidence
    roles = {fault: study.roles(fault) for fault in (study.faults if faults is None else faults)}
    triaged = [_triaged(study, fault, roles[fault], rate) for fault in roles]
    triaged.sort(key=lambda fault: (not fault.explained, fault.hits, fault.fault.name))
    explained = [fault.fault for fault in triaged if fault.explained]
    relations = [
        relation
        for number, one in enumerate(explained)
        for other in explained[number + 1 :]
        if (relation := _relation(study, one, roles[one], other, roles[other], rate)) is not None
    ]
    return Triage(tuple(triaged), tuple(relations))


def _triaged(study: Study, fault: Target, roles: list[FeatureRole], rate: float) -> TriagedFault:
    hit, evidence = study.hit(fault), study.evidence
    shown = hitting_rate(
        hit, np.ones(evidence.n), evidence.clusters, study.chances.same_seed, study.confidence
    )
    assert shown is not None, "a study has tests"
    clearest = sorted(roles, key=lambda r: -abs(r.estimate - r.base))
    triggers, suppressors = (
        tuple(r.feature for r in clearest if r.role == role and r.is_discovery(rate))
        for role in (TRIGGER, SUPPRESSOR)
    )
    unknown = all(r.role == INSUFFICIENT for r in roles)
    return TriagedFault(
        fault,
        int(hit.sum()),
        shown.value,
        shown.low,
        shown.high,
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
) -> FaultRelation | None:
    odds = two_causes_against_one(one_roles, other_roles)
    if odds < _CLEAR:
        return FaultRelation(one, other, uncertain=odds > 1 / _CLEAR)
    first, second = _needed(one_roles, rate), _needed(other_roles, rate)
    if not (first and second and (first < second or second < first)):
        return None
    beyond = first ^ second
    # If it is one bug with two signatures, then the two together show about as often with the
    # additional feature as without it.
    either = study.roles_of_either(one, other)
    if any(r.feature in beyond and abs(r.share - r.base) > _PASSIVE for r in either):
        return None
    fewer, more = (one, other) if first < second else (other, one)
    return FaultRelation(fewer, more, tuple(sorted(beyond)))


def _needed(roles: list[FeatureRole], rate: float) -> set[str]:
    """Return the triggers that are in every test that shows the fault."""
    return {r.feature for r in roles if r.role == TRIGGER and r.share == 1 and r.is_discovery(rate)}


def two_causes_against_one(one: Sequence[FeatureRole], other: Sequence[FeatureRole]) -> float:
    """Return how much more likely the features of two faults' hits are with two causes than one.

    This is a Bayes factor. A feature multiplies its odds of being in a hit by some factor: by 1 in
    half of the cases, else by anything. With one cause the factor is the same for both faults. With
    two, some features, `_DIFFERENT` of them on average and at least one, have two factors.

    >>> def role(share, hits):
    ...     return FeatureRole("f", "trigger", share, 0, 1, 0.5, hits, 1, 1, 4)
    >>> alike = two_causes_against_one([role(1.0, 40)], [role(1.0, 40)])
    >>> apart = two_causes_against_one([role(1.0, 40)], [role(0.5, 40)])
    >>> alike < 0.2 and apart > 1000
    True
    """
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a.hits and b.hits]
    if not pairs:
        return 1.0
    different = min(_DIFFERENT / len(pairs), 0.5)
    ratios = [_apart_against_alike(a, b) for a, b in pairs]
    none = (1 - different) ** len(ratios)
    some = math.prod(1 - different + different * ratio for ratio in ratios)
    return max(some - none, 0.0) / (1 - none)


def _apart_against_alike(a: FeatureRole, b: FeatureRole) -> float:
    """Return the Bayes factor of two factors of one feature's odds against a common one."""
    (first, second), (first_none, second_none) = (
        [_likelihood(role, factor) for role in (a, b)] for factor in (_FACTORS, np.ones(1))
    )
    alike = ((first * second).mean() + (first_none * second_none).mean()) / 2
    a_any, b_any, a_none, b_none = (x.mean() for x in (first, second, first_none, second_none))
    # That neither fault is affected is not a difference.
    apart = (a_any * b_any + a_any * b_none + a_none * b_any) / 3
    return float(apart / alike)


def _likelihood(role: FeatureRole, factor: Floats) -> Floats:
    """Return how likely a feature's count is in the hits of a fault, up to a constant."""
    share = role.base * factor / (role.base * factor + 1 - role.base)
    inside = role.share * role.hits
    # The largest value is 1, so that many hits do not underflow.
    best = np.clip(role.share, 1e-12, 1 - 1e-12)
    log = inside * np.log(share / best) + (role.hits - inside) * np.log((1 - share) / (1 - best))
    return np.asarray(np.exp(log), float)


# Combinations of features.
#
# A combination is built from the fault's discovered triggers (in) and suppressors (out). Each step
# adds the one that separates failing from passing tests best, as long as that helps. The separation
# is the share of the failing tests that match minus the share of the passing ones.


@dataclass(frozen=True)
class CommonFeatures:
    """Features that are in, and features that are out, in (nearly) all tests of a fault.

    >>> print(CommonFeatures(("push",), ("pop", "add"), 1.0, 0.02))
    push without pop, add
    """

    inside: tuple[str, ...]
    outside: tuple[str, ...]
    failing: float
    """The share of the tests with the fault that match the combination."""
    passing: float
    """The share of the other tests that match: what avoiding the combination costs."""

    def __str__(self) -> str:
        inside, outside = ", ".join(self.inside), ", ".join(self.outside)
        if not inside:
            return f"test without {outside}"
        return f"{inside} without {outside}" if outside else inside

    def forbidden(self, fault: str) -> Constraint:
        """Return the constraint that keeps the combination out."""
        return Constraint(self.outside, self.inside, f"avoid fault {fault}: no {self}")

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        return {**vars(self), "text": str(self)}


def common_features(study: Study, fault: Target) -> CommonFeatures | None:
    """Return what nearly all tests of a fault, but not the others, share; None if nothing.

    >>> from swarmtest import Campaign, Machine, action, open_store
    >>> class Tower(Machine):
    ...     def start(self): self.height = 0
    ...     @action
    ...     def build(self): self.height += 1; assert self.height < 40
    ...     @action
    ...     def raze(self): self.height = 0
    ...     @action
    ...     def look(self): pass
    >>> store = open_store(":memory:")
    >>> outcome = Campaign(Tower, "coin", 100, store=store, workers=0).run()
    >>> study = Study(store, [outcome.campaign])
    >>> print(common_features(study, study.find("fault")))
    build without raze
    """
    rate = 1 - study.confidence
    literals = {
        (role.feature, role.role == TRIGGER): i
        for i, role in enumerate(study.roles(fault))
        if role.role in (TRIGGER, SUPPRESSOR) and role.is_discovery(rate)
    }

    evidence = study.evidence
    hit = packed_column(study.hit(fault))
    everything = packed_column(np.ones(evidence.n, bool))
    columns = {
        (name, inside): evidence.columns[i] if inside else everything & ~evidence.columns[i]
        for (name, inside), i in literals.items()
    }
    tests = _Separation(hit, everything)
    chosen: list[tuple[str, bool]] = []
    remaining = list(literals)
    match = everything
    while remaining:
        best = max(remaining, key=lambda literal: tests.of(match & columns[literal]))
        narrower = match & columns[best]
        if tests.of(narrower) < tests.of(match) + _GAIN:
            break
        chosen.append(best)
        match = narrower
        remaining.remove(best)
    if not chosen or tests.shares(match)[0] < _MOST:
        return None
    # A literal that holds in all matching failing tests narrows the combination at no cost.
    for literal in [
        literal for literal in remaining if not (match & hit & ~columns[literal]).any()
    ]:
        chosen.append(literal)
        match = match & columns[literal]
    names = evidence.features
    inside, outside = (
        tuple(sorted((name for name, is_in in chosen if is_in == wanted), key=names.index))
        for wanted in (True, False)
    )
    return CommonFeatures(inside, outside, *tests.shares(match))


class _Separation:
    """How well a set of tests separates those that hit from the others; sets are bits."""

    def __init__(self, hit: Words, everything: Words) -> None:
        self._sides = hit, everything & ~hit
        self._tests = [_size(side) for side in self._sides]

    def shares(self, match: Words) -> tuple[float, float]:
        """Return the shares of the failing and of the passing tests that match."""
        failing, passing = (
            _size(match & side) / tests if tests else 0.0
            for side, tests in zip(self._sides, self._tests, strict=True)
        )
        return failing, passing

    def of(self, match: Words) -> float:
        """Return the difference of the shares."""
        failing, passing = self.shares(match)
        return failing - passing


def _size(bits: Words) -> int:
    return int(np.bitwise_count(bits).sum(dtype=np.int64))


def avoiding(study: Study, faults: list[Target]) -> list[tuple[Target, CommonFeatures]]:
    """Return the combinations to keep out for known faults; raise an error if a fault has none."""
    combinations = []
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
        combinations.append((fault, shared))
    return combinations
