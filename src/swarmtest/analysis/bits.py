"""Tests by columns of yes or no, eight to a byte: a million tests x 300 features are 40 MB.

It is read like an array of bools, some rows or some columns at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

_WORD = 64
ROWS = 16_384
"""Tests that are unpacked at a time where all have to be seen: whole words of 64."""


def chunks(tests: int, size: int | None = None) -> Iterator[slice]:
    """All tests, `ROWS` at a time.

    >>> list(chunks(100, 64))
    [slice(0, 64, None), slice(64, 100, None)]
    """
    step = size or ROWS
    for start in range(0, tests, step):
        yield slice(start, min(start + step, tests))


@dataclass(frozen=True)
class Bits:
    """A row of bits for each test.

    >>> some = Bits.of(np.array([[True, False, True], [False, False, True]]))
    >>> some[1].tolist(), some[:, 0].tolist(), some.sizes().tolist()
    ([False, False, True], [True, False], [2, 1])
    """

    words: Words
    """Tests by words of 64 columns."""
    count: int
    """How many columns there are."""

    @classmethod
    def of(cls, rows: Bools) -> Bits:
        """Bools, packed."""
        tests, count = rows.shape
        held = np.zeros((tests, -(-count // _WORD) * 8), np.uint8)
        held[:, : -(-count // 8)] = np.packbits(rows, axis=1, bitorder="little")
        return cls(held.view(np.uint64), count)

    @classmethod
    def empty(cls, tests: int, count: int) -> Bits:
        """No bit set."""
        return cls(np.zeros((tests, -(-count // _WORD)), np.uint64), count)

    @property
    def shape(self) -> tuple[int, int]:
        """Tests and columns."""
        return len(self.words), self.count

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, key: Any) -> Bools:
        """Rows; or, of rows, one column or several."""
        if not isinstance(key, tuple):
            return self._rows(key)
        rows, column = key
        if isinstance(column, int | np.integer):
            return self._column(rows, int(column))
        if len(column):
            return np.stack([self._column(rows, int(one)) for one in column], axis=-1)
        return np.zeros((*np.shape(self.words[rows])[:-1], 0), bool)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self[:].astype(dtype or bool, copy=False)

    def sizes(self) -> npt.NDArray[np.int64]:
        """How many bits each row has set."""
        sizes: npt.NDArray[np.int64] = np.bitwise_count(self.words).sum(axis=1, dtype=np.int64)
        return sizes

    def set_column(self, column: int, values: Bools) -> None:
        """Set the bits of an empty column."""
        bits = values.astype(np.uint64) << np.uint64(column % _WORD)
        self.words[:, column // _WORD] |= bits

    def packed_columns(self, rows: slice, columns: Any = slice(None)) -> Words:
        """Some rows turned round: a row of bits for each column, bit i is the i-th test."""
        turned = np.packbits(self._rows(rows)[:, columns].T, axis=1, bitorder="little")
        gap = -turned.shape[1] % 8
        return np.ascontiguousarray(np.pad(turned, ((0, 0), (0, gap)))).view(np.uint64)

    def _rows(self, key: Any) -> Bools:
        held = np.ascontiguousarray(self.words[key]).view(np.uint8)
        if not self.count:
            return np.zeros((*held.shape[:-1], 0), bool)
        bits = np.unpackbits(held, axis=-1, count=self.count, bitorder="little")
        return bits.view(np.bool_)

    def _column(self, rows: Any, column: int) -> Bools:
        shift = np.uint64(column % _WORD)
        found: Bools = (self.words[rows, column // _WORD] >> shift & np.uint64(1)).astype(bool)
        return found
