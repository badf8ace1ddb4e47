"""What all reports of a focused campaign share: rows of targets, targets never hit, the verdict.

Names, messages and signatures come from random tests and are treated as hostile: they reach a
terminal only through `plain`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path, PurePath

from swarmtest.core.formatting import plural
from swarmtest.focus.measurement import (
    HittingRatio,
    RatioSummary,
    hitting_ratio,
    rate_ratio,
    summarise,
)
from swarmtest.focus.outcome import Count, FocusedFault, FocusedTarget, FocusOutcome
from swarmtest.ui.terminal.text import one_line, spans

FAILED, WARNED, PASSED = "failed", "warned", "passed"

_COMMAND = re.compile(r"(?<!\S)::|##(?=\[)")
"""A line of a GitHub log that contains one of these is a command to the runner."""
_MOST_VARIED = "adaptive"
_FEW_CONFIGURATIONS = 0.05
"""Distinct configurations up to this share of the tests are few; more than ten never are."""
_ENOUGH_TESTS = 50
_ENOUGH_HITS = 20
_AGES = {"new": 0, "unknown": 1, "": 1, "known": 2, "old": 3}


def plain(text: str) -> str:
    """Put text of random tests on one line, without what a terminal or a CI runner would obey.

    >>> plain("lost\\n::error::found")
    'lost : :error::found'
    """
    return _COMMAND.sub(lambda match: " ".join(match[0]), one_line(text))


@dataclass(frozen=True)
class FocusRow:
    """Targets that equally many tests hit: neighbouring lines, mostly of one block."""

    targets: tuple[FocusedTarget, ...]

    @property
    def first(self) -> FocusedTarget:
        """Return the target that represents all of them."""
        return self.targets[0]

    @property
    def name(self) -> str:
        """Return the name of the row, as in ``shop/cart.py:100-104``."""
        return places(self.targets)

    @cached_property
    def ratio(self) -> HittingRatio:
        """Return the ratio of directed to undirected tests, by test."""
        return hitting_ratio(self.first.directed, self.first.undirected)

    @cached_property
    def rate(self) -> HittingRatio:
        """Return the ratio of directed to undirected tests, by CPU second."""
        return rate_ratio(self.first.directed, self.first.undirected)

    @cached_property
    def to_default(self) -> HittingRatio:
        """Return the ratio of directed tests to those with the default configuration."""
        return hitting_ratio(self.first.directed, self.first.default)


def focus_rows(targets: Iterable[FocusedTarget]) -> list[FocusRow]:
    """Return rows of targets by file and line; neighbours with equal counts share a row."""
    ordered = sorted(targets, key=lambda t: (t.file, t.line, t.target))
    return [FocusRow(tuple(group)) for _, group in groupby(ordered, key=_row_key)]


def _row_key(target: FocusedTarget) -> tuple[object, ...]:
    own_name = "" if is_line(target) else target.target
    counts = target.directed, target.undirected, target.default
    return own_name, target.file, target.function, target.proxy, target.dropped, counts


def is_line(target: FocusedTarget) -> bool:
    """Return whether the target is a line of a file."""
    return target.target.startswith("line:") and bool(target.file) and target.line > 0


def places(targets: Iterable[FocusedTarget]) -> str:
    """Name targets in as few words as possible.

    >>> lines = [FocusedTarget(f"line:cart.py:{n}", "cart.py", n) for n in (31, 40, 41)]
    >>> places([*lines, FocusedTarget("event:full")])
    'cart.py:31, 40-41; event:full'
    """
    by_file: dict[str, list[int]] = {}
    others = []
    for target in targets:
        if is_line(target):
            by_file.setdefault(target.file, []).append(target.line)
        else:
            others.append(target.target)
    lines = [f"{file}:{spans(set(numbers))}" for file, numbers in sorted(by_file.items())]
    return plain("; ".join([*lines, *others]))


def line_ranges(targets: Iterable[FocusedTarget]) -> list[tuple[str, int, int]]:
    """Return lines as (file, first, last), neighbours together; skip targets without a line."""
    ranges: list[tuple[str, int, int]] = []
    for file, line in sorted({(t.file, t.line) for t in targets if t.file and t.line > 0}):
        if ranges and ranges[-1][0] == file and line == ranges[-1][2] + 1:
            ranges[-1] = (file, ranges[-1][1], line)
        else:
            ranges.append((file, line, line))
    return ranges


def hits_of(target: FocusedTarget) -> Count:
    """Return the counts of all sorts of tests together."""
    counts = target.directed, target.undirected, target.default
    return Count(
        sum(c.hits for c in counts),
        sum(c.tests for c in counts),
        sum(c.cpu_seconds for c in counts),
    )


def never_hit(outcome: FocusOutcome) -> list[FocusedTarget]:
    """Return the targets that no test of any sort hit, in order."""
    missed = [target for target in outcome.targets if not hits_of(target).hits]
    return sorted(missed, key=lambda t: (t.file, t.line, t.target))


def aimed_at(outcome: FocusOutcome) -> list[FocusedTarget]:
    """Return the targets that were not dropped."""
    return [target for target in outcome.targets if not target.dropped]


def by_age(faults: Iterable[FocusedFault]) -> list[FocusedFault]:
    """Sort faults: new ones first, old ones last; frequent ones before rare ones."""
    return sorted(faults, key=lambda f: (_AGES[f.age], -f.record.count, f.record.id))


def is_failure(fault: FocusedFault) -> bool:
    """Return whether a fault may be new: it is not, only if the base version shows it too."""
    return fault.status != "old"


def status_word(fault: FocusedFault) -> str:
    """Return ``new fault`` and the like; just ``fault`` if the base version was not checked."""
    words = {"new": "new fault", "old": "old fault", "unknown": "perhaps new fault"}
    return (words | {"known": "known fault"}).get(fault.age, "fault")


@dataclass(frozen=True)
class FocusVerdict:
    """The result in one line."""

    level: str
    """`FAILED` for faults that may be new, `WARNED` for targets never hit, else `PASSED`."""
    text: str


def verdict(outcome: FocusOutcome) -> FocusVerdict:
    """Return the counts of faults by age, and how many of the targets were hit."""
    if not outcome.tests:
        return FocusVerdict(WARNED, "no test was run")
    total, missed = len(outcome.targets), len(never_hit(outcome))
    parts = [_fault_counts(outcome.faults)]
    if total:
        parts.append(f"{total - missed:,} of {plural(total, target_word(outcome))} hit")
    failed = any(map(is_failure, outcome.faults))
    level = FAILED if failed else WARNED if missed or not total else PASSED
    return FocusVerdict(level, "; ".join(parts))


def target_word(outcome: FocusOutcome) -> str:
    """Return the word for one of the targets."""
    if not all(map(is_line, outcome.targets)):
        return "target"
    return "changed line" if outcome.base else "line"


def _fault_counts(faults: Sequence[FocusedFault]) -> str:
    parts = []
    for status, singular, plural_form in (
        ("new", "new fault", "new faults"),
        ("unknown", "fault that may be new", "faults that may be new"),
        ("", "fault", "faults"),
        ("known", "known fault", "known faults"),
        ("old", "old fault", "old faults"),
    ):
        count = sum(fault.age == status for fault in faults)
        if count:
            parts.append(f"{count:,} {singular if count == 1 else plural_form}")
    return ", ".join(parts) or "no fault"


def summaries(rows: Sequence[FocusRow]) -> dict[str, RatioSummary]:
    """Summarise how directed tests compare with undirected and with default ones.

    Each row counts once: lines that are hit by the same tests are one observation, not many.
    """
    compared = [row.first for row in rows if row.first.directed.tests and not row.first.dropped]
    swarm = [t for t in compared if t.undirected.tests]
    timed = [t for t in swarm if t.directed.cpu_seconds and t.undirected.cpu_seconds]
    with_default = [t for t in compared if t.default.tests]
    all_summaries = {
        "fraction": summarise(
            [t.directed.fraction for t in swarm], [t.undirected.fraction for t in swarm]
        ),
        "per CPU s": summarise(
            [t.directed.per_cpu_second for t in timed], [t.undirected.per_cpu_second for t in timed]
        ),
        "to default": summarise(
            [t.directed.fraction for t in with_default], [t.default.fraction for t in with_default]
        ),
    }
    return {name: summary for name, summary in all_summaries.items() if summary.count}


def diversity(outcome: FocusOutcome) -> str:
    """Say how varied the directed tests were; empty if there were none."""
    if not outcome.directed_tests:
        return ""
    text = (
        f"{plural(outcome.distinct_configurations, 'distinct configuration')} in "
        f"{plural(outcome.directed_tests, 'directed test')}"
    )
    ways: dict[str, int] = {}
    for target in outcome.targets:
        if target.ways and target.function:
            ways[target.function] = max(target.ways, ways.get(target.function, 0))
    most = sorted(ways.items(), key=lambda item: (-item[1], item[0]))[:3]
    most_varied = [f"{plural(count, 'distinct way')} through {plain(name)}" for name, count in most]
    return "; ".join([text, *most_varied])


def cautions(outcome: FocusOutcome) -> list[str]:
    """Return warnings if focusing nearly repeated one test, or led away from the targets."""
    return [*_misled(outcome), *_repetitions(outcome)]


def _misled(outcome: FocusOutcome) -> list[str]:
    worse = [row for row in focus_rows(aimed_at(outcome)) if row.ratio.high < 1]
    if not worse:
        return []
    text = places(target for row in worse for target in row.targets)
    old = any(target.mapped or target.proxy for row in worse for target in row.targets)
    why = (
        ": the data comes from other code; use --fresh to run a baseline of this code"
        if old
        else ""
    )
    return [f"directed tests hit less often than undirected ones: {text}{why}"]


def _repetitions(outcome: FocusOutcome) -> list[str]:
    warnings = []
    few = min(max(1.0, _FEW_CONFIGURATIONS * outcome.directed_tests), 10.0)
    if outcome.directed_tests >= _ENOUGH_TESTS and outcome.distinct_configurations <= few:
        more = "" if outcome.strategy == _MOST_VARIED else f"; strategy {_MOST_VARIED} varies more"
        warnings.append(
            f"little variety: only {plural(outcome.distinct_configurations, 'configuration')} in "
            f"{plural(outcome.directed_tests, 'directed test')}{more}"
        )
    uniform = [
        target
        for target in aimed_at(outcome)
        if target.directed.hits >= _ENOUGH_HITS and target.configurations == 1 and target.ways == 1
    ]
    if uniform:
        warnings.append(
            f"always hit with the same configuration and in the same way: {places(uniform)}"
        )
    return warnings


def repository_path(file: str, top: Path, here: Path | None = None) -> str:
    """Return a file's path from the repository's top, with slashes; unchanged if it is elsewhere.

    `here` is the directory that relative paths start from; by default the top.

    >>> repository_path("cart.py", Path("/repo"), here=Path("/repo/shop"))
    'shop/cart.py'
    """
    whole = (here or top) / file
    inside = _without_dots(whole)
    try:
        return inside.relative_to(_without_dots(top)).as_posix()
    except ValueError:
        return PurePath(file).as_posix()


def _without_dots(path: Path) -> PurePath:
    """Resolve ``..`` in a path without following links."""
    parts: list[str] = []
    for part in path.absolute().parts:
        if part == "..":
            parts = parts[:-1] if len(parts) > 1 else parts
        else:
            parts.append(part)
    return PurePath(*parts)
