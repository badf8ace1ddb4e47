"""Take rows out of a covering array and mend it by tabu search.

After Torres-Jimenez, Rodriguez-Tello: New bounds for binary covering arrays using simulated
annealing (2012), and Stardom: Metaheuristics and the search for covering arrays (2001), but with
moves aimed at one missing combination: flip the one entry of some row that keeps the row from
containing it. All budgets are counts of moves, so that results do not depend on the machine.
"""

import numpy as np
from numpy.typing import NDArray

from swarmtest.strategies.covering.density import feature_sets

Array = NDArray[np.int8]
Indices = NDArray[np.int64]


def remove_rows(array: Array, t: int, *, moves: int, seed: int = 0) -> Array:
    """A covering array with as many rows fewer as ``moves`` flips, all in all, can mend."""
    random = np.random.default_rng(seed)
    best = array
    while moves > 0 and len(best) > 2**t:
        repair = _Repair(best, t, random)
        repair.drop_least_needed_row()
        used = repair.run(moves)
        moves -= max(used, 1)
        if repair.missing:
            break
        best = repair.rows.copy()
    return best


class _Repair:
    def __init__(self, rows: Array, t: int, random: np.random.Generator) -> None:
        self.rows = rows.copy()
        self._t, self._random = t, random
        self._sets = feature_sets(rows.shape[1], t).astype(np.int64)
        self._with = [np.nonzero(self._sets == f) for f in range(rows.shape[1])]
        self._codes = np.array([self._pattern_codes(row) for row in self.rows])
        self._counts = np.zeros(len(self._sets) * 2**t, dtype=np.int32)
        for codes in self._codes:
            self._counts[codes] += 1
        self.missing: dict[int, None] = {}

    def _pattern_codes(self, row: Array) -> Indices:
        """Which combination the row contains in each set of features, as one flat number."""
        codes = np.arange(len(self._sets)) << self._t
        for position in range(self._t):
            codes |= row[self._sets[:, position]].astype(np.int64) << position
        return codes

    def drop_least_needed_row(self) -> None:
        alone = [int(np.count_nonzero(self._counts[codes] == 1)) for codes in self._codes]
        dropped = int(np.argmin(alone))
        self._counts[self._codes[dropped]] -= 1
        self.missing = dict.fromkeys(np.flatnonzero(self._counts == 0).tolist())
        self.rows = np.delete(self.rows, dropped, axis=0)
        self._codes = np.delete(self._codes, dropped, axis=0)

    def run(self, moves: int) -> int:
        """Flip entries until nothing is missing or the moves are used up; returns those used."""
        tabu_until = np.zeros(self.rows.shape, dtype=np.int64)
        for move in range(moves):
            if not self.missing:
                return move
            target = self._some_missing()
            rows, features = self._nearest(target)
            allowed = tabu_until[rows, features] <= move
            if allowed.any():
                rows, features = rows[allowed], features[allowed]
            losses = np.array(
                [self._loss(r, f) for r, f in zip(rows.tolist(), features.tolist(), strict=True)]
            )
            best = np.flatnonzero(losses == losses.min())
            pick = int(best[self._random.integers(len(best))])
            row, feature = int(rows[pick]), int(features[pick])
            self._flip(row, feature)
            tabu_until[row, feature] = move + 4 + self._random.integers(8)
        return moves

    def _some_missing(self) -> int:
        position = int(self._random.integers(min(len(self.missing), 64)))
        return next(code for i, code in enumerate(self.missing) if i == position)

    def _nearest(self, target: int) -> tuple[Indices, Indices]:
        """Entries whose flip brings a row nearest to containing the target."""
        features = self._sets[target >> self._t]
        wanted = target >> np.arange(self._t) & 1
        wrong = self.rows[:, features] != wanted
        distance = wrong.sum(axis=1)
        rows, positions = np.nonzero(wrong & (distance == distance.min())[:, None])
        return rows, features[positions]

    def _changes(self, row: int, feature: int) -> tuple[Indices, Indices, Indices]:
        sets, positions = self._with[feature]
        before = self._codes[row, sets]
        return sets, before, before ^ (1 << positions)

    def _loss(self, row: int, feature: int) -> int:
        _, before, after = self._changes(row, feature)
        lost = np.count_nonzero(self._counts[before] == 1)
        return int(lost) - int(np.count_nonzero(self._counts[after] == 0))

    def _flip(self, row: int, feature: int) -> None:
        sets, before, after = self._changes(row, feature)
        self._counts[before] -= 1
        for code in after[self._counts[after] == 0].tolist():
            self.missing.pop(code, None)
        self._counts[after] += 1
        self.missing.update(dict.fromkeys(before[self._counts[before] == 0].tolist()))
        self._codes[row, sets] = after
        self.rows[row, feature] ^= 1
