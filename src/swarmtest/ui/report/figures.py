"""Figures as data, independent of how they are drawn: pages and papers draw the same figures.

Every figure has a name for its files, a title, a caption that explains it, and its numbers as CSV.
`svg_figures` draws them for pages, `matplotlib_drawing` for papers.
The second part computes the figures of a study.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.discovery import Discovery
from swarmtest.analysis.role_cells import FIXED, INSUFFICIENT, SUPPRESSOR, TRIGGER
from swarmtest.analysis.trial_columns import Evidence
from swarmtest.core.formatting import counted, csv_row, format_percent, words_for
from swarmtest.core.targets import Target
from swarmtest.roles.roles import FeatureRole, FeatureShare, RoleTable, feature_shares
from swarmtest.roles.study import Study


class Figure(Protocol):
    """A figure that can be drawn."""

    @property
    def name(self) -> str:
        """The name of its files, without an ending."""

    @property
    def title(self) -> str:
        """The title, in one line."""

    @property
    def caption(self) -> str:
        """What a reader has to know to read the figure."""

    def to_csv(self) -> str:
        """Return the numbers of the figure, with a header."""


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV.

    >>> csv_text(["feature", "share"], [["push", 0.5]])
    'feature,share\\npush,0.5\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(csv_row(head))
    writer.writerows(map(csv_row, rows))
    return text.getvalue()


@dataclass(frozen=True)
class IntervalPlot:
    """A plot of how many of a target's tests contain each feature (the paper's figures 3, 4, 6)."""

    name: str
    title: str
    roles: tuple[FeatureRole, ...]
    """The features, from the top of the plot to its bottom."""
    confidence: float

    @property
    def hits(self) -> str:
        """The number of hits, as text; a range if some features were left to chance more often.

        >>> IntervalPlot("", "", (), 0.95).hits
        '0'
        """
        counts = sorted(role.hits for role in self.roles if role.role != FIXED) or [0]
        ends = f"{counts[0]:,.0f}", f"{counts[-1]:,.0f}"
        return ends[0] if ends[0] == ends[1] else " to ".join(ends)

    @property
    def caption(self) -> str:
        """What the marks mean."""
        return (
            f"{format_percent(self.confidence, 2)} Wilson intervals: of the tests that show it and "
            f"left a feature to chance ({self.hits}), how many contain it. Dashed: what chance "
            "alone would give. Filled marks survive the correction for many comparisons "
            "(Benjamini-Hochberg)."
        )

    def mark(self, role: FeatureRole) -> str:
        """Return which of `MARKS` a feature gets."""
        is_sure = role.role not in (TRIGGER, SUPPRESSOR) or role.is_discovery(1 - self.confidence)
        return role.role if is_sure else f"{role.role} before correction"

    def verdict(self, role: FeatureRole) -> str:
        """Return a feature's role in words, with the number of hits that are missing."""
        if role.role == INSUFFICIENT:
            return f"{INSUFFICIENT} ({role.hits:g} hits, {role.needed} needed)"
        return self.mark(role)

    def to_csv(self) -> str:
        """Return a row per feature."""
        head = ("feature", "role", "discovery", "share", "low", "high", "base", "hits")
        rate = 1 - self.confidence
        rows = [
            (
                *(
                    role.feature,
                    role.role,
                    int(role.is_discovery(rate)),
                    role.share,
                    role.low,
                    role.high,
                    role.base,
                ),
                *(role.hits, role.needed, role.p_value, role.adjusted),
            )
            for role in self.roles
        ]
        return csv_text((*head, "hits_needed", "p", "q"), rows)


@dataclass(frozen=True)
class RoleShares:
    """The share of targets of a kind to which each feature matters (the paper's tables 2 and 6)."""

    name: str
    title: str
    shares: tuple[FeatureShare, ...]
    targets: int

    @property
    def caption(self) -> str:
        """What the shares are shares of."""
        return (
            f"Share of the targets with enough hits ({self.targets:,}) that a feature suppresses "
            "(left) or triggers (right), after correction for many comparisons."
        )

    @property
    def is_empty(self) -> bool:
        """Whether no feature has a role, so that there is no bar to draw."""
        return not any(share.trigger or share.suppressor for share in self.shares)

    def to_csv(self) -> str:
        """Return a row per feature."""
        rows = [(s.feature, s.trigger, s.suppressor, s.targets) for s in self.shares]
        return csv_text(("feature", "trigger_share", "suppressor_share", "targets"), rows)


@dataclass(frozen=True)
class ExpectedPoint:
    """What would probably be found after more effort, with its interval."""

    effort: float
    found: float
    low: float
    high: float


@dataclass(frozen=True)
class PlottedCurve:
    """What one campaign had found after each effort: a staircase."""

    campaign: int
    strategy: str
    effort: tuple[float, ...]
    found: tuple[int, ...]
    """What had been found at each effort; the last point is the end of the campaign."""
    ahead: ExpectedPoint | None = None
    """Where the curve is expected to go; shown on the pages of running campaigns."""


@dataclass(frozen=True)
class DiscoveryPlot:
    """Discovery curves of several campaigns."""

    name: str
    title: str
    unit: str
    """The unit of the effort: ``tests`` or ``CPU seconds``."""
    found: str
    """What was found, as a plural: ``faults``."""
    curves: tuple[PlottedCurve, ...]

    @property
    def caption(self) -> str:
        """How to read the axes."""
        return (
            f"Distinct {self.found} found, by number of {self.unit}; one line per campaign, "
            "logarithmic scale."
        )

    @property
    def is_flat(self) -> bool:
        """Whether no campaign found more than one: that is said faster than drawn."""
        return all(curve.found[-1] < 2 for curve in self.curves)

    @property
    def in_words(self) -> str:
        """What was found and when, for a plot that is not drawn."""
        firsts = [
            f"campaign {curve.campaign} after {counted(int(curve.effort[0]), 'test')}"
            for curve in self.curves
            if curve.found[-1] and self.unit == "tests"
        ]
        head = f"{self.found.capitalize()}: no campaign found more than one"
        more = f" and {len(firsts) - 6} more" if len(firsts) > 6 else ""
        return f"{head}: {', '.join(firsts[:6])}{more}." if firsts else f"{head}."

    @property
    def start(self) -> float:
        """Where the axis of efforts begins: above 0, because it is logarithmic."""
        if self.unit == "tests":
            return 1.0
        efforts = [effort for curve in self.curves for effort in curve.effort if effort > 0]
        return min(efforts, default=1e-9)

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies in the order of the campaigns; each is drawn in its own style."""
        return tuple(dict.fromkeys(curve.strategy for curve in self.curves))

    def to_csv(self) -> str:
        """Return a row per step of a curve."""
        rows = [
            (curve.campaign, curve.strategy, effort, found)
            for curve in self.curves
            for effort, found in zip(curve.effort, curve.found, strict=True)
        ]
        return csv_text(("campaign", "strategy", self.unit.replace(" ", "_"), "found"), rows)


@dataclass(frozen=True)
class HeatRow:
    """One configuration."""

    label: str
    """``1#17``: campaign and trial."""
    weights: tuple[float, ...]
    tests: int = 1
    """The number of tests in the group with this configuration; the label names the first."""


@dataclass(frozen=True)
class HeatGroup:
    """Configurations of tests that ended in the same way."""

    label: str
    tests: int
    """The number of tests in the group, of which `rows` is a sample."""
    enabled: tuple[float, ...]
    """The share of all these tests in which each feature was enabled."""
    rows: tuple[HeatRow, ...]


@dataclass(frozen=True)
class HeatMap:
    """Configurations by features."""

    name: str
    title: str
    features: tuple[str, ...]
    groups: tuple[HeatGroup, ...]
    sampling: str
    """Which configurations are shown."""

    @property
    def caption(self) -> str:
        """How to read a cell."""
        return (
            "One row per configuration, one column per feature: the larger and darker the square, "
            "the larger the weight; a dot means left out. The row with bars shows the share of all "
            f"tests of the group in which the feature was enabled. {self.sampling}"
        )

    def to_csv(self) -> str:
        """Return a row per configuration."""
        rows = [
            (group.label, row.label, row.tests, *row.weights)
            for group in self.groups
            for row in group.rows
        ]
        return csv_text(("group", "first_test", "tests", *self.features), rows)


# The figures of a study.

_MAX_POINTS = 400
"""Curves with more steps are thinned, which makes no visible difference."""
_FAULTS_IN_HEAT_MAP = 8
_ROWS_PER_FAULT = 8
_PASSING_ROWS = 16
_FREQUENT = 0.1
"""A configuration that occurs in more than this share of a group is always shown."""


def interval_plot(study: Study, target: Target) -> IntervalPlot:
    """Return the intervals of one target, with the features most frequent in its tests first."""
    roles = sorted(study.roles(target), key=_plot_order)
    title = target.detail or target.name
    return IntervalPlot(
        f"intervals-{target.kind}-{_file_name(target.name)}",
        title,
        tuple(roles),
        study.confidence,
    )


def _plot_order(role: FeatureRole) -> tuple[bool, float, str]:
    return role.role == FIXED, -role.share, role.feature


def _file_name(text: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in text)[:60]


def role_shares(kind: str, table: RoleTable) -> RoleShares:
    """Return how often each feature is a trigger or a suppressor of a kind of target."""
    shares = sorted(
        feature_shares(table), key=lambda s: (s.suppressor - s.trigger, -s.trigger, s.feature)
    )
    return RoleShares(
        f"roles-{_file_name(kind)}",
        f"Triggers and suppressors of {counted(len(table.targets), kind)}",
        tuple(shares),
        len(table.targets),
    )


def discovery_curves(runs: Sequence[Discovery]) -> list[DiscoveryPlot]:
    """Return curves of what was found by tests and by CPU time, in turn, for each kind."""
    kinds = dict.fromkeys(kind for run in runs for kind in run.kinds())
    return [
        _curves(runs, kind, unit)
        for kind in sorted(kinds, key=lambda kind: (kind != "fault", kind))
        for unit in ("tests", "CPU seconds")
    ]


def _curves(runs: Sequence[Discovery], kind: str, unit: str) -> DiscoveryPlot:
    by = "tests" if unit == "tests" else "cpu-time"
    return DiscoveryPlot(
        f"discovery-{_file_name(kind)}-by-{by}",
        f"{words_for(kind)[1].capitalize()} by {by.replace('-', ' ').replace('cpu', 'CPU')}",
        unit,
        words_for(kind)[1],
        tuple(_curve(run, kind, unit) for run in runs if run.tests),
    )


def _curve(run: Discovery, kind: str, unit: str) -> PlottedCurve:
    found = run.curve(kind)
    steps = np.flatnonzero(np.diff(found, prepend=0))
    if len(steps) > _MAX_POINTS:
        steps = steps[np.unique(np.geomspace(1, len(steps), _MAX_POINTS).astype(int)) - 1]
    indices = np.unique(np.concatenate([steps, [run.tests - 1]]))
    effort = indices + 1.0 if unit == "tests" else run.cpu_seconds[indices]
    return PlottedCurve(
        run.campaign, run.strategy, tuple(effort.tolist()), tuple(found[indices].tolist())
    )


def configurations(study: Study) -> HeatMap:
    """Return the configurations of failing tests, by fault, and of passing ones."""
    evidence = study.evidence
    counts = np.bincount(evidence.fault[evidence.fault >= 0], minlength=len(study.faults))
    frequent = np.argsort(-counts, kind="stable")[:_FAULTS_IN_HEAT_MAP]
    groups = [
        _group(
            evidence,
            f"fault {evidence.fault_ids[number]}",
            np.flatnonzero(evidence.fault == number),
            _ROWS_PER_FAULT,
        )
        for number in frequent.tolist()
    ]
    passing = np.flatnonzero(evidence.fault < 0)
    if len(passing):
        groups.append(_group(evidence, "no fault", passing, _PASSING_ROWS))
    unlisted = len(study.faults) - len(frequent)
    sampling = (
        f"At most {_ROWS_PER_FAULT} distinct configurations of each fault and {_PASSING_ROWS} of "
        "tests that passed: the frequent ones, and others spread evenly over the trials; sorted "
        "by their weights."
    )
    if unlisted:
        sampling += f" The {unlisted} rarest faults are not shown."
    return HeatMap("configurations", "Configurations", evidence.features, tuple(groups), sampling)


def _group(evidence: Evidence, label: str, tests: npt.NDArray[np.intp], most: int) -> HeatGroup:
    _, first, counts = np.unique(
        evidence.configurations(tests), return_index=True, return_counts=True
    )
    order = np.argsort(first)
    first, counts = tests[first[order]], counts[order]
    chosen = _sample(counts, most).tolist()
    chosen.sort(key=lambda i: (-evidence.weights(first[i])).tolist())
    rows = [_row(evidence, int(first[i]), int(counts[i])) for i in chosen]
    enabled = [float(evidence.enabled[tests, i].mean()) for i in range(len(evidence.features))]
    return HeatGroup(label, len(tests), tuple(enabled), tuple(rows))


def _sample(counts: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """Return the indices of the frequent configurations, and of others spread evenly."""
    frequent = np.flatnonzero(counts > _FREQUENT * counts.sum())[:most]
    rest = np.setdiff1d(np.arange(len(counts)), frequent)
    room = min(most - len(frequent), len(rest))
    spread = rest[np.unique(np.linspace(0, len(rest) - 1, room).astype(int))] if room else rest[:0]
    return np.concatenate([frequent, spread])


def _row(evidence: Evidence, test: int, count: int) -> HeatRow:
    campaign = evidence.campaigns[evidence.campaign[test]]
    weights = tuple(round(float(weight), 4) for weight in evidence.weights(test))
    return HeatRow(f"{campaign}#{evidence.trial[test]}", weights, count)
