"""Blocks as bytes: what stores keep, and what workers send.

A block has four parts, so that a reader reads only what it needs:

- totals, which are columns of a database row: numbers of trials and verdicts, sums, faults;
- `features`: how often each feature was enabled and used (`FeatureSummary`);
- `columns`: everything about the trials except their hits;
- `targets` and `hits`: the targets with their classes, the size and first trial of each class; and
  the positions of the trials in each class.

Every part begins with the number of its format and ends with a checksum (CRC 32). Every array in a
part has a byte that says how it is compressed. Both numbers are there so that another format or
another compression can be added without converting what is stored.

zlib, because Python has it: in a prototype, zstd saved 5% of the space and a second of counting per
million trials, but it is a package that every user would have to install.

Numbers are stored by byte (all lowest bytes, then all second ones, ...), as differences from the
smallest: each plane compresses by itself. Positions are stored as gaps, a byte each, with two bytes
more for a gap of 255 or more. Where more than half of the trials are in a class, the others are
stored.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.core.seeds import seed_array
from swarmtest.store.blocks.block import TrialBlock
from swarmtest.store.blocks.columns import FULL_COUNTS
from swarmtest.store.blocks.hits import (
    BlockHits,
    Indices,
    Ints,
    StoredPositions,
    Words,
    unpacked,
)
from swarmtest.store.blocks.summaries import FeatureSummary, HitSummary, block_feature_summary
from swarmtest.store.loose_blocks import (
    BlockLayout,
    BlockTotals,
    DamagedBlockError,
    FaultTotal,
    PackedBlock,
    is_loose,
    loose_records,
    opened,
)

_FORMAT = 1
_RAW, _ZLIB = 0, 1
_WORTH_IT = 24
"""Fewer bytes are not compressed."""
_BIG_GAP = 255
_SUM_LIMIT = 2**62


def pack_block(block: TrialBlock, layout: BlockLayout) -> PackedBlock:
    """Return a block as bytes.

    >>> from swarmtest.store.records import TrialRecord
    >>> layout = BlockLayout(features=1, seed=7)
    >>> block = TrialBlock.from_records([TrialRecord(n, b"\\0\\1") for n in range(9)], 1)
    >>> packed = pack_block(block, layout)
    >>> packed.totals.trials, packed.faults, packed.hits
    (9, [], b'')
    >>> [*unpack_block(packed.columns, layout).records()] == [*block.records()]
    True
    """
    targets = hits = b""
    if len(block.hits.targets):
        targets, hits = pack_targets(block.hits, block.numbers), pack_positions(block.hits)
    return PackedBlock(
        block_totals(block),
        fault_totals(block),
        pack_features(block_feature_summary(block)),
        pack_columns(block, layout),
        targets,
        hits,
    )


def block_totals(block: TrialBlock) -> BlockTotals:
    """Return the totals of a block."""
    passed, failed, invalid = np.bincount(np.clip(block.verdicts, 0, 3), minlength=3)[:3].tolist()
    sums = [_sum(column) for column in (block.steps, block.skipped, block.cpu_ns, block.wall_ns)]
    return BlockTotals(block.first, block.last, block.size, passed, failed, invalid, *sums)


def _sum(values: Ints) -> int:
    """Return the exact sum, which may have more than 63 bits."""
    largest = max(int(values.max()), -int(values.min()))
    if largest * len(values) < _SUM_LIMIT:
        return int(values.sum())
    return sum(values.tolist())


def fault_totals(block: TrialBlock) -> list[FaultTotal]:
    """Return the faults of a block with their counts."""
    failed = np.flatnonzero(block.fault_index >= 0)
    if not len(failed):
        return []
    index, first, counts = np.unique(
        block.fault_index[failed], return_index=True, return_counts=True
    )
    numbers = block.numbers[failed[first]]
    return [
        FaultTotal(block.faults[fault], count, number)
        for fault, count, number in zip(
            index.tolist(), counts.tolist(), numbers.tolist(), strict=True
        )
    ]


# Parts.


def _sealed(sections: Sequence[bytes]) -> bytes:
    """Return a part: its format, the lengths of its sections, the sections, and a checksum."""
    head = struct.pack(f"<BB{len(sections)}I", _FORMAT, len(sections), *map(len, sections))
    body = b"".join([head, *sections])
    return body + struct.pack("<I", zlib.crc32(body))


def _opened(part: bytes) -> list[bytes]:
    """Return the sections of a part; raise `DamagedBlockError` if it is damaged."""
    if not isinstance(part, bytes | memoryview) or len(part) < 6:
        raise DamagedBlockError("it is too short")
    view = memoryview(part)
    (checksum,) = struct.unpack("<I", view[-4:])
    if zlib.crc32(view[:-4]) != checksum:
        raise DamagedBlockError("its checksum is wrong")
    if view[0] != _FORMAT:
        raise DamagedBlockError(f"its format is {view[0]}, which this swarmtest does not know")
    count = view[1]
    lengths = struct.unpack(f"<{count}I", view[2 : 2 + 4 * count])
    sections, start = [], 2 + 4 * count
    for length in lengths:
        sections.append(bytes(view[start : start + length]))
        start += length
    return sections


def _compressed(data: bytes, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    if len(data) < _WORTH_IT:
        return bytes([_RAW]) + data
    squeeze = zlib.compressobj(1, zlib.DEFLATED, -15, 9, strategy)
    packed = squeeze.compress(data) + squeeze.flush()
    return bytes([_ZLIB]) + packed if len(packed) < len(data) else bytes([_RAW]) + data


def _decompressed(data: bytes) -> bytes:
    if not data or data[0] == _RAW:
        return data[1:]
    if data[0] != _ZLIB:
        raise DamagedBlockError(f"its compression {data[0]} is not known to this swarmtest")
    return zlib.decompress(memoryview(data)[1:], -15)


def _pack_sections(parts: Sequence[bytes]) -> bytes:
    return struct.pack(f"<H{len(parts)}I", len(parts), *map(len, parts)) + b"".join(parts)


def _unpack_sections(data: bytes) -> list[bytes]:
    (count,) = struct.unpack_from("<H", data)
    parts, start = [], 2 + 4 * count
    for length in struct.unpack_from(f"<{count}I", data, 2):
        parts.append(data[start : start + length])
        start += length
    return parts


def _pack_ints(values: npt.NDArray[Any], strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    """Return integers by planes of bytes, as differences from the smallest."""
    size = len(values)
    low, high = (int(values.min()), int(values.max())) if size else (0, 0)
    width = next(w for w in (0, 1, 2, 4, 8) if high - low < 256**w)
    head = struct.pack("<BIq", width, size, low)
    if not width:
        return head
    if values.dtype == np.uint16:  # weights, of which there are many
        differences = values - np.uint16(low)
    else:
        # Unsigned, and modulo 2^64: the difference of two 64-bit numbers fits.
        differences = values.astype(np.int64).view(np.uint64) - np.uint64(low & (2**64 - 1))
    planes = differences.astype(f"<u{width}", copy=False).view(np.uint8).reshape(size, width).T
    return head + _pack_sections([_compressed(plane.tobytes(), strategy) for plane in planes])


def _unpack_ints(data: bytes) -> Ints:
    width, size, low = struct.unpack_from("<BIq", data)
    if not width:
        return np.full(size, low, np.int64)
    planes = [_decompressed(plane) for plane in _unpack_sections(data[13:])]
    stacked = np.frombuffer(b"".join(planes), np.uint8).reshape(width, size)
    differences = np.ascontiguousarray(stacked.T).view(f"<u{width}").ravel()
    return (differences.astype(np.uint64) + np.uint64(low & (2**64 - 1))).view(np.int64)


_PALETTES = 3
"""The first byte of rows of weights that `_pack_weights` packed; `_pack_ints` has other numbers."""
_PALETTE = 4
"""The most values of a row that has a palette: two bits say which of them a weight is."""
_GLANCE = 16
"""Whether a row has few values mostly shows in so many; shorter rows are not worth a palette."""


def _pack_weights(rows: npt.NDArray[np.uint16]) -> bytes:
    """Return rows of weights: those with few values by their palettes, the others as integers.

    Most rows have two to four values, as some features are so many times as common as others. To
    look for repetitions in them would take three times as long, and more space. The others have
    runs of weights that are 0, if anything: looking for more takes twice as long, and more space.
    """
    size, count = rows.shape
    few = np.zeros(size, bool)
    if count >= _GLANCE:
        some = np.flatnonzero(_palettes(rows[:, :_GLANCE])[0])
        has_palette, palettes, index = _palettes(rows[some])
        few[some[has_palette]] = True
    if not few.any():
        return _pack_ints(rows.ravel(), zlib.Z_RLE)
    padded = np.zeros((int(few.sum()), -(-count // 4) * 4), np.uint8)
    padded[:, :count] = index[has_palette]
    quarters = padded.reshape(-1, 4).T
    pairs = quarters[0] | quarters[1] << 2 | quarters[2] << 4 | quarters[3] << 6
    sections = [
        _compressed(np.packbits(few, bitorder="little").tobytes()),
        _pack_ints(palettes[has_palette].ravel()),
        _compressed(pairs.tobytes(), zlib.Z_HUFFMAN_ONLY),
        _pack_ints(rows[~few].ravel(), zlib.Z_RLE),
    ]
    return struct.pack("<BI", _PALETTES, size) + _pack_sections(sections)


def _palettes(
    rows: npt.NDArray[np.uint16],
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint16], npt.NDArray[np.uint8]]:
    """Return which rows have few values, the values of each, and for each weight the number of its.

    The numbers of rows with more values mean nothing.
    """
    size = len(rows)
    palettes = np.zeros((size, _PALETTE), np.uint16)
    index: npt.NDArray[np.uint8] = np.zeros(rows.shape, np.uint8)
    left: npt.NDArray[np.bool_] = np.ones(rows.shape, bool)
    for number in range(_PALETTE):
        palettes[:, number] = rows[np.arange(size), left.argmax(axis=1)]
        left &= rows != palettes[:, number : number + 1]
        index += left
    return ~np.any(left, axis=1), palettes, index


def _unpack_weights(data: bytes, count: int) -> npt.NDArray[np.uint16]:
    """Return the rows that `_pack_weights` packed; `count`: the features, a column each."""
    if data[0] != _PALETTES:
        steps = _unpack_ints(data).astype(np.uint16)
        return steps.reshape(-1 if len(steps) else 0, count)
    _, size = struct.unpack_from("<BI", data)
    flags, packed_palettes, packed_pairs, others = _unpack_sections(data[5:])
    bits = np.frombuffer(_decompressed(flags), np.uint8)
    few = np.unpackbits(bits, count=size, bitorder="little").astype(bool)
    palettes = _unpack_ints(packed_palettes).astype(np.uint16).reshape(-1, _PALETTE)
    pairs = np.frombuffer(_decompressed(packed_pairs), np.uint8)
    index = (pairs[:, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
    index = index.reshape(len(palettes), -1)[:, :count]
    rows = np.empty((size, count), np.uint16)
    rows[few] = np.take_along_axis(palettes, index.astype(np.intp), axis=1)
    rows[~few] = _unpack_ints(others).reshape(-1, count)
    return rows


def _pack_texts(values: Sequence[str] | Sequence[bytes]) -> bytes:
    data = [
        value.encode(errors="surrogatepass") if isinstance(value, str) else value
        for value in values
    ]
    lengths = np.fromiter(map(len, data), np.int64, len(data))
    return _compressed(_pack_sections([_pack_ints(lengths), b"".join(data)]))


def _unpack_bytes(data: bytes) -> tuple[bytes, ...]:
    packed_lengths, joined = _unpack_sections(_decompressed(data))
    ends = np.cumsum(_unpack_ints(packed_lengths)).tolist()
    return tuple(joined[start:end] for start, end in zip([0, *ends], ends, strict=False))


def _unpack_texts(data: bytes) -> tuple[str, ...]:
    return tuple(value.decode(errors="surrogatepass") for value in _unpack_bytes(data))


def pack_features(summary: FeatureSummary) -> bytes:
    """Return how often features were enabled and used."""
    rows = [summary.enabled, summary.offered, summary.used, summary.steps]
    return _sealed([_pack_ints(np.concatenate([*rows, [summary.known]]))])


def unpack_features(part: bytes) -> FeatureSummary:
    """Return the summary that `pack_features` packed."""
    if is_loose(part):
        *rows, known = opened(part)
        enabled, offered, used, steps = (np.array(row, np.int64) for row in rows)
        return FeatureSummary(enabled, offered, used, steps, known)
    values = _unpack_ints(_opened(part)[0])
    enabled, offered, used, steps = values[:-1].reshape(4, -1)
    return FeatureSummary(enabled, offered, used, steps, int(values[-1]))


# Columns.

_INTEGERS = (
    *("kinds", "weight_index", "tail_index", "propensity_index", "origin_index", "verdicts"),
    *("fault_index", "steps", "skipped", "cpu_ns", "used_states", "missing_index", "hit_states"),
)
_TEXTS = ("origins", "faults", "missing")
_BLOBS = ("tails", "propensity_rows", "odd_used", "odd_hits")
_DTYPES: dict[str, type[np.generic]] = {
    "kinds": np.uint8,
    "verdicts": np.int16,
    "used_states": np.uint8,
    "hit_states": np.uint8,
    "steps": np.int64,
    "skipped": np.int64,
    "cpu_ns": np.int64,
}
"""The types of integer columns; the others are indices."""
_SPECIAL = ("numbers", "enabled", "weight_rows", "wall_ns", "seeds", "used")
_ORDER = (*_SPECIAL, *_INTEGERS, *_TEXTS, *_BLOBS)
"""The sections of the part `columns`, after its size. Never change them: add a format."""


def pack_columns(block: TrialBlock, layout: BlockLayout) -> bytes:
    """Return everything about the trials of a block, except for their hits."""
    sections = {name: _pack_ints(getattr(block, name)) for name in _INTEGERS}
    sections |= {name: _pack_texts(getattr(block, name)) for name in (*_TEXTS, *_BLOBS)}
    sections["numbers"] = _pack_ints(np.diff(block.numbers, prepend=0))
    enabled = np.packbits(unpacked(block.enabled, block.size), axis=1, bitorder="little")
    # Tosses have runs of equal bytes, if anything: looking for more takes four times as long.
    sections["enabled"] = _compressed(enabled.tobytes(), zlib.Z_RLE)
    sections["weight_rows"] = _pack_weights(block.weight_rows)
    # The two clocks mostly differ by little.
    sections["wall_ns"] = _pack_ints(_wrapped(block.wall_ns, block.cpu_ns))
    derived = seed_array(layout.seed, block.numbers)
    sections["seeds"] = b"" if np.array_equal(derived, block.seeds) else _pack_ints(block.seeds)
    sections["used"] = _pack_use(block)
    return _sealed([struct.pack("<I", block.size), *(sections[name] for name in _ORDER)])


def _wrapped(values: Ints, others: Ints) -> Ints:
    """Return differences modulo 2^64."""
    return (values.view(np.uint64) - others.view(np.uint64)).view(np.int64)


def _pack_use(block: TrialBlock) -> bytes:
    """Return the counts of features, only those of enabled ones if the others are 0."""
    used = block.used
    if not used.any():
        return b""
    known = block.used_states == FULL_COUNTS
    enabled = unpacked(block.enabled, block.size) & known
    sparse = not used[~enabled].any()
    values = used[enabled] if sparse else used.ravel()
    width = next(w for w in (1, 2, 4) if int(values.max()) < 256**w)
    planes = values.astype(f"<u{width}").view(np.uint8).reshape(-1, width).T
    packed = [_compressed(plane.tobytes(), zlib.Z_HUFFMAN_ONLY) for plane in planes]
    return struct.pack("<BB", sparse, width) + _pack_sections(packed)


def unpack_block(
    columns: bytes,
    layout: BlockLayout,
    hits: Callable[[int], BlockHits] | None = None,
) -> TrialBlock:
    """Return the block that was packed; `hits` returns its hits, given its size, if they were read.

    Raise `DamagedBlockError` if the bytes are damaged.
    """
    if is_loose(columns):
        return TrialBlock.from_records(loose_records(columns), layout.features)
    reader = _ColumnReader(columns, layout, hits)
    return TrialBlock(reader.size, layout.features, reader.column)


def unpack_whole(packed: PackedBlock, layout: BlockLayout) -> TrialBlock:
    """Return the block that `pack_block` packed, with its hits."""
    return unpack_block(
        packed.columns,
        layout,
        lambda size: unpack_hits_of_block(packed.targets, packed.hits, size),
    )


class _ColumnReader:
    """Unpacks columns one by one."""

    def __init__(
        self, part: bytes, layout: BlockLayout, hits: Callable[[int], BlockHits] | None
    ) -> None:
        size, *sections = _opened(part)
        self._sections = dict(zip(_ORDER, sections, strict=True))
        self._layout = layout
        self._hits = hits
        (self.size,) = struct.unpack("<I", size)

    def column(self, block: TrialBlock, name: str) -> Any:
        """Return a column of the block by its name."""
        try:
            return self._column(block, name)
        except (struct.error, zlib.error, IndexError, UnicodeDecodeError) as error:
            raise DamagedBlockError(f"its column {name} cannot be decoded ({error})") from error

    def _column(self, block: TrialBlock, name: str) -> Any:
        if name == "hits":
            if self._hits is None:
                raise KeyError("this block was read without its hits")
            return self._hits(self.size)
        section = self._sections[name]
        if name in _INTEGERS:
            return _unpack_ints(section).astype(_DTYPES.get(name, np.int32), copy=False)
        if name in _TEXTS:
            return _unpack_texts(section)
        if name in _BLOBS:
            return _unpack_bytes(section)
        special = getattr(self, f"_{name}")
        return special(block, section)

    def _numbers(self, block: TrialBlock, section: bytes) -> Ints:
        return np.cumsum(_unpack_ints(section))

    def _enabled(self, block: TrialBlock, section: bytes) -> Words:
        width = -(-self.size // 8)
        packed = np.zeros((self._layout.features, -(-width // 8) * 8), np.uint8)
        rows = np.frombuffer(_decompressed(section), np.uint8)
        packed[:, :width] = rows.reshape(self._layout.features, width)
        return packed.view("<u8")

    def _weight_rows(self, block: TrialBlock, section: bytes) -> npt.NDArray[np.uint16]:
        return _unpack_weights(section, self._layout.features)

    def _wall_ns(self, block: TrialBlock, section: bytes) -> Ints:
        differences = _unpack_ints(section).view(np.uint64)
        return (differences + block.cpu_ns.view(np.uint64)).view(np.int64)

    def _seeds(self, block: TrialBlock, section: bytes) -> Ints:
        if not section:
            return seed_array(self._layout.seed, block.numbers)
        return _unpack_ints(section)

    def _used(self, block: TrialBlock, section: bytes) -> npt.NDArray[np.uint32]:
        used = np.zeros((self._layout.features, self.size), np.uint32)
        if not section:
            return used
        sparse, width = struct.unpack_from("<BB", section)
        planes = [_decompressed(plane) for plane in _unpack_sections(section[2:])]
        stacked = np.frombuffer(b"".join(planes), np.uint8).reshape(width, -1)
        values = np.ascontiguousarray(stacked.T).view(f"<u{width}").ravel()
        if sparse:
            known = block.used_states == FULL_COUNTS
            used[unpacked(block.enabled, self.size) & known] = values
        else:
            used[:] = values.reshape(used.shape)
        return used


# Hits.


def pack_targets(hits: BlockHits, numbers: Ints) -> bytes:
    """Return the targets of a block with their classes, and the size and first trial of each."""
    firsts = numbers[hits.positions[hits.starts[:-1]]]
    return pack_class_targets(hits.targets, hits.classes, hits.class_counts, firsts)


def pack_class_targets(
    targets: Ints, classes: npt.NDArray[Any], counts: Ints, firsts: Ints
) -> bytes:
    """Return targets (ids in order) with their classes; the classes' sizes and first trials."""
    gaps = np.diff(targets, prepend=0)
    return _sealed([_pack_ints(part) for part in (gaps, classes, counts, firsts)])


def renumber_targets(part: bytes, ids: Ints) -> bytes:
    """Return the targets of a block with other ids, given in the order of the old ones."""
    _, classes, counts, firsts = map(_unpack_ints, _opened(part))
    order = np.argsort(ids)
    return pack_class_targets(ids[order], classes[order], counts, firsts)


def unpack_hit_summary(part: bytes) -> HitSummary:
    """Return how often the targets of a block were hit, and by which trial first."""
    gaps, classes, counts, firsts = map(_unpack_ints, _opened(part))
    return HitSummary(np.cumsum(gaps), counts[classes], firsts[classes])


def pack_positions(hits: BlockHits) -> bytes:
    """Return the positions of the trials in each class."""
    counts = hits.class_counts
    many = counts * 2 > hits.size
    positions: npt.NDArray[Any] = hits.positions
    starts = hits.starts[:-1]
    if many.any():
        positions, counts = _complemented(hits, many)
        starts = np.cumsum(counts) - counts
    gaps = np.diff(positions, prepend=0)
    begins = starts[counts > 0]
    gaps[begins] = positions[begins]
    inner = np.ones(len(gaps), bool)
    inner[begins] = False
    gaps[inner] -= 1
    big = gaps >= _BIG_GAP
    small = np.where(big, _BIG_GAP, gaps).astype(np.uint8)
    return _sealed(
        [
            struct.pack("<I", hits.size),
            _pack_ints(many.astype(np.uint8)),
            _compressed(small.tobytes(), zlib.Z_HUFFMAN_ONLY),
            _pack_ints(gaps[big]),
        ]
    )


def _complemented(hits: BlockHits, many: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return positions and sizes with the other trials where `many` is true."""
    counts = hits.class_counts
    flags = np.ones((int(many.sum()), hits.size), bool)
    owners = np.repeat(np.arange(len(counts)), counts)
    dense = many[owners]
    row_of = np.cumsum(many) - 1
    flags[row_of[owners[dense]], hits.positions[dense]] = False
    rows, others = np.nonzero(flags)
    all_owners = np.concatenate([owners[~dense], np.flatnonzero(many)[rows]])
    all_positions = np.concatenate([hits.positions[~dense].astype(np.int64), others])
    order = np.argsort(all_owners, kind="stable")
    return all_positions[order], np.bincount(all_owners, minlength=len(counts))


def unpack_hits_of_block(targets: bytes, hits: bytes, size: int) -> BlockHits:
    """Return the hits of a block of `size` trials from its two parts; both are empty without hits.

    Raise `DamagedBlockError` if they are damaged.
    """
    nothing = np.empty(0, np.int32)
    if not targets and not hits:
        return BlockHits(size, np.empty(0, np.int64), nothing, np.zeros(1, np.int64), nothing)
    with _damage_named():
        id_gaps, classes, counts, _ = map(_unpack_ints, _opened(targets))
        (packed_size, *_) = _opened(hits)
        return _StoredHits(
            struct.unpack("<I", packed_size)[0],
            np.cumsum(id_gaps),
            classes.astype(np.int32),
            np.concatenate([[0], np.cumsum(counts)]),
            hits,
        )


@contextmanager
def _damage_named() -> Iterator[None]:
    try:
        yield
    except (struct.error, zlib.error, IndexError, ValueError) as error:
        if isinstance(error, DamagedBlockError):
            raise
        raise DamagedBlockError(f"its hits cannot be decoded ({error})") from error


class _StoredHits(BlockHits):
    """The hits of a stored block, whose positions are decoded when they are first used."""

    def __init__(
        self, size: int, targets: Ints, classes: Indices, starts: Ints, packed: bytes
    ) -> None:
        """Create the hits from what is decoded already, and the part with the positions."""
        self.__dict__.update(
            size=size, targets=targets, classes=classes, starts=starts, _packed=packed
        )

    @cached_property
    def stored(self) -> StoredPositions:
        """The positions as they are stored: for classes of many trials, the other trials."""
        with _damage_named():
            _, packed_many, packed_small, packed_big = _opened(self.__dict__["_packed"])
            many = _unpack_ints(packed_many).astype(bool)
            counts = self.class_counts
            stored = np.where(many, self.size - counts, counts)
            small = np.frombuffer(_decompressed(packed_small), np.uint8)
            # Narrow numbers take half of the time.
            narrow = len(counts) * self.size < 2**31
            gaps: npt.NDArray[Any] = small.astype(np.int32 if narrow else np.int64)
            if packed_big:
                gaps[small == _BIG_GAP] = _unpack_ints(packed_big)
            starts = np.concatenate([[0], np.cumsum(stored)])
            begins = starts[:-1][stored > 0]
            gaps += 1
            gaps[begins] -= 1
            totals = np.cumsum(gaps, dtype=gaps.dtype)
            before = totals[begins] - gaps[begins]
            totals -= np.repeat(before, stored[stored > 0])
            return StoredPositions(starts, totals.astype(np.int32, copy=False), many)

    @cached_property
    def positions(self) -> Indices:
        """The positions of the trials that hit each class, in order within the class."""
        starts, positions, many = self.stored
        if not many.any():
            return positions
        without = BlockHits(
            self.size, np.empty(0, np.int64), np.empty(0, np.int32), starts, positions
        )
        return _complemented(without, many)[0].astype(np.int32)
