"""Read blocks of trials from the tables of a store, and single trials out of them.

Blocks are read a few at a time, not with an open cursor: a reader that pauses holds no transaction
open and does not prevent a checkpoint of the log, and a lost connection costs one chunk. Blocks may
be merged while somebody reads, so a reader goes on after the last trial that it has seen.

numpy is loaded only by what looks into a block: commands that show totals start without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from swarmtest.core.errors import UserError
from swarmtest.store.block_tables import (
    BLOCK_SIZE,
    READ_BLOCK,
    READ_COLUMNS,
    READ_PACKED,
    BlockRange,
    Execute,
    add_blocks,
    add_hits,
    add_trials,
    merge,
    packed_row,
    small_runs,
    unpack_row,
)
from swarmtest.store.interface import TOTALS, damaged, no_trial
from swarmtest.store.loose_blocks import (
    BlockLayout,
    FaultTotal,
    PackedBlock,
    features_of,
    is_loose,
    loose_records,
)
from swarmtest.store.records import FaultRecord, ProgressPoint, TestRecord, TrialRecord
from swarmtest.store.sql import FAR, Row, SqlStore

if TYPE_CHECKING:
    from swarmtest.store.blocks import FeatureSummary, HitSummary, TrialBlock

_AT_ONCE = 4
"""Blocks that are read with one query."""
_VERDICTS = ("passed", "failed", "invalid")
_BLOCK_FAULTS = (
    "SELECT first, fault, trials, first_trial FROM block_faults "
    "WHERE campaign = ? AND first >= ? AND first <= ? ORDER BY first, first_trial, fault"
)


class _Selection(NamedTuple):
    """Which trials to read."""

    after: int
    before: int
    verdict: int | None
    faults: tuple[str, ...] | None
    """Any of these; None: whatever it showed."""

    def has(self, trial: TrialRecord) -> bool:
        """Return whether a trial is selected."""
        return (
            self.after < trial.trial < self.before
            and self.verdict in (None, trial.verdict)
            and (self.faults is None or trial.fault in self.faults)
        )

    def condition(self) -> tuple[str, list[Any]]:
        """Return the SQL condition for blocks that may have such trials, and its values."""
        text, values = "", list[Any]()
        if self.verdict is not None and self.verdict in range(len(_VERDICTS)):
            text += f" AND {_VERDICTS[self.verdict]} > 0"
        if self.faults is not None:
            marks = ", ".join("?" for _ in self.faults)
            text += (
                " AND EXISTS (SELECT 1 FROM block_faults WHERE block_faults.campaign = "
                f"blocks.campaign AND block_faults.first = blocks.first AND fault IN ({marks}))"
            )
            values += self.faults
        return text, values


class TrialBatch(NamedTuple):
    """How to write trials and what belongs to them, in a transaction of one campaign."""

    execute: Execute
    insert_faults: Callable[[Sequence[FaultRecord]], None]
    insert_tests: Callable[[Sequence[TestRecord]], None]


class BlockStore(SqlStore):
    """The part of a store that reads and writes trials."""

    def _write_trials(self, campaign: int, write: Callable[[TrialBatch], None]) -> None:
        """Call `write` in a transaction in which nobody else writes trials of the campaign.

        It may be called several times: after a lost connection, it starts again.
        """
        raise NotImplementedError

    def _free_space(self) -> None:
        """Give back the disk space of what was deleted, if the database does not do that itself."""

    def record(
        self,
        campaign: int,
        trials: Sequence[TrialRecord],
        faults: Sequence[FaultRecord] = (),
        tests: Sequence[TestRecord] = (),
    ) -> None:
        """Store a batch in one transaction."""
        self.record_blocks(campaign, (), trials, faults, tests)

    def record_blocks(
        self,
        campaign: int,
        blocks: Sequence[PackedBlock],
        trials: Sequence[TrialRecord] = (),
        faults: Sequence[FaultRecord] = (),
        tests: Sequence[TestRecord] = (),
    ) -> None:
        """Store a batch in one transaction, in which workers have packed trials into blocks."""
        layout = self._block_layout(campaign)

        def write(batch: TrialBatch) -> None:
            add_blocks(batch.execute, campaign, layout, blocks)
            add_trials(batch.execute, campaign, layout, trials)
            batch.insert_faults(faults)
            batch.insert_tests(tests)

        self._write_trials(campaign, write)

    def merge_blocks(self, campaign: int, *, running: bool = False) -> None:
        """Merge small blocks of trials, which many small batches leave behind."""
        layout = self._block_layout(campaign)
        runs = self._small_runs(campaign, gaps=not running)
        for run in runs:

            def write(batch: TrialBatch, run: Sequence[BlockRange] = run) -> None:
                merge(batch.execute, campaign, layout, run)

            self._write_trials(campaign, write)
        if runs and not running:
            self._free_space()

    def add_hits(self, campaign: int, hits: Mapping[int, Iterable[int]]) -> None:
        """Add targets, by id, to the hits of trials: those found later, such as killed mutants."""
        layout = self._block_layout(campaign)
        added = {trial: list(ids) for trial, ids in hits.items()}  # `write` may run several times

        def write(batch: TrialBatch) -> None:
            add_hits(batch.execute, campaign, layout, added, self._refuse_trial)

        self._write_trials(campaign, write)

    def _block_layout(self, campaign: int) -> BlockLayout:
        """Return what blocks need to know about a campaign; it never changes."""
        layouts: dict[int, BlockLayout] = self.__dict__.setdefault("_layouts", {})
        if campaign not in layouts:
            self._must_have(campaign)
            ((seed, space),) = self._rows(
                "SELECT seed, space FROM campaigns WHERE id = ?", campaign
            )
            try:
                layouts[campaign] = BlockLayout(
                    features_of(json.loads(self._decoded((space,))[0])), int(seed)
                )
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                where = f"the space or the seed of campaign {campaign}"
                raise UserError(damaged(self.url, where, error)) from error
        return layouts[campaign]

    # Blocks.

    def blocks(self, campaign: int, *, after: int = -1, hits: bool = True) -> Iterator[TrialBlock]:
        """Stream the trials with numbers above `after` as columns, in order."""
        self._must_have(campaign)
        selection = _Selection(after, FAR, None, None)
        groups = self._groups()
        blocks = self._blocks(campaign, selection, hits=hits)
        return (_part(block, selection).with_faults(groups) for block in blocks)

    def packed_blocks(self, campaign: int) -> Iterator[PackedBlock]:
        """Stream the trials of a campaign as blocks that `record_blocks` of another store takes."""
        self._must_have(campaign)
        after = -FAR - 1
        query = (
            f"{READ_PACKED} WHERE blocks.campaign = ? AND blocks.first > ? ORDER BY blocks.first"
        )
        # Blocks that are merged meanwhile begin at the first trial of one of them.
        while rows := self._rows(f"{query} LIMIT {_AT_ONCE}", campaign, after):
            firsts = [row[0] for row in rows]
            faults: dict[int, list[FaultTotal]] = {first: [] for first in firsts}
            for first, *total in self._rows(_BLOCK_FAULTS, campaign, firsts[0], firsts[-1]):
                faults.setdefault(first, []).append(FaultTotal._make(self._decoded(tuple(total))))
            for row in rows:
                yield packed_row(row, faults[row[0]])
            after = max(firsts[-1], *(row[1] for row in rows))

    def _blocks(
        self, campaign: int, selection: _Selection, *, newest_first: bool = False, hits: bool = True
    ) -> Iterator[TrialBlock]:
        """Yield the blocks that may have the selected trials."""
        layout = self._block_layout(campaign)
        for row in self._block_rows(campaign, selection, newest_first=newest_first, hits=hits):
            try:
                yield _checked(unpack_row(row, layout, hits=hits), row)
            except ValueError as error:
                raise UserError(self._damaged_block(campaign, row, error)) from error

    def _damaged_block(self, campaign: int, row: Row, error: Exception) -> str:
        where = f"trials {row[0]:,} to {row[1]:,} of campaign {campaign}"
        return damaged(self.url, where, error)

    def _block_rows(
        self, campaign: int, selection: _Selection, *, newest_first: bool, hits: bool
    ) -> Iterator[Row]:
        """Yield the rows of the blocks that may have the selected trials."""
        after, before = selection.after, selection.before
        condition, values = selection.condition()
        order = "DESC" if newest_first else "ASC"
        query = (
            f"{READ_BLOCK if hits else READ_COLUMNS} WHERE blocks.campaign = ? "
            f"AND blocks.first >= ? AND blocks.first < ?{condition} "
            f"ORDER BY blocks.first {order} LIMIT "
        )
        at_once = 1
        while after + 1 < before:
            rows = self._rows(
                f"{query}{at_once}", campaign, self._begin(campaign, after), before, *values
            )
            for row in rows:
                first, last = row[:2]
                if last > after or last < first:  # the latter is damaged, which the reader says
                    yield row
                if newest_first:
                    before = first
                else:
                    after = max(after, first, last)
            if len(rows) < at_once:
                return
            at_once = _AT_ONCE

    def _begin(self, campaign: int, after: int) -> int:
        """Return the first trial of the block that may have the trial after `after`."""
        rows = self._rows(
            "SELECT max(first) FROM blocks WHERE campaign = ? AND first <= ?",
            campaign,
            min(after + 1, FAR),
        )
        return int(rows[0][0]) if rows and rows[0][0] is not None else -FAR - 1

    def hit_summary(self, campaign: int) -> HitSummary:
        """Return how often each target was hit, and by which trial first."""
        from swarmtest.store.blocks.codec import unpack_hit_summary
        from swarmtest.store.blocks.summaries import join_hit_summaries

        self._must_have(campaign)
        parts = self._parts(campaign, "block_targets", "targets")
        return join_hit_summaries(
            self._unpacked(campaign, first, unpack_hit_summary, part) for first, part in parts
        )

    def feature_summary(self, campaign: int) -> FeatureSummary:
        """Return how often each feature was enabled and used."""
        from swarmtest.store.blocks.codec import unpack_features
        from swarmtest.store.blocks.summaries import join_feature_summaries

        features = self._block_layout(campaign).features
        parts = self._parts(campaign, "blocks", "features")
        return join_feature_summaries(
            (self._unpacked(campaign, first, unpack_features, part) for first, part in parts),
            features,
        )

    def _parts(self, campaign: int, table: str, column: str) -> Iterator[tuple[int, bytes]]:
        """Yield one part of each block, with the block's first trial."""
        after = -FAR - 1
        query = (
            f"SELECT first, {column} FROM {table} WHERE campaign = ? AND first > ? "
            "ORDER BY first LIMIT 64"
        )
        while rows := self._rows(query, campaign, after):
            yield from rows
            after = rows[-1][0]

    def _unpacked(self, campaign: int, first: int, unpack: Any, part: bytes) -> Any:
        try:
            return unpack(bytes(part))
        except ValueError as error:
            where = f"the sums of the block from trial {first:,} of campaign {campaign}"
            raise UserError(damaged(self.url, where, error)) from error

    def block_ranges(self, campaign: int) -> list[tuple[int, int, int]]:
        """Return the first and last trial of each block, and how many trials it has, in order."""
        self._must_have(campaign)
        rows = self._rows(
            "SELECT first, last, trials FROM blocks WHERE campaign = ? ORDER BY first", campaign
        )
        return [(first, last, trials) for first, last, trials in rows]

    def _small_runs(self, campaign: int, *, gaps: bool) -> list[list[BlockRange]]:
        """Return neighbouring small blocks that are worth merging."""
        ranges = map(BlockRange._make, self.block_ranges(campaign))
        return list(small_runs(ranges, gaps=gaps))

    def _lost_in_conversion(self) -> list[str]:
        """Return what an older store had lost before it was converted, a line for each."""
        from swarmtest.store.conversion import LOST

        rows = self._rows("SELECT value FROM meta WHERE key = ?", LOST)
        lines = [line for (text,) in rows for line in json.loads(self._decoded((text,))[0])]
        return [f"{line}, and was left out when the store was converted" for line in lines]

    # Trials.

    def trials(
        self,
        campaign: int,
        *,
        after: int = -1,
        before: int | None = None,
        verdict: int | None = None,
        fault: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[TrialRecord]:
        """Stream trials in the order of their numbers, all or a selection."""
        self._must_have(campaign)
        highest = FAR if before is None else min(before, FAR)
        groups = self._groups()
        faults = None if fault is None else _members(fault, groups)
        selection = _Selection(min(after, FAR), highest, verdict, faults)
        found = self._trials(campaign, selection, newest_first, limit)
        if not groups:
            return found
        return (each._replace(fault=groups.get(each.fault or "", each.fault)) for each in found)

    def _trials(
        self,
        campaign: int,
        selection: _Selection,
        newest_first: bool,
        limit: int | None,
    ) -> Iterator[TrialRecord]:
        left = FAR if limit is None else limit
        if left <= 0:
            return
        faults = selection.faults
        encoded = None if faults is None else tuple(str(self._encoded(each)) for each in faults)
        in_sql = selection._replace(faults=encoded)
        layout = self._block_layout(campaign)
        for row in self._block_rows(campaign, in_sql, newest_first=newest_first, hits=True):
            try:
                records = _selected(row, selection, layout, left, newest_first)
            except ValueError as error:
                raise UserError(self._damaged_block(campaign, row, error)) from error
            yield from records
            left -= len(records)
            if left <= 0:
                return

    def trial(self, campaign: int, trial: int) -> TrialRecord:
        """Return one trial; raise a `UserError` if it does not exist."""
        self._must_have(campaign)
        if abs(trial) < FAR:
            for record in self.trials(campaign, after=trial - 1, before=trial + 1):
                return record
        return self._refuse_trial(campaign, trial)

    def trial_numbers(self, campaign: int) -> Iterator[int]:
        """Stream the numbers of all recorded trials in order; `resume` does not run them again."""
        self._must_have(campaign)
        return self._numbers(campaign)

    def _numbers(self, campaign: int) -> Iterator[int]:
        query = (
            "SELECT first, last, trials FROM blocks WHERE campaign = ? AND first > ? "
            "ORDER BY first LIMIT 1000"
        )
        after = -FAR - 1
        while rows := self._rows(query, campaign, after):
            for first, last, trials in rows:
                if trials == last - first + 1:
                    yield from range(max(first, after + 1), last + 1)
                else:
                    selection = _Selection(max(first - 1, after), last + 1, None, None)
                    for block in self._blocks(campaign, selection, hits=False):
                        yield from _part(block, selection).numbers.tolist()
                after = max(after, last)

    def _refuse_trial(self, campaign: int, trial: int) -> NoReturn:
        raise UserError(self._no_trial(campaign, trial))

    def _no_trial(self, campaign: int, trial: int) -> str:
        query = "SELECT sum(trials), min(first), max(last) FROM blocks WHERE campaign = ?"
        count, low, high = self._rows(query, campaign)[0]
        return no_trial(campaign, trial, self.url, (int(count or 0), low, high))

    # Totals.

    def summary(self, campaign: int) -> dict[str, int]:
        """Return totals: trials, passed, failed, invalid, steps, skipped, cpu_ns, wall_ns."""
        self._must_have(campaign)
        sums = ", ".join(f"sum({name})" for name in TOTALS)
        (row,) = self._rows(f"SELECT {sums} FROM blocks WHERE campaign = ?", campaign)
        return {name: int(total or 0) for name, total in zip(TOTALS, row, strict=True)}

    def progress(self, campaign: int, buckets: int = 200) -> list[ProgressPoint]:
        """Return the cumulative findings at about `buckets` evenly spaced trials."""
        self._must_have(campaign)
        rows = self._rows(
            "SELECT last, trials, failed, cpu_ns FROM blocks WHERE campaign = ? ORDER BY first",
            campaign,
        )
        if not rows:
            return []
        newest = rows[-1][0]
        width = -(-(newest + 1) // buckets)
        sums: dict[int, list[int]] = {}
        """For each bucket its last trial, and what it adds: tests, failed tests, time."""
        if width >= BLOCK_SIZE:  # then the totals of whole blocks are fine enough
            for last, *values in rows:
                _add(sums, last // width, last, map(int, values))
        else:
            for block in self.blocks(campaign, hits=False):
                for bucket, *values in _bucket_sums(block, width):
                    _add(sums, bucket, min((bucket + 1) * width - 1, newest), values)
        query = "SELECT id, first_trial FROM faults WHERE campaign = ? ORDER BY first_trial"
        groups = self._groups()
        first_trials: dict[str, int] = {}
        for fault, first in self._rows(query, campaign):
            first_trials.setdefault(groups.get(str(fault), str(fault)), first)
        return _cumulated(sums, list(first_trials.values()))


def _members(fault: str, groups: Mapping[str, str]) -> tuple[str, ...]:
    """Return the recorded faults that are shown as a fault; also if it is named by a member."""
    shown = groups.get(fault, fault)
    return (shown, *(member for member, group in groups.items() if group == shown))


def _add(sums: dict[int, list[int]], bucket: int, last: int, values: Any) -> None:
    before = sums.setdefault(bucket, [last, 0, 0, 0])
    sums[bucket] = [last, *(a + b for a, b in zip(before[1:], values, strict=True))]


def _bucket_sums(block: TrialBlock, width: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield bucket, tests, failed tests and CPU time for each bucket of a block."""
    import numpy as np

    buckets, starts, tests = np.unique(
        block.numbers // width, return_index=True, return_counts=True
    )
    failed = np.add.reduceat((block.verdicts == 1).astype(np.int64), starts)
    cpu_ns = np.add.reduceat(block.cpu_ns, starts)
    return zip(buckets.tolist(), tests.tolist(), failed.tolist(), cpu_ns.tolist(), strict=True)


def _cumulated(sums: dict[int, list[int]], first_trials: list[int]) -> list[ProgressPoint]:
    """Return cumulative points from the sums of buckets.

    >>> for point in _cumulated({0: [9, 10, 1, 5], 2: [23, 4, 2, 5]}, first_trials=[3, 21]):
    ...     print(*point)
    9 10 1 1 5
    23 14 3 2 10
    """
    points = []
    tests = failed = cpu_ns = faults = 0
    for bucket in sorted(sums):
        trial, more_tests, more_failed, more_cpu = sums[bucket]
        tests, failed, cpu_ns = tests + more_tests, failed + more_failed, cpu_ns + more_cpu
        while faults < len(first_trials) and first_trials[faults] <= trial:
            faults += 1
        points.append(ProgressPoint(trial, tests, failed, faults, cpu_ns))
    return points


def _selected(
    row: Row, selection: _Selection, layout: BlockLayout, most: int, newest_first: bool
) -> list[TrialRecord]:
    """Return the selected trials of a block, at most so many."""
    if is_loose(bytes(row[2])):
        trials = [trial for trial in loose_records(bytes(row[2])) if selection.has(trial)]
        return trials[::-1][:most] if newest_first else trials[:most]
    block = _checked(unpack_row(row, layout), row)
    positions = _positions(block, selection)
    chosen = positions[-most:] if newest_first else positions[:most]
    records = list(block.take(chosen).records())
    return records[::-1] if newest_first else records


def _checked(block: TrialBlock, row: Row) -> TrialBlock:
    first, last = row[:2]
    if (block.first, block.last) != (first, last):
        raise ValueError(f"it has trials {block.first:,} to {block.last:,}")
    return block


def _positions(block: TrialBlock, selection: _Selection) -> Any:
    """Return the positions of the selected trials of a block."""
    import numpy as np

    chosen = (block.numbers > selection.after) & (block.numbers < selection.before)
    if selection.verdict is not None:
        chosen &= block.verdicts == selection.verdict
    if selection.faults is not None:
        wanted = [index for index, fault in enumerate(block.faults) if fault in selection.faults]
        chosen &= np.isin(block.fault_index, wanted)
    return np.flatnonzero(chosen)


def _part(block: TrialBlock, selection: _Selection) -> TrialBlock:
    """Return the part of a block that lies within a range of trials."""
    if block.first > selection.after and block.last < selection.before:
        return block
    return block.take(_positions(block, selection))
