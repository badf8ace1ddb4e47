"""Trials turned into columns as they stream by: nothing but a few packed bytes of each is kept."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.analysis.bits import Bits
from swarmtest.analysis.likeness import Likeness
from swarmtest.result import Verdict
from swarmtest.space.packed_weights import unpack_weights
from swarmtest.store.records import TrialRecord

Uses = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

_ROWS = 4096
"""Trials whose bytes wait to be unpacked together."""
_FULL = np.float32(65535)


def hit_ids(trial: TrialRecord) -> npt.NDArray[np.uint32]:
    """The ids of the targets that a trial hit, ascending; none where that is not known.

    >>> hit_ids(TrialRecord(0, b"", hits=BitMap([7, 3]).serialize())).tolist()
    [3, 7]
    """
    if not trial.hits or not trial.hits_are_known:
        return np.empty(0, np.uint32)
    return np.frombuffer(BitMap.deserialize(trial.hits).to_array(), np.uint32)


class Matrices(NamedTuple):
    """What has a value for each test and feature."""

    enabled: Bits
    fractions: npt.NDArray[np.uint16] | None
    """Weights in 65535ths; None if every weight is 0 or 1."""
    used: Uses
    odds: npt.NDArray[np.float32]
    """Distinct rows of logged propensities; NaN: nothing was logged."""


@dataclass
class EvidenceColumns:
    """The columns so far, of tests over so many features."""

    features: int
    campaign: array[int] = field(default_factory=lambda: array("i"))
    trial: array[int] = field(default_factory=lambda: array("q"))
    steps: array[int] = field(default_factory=lambda: array("q"))
    cpu_ns: array[int] = field(default_factory=lambda: array("q"))
    odds_row: array[int] = field(default_factory=lambda: array("i"))
    origin: array[int] = field(default_factory=lambda: array("i"))
    fault: array[int] = field(default_factory=lambda: array("i"))
    known: array[int] = field(default_factory=lambda: array("b"))
    origins: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    likeness: Likeness = field(default_factory=Likeness)
    invalid: int = 0
    _odds: dict[bytes, int] = field(default_factory=dict)
    _waiting: list[tuple[bytes, bytes]] = field(default_factory=list)
    _new_odds: list[bytes] = field(default_factory=list)
    _words: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    _fractions: list[npt.NDArray[np.uint16] | None] = field(default_factory=list)
    _used: list[Uses] = field(default_factory=list)
    _odds_tables: list[npt.NDArray[np.float32]] = field(default_factory=list)

    def add(self, campaign: int, trials: Iterable[TrialRecord]) -> None:
        """Take the trials of one campaign, in their order."""
        for trial in trials:
            self.likeness.add(len(self.trial), hit_ids(trial))
            self.invalid += trial.verdict == Verdict.INVALID
            self.campaign.append(campaign)
            self.trial.append(trial.trial)
            self.steps.append(trial.steps)
            self.cpu_ns.append(trial.cpu_ns)
            self.odds_row.append(self._odds_row(trial.propensities))
            self.origin.append(self.origins.setdefault(trial.origin, len(self.origins)))
            fault = -1
            if trial.fault is not None:
                fault = self.faults.setdefault(trial.fault, len(self.faults))
            self.fault.append(fault)
            self.known.append(trial.hits_are_known)
            self._waiting.append((trial.configuration, trial.used))
            if len(self._waiting) == _ROWS:
                self._unpack()

    def matrices(self) -> Matrices:
        """Everything that has a value for each feature. Ends the reading: the parts are let go."""
        self._unpack()
        fractions = self._joined_fractions()
        used = _joined(self._used) if any(part.any() for part in self._used) else None
        enabled = Bits(_joined(self._words), self.features)
        nothing = np.broadcast_to(np.zeros(1, np.uint8), enabled.shape)
        return Matrices(
            enabled, fractions, nothing if used is None else used, _joined(self._odds_tables)
        )

    def _joined_fractions(self) -> npt.NDArray[np.uint16] | None:
        if all(part is None for part in self._fractions):
            return None
        parts = [
            Bits(words, self.features)[:] * np.uint16(_FULL) if part is None else part
            for words, part in zip(self._words, self._fractions, strict=True)
        ]
        self._fractions.clear()
        whole: npt.NDArray[np.uint16] = _joined(parts)
        return whole

    def _odds_row(self, packed: bytes) -> int:
        key = packed if len(packed) <= 64 else hashlib.blake2b(packed, digest_size=16).digest()
        row = self._odds.get(key)
        if row is None:
            row = self._odds[key] = len(self._odds)
            self._new_odds.append(packed)
        return row

    def _unpack(self) -> None:
        if not self._waiting:
            return
        weights = unpack_weights([packed for packed, _ in self._waiting], self.features)
        self._words.append(Bits.of(weights > 0).words)
        whole = bool(((weights == 0) | (weights == 1)).all())
        fractions = None if whole else np.rint(weights * _FULL).astype(np.uint16)
        self._fractions.append(fractions)
        self._used.append(_unpack_uses([used for _, used in self._waiting], self.features))
        self._odds_tables.append(_unpack_odds(self._new_odds, self.features))
        self._waiting.clear()
        self._new_odds.clear()


def _unpack_uses(packed: Sequence[bytes], count: int) -> Uses:
    """Rows of `swarmtest.store.records.pack_counts`; a trial without them has used nothing."""
    kinds = np.array([data[0] if len(data) > 1 else 0 for data in packed])
    used = np.zeros((len(packed), count), np.uint32)
    for kind, bytes_each in ((1, "u1"), (4, "<u4")):
        rows = np.flatnonzero(kinds == kind)
        joined = b"".join([packed[row][1:] for row in rows.tolist()])
        used[rows] = np.frombuffer(joined, bytes_each).reshape(len(rows), count)
    return used.astype(np.min_scalar_type(int(used.max(initial=0))), copy=False)


def _unpack_odds(packed: Sequence[bytes], count: int) -> npt.NDArray[np.float32]:
    table = np.full((len(packed), count), np.nan, np.float32)
    for row, data in enumerate(packed):
        if data:
            table[row] = np.frombuffer(data, "<f4")
    return table


def _joined(parts: list[Any]) -> Any:
    """The parts in one, each let go when it is copied: two of the whole would be too much."""
    shape = sum(map(len, parts)), parts[0].shape[1]
    whole = np.empty(shape, np.result_type(*{part.dtype for part in parts}))
    at = len(whole)
    while parts:
        part = parts.pop()
        whole[at - len(part) : at] = part
        at -= len(part)
    return whole
