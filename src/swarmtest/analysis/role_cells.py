"""The cells of a role table: counts for each target and feature, and what follows from them.

Targets that the same tests hit share a row. The counts of 500,000 rows x 300 features take 600 MB,
and everything that follows from them would take ten times as much. So that is computed for some
rows at a time, and of the whole table only the roles are kept (a byte per cell), and the p-values
of triggers and suppressors. The counts of a large table are not kept either (`SegmentedCells`).

A feature that is alone in its test had to be there, since the empty test is never run. Such a hit
says something about the feature only if the empty test would *not* have hit, which is known in two
cases. A test whose guards let no step run is an empty test: if there were some and none hit, the
target needs something. Or another feature alone never hit, although it is not a suppressor. If
neither is known, tests of single features are left out. (In a space of three features they may be
most of the hits; in one of twenty there are hardly any.)
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bools, Words, packed_column, unpacked_column
from swarmtest.analysis.intervals import (
    Floats,
    adjusted_for,
    binomial_p_value,
    normal_quantile,
    wilson_interval,
)
from swarmtest.analysis.propensities import Propensities
from swarmtest.analysis.trial_columns import Evidence

TRIGGER, SUPPRESSOR, IRRELEVANT = "trigger", "suppressor", "irrelevant"
INSUFFICIENT, FIXED = "insufficient data", "no variation"
ROLES = (IRRELEVANT, TRIGGER, SUPPRESSOR, INSUFFICIENT, FIXED)
"""In the order of their codes in `RoleTable.codes`."""

CELLS = 2_000_000
"""How many cells are computed at a time."""

Codes = npt.NDArray[np.int8]


class RoleCells(NamedTuple):
    """The counts of some rows, each an array of rows by features."""

    informative: Floats
    """Hits in which the feature was left to chance."""
    containing: Floats
    """Those of them that contain the feature."""
    base: Floats
    """The share that chance alone would give; NaN if the feature was never left to chance."""
    alone: Bools
    """Whether hits of tests with no other feature are counted in."""

    def of(self, rows: Any) -> RoleCells:
        """Return the cells of some rows."""
        return RoleCells(*(array[rows] for array in self))

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and features."""
        rows, features = self.base.shape
        return rows, features

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """Return Wilson's interval for each share."""
        low, high = wilson_interval(self.containing, self.informative, confidence)
        return np.asarray(low), np.asarray(high)

    def codes(self, confidence: float) -> Codes:
        """Return each role as an index into `ROLES`."""
        low, high = self.interval(confidence)
        odds = np.maximum(self.base, 1 - self.base) / np.minimum(self.base, 1 - self.base)
        enough = self.informative > normal_quantile(confidence) ** 2 * odds
        codes = np.where(enough, 0, ROLES.index(INSUFFICIENT)).astype(np.int8)
        codes[low > self.base] = ROLES.index(TRIGGER)
        codes[high < self.base] = ROLES.index(SUPPRESSOR)
        codes[np.isnan(self.base)] = ROLES.index(FIXED)
        return codes


class RoleCellSource(Protocol):
    """Cells that are computed when they are needed."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and features."""

    def of(self, rows: Any) -> RoleCells:
        """Return the cells of some rows."""


class CellTable(RoleCellSource, Protocol):
    """Cells of which some rows can be a table of their own."""

    def rows(self, rows: npt.NDArray[np.intp]) -> CellTable:
        """Return a table of only some of the rows, in order."""


class RoleClaims(NamedTuple):
    """The triggers and suppressors of a table: the only cells that can be discoveries."""

    positions: npt.NDArray[np.int64]
    """Positions of the cells, row by row, ascending."""
    p_value: Floats
    """Exact and two-sided."""
    adjusted: Floats
    """Corrected for all comparisons of the table (Benjamini and Hochberg)."""


@dataclass(frozen=True)
class RoleRows:
    """The rows of a table with their roles."""

    cells: RoleCellSource
    targets: npt.NDArray[np.int64]
    """How many targets share each row; each of them is a comparison."""
    confidence: float

    def parts(self) -> Iterator[slice]:
        """Yield all rows, as many at a time as fit into memory."""
        rows, features = self.cells.shape
        step = max(CELLS // max(features, 1), 1)
        for start in range(0, rows, step):
            yield slice(start, min(start + step, rows))

    @cached_property
    def codes(self) -> Codes:
        """Return each role as an index into `ROLES`."""
        codes = np.empty(self.cells.shape, np.int8)
        for part in self.parts():
            codes[part] = self.cells.of(part).codes(self.confidence)
        return codes

    @cached_property
    def claims(self) -> RoleClaims:
        """Return the claims with their exact p-values.

        Exact p-values cost more than everything before them, so only claims get them.
        """
        features = self.cells.shape[1]
        claims = sum(len(self._claimed(part)) for part in self.parts())
        positions, p_value = np.empty(claims, np.int64), np.empty(claims)
        end = 0
        for part in self.parts():
            claimed = self._claimed(part)
            cells = self.cells.of(part)
            counts = (cells.containing, cells.informative, cells.base)
            start, end = end, end + len(claimed)
            p_value[start:end] = _p_values(*(array.ravel()[claimed] for array in counts))
            positions[start:end] = claimed + part.start * features
        # There may be millions of claims: narrow numbers, and no copies.
        times = self.targets.astype(np.int32)[positions // max(features, 1)]
        adjusted = adjusted_for(p_value, self._comparisons(), times)
        return RoleClaims(positions, p_value, adjusted)

    def _claimed(self, part: slice) -> npt.NDArray[np.intp]:
        """Return the positions of triggers and suppressors in some rows."""
        codes = self.codes[part]
        return np.flatnonzero((codes == 1) | (codes == 2))

    def discoveries(self, rate: float) -> Codes:
        """Return `codes` with only the roles that survive the correction; others are irrelevant.

        `rate` is the accepted share of false ones among them.
        """
        surviving = self.claims.positions[self.claims.adjusted <= rate]
        codes = np.zeros(self.codes.shape, np.int8)
        codes.ravel()[surviving] = self.codes.ravel()[surviving]
        return codes

    def spread(self, claims: Floats) -> Floats:
        """Return values of the claims as rows by features, with 1 in all other cells."""
        whole = np.ones(self.codes.shape)
        whole.ravel()[self.claims.positions] = claims
        return whole

    def adjusted_of(self, row: int) -> Floats:
        """Return the adjusted p-values of one row."""
        features = self.cells.shape[1]
        first, last = np.searchsorted(self.claims.positions, [row * features, (row + 1) * features])
        values = np.ones(features)
        values[self.claims.positions[first:last] - row * features] = self.claims.adjusted[
            first:last
        ]
        return values

    def _comparisons(self) -> int:
        """Return the number of cells with variation, counted for each target."""
        fixed = ROLES.index(FIXED)
        parts = [(self.codes[part] != fixed).sum(axis=1) for part in self.parts()]
        return int(np.concatenate([*parts, np.empty(0, np.int64)]) @ self.targets)


def _p_values(containing: Floats, informative: Floats, base: Floats) -> Floats:
    """Return p-values, computed once for cells with the same counts, of which there are many."""
    counts = np.ascontiguousarray(np.stack([containing, informative, base], axis=1))
    keys = counts.view(np.dtype((np.void, counts.itemsize * 3)))[:, 0]
    _, first, position = np.unique(keys, return_index=True, return_inverse=True)
    return binomial_p_value(*counts[first].T)[position.ravel()]


# Columns of features, and the cells that follow from them.

_FEW_CHANCES = 4
"""A feature with at most this many different chances gets a column of bits for each."""
_BY_CHANCE = 0.01
"""How often a feature alone may look needed by chance."""
_FEWEST_IDLE = 5
"""How many tests without a step are enough to know what an empty test does."""


@dataclass(frozen=True)
class CountedColumns:
    """Columns of tests, equal ones only once, and which feature has which column."""

    words: Words
    """A row of bits for each column; bit i is the i-th test."""
    tests: npt.NDArray[np.int64]
    """How many tests each column has."""
    containing: list[int]
    informative: list[int]
    alone: list[int]
    idle: int
    """The column of the tests in which no step ran."""
    alone_chance: Floats
    expected: list[list[tuple[int, float]]]
    """For each feature, the columns of tests with the same chance, and that chance."""

    @property
    def few(self) -> bool:
        """Return whether chances are columns; otherwise there are too many different ones."""
        return len(self.expected) == len(self.containing)

    def expected_chances(
        self, evidence: Evidence, chances: Propensities, tests: slice
    ) -> npt.NDArray[np.float32]:
        """Return, for some tests by features, the chance where it counts, and 0 elsewhere."""
        enabled, values = evidence.enabled[tests], chances.values[tests]
        single = enabled & (evidence.sizes[tests] == 1)[:, None]
        values[single | np.isnan(values)] = 0
        return values


def counted_columns(evidence: Evidence, chances: Propensities) -> CountedColumns:
    """Return all columns, feature by feature.

    Most features share their `informative` column.
    """
    containing, informative, lonely = [], [], []
    expected: list[list[tuple[int, float]]] = []
    alone_chance = np.zeros(len(evidence.features))
    columns = _DistinctColumns()
    for i in range(len(evidence.features)):
        inside = evidence.columns[i]
        parts = chances.tests_by_chance(i, told_apart=len(expected) == i)
        known = parts.known
        single = inside & evidence.single & known
        with_others = known & ~single
        containing.append(columns.number_of(inside & with_others))
        informative.append(columns.number_of(with_others))
        lonely.append(columns.number_of(single))
        if single.any():
            alone = np.flatnonzero(unpacked_column(single, evidence.n))
            alone_chance[i] = chances.values[alone, i].sum(dtype=float) / len(alone)
        if len(expected) == i:
            same = [(tests & with_others, chance) for tests, chance in parts.by_chance or ()]
            same = [(tests, chance) for tests, chance in same if tests.any()]
            if parts.by_chance is not None and len(same) <= _FEW_CHANCES:
                expected.append([(columns.number_of(tests), chance) for tests, chance in same])
    idle = columns.number_of(packed_column(evidence.steps == 0))
    return CountedColumns(
        columns.words(),
        np.array(columns.tests),
        containing,
        informative,
        lonely,
        idle,
        alone_chance,
        expected,
    )


class _DistinctColumns:
    """A collection of columns that keeps each distinct one once."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}
        self._columns: list[Words] = []
        self.tests: list[int] = []

    def number_of(self, column: Words) -> int:
        """Return the number of a column, and add it if it is new."""
        key = hashlib.blake2b(column.tobytes(), digest_size=16).digest()
        number = self._known.setdefault(key, len(self._columns))
        if number == len(self._columns):
            self._columns.append(column)
            self.tests.append(int(np.bitwise_count(column).sum(dtype=np.int64)))
        return number

    def words(self) -> Words:
        """Return all columns."""
        return np.stack(self._columns)


@dataclass(frozen=True)
class CountedCells:
    """Cells of a table that follow from counts of hits."""

    columns: CountedColumns
    counts: npt.NDArray[np.int32]
    """Rows by columns: tests that hit and have the bit set."""
    sums: Floats | None
    """Rows by features: the sum of the chances over the hits, if chances are not columns."""
    weight: Floats
    """For each row: what a hit counts, which is less than 1 if tests share configurations."""
    confidence: float

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and features."""
        return len(self.counts), len(self.columns.containing)

    def rows(self, rows: npt.NDArray[np.intp]) -> CountedCells:
        """Return a table of only some of the rows."""
        sums = None if self.sums is None else self.sums[rows]
        weight = self.weight[rows]
        return CountedCells(self.columns, self.counts[rows], sums, weight, self.confidence)

    def of(self, rows: Any) -> RoleCells:
        """Return the cells of some rows."""
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
        return RoleCells(informative * weight, containing * weight, base, counted)

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
    """Return, for rows by features, whether a hit of the feature alone shows that it was needed."""
    if columns.tests[columns.idle] >= _FEWEST_IDLE:
        nothing: Bools = counts[:, columns.idle] == 0
        return np.repeat(nothing[:, None], len(columns.alone), axis=1)
    alone = counts[:, columns.alone]
    tests = columns.tests[columns.alone]
    # Another feature was alone so often without a hit that this cannot be by chance, assuming that
    # both were equally likely to hit.
    silent = np.where((alone == 0) & ~suppressor, tests, 0).max(axis=1, keepdims=True)
    clear: Bools = alone / np.maximum(tests, 1) * silent >= math.log(len(tests) / _BY_CHANCE)
    return clear


@dataclass
class SegmentedCells:
    """Cells of a table whose counts would not fit the memory.

    A segment of rows is counted when one of its rows is needed, and kept until another one is.
    """

    count: Callable[[slice], CountedCells]
    """Counts some rows, with a pass over the tests."""
    length: int
    features: int
    step: int
    """Rows in a segment."""
    _at: int = -1
    _counted: CountedCells | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and features."""
        return self.length, self.features

    def rows(self, rows: npt.NDArray[np.intp]) -> CellTable:
        """Return a table of only some of the rows, in order."""
        return _SelectedCells(self, rows)

    def of(self, rows: Any) -> RoleCells:
        """Return the cells of some rows."""
        numbers = np.arange(self.length)[rows] if isinstance(rows, slice) else np.asarray(rows)
        segments = numbers // self.step
        order = np.argsort(segments, kind="stable")
        parts = [
            self._segment(segment).of(numbers[segments == segment] - segment * self.step)
            for segment in np.unique(segments).tolist()
        ]
        back = np.argsort(order)
        joined = zip(*parts, strict=True)
        return RoleCells(*(np.concatenate(arrays)[back] for arrays in joined))

    def _segment(self, number: int) -> CountedCells:
        if self._counted is None or self._at != number:
            self._counted = None  # gives the memory back before more is taken
            start = number * self.step
            self._counted = self.count(slice(start, min(start + self.step, self.length)))
            self._at = number
        return self._counted


@dataclass(frozen=True)
class _SelectedCells:
    """Some of the rows of a table in segments."""

    whole: SegmentedCells
    chosen: npt.NDArray[np.intp]

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and features."""
        return len(self.chosen), self.whole.features

    def rows(self, rows: npt.NDArray[np.intp]) -> CellTable:
        """Return a table of only some of the rows, in order."""
        return _SelectedCells(self.whole, self.chosen[rows])

    def of(self, rows: Any) -> RoleCells:
        """Return the cells of some rows."""
        return self.whole.of(self.chosen[rows])
