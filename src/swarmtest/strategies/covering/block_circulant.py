"""Covering arrays made of circulant blocks, each written down as a short string of bits.

An array with n x n circulant blocks looks the same after shifting all blocks by one, and, when
the starter vectors are unions of orbits of a multiplier m, after multiplying all positions by m
modulo n. So only one t-set of columns per orbit needs attention, which makes the search for
starters by simulated annealing quick. Compare Colbourn: Covering arrays from cyclotomy (2010),
where all of it is a single block.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int8]


@dataclass(frozen=True)
class BlockCirculant:
    """A certificate: ``blocks[r][c]`` has one bit per orbit of the multiplier on 0..n-1.

    Orbits are ordered by their least element. ``constant_rows`` have one bit per column block.
    With ``complement``, all rows come a second time, negated.
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
