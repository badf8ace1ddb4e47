"""What tests hit, target by target: the store's rows turned round, a block of tests at a time.

A store keeps, for each test, the targets that it hit; statistics need, for each target, the tests
that hit it. A block holds as many tests as have a fixed number of hits, whatever the number of
targets, so counts over any campaign need no more memory than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bits import Bools, Words
from swarmtest.analysis.evidence import Evidence
from swarmtest.analysis.evidence_columns import hit_ids
from swarmtest.analysis.kernels import MOST_TESTS, turn
from swarmtest.store import Store

BLOCK_HITS = 16_000_000
"""Hits of a block, as a rule: some 200 MB while they are turned round."""
_WORD = 64
Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class HitBlock:
    """Which of the tests from `start` to `stop` hit each target."""

    start: int
    stop: int
    starts: npt.NDArray[np.int64]
    """Where the tests of each target start in `tests`; and where those of the last end."""
    tests: npt.NDArray[np.uint16]
    """Numbers within the block, ascending for each target."""

    @property
    def hits(self) -> npt.NDArray[np.int64]:
        """How many tests hit each target."""
        return np.diff(self.starts)

    @property
    def entry_targets(self) -> npt.NDArray[np.int64]:
        """For each of `tests`, the target that it hit."""
        return np.repeat(np.arange(len(self.starts) - 1), self.hits)

    def columns(self, chosen: npt.NDArray[np.intp] | None = None) -> Words:
        """A row of bits for each target, or for some; bit i is the i-th test of the block."""
        if chosen is None:
            chosen = np.arange(len(self.starts) - 1)
        width = -(-(self.stop - self.start) // _WORD)
        words = np.zeros((len(chosen), width), np.uint64)
        for row, target in enumerate(chosen.tolist()):
            tests = self.tests[self.starts[target] : self.starts[target + 1]]
            hit = np.zeros(width * _WORD, np.uint8)
            hit[tests] = 1
            words[row] = np.packbits(hit, bitorder="little").view(np.uint64)
        return words


def hit_blocks(store: Store, evidence: Evidence, ids: Sequence[int]) -> Iterator[HitBlock]:
    """The tests of the evidence in blocks, with a column for each of the store's target ids."""
    lookup = np.full(max(ids, default=0) + 1, -1, np.int32)
    lookup[np.asarray(ids, np.int64)] = np.arange(len(ids), dtype=np.int32)
    return turned(_hit_rows(store, evidence, lookup), len(ids))


def blocks_of_numbers(numbers: Numbers, targets: int) -> Iterator[HitBlock]:
    """Blocks of tests that each hit one target, by its number; -1: none."""
    nothing = np.empty(0, np.int32)
    return turned(
        (numbers[i : i + 1] if n >= 0 else nothing for i, n in enumerate(numbers)), targets
    )


def blocks_of_bools(hits: Bools) -> Iterator[HitBlock]:
    """Blocks of tests whose hits are given: tests by targets."""
    rows = (np.flatnonzero(row).astype(np.int32) for row in hits)
    return turned(rows, hits.shape[1])


def turned(rows: Iterable[Numbers], targets: int) -> Iterator[HitBlock]:
    """Blocks of tests, of each of which the columns that it hit are given."""
    waiting: list[Numbers] = []
    start = hits = 0
    for row in rows:
        waiting.append(row)
        hits += len(row)
        # Whole words of tests, so that the columns of blocks can be put side by side.
        full = hits >= BLOCK_HITS or len(waiting) >= MOST_TESTS
        if full and not len(waiting) % _WORD:
            block = _block(start, waiting, targets)
            yield block
            start, hits, waiting = block.stop, 0, []
    if waiting:
        yield _block(start, waiting, targets)


def _block(start: int, rows: list[Numbers], targets: int) -> HitBlock:
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    columns = np.concatenate(rows)
    stop = start + len(rows)
    rows.clear()
    return HitBlock(start, stop, *turn(columns, lengths, targets, 25 * len(columns)))


def _hit_rows(store: Store, evidence: Evidence, lookup: Numbers) -> Iterator[Numbers]:
    """For each test of the evidence, the columns that it hit."""
    for number, campaign in enumerate(evidence.campaigns):
        counted = evidence.trial[evidence.campaign == number]
        at = 0
        for trial in store.trials(campaign):
            # A campaign that is still running may have more tests by now than it had.
            if at == len(counted):
                break
            if trial.trial != counted[at]:
                continue
            at += 1
            ids = hit_ids(trial)
            columns = lookup[ids[: np.searchsorted(ids, len(lookup))]]
            yield columns[columns >= 0]
