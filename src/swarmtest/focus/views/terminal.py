"""The outcome of a focused campaign as text for a terminal; what matters most comes last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from swarmtest.core.formatting import duration, format_percent, p_value, plural
from swarmtest.focus.measurement import HittingRatio, RatioSummary, ratio_text
from swarmtest.focus.outcome import Count, FocusedFault, FocusedTarget, FocusOutcome
from swarmtest.focus.views.rows import (
    FocusRow,
    aimed_at,
    by_age,
    cautions,
    diversity,
    focus_rows,
    hits_of,
    never_hit,
    places,
    plain,
    status_word,
    summaries,
    target_word,
    verdict,
)
from swarmtest.ui.terminal.reduced_tests import reduction_line
from swarmtest.ui.terminal.shown_code import shown_lines
from swarmtest.ui.terminal.tables import fault_message, fitted, widest, wrapped
from swarmtest.ui.terminal.text import elided

# The table of targets: hitting fractions side by side, and their ratios.

_MOST_ROWS = 20
_LONGEST_NAME = 70
_LEGEND = (
    "percent: tests that hit; ratio: directed over undirected [95% interval]; per CPU s: the same "
    "ratio of hits per CPU second"
)


def target_table(rows: Sequence[FocusRow], width: int = 0, everything: bool = False) -> str:
    """Return a table with a row for each block of targets, their proxies, and a legend."""
    if not rows:
        return ""
    shown = rows if everything else rows[:_MOST_ROWS]
    lines = [_table(shown, width, everything)]
    if len(shown) < len(rows):
        lines.append(f"... and {len(rows) - len(shown):,} more: --all")
    lines += [wrapped(line, width, "   ") for line in _proxy_lines(shown)]
    said = [_tests_line(shown), *role_lines(shown, everything)]
    lines += [wrapped(line, width, "  ") for line in said if line]
    return "\n".join([*lines, wrapped(_LEGEND, width)])


def _table(rows: Sequence[FocusRow], width: int, everything: bool = False) -> str:
    """Return the table with as many columns beside the fractions as fit."""
    views = (
        *([_View(rows, spread=True)] if everything else []),
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
    """The columns of the table that are shown on a screen of some width."""

    rows: Sequence[FocusRow]
    paths: bool = True
    functions: bool = True
    intervals: bool = True
    spread: bool = False
    """Whether fractions have their intervals, too."""

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
        """Return the head, the rows and which columns are aligned right."""
        with_default = any(row.first.default.tests for row in self.rows)
        marks = _proxy_names(self.rows)
        columns: list[tuple[str, str, list[str]]] = [
            ("target", " ", [self._name(row) + _mark(row, marks) for row in self.rows]),
            ("undirected", "r", [self._percent(row.first.undirected) for row in self.rows]),
            ("directed", "r", [self._percent(row.first.directed) for row in self.rows]),
            ("ratio", " ", [self._ratio(row.ratio) for row in self.rows]),
            ("per CPU s", "r", [bare_ratio(row.rate) for row in self.rows]),
        ]
        if with_default:
            columns.insert(
                2, ("all on", "r", [self._percent(row.first.default) for row in self.rows])
            )
        if self.functions:
            columns.insert(1, ("function", " ", [plain(row.first.function) for row in self.rows]))
        head, right, cells = zip(*columns, strict=True)
        return head, [*zip(*cells, strict=True)], "".join(right)

    def _percent(self, count: Count) -> str:
        if not self.spread or not count.tests:
            return percent(count)
        low, high = (format_percent(bound) for bound in count.interval())
        return f"{percent(count)} [{low}, {high}]"

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
    """Return a ratio without its interval, or the bound that is known.

    >>> bare_ratio(HittingRatio(2.5, 2, 3)), bare_ratio(HittingRatio(float("inf"), 3, 9))
    ('2.5', '>=3.0')
    """
    if ratio.is_finite and ratio.value:
        return ratio_text(ratio.value)
    return str(ratio).replace("at least ", ">=").replace("at most ", "<=")


def percent(count: Count) -> str:
    """Return the hitting fraction; a dash if there was no test."""
    return format_percent(count.fraction) if count.tests else "-"


def _proxy_names(rows: Sequence[FocusRow]) -> list[str]:
    return [*dict.fromkeys(row.first.proxy for row in rows if row.first.proxy)]


def _mark(row: FocusRow, names: Sequence[str]) -> str:
    return f" [{names.index(row.first.proxy) + 1}]" if row.first.proxy else ""


def _proxy_lines(rows: Sequence[FocusRow]) -> list[str]:
    return [
        f"[{number}] too little data of its own, aimed at through {plain(name)}"
        for number, name in enumerate(_proxy_names(rows), 1)
    ]


def _tests_line(rows: Sequence[FocusRow]) -> str:
    """Say how many tests the fractions are of."""
    parts = []
    for name, counts in (
        ("undirected", [row.first.undirected.tests for row in rows]),
        ("with all features on", [row.first.default.tests for row in rows]),
        ("directed", [row.first.directed.tests for row in rows]),
    ):
        if any(counts):
            least, most = min(counts), max(counts)
            parts.append(f"{least:,} to {most:,} {name}" if least < most else f"{most:,} {name}")
    if not parts:
        return ""
    return f"tests: {', '.join(parts)}, with earlier ones of the same code; intervals: --all"


_MOST_ROLES = 3
"""Groups of targets with the same triggers and suppressors that are named."""


def role_lines(rows: Sequence[FocusRow], everything: bool = False) -> list[str]:
    """Name the triggers and suppressors that were used, for each group of targets with the same."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[FocusedTarget]] = {}
    for row in rows:
        for target in row.targets:
            groups.setdefault((target.triggers, target.suppressors), []).append(target)
    lines = []
    for (triggers, suppressors), targets in groups.items():
        if triggers or suppressors:
            roles = (("triggers", triggers), ("suppressors", suppressors))
            said = [f"{word} {', '.join(map(plain, names))}" for word, names in roles if names]
            lines.append(f"{'; '.join(said)}: for {_named(targets, everything)}")
    if everything or len(lines) <= _MOST_ROLES:
        return lines
    return [*lines[:_MOST_ROLES], f"... and {len(lines) - _MOST_ROLES} more groups: --all"]


def _named(targets: Sequence[FocusedTarget], everything: bool) -> str:
    text = places(targets)
    if everything or len(text) <= _LONGEST_NAME:
        return text
    return f"{places(targets[:1])} and {plural(len(targets) - 1, 'other target')}"


# The whole text.

_MOST_LINES = 5
_MOST_FAULTS = 10
_LONGEST_LIST = 500


def focus_text(outcome: FocusOutcome, width: int = 0, everything: bool = False) -> str:
    """Return the report of a focused campaign; `width` is that of the screen, 0 means no limit.

    With `everything`, long lists are not shortened.
    """
    rows = focus_rows(aimed_at(outcome))
    parts = [
        _header(outcome, width),
        target_table(rows, width, everything),
        _summary(rows, width),
        _said(_remarks(outcome, everything), width),
        _said([hits_summary(outcome, everything)], width),
        _faults(outcome, width, everything),
        wrapped(f"focus: {verdict(outcome).text}", width, "  "),
    ]
    return "\n\n".join(part for part in parts if part)


def _header(outcome: FocusOutcome, width: int) -> str:
    about = f": changes since {plain(outcome.base)}" if outcome.base else ""
    invalid = f", {outcome.invalid:,} invalid" if outcome.invalid else ""
    cost = (
        f"campaign {outcome.campaign}, {plain(outcome.strategy)}: "
        f"{plural(outcome.tests, 'test')} ({outcome.directed_tests:,} directed{invalid}) in "
        f"{duration(outcome.wall_seconds)}, {duration(outcome.cpu_seconds)} of CPU"
    )
    if outcome.interrupted:
        cost += ", interrupted"
    if outcome.data_campaigns:
        many = "campaigns" if len(outcome.data_campaigns) > 1 else "campaign"
        cost += f"; roles from {many} {', '.join(map(str, outcome.data_campaigns))}"
    if outcome.merged_aims:
        cost += f"; targets merged into {plural(outcome.merged_aims, 'aim')}"
    title = f"focus on {plain(outcome.subject)}{about}"
    return "\n".join([wrapped(title, width, "  "), wrapped(cost, width, "  ")])


def _summary(rows: Sequence[FocusRow], width: int) -> str:
    """Return the columns of the paper's table 3."""
    all_summaries = summaries(rows)
    if len(rows) < 2 or not all_summaries:
        return ""
    names = ("ratios", "improved", "n", "mean", "sd", "min", "25%", "50%", "75%", "max", "p")
    shown = {"to default": "to all on"}
    body = [(shown.get(name, name), *_summary_cells(s)) for name, s in all_summaries.items()]
    table = fitted(names, body, " rrrrrrrrrr", width)
    if width and widest(table) > width:
        columns = [names.index(name) for name in ("ratios", "improved", "n", "mean", "50%", "p")]
        head, *short = (tuple(row[at] for at in columns) for row in (names, *body))
        table = fitted(head, short, " rrrrr", width)
    notes = ["n: lines that the same tests hit count once; p: Wilcoxon signed-rank"]
    if any(summary.unbounded for summary in all_summaries.values()):
        notes.append("targets that only directed tests hit count as improved, but not in the mean")
    return "\n".join([table, wrapped("; ".join(notes), width)])


def _summary_cells(summary: RatioSummary) -> tuple[str, ...]:
    spread = (
        summary.least,
        summary.lower_quartile,
        summary.median,
        summary.upper_quartile,
        summary.greatest,
    )
    values = (summary.mean, summary.deviation, *spread)
    cells = ["-" if math.isnan(value) else ratio_text(value) for value in values]
    return format_percent(summary.improved, 0), str(summary.count), *cells, p_value(summary.p)


# Remarks.


def _said(lines: Sequence[str], width: int) -> str:
    return "\n".join(wrapped(line, width, "  ") for line in lines if line)


def _remarks(outcome: FocusOutcome, everything: bool) -> list[str]:
    return [
        diversity(outcome),
        *(f"warning: {line}" for line in cautions(outcome)),
        *mapped_lines(outcome),
        dropped_line(outcome, everything),
        unreached_line(outcome, everything),
        *(f"not aimed at: {plain(line)}" for line in outcome.unusable[:_MOST_LINES]),
        *_more(len(outcome.unusable), "that could not be aimed at"),
        *(f"note: {plain(line)}" for line in outcome.notes[:_MOST_LINES]),
        *_more(len(outcome.notes), "notes"),
    ]


def _more(count: int, what: str) -> list[str]:
    return [f"... and {count - _MOST_LINES} more {what}: --json"] if count > _MOST_LINES else []


def mapped_lines(outcome: FocusOutcome) -> list[str]:
    """Say how many targets had their data found in other versions of the code, with an example."""
    mapped = [target for target in outcome.targets if target.mapped]
    if not mapped:
        return []
    example = f"{places(mapped[:1])} is {plain(mapped[0].mapped)}"
    return [f"data of an earlier version was used for {plural(len(mapped), 'target')}: {example}"]


def dropped_line(outcome: FocusOutcome, everything: bool = False) -> str:
    """Name the targets that were hit but not aimed at, with the reason for each."""
    hit = [target for target in outcome.targets if target.dropped and hits_of(target).hits]
    return _with_reasons("dropped from focus", hit, everything)


def unreached_line(outcome: FocusOutcome, everything: bool = False) -> str:
    """Name the targets that were neither hit nor aimed at, with the reason for each."""
    missed = [target for target in never_hit(outcome) if target.dropped]
    return _with_reasons("could not be aimed at", missed, everything)


def _with_reasons(what: str, targets: Sequence[FocusedTarget], everything: bool) -> str:
    by_reason: dict[str, list[FocusedTarget]] = {}
    for target in targets:
        by_reason.setdefault(plain(target.dropped), []).append(target)
    if not by_reason:
        return ""
    parts = [f"{_listed(group, everything)} ({reason})" for reason, group in by_reason.items()]
    more = f"; and {len(parts) - _MOST_LINES} more" if len(parts) > _MOST_LINES else ""
    count = plural(len(targets), "target")
    return f"{what}, {count}: {'; '.join(parts[:_MOST_LINES])}{more}"


def hits_summary(outcome: FocusOutcome, everything: bool = False) -> str:
    """Say how many targets were hit, how often, and which never."""
    if not outcome.targets:
        return ""
    missed = never_hit(outcome)
    counts = [hits_of(t).hits for t in outcome.targets if hits_of(t).hits]
    text = f"{target_word(outcome)}s: {len(outcome.targets):,}; hit {len(counts):,}"
    if counts:
        least, most = min(counts), max(counts)
        among = f"{least:,} to {plural(most, 'test')}" if least < most else plural(most, "test")
        text += f" (by {among})"
    return f"{text}, never hit: {_listed(missed, everything)}" if missed else text


def _listed(targets: Sequence[FocusedTarget], everything: bool) -> str:
    """Name targets in few words; of very many, only the first."""
    text = places(targets)
    if everything or len(text) <= _LONGEST_LIST:
        return text
    whole = text.rfind(", ", 0, _LONGEST_LIST)
    return f"{text[: whole if whole > 0 else _LONGEST_LIST]} ... ({len(targets):,} in all: --all)"


# Faults.


def _faults(outcome: FocusOutcome, width: int, everything: bool) -> str:
    ordered = by_age(outcome.faults)
    shown = ordered if everything else ordered[:_MOST_FAULTS]
    parts = ["\n".join(_fault_lines(fault, width)) for fault in shown]
    if len(shown) < len(ordered):
        parts.append(f"... and {plural(len(ordered) - len(shown), 'more fault')}: --all")
    return "\n\n".join(parts)


def _fault_lines(fault: FocusedFault, width: int) -> list[str]:
    """Describe a fault: how old, what, where, how often, and how to replay it."""
    record = fault.record
    description = [f"{status_word(fault)} {record.id}  {record.kind}: {plain(record.signature)}"]
    if fault.location:
        description.append(f"  at {plain(fault.location[0])}:{fault.location[1]}")
    if fault.why_unknown:
        description.append(f"  whether it is new is not known: {plain(fault.why_unknown)}")
    message = plain(fault_message(record))
    if message:
        description.append(f"  message: {message}")
    description.append(f"  shown by {tests_that_show(fault)}")
    description += [f"  {plain(line)}" for line in fault.life]
    reduced = reduction_line(record, fault.reduced, fault.reduced_in, fault.part)
    if reduced:
        description.append(f"  {plain(reduced)}")
    lines = [part for line in description for part in wrapped(line, width, "    ").split("\n")]
    # The code and the command are not wrapped, so that they can be copied.
    if fault.code:
        code = shown_lines(fault.code)
        lines += ["", *(f"    {line}".rstrip() for line in code), ""]
    return [*lines, f"  replay: {plain(fault.replay)}"] if fault.replay else lines


def tests_that_show(fault: FocusedFault) -> str:
    """Say how many directed and undirected tests show a fault."""
    parts = [
        f"{count.hits:,} of {count.tests:,} {sort} tests"
        for sort, count in (("directed", fault.directed), ("undirected", fault.undirected))
        if count.tests
    ]
    return ", ".join(parts) or plural(fault.record.count, "test")
