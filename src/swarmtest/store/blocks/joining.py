"""Join blocks: small ones, which slow tests leave behind, become one of the usual size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from swarmtest.store.blocks.block import TrialBlock
from swarmtest.store.blocks.hits import BlockHits, Indices, packed_rows, stable_order, unpacked

_PLAIN = (
    *("numbers", "kinds", "verdicts", "steps", "skipped", "cpu_ns", "wall_ns", "seeds"),
    *("used_states", "hit_states"),
)
_DISTINCT = {
    "tail_index": "tails",
    "propensity_index": "propensity_rows",
    "origin_index": "origins",
    "fault_index": "faults",
    "missing_index": "missing",
}
_ODD = ("odd_used", "odd_hits")


def join_blocks(blocks: Sequence[TrialBlock]) -> TrialBlock:
    """Return one block with the trials of blocks over the same features, which are in order.

    >>> from swarmtest.store.records import TrialRecord
    >>> parts = [TrialBlock.from_records([TrialRecord(n, b"\\0\\1")], 1) for n in (3, 8)]
    >>> [record.trial for record in join_blocks(parts).records()]
    [3, 8]
    """
    features, size = blocks[0].features, sum(block.size for block in blocks)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(block, name) for block in blocks]) for name in _PLAIN
    }
    for index, values in _DISTINCT.items():
        tables = [getattr(block, values) for block in blocks]
        columns[values] = tuple(dict.fromkeys(value for table in tables for value in table))
        columns[index] = _renumbered(
            tables, [getattr(block, index) for block in blocks], columns[values]
        )
    weights = [tuple(map(bytes, block.weight_rows.astype("<u2"))) for block in blocks]
    rows = tuple(dict.fromkeys(row for table in weights for row in table))
    columns["weight_rows"] = np.frombuffer(b"".join(rows), "<u2").reshape(len(rows), features)
    columns["weight_index"] = _renumbered(weights, [b.weight_index for b in blocks], rows)
    for name in _ODD:
        columns[name] = tuple(value for block in blocks for value in getattr(block, name))
    columns["used"] = np.concatenate([block.used for block in blocks], axis=1)
    enabled = np.zeros((features, -(-size // 64) * 64), bool)
    flags = [unpacked(block.enabled, block.size) for block in blocks]
    enabled[:, :size] = np.concatenate(flags, axis=1)
    columns["enabled"] = packed_rows(enabled)
    columns["hits"] = _join_hits([block.hits for block in blocks])
    return TrialBlock(size, features, lambda _, name: columns[name])


def _renumbered(
    tables: Sequence[tuple[Any, ...]], indices: Sequence[Indices], distinct: Sequence[Any]
) -> Indices:
    """Return indices into several tables as indices into one; -1 stays as it is."""
    places = {value: place for place, value in enumerate(distinct)}
    parts = []
    for table, index in zip(tables, indices, strict=True):
        new = np.array([*(places[value] for value in table), -1], np.int32)
        parts.append(new[index])  # the last one is for -1
    return np.concatenate(parts)


def _join_hits(parts: Sequence[BlockHits]) -> BlockHits:
    """Return the hits of all parts: targets are alike if they are alike in every part."""
    size = sum(part.size for part in parts)
    targets = np.unique(np.concatenate([part.targets for part in parts]))
    classes = np.full((len(parts), len(targets)), -1, np.int64)
    for row, part in zip(classes, parts, strict=True):
        row[np.searchsorted(targets, part.targets)] = part.classes
    if not len(targets):
        nothing = np.empty(0, np.int32)
        return BlockHits(size, targets, nothing, np.zeros(1, np.int64), nothing)
    _, examples, joined = np.unique(classes, axis=1, return_index=True, return_inverse=True)
    owners, positions, offset = [], [], 0
    for row, part in zip(classes[:, examples], parts, strict=True):
        present = np.flatnonzero(row >= 0)
        lengths = part.class_counts[row[present]]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        members = part.positions[np.repeat(part.starts[row[present]], lengths) + within]
        owners.append(np.repeat(present, lengths))
        positions.append(members + np.int32(offset))
        offset += part.size
    owner = np.concatenate(owners)
    counts = np.bincount(owner, minlength=len(examples))
    # Rare classes first, as in `invert_pairs`.
    rank = np.argsort(counts, kind="stable")
    new = np.empty(len(rank), np.int64)
    new[rank] = np.arange(len(rank))
    order = stable_order(new[owner], len(rank))
    return BlockHits(
        size,
        targets,
        new[joined.ravel()].astype(np.int32),
        np.concatenate([[0], np.cumsum(counts[rank])]),
        np.concatenate(positions)[order],
    )
