"""The tests of a large campaign that a suite is chosen from.

Nearly every test of a long campaign hits another set of targets, and a cover of all of them would
take hours and gigabytes. A suite needs only a few: for each target, the shortest tests that hit it,
and the tests that hit most. So every target can still be kept, and a target that few tests hit has
all of them to choose from.

Blocks of trials are read once to find these tests, and no test is looked at by itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.core.result import Verdict
from swarmtest.store.blocks import BlockHits, TrialBlock
from swarmtest.store.blocks.hits import Bools, Ints, stable_order
from swarmtest.store.interface import Store

MANY = 20_000
"""All tests of smaller campaigns are candidates."""
_SHORTEST = 4
"""How many tests are kept for each target."""
_RICHEST = 4
"""How many tests of each block are kept because they hit most targets."""
_LOOKED_AT = 512
"""A target that many tests of a block hit is looked for only among so many of its shortest."""
_LONGEST = 1 << 21
_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class ThinnedCampaign:
    """The candidates of a large campaign."""

    trials: Ints
    """The numbers of the candidates, in order."""
    tests: int
    """How many valid tests the campaign has."""
    seconds: float
    """How long those took together."""


def thin_campaign(
    store: Store, campaign: int, fixed: Collection[int], without: Collection[str]
) -> ThinnedCampaign:
    """Choose candidates from all tests of a campaign.

    `fixed` are trials that will be in the suite anyway. Tests that show a fault of `without` are
    ignored.
    """
    best = {failing: _BestTests() for failing in (False, True)}
    chosen = [np.fromiter(fixed, np.int64)]
    tests, seconds = 0, 0.0
    for block in store.blocks(campaign):
        valid = block.verdicts != Verdict.INVALID
        took = np.where(block.wall_ns != 0, block.wall_ns, block.cpu_ns)[valid]
        tests += int(valid.sum())
        seconds += float(np.maximum(took / 1e9, 1e-6).sum())
        ignored = np.array([fault in without for fault in block.faults] + [False], bool)
        usable = valid & ~ignored[block.fault_index]
        failing = block.fault_index >= 0
        for is_failing, tests_of in best.items():
            group = usable & (failing == is_failing)
            if group.any():
                tests_of.add(block, group)
        passing = np.flatnonzero(usable & ~failing)
        richest = np.argsort(-_hits_of_tests(block.hits)[passing], kind="stable")[:_RICHEST]
        chosen.append(block.numbers[passing[richest]])
    trials = np.unique(
        np.concatenate([*chosen, *(tests_of.trials() for tests_of in best.values())])
    )
    return ThinnedCampaign(trials, tests, seconds)


def _hits_of_tests(hits: BlockHits) -> Ints:
    """Return how many targets each test of a block hit."""
    starts, positions, others = hits.stored
    sizes = np.bincount(hits.classes, minlength=len(others))
    signed = np.where(others, -sizes, sizes)
    listed = np.bincount(positions, np.repeat(signed, np.diff(starts)), minlength=hits.size)
    return int(sizes[others].sum()) + listed.astype(np.int64)


class _BestTests:
    """The shortest tests of each target, as keys that sort like the tests."""

    def __init__(self) -> None:
        self._keys = np.full((0, _SHORTEST), _NONE)

    def trials(self) -> Ints:
        """Return the numbers of the tests."""
        return np.unique(self._keys[self._keys != _NONE]) & ((1 << 40) - 1)

    def add(self, block: TrialBlock, group: Bools) -> None:
        """Add some tests of a block."""
        hits = block.hits
        if not len(hits.targets):
            return
        keys = np.minimum(block.steps, _LONGEST - 1) << 40 | block.numbers
        order = np.argsort(keys, kind="stable")
        of_class = _shortest_of_classes(hits, order[group[order]], keys)
        if hits.targets[-1] >= len(self._keys):
            more = max(int(hits.targets[-1]) + 1, 2 * len(self._keys)) - len(self._keys)
            self._keys = np.concatenate([self._keys, np.full((more, _SHORTEST), _NONE)])
        new = of_class[hits.classes]
        better = np.flatnonzero(new[:, 0] < self._keys[hits.targets, -1])
        rows = hits.targets[better]
        both = np.concatenate([self._keys[rows], new[better]], axis=1)
        self._keys[rows] = np.sort(both, axis=1)[:, :_SHORTEST]


def _shortest_of_classes(hits: BlockHits, order: Ints, keys: Ints) -> Ints:
    """Return for each class the keys of its first tests in an order; `_NONE` where there are none.

    `order`: positions of tests, the shortest first; tests that are not in it are left out.
    """
    classes = len(hits.starts) - 1
    rank = np.full(hits.size, hits.size, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    owners = np.repeat(np.arange(classes, dtype=np.int32), hits.class_counts)
    ranks = rank[hits.positions]
    found = np.full((classes, _SHORTEST), _NONE)
    near = ranks < min(_LOOKED_AT, len(order))
    _note_first(found, owners[near], ranks[near], keys[order])
    # A class that has too few among the shortest is looked for everywhere; it has few tests.
    open_classes = found[:, -1] == _NONE
    rest = open_classes[owners] & (ranks < len(order))
    _note_first(found, owners[rest], ranks[rest], keys[order])
    return found


def _note_first(
    found: Ints, owners: npt.NDArray[np.int32], ranks: npt.NDArray[np.int32], keys: Ints
) -> None:
    """Write the keys of the lowest ranks of each owner into its row."""
    by_rank = stable_order(ranks, int(ranks.max(initial=0)) + 1)
    by_owner = by_rank[stable_order(owners[by_rank], len(found))]
    sorted_owners = owners[by_owner]
    starts = np.searchsorted(sorted_owners, sorted_owners)
    places = np.arange(len(by_owner)) - starts
    first = places < _SHORTEST
    found[sorted_owners[first], places[first]] = keys[ranks[by_owner[first]]]
