"""The cells of a role table: the counts for each target and feature, and what follows from them.

Targets that the same tests hit share a row. The counts of 500,000 rows x 300 features take 600 MB,
and everything that follows from them would take ten times as much. So that is computed for some
rows at a time, and of the whole table only the roles are kept (a byte per cell), and the p-values
of triggers and suppressors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bools
from swarmtest.analysis.intervals import (
    Floats,
    adjusted_for,
    binomial_p_value,
    normal_quantile,
    wilson_interval,
)

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


class RoleClaims(NamedTuple):
    """The triggers and suppressors of a table: the only cells that can be discoveries."""

    place: npt.NDArray[np.int64]
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
        places, p_values = [np.empty(0, np.int64)], [np.empty(0)]
        for part in self.parts():
            codes = self.codes[part]
            claimed = np.flatnonzero((codes == 1) | (codes == 2))
            cells = self.cells.of(part)
            counts = (cells.containing, cells.informative, cells.base)
            p_values.append(_p_values(*(array.ravel()[claimed] for array in counts)))
            places.append(claimed + part.start * features)
        place, p_value = np.concatenate(places), np.concatenate(p_values)
        below = p_value < 1
        adjusted = np.ones(len(place))
        adjusted[below] = adjusted_for(
            p_value[below], self._comparisons(), self.targets[place[below] // max(features, 1)]
        )
        return RoleClaims(place, p_value, adjusted)

    def discoveries(self, rate: float) -> Codes:
        """Return `codes` with only the roles that survive the correction; others are irrelevant.

        `rate` is the accepted share of false ones among them.
        """
        surviving = self.claims.place[self.claims.adjusted <= rate]
        codes = np.zeros(self.codes.shape, np.int8)
        codes.ravel()[surviving] = self.codes.ravel()[surviving]
        return codes

    def spread(self, claims: Floats) -> Floats:
        """Return values of the claims as rows by features, with 1 in all other cells."""
        whole = np.ones(self.codes.shape)
        whole.ravel()[self.claims.place] = claims
        return whole

    def adjusted_of(self, row: int) -> Floats:
        """Return the adjusted p-values of one row."""
        features = self.cells.shape[1]
        first, last = np.searchsorted(self.claims.place, [row * features, (row + 1) * features])
        values = np.ones(features)
        values[self.claims.place[first:last] - row * features] = self.claims.adjusted[first:last]
        return values

    def _comparisons(self) -> int:
        """Return the number of cells with variation, counted for each target."""
        varying = (self.codes != ROLES.index(FIXED)).sum(axis=1)
        return int(varying @ self.targets)


def _p_values(containing: Floats, informative: Floats, base: Floats) -> Floats:
    """Return p-values, computed once for cells with the same counts, of which there are many."""
    counts = np.ascontiguousarray(np.stack([containing, informative, base], axis=1))
    keys = counts.view(np.dtype((np.void, counts.itemsize * 3)))[:, 0]
    _, first, position = np.unique(keys, return_index=True, return_inverse=True)
    return binomial_p_value(*counts[first].T)[position.ravel()]
