"""A suite as a value, and the table of tests and targets that a suite is chosen from.

The table is read from the store in one pass; of a large campaign, only some tests are in it
(`candidates`). Tests that hit the same targets are merged, and the
shortest of them represents the others. A failing test counts only for targets that no passing test
hits, because a suite of failing tests does not show what still works. For mutants a failing test
does not count at all: with most mutants it fails exactly as it does without them. Faults are not in
the table; `selection` takes their tests separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from pyroaring import BitMap

from swarmtest.analysis.set_cover import Bools
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Fault, Verdict
from swarmtest.core.targets import Source, Target
from swarmtest.coverage.scope import is_as_it_was
from swarmtest.store.interface import Store
from swarmtest.store.records import TrialRecord
from swarmtest.subjects.subject import Subject
from swarmtest.suite.candidates import MANY, thin_campaign


@dataclass(frozen=True)
class SuiteTest:
    """One test of a suite.

    >>> SuiteTest(17, {"steps": []}, before=40, size=3, adds=(Target("line", "a.py:1"),)).srr
    0.925
    """

    trial: int
    """The number of the trial in its campaign."""
    data: Any = field(repr=False)
    """The test, as JSON data."""
    before: int
    """The number of parts before it was reduced."""
    size: int
    """The number of parts now."""
    adds: tuple[Target, ...] = field(default=(), repr=False)
    """The targets that it hits and no earlier test of the suite does."""
    hits: frozenset[int] = field(default=frozenset(), repr=False)
    """All targets that it hits, as indices into `Suite.targets`."""
    fault: Fault | None = None
    """The fault that it shows; None if it passes."""
    seconds: float = 0.0
    """How long its last run took, on its own."""
    seconds_before: float = 0.0
    """How long it took in the campaign."""
    complete: bool = True
    """Whether no part of it can be removed."""

    @property
    def srr(self) -> float:
        """The size reduction rate: the share of parts that were removed (dissertation, 3.4.1)."""
        return 1 - self.size / self.before if self.before else 0.0


@dataclass(frozen=True)
class Suite:
    """Tests that hit the targets that a campaign hit, or a share of them.

    `make_suite` builds one.

    >>> from swarmtest import Machine, action
    >>> from swarmtest.coverage import Target
    >>> from swarmtest.subjects import MachineSubject
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
    """The seed of the campaign."""
    subject: Subject = field(repr=False, compare=False)
    tests: tuple[SuiteTest, ...]
    """Ordered by the number of targets that each adds per second."""
    targets: tuple[Target, ...] = field(repr=False)
    """All targets that count."""
    method: str
    """How whole tests were chosen: ``exact``, ``greedy`` or, with a limit, ``greedy in time``."""
    at_least: int
    """A lower bound on the whole tests needed to keep as much as was asked for; 0: unknown."""
    trials: int
    """The number of tests in the campaign."""
    trials_seconds: float
    """How long all tests of the campaign took."""
    chosen: int = 0
    """How many whole tests were chosen, before they were reduced."""
    chosen_kept: int = 0
    """How many targets the whole tests hit."""
    faults: str = "xfail"
    """How tests of faults are written: see `SuiteRequest.faults`."""
    limit: float | None = None
    """The seconds that the whole suite may take; None: no limit."""
    dropped: tuple[tuple[int, str], ...] = ()
    """Trials that were chosen and are not in the suite, each with the reason."""
    notes: tuple[str, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether fewer whole tests are known not to keep as much."""
        return self.chosen == self.at_least

    @property
    def kept(self) -> frozenset[int]:
        """The targets that the tests hit, as indices into `targets`."""
        return frozenset[int]().union(*(test.hits for test in self.tests))

    @property
    def share(self) -> float:
        """The share of the targets that the tests hit."""
        return len(self.kept) / len(self.targets) if self.targets else 1.0

    @property
    def by_kind(self) -> dict[str, tuple[int, int]]:
        """For each kind of target: how many are kept, and how many there are."""
        kept = Counter(self.targets[i].kind for i in self.kept)
        return {
            kind: (kept[kind], count)
            for kind, count in sorted(Counter(target.kind for target in self.targets).items())
        }

    @property
    def parts(self) -> tuple[int, int]:
        """The number of parts of all tests, before they were reduced and now."""
        return sum(test.before for test in self.tests), sum(test.size for test in self.tests)

    @property
    def seconds(self) -> tuple[float, float]:
        """How long all tests took, in the campaign and when they were last run."""
        before = sum(test.seconds_before for test in self.tests)
        return before, sum(test.seconds for test in self.tests)

    @property
    def srr(self) -> float:
        """The size reduction rate of all tests together."""
        before, now = self.parts
        return 1 - now / before if before else 0.0

    def without(self, trials: Mapping[int, str]) -> Suite:
        """Return the suite without some trials, given with the reason for each."""
        left = with_new_targets(
            [test for test in self.tests if test.trial not in trials], self.targets
        )
        dropped = sorted({**dict(self.dropped), **trials}.items())
        return replace(self, tests=left, dropped=tuple(dropped))

    def in_time(self, seconds: Mapping[int, float]) -> Suite:
        """Return the suite cut to its limit, given how long each trial's test takes.

        The last tests, which add least per second, are dropped.
        """
        if self.limit is None:
            return self
        left, dropped = self.limit, dict[int, str]()
        for test in self.tests:
            left -= seconds.get(test.trial, 0.0)
            if left < 0:
                dropped[test.trial] = f"when it was run, the {self.limit:g} s were over"
        return self.without(dropped)


def with_new_targets(
    tests: Iterable[SuiteTest], targets: Sequence[Target]
) -> tuple[SuiteTest, ...]:
    """Return the same tests, each with the targets that it adds to those before it."""
    kept: frozenset[int] = frozenset()
    updated = []
    for test in tests:
        new = test.hits - kept
        kept |= new
        updated.append(replace(test, adds=tuple(targets[i] for i in sorted(new))))
    return tuple(updated)


# The table that a suite is chosen from.


@dataclass(frozen=True)
class Candidate:
    """A test that may be chosen."""

    trial: int
    steps: int
    seconds: float
    """How long it took in the campaign, at least a microsecond."""
    fault: str | None = None


@dataclass(frozen=True)
class HitTable:
    """Which tests hit which targets."""

    tests: tuple[Candidate, ...]
    """One for each distinct set of hits, in order of preference."""
    targets: tuple[Target, ...]
    """The targets that at least one of the tests hits, in the order of the store's ids."""
    hits: Bools
    """A row per test and a column per target."""
    trials: int
    """How many tests were read."""
    all_seconds: float
    """How long those took together."""
    notes: tuple[str, ...] = ()
    thinned: bool = False
    """Whether other tests were left out because there are too many."""


class _Merged:
    """The preferred test for each set of hits."""

    def __init__(self, fixed: Collection[int]) -> None:
        self._fixed = fixed
        self.tests: dict[bytes, Candidate] = {}

    def add(self, hits: bytes, test: Candidate) -> None:
        preferred = self.tests.get(hits)
        if preferred is None or self.rank(test) < self.rank(preferred):
            self.tests[hits] = test

    def rank(self, test: Candidate) -> tuple[bool, bool, int, int]:
        """Return the sort key of preference.

        Tests that are in the suite anyway come first, then passing before failing, short before
        long, and early before late. Time does not count: the quickest test would be a different
        one in each run of the same campaign.
        """
        return test.trial not in self._fixed, test.fault is not None, test.steps, test.trial


def read_table(
    store: Store,
    campaign: int,
    kinds: Collection[str] = (),
    patterns: Sequence[str] = (),
    *,
    fixed: Collection[int] = (),
    without: Collection[str] = (),
) -> HitTable:
    """Read the tests of a campaign and what they hit.

    `kinds` restricts the kinds of targets, and `patterns` the targets to those whose ``kind:name``
    matches one of them, like ``line:shop/*``. `fixed` are trials that will be in the suite anyway.
    Tests that show a fault of `without` are ignored.
    """
    by_failing = {False: _Merged(fixed), True: _Merged(fixed)}
    trials, seconds = 0, 0.0
    thinned = None
    if store.summary(campaign)["trials"] > MANY:
        thinned = thin_campaign(store, campaign, fixed, without)
    for trial in (
        store.trials(campaign)
        if thinned is None
        else store.chosen_trials(campaign, thinned.trials.tolist())
    ):
        if trial.verdict == Verdict.INVALID:
            continue
        test = _candidate(trial)
        trials, seconds = trials + 1, seconds + test.seconds
        if trial.hits and test.fault not in without:
            by_failing[test.fault is not None].add(trial.hits, test)
    rows = {hits: BitMap.deserialize(hits) for group in by_failing.values() for hits in group.tests}
    targets = store.targets(BitMap.union(*rows.values())) if rows else {}
    wanted, notes = _wanted(store, campaign, targets, kinds, patterns)
    not_for_failing = BitMap(id for id, target in targets.items() if target.kind == "mutant")
    not_for_failing.update(*(rows[hits] for hits in by_failing[False].tests))
    # Merge again: tests that differ only in targets that do not count are now the same.
    merged = _Merged(fixed)
    for failing, group in by_failing.items():
        for hits, test in group.tests.items():
            ids = rows[hits] & wanted
            if failing:
                ids -= not_for_failing
            if ids:
                merged.add(ids.serialize(), test)
    table = _table(targets, merged, trials, seconds, notes)
    if thinned is None:
        return table
    note = (
        f"the tests were chosen from {trials:,} of {thinned.tests:,}: for each target, the "
        "shortest that hit it, and those that hit most"
    )
    return replace(
        table,
        trials=thinned.tests,
        all_seconds=thinned.seconds,
        notes=(*notes, note),
        thinned=True,
    )


def _candidate(trial: TrialRecord) -> Candidate:
    seconds = max((trial.wall_ns or trial.cpu_ns) / 1e9, 1e-6)
    return Candidate(trial.trial, trial.steps, seconds, trial.fault)


def _table(
    all_targets: dict[int, Target],
    merged: _Merged,
    trials: int,
    seconds: float,
    notes: tuple[str, ...],
) -> HitTable:
    order = sorted(merged.tests, key=lambda ids: merged.rank(merged.tests[ids]))
    sets = [BitMap.deserialize(ids) for ids in order]
    used = sorted(BitMap.union(*sets)) if sets else []
    hits = np.zeros((len(sets), len(used)), bool)
    lookup = np.zeros(max(used, default=0) + 1, np.int64)
    lookup[used] = np.arange(len(used))
    for row, ids in enumerate(sets):
        hits[row, lookup[np.frombuffer(ids.to_array(), np.uint32)]] = True
    targets = tuple(all_targets[id] for id in used)
    tests = tuple(merged.tests[ids] for ids in order)
    return HitTable(tests, targets, hits, trials, seconds, notes)


def _wanted(
    store: Store,
    campaign: int,
    targets: dict[int, Target],
    kinds: Collection[str],
    patterns: Sequence[str],
) -> tuple[BitMap, tuple[str, ...]]:
    """Return the ids of the targets that count, and notes for the user on those left out."""
    wanted_kinds = _wanted_kinds(campaign, kinds, {target.kind for target in targets.values()})
    old = _outdated(store.sources(campaign))
    wanted = BitMap()
    left_out = 0
    for id, target in targets.items():
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


def _wanted_kinds(campaign: int, kinds: Collection[str], present: Set[str]) -> Set[str]:
    """Return the kinds of targets that `kinds` asks for; all that are present if it is empty.

    ``coverage`` means every kind that comes from watching a program. ``fault`` is allowed but adds
    nothing, because faults are not in the table.
    """
    if not kinds:
        return present
    groups = {"coverage": present - {"mutant", "event"}, "fault": set[str]()}
    wanted = set[str]()
    for kind in kinds:
        if kind not in present and not groups.get(kind) and kind != "fault":
            has = ", ".join(sorted(present)) or "none"
            near = "" if kind in groups else did_you_mean(kind, sorted({*present, *groups}))
            raise UserError(
                f"campaign {campaign} has hit no target of kind {kind!r}{near} (it has: {has})"
            )
        wanted |= groups.get(kind, {kind})
    return wanted


def _outdated(sources: Sequence[Source]) -> dict[str, str]:
    """Return the paths of files that have changed since, by the id of the recorded version."""
    return {source.id: source.path for source in sources if not is_as_it_was(source)}
