"""The outcome of a focused campaign as JSON, and as Markdown for job summaries and pull requests.

In Markdown, all text that comes from random tests is set as code and escaped, so that it cannot
start Markdown, HTML or a mention. The whole stays below the 65,536 characters that a comment may
have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from swarmtest.core.formatting import duration, p_value, plural
from swarmtest.focus.measurement import HittingRatio, hitting_ratio, rate_ratio, ratio_text
from swarmtest.focus.outcome import FocusedFault, FocusedTarget, FocusOutcome
from swarmtest.focus.views.rows import (
    FAILED,
    PASSED,
    WARNED,
    FocusRow,
    aimed_at,
    by_age,
    cautions,
    diversity,
    focus_rows,
    never_hit,
    places,
    status_word,
    summaries,
    target_word,
    verdict,
)
from swarmtest.focus.views.terminal import (
    bare_ratio,
    dropped_line,
    mapped_lines,
    percent,
    tests_that_show,
    unreached_line,
)
from swarmtest.ui.terminal.reduced_tests import reduction_data
from swarmtest.ui.terminal.text import elided, json_text, one_line, printable

# JSON.


def focus_json(outcome: FocusOutcome) -> str:
    """Return the outcome with ratios, summaries and the verdict as JSON; NaN becomes null."""
    return json_text(focus_data(outcome))


def focus_data(outcome: FocusOutcome) -> dict[str, Any]:
    """Return the data of `focus_json` as dictionaries and lists."""
    result = verdict(outcome)
    plain = {
        name: value
        for name, value in vars(outcome).items()
        if name not in ("targets", "faults") and not name.startswith("_")
    }
    return {
        **plain,
        "verdict": result.level,
        "verdict_text": result.text,
        "targets": [_target_data(target) for target in outcome.targets],
        "never_hit": [target.target for target in never_hit(outcome)],
        "summary": {
            name.replace(" ", "_"): asdict(summary)
            for name, summary in summaries(focus_rows(aimed_at(outcome))).items()
        },
        "warnings": cautions(outcome),
        "faults": [_fault_data(fault) for fault in by_age(outcome.faults)],
    }


def _target_data(target: FocusedTarget) -> dict[str, Any]:
    plain = asdict(target)
    plain["stand_in"] = plain.pop("proxy")  # programs know it by this older name
    return {
        **plain,
        "ratio": _ratio_data(hitting_ratio(target.directed, target.undirected)),
        "rate_ratio": _ratio_data(rate_ratio(target.directed, target.undirected)),
        "ratio_to_default": _ratio_data(hitting_ratio(target.directed, target.default)),
    }


def _ratio_data(ratio: HittingRatio) -> dict[str, float]:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high}


def _fault_data(fault: FocusedFault) -> dict[str, Any]:
    record = fault.record
    return {
        "id": record.id,
        "kind": record.kind,
        "signature": record.signature,
        "details": record.details,
        "count": record.count,
        "trial": record.trial,
        "status": fault.status,
        "known": fault.known,
        "life": list(fault.life),
        "why_unknown": fault.why_unknown,
        "file": fault.location[0] if fault.location else None,
        "line": fault.location[1] if fault.location else None,
        "replay": fault.replay,
        "reduced": reduction_data(fault.reduced) if fault.reduced else None,
        "directed": asdict(fault.directed),
        "undirected": asdict(fault.undirected),
    }


# Markdown.

_SIGNS = {FAILED: "❌", WARNED: "⚠️", PASSED: "✅"}
_SPECIAL = re.compile(
    r"[&<>\"'|`*\[\]\\~$@#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\."
)
"""Characters with a meaning in Markdown, HTML or on GitHub, where they have one."""
_OPEN_ROWS = 8
_LONGEST, _LONGEST_LIST, _LONGEST_BLOCK = 200, 600, 3_000
_LONGEST_COMMENT = 65_000


@dataclass(frozen=True)
class _Limits:
    """How much is shown."""

    rows: int
    faults: int
    details: int
    """The number of faults whose details are shown."""
    lines: int


_LIMITS = (_Limits(100, 30, 10, 10), _Limits(30, 10, 3, 5), _Limits(5, 5, 0, 2))
"""Tried in this order; the last one fits whatever tests write."""


def markdown_summary(outcome: FocusOutcome) -> str:
    """Return the verdict, faults, targets never hit, all targets, and how to replay faults."""
    texts = (_summary(outcome, limits) for limits in _LIMITS)
    return next(text for text in texts if len(text) <= _LONGEST_COMMENT)


def _summary(outcome: FocusOutcome, limits: _Limits) -> str:
    result = verdict(outcome)
    parts = [
        f"## {_SIGNS[result.level]} swarmtest focus: {result.text}",
        _subject_line(outcome),
        _faults(outcome, limits),
        _never_hit(outcome, limits),
        _targets(outcome, limits),
        _remarks(outcome, limits),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def code(text: str, most: int = _LONGEST) -> str:
    """Return text as code, for a line or a table cell; the middle of a long text is left out.

    >>> code("a|b <i>")
    '<code>a&#124;b &#60;i&#62;</code>'
    """
    return f"<code>{_escaped(elided(one_line(text), most))}</code>"


def block(text: str, language: str = "") -> str:
    """Return lines as a fenced code block; the fence is longer than any in the text."""
    text = printable(text).rstrip()
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", text)


def _subject_line(outcome: FocusOutcome) -> str:
    about = f", changes since {code(outcome.base)}" if outcome.base else ""
    invalid = f", {outcome.invalid:,} invalid" if outcome.invalid else ""
    return (
        f"{code(outcome.subject)}{about}: {plural(outcome.tests, 'test')} "
        f"({outcome.directed_tests:,} directed{invalid}) in {duration(outcome.wall_seconds)}"
        f"{' (interrupted)' if outcome.interrupted else ''}, "
        f"strategy {code(outcome.strategy)}, campaign {outcome.campaign}."
    )


# Markdown: faults.


def _faults(outcome: FocusOutcome, limits: _Limits) -> str:
    ordered = by_age(outcome.faults)
    if not ordered:
        return ""
    parts = [
        _fault(fault, with_details=number < limits.details)
        for number, fault in enumerate(ordered[: limits.faults])
    ]
    if len(ordered) > limits.faults:
        parts.append(f"… and {plural(len(ordered) - limits.faults, 'more fault')}.")
    if any(fault.replay for fault in ordered):
        parts.append(
            f"Replaying needs the store of this run: keep {code('.swarmtest')} of the job."
        )
    return "\n\n".join(["### Faults", *parts])


def _fault(fault: FocusedFault, with_details: bool) -> str:
    record = fault.record
    where = ""
    if fault.location:
        where = f" at {code(f'{fault.location[0]}:{fault.location[1]}')}"
    title = f"**{status_word(fault).capitalize()}** {code(record.signature)}{where}"
    lines = [title, f"Shown by {tests_that_show(fault)}."]
    if fault.why_unknown:
        lines.append(f"Whether it is new is not known: {code(fault.why_unknown)}")
    parts = ["<br>\n".join(lines)]
    if fault.replay:
        parts.append(block(elided(one_line(fault.replay), _LONGEST_LIST), "sh"))
    if with_details and record.details.strip():
        shown = block(_cut(record.details))
        parts.append(f"<details><summary>Details</summary>\n\n{shown}\n\n</details>")
    return "\n\n".join(parts)


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_BLOCK:
        return text
    half = _LONGEST_BLOCK // 2
    return f"{text[:half]}\n... {len(text) - 2 * half:,} characters ...\n{text[-half:]}"


# Markdown: targets.


def _never_hit(outcome: FocusOutcome, limits: _Limits) -> str:
    missed = never_hit(outcome)
    if not missed:
        return ""
    by_file = [[*group] for _, group in groupby(missed, key=lambda target: target.file)]
    lines = [f"- {code(places(targets), _LONGEST_LIST)}" for targets in by_file[: limits.lines]]
    if len(by_file) > limits.lines:
        left = sum(map(len, by_file[limits.lines :]))
        lines.append(f"- … and {left:,} more in {len(by_file) - limits.lines} other files")
    title = f"### Never hit: {plural(len(missed), target_word(outcome))}"
    return "\n".join([title, "", *lines])


def _targets(outcome: FocusOutcome, limits: _Limits) -> str:
    rows = focus_rows(aimed_at(outcome))
    if not rows:
        return ""
    body = "\n".join([_table(rows[: limits.rows], limits), *_ratios(rows)])
    if len(rows) > limits.rows:
        body += f"\n\n… and {len(rows) - limits.rows:,} more rows."
    title = f"Targets: {plural(len(outcome.targets), target_word(outcome))}"
    if len(rows) <= _OPEN_ROWS:
        return f"### {title}\n\n{body}"
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _table(rows: Sequence[FocusRow], limits: _Limits) -> str:
    head = ("target", "function", "undirected", "all on", "directed", "ratio", "per CPU s")
    lines = [_line(head), "|---|---|---:|---:|---:|---|---:|"]
    lines += [
        _line(
            (
                code(row.name) + (" ¹" if row.first.proxy else ""),
                code(row.first.function) if row.first.function else "",
                percent(row.first.undirected),
                percent(row.first.default),
                percent(row.first.directed),
                str(row.ratio).replace("[", "(").replace("]", ")"),
                bare_ratio(row.rate).replace(">=", "≥").replace("<=", "≤"),
            )
        )
        for row in rows
    ]
    if any(row.first.proxy for row in rows):
        names = dict.fromkeys(row.first.proxy for row in rows if row.first.proxy)
        proxies = "; ".join(code(name) for name in [*names][: limits.lines])
        lines += ["", f"¹ Too little data of its own: aimed at through {proxies}."]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ratios(rows: Sequence[FocusRow]) -> list[str]:
    """Return a sentence about how much more often directed tests hit."""
    summary = summaries(rows).get("fraction")
    if summary is None:
        return []
    improved = f"{round(summary.improved * summary.count)} of {plural(summary.count, 'target')}"
    text = f"Directed tests hit {improved} more often than undirected ones"
    if summary.count > summary.unbounded:
        quartiles = " / ".join(
            ratio_text(value)
            for value in (summary.lower_quartile, summary.median, summary.upper_quartile)
        )
        text += f": mean ratio {ratio_text(summary.mean)}, quartiles {quartiles}"
    return [
        "",
        f"{text} (Wilcoxon p {p_value(summary.p)}; lines hit by the same tests count once).",
    ]


# Markdown: everything else.


def _facts(outcome: FocusOutcome) -> list[str]:
    return [
        diversity(outcome),
        *mapped_lines(outcome),
        dropped_line(outcome),
        unreached_line(outcome),
    ]


def _remarks(outcome: FocusOutcome, limits: _Limits) -> str:
    remarks = [
        *(f"⚠️ {code(line)}" for line in cautions(outcome)),
        *(code(line, _LONGEST_LIST) for line in _facts(outcome) if line),
        *(f"not aimed at: {code(line)}" for line in outcome.unusable[: limits.lines]),
        *(f"note: {code(line)}" for line in outcome.notes[: limits.lines]),
    ]
    left = sum(max(len(lines) - limits.lines, 0) for lines in (outcome.unusable, outcome.notes))
    if left:
        remarks.append(f"… and {left:,} more")
    shown = [f"- {line}" for line in remarks if line]
    if not shown:
        return ""
    body = "\n".join(shown)
    return f"<details><summary>About this run</summary>\n\n{body}\n\n</details>"
