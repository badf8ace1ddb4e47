"""Which targets the same tests hit, told while tests stream by.

Comparing columns needs all of them. Instead every test has a random number of 128 bits, and a
target the sum of the numbers of the tests that hit it: targets hit by the same tests have the same
sum, and two others have the same one once in 2^128 times. In real programs most targets have likes
(the lines of a block), and what is counted once for all of them is counted many times faster.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Likeness:
    """Sums of what was hit so far.

    >>> likeness = Likeness()
    >>> likeness.add(0, np.array([3, 5, 8]))
    >>> likeness.add(1, np.array([3, 5]))
    >>> likeness.classes().tolist()
    [-1, -1, -1, 0, -1, 0, -1, -1, 1]
    """

    def __init__(self) -> None:
        self._sums = np.zeros((2, 1024), np.uint64)
        self._reached = np.zeros(1024, bool)
        self._numbers = _random_numbers(0)
        self._first = 0

    def add(self, test: int, ids: npt.NDArray[np.integer]) -> None:
        """Take what a test hit: ids in ascending order, each once."""
        if not len(ids):
            return
        self._make_room(int(ids[-1]) + 1)
        if test - self._first >= self._numbers.shape[1] or test < self._first:
            self._first = test
            self._numbers = _random_numbers(test)
        at = test - self._first
        self._sums[0, ids] += self._numbers[0, at]
        self._sums[1, ids] += self._numbers[1, at]
        self._reached[ids] = True

    def reached(self) -> npt.NDArray[np.intp]:
        """All ids that some test hit."""
        return np.flatnonzero(self._reached)

    def classes(self) -> npt.NDArray[np.int32]:
        """By id: a number that likes share, from 0 on in order of ids; -1: not hit."""
        ids = self.reached()
        pairs = np.ascontiguousarray(self._sums[:, ids].T).view([("", np.uint64)] * 2)[:, 0]
        _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int32)
        rank[np.argsort(first)] = np.arange(len(first))
        found = np.full(int(ids[-1]) + 1 if len(ids) else 0, -1, np.int32)
        found[ids] = rank[place.ravel()]
        return found

    def _make_room(self, size: int) -> None:
        more = size - len(self._reached)
        if more > 0:
            more = max(more, len(self._reached))
            self._sums = np.pad(self._sums, ((0, 0), (0, more)))
            self._reached = np.pad(self._reached, (0, more))


def _random_numbers(first: int, count: int = 4096) -> Words:
    """The numbers of tests: SplitMix64, two for each."""
    at = np.arange(2 * first, 2 * (first + count), dtype=np.uint64) * _STEP + _STEP
    at = (at ^ (at >> np.uint64(30))) * _MIX[0]
    at = (at ^ (at >> np.uint64(27))) * _MIX[1]
    at ^= at >> np.uint64(31)
    return np.ascontiguousarray(at.reshape(count, 2).T)
