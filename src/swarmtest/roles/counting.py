"""Count the tests behind a table of roles, a block of tests at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import add_values, bits_between, count_bits
from swarmtest.analysis.hit_blocks import HitBlock, blocks_of_tests, hit_blocks
from swarmtest.analysis.intervals import Floats
from swarmtest.analysis.propensities import Propensities
from swarmtest.analysis.role_cells import (
    CellTable,
    CountedCells,
    CountedColumns,
    SegmentedCells,
    counted_columns,
)
from swarmtest.analysis.trial_columns import Evidence
from swarmtest.core.targets import Target
from swarmtest.roles.roles import RoleTable

GROUP_BYTES = 256 << 20
"""Memory for the hits of groups of tests that share a configuration. If there are more groups,
more passes over the tests are made."""

SEGMENT_BYTES = 128 << 20
"""Memory for the counts of a table. A larger table is counted in segments."""

PIECE_CELLS = 8_000_000
"""The most counts of a block that are in memory at a time."""

Blocks = Callable[[slice], Iterable[HitBlock]]
"""Returns the hits of some of the targets, a block of tests at a time."""


class RoleCounter:
    """Counts the hits of targets against the features of one body of evidence."""

    def __init__(self, evidence: Evidence, chances: Propensities, confidence: float) -> None:
        self._evidence, self._chances, self._confidence = evidence, chances, confidence

    @cached_property
    def _columns(self) -> CountedColumns:
        return counted_columns(self._evidence, self._chances)

    def tables(self, kinds: Sequence[Sequence[tuple[int, Target]]]) -> list[RoleTable]:
        """Return the roles of all features for targets of the store (by id), a table for each list.

        Targets that the same tests hit are counted once, and all in one pass over the tests.
        """
        ids = np.array([id for targets in kinds for id, _ in targets], np.int64)
        _, first, row = np.unique(
            self._evidence.target_class[ids], return_index=True, return_inverse=True
        )
        return self._count_kinds(kinds, ids[first], row.ravel())

    def table_of_one(self, id: int, target: Target) -> RoleTable:
        """Return the roles of all features for one target of the store."""
        (table,) = self._count_kinds([[(id, target)]], np.array([id]), np.zeros(1, np.intp))
        return table

    def _count_kinds(
        self,
        kinds: Sequence[Sequence[tuple[int, Target]]],
        chosen: npt.NDArray[np.int64],
        row: npt.NDArray[np.intp],
    ) -> list[RoleTable]:
        """Return a table for each list of targets, of which `row` says the position in `chosen`."""

        def blocks(part: slice) -> Iterator[HitBlock]:
            return hit_blocks(self._evidence, chosen[part].tolist())

        cells, hits = self.cells(blocks, len(chosen))
        tables, at = [], 0
        for targets in kinds:
            rows, own = np.unique(row[at : at + len(targets)], return_inverse=True)
            at += len(targets)
            named = tuple(target for _, target in targets)
            whole = len(rows) == cells.shape[0]
            part = cells if whole else cells.rows(rows)
            tables.append(self.table(named, part, hits[rows], own.ravel()))
        return tables

    def fault_table(self) -> RoleTable:
        """Return the roles of all features for all faults."""
        evidence = self._evidence
        targets = tuple(map(evidence.fault_target, range(len(evidence.fault_ids))))
        return self.table_of_hits(targets, evidence.fault_tests)

    def table_of_hits(
        self, targets: tuple[Target, ...], hits: Sequence[npt.NDArray[np.intp]]
    ) -> RoleTable:
        """Return the roles of all features for targets, of which the hitting tests are given."""

        def blocks(part: slice) -> Iterator[HitBlock]:
            return blocks_of_tests(hits[part], self._evidence.n)

        cells, counts = self.cells(blocks, len(targets))
        return self.table(targets, cells, counts)

    def table(
        self,
        targets: tuple[Target, ...],
        cells: CellTable,
        hits: npt.NDArray[np.int64],
        row: npt.NDArray[np.intp] | None = None,
    ) -> RoleTable:
        """Return a table; `row` is the row of each target, if it is not its own."""
        shown = hits if row is None else hits[row]
        return RoleTable(targets, self._evidence.features, shown, cells, self._confidence, row)

    def cells(self, blocks: Blocks, rows: int) -> tuple[CellTable, npt.NDArray[np.int64]]:
        """Return the counts of `rows` rows, and how many tests hit each.

        If the counts do not fit into `SEGMENT_BYTES`, a segment of rows is counted when it is
        needed, with a pass over the tests for each.
        """
        step = max(SEGMENT_BYTES // self._bytes_of_row, 1)
        if rows <= step:
            return self._count(blocks, slice(0, rows))
        hits = np.zeros(rows, np.int64)
        for block in blocks(slice(0, rows)):
            block.add(hits, block.hits)
        features = len(self._evidence.features)

        def count(part: slice) -> CountedCells:
            return self._count(blocks, part)[0]

        return SegmentedCells(count, rows, features, step), hits

    @property
    def _bytes_of_row(self) -> int:
        columns = self._columns
        of_sums = 0 if columns.few else 8 * len(self._evidence.features)
        return 4 * len(columns.words) + of_sums

    def _count(self, blocks: Blocks, segment: slice) -> tuple[CountedCells, npt.NDArray[np.int64]]:
        """Count the rows of a segment, in one pass over the tests if their groups are few."""
        evidence, chances, columns = self._evidence, self._chances, self._columns
        rows = segment.stop - segment.start
        counts = np.zeros((rows, len(columns.words)), np.int32)
        sums = None if columns.few else np.zeros((rows, len(evidence.features)))
        hits = np.zeros(rows, np.int64)
        weights = np.empty(rows)
        groups = int(evidence.clusters.max(initial=-1)) + 1
        most_classes = max(PIECE_CELLS // len(columns.words), 1)
        step = max(GROUP_BYTES // (4 * groups), 1) if groups else max(rows, 1)
        for start in range(0, rows, step):
            part = slice(start, min(start + step, rows))
            together = np.zeros((part.stop - part.start, groups), np.int32)
            informative = np.zeros(len(together), np.int64)
            wanted = slice(segment.start + part.start, segment.start + part.stop)
            pieces = (piece for block in blocks(wanted) for piece in block.pieces(most_classes))
            for block in pieces:
                block.add(hits[part], block.hits)
                if len(block.chosen):
                    self._add_counts(block, counts[part])
                    if sums is not None:
                        self._add_chances(block, sums[part])
                    if groups:
                        self._add_groups(block, together, informative)
            weights[part] = 1 / (_design_effect(together, informative) * chances.same_seed)
        return CountedCells(columns, counts, sums, weights, self._confidence), hits

    def _add_counts(self, block: HitBlock, counts: npt.NDArray[np.int32]) -> None:
        """Add, for each row, the number of its tests in which the bit of each column is set."""
        columns = bits_between(self._columns.words, block.start, block.stop)
        listed = count_bits(block.starts, block.tests, block.chosen, columns, self._blocks(block))
        of_all = np.bitwise_count(columns).sum(axis=1, dtype=np.int32)
        block.add(counts, block.whole(listed, of_all))

    def _add_chances(self, block: HitBlock, sums: Floats) -> None:
        """Add, for each row, the chances of its tests by feature."""
        tests = slice(block.start, block.stop)
        values = self._columns.expected_chances(self._evidence, self._chances, tests)
        by_class = np.zeros((len(block.hits), values.shape[1]))
        times = self._blocks(block)
        add_values(block.starts, block.tests, block.chosen, values, by_class, times)
        block.add(sums, block.whole(by_class, values.sum(axis=0, dtype=float)))

    def _blocks(self, block: HitBlock) -> float:
        """Return how many blocks like this one there are.

        Whether compiling pays is decided for all tests, not for those of one block.
        """
        return self._evidence.n / (block.stop - block.start)

    def _add_groups(
        self,
        block: HitBlock,
        together: npt.NDArray[np.int32],
        informative: npt.NDArray[np.int64],
    ) -> None:
        """Add the informative hits, and those of each group of tests that share a configuration."""
        row, tests = block.entries()
        counts = self._chances.telling[tests]
        row, cluster = row[counts], self._evidence.clusters[tests[counts]]
        informative += np.bincount(row, minlength=len(informative))
        member = cluster >= 0
        np.add.at(together, (row[member], cluster[member]), 1)


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
