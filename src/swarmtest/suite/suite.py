"""What a suite is chosen from: a campaign's tests, and the targets that count.

Read in one pass. Tests that hit the same are one: the shortest of them stands for all. A test that
fails counts only for what no passing test hits: a suite of tests that fail is of no use to anyone
who wants to see what still works. For mutants it does not count at all: with most of them it fails
as it did. Faults are not in the table: see `choosing`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from pyroaring import BitMap

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Fault, Verdict
from swarmtest.core.targets import Source, Target
from swarmtest.coverage.scope import is_as_it_was
from swarmtest.store.interface import Store
from swarmtest.store.records import TrialRecord
from swarmtest.subjects.subject import Subject
from swarmtest.suite.cover import Bools

# -------------------------------------------------------------------------------------------------
# A suite as a value: its tests, what each adds, and what they keep together.


@dataclass(frozen=True)
class SuiteTest:
    """One test of a suite.

    >>> SuiteTest(17, {"steps": []}, before=40, size=3, adds=(Target("line", "a.py:1"),)).srr
    0.925
    """

    trial: int
    """Of the campaign that it comes from."""
    data: Any = field(repr=False)
    """The test, as JSON data."""
    before: int
    """The parts that it had."""
    size: int
    """The parts that it has."""
    adds: tuple[Target, ...] = field(default=(), repr=False)
    """What it hits that no test before it does."""
    hits: frozenset[int] = field(default=frozenset(), repr=False)
    """All that it hits, of what counts: places in `Suite.targets`."""
    fault: Fault | None = None
    """What it shows; None: it passes."""
    seconds: float = 0.0
    """What it took when it was last run, alone."""
    seconds_before: float = 0.0
    """What it took in the campaign."""
    complete: bool = True
    """Whether nothing more of it can go."""

    @property
    def srr(self) -> float:
        """The size reduction rate: the share of its parts that are gone (dissertation, 3.4.1)."""
        return 1 - self.size / self.before if self.before else 0.0


@dataclass(frozen=True)
class Suite:
    """Tests that keep what a campaign reached, or a share of it; `make_suite` makes one.

    >>> from swarmtest import Machine, MachineSubject, Target, action
    >>> class Stack(Machine):
    ...     @action
    ...     def push(self): pass
    >>> full = Target("event", "stack was full")
    >>> test = SuiteTest(17, {"steps": []}, before=40, size=32, adds=(full,), hits=frozenset({0}))
    >>> suite = Suite(
    ...     1, 0, MachineSubject(Stack), (test,), (full,), "exact", at_least=1, trials=500,
    ...     trials_seconds=2.5, chosen=1,
    ... )
    >>> suite.share, suite.parts, suite.proven
    (1.0, (40, 32), True)
    """

    campaign: int
    seed: int
    """Of the campaign."""
    subject: Subject = field(repr=False, compare=False)
    tests: tuple[SuiteTest, ...]
    """In the order of what they add per second."""
    targets: tuple[Target, ...] = field(repr=False)
    """All that counts."""
    method: str
    """How whole tests were chosen: ``exact``, ``greedy`` or, with a limit, ``greedy in time``."""
    at_least: int
    """So many whole tests are needed to keep what was asked for, as far as is known."""
    trials: int
    """The tests of the campaign."""
    trials_seconds: float
    """What those took."""
    chosen: int = 0
    """How many whole tests were chosen, before they were reduced."""
    chosen_kept: int = 0
    """What those kept."""
    faults: str = "xfail"
    """How tests of faults are written."""
    limit: float | None = None
    """The seconds that all may take; None: any time."""
    dropped: tuple[tuple[int, str], ...] = ()
    """Trials that were chosen and are not in the suite, with the reason."""
    notes: tuple[str, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether it is known that fewer whole tests do not keep as much."""
        return self.chosen == self.at_least

    @property
    def kept(self) -> frozenset[int]:
        """What the tests hit of the targets: places in `targets`."""
        return frozenset[int]().union(*(one.hits for one in self.tests))

    @property
    def share(self) -> float:
        """The share of the targets that is kept."""
        return len(self.kept) / len(self.targets) if self.targets else 1.0

    @property
    def by_kind(self) -> dict[str, tuple[int, int]]:
        """For each kind of targets how many are kept, of how many."""
        kept = Counter(self.targets[i].kind for i in self.kept)
        return {
            kind: (kept[kind], count)
            for kind, count in sorted(Counter(target.kind for target in self.targets).items())
        }

    @property
    def parts(self) -> tuple[int, int]:
        """The parts of all tests, before they were reduced and now."""
        return sum(one.before for one in self.tests), sum(one.size for one in self.tests)

    @property
    def seconds(self) -> tuple[float, float]:
        """What all tests took, in the campaign and when they were last run."""
        before = sum(one.seconds_before for one in self.tests)
        return before, sum(one.seconds for one in self.tests)

    @property
    def srr(self) -> float:
        """The size reduction rate of the tests together."""
        before, now = self.parts
        return 1 - now / before if before else 0.0

    def without(self, trials: Mapping[int, str]) -> Suite:
        """The suite without some tests, each with the reason why."""
        left = in_turn([one for one in self.tests if one.trial not in trials], self.targets)
        dropped = sorted({**dict(self.dropped), **trials}.items())
        return replace(self, tests=left, dropped=tuple(dropped))

    def in_time(self, seconds: Mapping[int, float]) -> Suite:
        """The suite within its limit, by what the tests of trials take: the last ones go."""
        if self.limit is None:
            return self
        left, gone = self.limit, dict[int, str]()
        for one in self.tests:
            left -= seconds.get(one.trial, 0.0)
            if left < 0:
                gone[one.trial] = f"when it was run, the {self.limit:g} s were over"
        return self.without(gone)


def in_turn(tests: Iterable[SuiteTest], targets: Sequence[Target]) -> tuple[SuiteTest, ...]:
    """The same tests, each with what it adds to those before it."""
    kept: frozenset[int] = frozenset()
    found = []
    for one in tests:
        new = one.hits - kept
        kept |= new
        found.append(replace(one, adds=tuple(targets[i] for i in sorted(new))))
    return tuple(found)


# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A test that may be chosen."""

    trial: int
    steps: int
    seconds: float
    """As it was recorded, at least a microsecond."""
    fault: str | None = None


@dataclass(frozen=True)
class Table:
    """Tests by targets."""

    tests: tuple[Candidate, ...]
    """Of those that hit the same one each, in order of preference."""
    targets: tuple[Target, ...]
    """What is hit by at least one of them, in the order of the store's ids."""
    hits: Bools
    trials: int
    """How many tests were looked at."""
    all_seconds: float
    """What they took together."""
    notes: tuple[str, ...] = ()


class _Merged:
    """Tests by what they hit: of those that hit the same, only the preferred one."""

    def __init__(self, fixed: Collection[int]) -> None:
        self._fixed = fixed
        self.tests: dict[bytes, Candidate] = {}

    def add(self, hits: bytes, one: Candidate) -> None:
        known = self.tests.get(hits)
        if known is None or self.rank(one) < self.rank(known):
            self.tests[hits] = one

    def rank(self, one: Candidate) -> tuple[bool, bool, int, int]:
        """What is there anyway, then passing before failing, short before long, then the first:
        not the quickest, which would be another one in each run of the same campaign."""
        return one.trial not in self._fixed, one.fault is not None, one.steps, one.trial


def read_table(
    store: Store,
    campaign: int,
    kinds: Collection[str] = (),
    patterns: Sequence[str] = (),
    *,
    fixed: Collection[int] = (),
    without: Collection[str] = (),
) -> Table:
    """The tests of a campaign and what they hit.

    `kinds`: only these kinds of targets; `patterns`: only targets whose ``kind:name`` one of these
    matches, like ``line:shop/*``. `fixed` are trials that will be in the suite anyway; tests that
    show a fault of `without` are not looked at.
    """
    ends = {False: _Merged(fixed), True: _Merged(fixed)}
    trials, seconds = 0, 0.0
    for trial in store.trials(campaign):
        if trial.verdict == Verdict.INVALID:
            continue
        one = _candidate(trial)
        trials, seconds = trials + 1, seconds + one.seconds
        if trial.hits and one.fault not in without:
            ends[one.fault is not None].add(trial.hits, one)
    rows = {hits: BitMap.deserialize(hits) for merged in ends.values() for hits in merged.tests}
    known = store.targets(BitMap.union(*rows.values())) if rows else {}
    wanted, notes = _wanted(store, campaign, known, kinds, patterns)
    not_for_failing = BitMap(id for id, target in known.items() if target.kind == "mutant")
    not_for_failing.update(*(rows[hits] for hits in ends[False].tests))
    merged = _Merged(fixed)
    for failed, found in ends.items():
        for hits, one in found.tests.items():
            ids = rows[hits] & wanted
            if failed:
                ids -= not_for_failing
            if ids:
                merged.add(ids.serialize(), one)
    return _table(known, merged, trials, seconds, notes)


def _candidate(trial: TrialRecord) -> Candidate:
    seconds = max((trial.wall_ns or trial.cpu_ns) / 1e9, 1e-6)
    return Candidate(trial.trial, trial.steps, seconds, trial.fault)


def _table(
    known: dict[int, Target],
    merged: _Merged,
    trials: int,
    seconds: float,
    notes: tuple[str, ...],
) -> Table:
    order = sorted(merged.tests, key=lambda ids: merged.rank(merged.tests[ids]))
    sets = [BitMap.deserialize(ids) for ids in order]
    used = sorted(BitMap.union(*sets)) if sets else []
    hits = np.zeros((len(sets), len(used)), bool)
    lookup = np.zeros(max(used, default=0) + 1, np.int64)
    lookup[used] = np.arange(len(used))
    for row, ids in enumerate(sets):
        hits[row, lookup[np.frombuffer(ids.to_array(), np.uint32)]] = True
    targets = tuple(known[id] for id in used)
    tests = tuple(merged.tests[ids] for ids in order)
    return Table(tests, targets, hits, trials, seconds, notes)


def _wanted(
    store: Store,
    campaign: int,
    known: dict[int, Target],
    kinds: Collection[str],
    patterns: Sequence[str],
) -> tuple[BitMap, tuple[str, ...]]:
    """The ids of the targets that count, and what a user should know of the others."""
    wanted_kinds = _meant(campaign, kinds, {target.kind for target in known.values()})
    old = _outdated(store.sources(campaign))
    wanted = BitMap()
    left_out = 0
    for id, target in known.items():
        if target.kind not in wanted_kinds:
            continue
        if patterns and not any(fnmatchcase(str(target), pattern) for pattern in patterns):
            continue
        if target.source in old:
            left_out += 1
            continue
        wanted.add(id)
    notes = []
    if left_out:
        files = ", ".join(sorted(set(old.values())))
        notes.append(
            f"{left_out:,} targets are left out: they lie in another version of {files} than there "
            "is now; a new campaign would know them"
        )
    return wanted, tuple(notes)


def _meant(campaign: int, kinds: Collection[str], there: Set[str]) -> Set[str]:
    """The kinds that are asked for: ``coverage`` is all that watching a program tells, and of
    ``fault`` there is nothing in the table."""
    if not kinds:
        return there
    groups = {"coverage": there - {"mutant", "event"}, "fault": set[str]()}
    found = set[str]()
    for kind in kinds:
        if kind not in there and not groups.get(kind) and kind != "fault":
            has = ", ".join(sorted(there)) or "none"
            near = "" if kind in groups else did_you_mean(kind, sorted({*there, *groups}))
            raise UserError(
                f"campaign {campaign} has hit no target of kind {kind!r}{near} (it has: {has})"
            )
        found |= groups.get(kind, {kind})
    return found


def _outdated(sources: Sequence[Source]) -> dict[str, str]:
    """The paths of the files that read otherwise now, by the id of the version that is gone."""
    return {source.id: source.path for source in sources if not is_as_it_was(source)}
