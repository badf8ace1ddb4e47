"""Hits by target, a block of tests at a time: what is counted against features.

A store keeps hits by target, in blocks of some thousand tests. Counting goes from block to block,
so that a campaign of any size needs no more memory than one block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import (
    MOST_TESTS,
    Bools,
    Words,
    bits_of,
    chunks,
    listed_tests,
    packed_column,
    put_bits,
)
from swarmtest.analysis.block_reading import counted_blocks, known_hits
from swarmtest.analysis.trial_columns import Evidence

_WORD = 64
_FLAGS = 32 << 20
"""Bytes for bits that are not packed yet."""
Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class HitBlock:
    """Which of the tests from `start` to `stop` hit each row of a table.

    Rows that the same of these tests hit share a class.
    """

    start: int
    stop: int
    starts: npt.NDArray[np.int64]
    """Where the tests of each class start in `tests`, and where those of the last one end."""
    tests: Numbers
    """Test numbers within the block, ascending for each class."""
    rows: Numbers | None = None
    """The rows that were hit, each once; None if class i is row i."""
    classes: Numbers | None = None
    """The class of each of `rows`."""
    others: Bools | None = None
    """The classes whose tests are those that did *not* hit; None if there are none."""

    @property
    def size(self) -> int:
        """Return how many tests there are."""
        return self.stop - self.start

    @cached_property
    def hits(self) -> npt.NDArray[np.int64]:
        """Return how many tests hit each class."""
        listed = np.diff(self.starts)
        return listed if self.others is None else np.where(self.others, self.size - listed, listed)

    @cached_property
    def chosen(self) -> Numbers:
        """Return the classes that rows have, and that some test hit."""
        hit = np.flatnonzero(self.hits)
        if self.classes is None:
            return hit
        has_rows = np.zeros(len(self.starts) - 1, bool)
        has_rows[self.classes] = True
        return hit[has_rows[hit]]

    def pieces(self, most: int) -> Iterator[HitBlock]:
        """Yield the block in pieces of at most `most` classes, to save memory."""
        count = len(self.starts) - 1
        if count <= most:
            yield self
            return
        rows = np.arange(count) if self.rows is None else self.rows
        classes = np.arange(count) if self.classes is None else self.classes
        order = np.argsort(classes, kind="stable")
        bounds = np.searchsorted(classes[order], np.arange(0, count + most, most))
        for part, first, end in zip(chunks(count, most), bounds[:-1], bounds[1:], strict=True):
            chosen = order[first:end]
            yield HitBlock(
                self.start,
                self.stop,
                self.starts[part.start : part.stop + 1],
                self.tests,
                rows[chosen],
                classes[chosen] - part.start,
                None if self.others is None else self.others[part],
            )

    def add(self, totals: Numbers, by_class: Numbers) -> None:
        """Add what was counted for each class to the totals of its rows."""
        if self.rows is None:
            totals += by_class
        else:
            totals[self.rows] += by_class[self.classes]

    def whole(self, of_listed: Numbers, of_all: Numbers) -> Numbers:
        """Return sums over the hits of each class, from those over `tests` and over all tests."""
        if self.others is not None:
            of_listed[self.others] = of_all - of_listed[self.others]
        return of_listed

    def entries(self) -> tuple[Numbers, Numbers]:
        """Return every hit as a row and a test of the evidence, ascending for each row."""
        classes = np.arange(len(self.hits)) if self.classes is None else self.classes
        rows = np.arange(len(self.hits)) if self.rows is None else self.rows
        if self.others is None or not self.others[classes].any():
            lengths = self.hits[classes]
            tests = listed_tests(self.starts, self.tests, classes, lengths)
            return np.repeat(rows, lengths), self.start + tests
        bits = self.columns(classes).view(np.uint8)
        flags = np.unpackbits(bits, axis=1, count=self.size, bitorder="little")
        row, tests = np.nonzero(flags)
        return rows[row], self.start + tests

    def columns(self, chosen: Numbers) -> Words:
        """Return a row of bits for each of some classes; bit i is the block's i-th test."""
        width = -(-self.size // _WORD)
        words = np.empty((len(chosen), width), np.uint64)
        for part in chunks(len(chosen), max(_FLAGS // (width * _WORD), 1)):
            words[part] = bits_of(self.starts, self.tests, chosen[part], width * _WORD)
        if self.others is not None and self.others[chosen].any():
            everything = packed_column(np.ones(self.size, bool))
            words[self.others[chosen]] ^= everything
        return words


def hit_blocks(evidence: Evidence, ids: Sequence[int]) -> Iterator[HitBlock]:
    """Yield the hits of the evidence's tests, with a row for each of some target ids."""
    lookup = np.full(max(ids, default=0) + 1, -1, np.int64)
    lookup[np.asarray(ids, np.int64)] = np.arange(len(ids))
    for start, block in counted_blocks(evidence):
        hits = known_hits(block, evidence.store.url if evidence.store else "")
        known = hits.targets[: np.searchsorted(hits.targets, len(lookup))]
        rows = lookup[known]
        wanted = np.flatnonzero(rows >= 0)
        starts, positions, others = hits.stored
        yield HitBlock(
            start,
            start + block.size,
            starts,
            positions,
            rows[wanted],
            hits.classes[wanted],
            others if others.any() else None,
        )


def hit_columns(evidence: Evidence, ids: Sequence[int]) -> Words:
    """Return, for each of some target ids, the tests that hit it as a column of bits."""
    columns = np.zeros((len(ids), -(-evidence.n // _WORD)), np.uint64)
    for block in hit_blocks(evidence, ids):
        if len(block.chosen):
            bits = np.zeros((len(block.hits), -(-block.size // _WORD)), np.uint64)
            bits[block.chosen] = block.columns(block.chosen)
            put_bits(columns, block.start, bits[block.classes], block.rows)
    return columns


def hit_counts(evidence: Evidence, ids: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return, for each of some target ids, how many tests hit it."""
    counts = np.zeros(len(ids), np.int64)
    for block in hit_blocks(evidence, ids):
        block.add(counts, block.hits)
    return counts


def blocks_of_tests(hits: Sequence[Numbers], tests: int) -> Iterator[HitBlock]:
    """Yield blocks of targets with known hits: for each, the tests that hit it, ascending."""
    for part in chunks(tests, MOST_TESTS):
        inside = [
            target[slice(*np.searchsorted(target, [part.start, part.stop]))] for target in hits
        ]
        starts = np.cumsum([0, *map(len, inside)])
        together = np.concatenate([*inside, np.empty(0, np.int64)]).astype(np.int64)
        yield HitBlock(part.start, part.stop, starts, together - part.start)
