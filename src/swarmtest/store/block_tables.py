"""Write blocks of trials to the tables of a store, for both databases.

Everything here runs in a transaction in which nobody else writes trials of the same campaign. It
keeps three promises:

- The ranges of the blocks of a campaign do not overlap, so one block ends before the next begins.
  A trial that arrives late, between the trials of a stored block, is written into that block.
- A trial that is stored already stays unchanged.
- Small blocks are merged (`merge_small`), but never large ones again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pyroaring import BitMap

from swarmtest.store.loose_blocks import (
    BlockLayout,
    BlockTotals,
    FaultTotal,
    PackedBlock,
    can_be_loose,
    is_loose,
    loose_records,
    pack_loose,
)
from swarmtest.store.records import TrialRecord

if TYPE_CHECKING:
    from swarmtest.store.blocks import BlockHits, TrialBlock

BLOCK_SIZE = 4096
"""`swarmtest.store.blocks.BLOCK_SIZE`, without loading numpy."""

Row = tuple[Any, ...]
Execute = Callable[[str, Sequence[Any]], list[Row]]
"""Runs a statement with a ``?`` for each value, and returns its rows."""

TOTAL_COLUMNS = ", ".join(BlockTotals._fields)
_INSERT_BLOCK = (
    f"INSERT INTO blocks (campaign, {TOTAL_COLUMNS}, features, columns) "
    f"VALUES (?, {', '.join('?' * len(BlockTotals._fields))}, ?, ?)"
)
_INSERT_FAULT = (
    "INSERT INTO block_faults (campaign, fault, first, trials, first_trial) VALUES (?, ?, ?, ?, ?)"
)
_INSERT_TARGETS = "INSERT INTO block_targets (campaign, first, targets) VALUES (?, ?, ?)"
_INSERT_HITS = "INSERT INTO block_hits (campaign, first, hits) VALUES (?, ?, ?)"
_OVERLAPPING = """
SELECT first, last, trials FROM blocks WHERE campaign = ? AND first <= ? AND first >= coalesce(
    (SELECT max(first) FROM blocks WHERE campaign = ? AND first < ?), ?)
ORDER BY first
"""
TABLES = ("blocks", "block_faults", "block_targets", "block_hits")
"""The tables with a row, or several, per block."""

_JOINED = """
LEFT JOIN block_targets ON block_targets.campaign = blocks.campaign
                       AND block_targets.first = blocks.first
LEFT JOIN block_hits ON block_hits.campaign = blocks.campaign AND block_hits.first = blocks.first
"""
READ_BLOCK = f"SELECT blocks.first, blocks.last, columns, targets, hits FROM blocks{_JOINED}"
READ_PACKED = (
    f"SELECT {', '.join(f'blocks.{name}' for name in BlockTotals._fields)}, "
    f"features, columns, targets, hits FROM blocks{_JOINED}"
)
"""All parts of a block."""
READ_COLUMNS = "SELECT first, last, columns, NULL, NULL FROM blocks "
"""The same without hits."""

_WIDEST_GAP = 64
"""Trials further apart go to different blocks: those in between are probably still running."""
_MOST_HITS = 3_000_000
_MOST_ODD_BYTES = 200_000
"""Limits of a block: what is needed to turn its hits round must fit the memory."""
_SMALL = 1024
"""Blocks with fewer trials are merged."""


class BlockRange(NamedTuple):
    """Where a block lies."""

    first: int
    last: int
    trials: int

    @property
    def is_contiguous(self) -> bool:
        """Whether it has every trial from its first to its last."""
        return self.trials == self.last - self.first + 1


def unpack_row(row: Row, layout: BlockLayout, *, hits: bool = True) -> TrialBlock:
    """Return the block of a row of `READ_BLOCK`, or of `READ_COLUMNS` without `hits`."""
    from swarmtest.store.blocks.codec import unpack_block, unpack_hits_of_block

    _, _, columns, targets, positions = row

    def read_hits(size: int) -> BlockHits:
        return unpack_hits_of_block(bytes(targets or b""), bytes(positions or b""), size)

    return unpack_block(bytes(columns), layout, read_hits if hits else None)


def packed_row(row: Row, faults: list[FaultTotal]) -> PackedBlock:
    """Return the block of a row of `READ_PACKED`, as it was packed."""
    *totals, features, columns, targets, hits = row
    parts = (bytes(part or b"") for part in (features, columns, targets, hits))
    return PackedBlock(BlockTotals._make(map(int, totals)), faults, *parts)


# Writing.


def insert_block(execute: Execute, campaign: int, packed: PackedBlock) -> None:
    """Insert a block; no stored block may overlap it."""
    first = packed.totals.first
    execute(_INSERT_BLOCK, (campaign, *packed.totals, packed.features, packed.columns))
    for fault in packed.faults:
        execute(_INSERT_FAULT, (campaign, fault.fault, first, fault.trials, fault.first_trial))
    if packed.targets:
        execute(_INSERT_TARGETS, (campaign, first, packed.targets))
        execute(_INSERT_HITS, (campaign, first, packed.hits))


def _delete_block(execute: Execute, campaign: int, first: int) -> None:
    for table in TABLES:
        execute(f"DELETE FROM {table} WHERE campaign = ? AND first = ?", (campaign, first))


def _overlapping(execute: Execute, campaign: int, first: int, last: int) -> list[BlockRange]:
    """Return the blocks that overlap a range of trials, in order."""
    # As blocks do not overlap each other, only one that begins earlier can reach into the range.
    rows = execute(_OVERLAPPING, (campaign, last, campaign, first, first))
    return [BlockRange._make(row) for row in rows if row[1] >= first]


def add_blocks(
    execute: Execute, campaign: int, layout: BlockLayout, blocks: Sequence[PackedBlock]
) -> None:
    """Add blocks that workers have packed.

    What is stored there already is asked once for all of them: each question waits for the answer
    of the database.
    """
    if not blocks:
        return
    ordered = sorted(blocks, key=lambda block: block.totals.first)
    last = max(block.totals.last for block in ordered)
    taken = _overlapping(execute, campaign, ordered[0].totals.first, last)
    late = []
    for block in ordered:
        if _is_free(taken, block.totals):
            insert_block(execute, campaign, block)
            insort(taken, BlockRange(block.totals.first, block.totals.last, block.totals.trials))
        else:
            late.append(block)
    if late:
        from swarmtest.store.blocks.codec import unpack_whole

        for block in late:
            add_trials(execute, campaign, layout, list(unpack_whole(block, layout).records()))


def _is_free(taken: Sequence[BlockRange], totals: BlockTotals) -> bool:
    """Return whether a block overlaps none of those that are taken, which are in order."""
    place = bisect_right(taken, totals.last, key=lambda each: each.first)
    # As they do not overlap each other, the last one that begins before it ends is the one.
    return place == 0 or taken[place - 1].last < totals.first


def add_trials(
    execute: Execute, campaign: int, layout: BlockLayout, trials: Sequence[TrialRecord]
) -> None:
    """Add trials; those that are stored already, and repetitions, are left out."""
    if not trials:
        return
    by_number = {trial.trial: trial for trial in reversed(trials)}
    numbers = sorted(by_number)
    start = 0
    for stored in _overlapping(execute, campaign, numbers[0], numbers[-1]):
        left, right = bisect_left(numbers, stored.first), bisect_left(numbers, stored.last + 1)
        _add_new(execute, campaign, layout, [by_number[n] for n in numbers[start:left]])
        inside = [by_number[n] for n in numbers[left:right]]
        if inside and not stored.is_contiguous:
            _add_into(execute, campaign, layout, stored.first, inside)
        start = right
    _add_new(execute, campaign, layout, [by_number[n] for n in numbers[start:]])


def _add_new(
    execute: Execute, campaign: int, layout: BlockLayout, trials: Sequence[TrialRecord]
) -> None:
    """Insert trials, in order, that lie in no stored block and around none."""
    for chunk in _chunks(trials):
        for packed in pack_records(chunk, layout):
            insert_block(execute, campaign, packed)


def _add_into(
    execute: Execute,
    campaign: int,
    layout: BlockLayout,
    first: int,
    trials: Sequence[TrialRecord],
) -> None:
    """Add trials to the stored block that they lie in."""
    records = row_records(_read_row(execute, campaign, first), layout)
    stored = {record.trial for record in records}
    new = [trial for trial in trials if trial.trial not in stored]
    if new:
        _replace(execute, campaign, layout, [first], [*records, *new])


def row_records(row: Row, layout: BlockLayout) -> list[TrialRecord]:
    """Return all trials of a row of `READ_BLOCK`."""
    if is_loose(bytes(row[2])):
        return loose_records(bytes(row[2]))
    return list(unpack_row(row, layout).records())


def _read_row(execute: Execute, campaign: int, first: int) -> Row:
    query = f"{READ_BLOCK} WHERE blocks.campaign = ? AND blocks.first = ?"
    return execute(query, (campaign, first))[0]


def _replace(
    execute: Execute,
    campaign: int,
    layout: BlockLayout,
    firsts: Iterable[int],
    trials: Sequence[TrialRecord],
) -> None:
    """Write trials in place of blocks."""
    for first in firsts:
        _delete_block(execute, campaign, first)
    ordered = sorted(trials, key=lambda trial: trial.trial)
    parts = -(-len(ordered) // BLOCK_SIZE)
    size = -(-len(ordered) // parts)
    for start in range(0, len(ordered), size):
        for packed in pack_records(ordered[start : start + size], layout):
            insert_block(execute, campaign, packed)


def _chunks(trials: Sequence[TrialRecord]) -> Iterator[Sequence[TrialRecord]]:
    """Yield trials, in order, in pieces for one block each."""
    start = 0
    for i in range(1, len(trials) + 1):
        if (
            i == len(trials)
            or i - start == BLOCK_SIZE
            or trials[i].trial - trials[i - 1].trial > _WIDEST_GAP
        ):
            yield trials[start:i]
            start = i


def pack_records(trials: Sequence[TrialRecord], layout: BlockLayout) -> Iterator[PackedBlock]:
    """Yield trials, in order, as one block, or as several if their hits are very many."""
    if len(trials) > 1 and _is_too_large(trials):
        half = len(trials) // 2
        yield from pack_records(trials[:half], layout)
        yield from pack_records(trials[half:], layout)
    elif can_be_loose(trials):
        yield pack_loose(trials, layout)
    else:
        from swarmtest.store.blocks import TrialBlock
        from swarmtest.store.blocks.codec import pack_block

        yield pack_block(TrialBlock.from_records(trials, layout.features), layout)


def _is_too_large(trials: Sequence[TrialRecord]) -> bool:
    hits, odd_bytes = 0, 0
    sizes: dict[bytes, int] = {}
    for trial in trials:
        if trial.hits:
            if trial.hits not in sizes:
                try:
                    sizes[trial.hits] = len(BitMap.deserialize(trial.hits))
                except (ValueError, IndexError):
                    sizes[trial.hits] = 0
                    odd_bytes += len(trial.hits)
            hits += sizes[trial.hits]
    return hits > _MOST_HITS or odd_bytes > _MOST_ODD_BYTES


def add_hits(
    execute: Execute,
    campaign: int,
    layout: BlockLayout,
    hits: Mapping[int, Iterable[int]],
    refuse: Callable[[int, int], NoReturn],
) -> None:
    """Add targets to the hits of trials; call `refuse` for a trial that is missing."""
    left = sorted(hits)
    while left:
        stored = _overlapping(execute, campaign, left[0], left[0])
        if not stored:
            refuse(campaign, left[0])
        first, last, _ = stored[0]
        stored_records = row_records(_read_row(execute, campaign, first), layout)
        inside = [number for number in left if number <= last]
        for missing in sorted({*inside} - {trial.trial for trial in stored_records}):
            refuse(campaign, missing)
        records = [_with_more(trial, hits.get(trial.trial)) for trial in stored_records]
        _replace(execute, campaign, layout, [first], records)
        left = left[len(inside) :]


def _with_more(trial: TrialRecord, added: Iterable[int] | None) -> TrialRecord:
    if added is None:
        return trial
    stored = BitMap.deserialize(trial.hits) if trial.hits else BitMap()
    return trial.with_hits((stored | BitMap(added)).serialize())


# Merging.


def small_runs(ranges: Iterable[BlockRange], *, gaps: bool) -> Iterator[list[BlockRange]]:
    """Yield neighbouring small blocks that together make one block.

    Without `gaps`, no trial is missing between them: it might still arrive, and would have to be
    written into the merged block.

    >>> blocks = [BlockRange(0, 9, 10), BlockRange(10, 19, 10), BlockRange(30, 39, 10)]
    >>> [[block.first for block in run] for run in small_runs(blocks, gaps=False)]
    [[0, 10]]
    """
    run: list[BlockRange] = []
    for block in ranges:
        fits = sum(each.trials for each in run) + block.trials <= BLOCK_SIZE
        follows = gaps or not run or run[-1].last + 1 == block.first
        if block.trials >= _SMALL or not fits or not follows:
            if len(run) > 1:
                yield run
            run = []
        if block.trials < _SMALL:
            run.append(block)
    if len(run) > 1:
        yield run


def merge(execute: Execute, campaign: int, layout: BlockLayout, run: Sequence[BlockRange]) -> None:
    """Write small blocks as one, unless another process has changed them meanwhile."""
    stored = _overlapping(execute, campaign, run[0].first, run[-1].last)
    if stored != list(run):
        return
    from swarmtest.store.blocks.codec import pack_block
    from swarmtest.store.blocks.joining import join_blocks

    blocks = [unpack_row(_read_row(execute, campaign, each.first), layout) for each in run]
    if sum(int(block.hits.counts.sum()) for block in blocks) > _MOST_HITS:
        return
    packed = pack_block(join_blocks(blocks), layout)
    for block in run:
        _delete_block(execute, campaign, block.first)
    insert_block(execute, campaign, packed)
