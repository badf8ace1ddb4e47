"""How many tests hit a target and had a feature: bits, ANDed and counted.

This is for targets that many tests hit; for others see `swarmtest.analysis.kernels`.

Columns are packed: bit i of a column says whether test i of a block hit the target, or had the
feature. For 100,000 tests x 64 features x 20,000 targets, 16 billion bytes are ANDed; compiled
by numba (``pip install 'swarmtest[fast]'``) that is several times as fast as numpy
(``benchmarks/roles.py`` prints both); a matrix product and compressed bitmaps were slower still
when they were tried. Starting numba costs more than most campaigns take, so it is asked only when
there is enough to do.

Targets with the same column are counted once: lines of one basic block are hit by the same tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bits import Words

Counts = npt.NDArray[np.int64]

_WORTH_COMPILING = 300_000_000
"""Words to count (about half a second in numpy) before numba's start pays."""


def packed(columns: npt.NDArray[np.bool_]) -> Words:
    """Tests by columns of bools, as columns of bits.

    >>> packed(np.array([[True, False], [True, True]])).tolist()
    [[3], [2]]
    """
    bits = np.packbits(columns.T, axis=1, bitorder="little")
    gap = -bits.shape[1] % 8
    return np.ascontiguousarray(np.pad(bits, ((0, 0), (0, gap)))).view(np.uint64)


def cooccurrence(targets: Words, features: Words) -> Counts:
    """Targets by features: in how many tests both bits are set.

    >>> cooccurrence(packed(np.array([[1], [1]], bool)), packed(np.array([[1, 0], [1, 1]], bool)))
    array([[2, 1]])
    """
    distinct, place = distinct_columns(targets)
    counts = np.empty((len(distinct), len(features)), np.int64)
    compiled = None
    if len(distinct) * features.size >= _WORTH_COMPILING:
        compiled = _compiled()
    (compiled or _count)(distinct, features, counts)
    return counts[place]


def distinct_columns(columns: Words) -> tuple[Words, npt.NDArray[np.intp]]:
    """Columns without repetition, and where each one's like is."""
    first: dict[bytes, int] = {}
    place = np.array([first.setdefault(c.tobytes(), len(first)) for c in columns], np.intp)
    if len(first) == len(columns):
        return columns, place
    _, chosen = np.unique(place, return_index=True)
    return np.ascontiguousarray(columns[chosen]), place


def _count(targets: Words, features: Words, counts: Counts) -> None:
    both = np.empty_like(features)
    bits = np.empty(features.shape, np.uint8)
    for row, target in enumerate(targets):
        np.bitwise_and(features, target, out=both)
        np.bitwise_count(both, out=bits)
        counts[row] = bits.sum(axis=1, dtype=np.uint32)


@functools.cache
def _compiled() -> Callable[[Words, Words, Counts], None] | None:
    """The same in machine code; None without numba."""
    try:
        from numba import njit
    except ImportError:
        return None
    ones, pairs, fours = (np.uint64(int(f"0x{d * 8}", 16)) for d in ("55", "33", "0f"))
    bytes_, one, two, four, top = (np.uint64(v) for v in (0x0101010101010101, 1, 2, 4, 56))

    def count(targets: Any, features: Any, counts: Any) -> None:
        for t in range(targets.shape[0]):
            for f in range(features.shape[0]):
                total = np.uint64(0)
                for w in range(features.shape[1]):
                    # LLVM knows this arithmetic and puts the processor's own instruction for it.
                    x = targets[t, w] & features[f, w]
                    x -= (x >> one) & ones
                    x = (x & pairs) + ((x >> two) & pairs)
                    total += (((x + (x >> four)) & fours) * bytes_) >> top
                counts[t, f] = total

    machine_code: Callable[[Words, Words, Counts], None] = njit(count)
    return machine_code
