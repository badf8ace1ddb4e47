"""Count the tests behind a table of roles, a block of tests at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bools, add_rows, add_values, cooccurrence
from swarmtest.analysis.intervals import Floats
from swarmtest.analysis.propensities import Propensities
from swarmtest.analysis.role_cells import (
    CountedCells,
    CountedColumns,
    HitBlock,
    blocks_of_bools,
    blocks_of_numbers,
    counted_columns,
    hit_blocks,
)
from swarmtest.analysis.trial_columns import Evidence
from swarmtest.core.targets import Target
from swarmtest.roles.roles import RoleTable
from swarmtest.store.interface import Store

_DENSE = 0.1
"""For targets that more than this share of the tests hit, columns of bits are ANDed; for others,
rows are added."""
GROUP_BYTES = 256 << 20
"""Memory for the hits of groups of tests that share a configuration. If there are more groups,
more passes over the tests are made."""

_AT_A_TIME = 4096
"""The number of dense targets whose columns are unpacked together."""

Blocks = Callable[[slice], Iterable[HitBlock]]
"""Returns the hits of some of the targets, a block of tests at a time."""


def role_table(
    store: Store,
    evidence: Evidence,
    chances: Propensities,
    targets: Sequence[tuple[int, Target]],
    confidence: float,
) -> RoleTable:
    """Return the roles of all features for targets of the store (by id).

    Targets that the same tests hit are counted once.
    """
    ids = np.array([id for id, _ in targets], np.int64)
    _, first, row = np.unique(evidence.target_class[ids], return_index=True, return_inverse=True)
    chosen = ids[first]

    def blocks(part: slice) -> Iterator[HitBlock]:
        return hit_blocks(store, evidence, chosen[part].tolist())

    named = tuple(target for _, target in targets)
    return count_table(evidence, chances, named, blocks, len(chosen), confidence, row.ravel())


def fault_table(evidence: Evidence, chances: Propensities, confidence: float) -> RoleTable:
    """Return the roles of all features for all faults."""
    count = len(evidence.fault_ids)
    targets = tuple(evidence.fault_target(number) for number in range(count))

    def blocks(part: slice) -> Iterator[HitBlock]:
        inside = (evidence.fault >= part.start) & (evidence.fault < part.stop)
        numbers = np.where(inside, evidence.fault - part.start, -1).astype(np.int32)
        return blocks_of_numbers(numbers, part.stop - part.start)

    return count_table(evidence, chances, targets, blocks, count, confidence)


def table_of_hits(
    evidence: Evidence, chances: Propensities, targets: list[Target], hits: Bools, confidence: float
) -> RoleTable:
    """Return the roles of all features for targets with known hits: tests by targets."""

    def blocks(part: slice) -> Iterator[HitBlock]:
        return blocks_of_bools(hits[:, part])

    return count_table(evidence, chances, tuple(targets), blocks, len(targets), confidence)


def count_table(
    evidence: Evidence,
    chances: Propensities,
    targets: tuple[Target, ...],
    blocks: Blocks,
    rows: int,
    confidence: float,
    row: npt.NDArray[np.intp] | None = None,
) -> RoleTable:
    """Count the hits of `rows` rows; `row` is the row of each target, if it is not its own."""
    columns = counted_columns(evidence, chances)
    counts = np.zeros((rows, columns.bits.count), np.int32)
    sums = None if columns.few else np.zeros((rows, len(evidence.features)))
    hits = np.zeros(rows, np.int64)
    weights = np.empty(rows)
    groups = int(evidence.clusters.max(initial=-1)) + 1
    step = max(GROUP_BYTES // (4 * groups), 1) if groups else max(rows, 1)
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        together = np.zeros((part.stop - part.start, groups), np.int32)
        informative = np.zeros(len(together), np.int64)
        for block in blocks(part):
            hits[part] += block.hits
            add_counts(block, columns, counts[part])
            if sums is not None:
                tests = slice(block.start, block.stop)
                values = columns.expected_chances(evidence, chances, tests)
                add_values(block.starts, block.tests, values, sums[part])
            if groups:
                _add_groups(block, evidence.clusters, chances.telling, together, informative)
        weights[part] = 1 / (_design_effect(together, informative) * chances.same_seed)
    cells = CountedCells(columns, counts, sums, weights, confidence)
    shown = hits if row is None else hits[row]
    return RoleTable(targets, evidence.features, shown, cells, confidence, row)


def add_counts(block: HitBlock, columns: CountedColumns, counts: npt.NDArray[np.int32]) -> None:
    """Add, for each target, the number of its tests in which the bit of each column is set."""
    tests = slice(block.start, block.stop)
    is_dense = block.hits > _DENSE * (block.stop - block.start)
    sparse, dense = np.flatnonzero(~is_dense & (block.hits > 0)), np.flatnonzero(is_dense)
    if len(sparse):
        add_rows(block.starts, block.tests, sparse, columns.bits.words[tests], counts)
    if len(dense):
        packed = columns.bits.packed_columns(tests)
        for start in range(0, len(dense), _AT_A_TIME):
            chosen = dense[start : start + _AT_A_TIME]
            counts[chosen] += cooccurrence(block.columns(chosen), packed).astype(np.int32)


def _add_groups(
    block: HitBlock,
    clusters: npt.NDArray[np.int32],
    informative: Bools,
    together: npt.NDArray[np.int32],
    hits: npt.NDArray[np.int64],
) -> None:
    """Add the informative hits, and those of each group of tests that share a configuration."""
    tests = block.tests.astype(np.int64) + block.start
    counts = informative[tests]
    target, cluster = block.entry_targets[counts], clusters[tests[counts]]
    hits += np.bincount(target, minlength=len(hits))
    member = cluster >= 0
    np.add.at(together, (target[member], cluster[member]), 1)


def _design_effect(groups: npt.NDArray[np.int32], hits: npt.NDArray[np.int64]) -> Floats:
    """Return how many hits that share configurations weigh as much as one independent hit.

    Kish's design effect: groups of m_c hits weigh as much as (sum m_c)^2 / sum m_c^2 single hits.
    """
    if not groups.shape[1]:
        return np.ones(len(groups))
    alone = hits - groups.sum(axis=1, dtype=np.int64)
    squares = alone + np.einsum("tg,tg->t", groups, groups, dtype=np.float64)
    effect: Floats = np.where(hits > 0, squares / np.maximum(hits, 1), 1.0)
    return effect
