"""From tests to the counts behind a table of roles, a block of tests at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bools, add_rows, add_values, cooccurrence
from swarmtest.analysis.hit_columns import (
    CountedCells,
    CountedColumns,
    HitBlock,
    blocks_of_bools,
    blocks_of_numbers,
    counted_columns,
    hit_blocks,
)
from swarmtest.analysis.intervals import Floats
from swarmtest.analysis.propensities import Chances
from swarmtest.analysis.trial_columns import Evidence
from swarmtest.core.targets import Target
from swarmtest.roles.roles import RoleTable
from swarmtest.store.interface import Store

_DENSE = 0.1
"""Where more of the tests hit a target, columns of bits are ANDed instead of rows added."""
GROUP_BYTES = 256 << 20
"""Memory for hits by groups of tests that share a configuration; more groups take more passes."""

_AT_A_TIME = 4096
"""Dense targets whose columns are unpacked together."""

Blocks = Callable[[slice], Iterable[HitBlock]]
"""The hits of some of the targets."""


def role_table(
    store: Store,
    evidence: Evidence,
    chances: Chances,
    targets: Sequence[tuple[int, Target]],
    confidence: float,
) -> RoleTable:
    """The roles of all features for targets of the store (by id), likes counted once."""
    ids = np.array([id for id, _ in targets], np.int64)
    _, first, row = np.unique(evidence.like[ids], return_index=True, return_inverse=True)
    chosen = ids[first]

    def blocks(part: slice) -> Iterator[HitBlock]:
        return hit_blocks(store, evidence, chosen[part].tolist())

    named = tuple(target for _, target in targets)
    return _counted(evidence, chances, named, blocks, len(chosen), confidence, row.ravel())


def fault_table(evidence: Evidence, chances: Chances, confidence: float) -> RoleTable:
    """The roles of all features for all faults."""
    count = len(evidence.fault_ids)
    targets = tuple(evidence.fault_target(number) for number in range(count))

    def blocks(part: slice) -> Iterator[HitBlock]:
        inside = (evidence.fault >= part.start) & (evidence.fault < part.stop)
        numbers = np.where(inside, evidence.fault - part.start, -1).astype(np.int32)
        return blocks_of_numbers(numbers, part.stop - part.start)

    return _counted(evidence, chances, targets, blocks, count, confidence)


def table_of_hits(
    evidence: Evidence, chances: Chances, targets: list[Target], hits: Bools, confidence: float
) -> RoleTable:
    """The roles of all features for targets whose hits are given: tests by targets."""

    def blocks(part: slice) -> Iterator[HitBlock]:
        return blocks_of_bools(hits[:, part])

    return _counted(evidence, chances, tuple(targets), blocks, len(targets), confidence)


def _counted(
    evidence: Evidence,
    chances: Chances,
    targets: tuple[Target, ...],
    blocks: Blocks,
    rows: int,
    confidence: float,
    row: npt.NDArray[np.intp] | None = None,
) -> RoleTable:
    """Count the hits of so many rows; `row`: the one of each target, if not its own."""
    columns = counted_columns(evidence, chances)
    counts = np.zeros((rows, columns.bits.count), np.int32)
    sums = None if columns.few else np.zeros((rows, len(evidence.features)))
    hits = np.zeros(rows, np.int64)
    weight = np.empty(rows)
    groups = int(evidence.clusters.max(initial=-1)) + 1
    step = max(GROUP_BYTES // (4 * groups), 1) if groups else max(rows, 1)
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        together = np.zeros((part.stop - part.start, groups), np.int32)
        telling = np.zeros(len(together), np.int64)
        for block in blocks(part):
            hits[part] += block.hits
            add_counts(block, columns, counts[part])
            if sums is not None:
                tests = slice(block.start, block.stop)
                values = columns.expected_chances(evidence, chances, tests)
                add_values(block.starts, block.tests, values, sums[part])
            if groups:
                _add_groups(block, evidence.clusters, chances.telling, together, telling)
        weight[part] = 1 / (_design_effect(together, telling) * chances.same_seed)
    cells = CountedCells(columns, counts, sums, weight, confidence)
    shown = hits if row is None else hits[row]
    return RoleTable(targets, evidence.features, shown, cells, confidence, row)


def add_counts(block: HitBlock, columns: CountedColumns, counts: npt.NDArray[np.int32]) -> None:
    """Add, for each target, in how many of its tests the bit of each column is set."""
    tests = slice(block.start, block.stop)
    is_dense = block.hits > _DENSE * (block.stop - block.start)
    sparse, dense = np.flatnonzero(~is_dense & (block.hits > 0)), np.flatnonzero(is_dense)
    if len(sparse):
        add_rows(block.starts, block.tests, sparse, columns.bits.words[tests], counts)
    if len(dense):
        turned = columns.bits.packed_columns(tests)
        for at in range(0, len(dense), _AT_A_TIME):
            some = dense[at : at + _AT_A_TIME]
            counts[some] += cooccurrence(block.columns(some), turned).astype(np.int32)


def _add_groups(
    block: HitBlock,
    clusters: npt.NDArray[np.int32],
    telling: Bools,
    together: npt.NDArray[np.int32],
    hits: npt.NDArray[np.int64],
) -> None:
    """Add the hits that say anything, and those of each group that shares a configuration."""
    tests = block.tests.astype(np.int64) + block.start
    told = telling[tests]
    target, cluster = block.entry_targets[told], clusters[tests[told]]
    hits += np.bincount(target, minlength=len(hits))
    member = cluster >= 0
    np.add.at(together, (target[member], cluster[member]), 1)


def _design_effect(groups: npt.NDArray[np.int32], hits: npt.NDArray[np.int64]) -> Floats:
    """By how much hits that share configurations say less than as many independent ones.

    Kish's design effect: groups of m_c hits weigh as much as (sum m_c)^2 / sum m_c^2 single ones.
    """
    if not groups.shape[1]:
        return np.ones(len(groups))
    alone = hits - groups.sum(axis=1, dtype=np.int64)
    squares = alone + np.einsum("tg,tg->t", groups, groups, dtype=np.float64)
    effect: Floats = np.where(hits > 0, squares / np.maximum(hits, 1), 1.0)
    return effect
