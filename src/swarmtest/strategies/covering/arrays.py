"""The one way in: a covering array for so many features at such a strength."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb

import numpy as np
from numpy.typing import NDArray

from swarmtest.strategies.covering import algebraic
from swarmtest.strategies.covering.constrained import constrained_array
from swarmtest.strategies.covering.density import OpenCombinations, greedy_rows
from swarmtest.strategies.covering.row_removal import remove_rows
from swarmtest.strategies.covering.satisfiability import Clauses
from swarmtest.strategies.covering.starters import STARTERS

Array = NDArray[np.int8]

# The greedy algorithm is worth its time up to so many sets of t features (about a second).
_GREEDY_SETS = 20_000
# It is the last resort up to so many (minutes); beyond, its tables would not fit into memory.
_GREEDY_SETS_AT_MOST = 5_000_000
# Rows are removed by search up to so many sets, with so many moves; a move in large arrays costs
# more, so that there are fewer of them.
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
    """Rows that together contain every possible combination of t features being on or off.

    Entries are 1 for on, 0 for off. ``clauses`` are DIMACS clauses over features 1, 2, ...: all
    rows satisfy them, and only what they allow needs covering. ``effort`` multiplies the number of
    search steps; for equal arguments, the array is the same on every machine.
    """
    if features < 1 or t < 1:
        raise ValueError(f"need at least one feature and strength 1, not {features} and {t}")
    t = min(t, features)
    array = _built(features, t, seed, effort)
    if not clauses:
        return _polished(array, t, seed, effort)
    rules = Clauses(clauses, features)
    return constrained_array(array, t, rules, seed=seed, candidates=2 * effort)


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
    """With rows removed, if the array has few enough features for that to be quick."""
    features = array.shape[1]
    if t < 3 or comb(features, t) > _REMOVAL_SETS:
        return array
    moves = min(_REMOVAL_MOVES, _REMOVAL_WORK // comb(features - 1, t - 1))
    return remove_rows(array, t, moves=effort * moves, seed=seed)


def _greedy(features: int, t: int, seed: int, effort: int) -> Array:
    missing = OpenCombinations(features, t)
    free = Clauses((), features)
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


def without_empty_row(rows: NDArray[np.int8]) -> NDArray[np.int8]:
    """The same array with columns flipped so that no row asks for a test without any feature.

    Swapping on and off in a column leaves an array covering, so a pattern that no row matches,
    used as a mask, moves the empty row away at no cost. If every pattern is in the array
    (no more features than t), the empty row itself goes: what it asks for cannot be run.
    """
    count = rows.shape[1]
    for number in range(min(1 << count, 4 * len(rows) + 1)):
        mask = np.array([number >> i & 1 for i in range(count)], dtype=np.int8)
        if not ((rows == mask) | (rows < 0)).all(axis=1).any():
            flipped: NDArray[np.int8] = np.where(rows < 0, rows, rows ^ mask).astype(np.int8)
            return flipped
    kept: NDArray[np.int8] = rows[(rows != 0).any(axis=1)]
    return kept
