"""What a campaign found, and when: the raw material of growth curves and comparisons.

Tests are taken in order of their trial numbers, which is the order in which one worker would have
run them; how many workers there were, and who was faster, changes nothing here.

Tests whose coverage is missing still count as tests, cost their time and show their fault; they
add nothing to the targets, and `missing` tells how many there were.
"""

from __future__ import annotations

import copy
import itertools
from array import array
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.trial_columns import hit_ids
from swarmtest.core.targets import Target
from swarmtest.store.interface import Store
from swarmtest.store.records import TrialRecord


@dataclass(frozen=True)
class Found:
    """One target (a fault is one too): in how many tests, and first in which.

    >>> Found(Target("event", "full"), hits=3, first=17).hits
    3
    """

    target: Target
    hits: int
    first: int
    """Index into the arrays of `Discovery`: 0 is the first test."""


@dataclass(frozen=True)
class Discovery:
    """The tests of one campaign in order, and everything that they reached."""

    campaign: int
    strategy: str
    seed: int
    cpu_seconds: npt.NDArray[np.float64]
    """After each test: CPU time of all tests so far."""
    steps: npt.NDArray[np.int64]
    """After each test: steps of all tests so far."""
    found: tuple[Found, ...]
    """In order of discovery. A fault is ``Target("fault", id, detail=signature)``."""
    missing: int
    """Tests whose coverage is not known."""

    @property
    def tests(self) -> int:
        """How many tests there are."""
        return len(self.cpu_seconds)

    def of_kind(self, kind: str) -> list[Found]:
        """What was found of one kind: ``fault``, ``line``, ``event``, ..."""
        return [one for one in self.found if one.target.kind == kind]

    def kinds(self) -> list[str]:
        """The kinds of which something was found, faults first."""
        kinds = {one.target.kind for one in self.found}
        return sorted(kinds, key=lambda kind: (kind != "fault", kind))

    def curve(self, kind: str) -> npt.NDArray[np.int64]:
        """After each test: how many targets of this kind were found so far."""
        new = np.zeros(self.tests, np.int64)
        for one in self.of_kind(kind):
            new[one.first] += 1
        return np.cumsum(new)


def discovery(
    store: Store, campaign: int, *, tests: int | None = None, cpu_seconds: float | None = None
) -> Discovery:
    """Read a campaign, as far as so many tests or so much CPU time go (whichever ends first)."""
    scan = _Scan()
    spent = 0
    for trial in store.trials(campaign):
        spent += trial.cpu_ns
        if (tests is not None and scan.tests >= tests) or (
            cpu_seconds is not None and spent > cpu_seconds * 1e9
        ):
            break
        scan.add(trial)
    return scan.discovery(store, campaign)


def halves(store: Store, campaign: int) -> tuple[Discovery, Discovery]:
    """What the first half of the tests found, and what all did, in one pass over the tests."""
    count = store.summary(campaign)["trials"]
    scan, half = _Scan(), _Scan()
    # A campaign that is still running may have more tests by the time they are read.
    for trial in itertools.islice(store.trials(campaign), count):
        if scan.tests == count // 2:
            half = copy.deepcopy(scan)
        scan.add(trial)
    targets: dict[int, Target] = {}
    whole = scan.discovery(store, campaign, targets)
    return half.discovery(store, campaign, targets), whole


class _Scan:
    """What tests reached so far, without the targets' names."""

    def __init__(self) -> None:
        self._cpu_ns = array("q")
        self._steps = array("q")
        self._hits = np.zeros(1024, np.int64)
        self._first = np.zeros(1024, np.int64)
        self._faults: dict[str, list[int]] = {}
        self._missing = 0

    @property
    def tests(self) -> int:
        return len(self._cpu_ns)

    def add(self, trial: TrialRecord) -> None:
        """Take the next test."""
        at = self.tests
        self._cpu_ns.append(trial.cpu_ns)
        self._steps.append(trial.steps)
        self._missing += not trial.hits_are_known
        if trial.fault is not None:
            self._faults.setdefault(trial.fault, [at, 0])[1] += 1
        ids = hit_ids(trial)
        if not len(ids):
            return
        more = int(ids[-1]) + 1 - len(self._hits)
        if more > 0:
            room = (0, max(more, len(self._hits)))
            self._hits, self._first = np.pad(self._hits, room), np.pad(self._first, room)
        self._first[ids[self._hits[ids] == 0]] = at
        self._hits[ids] += 1

    def discovery(
        self, store: Store, campaign: int, targets: dict[int, Target] | None = None
    ) -> Discovery:
        """What was found; `targets`: names that are known already, or will be afterwards."""
        targets = {} if targets is None else targets
        record = store.campaign(campaign)
        signatures = {fault.id: fault.signature for fault in store.faults(campaign)}
        reached = np.flatnonzero(self._hits).tolist()
        if not targets:
            targets.update(store.targets(reached))
        found = [
            Found(targets[id], hits, first)
            for id, hits, first in zip(
                reached, self._hits[reached].tolist(), self._first[reached].tolist(), strict=True
            )
            if id in targets
        ]
        found += [
            Found(Target("fault", id, detail=signatures.get(id, "")), count, first)
            for id, (first, count) in self._faults.items()
        ]
        found.sort(key=lambda one: (one.first, one.target))
        return Discovery(
            campaign,
            record.label,
            record.seed,
            np.cumsum(np.array(self._cpu_ns, np.int64)) / 1e9,
            np.cumsum(np.array(self._steps, np.int64)),
            tuple(found),
            self._missing,
        )
