"""The results of searches and of studies of explorations, as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from swarmtest.analysis.role_cells import INSUFFICIENT, SUPPRESSOR, TRIGGER
from swarmtest.core.configuration import Configuration
from swarmtest.core.formatting import format_percent, number, p_value, plural
from swarmtest.search.engine_comparison import EngineSummary, SearchSummary
from swarmtest.search.exploration import PointSequence
from swarmtest.search.export import CollapsedSpace
from swarmtest.search.search import SearchOutcome
from swarmtest.search.stopping import SearchProgress
from swarmtest.search.value_statistics import Correlation, ValueRole
from swarmtest.ui.options import screen_width
from swarmtest.ui.terminal.tables import command_text, screen_table
from swarmtest.ui.terminal.text import can_show, kind_and_signature, one_line

_SURE = 0.05
_WIDTH, _HEIGHT = 72, 8
_BLOCKS = " ▁▂▃▄▅▆▇█"
_PLAIN_BLOCKS = " .:-=+*%#"


def format_number(value: float) -> str:
    """Format a number that may be negative.

    >>> format_number(-2.5), format_number(0.00025), format_number(float("-inf"))
    ('-2.50', '0.00025', '-inf')
    """
    if not math.isfinite(value):
        return str(value)
    if 0 < abs(value) < 0.1:
        return f"{value:.2g}"
    return number(value)


def point_text(values: dict[str, Any]) -> str:
    """Return a point as people read it.

    >>> point_text({"threads": 4, "noise": "sleep", "halt": True})
    'threads=4 noise=sleep halt=yes'
    """
    words = {True: "yes", False: "no"}
    return " ".join(
        f"{name}={words[value] if isinstance(value, bool) else value}"
        for name, value in values.items()
    )


def progress_line(progress: SearchProgress) -> str:
    """Return the progress of a search in a line.

    >>> progress_line(SearchProgress(points=12, runs=240, best_score=(3.0,), seconds=1.5))
    '12 points, 240 runs, 0 targets, 0 faults, best 3, 1.5 s'
    """
    scores = ", ".join(map(format_number, progress.best_score))
    best = f", best {scores}" if scores else ""
    return (
        f"{plural(progress.points, 'point')}, {plural(progress.runs, 'run')}, "
        f"{plural(progress.targets, 'target')}, {plural(progress.faults, 'fault')}{best}, "
        f"{progress.seconds:.1f} s"
    )


def outcome_text(outcome: SearchOutcome, fitness: str) -> str:
    """Return what `swarmtest search run` prints at the end."""
    progress = outcome.progress
    lines = [f"campaign {outcome.campaign}: {progress_line(progress)}", outcome.reason]
    if progress.interrupted:
        lines.append(f"{plural(progress.interrupted, 'run')} interrupted: out of time")
    if outcome.best is not None:
        score = ", ".join(map(format_number, progress.best_score))
        lines += ["", f"best {fitness}: {score}, at visit {progress.best_visit}"]
        lines.append(f"  {point_text(outcome.best)}")
    for fault in outcome.faults:
        lines += ["", f"fault {fault.id}  {kind_and_signature(fault.kind, fault.signature)}"]
        lines.append(f"  shown by {plural(fault.count, 'run')}, first by trial {fault.first_trial}")
    lines += ["", *outcome.notes] if outcome.notes else []
    commands = [f"search correlate {outcome.campaign}", f"search plot {outcome.campaign} -o FILE"]
    if outcome.store != ":memory:" and progress.points > 1:
        lines += ["", f"what matters: {command_text(commands[0], outcome.store)}"]
        lines.append(f"a picture: {command_text(commands[1], outcome.store)}")
    return "\n".join(lines)


def _table(
    head: tuple[str, ...], rows: Sequence[tuple[str, ...]], right: str, below: Sequence[int] = ()
) -> str:
    return screen_table(head, rows, right, screen_width(), below)


def summaries_text(summaries: Sequence[SearchSummary], searches: int) -> str:
    """Return a table of several searches."""
    rows = [
        (
            summary.name,
            format_number(summary.mean),
            " to ".join(map(format_number, (summary.low, summary.high))) if searches > 1 else "-",
            format_number(summary.least),
            format_number(summary.most),
        )
        for summary in summaries
    ]
    head = ("over all searches", "mean", "95% interval", "least", "most")
    return _table(head, rows, " rrrr")


def comparison_text(summaries: Sequence[EngineSummary], title: str) -> str:
    """Return a table of engines on one exploration."""
    rows = []
    for summary in summaries:
        low, high = summary.found_interval
        after = summary.median_found_after
        rows.append(
            (
                summary.engine,
                number(summary.mean_points),
                f"{format_percent(summary.found / len(summary.replays))} "
                f"[{format_percent(low)}, {format_percent(high)}]",
                "-" if after is None else number(after),
                format_number(summary.mean_best),
                format_number(summary.optimum),
            )
        )
    head = ("engine", "points", "found the best", "after (median)", "best, mean", "of")
    return f"{title}\n\n{_table(head, rows, ' rrrrr')}"


def sequence_text(sequence: PointSequence, others: Sequence[PointSequence], title: str) -> str:
    """Describe the points that together reach everything, and how many random ones it takes."""
    rows = [
        (
            str(position),
            str(step.new),
            f"{step.reached} of {sequence.total}",
            str(step.runs),
            _short(step.point),
        )
        for position, step in enumerate(sequence.steps, 1)
    ]
    lines = [title, "", _table(("", "new", "reached", "runs", "point"), rows, "rrrr", [4])]
    if others:
        counts = sorted(len(other.steps) for other in others)
        middle = counts[len(counts) // 2]
        lines += [
            "",
            f"{plural(len(sequence.steps), 'point')} in this order; in random order {middle:,} "
            f"(median of {len(counts)}, from {counts[0]:,} to {counts[-1]:,})",
        ]
    return "\n".join(lines)


def _short(point: Configuration) -> str:
    return point_text(point.to_json())


def correlations_text(correlations: Sequence[Correlation], title: str) -> str:
    """Describe what each dimension has to do with each measure."""
    parts = [title]
    varied = [
        correlation.measure
        for correlation in correlations
        if len({mean for _, mean in correlation.means}) > 1
    ]
    same = sorted({correlation.measure for correlation in correlations} - set(varied))
    for measure in dict.fromkeys(varied):
        rows = [
            _correlation_row(correlation)
            for correlation in correlations
            if correlation.measure == measure
        ]
        head = (measure, "explains", "rank", "p", "at its values")
        parts.append(_table(head, rows, " rrr", [4]))
    if same:
        parts.append(f"the same at all points: {', '.join(same)}")
    parts.append(
        "explains: share of the variance between points. rank: Spearman's correlation, where\n"
        "values are ordered. p: by shuffling, corrected for all of these; a star is below 0.05."
    )
    return "\n\n".join(parts)


def _correlation_row(correlation: Correlation) -> tuple[str, ...]:
    star = "*" if correlation.adjusted < _SURE else " "
    means = (
        correlation.means
        if len(correlation.means) <= 6
        else (*correlation.means[:2], ("…", math.nan), *correlation.means[-2:])
    )
    shown = [
        "…" if name == "…" else f"{point_text({'': name})[1:]}: {format_number(mean)}"
        for name, mean in means
    ]
    return (
        correlation.dimension,
        format_percent(correlation.explained),
        "-" if correlation.rank is None else f"{correlation.rank:+.2f}",
        p_value(correlation.adjusted) + star,
        ", ".join(shown),
    )


def collapsed_text(line: CollapsedSpace, title: str) -> str:
    """Draw the collapsed picture in blocks, with the values of the first dimension."""
    values = [value if value == value else 0.0 for value in line.values]
    low, high = min(values), max(values)
    low = min(low, 0.0) if low >= 0 and low < high / 2 else low
    width = min(_WIDTH, len(values))
    levels = [_level(values, column, width, low, high) for column in range(width)]
    blocks = _BLOCKS if can_show(_BLOCKS) else _PLAIN_BLOCKS
    rows = [
        "".join(blocks[min(max(level - 8 * row, 0), 8)] for level in levels).rstrip()
        for row in reversed(range(_HEIGHT))
    ]
    marks = [" "] * width
    for column, label in line.blocks():
        place = column * width // len(values)
        words = f"|{point_text({'': label[0]})[1:]}"
        marks[place : place + len(words)] = words[: width - place]
    head = f"{line.measure}, from {format_number(low)} to {format_number(high)}"
    axis = f"{plural(len(values), 'point')}, ordered by {', then '.join(line.dimensions)}"
    return "\n".join([title, "", head, *rows, "".join(marks).rstrip(), axis])


def _level(values: Sequence[float], column: int, width: int, low: float, high: float) -> int:
    """Return the height of a column in eighths: the mean of its points."""
    first = column * len(values) // width
    part = values[first : max(first + 1, (column + 1) * len(values) // width)]
    share = (sum(part) / len(part) - low) / (high - low) if high > low else 1.0
    return round(share * _HEIGHT * 8)


def shoulders_of(counts: Sequence[int], least: int) -> list[tuple[int, int]]:
    """Return stretches of at least `least` runs without anything new, before something new.

    >>> shoulders_of([1, 2, 2, 2, 2, 3, 3], least=3)
    [(2, 5)]
    """
    stretches, start = [], 0
    for run in range(1, len(counts)):
        if counts[run] > counts[run - 1]:
            if run - start > least:
                stretches.append((start + 1, run))
            start = run
    return stretches


def shoulders_text(name: str, counts: Sequence[int], least: int) -> str:
    """Say how long the stretches are in which nothing new came, before more did.

    >>> shoulders_text("sleep", [1, 2, 2, 2, 2, 3, 3], least=3)
    'sleep: 1 shoulder of 3 runs or more, the longest of 3, from run 3'
    """
    stretches = shoulders_of(counts, least)
    if not stretches:
        return f"{name}: no shoulder of {least} runs or more"
    start, end = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
    return (
        f"{name}: {plural(len(stretches), 'shoulder')} of {least} runs or more, "
        f"the longest of {end - start}, from run {start + 1}"
    )


def value_roles_text(all_roles: Sequence[ValueRole], title: str) -> str:
    """Describe what triggers and suppresses each target, and what is unknown."""
    parts = [title]
    for target in dict.fromkeys(item.target for item in all_roles):
        roles = [item for item in all_roles if item.target == target]
        shown = [item for item in roles if item.role in (TRIGGER, SUPPRESSOR)]
        rows = [
            (
                f"{item.dimension}={point_text({'': item.value})[1:]}",
                item.role,
                f"{format_percent(item.share)} "
                f"[{format_percent(item.low)}, {format_percent(item.high)}]",
                format_percent(item.base),
                p_value(item.adjusted),
            )
            for item in sorted(shown, key=lambda item: (item.role != TRIGGER, item.adjusted))
        ]
        head = ("value", "role", "of these points", "chance", "p")
        unknown = sum(item.role == INSUFFICIENT for item in roles)
        rest = len(roles) - len(shown) - unknown
        lines = [f"{one_line(target)}\n  shown at {plural(roles[0].hits, 'point')}"]
        lines += [_table(head, rows, "  rrr")] if rows else []
        lines.append(
            f"no role shown: {plural(rest, 'value')}; insufficient data: {plural(unknown, 'value')}"
        )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)
