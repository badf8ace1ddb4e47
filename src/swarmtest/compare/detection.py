"""How long until something is found, when some never found it in their time.

A run that ended before it found a fault is *censored*: all it says is that the fault takes longer
than the run. Leaving such runs out, or taking their length for the time to the fault, would flatter
whoever finds least. Kaplan and Meier's estimate uses every run for as long as it lasted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.discovery import Discovery, Found
from swarmtest.analysis.intervals import Floats, normal_p_value, normal_quantile
from swarmtest.compare.equal_effort import Groups, corrected

_SPLITS = 20_000
"""Ways to split the runs into two groups for which all are counted: two groups of eight."""


@dataclass(frozen=True)
class Wait:
    """How long one run waited: until it found something, or in vain.

    >>> Wait(120, found=False).time
    120
    """

    time: float
    found: bool


@dataclass(frozen=True)
class Survival:
    """The share of runs that have not found it yet, after each time at which one did.

    >>> one = kaplan_meier([Wait(1, True), Wait(5, True), Wait(9, False)])
    >>> one.median, one.found, one.runs
    (5, 2, 3)
    """

    runs: int
    found: int
    times: tuple[float, ...]
    """When one or more runs found it, in order."""
    waiting: tuple[float, ...]
    """After each of `times`: the share that still waits."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """The interval of `waiting`, pointwise."""
    longest: float = 0.0
    """How long the run waited that waited longest, in vain or not."""

    @property
    def median(self) -> float | None:
        """When half of the runs have found it; None: not reached."""
        return _first_at_half(self.times, self.waiting)

    @property
    def median_low(self) -> float | None:
        """The lower end of the median's interval; None: not reached."""
        return _first_at_half(self.times, self.low)

    @property
    def median_high(self) -> float | None:
        """The upper end of the median's interval; None: not reached."""
        return _first_at_half(self.times, self.high)

    def found_by(self, time: float) -> float:
        """The share of runs that have found it by then.

        >>> kaplan_meier([Wait(1, True), Wait(5, False)]).found_by(3)
        0.5
        """
        passed = sum(one <= time for one in self.times)
        return 1 - self.waiting[passed - 1] if passed else 0.0


def kaplan_meier(waits: Sequence[Wait], confidence: float = 0.95) -> Survival:
    """Kaplan and Meier's estimate, with Greenwood's interval on the log-log scale.

    Where nobody waits any more that interval is not defined, and the exact binomial one of the runs
    that were not censored before stands in its place.
    """
    z = normal_quantile(confidence)
    times = sorted({wait.time for wait in waits if wait.found})
    waiting, low, high = [], [], []
    share, hazard = 1.0, 0.0
    for time in times:
        at_risk = sum(wait.time >= time for wait in waits)
        events = sum(wait.time == time and wait.found for wait in waits)
        share *= 1 - events / at_risk
        if at_risk > events:
            hazard += events / (at_risk * (at_risk - events))
            ends = _log_log_interval(share, hazard, z)
        else:
            known = sum(wait.found or wait.time >= time for wait in waits)
            ends = 0.0, 1 - ((1 - confidence) / 2) ** (1 / known)
        waiting.append(share)
        low.append(ends[0])
        high.append(ends[1])
    found = sum(wait.found for wait in waits)
    longest = max((wait.time for wait in waits), default=0.0)
    curve = tuple(times), tuple(waiting), tuple(low), tuple(high)
    return Survival(len(waits), found, *curve, longest)


def log_rank(a: Sequence[Wait], b: Sequence[Wait]) -> float:
    """The two-sided p-value of the log-rank test: did one group wait longer than the other?

    Exact for small groups (up to eight runs each): the share of all ways to split the runs into
    such groups that are at least as uneven. Beyond that by the chi-square approximation.

    >>> log_rank([Wait(t, True) for t in (1, 2, 3)], [Wait(9, False)] * 3)
    0.1
    """
    scores = _log_rank_scores([*a, *b])
    uneven = abs(scores[: len(a)].sum())
    if math.comb(len(scores), len(a)) <= _SPLITS:
        sums = scores[_all_splits(len(scores), len(a))].sum(axis=1)
        return float((np.abs(sums) >= uneven - 1e-9).mean())
    variance = _log_rank_variance(a, b)
    return float(normal_p_value(uneven / math.sqrt(variance))) if variance > 0 else 1.0


def sooner(a: Sequence[Wait], b: Sequence[Wait]) -> bool:
    """Whether `a` found it sooner than `b`, all in all: more often than the log-rank test expects.

    >>> sooner([Wait(2, True)], [Wait(5, False)])
    True
    """
    return bool(_log_rank_scores([*a, *b])[: len(a)].sum() > 0)


def _first_at_half(times: Sequence[float], shares: Sequence[float]) -> float | None:
    return next((t for t, s in zip(times, shares, strict=True) if s <= 0.5 + 1e-12), None)


def _log_log_interval(share: float, hazard: float, z: float) -> tuple[float, float]:
    spread = z * math.sqrt(hazard) / abs(math.log(share))
    return share ** math.exp(spread), share ** math.exp(-spread)


def _log_rank_scores(waits: Sequence[Wait]) -> Floats:
    """Found or not, less the hazard that a run went through: a group's sum is the test's O - E."""
    hazard = {}
    total = 0.0
    for time in sorted({wait.time for wait in waits}):
        at_risk = sum(wait.time >= time for wait in waits)
        total += sum(wait.time == time and wait.found for wait in waits) / at_risk
        hazard[time] = total
    return np.array([wait.found - hazard[wait.time] for wait in waits])


def _log_rank_variance(a: Sequence[Wait], b: Sequence[Wait]) -> float:
    total = 0.0
    pooled = [*a, *b]
    for time in {wait.time for wait in pooled if wait.found}:
        size = sum(wait.time >= time for wait in pooled)
        own = sum(wait.time >= time for wait in a)
        events = sum(wait.time == time and wait.found for wait in pooled)
        if size > 1:
            total += events * own * (size - own) * (size - events) / (size**2 * (size - 1))
    return total


@lru_cache(maxsize=8)
def _all_splits(size: int, own: int) -> npt.NDArray[np.intp]:
    return np.array(list(itertools.combinations(range(size), own)), np.intp)


# -------------------------------------------------------------------------------------------------
# How long each strategy needs to find each fault, in tests and in CPU time.
#
# In tests, whole runs are used, also those of different lengths: a run that ended without the
# fault
# is censored there. In CPU time all runs are censored where the shortest ends. Runs end after so
# many
# tests, so in CPU time slow ones would be censored late and fast ones early, and the slow ones
# alone
# would speak for what is found late; Kaplan and Meier's estimate needs that censoring tells
# nothing.
# For the same reason runs that were ended by a clock are censored in tests where the shortest
# ends.

ANY = "any"
"""Stands for whichever fault a run found first."""


@dataclass(frozen=True)
class Waiting:
    """One strategy's time to a fault, in one unit."""

    survival: Survival
    p: float | None
    """Log-rank test against the baseline; None: it is the baseline, or there are too few runs."""
    sooner: bool | None
    """Whether it took less than the baseline, all in all; None when `p` is."""
    q: float | None = None
    """`p`, corrected for all strategies and faults of the table (Benjamini-Hochberg)."""

    def to_json(self) -> dict[str, Any]:
        """Everything, with the medians."""
        medians = {name: getattr(self.survival, name) for name in _MEDIANS}
        tested = {"p": self.p, "q": self.q, "sooner": self.sooner}
        return {**vars(self.survival), **medians, **tested}


@dataclass(frozen=True)
class Detection:
    """One strategy and one fault."""

    strategy: str
    fault: str
    """The fault's id, or `ANY`."""
    tests: Waiting
    """Until the first test that shows the fault, that one included."""
    cpu_seconds: Waiting
    """The same within the CPU time that every run has; later is as good as never."""
    hits: float
    """Tests of a run that show it, on average over all runs."""


@dataclass(frozen=True)
class FaultName:
    """A fault, and how to recognise it."""

    id: str
    signature: str


_MEDIANS = ("median", "median_low", "median_high")


def fault_names(groups: Groups) -> tuple[FaultName, ...]:
    """The faults that any run found, those found by most runs first."""
    found = [one.target for runs in groups.values() for run in runs for one in run.of_kind("fault")]
    signatures = {target.name: target.detail for target in found}
    often = {id: sum(target.name == id for target in found) for id in signatures}
    return tuple(
        FaultName(id, signatures[id]) for id in sorted(often, key=lambda id: (-often[id], id))
    )


def detections(
    groups: Groups, confidence: float, tests: float, cpu_seconds: float
) -> tuple[Detection, ...]:
    """For each fault, and for whichever comes first: how long each strategy needs for it.

    `tests`, `cpu_seconds`: how far runs are looked at; CPU seconds that every run has.
    """
    faults = [fault.id for fault in fault_names(groups)]
    wanted = [ANY, *faults] if faults else []
    found = [
        _detection(strategy, fault, groups, confidence, tests, cpu_seconds)
        for fault in wanted
        for strategy in groups
    ]
    by_tests = corrected([one.tests.p for one in found])
    by_cpu = corrected([one.cpu_seconds.p for one in found])
    return tuple(
        replace(one, tests=replace(one.tests, q=tests), cpu_seconds=replace(one.cpu_seconds, q=cpu))
        for one, tests, cpu in zip(found, by_tests, by_cpu, strict=True)
    )


def _detection(
    strategy: str, fault: str, groups: Groups, confidence: float, tests: float, cpu_seconds: float
) -> Detection:
    baseline = next(iter(groups))
    runs, base = groups[strategy], groups[baseline] if strategy != baseline else ()
    hits = sum(one.hits for run in runs for one in _shown(run, fault))
    own_tests, base_tests = (_in_tests(some, fault, tests) for some in (runs, base))
    own_cpu, base_cpu = (_in_cpu_seconds(some, fault, cpu_seconds) for some in (runs, base))
    return Detection(
        strategy,
        fault,
        _waiting(own_tests, base_tests, confidence),
        _waiting(own_cpu, base_cpu, confidence),
        hits / len(runs),
    )


def _waiting(own: Sequence[Wait], base: Sequence[Wait], confidence: float) -> Waiting:
    survival = kaplan_meier(own, confidence)
    if len(own) < 2 or len(base) < 2:
        return Waiting(survival, None, None)
    return Waiting(survival, log_rank(own, base), sooner(own, base))


def _in_tests(runs: Sequence[Discovery], fault: str, limit: float) -> list[Wait]:
    firsts = [_first(run, fault) for run in runs]
    return [
        Wait(min(run.tests, limit), False)
        if first is None or first >= limit
        else Wait(first + 1, True)
        for run, first in zip(runs, firsts, strict=True)
    ]


def _in_cpu_seconds(runs: Sequence[Discovery], fault: str, limit: float) -> list[Wait]:
    firsts = [_first(run, fault) for run in runs]
    times = [
        math.inf if first is None else float(run.cpu_seconds[first])
        for run, first in zip(runs, firsts, strict=True)
    ]
    return [Wait(min(time, limit), time <= limit) for time in times]


def _first(run: Discovery, fault: str) -> int | None:
    return min((one.first for one in _shown(run, fault)), default=None)


def _shown(run: Discovery, fault: str) -> list[Found]:
    faults = run.of_kind("fault")
    return faults if fault == ANY else [one for one in faults if one.target.name == fault]
