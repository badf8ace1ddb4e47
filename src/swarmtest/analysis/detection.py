"""How long each strategy needs to find each fault, in tests and in CPU time.

In tests, whole runs are used, also those of different lengths: a run that ended without the fault
is censored there. In CPU time all runs are censored where the shortest ends. Runs end after so many
tests, so in CPU time slow ones would be censored late and fast ones early, and the slow ones alone
would speak for what is found late; Kaplan and Meier's estimate needs that censoring tells nothing.
For the same reason runs that were ended by a clock are censored in tests where the shortest ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from swarmtest.analysis.discovery import Discovery, Found
from swarmtest.analysis.equal_effort import Groups, corrected
from swarmtest.analysis.survival import Survival, Wait, kaplan_meier, log_rank, sooner

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
