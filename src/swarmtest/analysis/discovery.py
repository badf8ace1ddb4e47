"""What a campaign found, and when: the data behind growth curves and comparisons.

Tests are taken in the order of their trial numbers, which is the order in which one worker would
have run them. So neither the number of workers nor their speed makes a difference.

Tests without coverage data still count as tests, with their time and their fault; they add no
targets, and `missing` says how many there were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.block_reading import among, known_hit_summary, known_hits, renumbered
from swarmtest.core.targets import Target
from swarmtest.store.interface import Store


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
    order = _read_order(store, campaign)
    count = len(order.numbers)
    if cpu_seconds is not None:
        count = int(np.searchsorted(np.cumsum(order.cpu_ns), cpu_seconds * 1e9, "right"))
    return _discovery(store, campaign, order, min(count, count if tests is None else tests), {})


def halves(store: Store, campaign: int) -> tuple[Discovery, Discovery]:
    """Return what the first half of the tests found, and what all found."""
    order = _read_order(store, campaign)
    targets: dict[int, Target] = {}
    count = len(order.numbers)
    whole = _discovery(store, campaign, order, count, targets)
    return _discovery(store, campaign, order, count // 2, targets), whole


@dataclass(frozen=True)
class _Order:
    """The tests of a campaign in order, without their hits."""

    numbers: npt.NDArray[np.int64]
    cpu_ns: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]
    known: npt.NDArray[np.bool_]
    """Whether the hits of each test are known."""
    fault: npt.NDArray[np.int32]
    """Index into `faults`; -1 if it passed."""
    faults: tuple[str, ...]


def _read_order(store: Store, campaign: int) -> _Order:
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    faults: dict[str, int] = {}
    for block in store.blocks(campaign, hits=False):
        fault = renumbered(block.faults, block.fault_index, faults)
        parts.append((block.numbers, block.cpu_ns, block.steps, block.hits_known, fault))
    if not parts:
        nothing = np.empty(0, np.int64)
        return _Order(nothing, nothing, nothing, nothing.astype(bool), nothing.astype(np.int32), ())
    numbers, cpu_ns, steps, known, fault = map(np.concatenate, zip(*parts, strict=True))
    return _Order(numbers, cpu_ns, steps, known, fault, tuple(faults))


def _discovery(
    store: Store, campaign: int, order: _Order, count: int, targets: dict[int, Target]
) -> Discovery:
    """Return what the first `count` tests found.

    `targets` is a cache of names, which is filled if it is empty.
    """
    record = store.campaign(campaign)
    signatures = {fault.id: fault.signature for fault in store.faults(campaign)}
    ids, hits, first = _hits_of(store, campaign, order, count)
    if not targets:
        targets.update(store.targets(ids.tolist()))
    found = [
        FoundTarget(targets[id], times, at)
        for id, times, at in zip(ids.tolist(), hits.tolist(), first.tolist(), strict=True)
        if id in targets
    ]
    faults = order.fault[:count]
    shown, at, times = np.unique(faults, return_index=True, return_counts=True)
    found += [
        FoundTarget(Target("fault", id, detail=signatures.get(id, "")), tests, start)
        for number, start, tests in zip(shown.tolist(), at.tolist(), times.tolist(), strict=True)
        if number >= 0 and (id := order.faults[number])
    ]
    found.sort(key=lambda item: (item.first, item.target))
    return Discovery(
        campaign,
        record.label,
        record.seed,
        np.cumsum(order.cpu_ns[:count]) / 1e9,
        np.cumsum(order.steps[:count]),
        tuple(found),
        count - int(order.known[:count].sum()),
    )


def _hits_of(
    store: Store, campaign: int, order: _Order, count: int
) -> tuple[npt.NDArray[np.int64], ...]:
    """Return the targets that the first `count` tests hit, how many did, and which was the first.

    The store knows this of all tests together, but that may be more tests by now.
    """
    summary = known_hit_summary(store, campaign, order.numbers[~order.known])
    targets, counts = summary.targets, summary.counts
    first = np.minimum(np.searchsorted(order.numbers, summary.first), max(count - 1, 0))
    if count < len(order.numbers) or store.summary(campaign)["trials"] > count:
        counts = _counts_of(store, campaign, order.numbers[:count], targets)
        found = counts > 0
        targets, counts, first = targets[found], counts[found], first[found]
    return targets, counts, first


def _counts_of(
    store: Store, campaign: int, numbers: npt.NDArray[np.int64], targets: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return how many of these tests hit each target.

    Only of the last block it matters which tests hit a target, not just how many.
    """
    counts = np.zeros(len(targets), np.int64)
    at = 0
    for block in store.blocks(campaign):
        if at >= len(numbers):
            break
        block = among(block, numbers[at:])
        hits = known_hits(block, store.url)
        _, places, here = np.intersect1d(
            targets, hits.targets, assume_unique=True, return_indices=True
        )
        counts[places] += hits.counts[here]
        at += block.size
    return counts
