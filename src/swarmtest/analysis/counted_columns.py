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
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bits import Bits, Bools
from swarmtest.analysis.cells import Cells
from swarmtest.analysis.chances import Chances
from swarmtest.analysis.evidence import Evidence
from swarmtest.analysis.intervals import Floats, wilson_interval

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
