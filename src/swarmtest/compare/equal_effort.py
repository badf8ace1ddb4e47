"""What strategies found with equal effort: after as many tests, or after as much CPU time.

A *run* is one campaign; the runs of a strategy differ in their seeds. The numbers per run are the
sample that statistics are computed from. The numbers over all runs of a strategy are only for
reading: they grow with the number of runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.discovery import Discovery
from swarmtest.analysis.intervals import Estimate
from swarmtest.analysis.rank_tests import (
    EffectSize,
    bootstrap_interval,
    difference_of_means,
    mann_whitney,
    mean,
    vargha_delaney,
)

Groups = Mapping[str, Sequence[Discovery]]
"""The runs of each strategy, the baseline first."""

Identity = tuple[str, str]
"""Name and version of the file, which together identify a target within its kind."""

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, *(k / 40 for k in range(1, 41)))
"""The shares of the effort at which curves have values: dense at the beginning, then even."""


@dataclass(frozen=True)
class Effort:
    """What the runs of a strategy took, on average."""

    strategy: str
    runs: int
    tests: float
    steps: float
    cpu_seconds: float


@dataclass(frozen=True)
class FoundTargets:
    """What a strategy found of one kind of target (faults are a kind)."""

    strategy: str
    kind: str
    counts: tuple[int, ...]
    """The number of distinct targets in each run."""
    per_run: Estimate
    """Their mean, with a bootstrap interval."""
    in_any_run: int
    """The number of distinct targets over all runs."""
    only_here: int
    """Of those, the targets that no other strategy found in any run."""
    everywhere: int
    """Of those, the targets that every strategy found."""
    hits_per_target: float | None
    """How many tests of a run hit a target that it found, on average: the papers' overkill."""


@dataclass(frozen=True)
class Difference:
    """A strategy compared with the baseline, in distinct targets of one kind per run."""

    strategy: str
    kind: str
    more: Estimate
    """How many more than the baseline, with a bootstrap interval."""
    effect: EffectSize | None
    """Vargha and Delaney's A12: the chance to beat the baseline, with ties as half."""
    p: float | None
    """The two-sided Mann-Whitney test; None if there are not enough runs."""
    q: float | None
    """`p`, corrected for all the comparisons of the report (Benjamini-Hochberg)."""
    only_baseline: int
    only_here: int
    both: int
    """Distinct targets over all runs: only the baseline's, only this strategy's, and of both."""


@dataclass(frozen=True)
class DiscoveryCurve:
    """Distinct targets of one kind found after each of `SHARES` of the effort."""

    strategy: str
    kind: str
    mean: tuple[float, ...]
    least: tuple[int, ...]
    most: tuple[int, ...]
    """The mean, least and most over the runs of the strategy."""


@dataclass(frozen=True)
class Cut:
    """All strategies after the same effort."""

    unit: str
    """``tests`` or ``cpu_seconds``."""
    limit: float
    """The effort of every run: as much as the shortest had."""
    shortest: int
    """The campaign with the shortest run."""
    efforts: tuple[Effort, ...]
    reaches: tuple[FoundTargets, ...]
    differences: tuple[Difference, ...]
    together: dict[str, int]
    """For each kind, the number of distinct targets that all strategies found together."""
    curves: tuple[DiscoveryCurve, ...]


def cut(
    unit: str,
    limit: float,
    shortest: int,
    groups: Groups,
    kinds: Sequence[str],
    confidence: float,
) -> Cut:
    """Describe runs that were read up to a limit."""
    targets = {kind: _targets_found(groups, kind) for kind in kinds}
    return Cut(
        unit,
        limit,
        shortest,
        tuple(_effort(strategy, runs) for strategy, runs in groups.items()),
        tuple(
            _reach(strategy, kind, runs, targets[kind], confidence)
            for kind in kinds
            for strategy, runs in groups.items()
        ),
        tuple(d for kind in kinds for d in _differences(kind, groups, targets, confidence)),
        {kind: len(set().union(*targets[kind].values())) for kind in kinds},
        tuple(
            _curve(strategy, kind, runs, unit, limit)
            for kind in kinds
            for strategy, runs in groups.items()
        ),
    )


def kinds_of(groups: Groups) -> list[str]:
    """Return the kinds of targets that any run found; faults come first, and always."""
    found = {kind for run in chain.from_iterable(groups.values()) for kind in run.kinds()}
    return ["fault", *sorted(found - {"fault"})]


def _targets_found(groups: Groups, kind: str) -> dict[str, set[Identity]]:
    """Return the targets that each strategy found in any run."""
    return {
        strategy: {
            (discovered.target.name, discovered.target.source)
            for run in runs
            for discovered in run.of_kind(kind)
        }
        for strategy, runs in groups.items()
    }


def _effort(strategy: str, runs: Sequence[Discovery]) -> Effort:
    return Effort(
        strategy,
        len(runs),
        float(np.mean([run.tests for run in runs])),
        float(np.mean([run.steps[-1] if run.tests else 0 for run in runs])),
        float(np.mean([run.cpu_seconds[-1] if run.tests else 0.0 for run in runs])),
    )


def _reach(
    strategy: str,
    kind: str,
    runs: Sequence[Discovery],
    found: Mapping[str, set[Identity]],
    confidence: float,
) -> FoundTargets:
    own = found[strategy]
    others = [targets for name, targets in found.items() if name != strategy]
    counts = _counts(runs, kind)
    overkill = [
        float(np.mean([discovered.hits for discovered in run.of_kind(kind)]))
        for run in runs
        if run.of_kind(kind)
    ]
    ends = bootstrap_interval(counts, statistic=mean, confidence=confidence) if runs[1:] else ()
    return FoundTargets(
        strategy,
        kind,
        counts,
        Estimate(float(np.mean(counts)), *ends),
        len(own),
        len(own.difference(*others)),
        len(own.intersection(*others)),
        float(np.mean(overkill)) if overkill else None,
    )


def _counts(runs: Sequence[Discovery], kind: str) -> tuple[int, ...]:
    return tuple(len(run.of_kind(kind)) for run in runs)


def _differences(
    kind: str, groups: Groups, found: Mapping[str, Mapping[str, set[Identity]]], confidence: float
) -> list[Difference]:
    (baseline, base_runs), *others = groups.items()
    base, base_found = _counts(base_runs, kind), found[kind][baseline]
    differences = []
    for strategy, runs in others:
        counts, own = _counts(runs, kind), found[kind][strategy]
        more = Estimate(float(np.mean(counts) - np.mean(base)))
        effect, p = None, None
        if len(runs) > 1 and len(base_runs) > 1:
            ends = bootstrap_interval(
                counts, base, statistic=difference_of_means, confidence=confidence
            )
            more = Estimate(more.value, *ends)
            effect, p = vargha_delaney(counts, base, confidence), mann_whitney(counts, base)
        shares = len(base_found - own), len(own - base_found), len(own & base_found)
        differences.append(Difference(strategy, kind, more, effect, p, None, *shares))
    return differences


def _curve(
    strategy: str, kind: str, runs: Sequence[Discovery], unit: str, limit: float
) -> DiscoveryCurve:
    counts = np.array([_counts_at(run, kind, unit, limit) for run in runs])
    return DiscoveryCurve(
        strategy,
        kind,
        tuple(counts.mean(axis=0).tolist()),
        tuple(counts.min(axis=0).tolist()),
        tuple(counts.max(axis=0).tolist()),
    )


def _counts_at(run: Discovery, kind: str, unit: str, limit: float) -> npt.NDArray[np.int64]:
    """Return how many targets were found within each share of the limit."""
    if unit == "tests":
        tests = np.array([math.ceil(share * limit) for share in SHARES])
    else:
        tests = np.searchsorted(run.cpu_seconds, np.array(SHARES) * limit, side="right")
    firsts = np.array([discovered.first for discovered in run.of_kind(kind)], np.int64)
    return np.asarray(np.searchsorted(firsts, tests, side="left"), np.int64)
