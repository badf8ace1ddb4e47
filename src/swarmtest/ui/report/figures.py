"""Figures as data, independent of how they are drawn: pages and papers draw the same figures.

Every figure has a name for its files, a title, a caption that explains it, and its numbers as CSV.
`svg_figures` draws them for pages, `matplotlib_drawing` for papers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from swarmtest.analysis.cells import FIXED, INSUFFICIENT, SUPPRESSOR, TRIGGER
from swarmtest.core.formatting import format_percent
from swarmtest.roles.roles import FeatureRole, FeatureShare


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
    writer.writerow(head)
    writer.writerows(rows)
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
class DiscoveryCurve:
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
    curves: tuple[DiscoveryCurve, ...]

    @property
    def caption(self) -> str:
        """How to read the axes."""
        return (
            f"Distinct {self.found} found, by number of {self.unit}; one line per campaign, "
            "logarithmic scale."
        )

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
