"""Covering arrays for any number of features and any strength.

`covering_array` chooses the construction with the fewest rows or builds the array greedily, and
then removes rows by tabu search where that is quick. The search follows Torres-Jimenez,
Rodriguez-Tello: New bounds for binary covering arrays using simulated annealing (2012), and
Stardom: Metaheuristics and the search for covering arrays (2001), but its moves aim at one missing
combination: flip the one entry of some row that keeps the row from containing it. All budgets are
counts of moves, so that results do not depend on the machine.

`with_open_entries` finds open entries: those that can have either value while everything stays
covered. An entry is open if every combination that it takes part in is in another row too. Opening
one entry may close others, so entries are tried in turn, with counts of how many rows contain each
combination.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb

import numpy as np
from numpy.typing import NDArray

from swarmtest.core.constraints import Masks, Solver
from swarmtest.strategies.covering import constructions as algebraic
from swarmtest.strategies.covering.constructions import STARTERS
from swarmtest.strategies.covering.greedy import (
    OpenCombinations,
    constrained_array,
    feature_sets,
    greedy_rows,
)

Array = NDArray[np.int8]
Indices = NDArray[np.int64]


# The greedy algorithm is worth its time up to this many sets of t features (about a second).
_GREEDY_SETS = 20_000
# It is the last resort up to this many (minutes); with more, its tables would not fit into memory.
_GREEDY_SETS_AT_MOST = 5_000_000
# Rows are removed by search up to this many sets, with this many moves. A move in a large array
# costs more, so there are fewer of them.
_REMOVAL_SETS = 20_000
_REMOVAL_MOVES = 2_000
_REMOVAL_WORK = 2_000_000


def covering_array(
    features: int,
    t: int,
    *,
    clauses: Sequence[tuple[int, ...]] = (),
    seed: int = 0,
    effort: int = 1,
) -> Array:
    """Return rows that together contain every possible combination of t features on or off.

    Entries are 1 for on, 0 for off. ``clauses`` are DIMACS clauses over features 1, 2, ...: all
    rows satisfy them, and only combinations that they allow are covered. ``effort`` multiplies the
    number of search steps. For equal arguments, the array is the same on every machine.
    """
    if features < 1 or t < 1:
        raise ValueError(f"need at least one feature and strength 1, not {features} and {t}")
    t = min(t, features)
    array = _built(features, t, seed, effort)
    if not clauses:
        return _polished(array, t, seed, effort)
    solver = Solver([_masks(clause, features) for clause in clauses], features)
    return constrained_array(array, t, solver, seed=seed, candidates=2 * effort)


def _masks(clause: Sequence[int], features: int) -> Masks:
    """Return a DIMACS clause as the masks of the features that it wants on and off."""
    on = off = 0
    for literal in clause:
        if not 1 <= abs(literal) <= features:
            raise ValueError(f"literal {literal} names no feature out of 1..{features}")
        bit = 1 << abs(literal) - 1
        on, off = (on | bit, off) if literal > 0 else (on, off | bit)
    return on, off


@dataclass(frozen=True)
class _Candidate:
    """A construction whose number of rows is known before it is built."""

    rows: int
    build: Callable[[], Array]


def _built(features: int, t: int, seed: int, effort: int) -> Array:
    if t == 1:
        return np.array([[0] * features, [1] * features], dtype=np.int8)
    structured = min(_candidates(features, t), key=lambda c: c.rows, default=None)
    sets = comb(features, t)
    if structured is not None and (t == 2 or sets > _GREEDY_SETS):
        return structured.build()
    if structured is None and sets > _GREEDY_SETS_AT_MOST:
        raise ValueError(f"no covering array of strength {t} is known here for {features} features")
    greedy = _greedy(features, t, seed, effort)
    return structured.build() if structured and structured.rows <= len(greedy) else greedy


def _polished(array: Array, t: int, seed: int, effort: int) -> Array:
    """Return the array with rows removed, if it has few enough features for that to be quick."""
    features = array.shape[1]
    if t < 3 or comb(features, t) > _REMOVAL_SETS:
        return array
    moves = min(_REMOVAL_MOVES, _REMOVAL_WORK // comb(features - 1, t - 1))
    return remove_rows(array, t, moves=effort * moves, seed=seed)


def _greedy(features: int, t: int, seed: int, effort: int) -> Array:
    missing = OpenCombinations(features, t)
    free = Solver((), features)
    return np.array(greedy_rows(missing, free, seed=seed, candidates=effort), dtype=np.int8)


def _candidates(features: int, t: int) -> Iterator[_Candidate]:
    if t == 2:
        rows = algebraic.kleitman_spencer_rows(features)
        yield _Candidate(rows, partial(algebraic.kleitman_spencer, features))
    if features <= 20:
        rows = algebraic.constant_weight_rows(features, t)
        yield _Candidate(rows, partial(algebraic.constant_weight, features, t))
    for starter in STARTERS:
        if starter.strength == t and starter.columns >= features:
            yield _Candidate(starter.rows, partial(_first_columns, starter.expand, features))
    yield from _residues(features, t)
    if t == 3 and features > 5:
        half = (features + 1) // 2
        yield _doubled(half, features)


def _residues(features: int, t: int) -> Iterator[_Candidate]:
    for complement, primes in (
        (False, algebraic.RESIDUE_PRIMES),
        (True, algebraic.COMPLEMENTED_RESIDUE_PRIMES),
    ):
        for prime in primes.get(t, ()):
            if prime >= features:
                build = partial(algebraic.quadratic_residues, prime, complement=complement)
                yield _Candidate(prime << complement, partial(_first_columns, build, features))


def _doubled(half: int, features: int) -> _Candidate:
    strength_three = min(_candidates(half, 3), key=lambda c: c.rows)
    rows = strength_three.rows + algebraic.kleitman_spencer_rows(half)

    def build() -> Array:
        doubled = algebraic.roux_doubling(strength_three.build(), algebraic.kleitman_spencer(half))
        return doubled[:, :features]

    return _Candidate(rows, build)


def _first_columns(build: Callable[[], Array], features: int) -> Array:
    return build()[:, :features].copy()


_ATTEMPTS = 64
"""How many draws of swapped columns are tried before they are looked for in order."""


def relabelled(
    rows: Array, column: Sequence[int] | Indices, swap: Callable[[int], Sequence[bool]]
) -> Array:
    """Return the array with columns in another order, and on and off swapped in some of them.

    ``column`` has the old column of each new one. ``swap(attempt)`` draws which columns are
    swapped; it is asked again if some row would be a test without features. If every pattern is in
    the array (no more features than t), the empty row itself is removed, because it cannot be run.

    >>> relabelled(np.array([[0, 1], [1, 1]], dtype=np.int8), [1, 0], lambda _: [False] * 2)
    array([[1, 0],
           [1, 1]], dtype=int8)
    """
    ordered: Array = rows[:, column]
    for attempt in range(1, _ATTEMPTS + 1):
        swapped = _swapped(ordered, np.array(swap(attempt), dtype=np.int8))
        if swapped is not None:
            return swapped
    return without_empty_row(ordered)


def _swapped(rows: Array, mask: Array) -> Array | None:
    """Return the array with the columns of a mask swapped; None if that gives an empty row."""
    if (rows == mask).all(axis=1).any():
        return None
    swapped: Array = np.where(rows < 0, rows, rows ^ mask).astype(np.int8)
    return swapped


def without_empty_row(rows: Array) -> Array:
    """Return the array with the first columns swapped for which no row is empty.

    Without such columns, the empty row is removed.
    """
    count = rows.shape[1]
    for number in range(min(1 << count, 4 * len(rows) + 1)):
        mask = np.array([number >> i & 1 for i in range(count)], dtype=np.int8)
        swapped = _swapped(rows, mask)
        if swapped is not None:
            return swapped
    not_empty: Array = rows[(rows != 0).any(axis=1)]
    return not_empty


# Removing rows.


def remove_rows(array: Array, t: int, *, moves: int, seed: int = 0) -> Array:
    """Return a covering array with fewer rows: as many are removed as ``moves`` flips can repair.

    ``moves`` is for all removed rows together.
    """
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
    """A covering array from which rows are removed, and which is repaired by flipping entries."""

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
        """Return, for each set of features, the number of the combination that a row contains."""
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
        """Flip entries until nothing is missing or the moves are used up; return the moves used."""
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
        """Return the entries whose flip brings a row nearest to containing the target."""
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


# Open entries.

_MOST_WORK = 50_000_000
"""Open entries are looked for only among at most this many combinations (about a second)."""


def with_open_entries(rows: Array, t: int, fixed: frozenset[int] = frozenset()) -> Array:
    """Return the array with -1 in its open entries, except in the `fixed` columns.

    Arrays for which this would take long are returned unchanged.

    >>> rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]], dtype=np.int8)
    >>> with_open_entries(rows, 2)[3].tolist()
    [-1, -1]
    """
    count, features = rows.shape
    if features < t or count * features * comb(features - 1, t - 1) > _MOST_WORK:
        return rows
    sets = np.array(list(itertools.combinations(range(features), t)))
    bit_values = 1 << np.arange(t)
    patterns = np.stack([row[sets] @ bit_values for row in rows.astype(np.int64)])
    counts = np.zeros((len(sets), 1 << t), dtype=np.int32)
    for pattern in patterns:
        counts[np.arange(len(sets)), pattern] += 1
    with_column = [np.flatnonzero((sets == column).any(axis=1)) for column in range(features)]
    opened = rows.copy()
    for row in range(count):
        whole = np.ones(len(sets), dtype=bool)
        for column in range(features):
            if column in fixed:
                continue
            touched = with_column[column][whole[with_column[column]]]
            pattern = patterns[row, touched]
            if (counts[touched, pattern] >= 2).all():
                counts[touched, pattern] -= 1
                whole[touched] = False
                opened[row, column] = -1
    return opened
