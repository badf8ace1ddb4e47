"""The hits of a block, by target, and how to turn hits by trial round.

Targets that were hit by the same trials of a block form a *class*, which is kept once: the lines of
a basic block, for example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.core.seeds import mixed_array

BLOCK_SIZE = 4096
"""Trials of a full block. Measured: larger ones save little space, and make single trials slow."""

Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

_TALLY = mixed_array(np.arange(1, 2 * BLOCK_SIZE + 1, dtype=np.uint64))
"""A random number for each position; targets hit by the same trials have the same sum."""


class StoredPositions(NamedTuple):
    """The positions of classes; for some classes, of the trials that did *not* hit them."""

    starts: Ints
    """Where the positions of each class begin, and the end of the last one."""
    positions: Indices
    others: Bools
    """For each class, whether its positions are those of the other trials."""


@dataclass(frozen=True, eq=False)
class BlockHits:
    """The hits of a block, by target.

    >>> hits = invert_hits([[3, 5], [], [3, 5, 9]])
    >>> hits.targets.tolist(), hits.classes.tolist(), hits.counts.tolist()
    ([3, 5, 9], [1, 1, 0], [2, 2, 1])
    >>> hits.members(1).tolist(), hits.first.tolist()
    ([0, 2], [0, 0, 2])
    """

    size: int
    """Trials of the block."""
    targets: Ints
    """The ids of the targets that were hit, in order."""
    classes: Indices
    """For each target, its class."""
    starts: Ints
    """Where the positions of each class begin in `positions`, and the end of the last one."""
    positions: Indices
    """The positions of the trials that hit each class, in order within the class."""

    @cached_property
    def class_counts(self) -> Ints:
        """For each class, the number of trials that hit it."""
        return np.diff(self.starts)

    @property
    def stored(self) -> StoredPositions:
        """The positions in the shortest form that is at hand, which is fast to count from."""
        nothing = np.zeros(len(self.starts) - 1, bool)
        return StoredPositions(self.starts, self.positions, nothing)

    @property
    def counts(self) -> Ints:
        """For each target, the number of trials that hit it."""
        return self.class_counts[self.classes]

    @property
    def first(self) -> Ints:
        """For each target, the position of the first trial that hit it."""
        return self.positions[self.starts[:-1]][self.classes].astype(np.int64)

    def members(self, number: int) -> Indices:
        """Return the positions of the trials that hit a class, in order."""
        return self.positions[self.starts[number] : self.starts[number + 1]]

    def class_bits(self, chosen: npt.ArrayLike | None = None) -> Words:
        """Return the trials that hit each class as packed bits, one row per class.

        `chosen`: numbers of classes, if not all are needed.
        """
        numbers = np.arange(len(self.starts) - 1) if chosen is None else np.asarray(chosen)
        lengths = self.class_counts[numbers]
        rows = np.repeat(np.arange(len(numbers)), lengths)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        positions = self.positions[np.repeat(self.starts[:-1][numbers], lengths) + within]
        flags = np.zeros((len(numbers), -(-self.size // 64) * 64), bool)
        flags[rows, positions] = True
        return packed_rows(flags)

    def sets(self) -> list[Ints]:
        """Return the ids of the targets that each trial hit, in order."""
        lengths = self.class_counts[self.classes]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        positions = self.positions[np.repeat(self.starts[:-1][self.classes], lengths) + within]
        # In the order of targets now; a stable sort by trial keeps that order within a trial.
        ids = np.repeat(self.targets, lengths)[stable_order(positions, self.size)]
        bounds = np.cumsum(np.bincount(positions, minlength=self.size))
        return np.split(ids, bounds[:-1]) if self.size else []


def packed_rows(flags: Bools) -> Words:
    """Return rows of flags as words; the number of flags in a row is a multiple of 64."""
    return np.packbits(flags, axis=-1, bitorder="little").view("<u8")


def unpacked(words: Words, size: int) -> Bools:
    """Return packed bits as flags, one per trial.

    >>> unpacked(np.array([5], np.uint64), 4).tolist()
    [True, False, True, False]
    """
    packed = np.ascontiguousarray(words, "<u8").view(np.uint8)
    return np.unpackbits(packed, axis=-1, count=size, bitorder="little").view(bool)


def invert_hits(sets: Sequence[npt.ArrayLike]) -> BlockHits:
    """Return hits by target, from the ids of the targets that each trial hit, in order."""
    arrays = [np.asarray(ids, np.int64) for ids in sets]
    lengths = np.fromiter(map(len, arrays), np.int64, len(arrays))
    ids = np.concatenate([*arrays, np.empty(0, np.int64)])
    positions = np.repeat(np.arange(len(arrays), dtype=np.int32), lengths)
    return invert_pairs(ids, positions, len(arrays))


def invert_pairs(ids: Ints, positions: npt.NDArray[Any], size: int) -> BlockHits:
    """Return hits by target, from pairs of a target and a position, which are in order.

    >>> invert_pairs(np.array([7, 7]), np.array([0, 2]), 3).members(0).tolist()
    [0, 2]
    """
    targets, places = _numbered(ids)
    if not len(targets):
        nothing = np.empty(0, np.int32)
        return BlockHits(size, targets, nothing, np.zeros(1, np.int64), nothing)
    by_target = stable_order(places, len(targets))
    trials = positions[by_target]
    counts = np.bincount(places, minlength=len(targets))
    starts = np.cumsum(counts) - counts
    sums = np.add.reduceat(_tally(size)[trials], starts)
    _, examples, classes = np.unique(sums, return_index=True, return_inverse=True)
    # Rare classes first: neighbours with similar gaps compress better.
    rank = np.argsort(counts[examples], kind="stable")
    examples = examples[rank]
    renumbered = np.empty(len(rank), np.int32)
    renumbered[rank] = np.arange(len(rank))
    lengths = counts[examples]
    ends = np.cumsum(lengths)
    within = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    chosen = trials[np.repeat(starts[examples], lengths) + within].astype(np.int32)
    return BlockHits(
        size, targets, renumbered[classes.ravel()], np.concatenate([[0], ends]), chosen
    )


def _numbered(ids: Ints) -> tuple[Ints, npt.NDArray[Any]]:
    """Return the distinct ids, in order, and for each id its place among them."""
    if not len(ids) or int(ids.max()) > 64 * len(ids) + 100_000:
        return np.unique(ids, return_inverse=True)
    seen = np.zeros(int(ids.max()) + 1, bool)
    seen[ids] = True
    return np.flatnonzero(seen), (np.cumsum(seen, dtype=np.int32) - np.int32(1))[ids]


def stable_order(places: npt.NDArray[Any], count: int) -> Ints:
    """Return the order that sorts numbers below `count`; 16 bits at a time, which is linear."""
    order = np.argsort((places & 0xFFFF).astype(np.uint16), kind="stable")
    if count > 0x10000:
        order = order[np.argsort((places[order] >> 16).astype(np.uint16), kind="stable")]
    return order


def _tally(size: int) -> Words:
    if size <= len(_TALLY):
        return _TALLY
    return mixed_array(np.arange(1, size + 1, dtype=np.uint64))
