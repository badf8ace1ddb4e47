"""What hits are counted against: columns of tests, and how the cells of a table follow from counts.

A feature that is alone in its test had to be there, since the empty test is never run. Such a hit
says something about the feature only if the empty test would *not* have hit, which can be told in
two ways. A test whose guards let no step run is an empty test: if there were some and none hit, the
target needs something. Or another feature alone never hit, though it is no suppressor. Where
neither is known, tests of single features are left out. (In a space of three features they may be
most of the hits; in one of twenty there are hardly any.)
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import MOST_TESTS, Bits, Bools, Words, turn
from swarmtest.analysis.cells import Cells
from swarmtest.analysis.intervals import Floats, wilson_interval
from swarmtest.analysis.propensities import Chances
from swarmtest.analysis.trial_columns import Evidence, hit_ids
from swarmtest.store.interface import Store

# -------------------------------------------------------------------------------------------------
# What tests hit, target by target: the store's rows turned round, a block of tests at a time.
#
# A store keeps, for each test, the targets that it hit; statistics need, for each target, the
# tests
# that hit it. A block holds as many tests as have a fixed number of hits, whatever the number of
# targets, so counts over any campaign need no more memory than that.

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


# -------------------------------------------------------------------------------------------------

_FEW = 4
"""A feature with no more different chances than this gets a column of bits for each."""
_BY_CHANCE = 0.01
"""How often luck may make a feature alone look needed."""
_IDLE = 5
"""Tests without a step that tell what an empty test does."""


@dataclass(frozen=True)
class CountedColumns:
    """Columns of tests, those that are alike once, and which feature has which."""

    bits: Bits
    tests: npt.NDArray[np.int64]
    """How many tests each column has."""
    containing: list[int]
    informative: list[int]
    alone: list[int]
    idle: int
    """Tests in which no step ran."""
    alone_chance: Floats
    expected: list[list[tuple[int, float]]]
    """For each feature, the columns of tests with the same chance, and that chance."""

    @property
    def few(self) -> bool:
        """Whether chances are columns; otherwise there are too many different ones."""
        return len(self.expected) == len(self.containing)

    def expected_chances(
        self, evidence: Evidence, chances: Chances, tests: slice
    ) -> npt.NDArray[np.float32]:
        """Some tests by features: the chance where it counts, 0 elsewhere."""
        enabled, values = evidence.enabled[tests], chances.values[tests]
        single = enabled & (enabled.sum(axis=1) == 1)[:, None]
        values[single | np.isnan(values)] = 0
        return values


def counted_columns(evidence: Evidence, chances: Chances) -> CountedColumns:
    """All columns, feature by feature: most features share their `informative` one."""
    containing, informative, lonely = [], [], []
    expected: list[list[tuple[int, float]]] = []
    alone_chance = np.zeros(len(evidence.features))
    one_only = evidence.enabled.sizes() == 1
    found = _Distinct(evidence.n)
    for i in range(len(evidence.features)):
        inside, chance = evidence.enabled[:, i], chances.values[:, i]
        told = ~np.isnan(chance)
        single = inside & one_only & told
        with_others = told & ~single
        containing.append(found.place(inside & with_others))
        informative.append(found.place(with_others))
        lonely.append(found.place(single))
        alone_chance[i] = chance[single].sum(dtype=float) / max(int(single.sum()), 1)
        if len(expected) == i:
            different = _different(chance[with_others])
            if len(different) <= _FEW:
                same = [(found.place((chance == v) & with_others), float(v)) for v in different]
                expected.append(same)
    idle = found.place(evidence.steps == 0)
    return CountedColumns(
        found.bits(),
        np.array(found.tests),
        containing,
        informative,
        lonely,
        idle,
        alone_chance,
        expected,
    )


def _different(chances: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The different values; as a rule there is one."""
    if len(chances) and chances.min() == chances.max():
        return chances[:1]
    return np.unique(chances)


class _Distinct:
    """Columns that were not there before."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._known: dict[bytes, int] = {}
        self._packed: list[npt.NDArray[np.uint8]] = []
        self.tests: list[int] = []

    def place(self, column: Bools) -> int:
        """The number of a column."""
        packed = np.packbits(column)
        key = hashlib.blake2b(packed.tobytes(), digest_size=16).digest()
        number = self._known.setdefault(key, len(self._packed))
        if number == len(self._packed):
            self._packed.append(packed)
            self.tests.append(int(column.sum()))
        return number

    def bits(self) -> Bits:
        """All of them, turned into rows of tests."""
        whole = Bits.empty(self._n, len(self._packed))
        for number, packed in enumerate(self._packed):
            whole.set_column(number, np.unpackbits(packed, count=self._n).view(np.bool_))
        return whole


@dataclass(frozen=True)
class CountedCells:
    """Cells of a table that follow from counts of hits."""

    columns: CountedColumns
    counts: npt.NDArray[np.int32]
    """Rows by columns: tests that hit and have the bit set."""
    sums: Floats | None
    """Rows by features: the sum of the chances over the hits, if they are no columns."""
    weight: Floats
    """By row: what a hit counts, less than 1 if tests share configurations."""
    confidence: float

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return len(self.counts), len(self.columns.containing)

    def of(self, rows: Any) -> Cells:
        """Some rows."""
        columns, counts = self.columns, self.counts[rows]
        informative = counts[:, columns.informative].astype(float)
        containing = counts[:, columns.containing].astype(float)
        sums = self._sums(rows, counts)
        high = wilson_interval(containing, informative, self.confidence)[1]
        with np.errstate(invalid="ignore"):
            suppressor = high < sums / informative
        counted = _empty_would_not_hit(columns, counts, suppressor)
        alone = np.where(counted, counts[:, columns.alone], 0)
        informative += alone
        containing += alone
        with np.errstate(invalid="ignore"):
            base = (sums + alone * columns.alone_chance) / informative
        weight = self.weight[rows][:, None]
        return Cells(informative * weight, containing * weight, base, counted)

    def _sums(self, rows: Any, counts: npt.NDArray[np.int32]) -> Floats:
        if self.sums is not None:
            some: Floats = self.sums[rows]
            return some
        sums = np.zeros((len(counts), len(self.columns.expected)))
        for feature, parts in enumerate(self.columns.expected):
            for column, chance in parts:
                sums[:, feature] += chance * counts[:, column]
        return sums


def _empty_would_not_hit(
    columns: CountedColumns, counts: npt.NDArray[np.int32], suppressor: Bools
) -> Bools:
    """Rows by features: whether a hit of the feature alone shows that it was needed."""
    if columns.tests[columns.idle] >= _IDLE:
        nothing: Bools = counts[:, columns.idle] == 0
        return np.repeat(nothing[:, None], len(columns.alone), axis=1)
    alone = counts[:, columns.alone]
    tests = columns.tests[columns.alone]
    # Another feature was alone so often without a hit that it cannot be by chance, if the two were
    # equally likely to hit.
    silent = np.where((alone == 0) & ~suppressor, tests, 0).max(axis=1, keepdims=True)
    clear: Bools = alone / np.maximum(tests, 1) * silent >= math.log(len(tests) / _BY_CHANCE)
    return clear
