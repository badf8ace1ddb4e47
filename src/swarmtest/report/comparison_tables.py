"""Comparisons and growth as tables of a page."""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.analysis.comparison import Comparison
from swarmtest.analysis.detection import ANY, Detection
from swarmtest.analysis.equal_effort import Cut, Difference, Reach
from swarmtest.analysis.growth import Growth, KindGrowth
from swarmtest.analysis.survival import Survival
from swarmtest.analysis.verdict import interval_text
from swarmtest.report.page_tables import Cell, Table, number_cell
from swarmtest.report.quantities import amount, duration, number, p_value, with_interval
from swarmtest.report.terminal import plural

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
