"""Covering arrays that need no search.

Each function builds one published construction. `BlockCirculant` is an array of circulant blocks,
each given by a short string of bits, its starter. An array with n x n circulant blocks looks the
same after shifting all blocks by one, and, when the starters are unions of orbits of a multiplier
m, after multiplying all positions by m modulo n. So only one t-set of columns per orbit has to be
checked, which makes the search for starters by simulated annealing quick. Compare Colbourn:
Covering arrays from cyclotomy (2010), where the whole array is a single block. No starter in
`STARTERS` is taken from a published table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, isqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int8]


def _primes(first: int, last: int) -> list[int]:
    return [p for p in range(first, last + 1) if all(p % d for d in range(2, isqrt(p) + 1))]


# Primes by strength, checked by `tools/covering/check_residues.py`. Other primes fail, were not
# checked, or need more rows than a larger prime.
RESIDUE_PRIMES = {4: [p for p in _primes(67, 599) if p not in (73, 103)], 5: [359, 431]}
COMPLEMENTED_RESIDUE_PRIMES = {4: [23, 29, 31], 5: [*_primes(89, 179), *_primes(433, 449)]}


def kleitman_spencer_rows(features: int) -> int:
    """Return the least possible number of rows at strength 2."""
    rows = 4
    while comb(rows - 1, (rows + 1) // 2) < features:
        rows += 1
    return rows


def kleitman_spencer(features: int) -> Array:
    """Return an array of strength 2 with the fewest possible rows.

    Kleitman, Spencer: Families of k-independent sets (1973). Without the first row, columns are
    sets of more than half of the rows, all of one size: any two meet, and neither contains the
    other.
    """
    rows = kleitman_spencer_rows(features)
    array = np.zeros((rows, features), dtype=np.int8)
    on_in = combinations(range(1, rows), (rows + 1) // 2)
    for feature, chosen in zip(range(features), on_in, strict=False):
        array[list(chosen), feature] = 1
    return array


def roux_doubling(strength_three: Array, strength_two: Array) -> Array:
    """Return an array of strength 3 with twice the columns.

    A column and its twin differ only in the lower rows.

    Roux: k-propriétés dans des tableaux de n colonnes (1987).
    """
    upper = np.hstack([strength_three, strength_three])
    lower = np.hstack([strength_two, 1 - strength_two])
    return np.vstack([upper, lower]).astype(np.int8)


def constant_weight_rows(features: int, t: int) -> int:
    """Return how many rows `constant_weight` has."""
    return sum(comb(features, weight) for weight in _fewest_weights(features, t))


def constant_weight(features: int, t: int) -> Array:
    """Return all rows whose number of ones is in one residue class; best if features is near t.

    Tang, Woo: Exhaustive test pattern generation with constant weight vectors (1983). The columns
    outside t chosen ones can hold 0 to features - t ones, so any weight within the chosen ones can
    be completed to exactly one of the weights in the class.
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
    """Return a row for each shift of the set of nonzero squares modulo ``prime``.

    With ``complement``, all rows come a second time, negated. Colbourn: Covering arrays from
    cyclotomy (2010). Which primes give which strength is known only by checking; see
    `RESIDUE_PRIMES`.
    """
    squares = np.zeros(prime, dtype=np.int8)
    squares[[x * x % prime for x in range(1, prime)]] = 1
    shift = (np.arange(prime)[None, :] - np.arange(prime)[:, None]) % prime
    array: Array = squares[shift]
    return np.vstack([array, 1 - array]) if complement else array


@dataclass(frozen=True)
class BlockCirculant:
    """A compact description of an array of circulant blocks.

    ``blocks[r][c]`` has one bit per orbit of the multiplier on 0..n-1, and the orbits are ordered
    by their least element. ``constant_rows`` have one bit per column block. With ``complement``,
    all rows come a second time, negated.
    """

    strength: int
    n: int
    multiplier: int
    blocks: tuple[tuple[str, ...], ...]
    constant_rows: tuple[str, ...] = ()
    complement: bool = False

    @property
    def columns(self) -> int:
        return self.n * len(self.blocks[0])

    @property
    def rows(self) -> int:
        half = self.n * len(self.blocks) + len(self.constant_rows)
        return 2 * half if self.complement else half

    def expand(self) -> Array:
        shift = (np.arange(self.n)[None, :] - np.arange(self.n)[:, None]) % self.n
        orbit = np.array(_orbit_numbers(self.n, self.multiplier))[shift]
        parts = [
            np.hstack([_bits(starter)[orbit] for starter in block_row]) for block_row in self.blocks
        ]
        parts += [np.repeat(_bits(row), self.n)[None, :] for row in self.constant_rows]
        array = np.vstack(parts)
        return np.vstack([array, 1 - array]) if self.complement else array


def _bits(text: str) -> Array:
    return np.array([int(bit) for bit in text], dtype=np.int8)


def _orbit_numbers(n: int, multiplier: int) -> list[int]:
    numbers = [-1] * n
    orbits = 0
    for start in range(n):
        if numbers[start] < 0:
            position = start
            while numbers[position] < 0:
                numbers[position] = orbits
                position = position * multiplier % n
            orbits += 1
    return numbers


# Found by our own `tools/covering/search_starters.py`, which prints these lines.
_FOUND_BY_ANNEALING = (
    # 12 rows, 11 columns
    BlockCirculant(3, 11, 3, (("001",),), constant_rows=("1",)),
    # 18 rows, 17 columns
    BlockCirculant(3, 17, 2, (("001",),), constant_rows=("1",)),
    # 21 rows, 25 columns
    BlockCirculant(
        3,
        5,
        4,
        (
            ("100", "101", "010", "110", "100"),
            ("110", "000", "101", "010", "001"),
            ("001", "110", "100", "100", "101"),
            ("011", "011", "011", "110", "101"),
        ),
        constant_rows=("00011",),
    ),
    # 26 rows, 52 columns
    BlockCirculant(3, 26, 3, (("1100110010", "0001011110"),)),
    # 43 rows, 172 columns
    BlockCirculant(
        3, 43, 6, (("010011101100100", "001110100110100", "010000111110001", "110110000110101"),)
    ),
    # 46 rows, 23 columns
    BlockCirculant(4, 23, 2, (("001",),), complement=True),
    # 134 rows, 201 columns
    BlockCirculant(
        4, 67, 9, (("0001011", "1100111", "1110001"), ("0101010", "1010010", "1100110"))
    ),
    # 346 rows, 173 columns
    BlockCirculant(5, 173, 6, (("11100",),), complement=True),
    # 368 rows, 23 columns
    BlockCirculant(
        6,
        23,
        1,
        (
            ("11100110010011101011110",),
            ("11001111010011110010000",),
            ("11110111000100010100101",),
            ("00000110101010010011101",),
            ("01001101001100101100000",),
            ("10010100001111010110010",),
            ("00001000111100000001100",),
            ("00010000000100100011101",),
        ),
        complement=True,
    ),
    # 516 rows, 43 columns
    BlockCirculant(
        6,
        43,
        4,
        (("0100110",), ("1010110",), ("1001101",), ("1100101",), ("1110101",), ("1010011",)),
        complement=True,
    ),
)

# Quadratic residues that need a constant row or their own entry; checked by
# `tools/covering/check_residues.py`. `quadratic_residues` builds the others.
_RESIDUES = (
    # 19 rows, 19 columns
    BlockCirculant(3, 19, 4, (("010",),)),
    # 24 rows, 11 columns
    BlockCirculant(4, 11, 3, (("010",),), constant_rows=("0",), complement=True),
    # 40 rows, 19 columns
    BlockCirculant(4, 19, 4, (("010",),), constant_rows=("0",), complement=True),
    # 136 rows, 67 columns
    BlockCirculant(5, 67, 4, (("010",),), constant_rows=("0",), complement=True),
    # 144 rows, 71 columns
    BlockCirculant(5, 71, 2, (("010",),), constant_rows=("0",), complement=True),
    # 160 rows, 79 columns
    BlockCirculant(5, 79, 2, (("010",),), constant_rows=("0",), complement=True),
    # 168 rows, 83 columns
    BlockCirculant(5, 83, 3, (("010",),), constant_rows=("0",), complement=True),
    # 720 rows, 359 columns
    BlockCirculant(6, 359, 2, (("010",),), constant_rows=("0",), complement=True),
)

STARTERS = _FOUND_BY_ANNEALING + _RESIDUES
