"""What all reports of focused testing say: rows of targets, what was never hit, the verdict.

Names, messages and signatures come from random tests and are treated as hostile: `plain` is the
only way in which they reach a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path, PurePath

from swarmtest.focus.measurement import (
    HittingRatio,
    RatioSummary,
    hitting_ratio,
    rate_ratio,
    summarise,
)
from swarmtest.focus.outcome import Count, FocusedFault, FocusedTarget, FocusOutcome
from swarmtest.ui.terminal.tables import plural
from swarmtest.ui.terminal.text import one_line, spans

FAILED, WARNED, PASSED = "failed", "warned", "passed"

_COMMAND = re.compile(r"(?<!\S)::|##(?=\[)")
"""With these a line of a GitHub log is a command to the runner."""
_MOST_VARIED = "adaptive"
_FEW_CONFIGURATIONS = 0.05
"""Of the tests; and never more than ten are few."""
_ENOUGH_TESTS = 50
_ENOUGH_HITS = 20
_AGES = {"new": 0, "unknown": 1, "": 1, "old": 2}


def plain(text: str) -> str:
    """Text of random tests on one line, without what a terminal or a CI runner would obey.

    >>> plain("lost\\n::error::found")
    'lost : :error::found'
    """
    return _COMMAND.sub(lambda found: " ".join(found[0]), one_line(text))


@dataclass(frozen=True)
class FocusRow:
    """Targets that were hit by equally many tests: neighbouring lines, mostly one block."""

    targets: tuple[FocusedTarget, ...]

    @property
    def first(self) -> FocusedTarget:
        """The one that stands for all."""
        return self.targets[0]

    @property
    def name(self) -> str:
        """``shop/cart.py:100-104``."""
        return places(self.targets)

    @cached_property
    def ratio(self) -> HittingRatio:
        """Directed over undirected, by test."""
        return hitting_ratio(self.first.directed, self.first.undirected)

    @cached_property
    def rate(self) -> HittingRatio:
        """Directed over undirected, by CPU second."""
        return rate_ratio(self.first.directed, self.first.undirected)

    @cached_property
    def to_default(self) -> HittingRatio:
        """Directed tests over those with the default configuration."""
        return hitting_ratio(self.first.directed, self.first.default)


def focus_rows(targets: Iterable[FocusedTarget]) -> list[FocusRow]:
    """Targets by file and line; neighbours that were hit alike are one row."""
    ordered = sorted(targets, key=lambda t: (t.file, t.line, t.target))
    return [FocusRow(tuple(group)) for _, group in groupby(ordered, key=_alike)]


def _alike(target: FocusedTarget) -> tuple[object, ...]:
    alone = "" if is_line(target) else target.target
    counts = target.directed, target.undirected, target.default
    return alone, target.file, target.function, target.stand_in, target.dropped, counts


def is_line(target: FocusedTarget) -> bool:
    """Whether it is a line of a file."""
    return target.target.startswith("line:") and bool(target.file) and target.line > 0


def places(targets: Iterable[FocusedTarget]) -> str:
    """Targets in as few words as possible.

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
    """Lines as (file, first, last), neighbours together; targets without a line are left out."""
    ranges: list[tuple[str, int, int]] = []
    for file, line in sorted({(t.file, t.line) for t in targets if t.file and t.line > 0}):
        if ranges and ranges[-1][0] == file and line == ranges[-1][2] + 1:
            ranges[-1] = (file, ranges[-1][1], line)
        else:
            ranges.append((file, line, line))
    return ranges


def hits_of(target: FocusedTarget) -> Count:
    """Tests of all sorts together."""
    counts = target.directed, target.undirected, target.default
    return Count(
        sum(c.hits for c in counts),
        sum(c.tests for c in counts),
        sum(c.cpu_seconds for c in counts),
    )


def never_hit(outcome: FocusOutcome) -> list[FocusedTarget]:
    """The targets that no test of any sort hit, in order."""
    missed = [target for target in outcome.targets if not hits_of(target).hits]
    return sorted(missed, key=lambda t: (t.file, t.line, t.target))


def aimed_at(outcome: FocusOutcome) -> list[FocusedTarget]:
    """The targets that were not dropped."""
    return [target for target in outcome.targets if not target.dropped]


def by_age(faults: Iterable[FocusedFault]) -> list[FocusedFault]:
    """New faults first, old ones last; frequent ones before rare ones."""
    return sorted(faults, key=lambda f: (_AGES[f.status], -f.record.count, f.record.id))


def is_failure(fault: FocusedFault) -> bool:
    """Whether it may be new: only what the base version shows too is not."""
    return fault.status != "old"


def age(fault: FocusedFault) -> str:
    """``new fault``; of one that was not looked for in the base version only ``fault``."""
    words = {"new": "new fault", "old": "old fault", "unknown": "perhaps new fault"}
    return words.get(fault.status, "fault")


@dataclass(frozen=True)
class Verdict:
    """The one line that matters."""

    level: str
    """`FAILED` for faults that may be new, `WARNED` for targets never hit, else `PASSED`."""
    text: str


def verdict(outcome: FocusOutcome) -> Verdict:
    """Faults by age, and how many of the targets were hit."""
    if not outcome.tests:
        return Verdict(WARNED, "no test was run")
    total, missed = len(outcome.targets), len(never_hit(outcome))
    parts = [_fault_counts(outcome.faults)]
    if total:
        parts.append(f"{total - missed:,} of {plural(total, things(outcome))} hit")
    failed = any(map(is_failure, outcome.faults))
    level = FAILED if failed else WARNED if missed or not total else PASSED
    return Verdict(level, "; ".join(parts))


def things(outcome: FocusOutcome) -> str:
    """What the targets are, one of them."""
    if not all(map(is_line, outcome.targets)):
        return "target"
    return "changed line" if outcome.base else "line"


def _fault_counts(faults: Sequence[FocusedFault]) -> str:
    told = []
    for status, one, many in (
        ("new", "new fault", "new faults"),
        ("unknown", "fault that may be new", "faults that may be new"),
        ("", "fault", "faults"),
        ("old", "old fault", "old faults"),
    ):
        count = sum(fault.status == status for fault in faults)
        if count:
            told.append(f"{count:,} {one if count == 1 else many}")
    return ", ".join(told) or "no fault"


def summaries(rows: Sequence[FocusRow]) -> dict[str, RatioSummary]:
    """Directed tests against undirected ones, by test and by CPU second, and against default ones.

    One number for each row: lines that are hit by the same tests are one observation, not many.
    """
    compared = [row.first for row in rows if row.first.directed.tests and not row.first.dropped]
    swarm = [t for t in compared if t.undirected.tests]
    timed = [t for t in swarm if t.directed.cpu_seconds and t.undirected.cpu_seconds]
    usual = [t for t in compared if t.default.tests]
    found = {
        "fraction": summarise(
            [t.directed.fraction for t in swarm], [t.undirected.fraction for t in swarm]
        ),
        "per CPU s": summarise(
            [t.directed.per_cpu_second for t in timed], [t.undirected.per_cpu_second for t in timed]
        ),
        "to default": summarise(
            [t.directed.fraction for t in usual], [t.default.fraction for t in usual]
        ),
    }
    return {name: one for name, one in found.items() if one.count}


def diversity(outcome: FocusOutcome) -> str:
    """How varied the directed tests were; empty when there was none."""
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
    told = [f"{plural(count, 'distinct way')} through {plain(name)}" for name, count in most]
    return "; ".join([text, *told])


def cautions(outcome: FocusOutcome) -> list[str]:
    """Warnings where focus became nearly one test repeated, or led away from its targets."""
    return [*_misled(outcome), *_repetitions(outcome)]


def _misled(outcome: FocusOutcome) -> list[str]:
    worse = [row for row in focus_rows(aimed_at(outcome)) if row.ratio.high < 1]
    if not worse:
        return []
    text = places(target for row in worse for target in row.targets)
    old = any(target.mapped or target.stand_in for row in worse for target in row.targets)
    why = ": the data is of other code; --fresh runs a baseline of this one" if old else ""
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
    same = [
        target
        for target in aimed_at(outcome)
        if target.directed.hits >= _ENOUGH_HITS and target.configurations == 1 and target.ways == 1
    ]
    if same:
        warnings.append(
            f"always hit with the same configuration and in the same way: {places(same)}"
        )
    return warnings


def repository_path(file: str, top: Path, here: Path | None = None) -> str:
    """A file's path from the repository's top, with slashes; as it is if it lies elsewhere.

    `here`: the directory that relative paths count from; the top if that is not said.

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
    parts: list[str] = []
    for part in path.absolute().parts:
        if part == "..":
            parts = parts[:-1] if len(parts) > 1 else parts
        else:
            parts.append(part)
    return PurePath(*parts)
