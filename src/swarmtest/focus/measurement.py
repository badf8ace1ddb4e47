"""Measure a focused campaign: how often each target was hit, and how much more often than before.

`count_hits` goes over a campaign's tests once; `focused_targets` and `focused_faults` turn its
counts into the outcome that reports read; `hitting_ratio` and `rate_ratio` compare directed with
undirected tests, by test and by CPU second; `summarise` gives the columns of the paper's tables 3
to 6.

Invariant: each test is counted as exactly one of directed, undirected and default, by its origin,
and only if its hits are known. An invalid test counts as a test that hit nothing, because it cost
time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from swarmtest.analysis.intervals import normal_quantile
from swarmtest.analysis.rank_tests import wilcoxon_signed_rank
from swarmtest.coverage.scope import shown_path
from swarmtest.focus.base_version import BaseVerdict
from swarmtest.focus.history import History
from swarmtest.focus.known_faults import place_of_fault
from swarmtest.focus.outcome import Count, FocusedFault, FocusedTarget
from swarmtest.focus.planning import NO_CODE, PlannedTarget
from swarmtest.focus.undirected import earlier_count, earlier_default_count
from swarmtest.languages.places import read_statements
from swarmtest.languages.source import is_c
from swarmtest.languages.text_lines import continued_statement
from swarmtest.store.blocks import TrialBlock
from swarmtest.store.blocks.hits import Bools, Ints
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord
from swarmtest.strategies.directed.directed import DEFAULT, UNDIRECTED

# Ratios of hitting fractions, with intervals.
#
# Invariants: `low <= value <= high` wherever `value` is a number. If only the first side has hits,
# the ratio is unbounded and only `low` is informative; if only the second has, only `high` is; if
# neither has, nothing is known.
#
# The interval is Koopman's score interval. It was chosen by simulation over hitting fractions from
# 0.01 to 0.9 and 20 to 5,000 tests on each side (900 pairs): it covers the true ratio in 95.3% of
# the cases on average and never in less than 90.6% (where half a hit is expected). Katz's interval
# of the logarithm with half a hit added, the usual treatment of zeros, reaches 93.4% and 80.6%.
# The score is the sum of both sides' squared residuals and not its usual short form: the short form
# is wrong where all tests of one side hit, and made this interval miss in 18% of those cases.

_STEPS = 200
# The bisection looks for limits between these ratios.
_SMALLEST, _GREATEST = 1e-12, 1e12


class HitCount(Protocol):
    """The hits of something: in how many tests, and at what cost."""

    @property
    def hits(self) -> int:
        """Return how many tests hit."""

    @property
    def tests(self) -> int:
        """Return how many tests were run."""

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU time of these tests."""


@dataclass(frozen=True)
class HittingRatio:
    """How many times as often one side hits as the other, with its interval.

    >>> str(HittingRatio(14.8, 9.1, 24.3)), str(HittingRatio(math.inf, 3.14, math.inf))
    ('14.8 [9.1, 24.3]', 'at least 3.1')
    """

    value: float
    """Infinite if only the first side hit; not a number if neither did."""
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Return whether at least one side hit."""
        return not math.isnan(self.value)

    @property
    def is_finite(self) -> bool:
        """Return whether the ratio is a finite number."""
        return math.isfinite(self.value)

    @property
    def is_shown(self) -> bool:
        """Return whether the interval excludes 1, so that the difference is significant."""
        return self.low > 1 or self.high < 1

    def __str__(self) -> str:
        if not self.is_known or (self.low <= 0 and math.isinf(self.high)):
            return "-"
        if math.isinf(self.value):
            return f"at least {ratio_text(self.low)}"
        if self.value == 0:
            return f"at most {ratio_text(self.high)}"
        return f"{ratio_text(self.value)} [{ratio_text(self.low)}, {ratio_text(self.high)}]"


_UNKNOWN = HittingRatio(math.nan, 0.0, math.inf)


def hitting_ratio(first: HitCount, second: HitCount, confidence: float = 0.95) -> HittingRatio:
    """Return the hitting fraction of `first` divided by that of `second`.

    >>> from types import SimpleNamespace as Count
    >>> directed, undirected = Count(hits=60, tests=200), Count(hits=12, tests=200)
    >>> str(hitting_ratio(directed, undirected))
    '5.0 [2.8, 9.0]'
    """
    if not first.tests or not second.tests or not (first.hits or second.hits):
        return _UNKNOWN
    shares = first.hits / first.tests, second.hits / second.tests
    value = shares[0] / shares[1] if shares[1] else math.inf
    z2 = normal_quantile(confidence) ** 2
    low = _limit(first, second, value, _SMALLEST, z2) if first.hits else 0.0
    high = _limit(first, second, value, _GREATEST, z2) if second.hits else math.inf
    return HittingRatio(value, low, high)


def rate_ratio(first: HitCount, second: HitCount, confidence: float = 0.95) -> HittingRatio:
    """Return the hits per CPU second of `first` divided by those of `second`.

    The interval is right if the times of tests vary about as much as their mean; it is too narrow
    if a few tests take most of the time.

    >>> from types import SimpleNamespace as Count
    >>> dear = Count(hits=60, tests=200, cpu_seconds=4.0)
    >>> str(rate_ratio(dear, Count(hits=30, tests=200, cpu_seconds=2.0)))
    '1.0 [0.65, 1.6]'
    """
    if first.cpu_seconds <= 0 or second.cpu_seconds <= 0:
        return _UNKNOWN
    hitting = hitting_ratio(first, second, confidence)
    if not hitting.is_known:
        return hitting
    cost = (first.cpu_seconds / first.tests) / (second.cpu_seconds / second.tests)
    # Only the sum of the CPU times is known, so their spread is taken to be that of exponential
    # times: the mean time of a test, and the ratio of two means, vary by this much (logarithm).
    spread = normal_quantile(confidence) * math.sqrt(1 / first.tests + 1 / second.tests)
    return HittingRatio(
        hitting.value / cost,
        _widened(hitting.low, hitting.value, spread) / cost,
        _widened(hitting.high, hitting.value, spread) / cost,
    )


def _widened(limit: float, value: float, spread: float) -> float:
    """Move a limit away from the value, to add an independent uncertainty."""
    if limit in (0.0, math.inf):
        return limit
    if value in (0.0, math.inf):
        return limit * math.exp(spread if value == 0.0 else -spread)
    distance = math.hypot(math.log(limit / value), spread)
    return value * math.exp(distance if limit > value else -distance)


def ratio_text(value: float) -> str:
    """Format a ratio with the digits that matter.

    >>> [ratio_text(value) for value in (0.038, 0.64, 5.04, 14.8, 212.4)]
    ['0.038', '0.64', '5.0', '14.8', '212']
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.995 else f"{value:.2g}"


def _limit(first: HitCount, second: HitCount, value: float, end: float, z2: float) -> float:
    """Return the ratio nearest to `end` that the counts do not contradict, by bisection."""
    inside = min(max(value, _SMALLEST), _GREATEST)
    outside = end
    for _ in range(_STEPS):
        if abs(outside / inside - 1) < 1e-10:
            break
        middle = math.sqrt(inside * outside)
        if _score(first, second, middle) <= z2:
            inside = middle
        else:
            outside = middle
    return inside


def _score(first: HitCount, second: HitCount, ratio: float) -> float:
    """Return how far the counts are from the likeliest ones with this ratio (chi squared)."""
    hits, tests = first.hits + second.hits, first.tests + second.tests
    b = ratio * (first.tests + second.hits) + first.hits + second.tests
    # The root of the quadratic in the form that loses no digits.
    root = math.sqrt(max(b * b - 4 * ratio * tests * hits, 0.0))
    share = min(2 * ratio * hits / (b + root), 1.0, ratio)
    return _residual(first, share) + _residual(second, share / ratio)


def _residual(count: HitCount, share: float) -> float:
    away = count.hits - count.tests * share
    variance = count.tests * share * (1 - share)
    if abs(away) < 1e-9 * count.tests:
        return 0.0
    return away * away / variance if variance > 0 else math.inf


# The ratios of many targets in one line: the columns of the paper's tables 3 to 6.


@dataclass(frozen=True)
class RatioSummary:
    """How the ratios of many targets are distributed; an undefined number is NaN."""

    improved: float
    """The share of the targets whose ratio is above 1."""
    count: int
    """The targets that at least one side hit."""
    unbounded: int
    """Of these, the targets that only the first side hit: improved, but in no mean or quartile."""
    neither: int
    """The targets that neither side hit; they are not counted elsewhere."""
    mean: float
    deviation: float
    least: float
    lower_quartile: float
    median: float
    upper_quartile: float
    greatest: float
    p: float
    """The two-sided p-value of Wilcoxon's signed-rank test over the paired numbers."""


def summarise(first: Sequence[float], second: Sequence[float]) -> RatioSummary:
    """Summarise the ratios of paired numbers: hitting fractions or hits per CPU second, by target.

    >>> summary = summarise([0.4, 0.6, 0.1, 0.2], [0.1, 0.2, 0.1, 0.0])
    >>> summary.improved, summary.count, summary.unbounded, round(summary.mean, 2), summary.median
    (0.75, 4, 1, 2.67, 3.0)
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a or b]
    ratios = np.array([a / b for a, b in pairs if b])
    nan = math.nan
    levels = [0, 0.25, 0.5, 0.75, 1]
    least, lower, median, upper, greatest = (
        np.quantile(ratios, levels).round(12).tolist() if len(ratios) else [nan] * 5
    )
    return RatioSummary(
        sum(a > b for a, b in pairs) / len(pairs) if pairs else nan,
        len(pairs),
        len(pairs) - len(ratios),
        len(first) - len(pairs),
        float(ratios.mean()) if len(ratios) else nan,
        float(ratios.std(ddof=1).round(12)) if len(ratios) > 1 else nan,
        least,
        lower,
        median,
        upper,
        greatest,
        wilcoxon_signed_rank([a for a, _ in pairs], [b for _, b in pairs]) if pairs else nan,
    )


# Counting the tests of a campaign.

DIRECTED = "directed"
_WAYS = (DIRECTED, UNDIRECTED, DEFAULT)


@dataclass
class _TargetCounts:
    """The counts of one target, and how varied the tests were that hit it."""

    hits: dict[str, int] = field(default_factory=lambda: {DIRECTED: 0, UNDIRECTED: 0, DEFAULT: 0})
    configurations: set[bytes] = field(default_factory=set)
    ways: set[bytes] = field(default_factory=set)


@dataclass
class FocusCounts:
    """The counts from one pass over the tests of a focused campaign."""

    tests: dict[str, int] = field(default_factory=lambda: {DIRECTED: 0, UNDIRECTED: 0, DEFAULT: 0})
    cpu: dict[str, float] = field(
        default_factory=lambda: {DIRECTED: 0.0, UNDIRECTED: 0.0, DEFAULT: 0.0}
    )
    faults: dict[str, dict[str, int]] = field(default_factory=dict)
    configurations: set[bytes] = field(default_factory=set)
    """The distinct configurations of the directed tests."""
    targets: dict[str, _TargetCounts] = field(default_factory=dict)

    def count(self, hits: dict[str, int], way: str) -> Count:
        """Return the hits of one sort of tests, with the number and CPU time of these tests."""
        return Count(hits.get(way, 0), self.tests[way], self.cpu[way])


def _way_of(origin: str) -> str:
    """Return the sort of a test of a focused campaign: directed, undirected or default."""
    return origin if origin in (UNDIRECTED, DEFAULT) else DIRECTED


def count_hits(store: Store, campaign: int, names: Iterable[str]) -> FocusCounts:
    """Count the hits of the targets in `names` in a campaign's tests; faults are always counted."""
    ids, functions = _ids_of(store, campaign, names)
    counted = FocusCounts(targets={name: _TargetCounts() for name in names})
    for block in store.blocks(campaign):
        _BlockCounter(counted, block).count(ids, functions)
    return counted


class _BlockCounter:
    """Adds a block of tests to the counts."""

    def __init__(self, counted: FocusCounts, block: TrialBlock) -> None:
        self._counted = counted
        self._block = block
        known = block.hits_known
        ways = np.array([_WAYS.index(_way_of(origin)) for origin in block.origins])
        by_origin = ways[block.origin_index]
        self._flags = {way: known & (by_origin == place) for place, way in enumerate(_WAYS)}
        self._directed = np.flatnonzero(self._flags[DIRECTED])
        chosen = block.take(self._directed).configurations()
        self._configurations = dict(zip(self._directed.tolist(), chosen, strict=True))

    def count(self, ids: dict[int, str], functions: dict[int, Ints]) -> None:
        """Count the tests, the faults, and the targets in `ids`."""
        counted, block = self._counted, self._block
        for way, flags in self._flags.items():
            counted.tests[way] += int(flags.sum())
            counted.cpu[way] += int(block.cpu_ns[flags].sum()) / 1e9
        counted.configurations.update(self._configurations.values())
        for place, fault in enumerate(block.faults):
            shows = block.fault_index == place
            shown = counted.faults.setdefault(fault, {}) if self._is_counted(shows) else {}
            for way, flags in self._flags.items():
                hits = int((flags & shows).sum())
                if hits:
                    shown[way] = shown.get(way, 0) + hits
            if f"fault:{fault}" in counted.targets:
                nothing = np.empty(0, np.int64)
                self._note(counted.targets[f"fault:{fault}"], shows, nothing)
        for target in np.intersect1d(block.hits.targets, [*ids]).tolist():
            self._note(counted.targets[ids[target]], self._hit(target), functions[target])

    def _is_counted(self, shows: Bools) -> bool:
        return any(bool((flags & shows).any()) for flags in self._flags.values())

    def _hit(self, target: int) -> Bools:
        """Return which tests of the block have hit a target that some of them have."""
        hits = self._block.hits
        number = hits.classes[np.searchsorted(hits.targets, target)]
        flags = np.zeros(self._block.size, bool)
        flags[hits.members(number)] = True
        return flags

    def _note(self, seen: _TargetCounts, hit: Bools, function: Ints) -> None:
        """Count tests that have hit a target; `function` has the lines around it."""
        for way, flags in self._flags.items():
            seen.hits[way] += int((flags & hit).sum())
        directed = self._directed[hit[self._directed]]
        if not len(directed):
            return
        seen.configurations.update(map(self._configurations.__getitem__, directed.tolist()))
        lines = np.intersect1d(self._block.hits.targets, function)
        if not len(lines):
            seen.ways.add(b"")
            return
        reached = np.array([self._hit(line)[directed] for line in lines.tolist()])
        for way in np.unique(reached, axis=1).T:
            seen.ways.add(lines[way].tobytes())


def _ids_of(
    store: Store, campaign: int, names: Iterable[str]
) -> tuple[dict[int, str], dict[int, Ints]]:
    """Return the store's ids of the named targets, and for each the lines of its function."""
    wanted = set(names)
    targets = store.targets(store.hit_summary(campaign).targets.tolist())
    lines_by_function: dict[tuple[str, str], list[int]] = {}
    for id, target in targets.items():
        if target.kind == "line":
            lines_by_function.setdefault((target.source, target.function), []).append(id)
    ids = {id: str(target) for id, target in targets.items() if str(target) in wanted}
    functions = {
        id: np.array(
            lines_by_function.get((targets[id].source, targets[id].function), ()), np.int64
        )
        for id in ids
    }
    return ids, functions


def split_unwatched(
    store: Store, campaign: int, planned: Sequence[PlannedTarget]
) -> tuple[list[PlannedTarget], list[str]]:
    """Split targets into those the campaign could see, and one line of text per file of others."""
    watched = {source.path for source in store.sources(campaign)}
    native = _native_lines(store, campaign, planned)
    seen: dict[str, PlannedTarget] = {}
    unseen = dict[tuple[str, str], int]()
    for target in planned:
        shown = shown_path(target.place) if target.place else ""
        left_out = target.cause in ("at import", "no code")
        if left_out or (target.place and shown not in watched):
            said = left_out or target.cause == "unseen"
            reason = target.dropped if said else "no test imported it"
            unseen[shown, reason] = unseen.get((shown, reason), 0) + 1
            continue
        lines = native.get(shown, frozenset())
        if target.line and lines and target.line not in lines:
            text = read_statements(Path(target.place)).texts
            head = continued_statement(text, target.line, lines)
            if not head:
                unseen[shown, NO_CODE] = unseen.get((shown, NO_CODE), 0) + 1
                continue
            mapped = target.mapped or f"line {target.line} runs with it"
            target = replace(target, name=f"line:{shown}:{head}", line=head, mapped=mapped)
        seen.setdefault(target.name, target)
    return [*seen.values()], [
        f"{file}: {count} line{'s' * (count != 1)}: {reason}"
        for (file, reason), count in unseen.items()
    ]


def _native_lines(
    store: Store, campaign: int, planned: Sequence[PlannedTarget]
) -> dict[str, frozenset[int]]:
    """Return the lines that have code, of the native files among the targets."""
    files = {shown_path(t.place) for t in planned if t.place and is_c(t.place)}
    if not files:
        return {}
    lines: dict[str, set[int]] = {}
    for target in store.watched_targets(campaign).values():
        if target.kind == "line" and target.file in files:
            lines.setdefault(target.file, set()).add(target.line)
    return {file: frozenset(found) for file, found in lines.items()}


def focused_targets(
    planned: Sequence[PlannedTarget],
    counted: FocusCounts,
    history: History,
    undirected: str,
    pooled: bool,
) -> tuple[FocusedTarget, ...]:
    """Return the planned targets with their counts.

    `pooled` says whether earlier undirected and default tests of the same code count as well. They
    must not count if the targets were chosen by them: the rarest of many targets are partly rare by
    luck.
    """
    return tuple(_focused(target, counted, history, undirected, pooled) for target in planned)


def _focused(
    planned: PlannedTarget,
    counted: FocusCounts,
    history: History,
    undirected: str,
    pooled: bool,
) -> FocusedTarget:
    seen = counted.targets[planned.name]
    control = counted.count(seen.hits, UNDIRECTED)
    default = counted.count(seen.hits, DEFAULT)
    if pooled:
        control = _sum(control, earlier_count(history, planned, undirected))
        default = _sum(default, earlier_default_count(history, planned))
    return FocusedTarget(
        target=planned.name,
        file=shown_path(planned.place) if planned.place else "",
        line=planned.line,
        function=planned.function,
        proxy=planned.proxy,
        mapped=planned.mapped,
        dropped=planned.dropped,
        triggers=planned.triggers,
        suppressors=planned.suppressors,
        directed=counted.count(seen.hits, DIRECTED),
        undirected=control,
        default=default,
        configurations=len(seen.configurations),
        ways=len(seen.ways),
    )


def focused_faults(
    store: Store,
    campaign: int,
    faults: Sequence[FaultRecord],
    counted: FocusCounts,
    verdicts: Mapping[str, BaseVerdict],
) -> tuple[FocusedFault, ...]:
    """Return the faults with their counts and the verdict of the base version."""
    watched = store.sources(campaign)
    result = []
    for fault in faults:
        shown = counted.faults.get(fault.id, {})
        verdict = verdicts.get(fault.id)
        result.append(
            FocusedFault(
                fault,
                counted.count(shown, DIRECTED),
                counted.count(shown, UNDIRECTED),
                verdict.status if verdict else "",
                verdict.why if verdict else "",
                place_of_fault(fault.details, watched),
                f"swarmtest replay {fault.id}",
            )
        )
    return tuple(result)


def _sum(first: Count, second: Count) -> Count:
    return Count(
        first.hits + second.hits, first.tests + second.tests, first.cpu_seconds + second.cpu_seconds
    )
