"""Tables of a page: what is in a cell, and by what it is sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swarmtest.analysis.amounts import Amount
from swarmtest.analysis.effects import Effect, Rate
from swarmtest.analysis.roles import FIXED, INSUFFICIENT, SUPPRESSOR, TRIGGER
from swarmtest.report.figures import MARKS, IntervalPlot
from swarmtest.report.quantities import p_value


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
