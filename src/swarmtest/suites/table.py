"""What a suite is chosen from: a campaign's tests, and the targets that count.

Read in one pass. Tests that hit the same are one: the shortest of them stands for all. A test that
fails counts only for what no passing test hits: a suite of tests that fail is of no use to anyone
who wants to see what still works. For mutants it does not count at all: with most of them it fails
as it did. Faults are not in the table: see `choosing`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from pyroaring import BitMap

from swarmtest.errors import UserError, did_you_mean
from swarmtest.instrument.versions import is_as_it_was
from swarmtest.result import Verdict
from swarmtest.store import Store
from swarmtest.store.records import TrialRecord
from swarmtest.suites.cover import Bools
from swarmtest.targets import Source, Target


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
