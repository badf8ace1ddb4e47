"""Build the columns of a block from rows with the fields of `TrialRecord`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.core.configuration import WEIGHTS
from swarmtest.store.blocks.hits import Bools, Indices, Ints, packed_rows
from swarmtest.store.records import TrialRecord

NO_HITS, SOME_HITS, ODD_HITS = range(3)
"""What `TrialBlock.hit_states` says: no set, a set (maybe empty), or bytes that are not one."""
NO_COUNTS, EMPTY_COUNTS, FULL_COUNTS, ODD_COUNTS = range(4)
"""What `TrialBlock.used_states` says: nothing, no counts, one count per feature, or other bytes."""
ODD_KIND = 255
"""In `TrialBlock.kinds`: a configuration that cannot be taken apart; it is in `tails` whole."""
_KINDS = 8
"""The first byte of a configuration is less than this."""

V = TypeVar("V", bound=str | bytes | None)


def plain_columns(rows: Sequence[Sequence[Any]], features: int) -> dict[str, Any]:
    """Return the columns of rows with the fields of `TrialRecord`, except for hits.

    >>> plain_columns([TrialRecord(4, b"")], features=0)["numbers"].tolist()
    [4]
    """
    if not rows:
        rows_by_column: list[Sequence[Any]] = [()] * len(TrialRecord._fields)
    else:
        rows_by_column = list(zip(*rows, strict=True))
    columns: dict[str, Any] = {}
    plain = dict(zip(TrialRecord._fields, rows_by_column, strict=True))
    for field, name in _INTEGERS.items():
        columns[name] = np.array(plain[field], np.int64)
    columns["verdicts"] = np.array(plain["verdict"], np.int16)
    for field, (values, index) in _TEXTS.items():
        columns[values], columns[index] = _distinct(plain[field])
    faults = plain["fault"]
    columns["faults"] = tuple(dict.fromkeys(fault for fault in faults if fault is not None))
    places: dict[str | None, int] = {fault: i for i, fault in enumerate(columns["faults"])}
    places[None] = -1
    columns["fault_index"] = np.array([places[fault] for fault in faults], np.int32)
    columns |= _configuration_columns(plain["configuration"], features)
    columns |= _use_columns(plain["used"], features)
    return columns


_INTEGERS = {
    "trial": "numbers",
    "seed": "seeds",
    "steps": "steps",
    "skipped": "skipped",
    "cpu_ns": "cpu_ns",
    "wall_ns": "wall_ns",
}
_TEXTS = {
    "propensities": ("propensity_rows", "propensity_index"),
    "origin": ("origins", "origin_index"),
    "missing": ("missing", "missing_index"),
}


def _distinct(values: Sequence[V]) -> tuple[tuple[V, ...], Indices]:
    """Return the distinct values, and for each value its index among them."""
    places = {value: i for i, value in enumerate(dict.fromkeys(values))}
    if len(places) <= 1:
        return tuple(places), np.zeros(len(values), np.int32)
    return tuple(places), np.array(list(map(places.__getitem__, values)), np.int32)


def _configuration_columns(packed: Sequence[bytes], features: int) -> dict[str, Any]:
    size, width = len(packed), (features + 7) // 8
    lengths = np.fromiter(map(len, packed), np.int64, size)
    starts = np.cumsum(lengths) - lengths
    data = np.frombuffer(b"".join(packed), np.uint8)
    kinds = np.full(size, ODD_KIND, np.uint8)
    some = np.flatnonzero(lengths)
    kinds[some] = data[starts[some]]
    weighted = (kinds & WEIGHTS).astype(bool)
    heads = 1 + np.where(weighted, 2 * features, width)
    unknown = (kinds >= _KINDS) | (weighted & (features == 0))
    kinds[unknown | (lengths < heads)] = ODD_KIND
    flags = np.zeros((size, width * 8), bool)
    plain = np.flatnonzero((kinds != ODD_KIND) & ~weighted)
    flags[plain] = _unpacked_heads(data, starts[plain] + 1, width)
    # A bit beyond the last feature would be lost.
    beyond = flags[:, features:].any(axis=1)
    flags[beyond] = False
    kinds[beyond] = ODD_KIND
    fractional = np.flatnonzero((kinds != ODD_KIND) & weighted)
    weight_rows = np.empty((0, features), np.uint16)
    weight_index = np.full(size, -1, np.int32)
    if len(fractional):
        heads_of = [packed[i][1 : 1 + 2 * features] for i in fractional.tolist()]
        distinct, weight_index[fractional] = _distinct(heads_of)
        weight_rows = np.frombuffer(b"".join(distinct), "<u2").reshape(len(distinct), features)
        flags[fractional, :features] = weight_rows[weight_index[fractional]] > 0
    if (lengths == heads).all() and not (kinds == ODD_KIND).any():
        tails: tuple[bytes, ...] = (b"",) if size else ()
        tail_index = np.zeros(size, np.int32)
    else:
        cuts = np.where(kinds == ODD_KIND, 0, heads).tolist()
        tails, tail_index = _distinct(
            [configuration[cut:] for configuration, cut in zip(packed, cuts, strict=True)]
        )
    rows = np.zeros((features, -(-size // 64) * 64), bool)
    rows[:, :size] = flags[:, :features].T
    return {
        "enabled": packed_rows(rows),
        "kinds": kinds,
        "weight_rows": weight_rows,
        "weight_index": weight_index,
        "tails": tails,
        "tail_index": tail_index,
    }


def _unpacked_heads(data: npt.NDArray[np.uint8], starts: Ints, width: int) -> Bools:
    """Return the bits of the bytes that begin at `starts`, `width` bytes each."""
    heads = data[starts[:, None] + np.arange(width)]
    return np.unpackbits(heads, axis=1, bitorder="little").view(bool)


def _use_columns(packed: Sequence[bytes], features: int) -> dict[str, Any]:
    size = len(packed)
    lengths = np.fromiter(map(len, packed), np.int64, size)
    used = np.zeros((features, size), np.uint32)
    states = np.full(size, ODD_COUNTS, np.uint8)
    states[lengths == 0] = NO_COUNTS
    starts = np.cumsum(lengths) - lengths
    data = np.frombuffer(b"".join(packed), np.uint8)
    form = np.zeros(size, np.uint8)
    some = np.flatnonzero(lengths)
    form[some] = data[starts[some]]
    states[(form == 1) & (lengths == 1)] = EMPTY_COUNTS
    if features:
        narrow = np.flatnonzero((form == 1) & (lengths == 1 + features))
        states[narrow] = FULL_COUNTS
        used[:, narrow] = data[starts[narrow][:, None] + 1 + np.arange(features)].T
        for i in np.flatnonzero((form == 4) & (lengths == 1 + 4 * features)).tolist():
            counts = np.frombuffer(packed[i], "<u4", features, 1)
            if counts.max() > 255:  # otherwise `pack_counts` would have taken a byte each
                states[i] = FULL_COUNTS
                used[:, i] = counts
    odd = tuple(packed[i] for i in np.flatnonzero(states == ODD_COUNTS).tolist())
    return {"used": used, "used_states": states, "odd_used": odd}


def hit_sets(
    packed: Sequence[bytes | None],
) -> tuple[list[npt.NDArray[np.uint32]], npt.NDArray[np.uint8], tuple[bytes, ...]]:
    """Return the ids in each set, the states of the sets, and what is no set."""
    known: dict[bytes | None, npt.NDArray[np.uint32] | None] = {None: _NOTHING}
    for hits in dict.fromkeys(packed):
        if hits is not None:
            known[hits] = _ids(hits)
    sets, odd = [], []
    states = np.zeros(len(packed), np.uint8)
    for i, hits in enumerate(packed):
        ids = known[hits]
        if hits is None:
            sets.append(_NOTHING)
        elif ids is None:
            sets.append(_NOTHING)
            odd.append(hits)
            states[i] = ODD_HITS
        else:
            sets.append(ids)
            states[i] = SOME_HITS
    return sets, states, tuple(odd)


_NOTHING = np.empty(0, np.uint32)


def _ids(hits: bytes) -> npt.NDArray[np.uint32] | None:
    """Return the ids in a packed set; None if the bytes are not exactly one."""
    try:
        ids = BitMap.deserialize(hits)
    except (ValueError, IndexError):
        return None
    if ids.serialize() != hits:  # something follows the set
        return None
    return np.array(ids, np.uint32)
