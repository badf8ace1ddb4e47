"""Comparisons and growth as tables of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swarmtest.analysis.cells import FIXED, INSUFFICIENT, SUPPRESSOR, TRIGGER
from swarmtest.compare.comparison import Comparison
from swarmtest.compare.detection import ANY, Detection, Survival
from swarmtest.compare.equal_effort import Cut, Difference, Reach
from swarmtest.growth.growth import Growth, KindGrowth
from swarmtest.growth.verdict import interval_text
from swarmtest.roles.amounts import Amount
from swarmtest.roles.roles import MARKS, Effect, Rate
from swarmtest.ui.report.figures import IntervalPlot
from swarmtest.ui.terminal.tables import plural
from swarmtest.ui.terminal.text import amount, duration, number, p_value, with_interval

# -------------------------------------------------------------------------------------------------
# Tables of a page: what is in a cell, and by what it is sorted.


@dataclass(frozen=True)
class Cell:
    """One cell.

    >>> Cell("12%", 0.12).text
    '12%'
    """

    text: str
    value: float | None = None
    """By which the column is sorted; by its text if there is none."""
    cls: str = ""
    """How it looks: a role, ``name``."""
    title: str = ""
    link: str = ""


@dataclass(frozen=True)
class Table:
    """A table that a reader can sort."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def is_number(self, column: int) -> bool:
        """Whether a column holds numbers, which stand to the right."""
        return any(row[column].value is not None for row in self.rows)


def number_cell(value: float, shown: str = "", title: str = "") -> Cell:
    """A number; as text with thousands, if nothing else is said."""
    return Cell(shown or f"{value:,.0f}", value, title=title)


def percent_cell(value: float, title: str = "") -> Cell:
    """A share."""
    return Cell(percent(value), value, title=title)


def percent(value: float) -> str:
    """A share with the digits that matter.

    >>> percent(0.5), percent(0.00123), percent(0), percent(1)
    ('50%', '0.12%', '0%', '100%')
    """
    shown = f"{100 * value:.1f}" if abs(value) >= 0.01 else f"{100 * value:.2g}"
    return f"{shown.removesuffix('.0')}%"


def role_table(plot: IntervalPlot, effects: Sequence[Effect]) -> Table:
    """The numbers behind an interval plot, and what each feature does to the hitting fraction."""
    by_name = {effect.feature: effect for effect in effects}
    rows = []
    for role in plot.roles:
        kind = plot.mark(role)
        effect = by_name[role.feature]
        told = role.needed > 0
        rows.append(
            (
                Cell(role.feature, cls="name"),
                Cell(f"{MARKS[kind]} {plot.verdict(role)}", cls=css_class(kind)),
                percent_cell(role.share) if told else Cell("-", -1.0),
                Cell(f"{percent(role.low)} to {percent(role.high)}", role.low)
                if told
                else Cell("-", -1.0),
                percent_cell(role.base) if told else Cell("-", -1.0),
                Cell(p_value(role.adjusted) if told else "-", role.adjusted),
                _rate(effect.with_it),
                _rate(effect.without_it),
            )
        )
    head = (
        "feature",
        "role",
        "in hits",
        f"{plot.confidence * 100:g}% interval",
        "by chance",
        "q",
        "hits with it",
        "hits without",
    )
    note = (
        "In hits: of the tests that show it, how many contain the feature. q: p-value after "
        "correction for all features and faults. Hits with it, without it: the share of tests "
        "with the feature enabled, or not, that show the fault."
    )
    return Table("Roles: does enabling a feature matter?", head, tuple(rows), note)


def _rate(rate: Rate | None) -> Cell:
    if rate is None:
        return Cell("no test", -1.0)
    return percent_cell(rate.value, f"{percent(rate.low)} to {percent(rate.high)}")


def css_class(kind: str) -> str:
    """How a role looks, as a class of the page.

    >>> css_class("trigger before correction")
    'trigger hollow'
    """
    return kind.replace(" before correction", " hollow").replace("insufficient data", "unsure")


def amount_table(found: Sequence[Amount], rate: float) -> Table:
    """Whether more or less of a feature matters, where it is enabled."""
    return Table(
        "Amounts: where a feature is enabled anyway, does it matter how much of it there is?",
        ("feature", "role", "of steps in hits", "in others", "a tenth more of it", "q"),
        tuple(_amount_row(one, rate) for one in found),
        "A tenth more of it: by how many percentage points the hitting fraction rises when a tenth "
        "of the steps more is this feature, with its interval, among tests that agree on every "
        "feature that has a role. q: p-value after correction for the number of features.",
    )


def _amount_row(one: Amount, rate: float) -> tuple[Cell, ...]:
    words = {TRIGGER: "more of it, more hits", SUPPRESSOR: "more of it, fewer hits"}
    sure = one.role not in words or one.is_discovery(rate)
    kind = one.role if sure else f"{one.role} before correction"
    shown = f"{MARKS[kind]} {words.get(one.role, one.role)}{'' if sure else ' (uncorrected)'}"
    if one.role == INSUFFICIENT:
        shown += f" ({one.hits:,} hits and {one.others:,} others are alike)"
    told = one.role not in (INSUFFICIENT, FIXED)
    interval = f"{100 * one.effect:+.1f} ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
    return (
        Cell(one.feature, cls="name"),
        Cell(shown, cls=css_class(kind)),
        percent_cell(one.share_in_hits),
        percent_cell(one.share_in_others),
        Cell(interval if told else "-", one.effect),
        Cell(p_value(one.adjusted) if told else "-", one.adjusted),
    )


# -------------------------------------------------------------------------------------------------

_MOST_FAULTS = 40


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Everything: what was found with equal effort, and how soon."""
    cuts = [_cut(one, comparison) for one in (comparison.equal_tests, comparison.equal_cpu)]
    return [*cuts, *([_detections(comparison)] if comparison.detections else [])]


def _cut(cut: Cut, comparison: Comparison) -> Table:
    unit = "tests" if cut.unit == "tests" else "CPU time"
    known = {(one.strategy, one.kind): one for one in cut.differences}
    rows = [
        _reach(reach, known.get((reach.strategy, reach.kind)), 1 - comparison.confidence)
        for reach in cut.reaches
    ]
    together = ", ".join(f"{kind} {count:,}" for kind, count in cut.together.items())
    effort = "; ".join(
        f"{e.strategy}: {plural(e.runs, 'run')}, each {number(e.tests)} "
        f"{'test' if e.tests == 1 else 'tests'} and {duration(e.cpu_seconds)} of CPU"
        for e in cut.efforts
    )
    return Table(
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
        f"All strategies together: {together}. {effort}.",
    )


def _reach(reach: Reach, difference: Difference | None, allowed: float) -> tuple[Cell, ...]:
    cells = (
        Cell(reach.kind),
        Cell(reach.strategy, cls="name"),
        Cell(with_interval(reach.per_run), reach.per_run.value),
        number_cell(reach.in_any_run),
        number_cell(reach.only_here),
        number_cell(reach.everywhere),
    )
    if difference is None:
        return (*cells, Cell("baseline", 0.0), *(Cell("-", 2.0) for _ in range(3)), Cell("-"))
    effect = difference.effect
    return (
        *cells,
        Cell(with_interval(difference.more, sign="+"), difference.more.value),
        Cell(f"{effect.a12:.2f} {effect.word}", effect.a12) if effect else Cell("-", 2.0),
        *(Cell(p_value(p), 2.0 if p is None else p) for p in (difference.p, difference.q)),
        Cell(_shown(difference, allowed)),
    )


def _shown(difference: Difference, allowed: float) -> str:
    if difference.q is None:
        return "too few runs"
    if difference.q > allowed:
        return "no difference shown"
    return "more" if difference.more.value > 0 else "fewer"


def _detections(comparison: Comparison) -> Table:
    signatures = {fault.id: fault.signature for fault in comparison.faults}
    shown = {ANY, *list(signatures)[:_MOST_FAULTS]}
    rows = [
        (
            Cell(one.fault, cls="name", title=signatures.get(one.fault, "the first of all")),
            Cell(one.strategy, cls="name"),
            Cell(f"{one.tests.survival.found} of {one.tests.survival.runs}"),
            _median(one.tests.survival, "tests"),
            Cell(f"{one.cpu_seconds.survival.found} of {one.cpu_seconds.survival.runs}"),
            _median(one.cpu_seconds.survival, "cpu_seconds"),
            number_cell(one.hits, number(one.hits)),
            *(Cell(p_value(p), 2.0 if p is None else p) for p in _p_values(one)),
        )
        for one in comparison.detections
        if one.fault in shown
    ]
    left = len(signatures) - _MOST_FAULTS
    within = amount(comparison.equal_cpu.limit, "cpu_seconds")
    note = (
        "A run that never found it counts as waiting longer (Kaplan-Meier, log-rank). CPU time: "
        f"only the first {within} of each run, for the shortest has no more."
    )
    if left > 0:
        note += f" {left} rarer faults are left out."
    medians = ("found in", "median tests", f"within {within} of CPU", "median CPU time")
    head = ("fault", "strategy", *medians, "hits per run", "p (tests)", "q", "p (CPU)", "q")
    return Table("To the first detection", head, tuple(rows), note)


def _p_values(one: Detection) -> tuple[float | None, ...]:
    return one.tests.p, one.tests.q, one.cpu_seconds.p, one.cpu_seconds.q


def _median(survival: Survival, unit: str) -> Cell:
    if survival.median is None:
        return Cell(f"over {amount(survival.longest, unit)}", 1e300)
    return Cell(amount(survival.median, unit), survival.median)


def growth_table(found: Sequence[Growth]) -> Table:
    """A row per strategy and kind: what was found, and what as many tests again would bring."""
    rows = [
        (Cell(one.strategy, cls="name"), number_cell(one.tests), *_growth_row(kind))
        for one in found
        for kind in one.kinds
    ]
    head = ("strategy", "tests", "kind", "found", "by 1 test", "by 2 tests", "in as many more")
    return Table(
        "Growth",
        (*head, "unseen, at least"),
        tuple(rows),
        "By 1 test: targets that a single test reached. In as many more: what as many tests again "
        "would find, by Good-Turing extrapolation with its interval; unseen: Chao2's lower bound.",
    )


def _growth_row(kind: KindGrowth) -> tuple[Cell, ...]:
    seen = kind.seen
    found = f"{seen.found:,}"
    if kind.unreached is not None:
        found += f" of {seen.found + kind.unreached:,}"
    return (
        Cell(kind.kind),
        Cell(found, seen.found),
        number_cell(seen.once),
        number_cell(seen.twice),
        *(
            Cell(f"{one.value:.3g}" + (f" ({interval_text(one)})" if one.high else ""), one.value)
            for one in (kind.new, kind.unseen)
        ),
    )
