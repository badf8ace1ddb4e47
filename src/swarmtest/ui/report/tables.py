"""Tables of the report and the dashboard: roles, amounts, comparisons and growth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swarmtest.analysis.role_cells import FIXED, INSUFFICIENT, SUPPRESSOR, TRIGGER
from swarmtest.compare.comparison import Comparison
from swarmtest.compare.detection import ANY, Detection, Survival
from swarmtest.compare.equal_effort import Cut, Difference, FoundTargets
from swarmtest.core.formatting import (
    amount,
    duration,
    format_percent,
    number,
    p_value,
    percent_interval,
    plural,
    with_interval,
)
from swarmtest.growth.growth import Growth, KindGrowth
from swarmtest.growth.verdict import interval_text
from swarmtest.roles.amounts import Amount
from swarmtest.roles.effects import FeatureEffect, HittingRate
from swarmtest.roles.roles import MARKS
from swarmtest.ui.report.figures import IntervalPlot

# Cells and tables.


@dataclass(frozen=True)
class HtmlCell:
    """A cell of a table.

    >>> HtmlCell("12%", 0.12).text
    '12%'
    """

    text: str
    value: float | None = None
    """The value that the column is sorted by; None sorts by the text."""
    cls: str = ""
    """CSS classes: a role, or ``name``."""
    title: str = ""
    link: str = ""
    note: str = ""
    """A line below, in small letters."""


@dataclass(frozen=True)
class HtmlTable:
    """A table that a reader can sort."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[HtmlCell, ...], ...]
    note: str = ""

    def is_number(self, column: int) -> bool:
        """Return whether a column holds numbers, which are aligned to the right."""
        return any(row[column].value is not None for row in self.rows)


def number_cell(value: float, shown: str = "", title: str = "") -> HtmlCell:
    """Return a cell with a number, shown with thousands separators by default."""
    return HtmlCell(shown or f"{value:,.0f}", value, title=title)


def percent_cell(value: float, title: str = "") -> HtmlCell:
    """Return a cell with a share, shown as a percentage."""
    return HtmlCell(format_percent(value, 1), value, title=title)


# Roles and amounts.


def role_table(plot: IntervalPlot, effects: Sequence[FeatureEffect]) -> HtmlTable:
    """Return the numbers of an interval plot, and each feature's effect on the hitting fraction."""
    by_name = {effect.feature: effect for effect in effects}
    rows = []
    for role in plot.roles:
        kind = plot.mark(role)
        effect = by_name[role.feature]
        is_known = role.needed > 0
        rows.append(
            (
                HtmlCell(role.feature, cls="name"),
                HtmlCell(f"{MARKS[kind]} {plot.verdict(role)}", cls=css_class(kind)),
                percent_cell(role.share) if is_known else HtmlCell("-", -1.0),
                HtmlCell(f"{percent_interval(role.low, role.high, 1)}", role.low)
                if is_known
                else HtmlCell("-", -1.0),
                percent_cell(role.base) if is_known else HtmlCell("-", -1.0),
                HtmlCell(p_value(role.adjusted) if is_known else "-", role.adjusted),
                _rate(effect.with_it),
                _rate(effect.without_it),
            )
        )
    head = (
        "feature",
        "role",
        "in hits",
        f"{format_percent(plot.confidence, 2)} interval",
        "by chance",
        "q",
        "hits with it",
        "hits without",
    )
    note = (
        "In hits: the share of failing tests that contain the feature. q: p-value, corrected for "
        "all features and faults. Hits with it, hits without: the share of tests that show the "
        "fault, with the feature enabled or not, among tests in which it was left to chance."
    )
    return HtmlTable("Roles: does enabling a feature matter?", head, tuple(rows), note)


def _rate(rate: HittingRate | None) -> HtmlCell:
    if rate is None:
        return HtmlCell("no test", -1.0)
    return percent_cell(rate.value, percent_interval(rate.low, rate.high, 1))


def css_class(kind: str) -> str:
    """Return the CSS classes of a role.

    >>> css_class("trigger before correction")
    'trigger hollow'
    """
    return kind.replace(" before correction", " hollow").replace("insufficient data", "unsure")


def amount_table(amounts: Sequence[Amount], rate: float) -> HtmlTable:
    """Return a table of whether more or less of a feature matters, where it is enabled."""
    return HtmlTable(
        "Amounts: where a feature is enabled anyway, does it matter how much of it there is?",
        ("feature", "role", "of steps in hits", "in others", "a tenth more of it", "q"),
        tuple(_amount_row(entry, rate) for entry in amounts),
        "A tenth more of it: by how many percentage points the share of failing tests rises if "
        "a tenth more of the steps is this feature, with its interval, among tests that agree on "
        "every feature that has a role. q: p-value, corrected for the number of features.",
    )


def _amount_row(entry: Amount, rate: float) -> tuple[HtmlCell, ...]:
    words = {TRIGGER: "more of it, more hits", SUPPRESSOR: "more of it, fewer hits"}
    is_sure = entry.role not in words or entry.is_discovery(rate)
    kind = entry.role if is_sure else f"{entry.role} before correction"
    shown = (
        f"{MARKS[kind]} {words.get(entry.role, entry.role)}{'' if is_sure else ' (uncorrected)'}"
    )
    if entry.role == INSUFFICIENT:
        shown += f" ({entry.hits:,} hits and {entry.others:,} others are comparable)"
    is_known = entry.role not in (INSUFFICIENT, FIXED)
    interval = f"{100 * entry.effect:+.1f} ({100 * entry.low:+.1f} to {100 * entry.high:+.1f})"
    return (
        HtmlCell(entry.feature, cls="name"),
        HtmlCell(shown, cls=css_class(kind)),
        percent_cell(entry.share_in_hits),
        percent_cell(entry.share_in_others),
        HtmlCell(interval if is_known else "-", entry.effect),
        HtmlCell(p_value(entry.adjusted) if is_known else "-", entry.adjusted),
    )


# Comparisons and growth.

_MAX_FAULTS = 40


def comparison_tables(comparison: Comparison) -> list[HtmlTable]:
    """Return the tables of a comparison: what was found with equal effort, and how soon."""
    cuts = [_cut(cut, comparison) for cut in (comparison.equal_tests, comparison.equal_cpu)]
    return [*cuts, *([_detections(comparison)] if comparison.detections else [])]


def _cut(cut: Cut, comparison: Comparison) -> HtmlTable:
    unit = "tests" if cut.unit == "tests" else "CPU time"
    differences = {
        (difference.strategy, difference.kind): difference for difference in cut.differences
    }
    rows = [
        _reach(reach, differences.get((reach.strategy, reach.kind)), 1 - comparison.confidence)
        for reach in cut.reaches
    ]
    together = ", ".join(f"{kind} {count:,}" for kind, count in cut.together.items())
    efforts = "; ".join(
        f"{effort.strategy}: {plural(effort.runs, 'run')}, each {number(effort.tests)} "
        f"{'test' if effort.tests == 1 else 'tests'} and {duration(effort.cpu_seconds)} of CPU"
        for effort in cut.efforts
    )
    return HtmlTable(
        f"At equal {unit}: the first {amount(cut.limit, cut.unit)} of each run",
        (
            "kind",
            "strategy",
            "per run",
            "in any run",
            "only here",
            "in all",
            f"against {comparison.baseline}",
            "A12",
            "p",
            "q",
            "result",
        ),
        tuple(rows),
        f"All strategies together: {together}. {efforts}.",
    )


def _reach(
    reach: FoundTargets, difference: Difference | None, allowed: float
) -> tuple[HtmlCell, ...]:
    cells = (
        HtmlCell(reach.kind),
        HtmlCell(reach.strategy, cls="name"),
        HtmlCell(with_interval(reach.per_run), reach.per_run.value),
        number_cell(reach.in_any_run),
        number_cell(reach.only_here),
        number_cell(reach.everywhere),
    )
    if difference is None:
        return (
            *cells,
            HtmlCell("baseline", 0.0),
            *(HtmlCell("-", 2.0) for _ in range(3)),
            HtmlCell("-"),
        )
    effect = difference.effect
    return (
        *cells,
        HtmlCell(with_interval(difference.more, sign="+"), difference.more.value),
        HtmlCell(f"{effect.a12:.2f} {effect.word}", effect.a12) if effect else HtmlCell("-", 2.0),
        *(HtmlCell(p_value(p), 2.0 if p is None else p) for p in (difference.p, difference.q)),
        HtmlCell(_result(difference, allowed)),
    )


def _result(difference: Difference, allowed: float) -> str:
    if difference.q is None:
        return "too few runs"
    if difference.q > allowed:
        return "no difference shown"
    return "more" if difference.more.value > 0 else "fewer"


def _detections(comparison: Comparison) -> HtmlTable:
    signatures = {fault.id: fault.signature for fault in comparison.faults}
    shown = {ANY, *list(signatures)[:_MAX_FAULTS]}
    rows = [
        (
            HtmlCell(
                detection.fault,
                cls="name",
                title=signatures.get(detection.fault, "the first of all"),
            ),
            HtmlCell(detection.strategy, cls="name"),
            HtmlCell(f"{detection.tests.survival.found} of {detection.tests.survival.runs}"),
            _median(detection.tests.survival, "tests"),
            HtmlCell(
                f"{detection.cpu_seconds.survival.found} of {detection.cpu_seconds.survival.runs}"
            ),
            _median(detection.cpu_seconds.survival, "cpu_seconds"),
            number_cell(detection.hits, number(detection.hits)),
            *(HtmlCell(p_value(p), 2.0 if p is None else p) for p in _p_values(detection)),
        )
        for detection in comparison.detections
        if detection.fault in shown
    ]
    unlisted = len(signatures) - _MAX_FAULTS
    within = amount(comparison.equal_cpu.limit, "cpu_seconds")
    note = (
        "A run that never found it counts as waiting longer (Kaplan-Meier, log-rank). CPU time: "
        f"only the first {within} of each run, because the shortest run has no more."
    )
    if unlisted > 0:
        note += f" {unlisted} rarer faults are not shown."
    medians = ("found in", "median tests", f"within {within} of CPU", "median CPU time")
    head = ("fault", "strategy", *medians, "hits per run", "p (tests)", "q", "p (CPU)", "q")
    return HtmlTable("To the first detection", head, tuple(rows), note)


def _p_values(detection: Detection) -> tuple[float | None, ...]:
    return detection.tests.p, detection.tests.q, detection.cpu_seconds.p, detection.cpu_seconds.q


def _median(survival: Survival, unit: str) -> HtmlCell:
    if survival.median is None:
        return HtmlCell(f"over {amount(survival.longest, unit)}", 1e300)
    return HtmlCell(amount(survival.median, unit), survival.median)


def growth_table(growths: Sequence[Growth]) -> HtmlTable:
    """Return a row per strategy and kind: what was found, and what as many tests would add."""
    rows = [
        (HtmlCell(entry.strategy, cls="name"), number_cell(entry.tests), *_growth_row(kind))
        for entry in growths
        for kind in entry.kinds
    ]
    head = ("strategy", "tests", "kind", "found", "by 1 test", "by 2 tests", "in as many more")
    return HtmlTable(
        "Growth",
        (*head, "unseen, at least"),
        tuple(rows),
        "By 1 test: targets that exactly one test reached. In as many more: what the same number "
        "of further tests would add (Good-Turing), with its interval. Unseen: the lower "
        "end of Chao2's interval.",
    )


def _growth_row(kind: KindGrowth) -> tuple[HtmlCell, ...]:
    seen = kind.seen
    reached = f"{seen.found:,}"
    if kind.unreached is not None:
        reached += f" of {seen.found + kind.unreached:,}"
    return (
        HtmlCell(kind.kind),
        HtmlCell(reached, seen.found),
        number_cell(seen.once),
        number_cell(seen.twice),
        HtmlCell(
            f"{kind.new.value:.3g}" + (f" ({interval_text(kind.new)})" if kind.new.high else ""),
            kind.new.value,
        ),
        number_cell(kind.least_unseen),
    )
