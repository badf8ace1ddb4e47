"""Campaigns, faults and features as text for a terminal, and tables that fit a screen."""

from __future__ import annotations

import datetime
import json
import shlex
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from swarmtest.campaign.liveness import status_in
from swarmtest.core.configuration import Configuration
from swarmtest.core.faults import VALUES
from swarmtest.core.formatting import part_percent, plural, printable_line
from swarmtest.core.result import Verdict
from swarmtest.core.space import Space
from swarmtest.store import DEFAULT_PATH
from swarmtest.store.interface import Store
from swarmtest.store.loose_blocks import MOST_TRIALS
from swarmtest.store.records import CampaignRecord, FaultRecord, note_of_kills
from swarmtest.ui.terminal.shown_code import failed_line, shown_lines
from swarmtest.ui.terminal.text import can_show, elided, kind_and_signature

_MAX_NAMES = 30
"""The most features that are named in a line."""


# Faults and configurations.


def command_text(words: str, store: str) -> str:
    """Return a command to type, with ``--store`` unless the store is the default one.

    >>> command_text("replay 1#3", ".swarmtest/swarmtest.db")
    'swarmtest replay 1#3'
    """
    is_default = store == DEFAULT_PATH
    return f"swarmtest {words}" + ("" if is_default else f" --store {shlex.quote(store)}")


def fault_lines(
    fault: FaultRecord,
    subject: Any,
    configuration: str,
    command: str,
    why: Sequence[str] = (),
    reduced: str = "",
    life: Sequence[str] = (),
    width: int = 0,
) -> list[str]:
    """Describe a fault: what, how often, its configuration, why, its test, and how to replay it.

    `reduced` is a line that says how the test was reduced; empty if it is as it was recorded.
    `life` are lines about its state and history. `width` is that of the screen; 0 means no limit.
    Commands and code are never wrapped, so that they can be copied.
    """
    lines = [
        f"fault {printable_line(fault.id)}  {kind_and_signature(fault.kind, fault.signature)}",
        f"  shown by {plural(fault.count, 'test')}, first by trial {fault.first_trial}; "
        f"shortest: {plural(fault.size, subject.part)}, trial {fault.trial}",
    ]
    lines += [f"  {line}" for line in life]
    if reduced:
        lines.append(f"  {reduced}")
    message = fault_message(fault)
    if message:
        lines.append(f"  message: {message}")
    line = failed_line(fault.details)
    if line:
        lines.append(f"  line: {line}")
    lines += [f"  {line}" for line in fault_values(fault, width)]
    if fault.also:
        lines.append(f"  also seen as {', '.join(fault.also)}")
    if configuration:
        lines.append(f"  found with: {configuration}")
    lines += [f"  {line}" for line in why]
    lines = [part for line in lines for part in indented_lines(line, width)]
    code = fault.code or test_code(fault.test, subject)
    if code:
        lines += ["", *(("    " + line).rstrip() for line in shown_lines(code)), ""]
    return [*lines, f"  replay: {command}"] if command else lines


def fault_message(fault: FaultRecord) -> str:
    """Return the full message of the exception; empty if the signature contains it."""
    lines = fault.details.partition(f"\n{VALUES}\n")[0].rstrip().splitlines()
    if fault.kind not in ("exception", "invariant", "memory") or not lines:
        return ""
    # The message begins after the last frame; pytest adds lines to those of failed assertions.
    frames = [i for i, line in enumerate(lines) if line.startswith("  ")]
    first = frames[-1] + 1 if frames else 0
    said = [line.strip() for line in lines[first if first < len(lines) else -1 :]]
    message = next(filter(None, said), "")
    if message.endswith(":"):  # what it is about begins in the next line
        message = " ".join(filter(None, said[:2]))
    return "" if message in fault.signature else message[:200]


def fault_values(fault: FaultRecord, screen: int = 0) -> list[str]:
    """Return the values of the assert that failed, a line each; empty if they are not known."""
    longest = min(screen - _VALUES_INDENT, _LONGEST_VALUE) if screen else _LONGEST_VALUE
    values = fault.details.partition(f"\n{VALUES}\n")[2].splitlines()
    width = max((len(line.partition(" = ")[0].strip()) for line in values), default=0)
    shown = []
    for line in values[:_MOST_VALUES]:
        name, _, value = line.strip().partition(" = ")
        shown.append(f"{name.ljust(min(width, _VALUE_COLUMN))} = {value}")
    return ["values:", *(f"  {_cut_end(line, longest)}" for line in shown)] if shown else []


_MOST_VALUES, _VALUE_COLUMN, _LONGEST_VALUE = 6, 30, 160
"""How many values of an assert are shown, and how much of each."""
_VALUES_INDENT = 4


def test_code(test: str | None, subject: Any) -> str:
    """Return a stored test as code; `subject` is the test's own, or a `StoredTests`."""
    return "" if test is None else str(subject.code(json.loads(test)))


def fault_configurations(
    store: Store, campaign: int, faults: Iterable[FaultRecord]
) -> dict[str, str]:
    """Return the configuration of each fault's shortest test, as text."""
    faults = list(faults)
    if not faults:
        return {}  # coverage that another tool measured has no space
    space = Space.from_json(store.campaign(campaign).space)
    packed = _configurations(store, campaign, {fault.trial for fault in faults})
    return {
        fault.id: configuration_text(Configuration.from_bytes(space, packed[fault.trial]))
        for fault in faults
    }


def _configurations(store: Store, campaign: int, trials: set[int]) -> dict[int, bytes]:
    """Return the configurations of some trials, without reading what they hit."""
    if store.summary(campaign)["trials"] <= MOST_TRIALS:
        return {trial: store.trial(campaign, trial).configuration for trial in trials}
    import numpy as np  # here, because `list` and short runs need no numpy

    found: dict[int, bytes] = {}
    block = None
    for trial in sorted(trials):
        if block is None or block.last < trial:
            block = next(store.blocks(campaign, after=trial - 1, hits=False), None)
        at = 0 if block is None else int(block.numbers.searchsorted(trial))
        if block is None or at == len(block) or block.numbers[at] != trial:
            found[trial] = store.trial(campaign, trial).configuration  # says that it is missing
        else:
            (found[trial],) = block.take(np.array([at])).configurations()
    return found


def configuration_text(configuration: Configuration) -> str:
    """Return a configuration as one line; with many features, only those that are on or off.

    >>> configuration_text(Space([f"f{i}" for i in range(50)]).configuration(["f3"]))
    '1 of 50 features: f3'
    """
    names = configuration.space.feature_names
    if len(names) <= _MAX_NAMES:
        return str(configuration).removesuffix(" (renormalised)")  # how weights are read
    off = [name for i, name in enumerate(names) if not configuration.bits >> i & 1]
    on = [name for i, name in enumerate(names) if configuration.bits >> i & 1]
    count = f"{len(on)} of {len(names)} features"
    if not off:
        return f"all {len(names)} features"
    named, word = (on, ":") if len(on) < len(off) else (off, ", not")
    more = f" and {len(named) - _MAX_NAMES} more" if len(named) > _MAX_NAMES else ""
    return f"{count}{word} {' '.join(named[:_MAX_NAMES])}{more}"


# Campaigns and features.


def campaign_rows(store: Store, campaigns: Iterable[CampaignRecord]) -> list[tuple[str, ...]]:
    """Return a row per campaign: number, time, subject, strategy, seed, status, tests, faults."""
    rows: list[tuple[str, ...]] = []
    for record in campaigns:
        summary = store.summary(record.id)
        rows.append(
            (
                str(record.id),
                datetime.datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M"),
                record.subject,
                record.label,
                str(record.seed),
                status_in(store, record),
                f"{summary['trials']:,}",
                str(len(store.faults(record.id))),
            )
        )
    return rows


def feature_rows(store: Store, campaign: int) -> list[tuple[str, ...]]:
    """Return a row per feature: how many tests allowed it, used it, and failed with or without."""
    space_data = store.campaign(campaign).space
    if not space_data["dimensions"]:
        return []  # coverage that another tool measured
    space = Space.from_json(space_data)
    summary, features = store.summary(campaign), store.feature_summary(campaign)
    failed_with = _failed_with(store, campaign, len(space.features)) if summary["failed"] else None
    tests, failed = summary["trials"], summary["failed"]
    rows: list[tuple[str, ...]] = []
    for i, name in enumerate(space.feature_names):
        allowed = int(features.enabled[i])
        with_it = 0 if failed_with is None else int(failed_with[i])
        rows.append(
            (
                name,
                part_percent(allowed, tests),
                part_percent(int(features.used[i]), tests) if features.known else "-",
                f"{int(features.steps[i]):,}" if features.known else "-",
                part_percent(with_it, allowed),
                part_percent(failed - with_it, tests - allowed),
            )
        )
    return rows


def _failed_with(store: Store, campaign: int, features: int) -> Any:
    """Return how many failed tests included each feature, as an array."""
    import numpy as np  # here, because `list` needs no numpy

    counts = np.zeros(features, np.int64)
    for block in store.blocks(campaign, hits=False):
        failed = block.packed(block.verdicts == Verdict.FAILED)
        counts += np.bitwise_count(block.enabled & failed).sum(axis=1, dtype=np.int64)
    return counts


def campaign_lines(record: CampaignRecord, summary: dict[str, int], status: str) -> list[str]:
    """Return the head of `swarmtest show`; `status` is that of the campaign, in words."""
    created = datetime.datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M:%S")
    part = record.options.get("part", "step")
    return [
        f"campaign {record.id}  {record.subject}",
        f"  strategy  {record.strategy}",
        *(f"  avoids    {text}" for text in record.avoids),
        f"  seed      {record.seed}",
        f"  status    {status}, begun {created}, "
        f"{record.wall_seconds:.1f} s wall, {summary['cpu_ns'] / 1e9:.1f} s CPU in tests",
        f"  tests     {summary['trials']:,}: {summary['passed']:,} passed, "
        f"{summary['failed']:,} failed, {summary['invalid']:,} invalid",
        f"  {plural(2, part)[2:]:<8}  {summary['steps']:,} executed, "
        f"{summary['skipped']:,} skipped",
        *([f"  note      {note_of_kills(record.killed)}"] if record.killed else []),
    ]


# Tables and sentences that fit the width of a screen.

_MIN_LAST_COLUMN = 12
"""The least width to which the last column of a table is cut."""
_MIN_CUT_COLUMN = 8
"""The least width to which a column is cut by `fitted`."""


def table(
    head: tuple[str, ...], rows: Sequence[tuple[str, ...]], right: str = "", width: int = 0
) -> str:
    """Return a plain text table; `right` has an ``r`` for each column that is aligned to the right.

    `width` is that of the screen: the last column is cut to fit into it. 0 means no limit.

    >>> print(table(("name", "n"), [("push", "12")], right=" r"))
    name   n
    ----  --
    push  12
    """
    rows = [tuple(map(printable_line, row)) for row in rows]
    if width:
        others = sum(max(len(row[i]) for row in [head, *rows]) + 2 for i in range(len(head) - 1))
        room = max(width - others, len(head[-1]), _MIN_LAST_COLUMN)
        rows = [(*row[:-1], _cut_end(row[-1], room)) for row in rows]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row: tuple[str, ...]) -> str:
        cells = [
            cell.rjust(width) if right[i : i + 1] == "r" else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(head), line(tuple("-" * width for width in widths)), *map(line, rows)])


def _cut_end(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def wrapped(text: str, width: int = 0, indent: str = "") -> str:
    """Wrap a sentence into lines of at most `width` columns; 0 means no limit.

    >>> print(wrapped("coin against all-on: more faults", 20, indent="  "))
    coin against all-on:
      more faults
    """
    if not width:
        return text
    return textwrap.fill(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def lines_of(text: str, width: int) -> list[str]:
    """Return the lines of `wrapped`, indented after the first; one line if `width` is too small."""
    return wrapped(text, width if width > _MIN_CUT_COLUMN else 0, indent="  ").split("\n")


def indented_lines(line: str, width: int) -> list[str]:
    """Wrap a line that is indented; its other lines are indented two more.

    >>> indented_lines("  triggers: push; suppressors: pop", 26)
    ['  triggers: push;', '    suppressors: pop']
    """
    indent = line[: len(line) - len(line.lstrip())]
    if not width or len(line) <= width:
        return [line]
    return wrapped(line, width, indent + "  ").split("\n")


def screen_table(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: str = "",
    width: int = 0,
    below: Sequence[int] = (),
) -> str:
    """Return a table that no screen breaks: what does not fit goes to a second line of its row.

    `below` are the columns of text for which that is done, those first that can be spared. `width`
    is that of the screen; 0 means no limit.

    >>> rows = [("4ee18053", "31", "a long signature of a fault")]
    >>> print(screen_table(("fault", "tests", "signature"), rows, " r", width=30, below=[2]))
    fault     tests
    --------  -----
    4ee18053     31
      a long signature of a fault
    """
    moved: list[int] = []
    text = fitted(head, rows, right, width)
    for column in below:
        if not width or widest(text) <= width:
            break
        moved.append(column)
        text = fitted(*_without(moved, head, rows, right), width)
    if width and widest(text) > width:  # the names are long: the middle of each is left out
        parts = _without(moved, head, rows, right)
        text = fitted(*parts, width, cut=[i for i, align in enumerate(parts[2]) if align != "r"])
    if not moved:
        return text
    lines = text.split("\n")
    above = len(lines) - len(rows)
    with_text = lines[:above]
    for line, row in zip(lines[above:], rows, strict=True):
        words = "  ".join(printable_line(row[i]) for i in sorted(moved))
        with_text += [line, *indented_lines(f"  {words}", width)]
    return "\n".join(with_text)


def _without(
    columns: Sequence[int], head: tuple[str, ...], rows: Sequence[tuple[str, ...]], right: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
    """Return a head, rows and alignments without some columns."""
    kept = [i for i in range(len(head)) if i not in columns]
    alignments = "".join(right[i : i + 1] or " " for i in kept)
    return tuple(head[i] for i in kept), [tuple(row[i] for i in kept) for row in rows], alignments


def fitted(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: str = "",
    width: int = 0,
    cut: Sequence[int] = (),
) -> str:
    """Return a table of at most `width` columns: wrap its heads, then cut the columns in `cut`.

    >>> print(fitted(("name", "tests per run"), [("push", "12")], right=" r", width=12))
          tests
            per
    name    run
    ----  -----
    push     12
    """
    unwrapped = table(head, rows, right)
    if not width or widest(unwrapped) <= width:
        return unwrapped
    lines = _head_lines(head, rows)
    body = list(rows)
    for column in cut:
        excess = widest(_with_head(lines, body, right)) - width
        longest = max((len(row[column]) for row in body), default=0)
        if excess > 0 and longest > _MIN_CUT_COLUMN:
            room = max(longest - excess, _MIN_CUT_COLUMN)
            body = [
                (*row[:column], _cut_middle(row[column], room), *row[column + 1 :]) for row in body
            ]
    return _with_head(lines, body, right)


def widest(text: str) -> int:
    """Return the length of the longest line."""
    return max(map(len, text.splitlines()), default=0)


def _head_lines(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    wraps = []
    for column, name in enumerate(head):
        cells = [len(row[column]) for row in rows]
        room = max([*cells, *map(len, name.split()), 1])
        wraps.append(textwrap.wrap(name, room, break_on_hyphens=False))
    height = max(map(len, wraps))
    return [*zip(*([""] * (height - len(wrap)) + wrap for wrap in wraps), strict=True)]


def _with_head(head: Sequence[tuple[str, ...]], rows: Sequence[tuple[str, ...]], right: str) -> str:
    first, rule, *rest = table(head[0], [*head[1:], *rows], right).splitlines()
    above = len(head) - 1
    return "\n".join([first, *rest[:above], rule, *rest[above:]])


def _cut_middle(text: str, room: int) -> str:
    short = elided(text, room)
    return short if can_show("…") else short.replace("…", "~")
