"""Pack a worker's batch into a block, so that the process that writes to the store need not.

It needs numpy, so it is imported only by a worker that has a batch of some size. Targets are sent
by their 64-bit keys: only the receiver knows the store's ids.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.store.blocks import TrialBlock
from swarmtest.store.blocks.codec import (
    block_totals,
    fault_totals,
    pack_columns,
    pack_features,
    pack_positions,
)
from swarmtest.store.blocks.columns import plain_columns
from swarmtest.store.blocks.hits import BlockHits, invert_pairs
from swarmtest.store.blocks.summaries import block_feature_summary
from swarmtest.store.loose_blocks import BlockLayout


class SentBlock(NamedTuple):
    """A block on its way to the store: a `PackedBlock` without the store's ids of targets."""

    totals: tuple[int, ...]
    """The fields of `BlockTotals`."""
    faults: list[tuple[str, int, int]]
    """The fields of `FaultTotal`."""
    features: bytes
    columns: bytes
    keys: bytes
    """The keys of the targets, ``<u8``."""
    classes: bytes
    """For each target its class, ``<i4``."""
    counts: bytes
    """For each class the number of trials that hit it, ``<i8``."""
    first_trials: bytes
    """For each class the first trial that hit it, ``<i8``."""
    hits: bytes
    """`pack_positions`; empty if nothing was hit, as are the fields for targets."""


def pack_batch(
    rows: Sequence[Sequence[Any]],
    sets: Iterable[tuple[int, bytes]],
    set_indices: Sequence[tuple[int, ...]],
    keys: Sequence[array[int]],
    layout: BlockLayout,
) -> SentBlock:
    """Return rows, and the sets of targets that they reached, as a block.

    A set is the number of its catalogue and numbers in the catalogue (`Hits.numbers`); `keys` are
    the keys of the targets of each catalogue.
    """
    numbers = [row[0] for row in rows]
    if numbers != sorted(numbers):
        order = sorted(range(len(rows)), key=numbers.__getitem__)
        rows = [rows[i] for i in order]
        set_indices = [set_indices[i] for i in order]
    columns = plain_columns(rows, layout.features)
    reached = np.array([bool(indices) for indices in set_indices])
    columns |= {"hit_states": reached.astype(np.uint8), "odd_hits": ()}
    hits = _inverted(list(sets), set_indices, keys)
    columns["hits"] = hits
    block = TrialBlock(len(rows), layout.features, lambda _, name: columns[name])
    plain = (
        tuple(block_totals(block)),
        list(map(tuple, fault_totals(block))),
        pack_features(block_feature_summary(block)),
        pack_columns(block, layout),
    )
    if not len(hits.targets):
        return SentBlock(*plain, b"", b"", b"", b"", b"")  # type: ignore[arg-type]
    all_keys = np.concatenate([np.frombuffer(each, "<u8") for each in keys if each])
    first_trials = block.numbers[hits.positions[hits.starts[:-1]]]
    return SentBlock(
        *plain,  # type: ignore[arg-type]
        all_keys[hits.targets].tobytes(),
        hits.classes.astype("<i4").tobytes(),
        hits.class_counts.astype("<i8").tobytes(),
        first_trials.astype("<i8").tobytes(),
        pack_positions(hits),
    )


def _inverted(
    sets: Sequence[tuple[int, bytes]],
    set_indices: Sequence[tuple[int, ...]],
    keys: Sequence[array[int]],
) -> BlockHits:
    """Return the hits by target; a target's id is its place among the keys of all catalogues."""
    bases = np.cumsum([0, *map(len, keys)])
    arrays = [
        np.frombuffer(numbers, "<u4").astype(np.int32) + np.int32(bases[catalogue])
        for catalogue, numbers in sets
    ]
    joined: dict[tuple[int, ...], npt.NDArray[np.int32]] = {(): np.empty(0, np.int32)}
    for indices in dict.fromkeys(set_indices):
        if len(indices) == 1:
            joined[indices] = arrays[indices[0]]
        elif indices:
            whole = np.concatenate([arrays[index] for index in indices])
            catalogues = {sets[index][0] for index in indices}
            joined[indices] = whole if len(catalogues) == len(indices) else np.unique(whole)
    chosen = [joined[indices] for indices in set_indices]
    lengths = np.fromiter(map(len, chosen), np.int64, len(chosen))
    positions = np.repeat(np.arange(len(chosen), dtype=np.int32), lengths)
    return invert_pairs(np.concatenate([*chosen, joined[()]]), positions, len(chosen))
