"""Covering arrays that need no search: each function builds one published construction."""

from itertools import combinations
from math import comb, isqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int8]


def _primes(first: int, last: int) -> list[int]:
    return [p for p in range(first, last + 1) if all(p % d for d in range(2, isqrt(p) + 1))]


# Strength to primes, checked by `tools/covering/check_residues.py`; others fail, were not checked,
# or need more rows than a larger prime.
RESIDUE_PRIMES = {4: [p for p in _primes(67, 599) if p not in (73, 103)], 5: [359, 431]}
COMPLEMENTED_RESIDUE_PRIMES = {4: [23, 29, 31], 5: [*_primes(89, 179), *_primes(433, 449)]}


def kleitman_spencer_rows(features: int) -> int:
    """The least possible number of rows at strength 2."""
    rows = 4
    while comb(rows - 1, (rows + 1) // 2) < features:
        rows += 1
    return rows


def kleitman_spencer(features: int) -> Array:
    """Strength 2 with the fewest rows there can be.

    Kleitman, Spencer: Families of k-independent sets (1973). Columns are sets of more than half
    of the rows but the first, all of one size: any two meet, and neither contains the other.
    """
    rows = kleitman_spencer_rows(features)
    array = np.zeros((rows, features), dtype=np.int8)
    on_in = combinations(range(1, rows), (rows + 1) // 2)
    for feature, chosen in zip(range(features), on_in, strict=False):
        array[list(chosen), feature] = 1
    return array


def roux_doubling(strength_three: Array, strength_two: Array) -> Array:
    """Strength 3 for twice the columns: a column and its twin differ in the lower rows only.

    Roux: k-propriétés dans des tableaux de n colonnes (1987).
    """
    upper = np.hstack([strength_three, strength_three])
    lower = np.hstack([strength_two, 1 - strength_two])
    return np.vstack([upper, lower]).astype(np.int8)


def constant_weight_rows(features: int, t: int) -> int:
    """How many rows `constant_weight` has."""
    return sum(comb(features, weight) for weight in _fewest_weights(features, t))


def constant_weight(features: int, t: int) -> Array:
    """All rows whose number of ones lies in one residue class; best when features is near t.

    Tang, Woo: Exhaustive test pattern generation with constant weight vectors (1983). What is
    outside t chosen columns can hold 0 to features - t ones, so any weight within them can be
    completed to exactly one of the weights taken.
    """
    rows = [
        chosen
        for weight in _fewest_weights(features, t)
        for chosen in combinations(range(features), weight)
    ]
    array = np.zeros((len(rows), features), dtype=np.int8)
    for row, chosen in zip(array, rows, strict=True):
        row[list(chosen)] = 1
    return array


def _fewest_weights(features: int, t: int) -> range:
    modulus = features - t + 1
    return min(
        (range(rest, features + 1, modulus) for rest in range(modulus)),
        key=lambda weights: sum(comb(features, weight) for weight in weights),
    )


def quadratic_residues(prime: int, *, complement: bool = False) -> Array:
    """A row per shift of the set of nonzero squares modulo ``prime``; and all rows negated.

    Colbourn: Covering arrays from cyclotomy (2010). Which primes give which strength is known
    only by checking; see `RESIDUE_PRIMES`.
    """
    squares = np.zeros(prime, dtype=np.int8)
    squares[[x * x % prime for x in range(1, prime)]] = 1
    shift = (np.arange(prime)[None, :] - np.arange(prime)[:, None]) % prime
    array: Array = squares[shift]
    return np.vstack([array, 1 - array]) if complement else array
