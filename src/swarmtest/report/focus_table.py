"""The targets of focused testing as a table: hitting fractions side by side, and their ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from swarmtest.analysis.hitting_ratios import HittingRatio, ratio_text
from swarmtest.focus.outcome import Count
from swarmtest.report.fitting import fitted, widest, wrapped
from swarmtest.report.focus_rows import FocusRow, plain
from swarmtest.report.printable import elided
from swarmtest.report.quantities import short_percent

_MOST_ROWS = 20
_LONGEST_NAME = 70
_LEGEND = (
    "percent: tests that hit; ratio: directed over undirected [95% interval]; per CPU s: the same "
    "ratio of hits per CPU second"
)


def target_table(rows: Sequence[FocusRow], width: int = 0, everything: bool = False) -> str:
    """A row for each block of targets, what stands in for which, and a legend."""
    if not rows:
        return ""
    shown = rows if everything else rows[:_MOST_ROWS]
    lines = [_table(shown, width)]
    if len(shown) < len(rows):
        lines.append(f"... and {len(rows) - len(shown):,} more: --all")
    lines += [wrapped(line, width, "   ") for line in _stand_ins(shown)]
    return "\n".join([*lines, wrapped(_LEGEND, width)])


def _table(rows: Sequence[FocusRow], width: int) -> str:
    """With as much beside the fractions as there is room for."""
    views = (
        _View(rows),
        _View(rows, paths=False),
        _View(rows, paths=False, functions=False),
        _View(rows, paths=False, functions=False, intervals=False),
    )
    for view in views:
        text = fitted(*view.table(), width)
        if not width or widest(text) <= width:
            return text
    return fitted(*views[-1].table(), width, cut=[0])


@dataclass(frozen=True)
class _View:
    """What of the targets is shown on a screen of some width."""

    rows: Sequence[FocusRow]
    paths: bool = True
    functions: bool = True
    intervals: bool = True

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
        """Head, rows and which columns are set to the right."""
        usual = any(row.first.default.tests for row in self.rows)
        marks = _known_stand_ins(self.rows)
        columns: list[tuple[str, str, list[str]]] = [
            ("target", " ", [self._name(row) + _mark(row, marks) for row in self.rows]),
            ("undirected", "r", [percent(row.first.undirected) for row in self.rows]),
            ("directed", "r", [percent(row.first.directed) for row in self.rows]),
            ("ratio", " ", [self._ratio(row.ratio) for row in self.rows]),
            ("per CPU s", "r", [bare_ratio(row.rate) for row in self.rows]),
        ]
        if usual:
            columns.insert(2, ("default", "r", [percent(row.first.default) for row in self.rows]))
        if self.functions:
            columns.insert(1, ("function", " ", [plain(row.first.function) for row in self.rows]))
        head, right, cells = zip(*columns, strict=True)
        return head, [*zip(*cells, strict=True)], "".join(right)

    def _name(self, row: FocusRow) -> str:
        file = row.first.file
        if self.paths or not file:
            return elided(row.name, _LONGEST_NAME)
        short = PurePath(file).name
        alike = {
            other.first.file for other in self.rows if PurePath(other.first.file).name == short
        }
        name = row.name.replace(plain(file), plain(short), 1) if len(alike) == 1 else row.name
        return elided(name, _LONGEST_NAME)

    def _ratio(self, ratio: HittingRatio) -> str:
        return str(ratio) if self.intervals else bare_ratio(ratio)


def bare_ratio(ratio: HittingRatio) -> str:
    """A ratio without its interval, or the bound that there is.

    >>> bare_ratio(HittingRatio(2.5, 2, 3)), bare_ratio(HittingRatio(float("inf"), 3, 9))
    ('2.5', '>=3.0')
    """
    if ratio.is_finite and ratio.value:
        return ratio_text(ratio.value)
    return str(ratio).replace("at least ", ">=").replace("at most ", "<=")


def percent(count: Count) -> str:
    """The hitting fraction; a dash where there was no test."""
    return short_percent(count.fraction) if count.tests else "-"


def _known_stand_ins(rows: Sequence[FocusRow]) -> list[str]:
    return [*dict.fromkeys(row.first.stand_in for row in rows if row.first.stand_in)]


def _mark(row: FocusRow, known: Sequence[str]) -> str:
    return f" [{known.index(row.first.stand_in) + 1}]" if row.first.stand_in else ""


def _stand_ins(rows: Sequence[FocusRow]) -> list[str]:
    return [
        f"[{number}] too little data of its own, aimed at through {plain(name)}"
        for number, name in enumerate(_known_stand_ins(rows), 1)
    ]
