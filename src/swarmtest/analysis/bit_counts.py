"""Count in how many tests a feature and a target come together: rows and columns of bits.

Whether a test had a feature or hit a target is one bit. `Bits` holds a row of bits for each test,
so a million tests x 300 features take 40 MB.

- For targets that few tests hit, the rows of bits of the tests that hit it are added up. In machine
  code a sum of bits is bit-sliced: word k of a counter holds bit k of 64 counts, so adding a row of
  64 columns takes a few ANDs and XORs, and eight rows are added at a time.
- For targets that many tests hit, columns of bits are ANDed and counted. For 100,000 tests x 64
  features x 20,000 targets, 16 billion bytes are ANDed. A matrix product and compressed bitmaps
  were slower when they were tried. Targets with the same column are counted once: the lines of one
  basic block are hit by the same tests.

The inner loops are compiled by numba if it is installed (``pip install 'swarmtest[fast]'``), which
makes them several times as fast as numpy (``benchmarks/roles.py`` prints both). Starting numba
takes longer than most campaigns do, so it is used only if there is enough to count.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]

_WORD = 64
ROWS = 16_384
"""Tests that are unpacked at a time where all of them are needed: whole words of 64."""
MOST_TESTS = 65_536
"""The most tests of a block: their numbers within it take two bytes."""
_WORTH_COMPILING = 0.5
"""Seconds of work in numpy from which starting numba pays."""
_SECONDS_PER_WORD, _SECONDS_PER_BIT = 0.8e-9, 1e-9
"""What numpy takes to AND and count a word, and to add a bit or a number."""
_GATHERED = 1 << 16
"""Rows that numpy gathers at a time."""
_MANY = 1 / 128
"""For classes that a larger share of the tests hit, numpy ANDs words; for others, it adds the bits
of their tests."""
_FLAGS = 32 << 20
"""Bytes for bits that are not packed yet."""
_TARGETS = 256
"""Targets that are ANDed at a time in numpy."""
_WORDS_PER_SUM = 1023
"""So many words have at most 2^16 - 1 bits."""
_ONES, _PAIRS, _FOURS = (np.uint64(int(f"0x{d * 8}", 16)) for d in ("55", "33", "0f"))
_BYTES, _1, _2, _4, _56 = (np.uint64(v) for v in (0x0101010101010101, 1, 2, 4, 56))
"""Constants of the bit count, in the only type that numba does not convert."""


def chunks(tests: int, size: int | None = None) -> Iterator[slice]:
    """Yield all tests, `ROWS` at a time.

    >>> list(chunks(100, 64))
    [slice(0, 64, None), slice(64, 100, None)]
    """
    step = size or ROWS
    for start in range(0, tests, step):
        yield slice(start, min(start + step, tests))


@dataclass(frozen=True)
class Bits:
    """A row of bits for each test; it is read like an array of bools.

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
        """Return bools as bits."""
        tests, count = rows.shape
        data = np.zeros((tests, -(-count // _WORD) * 8), np.uint8)
        data[:, : -(-count // 8)] = np.packbits(rows, axis=1, bitorder="little")
        return cls(data.view(np.uint64), count)

    @classmethod
    def empty(cls, tests: int, count: int) -> Bits:
        """Return rows without any bit set."""
        return cls(np.zeros((tests, -(-count // _WORD)), np.uint64), count)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of tests and columns."""
        return len(self.words), self.count

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, key: Any) -> Bools:
        """Return rows; or one column or several columns of rows."""
        if not isinstance(key, tuple):
            return self._rows(key)
        rows, column = key
        if isinstance(column, int | np.integer):
            return self._column(rows, int(column))
        if len(column):
            return np.stack([self._column(rows, int(number)) for number in column], axis=-1)
        return np.zeros((*np.shape(self.words[rows])[:-1], 0), bool)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self[:].astype(dtype or bool, copy=False)

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return how many bits each row has set."""
        sizes: npt.NDArray[np.int64] = np.bitwise_count(self.words).sum(axis=1, dtype=np.int64)
        return sizes

    def set_column(self, column: int, values: Bools) -> None:
        """Set the bits of a column that has none set yet."""
        bits = values.astype(np.uint64) << np.uint64(column % _WORD)
        self.words[:, column // _WORD] |= bits

    def packed_columns(self, rows: slice, columns: Any = slice(None)) -> Words:
        """Return some rows transposed: a row of bits for each column.

        Bit i of it is the i-th test.
        """
        return packed(self._rows(rows)[:, columns])

    def _rows(self, key: Any) -> Bools:
        data = np.ascontiguousarray(self.words[key]).view(np.uint8)
        if not self.count:
            return np.zeros((*data.shape[:-1], 0), bool)
        bits = np.unpackbits(data, axis=-1, count=self.count, bitorder="little")
        return bits.view(np.bool_)

    def _column(self, rows: Any, column: int) -> Bools:
        shift = np.uint64(column % _WORD)
        bits: Bools = (self.words[rows, column // _WORD] >> shift & np.uint64(1)).astype(bool)
        return bits


class CompiledLoops(NamedTuple):
    """The loops in machine code."""

    add_rows: Callable[[Numbers, Numbers, Numbers, Numbers, Numbers], None]
    add_values: Callable[[Numbers, Numbers, Numbers, Numbers, Numbers], None]
    cooccurrence: Callable[[Words, Words, Counts], None]


def compiled_loops(seconds: float) -> CompiledLoops | None:
    """Return the compiled loops if so much work in numpy is worth it and numba is installed."""
    return _compiled() if seconds >= _WORTH_COMPILING else None


def count_bits(
    starts: Numbers, tests: Numbers, chosen: Numbers, columns: Words, times: float = 1.0
) -> npt.NDArray[np.int32]:
    """Return, for classes of targets by columns, in how many of a class's tests a bit is set.

    The tests of class i are those from ``starts[i]`` to ``starts[i + 1]`` of `tests`. Only the
    `chosen` classes are counted; others have 0. `times` is how often something of this size is
    counted in all.

    >>> starts, tests = np.array([0, 2, 3]), np.array([0, 1, 1])
    >>> columns = packed(np.array([[True, True], [False, True]]))
    >>> count_bits(starts, tests, np.array([0, 1]), columns).tolist()
    [[1, 2], [0, 1]]
    """
    counts = np.zeros((len(starts) - 1, len(columns)), np.int32)
    lengths = np.diff(starts)[chosen]
    chosen, lengths = chosen[lengths > 0], lengths[lengths > 0]
    if not len(chosen):
        return counts
    size = columns.shape[1] * _WORD
    many = lengths > size * _MANY
    few, dense = chosen[~many], chosen[many]
    compiled = compiled_loops(_SECONDS_PER_BIT * int(lengths[~many].sum()) * len(columns) * times)
    if compiled is not None:
        compiled.add_rows(starts, tests, few, rows_of_bits(columns, size), counts)
    elif len(few):
        _add_few(starts, tests, few, columns, counts)
    compiled = compiled_loops(_SECONDS_PER_WORD * len(dense) * columns.size * times)
    for part in chunks(len(dense), max(_FLAGS // size, 1)):
        bits = bits_of(starts, tests, dense[part], size)
        counts[dense[part]] = _counted(bits, columns, compiled)
    return counts


def bits_of(starts: Numbers, tests: Numbers, chosen: Numbers, size: int) -> Words:
    """Return the tests of some classes as columns of `size` bits, a multiple of 64.

    >>> bits_of(np.array([0, 2]), np.array([0, 3]), np.array([0]), 64).tolist()
    [[9]]
    """
    lengths = starts[chosen + 1] - starts[chosen]
    flags = np.zeros((len(chosen), size), bool)
    places = np.repeat(np.arange(len(chosen)) * size, lengths)
    places += listed_tests(starts, tests, chosen, lengths)
    flags.ravel()[places] = True
    return np.packbits(flags, axis=1, bitorder="little").view(np.uint64)


def listed_tests(starts: Numbers, tests: Numbers, chosen: Numbers, lengths: Numbers) -> Numbers:
    """Return the tests of some classes, one class after the other; `lengths` says how many.

    >>> starts, tests = np.array([0, 2, 3]), np.array([5, 6, 7])
    >>> listed_tests(starts, tests, np.array([1]), np.array([1])).tolist()
    [7]
    """
    if not len(chosen):
        return tests[:0]
    if chosen[-1] - chosen[0] + 1 == len(chosen) and (np.diff(chosen) == 1).all():
        return tests[starts[chosen[0]] : starts[chosen[-1] + 1]]
    ends = np.cumsum(lengths)
    places = np.arange(ends[-1]) + np.repeat(starts[chosen] - (ends - lengths), lengths)
    listed: Numbers = tests[places]
    return listed


def _add_few(
    starts: Numbers, tests: Numbers, chosen: Numbers, columns: Words, counts: Numbers
) -> None:
    """Add the bits of the tests of classes that few tests hit, with numpy.

    Classes with the same number of tests are added together.
    """
    size = columns.shape[1] * _WORD
    octets = columns.view(np.uint8)
    flags = np.ascontiguousarray(np.unpackbits(octets, axis=1, count=size, bitorder="little").T)
    lengths = (starts[1:] - starts[:-1])[chosen]
    for length in np.unique(lengths).tolist():
        same = chosen[lengths == length]
        step = max(_GATHERED // length, 1)
        for part in chunks(len(same), step):
            at = starts[same[part]][:, None] + np.arange(length)
            dtype = np.uint8 if length < 256 else np.uint32
            counts[same[part]] = np.add.reduce(flags[tests[at]], axis=1, dtype=dtype)


def add_values(
    starts: Numbers,
    tests: Numbers,
    chosen: Numbers,
    values: Numbers,
    sums: Numbers,
    times: float = 1.0,
) -> None:
    """Add to the sums of each chosen class the rows of numbers of its tests.

    `times` is how often something of this size is added in all.

    >>> sums = np.zeros((1, 2))
    >>> values = np.array([[0.5, 0], [0.25, 1]])
    >>> add_values(np.array([0, 2]), np.array([0, 1]), np.array([0]), values, sums)
    >>> sums.tolist()
    [[0.75, 1.0]]
    """
    chosen = chosen[starts[chosen + 1] > starts[chosen]]
    lengths = starts[chosen + 1] - starts[chosen]
    compiled = compiled_loops(_SECONDS_PER_BIT * int(lengths.sum()) * sums.shape[1] * times)
    if compiled is not None:
        compiled.add_values(starts, tests, chosen, values, sums)
        return
    ends = np.cumsum(lengths)
    next_class = 0
    while next_class < len(chosen):
        before = int(ends[next_class - 1]) if next_class else 0
        stop = max(int(np.searchsorted(ends, before + _GATHERED, "right")), next_class + 1)
        part = slice(next_class, stop)
        offsets = np.cumsum(lengths[part]) - lengths[part]
        at = np.arange(int(lengths[part].sum()))
        at += np.repeat(starts[chosen[part]] - offsets, lengths[part])
        sums[chosen[part]] += np.add.reduceat(values[tests[at]], offsets, axis=0, dtype=sums.dtype)
        next_class = stop


def packed(columns: npt.NDArray[np.bool_]) -> Words:
    """Return columns of bools, a row for each test, as columns of bits.

    >>> packed(np.array([[True, False], [True, True]])).tolist()
    [[3], [2]]
    """
    bits = np.packbits(columns.T, axis=1, bitorder="little")
    gap = -bits.shape[1] % 8
    return np.ascontiguousarray(np.pad(bits, ((0, 0), (0, gap)))).view(np.uint64)


def packed_column(flags: Bools) -> Words:
    """Return a bool for each test as a column of bits.

    >>> packed_column(np.array([True, False, True])).tolist()
    [5]
    """
    data = np.zeros(-(-len(flags) // _WORD) * 8, np.uint8)
    data[: -(-len(flags) // 8)] = np.packbits(flags, bitorder="little")
    return data.view(np.uint64)


def unpacked_column(column: Words, tests: int) -> Bools:
    """Return a column of bits as a bool for each test."""
    return np.unpackbits(column.view(np.uint8), count=tests, bitorder="little").view(np.bool_)


def put_bits(columns: Words, start: int, bits: Words, rows: Any = slice(None)) -> None:
    """Set, in some of the columns, the bits from a position on; none of them is set yet.

    >>> columns = np.zeros((1, 2), np.uint64)
    >>> put_bits(columns, 62, np.array([[0b111]], np.uint64))
    >>> columns.tolist()
    [[13835058055282163712, 1]]
    """
    first, shift = divmod(start, _WORD)
    width = min(bits.shape[1], columns.shape[1] - first)
    columns[rows, first : first + width] |= bits[:, :width] << np.uint64(shift)
    if shift:
        width = min(bits.shape[1], columns.shape[1] - first - 1)
        carried = bits[:, :width] >> np.uint64(_WORD - shift)
        columns[rows, first + 1 : first + 1 + width] |= carried


def bits_between(columns: Words, start: int, stop: int) -> Words:
    """Return the bits of columns from one position to another, from the first bit on.

    >>> bits_between(np.array([[0b110100, 1]], np.uint64), 2, 65).tolist()
    [[4611686018427387917]]
    """
    first, shift = divmod(start, _WORD)
    width = -(-(stop - start) // _WORD)
    words = columns[:, first : first + width]
    if shift:
        following = columns[:, first + 1 : first + width + 1]
        words = words >> np.uint64(shift)
        words[:, : following.shape[1]] |= following << np.uint64(_WORD - shift)
    unused = -(stop - start) % _WORD
    if unused:
        words = words.copy()
        words[:, -1] &= np.uint64((1 << (_WORD - unused)) - 1)
    return np.ascontiguousarray(words)


def rows_of_bits(columns: Words, tests: int) -> Words:
    """Return columns of bits turned round: a row of bits for each test.

    >>> rows_of_bits(np.array([[0b10], [0b11]], np.uint64), 2).tolist()
    [[2], [3]]
    """
    octets = columns.view(np.uint8)
    return Bits.of(
        np.unpackbits(octets, axis=1, count=tests, bitorder="little").view(np.bool_).T
    ).words


def bits_in_common(columns: Words, column: Words) -> Counts:
    """Return, for each of some columns of bits, how many bits it has in common with another one.

    >>> bits_in_common(packed(np.array([[1, 0], [1, 1]], bool)), np.array([2], np.uint64)).tolist()
    [1, 1]
    """
    counts: Counts = np.bitwise_count(columns & column).sum(axis=-1, dtype=np.int64)
    return counts


def cooccurrence(targets: Words, features: Words) -> Counts:
    """Return, for targets by features, in how many tests both bits are set.

    >>> cooccurrence(packed(np.array([[1], [1]], bool)), packed(np.array([[1, 0], [1, 1]], bool)))
    array([[2, 1]])
    """
    distinct, position = distinct_columns(targets)
    compiled = compiled_loops(_SECONDS_PER_WORD * len(distinct) * features.size)
    return _counted(distinct, features, compiled)[position]


def distinct_columns(columns: Words) -> tuple[Words, npt.NDArray[np.intp]]:
    """Return the columns without repetition, and the position of each column among them."""
    first: dict[bytes, int] = {}
    position = np.array([first.setdefault(c.tobytes(), len(first)) for c in columns], np.intp)
    if len(first) == len(columns):
        return columns, position
    _, chosen = np.unique(position, return_index=True)
    return np.ascontiguousarray(columns[chosen]), position


def _counted(targets: Words, features: Words, compiled: CompiledLoops | None) -> Counts:
    counts = np.zeros((len(targets), len(features)), np.int64)
    if compiled is not None:
        compiled.cooccurrence(np.ascontiguousarray(targets), features, counts)
        return counts
    # One word of all targets and features at a time: what is added up stays in the cache.
    by_word = np.ascontiguousarray(features.T)
    for part in chunks(len(targets), _TARGETS):
        words = np.ascontiguousarray(targets[part].T)
        both = np.empty((words.shape[1], len(features)), np.uint64)
        bits = np.empty(both.shape, np.uint8)
        sums = np.zeros(both.shape, np.uint16)
        for number, (target, feature) in enumerate(zip(words, by_word, strict=True), 1):
            np.bitwise_and(target[:, None], feature, out=both)
            sums += np.bitwise_count(both, out=bits)
            if number % _WORDS_PER_SUM == 0:
                counts[part] += sums
                sums[:] = 0
        counts[part] += sums
    return counts


# The loops that numba compiles. They are written for it: plain loops over arrays.


@functools.cache
def _compiled() -> CompiledLoops | None:
    """Return the loops in machine code; None without numba."""
    try:
        from numba import njit
    except ImportError:
        return None
    return CompiledLoops(njit(_add_rows), njit(_add_values), njit(_cooccurrence))


def _add_values(starts: Any, tests: Any, chosen: Any, values: Any, sums: Any) -> None:
    for target in chosen:
        for at in range(starts[target], starts[target + 1]):
            for column in range(values.shape[1]):
                sums[target, column] += values[tests[at], column]


def _add_rows(starts: Any, tests: Any, chosen: Any, rows: Any, counts: Any) -> None:
    words = rows.shape[1]
    # A block has at most MOST_TESTS tests, so 17 planes can hold every count. The last plane is
    # not a part of the counts: it holds the carries.
    planes = np.zeros((20, words), np.uint64)
    one, zero = np.uint64(1), np.uint64(0)
    for target in chosen:
        at, end = starts[target], starts[target + 1]
        if at == end:
            continue
        planes[:] = zero
        while at + 8 <= end:
            r0, r1, r2, r3 = tests[at], tests[at + 1], tests[at + 2], tests[at + 3]
            r4, r5, r6, r7 = tests[at + 4], tests[at + 5], tests[at + 6], tests[at + 7]
            more = zero
            for w in range(words):
                # A tree of full adders: three words of weight 1 make one of 1 and one of 2.
                a, b, c = rows[r0, w], rows[r1, w], rows[r2, w]
                u = a ^ b
                twos_a, ones = (a & b) | (u & c), u ^ c
                a, b = rows[r3, w], rows[r4, w]
                u = ones ^ a
                twos_b, ones = (ones & a) | (u & b), u ^ b
                a, b = rows[r5, w], rows[r6, w]
                u = ones ^ a
                twos_c, ones = (ones & a) | (u & b), u ^ b
                a, b = rows[r7, w], planes[0, w]
                u = ones ^ a
                twos_d, ones = (ones & a) | (u & b), u ^ b
                planes[0, w] = ones
                u = twos_a ^ twos_b
                fours_a, twos = (twos_a & twos_b) | (u & twos_c), u ^ twos_c
                b = planes[1, w]
                u = twos ^ twos_d
                fours_b, twos = (twos & twos_d) | (u & b), u ^ b
                planes[1, w] = twos
                b = planes[2, w]
                u = fours_a ^ fours_b
                carry, fours = (fours_a & fours_b) | (u & b), u ^ b
                planes[2, w] = fours
                b = planes[3, w]
                planes[3, w] = b ^ carry
                planes[19, w] = b & carry
                more |= b & carry
            plane = 4
            while more != zero:
                more = zero
                for w in range(words):
                    b, carry = planes[plane, w], planes[19, w]
                    planes[plane, w] = b ^ carry
                    planes[19, w] = b & carry
                    more |= b & carry
                plane += 1
            at += 8
        while at < end:
            row = tests[at]
            more = zero
            for w in range(words):
                b, carry = planes[0, w], rows[row, w]
                planes[0, w] = b ^ carry
                planes[19, w] = b & carry
                more |= b & carry
            plane = 1
            while more != zero:
                more = zero
                for w in range(words):
                    b, carry = planes[plane, w], planes[19, w]
                    planes[plane, w] = b ^ carry
                    planes[19, w] = b & carry
                    more |= b & carry
                plane += 1
            at += 1
        many, depth = end - starts[target], 0
        while many:
            many >>= 1
            depth += 1
        for plane in range(depth):
            for w in range(words):
                word, first = planes[plane, w], 64 * w
                for column in range(first, min(first + 64, counts.shape[1])):
                    bit = (word >> np.uint64(column - first)) & one
                    counts[target, column] += np.int32(bit << np.uint64(plane))


def _cooccurrence(targets: Any, features: Any, counts: Any) -> None:
    for t in range(targets.shape[0]):
        for f in range(features.shape[0]):
            total = np.uint64(0)
            for w in range(features.shape[1]):
                # LLVM recognises this arithmetic and uses the processor's own instruction for it.
                x = targets[t, w] & features[f, w]
                x -= (x >> _1) & _ONES
                x = (x & _PAIRS) + ((x >> _2) & _PAIRS)
                total += (((x + (x >> _4)) & _FOURS) * _BYTES) >> _56
            counts[t, f] = total
