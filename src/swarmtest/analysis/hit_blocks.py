"""What tests hit, target by target: the store's rows turned round, a block of tests at a time.

A store keeps, for each test, the targets that it hit; statistics need, for each target, the tests
that hit it. A block holds as many tests as fit a fixed amount of memory, whatever the number of
targets, so counts over any campaign need no more than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.analysis.cooccurrence import Words
from swarmtest.analysis.evidence import Evidence
from swarmtest.store import Store

BLOCK_BYTES = 128 << 20
_WORD = 64


@dataclass(frozen=True)
class HitBlock:
    """Which of the tests from `start` to `stop` hit each target: columns of bits."""

    start: int
    stop: int
    columns: Words


def tests_per_block(targets: int) -> int:
    """How many tests a block takes: whole words of 64.

    >>> tests_per_block(20_000) * 20_000 / 8 <= BLOCK_BYTES
    True
    """
    return max(BLOCK_BYTES * 8 // max(targets, 1) // _WORD, 1) * _WORD


def hit_blocks(store: Store, evidence: Evidence, ids: Sequence[int]) -> Iterator[HitBlock]:
    """The tests of the evidence in blocks, with a column for each of the store's target ids."""
    lookup = np.full(max(ids, default=0) + 1, -1, np.int64)
    lookup[np.asarray(ids, np.int64)] = np.arange(len(ids))
    size = tests_per_block(len(ids))
    rows = _hit_rows(store, evidence, lookup)
    for start in range(0, evidence.n, size):
        stop = min(start + size, evidence.n)
        words = [_word(rows, min(_WORD, stop - at), len(ids)) for at in range(start, stop, _WORD)]
        yield HitBlock(start, stop, np.ascontiguousarray(np.array(words, np.uint64).T))


def _hit_rows(
    store: Store, evidence: Evidence, lookup: npt.NDArray[np.int64]
) -> Iterator[npt.NDArray[np.int64]]:
    """For each test of the evidence, the columns that it hit."""
    nothing = np.empty(0, np.int64)
    for number, campaign in enumerate(evidence.campaigns):
        # A campaign that is still running may have more tests by now than it had.
        counted = set(evidence.trial[evidence.campaign == number].tolist())
        for trial in store.trials(campaign):
            if trial.trial not in counted:
                continue
            if not trial.hits or not trial.hits_are_known:
                yield nothing
                continue
            ids = np.frombuffer(BitMap.deserialize(trial.hits).to_array(), np.uint32)
            columns = lookup[ids[ids < len(lookup)]]
            yield columns[columns >= 0]


def _word(rows: Iterator[npt.NDArray[np.int64]], tests: int, targets: int) -> Words:
    """One word of each column: the next 64 tests."""
    hit = np.zeros((_WORD, targets), np.uint8)
    for test in range(tests):
        hit[test, next(rows)] = 1
    bits = np.packbits(hit, axis=0, bitorder="little")
    return np.ascontiguousarray(bits.T).view(np.uint64)[:, 0]
