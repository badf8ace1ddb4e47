"""`TrialBlock`, the trials of a block as columns."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.core.configuration import FULL
from swarmtest.core.result import Verdict
from swarmtest.store.blocks.columns import (
    EMPTY_COUNTS,
    FULL_COUNTS,
    NO_COUNTS,
    ODD_COUNTS,
    ODD_HITS,
    ODD_KIND,
    SOME_HITS,
    hit_sets,
    plain_columns,
)
from swarmtest.store.blocks.hits import (
    BLOCK_SIZE,
    BlockHits,
    Bools,
    Indices,
    Ints,
    Words,
    invert_hits,
    packed_rows,
    unpacked,
)
from swarmtest.store.records import TrialRecord, pack_counts

Counts = npt.NDArray[np.uint32]
T = TypeVar("T")


class Column(Generic[T]):
    """An attribute of a block that is decoded when it is first used."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, block: TrialBlock, owner: type | None = None) -> T:
        value: T = block._load(block, self._name)
        block.__dict__[self._name] = value
        return value


class TrialBlock:
    """Trials of one campaign as columns, in the order of their numbers.

    Columns named ``..._index`` are indices into the tuple beside them; the same value is stored
    once.

    >>> records = [TrialRecord(n, b"\\0" + bytes([n]), used=b"\\1\\2\\0", steps=2) for n in (1, 3)]
    >>> block = TrialBlock.from_records(records, features=2)
    >>> block.numbers.tolist(), np.bitwise_count(block.enabled).sum(axis=1).tolist()
    ([1, 3], [2, 1])
    >>> block.used[0].tolist(), [*block.records()] == records
    ([2, 2], True)
    """

    numbers = Column[Ints]()
    """The numbers of the trials, in order."""
    enabled = Column[Words]()
    """Packed bits: for each feature a row with the trials that included it (weight above 0)."""
    kinds = Column[npt.NDArray[np.uint8]]()
    """The first byte of each configuration (`Configuration.to_bytes`), or `ODD_KIND`."""
    weight_rows = Column[npt.NDArray[np.uint16]]()
    """The distinct rows of fractional weights: steps of 1/65535, one per feature."""
    weight_index = Column[Indices]()
    """For each trial its row of `weight_rows`; -1 if all its weights are 0 or 1."""
    tails = Column[tuple[bytes, ...]]()
    """The distinct ends of configurations: the settings as JSON; an odd configuration whole."""
    tail_index = Column[Indices]()
    propensity_rows = Column[tuple[bytes, ...]]()
    """The distinct propensities, as `TrialRecord.propensities` has them."""
    propensity_index = Column[Indices]()
    origins = Column[tuple[str, ...]]()
    origin_index = Column[Indices]()
    verdicts = Column[npt.NDArray[np.int16]]()
    faults = Column[tuple[str, ...]]()
    """The ids of the faults in this block."""
    fault_index = Column[Indices]()
    """For each trial its fault in `faults`; -1 if it has none."""
    steps = Column[Ints]()
    skipped = Column[Ints]()
    cpu_ns = Column[Ints]()
    wall_ns = Column[Ints]()
    seeds = Column[Ints]()
    used = Column[Counts]()
    """How often each feature appeared: one row per feature, one column per trial. It is 0 for
    trials whose `used_states` is not `FULL_COUNTS`: what they contained is not known."""
    used_states = Column[npt.NDArray[np.uint8]]()
    odd_used = Column[tuple[bytes, ...]]()
    """`TrialRecord.used` of the trials in the state `ODD_COUNTS`, in order."""
    missing = Column[tuple[str, ...]]()
    """The distinct reasons why coverage is not known; mostly only ''."""
    missing_index = Column[Indices]()
    hits = Column[BlockHits]()
    """Hits by target. A block that was read without hits has no such column."""
    hit_states = Column[npt.NDArray[np.uint8]]()
    odd_hits = Column[tuple[bytes, ...]]()
    """`TrialRecord.hits` of the trials in the state `ODD_HITS`, in order."""

    def __init__(self, size: int, features: int, load: Callable[[TrialBlock, str], Any]) -> None:
        """Create a block of `size` trials; `load` returns a column of a block by its name.

        `load` gets the block, so that it need not refer to it: blocks are large, and a cycle would
        keep them until the next garbage collection.
        """
        self.size = size
        self.features = features
        self._load = load

    def __len__(self) -> int:
        return self.size

    @classmethod
    def from_records(cls, records: Iterable[TrialRecord], features: int) -> TrialBlock:
        """Return the block of these trials over `features` features, in order of their numbers."""
        rows = sorted(records, key=lambda record: record[0])
        columns = plain_columns(rows, features)
        sets, states, odd = hit_sets([row[10] for row in rows])
        columns |= {"hits": invert_hits(sets), "hit_states": states, "odd_hits": odd}
        return cls(len(rows), features, lambda _, name: columns[name])

    # Reading.

    @property
    def first(self) -> int:
        """The number of the first trial."""
        return int(self.numbers[0])

    @property
    def last(self) -> int:
        """The number of the last trial."""
        return int(self.numbers[-1])

    def packed(self, flags: npt.NDArray[Any]) -> Words:
        """Return flags, one per trial (in the last dimension), as packed bits."""
        width = -(-self.size // 64) * 64
        padded = np.zeros((*flags.shape[:-1], width), bool)
        padded[..., : self.size] = flags
        return packed_rows(padded)

    @property
    def hits_known(self) -> Bools:
        """For each trial, whether its hits are complete (`TrialRecord.hits_are_known`)."""
        complete = np.array([not text for text in self.missing], bool)[self.missing_index]
        known: Bools = complete | (self.verdicts == Verdict.INVALID)
        return known

    @property
    def counts_known(self) -> Bools:
        """For each trial, whether it is known how often each feature appeared in it."""
        known: Bools = self.used_states == FULL_COUNTS
        return known

    def weights(self) -> npt.NDArray[np.float32]:
        """Return the weight of each feature (row) in each trial (column)."""
        weights = unpacked(self.enabled, self.size).astype(np.float32)
        fractional = np.flatnonzero(self.weight_index >= 0)
        if len(fractional):
            steps = self.weight_rows[self.weight_index[fractional]]
            weights[:, fractional] = (steps / np.float32(FULL)).T
        return weights

    def propensities(self) -> npt.NDArray[np.float32]:
        """Return the distinct propensities, one row for each of `propensity_rows`.

        A row has one number per feature; NaN where they are not known.
        """
        rows = np.full((len(self.propensity_rows), self.features), np.nan, np.float32)
        for row, packed in zip(rows, self.propensity_rows, strict=True):
            if len(packed) in (4, 4 * self.features):
                row[:] = np.frombuffer(packed, "<f4")
        return rows

    def configurations(self) -> list[bytes]:
        """Return `TrialRecord.configuration` of each trial."""
        bits = unpacked(self.enabled, self.size).T
        heads = np.packbits(bits, axis=1, bitorder="little")
        width = heads.shape[1]
        packed = heads.tobytes()
        found = []
        rows = zip(
            self.kinds.tolist(), self.weight_index.tolist(), self.tail_index.tolist(), strict=True
        )
        for i, (kind, weight_row, tail) in enumerate(rows):
            if kind == ODD_KIND:
                found.append(self.tails[tail])
                continue
            head = packed[i * width : (i + 1) * width]
            if weight_row >= 0:
                head = self.weight_rows[weight_row].astype("<u2").tobytes()
            found.append(bytes((kind,)) + head + self.tails[tail])
        return found

    def records(self, positions: npt.NDArray[Any] | None = None) -> Iterator[TrialRecord]:
        """Yield the trials, or those at some positions."""
        block = self if positions is None else self.take(positions)
        return map(TrialRecord._make, zip(*block._record_columns(), strict=True))

    def _record_columns(self) -> list[Sequence[Any]]:
        """Return the fields of `TrialRecord`, each as a sequence with a value per trial."""
        return [
            self.numbers.tolist(),
            self.configurations(),
            _values(self.propensity_rows, self.propensity_index),
            _values(self.origins, self.origin_index),
            self.seeds.tolist(),
            self.verdicts.tolist(),
            _values((*self.faults, None), self.fault_index),
            self.steps.tolist(),
            self.skipped.tolist(),
            self._packed_counts(),
            self._packed_hits(),
            self.cpu_ns.tolist(),
            self.wall_ns.tolist(),
            _values(self.missing, self.missing_index),
        ]

    def _packed_counts(self) -> list[bytes]:
        states = self.used_states.tolist()
        odd = iter(self.odd_used)
        whole = self.used.T
        small = whole.astype(np.uint8).tobytes()
        large = whole.max(axis=1, initial=0) > 255
        width, found = self.features, []
        for i, state in enumerate(states):
            if state == FULL_COUNTS:
                if large[i]:
                    found.append(pack_counts(whole[i].tolist()))
                else:
                    found.append(b"\1" + small[i * width : (i + 1) * width])
            else:
                found.append({NO_COUNTS: b"", EMPTY_COUNTS: b"\1"}.get(state) or _odd(state, odd))
        return found

    def _packed_hits(self) -> list[bytes | None]:
        states = self.hit_states.tolist()
        if not any(states):
            return [None] * self.size
        odd = iter(self.odd_hits)
        seen: dict[bytes, bytes] = {}
        found: list[bytes | None] = []
        for state, ids in zip(states, self.hits.sets(), strict=True):
            if state == SOME_HITS:
                key = ids.tobytes()
                if key not in seen:
                    seen[key] = BitMap(ids.astype(np.uint32)).serialize()
                found.append(seen[key])
            else:
                found.append(next(odd) if state == ODD_HITS else None)
        return found

    def without_hits(self) -> TrialBlock:
        """Return the block as if no trial had hit anything."""
        hits = invert_hits([()] * self.size)
        none = np.zeros(self.size, np.uint8)
        replaced: dict[str, Any] = {"hits": hits, "hit_states": none, "odd_hits": ()}
        return TrialBlock(
            self.size,
            self.features,
            lambda _, name: replaced[name] if name in replaced else getattr(self, name),
        )

    def with_faults(self, groups: Mapping[str, str]) -> TrialBlock:
        """Return the block with other ids for some faults; several may become the same."""
        if not groups or groups.keys().isdisjoint(self.faults):
            return self
        shown = [groups.get(fault, fault) for fault in self.faults]
        distinct = tuple(dict.fromkeys(shown))
        numbers = np.array([*map(distinct.index, shown), -1], self.fault_index.dtype)
        changed = copy.copy(self)
        changed.__dict__.update(faults=distinct, fault_index=numbers[self.fault_index])
        return changed

    def take(self, positions: npt.NDArray[Any]) -> TrialBlock:
        """Return the block with only the trials at these positions, which are in order.

        >>> records = [TrialRecord(n, b"\\0\\1") for n in range(5)]
        >>> TrialBlock.from_records(records, 1).take(np.array([1, 4])).numbers.tolist()
        [1, 4]
        """
        return TrialBlock(len(positions), self.features, _Selection(self, positions).column)


def _odd(state: int, odd: Iterator[bytes]) -> bytes:
    return next(odd) if state == ODD_COUNTS else b""


def _values(distinct: Sequence[T], index: Indices) -> list[T]:
    return list(map(distinct.__getitem__, index.tolist()))


class _Selection:
    """The columns of some of the trials of a block."""

    def __init__(self, block: TrialBlock, positions: npt.NDArray[Any]) -> None:
        self._block = block
        self._positions = positions
        self._flags = np.zeros(block.size, bool)
        self._flags[positions] = True

    def column(self, _: TrialBlock, name: str) -> Any:
        """Return a column by its name."""
        block, positions = self._block, self._positions
        if name == "enabled":
            narrow = TrialBlock(len(positions), block.features, _no_column)
            return narrow.packed(unpacked(block.enabled, block.size)[:, positions])
        if name == "used":
            return block.used[:, positions]
        if name == "hits":
            return self._hits()
        if name == "odd_hits":
            return self._odd(block.odd_hits, block.hit_states == ODD_HITS)
        if name == "odd_used":
            return self._odd(block.odd_used, block.used_states == ODD_COUNTS)
        whole = getattr(block, name)
        if isinstance(whole, tuple) or name == "weight_rows":
            return whole
        return whole[positions]

    def _hits(self) -> BlockHits:
        hits = self._block.hits
        owners = np.repeat(np.arange(len(hits.class_counts)), hits.class_counts)
        kept = self._flags[hits.positions]
        renumbered = np.cumsum(self._flags) - 1
        lengths = np.bincount(owners[kept], minlength=len(hits.class_counts))
        alive = np.cumsum(lengths > 0) - 1
        targets = lengths[hits.classes] > 0
        return BlockHits(
            len(self._positions),
            hits.targets[targets],
            alive[hits.classes[targets]].astype(np.int32),
            np.concatenate([[0], np.cumsum(lengths[lengths > 0])]),
            renumbered[hits.positions[kept]].astype(np.int32),
        )

    def _odd(self, odd: tuple[bytes, ...], where: Bools) -> tuple[bytes, ...]:
        return tuple(
            value
            for value, position in zip(odd, np.flatnonzero(where), strict=True)
            if self._flags[position]
        )


def _no_column(_: TrialBlock, name: str) -> Any:
    raise KeyError(name)


def split_records(records: Iterable[TrialRecord]) -> Iterator[list[TrialRecord]]:
    """Yield the trials in lists of up to `BLOCK_SIZE`."""
    chunk: list[TrialRecord] = []
    for record in records:
        chunk.append(record)
        if len(chunk) == BLOCK_SIZE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
