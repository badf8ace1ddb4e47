"""What a campaign found, and when: the data behind growth curves and comparisons.

Tests are taken in the order of their trial numbers, which is the order in which one worker would
have run them. So neither the number of workers nor their speed makes a difference.

Tests without coverage data still count as tests, with their time and their fault; they add no
targets, and `missing` says how many there were.
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
class FoundTarget:
    """One target (a fault is one too): how many tests hit it, and which was the first.

    >>> FoundTarget(Target("event", "full"), hits=3, first=17).hits
    3
    """

    target: Target
    hits: int
    first: int
    """Index into the arrays of `Discovery`; 0 is the first test."""


@dataclass(frozen=True)
class Discovery:
    """The tests of one campaign in order, and everything that they reached."""

    campaign: int
    strategy: str
    seed: int
    cpu_seconds: npt.NDArray[np.float64]
    """CPU time of all tests so far, after each test."""
    steps: npt.NDArray[np.int64]
    """Steps of all tests so far, after each test."""
    found: tuple[FoundTarget, ...]
    """Targets in order of discovery. A fault is ``Target("fault", id, detail=signature)``."""
    missing: int
    """How many tests have unknown coverage."""

    @property
    def tests(self) -> int:
        """Return how many tests there are."""
        return len(self.cpu_seconds)

    def of_kind(self, kind: str) -> list[FoundTarget]:
        """Return the targets found of one kind: ``fault``, ``line``, ``event``, ..."""
        return [found for found in self.found if found.target.kind == kind]

    def kinds(self) -> list[str]:
        """Return the kinds of the targets that were found, faults first."""
        kinds = {found.target.kind for found in self.found}
        return sorted(kinds, key=lambda kind: (kind != "fault", kind))

    def curve(self, kind: str) -> npt.NDArray[np.int64]:
        """Return how many targets of this kind were found so far, after each test."""
        new = np.zeros(self.tests, np.int64)
        for found in self.of_kind(kind):
            new[found.first] += 1
        return np.cumsum(new)


def discovery(
    store: Store, campaign: int, *, tests: int | None = None, cpu_seconds: float | None = None
) -> Discovery:
    """Read a campaign up to a number of tests or an amount of CPU time, whichever ends first."""
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
    """Return what the first half of the tests found, and what all found, in one pass."""
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
    """What the tests so far reached, without the targets' names."""

    def __init__(self) -> None:
        self._cpu_ns = array("q")
        self._steps = array("q")
        self._hits = np.zeros(1024, np.int64)
        self._first = np.zeros(1024, np.int64)
        self._faults: dict[str, list[int]] = {}
        self._missing = 0

    @property
    def tests(self) -> int:
        """Return how many tests were added."""
        return len(self._cpu_ns)

    def add(self, trial: TrialRecord) -> None:
        """Add the next test."""
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
        """Return what was found.

        `targets` is a cache of names, which is filled if it is empty.
        """
        targets = {} if targets is None else targets
        record = store.campaign(campaign)
        signatures = {fault.id: fault.signature for fault in store.faults(campaign)}
        reached = np.flatnonzero(self._hits).tolist()
        if not targets:
            targets.update(store.targets(reached))
        found = [
            FoundTarget(targets[id], hits, first)
            for id, hits, first in zip(
                reached, self._hits[reached].tolist(), self._first[reached].tolist(), strict=True
            )
            if id in targets
        ]
        found += [
            FoundTarget(Target("fault", id, detail=signatures.get(id, "")), count, first)
            for id, (first, count) in self._faults.items()
        ]
        found.sort(key=lambda item: (item.first, item.target))
        return Discovery(
            campaign,
            record.label,
            record.seed,
            np.cumsum(np.array(self._cpu_ns, np.int64)) / 1e9,
            np.cumsum(np.array(self._steps, np.int64)),
            tuple(found),
            self._missing,
        )
