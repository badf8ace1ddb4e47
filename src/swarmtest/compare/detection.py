"""How long each strategy needs to find each fault, when some runs never find it.

A run that ended before it found a fault is *censored*: all it says is that the fault takes longer
than the run. Leaving such runs out, or taking their length as the time to the fault, would favour
the strategy that finds least. Kaplan and Meier's estimate uses every run for as long as it lasted.

In tests, whole runs are used, also of different lengths: a run without the fault is censored where
it ends. In CPU time, all runs are censored where the shortest ends. Runs end after a number of
tests, so in CPU time slow ones would be censored late and fast ones early, and only the slow ones
would tell what is found late; but Kaplan and Meier's estimate requires that censoring carries no
information. For the same reason, if a clock ended the runs, they are censored in tests where the
shortest ends.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.discovery import Discovery, FoundTarget
from swarmtest.analysis.intervals import Floats, normal_p_value, normal_quantile
from swarmtest.compare.equal_effort import Groups

_SPLITS = 20_000
"""Up to this many ways to split the runs into two groups, all are counted: two groups of eight.
Beyond that, this many are drawn."""
_MANY = 200
"""Beyond this many runs, splits would take too much memory."""


@dataclass(frozen=True)
class CensoredTime:
    """How long one run waited until it found something; or how long it lasted without finding it.

    >>> CensoredTime(120, found=False).time
    120
    """

    time: float
    found: bool


@dataclass(frozen=True)
class Survival:
    """The share of runs that have not found something yet, after each time at which one did.

    >>> curve = kaplan_meier([CensoredTime(1, True), CensoredTime(5, True), CensoredTime(9, False)])
    >>> curve.median, curve.found, curve.runs
    (5, 2, 3)
    """

    runs: int
    found: int
    times: tuple[float, ...]
    """The times at which one or more runs found it, in order."""
    waiting: tuple[float, ...]
    """The share of runs that still wait after each of `times`."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """The pointwise interval of `waiting`."""
    longest: float = 0.0
    """How long the longest run waited, successfully or not."""

    @property
    def median(self) -> float | None:
        """Return when half of the runs have found it; None if that was not reached."""
        return _first_at_half(self.times, self.waiting)

    @property
    def median_low(self) -> float | None:
        """Return the lower end of the median's interval; None if that was not reached."""
        return _first_at_half(self.times, self.low)

    @property
    def median_high(self) -> float | None:
        """Return the upper end of the median's interval; None if that was not reached."""
        return _first_at_half(self.times, self.high)

    def found_by(self, time: float) -> float:
        """Return the share of runs that have found it by then.

        >>> kaplan_meier([CensoredTime(1, True), CensoredTime(5, False)]).found_by(3)
        0.5
        """
        passed = sum(event <= time for event in self.times)
        return 1 - self.waiting[passed - 1] if passed else 0.0


def kaplan_meier(waits: Sequence[CensoredTime], confidence: float = 0.95) -> Survival:
    """Return Kaplan and Meier's estimate, with Greenwood's interval on the log-log scale.

    That interval is not defined where no run waits any more; the exact binomial interval of the
    runs that were not censored before is used there.
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
            uncensored = sum(wait.found or wait.time >= time for wait in waits)
            ends = 0.0, 1 - ((1 - confidence) / 2) ** (1 / uncensored)
        waiting.append(share)
        low.append(ends[0])
        high.append(ends[1])
    found = sum(wait.found for wait in waits)
    longest = max((wait.time for wait in waits), default=0.0)
    curve = tuple(times), tuple(waiting), tuple(low), tuple(high)
    return Survival(len(waits), found, *curve, longest)


def log_rank(a: Sequence[CensoredTime], b: Sequence[CensoredTime]) -> float:
    """Return the two-sided p-value of the log-rank test: did one group wait longer than the other?

    The p-value is the share of all ways to split the runs into such groups that are at least as
    uneven. For groups of more than eight runs, random splits stand for all of them, always the
    same. (The usual chi-square approximation finds a difference at 5% in 8% of the cases with 15
    runs each that do not differ.) Only for hundreds of runs, that approximation is used.

    >>> log_rank([CensoredTime(t, True) for t in (1, 2, 3)], [CensoredTime(9, False)] * 3)
    0.1
    """
    scores = _log_rank_scores([*a, *b])
    imbalance = abs(scores[: len(a)].sum())
    if len(scores) > _MANY:
        variance = _log_rank_variance(a, b)
        return float(normal_p_value(imbalance / math.sqrt(variance))) if variance > 0 else 1.0
    sums = scores[_splits(len(scores), len(a))].sum(axis=1)
    uneven = int((np.abs(sums) >= imbalance - 1e-9).sum())
    if math.comb(len(scores), len(a)) <= _SPLITS:
        return uneven / len(sums)
    return (uneven + 1) / (len(sums) + 1)


def sooner(a: Sequence[CensoredTime], b: Sequence[CensoredTime]) -> bool:
    """Return whether `a` found it sooner than `b`: more often than the log-rank test expects.

    >>> sooner([CensoredTime(2, True)], [CensoredTime(5, False)])
    True
    """
    return bool(_log_rank_scores([*a, *b])[: len(a)].sum() > 0)


def _first_at_half(times: Sequence[float], shares: Sequence[float]) -> float | None:
    return next((t for t, s in zip(times, shares, strict=True) if s <= 0.5 + 1e-12), None)


def _log_log_interval(share: float, hazard: float, z: float) -> tuple[float, float]:
    spread = z * math.sqrt(hazard) / abs(math.log(share))
    return share ** math.exp(spread), share ** math.exp(-spread)


def _log_rank_scores(waits: Sequence[CensoredTime]) -> Floats:
    """Return for each run whether it found it (0 or 1), less the hazard it went through.

    The sum over a group is the O - E of the log-rank test.
    """
    hazard = {}
    total = 0.0
    for time in sorted({wait.time for wait in waits}):
        at_risk = sum(wait.time >= time for wait in waits)
        total += sum(wait.time == time and wait.found for wait in waits) / at_risk
        hazard[time] = total
    return np.array([wait.found - hazard[wait.time] for wait in waits])


def _log_rank_variance(a: Sequence[CensoredTime], b: Sequence[CensoredTime]) -> float:
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
def _splits(size: int, own: int) -> npt.NDArray[np.intp]:
    """Return the members of the first group, for all splits or for many random ones."""
    if math.comb(size, own) <= _SPLITS:
        return np.array(list(itertools.combinations(range(size), own)), np.intp)
    return np.random.default_rng(0).random((_SPLITS, size)).argsort(axis=1)[:, :own]


# The faults of a comparison.

ANY = "any"
"""The name for the fault that a run found first, whichever it was."""


@dataclass(frozen=True)
class TimeToDetection:
    """One strategy's time to a fault, in one unit."""

    survival: Survival
    p: float | None
    """The log-rank test against the baseline; None for the baseline itself and for too few runs."""
    sooner: bool | None
    """Whether it took less than the baseline; None if `p` is None."""
    q: float | None = None
    """`p`, corrected for all comparisons of the report (Benjamini-Hochberg)."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data, with the medians."""
        medians = {name: getattr(self.survival, name) for name in _MEDIANS}
        tested = {"p": self.p, "q": self.q, "sooner": self.sooner}
        return {**vars(self.survival), **medians, **tested}


@dataclass(frozen=True)
class Detection:
    """How soon one strategy finds one fault."""

    strategy: str
    fault: str
    """The fault's id, or `ANY`."""
    tests: TimeToDetection
    """The tests up to the first one that shows the fault, inclusive."""
    cpu_seconds: TimeToDetection
    """The same in CPU time, within the time that every run had; later counts as never."""
    hits: float
    """The tests of a run that show it, on average over all runs."""


@dataclass(frozen=True)
class FaultName:
    """A fault, and how to recognise it."""

    id: str
    signature: str


_MEDIANS = ("median", "median_low", "median_high")


def fault_names(groups: Groups) -> tuple[FaultName, ...]:
    """Return the faults that any run found, those found by most runs first."""
    targets = [
        discovered.target
        for runs in groups.values()
        for run in runs
        for discovered in run.of_kind("fault")
    ]
    signatures = {target.name: target.detail for target in targets}
    frequency = {id: sum(target.name == id for target in targets) for id in signatures}
    return tuple(
        FaultName(id, signatures[id])
        for id in sorted(frequency, key=lambda id: (-frequency[id], id))
    )


def detections(
    groups: Groups, confidence: float, tests: float, cpu_seconds: float
) -> tuple[Detection, ...]:
    """Return for each fault, and for the first of any, how long each strategy needs to find it.

    Runs are used up to `tests` tests, and up to `cpu_seconds`, which every run must have.
    """
    faults = [fault.id for fault in fault_names(groups)]
    wanted = [ANY, *faults] if faults else []
    return tuple(
        _detection(strategy, fault, groups, confidence, tests, cpu_seconds)
        for fault in wanted
        for strategy in groups
    )


def _detection(
    strategy: str, fault: str, groups: Groups, confidence: float, tests: float, cpu_seconds: float
) -> Detection:
    baseline = next(iter(groups))
    runs, base = groups[strategy], groups[baseline] if strategy != baseline else ()
    hits = sum(discovered.hits for run in runs for discovered in _shown(run, fault))
    own_tests, base_tests = (_in_tests(group, fault, tests) for group in (runs, base))
    own_cpu, base_cpu = (_in_cpu_seconds(group, fault, cpu_seconds) for group in (runs, base))
    return Detection(
        strategy,
        fault,
        _waiting(own_tests, base_tests, confidence),
        _waiting(own_cpu, base_cpu, confidence),
        hits / len(runs),
    )


def _waiting(
    own: Sequence[CensoredTime], base: Sequence[CensoredTime], confidence: float
) -> TimeToDetection:
    survival = kaplan_meier(own, confidence)
    if len(own) < 2 or len(base) < 2:
        return TimeToDetection(survival, None, None)
    return TimeToDetection(survival, log_rank(own, base), sooner(own, base))


def _in_tests(runs: Sequence[Discovery], fault: str, limit: float) -> list[CensoredTime]:
    firsts = [_first(run, fault) for run in runs]
    return [
        CensoredTime(min(run.tests, limit), False)
        if first is None or first >= limit
        else CensoredTime(first + 1, True)
        for run, first in zip(runs, firsts, strict=True)
    ]


def _in_cpu_seconds(runs: Sequence[Discovery], fault: str, limit: float) -> list[CensoredTime]:
    firsts = [_first(run, fault) for run in runs]
    times = [
        math.inf if first is None else float(run.cpu_seconds[first])
        for run, first in zip(runs, firsts, strict=True)
    ]
    return [CensoredTime(min(time, limit), time <= limit) for time in times]


def _first(run: Discovery, fault: str) -> int | None:
    return min((discovered.first for discovered in _shown(run, fault)), default=None)


def _shown(run: Discovery, fault: str) -> list[FoundTarget]:
    faults = run.of_kind("fault")
    return (
        faults
        if fault == ANY
        else [discovered for discovered in faults if discovered.target.name == fault]
    )
