"""What a campaign found, and when: the raw material of growth curves and comparisons.

Tests are taken in order of their trial numbers, which is the order in which one worker would have
run them; how many workers there were, and who was faster, changes nothing here.

Tests whose coverage is missing still count as tests, cost their time and show their fault; they
add nothing to the targets, and `missing` tells how many there were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.store import Store
from swarmtest.targets import Target, unpack_hits


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
    record = store.campaign(campaign)
    times: list[int] = []
    steps: list[int] = []
    hits = np.zeros(1024, np.int64)
    first = np.zeros(1024, np.int64)
    faults: dict[str, list[int]] = {}
    missing, spent = 0, 0
    for trial in store.trials(campaign):
        at = len(times)
        spent += trial.cpu_ns
        if (tests is not None and at >= tests) or (
            cpu_seconds is not None and spent > cpu_seconds * 1e9
        ):
            break
        times.append(trial.cpu_ns)
        steps.append(trial.steps)
        missing += not trial.hits_are_known
        if trial.fault is not None:
            faults.setdefault(trial.fault, []).append(at)
        if trial.hits and trial.hits_are_known:
            ids = np.array(unpack_hits(trial.hits), np.int64)
            if len(ids) and ids[-1] >= len(hits):
                more = max(int(ids[-1]) + 1 - len(hits), len(hits))
                hits, first = np.pad(hits, (0, more)), np.pad(first, (0, more))
            fresh = ids[hits[ids] == 0]
            first[fresh] = at
            hits[ids] += 1
    signatures = {fault.id: fault.signature for fault in store.faults(campaign)}
    reached = np.flatnonzero(hits).tolist()
    targets = store.targets(reached)
    found = [Found(targets[id], int(hits[id]), int(first[id])) for id in reached if id in targets]
    found += [
        Found(Target("fault", id, detail=signatures.get(id, "")), len(at), at[0])
        for id, at in faults.items()
    ]
    found.sort(key=lambda one: (one.first, one.target))
    return Discovery(
        campaign,
        record.label,
        record.seed,
        np.cumsum(np.array(times, np.int64)) / 1e9,
        np.cumsum(np.array(steps, np.int64)),
        tuple(found),
        missing,
    )
