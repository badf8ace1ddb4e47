"""What a search found, as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from swarmtest.analysis.cells import INSUFFICIENT, SUPPRESSOR, TRIGGER
from swarmtest.core.configuration import Configuration
from swarmtest.search.engine_comparison import EngineSummary, Summary
from swarmtest.search.export import Collapsed
from swarmtest.search.search import SearchOutcome
from swarmtest.search.sequences import Sequence as PointSequence
from swarmtest.search.stopping import SearchProgress
from swarmtest.search.value_statistics import Correlation, ValueRole
from swarmtest.ui.terminal.tables import command_text, plural, table
from swarmtest.ui.terminal.text import (
    can_show,
    kind_and_signature,
    number,
    one_line,
    p_value,
    short_percent,
)

_SURE = 0.05
_WIDTH, _HEIGHT = 72, 8
_BLOCKS = " ▁▂▃▄▅▆▇█"
_PLAIN_BLOCKS = " .:-=+*%#"


def signed(value: float) -> str:
    """A number, perhaps below 0.

    >>> signed(-2.5), signed(0.00025), signed(float("-inf"))
    ('-2.50', '0.00025', '-inf')
    """
    if not math.isfinite(value):
        return str(value)
    if 0 < abs(value) < 0.1:
        return f"{value:.2g}"
    return f"-{number(-value)}" if value < 0 else number(value)


def point_text(values: dict[str, Any]) -> str:
    """A point as people read it.

    >>> point_text({"threads": 4, "noise": "sleep", "halt": True})
    'threads=4 noise=sleep halt=yes'
    """
    words = {True: "yes", False: "no"}
    return " ".join(
        f"{name}={words[value] if isinstance(value, bool) else value}"
        for name, value in values.items()
    )


def progress_line(progress: SearchProgress) -> str:
    """How far a search is, in a line.

    >>> progress_line(SearchProgress(points=12, runs=240, best_score=(3.0,), seconds=1.5))
    '12 points, 240 runs, 0 targets, 0 faults, best 3, 1.5 s'
    """
    best = f", best {', '.join(map(signed, progress.best_score))}" if progress.best_score else ""
    return (
        f"{plural(progress.points, 'point')}, {plural(progress.runs, 'run')}, "
        f"{plural(progress.targets, 'target')}, {plural(progress.faults, 'fault')}{best}, "
        f"{progress.seconds:.1f} s"
    )


def outcome_text(outcome: SearchOutcome, fitness: str) -> str:
    """What `swarmtest search run` prints at the end."""
    progress = outcome.progress
    lines = [f"campaign {outcome.campaign}: {progress_line(progress)}", outcome.reason]
    if progress.interrupted:
        lines.append(f"{plural(progress.interrupted, 'run')} interrupted: out of time")
    if outcome.best is not None:
        score = ", ".join(map(signed, progress.best_score))
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


def summaries_text(found: Sequence[Summary], searches: int) -> str:
    """Several searches in a table."""
    rows = [
        (
            one.name,
            signed(one.mean),
            f"{signed(one.low)} to {signed(one.high)}" if searches > 1 else "-",
            signed(one.least),
            signed(one.most),
        )
        for one in found
    ]
    head = ("over all searches", "mean", "95% interval", "least", "most")
    return table(head, rows, right=" rrrr")


def comparison_text(found: Sequence[EngineSummary], title: str) -> str:
    """Engines beside each other on one exploration."""
    rows = []
    for one in found:
        low, high = one.found_interval
        after = one.median_found_after
        rows.append(
            (
                one.engine,
                number(one.mean_points),
                f"{short_percent(one.found / len(one.replays))} "
                f"[{short_percent(low)}, {short_percent(high)}]",
                "-" if after is None else number(after),
                signed(one.mean_best),
                signed(one.optimum),
            )
        )
    head = ("engine", "points", "found the best", "after (median)", "best, mean", "of")
    return f"{title}\n\n{table(head, rows, right=' rrrrr')}"


def sequence_text(found: PointSequence, others: Sequence[PointSequence], title: str) -> str:
    """The points that together reach everything, and how many random ones it takes."""
    rows = [
        (
            str(at),
            str(step.new),
            f"{step.reached} of {found.total}",
            str(step.runs),
            _short(step.point),
        )
        for at, step in enumerate(found.steps, 1)
    ]
    lines = [title, "", table(("", "new", "reached", "runs", "point"), rows, right="rrrr")]
    if others:
        counts = sorted(len(one.steps) for one in others)
        middle = counts[len(counts) // 2]
        lines += [
            "",
            f"{plural(len(found.steps), 'point')} in this order; in random order {middle:,} "
            f"(median of {len(counts)}, from {counts[0]:,} to {counts[-1]:,})",
        ]
    return "\n".join(lines)


def _short(point: Configuration) -> str:
    return point_text(point.to_json())


def correlations_text(found: Sequence[Correlation], title: str) -> str:
    """What each dimension has to do with each measure."""
    parts = [title]
    varied = [one.measure for one in found if len({mean for _, mean in one.means}) > 1]
    same = sorted({one.measure for one in found} - set(varied))
    for measure in dict.fromkeys(varied):
        rows = [_correlation_row(one) for one in found if one.measure == measure]
        head = (measure, "explains", "rank", "p", "at its values")
        parts.append(table(head, rows, right=" rrr"))
    if same:
        parts.append(f"the same at all points: {', '.join(same)}")
    parts.append(
        "explains: share of the variance between points. rank: Spearman's correlation, where\n"
        "values are ordered. p: by shuffling, corrected for all of these; a star is below 0.05."
    )
    return "\n\n".join(parts)


def _correlation_row(one: Correlation) -> tuple[str, ...]:
    star = "*" if one.adjusted < _SURE else " "
    means = one.means if len(one.means) <= 6 else (*one.means[:2], ("…", math.nan), *one.means[-2:])
    shown = [
        "…" if name == "…" else f"{point_text({'': name})[1:]}: {signed(mean)}"
        for name, mean in means
    ]
    return (
        one.dimension,
        short_percent(one.explained),
        "-" if one.rank is None else f"{one.rank:+.2f}",
        p_value(one.adjusted) + star,
        ", ".join(shown),
    )


def collapsed_text(line: Collapsed, title: str) -> str:
    """The collapsed picture in blocks, with what the first dimension is where."""
    values = [value if value == value else 0.0 for value in line.values]
    low, high = min(values), max(values)
    low = min(low, 0.0) if low >= 0 and low < high / 2 else low
    width = min(_WIDTH, len(values))
    levels = [_level(values, at, width, low, high) for at in range(width)]
    blocks = _BLOCKS if can_show(_BLOCKS) else _PLAIN_BLOCKS
    rows = [
        "".join(blocks[min(max(level - 8 * row, 0), 8)] for level in levels).rstrip()
        for row in reversed(range(_HEIGHT))
    ]
    marks = [" "] * width
    for at, label in line.blocks():
        place = at * width // len(values)
        words = f"|{point_text({'': label[0]})[1:]}"
        marks[place : place + len(words)] = words[: width - place]
    head = f"{line.measure}, from {signed(low)} to {signed(high)}"
    axis = f"{plural(len(values), 'point')}, ordered by {', then '.join(line.dimensions)}"
    return "\n".join([title, "", head, *rows, "".join(marks).rstrip(), axis])


def _level(values: Sequence[float], at: int, width: int, low: float, high: float) -> int:
    """The height of a column, in eighths: the mean of the points that it stands for."""
    first = at * len(values) // width
    part = values[first : max(first + 1, (at + 1) * len(values) // width)]
    share = (sum(part) / len(part) - low) / (high - low) if high > low else 1.0
    return round(share * _HEIGHT * 8)


def shoulders_of(counts: Sequence[int], least: int) -> list[tuple[int, int]]:
    """Stretches of at least so many runs without anything new, that something new follows.

    >>> shoulders_of([1, 2, 2, 2, 2, 3, 3], least=3)
    [(2, 5)]
    """
    found, start = [], 0
    for at in range(1, len(counts)):
        if counts[at] > counts[at - 1]:
            if at - start > least:
                found.append((start + 1, at))
            start = at
    return found


def shoulders_text(name: str, counts: Sequence[int], least: int) -> str:
    """How long the stretches are in which nothing new came, and then more did.

    >>> shoulders_text("sleep", [1, 2, 2, 2, 2, 3, 3], least=3)
    'sleep: 1 shoulder of 3 runs or more, the longest of 3, from run 3'
    """
    found = shoulders_of(counts, least)
    if not found:
        return f"{name}: no shoulder of {least} runs or more"
    start, end = max(found, key=lambda one: one[1] - one[0])
    return (
        f"{name}: {plural(len(found), 'shoulder')} of {least} runs or more, "
        f"the longest of {end - start}, from run {start + 1}"
    )


def value_roles_text(found: Sequence[ValueRole], title: str) -> str:
    """What triggers and suppresses each target, and what cannot be told."""
    parts = [title]
    for target in dict.fromkeys(one.target for one in found):
        roles = [one for one in found if one.target == target]
        shown = [one for one in roles if one.role in (TRIGGER, SUPPRESSOR)]
        rows = [
            (
                f"{one.dimension}={point_text({'': one.value})[1:]}",
                one.role,
                f"{short_percent(one.share)} [{short_percent(one.low)}, {short_percent(one.high)}]",
                short_percent(one.base),
                p_value(one.adjusted),
            )
            for one in sorted(shown, key=lambda one: (one.role != TRIGGER, one.adjusted))
        ]
        head = ("value", "role", "of these points", "chance", "p")
        unknown = sum(one.role == INSUFFICIENT for one in roles)
        rest = len(roles) - len(shown) - unknown
        lines = [f"{one_line(target)}\n  shown at {plural(roles[0].hits, 'point')}"]
        lines += [table(head, rows, right="  rrr")] if rows else []
        lines.append(
            f"no role shown: {plural(rest, 'value')}; insufficient data: {plural(unknown, 'value')}"
        )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)
