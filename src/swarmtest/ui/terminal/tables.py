"""Campaigns, faults and features as text for a terminal."""

from __future__ import annotations

import datetime
import json
import shlex
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.space import Space
from swarmtest.store import DEFAULT_PATH
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord, unpack_counts
from swarmtest.subjects.machine.test import MachineTest
from swarmtest.ui.terminal.text import can_show, elided, kind_and_signature

_LINES = 40
"""A test longer than this is cut in the report; `swarmtest replay` prints it whole."""

_NAMES = 30
"""Features whose names are told in a line."""
_NARROWEST = 12
"""Columns that the last one of a table has on the narrowest screen."""


def command_text(words: str, store: str) -> str:
    """A command to type, with ``--store`` where it is needed.

    >>> command_text("replay 1#3", ".swarmtest/swarmtest.db")
    'swarmtest replay 1#3'
    """
    usual = store == DEFAULT_PATH
    return f"swarmtest {words}" + ("" if usual else f" --store {shlex.quote(store)}")


def fault_lines(
    fault: FaultRecord,
    subject: Any,
    configuration: str,
    command: str,
    why: Sequence[str] = (),
    reduced: str = "",
) -> list[str]:
    """One fault: what it is, how often, under which configuration, why, its test, replay.

    `reduced`: a line that says how the test came to be, if it is not as it was recorded.
    """
    lines = [
        f"fault {fault.id}  {kind_and_signature(fault.kind, fault.signature)}",
        f"  shown by {plural(fault.count, 'test')}, first by trial {fault.first_trial}; "
        f"shortest: {plural(fault.size, _part(subject))}, trial {fault.trial}",
    ]
    if reduced:
        lines.append(f"  {reduced}")
    message = fault_message(fault)
    if message:
        lines.append(f"  message: {message}")
    if configuration:
        lines.append(f"  found with: {configuration}")
    lines += [f"  {line}" for line in why]
    code = test_code(fault.test, subject)
    if code:
        shown = code.rstrip().splitlines()
        lines += ["", *(("    " + line).rstrip() for line in shortened(shown)), ""]
    return [*lines, f"  replay: {command}"] if command else lines


def _part(subject: Any) -> str:
    """What tests are made of; a subject that cannot be loaded was a machine, most likely."""
    return subject.part if subject is not None else "step"


def fault_message(fault: FaultRecord) -> str:
    """What the exception said in full, where the signature leaves something out."""
    lines = fault.details.rstrip().splitlines()
    if fault.kind not in ("exception", "invariant", "memory") or not lines:
        return ""
    # The message begins after the last frame; pytest adds lines of its own to those of asserts.
    frames = [at for at, line in enumerate(lines) if line.startswith("  ")]
    first = frames[-1] + 1 if frames else 0
    said = lines[first if first < len(lines) else -1].strip()
    return "" if said in fault.signature else said[:200]


def test_code(test: str | None, subject: Any) -> str:
    """A saved test as code; as a plain list of steps when its subject cannot be loaded."""
    if test is None:
        return ""
    data = json.loads(test)
    if subject is not None:
        code: str = subject.code(data)
        return code
    if isinstance(data, dict) and "text" in data:
        return str(data["text"])
    if not isinstance(data, dict) or "format" not in data:
        return json.dumps(data, indent=1)
    steps = MachineTest.from_json(data).steps
    return "\n".join(f"{s.action}({', '.join(map(json.dumps, s.arguments))})" for s in steps)


def fault_configurations(
    store: Store, campaign: int, faults: Iterable[FaultRecord]
) -> dict[str, str]:
    """The configuration of each fault's shortest test, as text."""
    faults = list(faults)
    if not faults:
        return {}  # coverage that another tool measured has no space at all
    space = Space.from_json(store.campaign(campaign).space)
    return {
        fault.id: configuration_text(
            Configuration.from_bytes(space, store.trial(campaign, fault.trial).configuration)
        )
        for fault in faults
    }


def configuration_text(configuration: Configuration) -> str:
    """A configuration as a line; of one with many features only what it leaves out.

    >>> configuration_text(Space([f"f{i}" for i in range(50)]).configuration(["f3"]))
    '1 of 50 features: f3'
    """
    names = configuration.space.feature_names
    if len(names) <= _NAMES:
        return str(configuration)
    off = [name for i, name in enumerate(names) if not configuration.bits >> i & 1]
    on = [name for i, name in enumerate(names) if configuration.bits >> i & 1]
    count = f"{len(on)} of {len(names)} features"
    if not off:
        return f"all {len(names)} features"
    told, word = (on, ":") if len(on) < len(off) else (off, ", not")
    more = f" and {len(told) - _NAMES} more" if len(told) > _NAMES else ""
    return f"{count}{word} {' '.join(told[:_NAMES])}{more}"


def campaign_rows(store: Store) -> list[tuple[str, ...]]:
    """One row per campaign: number, when, subject, strategy, seed, status, tests, faults."""
    rows: list[tuple[str, ...]] = []
    for record in store.campaigns():
        summary = store.summary(record.id)
        rows.append(
            (
                str(record.id),
                datetime.datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M"),
                record.subject,
                record.label,
                str(record.seed),
                record.status,
                f"{summary['trials']:,}",
                str(len(store.faults(record.id))),
            )
        )
    return rows


def feature_rows(store: Store, campaign: int) -> list[tuple[str, ...]]:
    """One row per feature: how many tests allowed it, contained it, and failed with and without."""
    described = store.campaign(campaign).space
    if not described["dimensions"]:
        return []  # coverage that another tool measured
    space = Space.from_json(described)
    count = len(space.features)
    allowed, contained, times = [0] * count, [0] * count, [0] * count
    failed_with, failed = [0] * count, 0
    tests = told = 0
    for trial in store.trials(campaign):
        tests += 1
        bits = Configuration.from_bytes(space, trial.configuration).bits
        used = unpack_counts(trial.used)
        told += bool(used)
        failed += trial.verdict == 1
        for i in range(count):
            if bits >> i & 1:
                allowed[i] += 1
                failed_with[i] += trial.verdict == 1
            if i < len(used) and used[i]:
                contained[i] += 1
                times[i] += used[i]
    return [
        (
            name,
            _percent(allowed[i], tests),
            _percent(contained[i], tests) if told else "-",
            f"{times[i]:,}" if told else "-",
            _percent(failed_with[i], allowed[i]),
            _percent(failed - failed_with[i], tests - allowed[i]),
        )
        for i, name in enumerate(space.feature_names)
    ]


def campaign_lines(record: CampaignRecord, summary: dict[str, int]) -> list[str]:
    """The head of `swarmtest show`."""
    created = datetime.datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M:%S")
    part = record.options.get("part", "step")
    return [
        f"campaign {record.id}  {record.subject}",
        f"  strategy  {record.strategy}",
        *(f"  avoids    {text}" for text in record.avoids),
        f"  seed      {record.seed}",
        f"  status    {record.status}, begun {created}, "
        f"{record.wall_seconds:.1f} s wall, {summary['cpu_ns'] / 1e9:.1f} s CPU in tests",
        f"  tests     {summary['trials']:,}: {summary['passed']:,} passed, "
        f"{summary['failed']:,} failed, {summary['invalid']:,} invalid",
        f"  {plural(2, part)[2:]:<8}  {summary['steps']:,} executed, "
        f"{summary['skipped']:,} skipped",
    ]


def table(
    head: tuple[str, ...], rows: Sequence[tuple[str, ...]], right: str = "", width: int = 0
) -> str:
    """A plain text table; `right` has an ``r`` for each column that is set to the right.

    `width`: columns of the screen, into which the last column is fitted; 0: no limit.

    >>> print(table(("name", "n"), [("push", "12")], right=" r"))
    name   n
    ----  --
    push  12
    """
    if width:
        rest = sum(max(len(row[i]) for row in [head, *rows]) + 2 for i in range(len(head) - 1))
        room = max(width - rest, len(head[-1]), _NARROWEST)
        rows = [(*row[:-1], _elided(row[-1], room)) for row in rows]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row: tuple[str, ...]) -> str:
        cells = [
            cell.rjust(width) if right[i : i + 1] == "r" else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(head), line(tuple("-" * w for w in widths)), *map(line, rows)])


def _elided(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def shortened(lines: list[str]) -> list[str]:
    """Code that fits into a report; of a long test, how it begins and ends."""
    if len(lines) <= _LINES:
        return lines
    gone = len(lines) - _LINES + 1
    half = _LINES // 2
    return [*lines[:half], f"... {gone} more lines ...", *lines[half + gone :]]


def plural(count: int, word: str) -> str:
    """A count with its word.

    >>> plural(1, "test"), plural(1200, "test"), plural(2, "switch")
    ('1 test', '1,200 tests', '2 switches')
    """
    ending = "es" if word.endswith("ch") else "s"
    return f"{count:,} {word}{ending * (count != 1)}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


# -------------------------------------------------------------------------------------------------
# Sentences and tables made to fit the width of a screen.

_NARROWEST_FITTING = 8
"""Columns below which a name is not cut."""


def wrapped(text: str, width: int = 0, indent: str = "") -> str:
    """A sentence in lines of at most `width` columns; 0: no limit.

    >>> print(wrapped("coin against default: more faults", 20, indent="  "))
    coin against
      default: more
      faults
    """
    if not width:
        return text
    return textwrap.fill(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def lines_of(text: str, width: int) -> list[str]:
    """The lines of `wrapped`, those after the first indented; one if there is no room."""
    return wrapped(text, width if width > _NARROWEST_FITTING else 0, indent="  ").split("\n")


def fitted(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: str = "",
    width: int = 0,
    cut: Sequence[int] = (),
) -> str:
    """A table of at most `width` columns: heads take several lines, then columns in `cut` are cut.

    >>> print(fitted(("name", "tests per run"), [("push", "12")], right=" r", width=12))
          tests
            per
    name    run
    ----  -----
    push     12
    """
    whole = table(head, rows, right)
    if not width or widest(whole) <= width:
        return whole
    lines = _head_lines(head, rows)
    body = list(rows)
    for column in cut:
        over = widest(_with_head(lines, body, right)) - width
        longest = max((len(row[column]) for row in body), default=0)
        if over > 0 and longest > _NARROWEST_FITTING:
            room = max(longest - over, _NARROWEST_FITTING)
            body = [(*r[:column], _shortened(r[column], room), *r[column + 1 :]) for r in body]
    return _with_head(lines, body, right)


def widest(text: str) -> int:
    """The length of the longest line."""
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


def _shortened(text: str, room: int) -> str:
    short = elided(text, room)
    return short if can_show("…") else short.replace("…", "~")
