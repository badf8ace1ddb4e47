"""Blocks as plain data, and the few trials of a small batch as a block without numpy.

A batch of a few tests without hits, as a campaign of ten tests writes it, is stored as rows: a
*loose* block. Loading numpy would take longer than the whole campaign. Everything that counts reads
loose blocks like the others, and merging turns them into those.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from swarmtest.core.configuration import WEIGHTS
from swarmtest.store.records import TrialRecord, unpack_counts

FORMAT = 2
"""The first byte of the parts of loose blocks; those of other blocks have another one."""
MOST_TRIALS = 64
_BYTES = [
    place for place, name in enumerate(TrialRecord._fields)
    if name in ("configuration", "propensities", "used")
]  # fmt: skip


class BlockLayout(NamedTuple):
    """What a block needs to know about its campaign."""

    features: int
    seed: int
    """The campaign's seed; the seeds of tests follow from it and are not stored."""


class BlockTotals(NamedTuple):
    """The totals of a block."""

    first: int
    last: int
    trials: int
    passed: int
    failed: int
    invalid: int
    steps: int
    skipped: int
    cpu_ns: int
    wall_ns: int


class FaultTotal(NamedTuple):
    """How often a block has a fault, and where first."""

    fault: str
    trials: int
    first_trial: int


class PackedBlock(NamedTuple):
    """A block as plain data: integers, texts and bytes."""

    totals: BlockTotals
    faults: list[FaultTotal]
    features: bytes
    columns: bytes
    targets: bytes
    hits: bytes
    """Empty if there are no hits, as is `targets`."""


class DamagedBlockError(ValueError):
    """The bytes of a block are not what was written."""


def features_of(space: Mapping[str, Any]) -> int:
    """Return how many features a space has, given as plain data.

    >>> features_of({"dimensions": [{"kind": "feature", "name": "push"}, {"kind": "flag"}]})
    1
    """
    dimensions = space.get("dimensions", ())
    return sum(dimension.get("kind") == "feature" for dimension in dimensions)


def can_be_loose(trials: Sequence[TrialRecord]) -> bool:
    """Return whether trials are few enough, and have no hits."""
    return len(trials) <= MOST_TRIALS and all(trial.hits is None for trial in trials)


def pack_loose(trials: Sequence[TrialRecord], layout: BlockLayout) -> PackedBlock:
    """Return trials, in order, as a loose block.

    >>> trials = [TrialRecord(n, b"\\0\\1", used=b"\\1\\2", steps=2) for n in (3, 4)]
    >>> packed = pack_loose(trials, BlockLayout(features=1, seed=7))
    >>> packed.totals.steps, loose_records(packed.columns) == trials
    (4, True)
    """
    verdicts = [int(trial.verdict) for trial in trials]
    sums = [
        sum(getattr(trial, name) for trial in trials)
        for name in ("steps", "skipped", "cpu_ns", "wall_ns")
    ]
    counts = [verdicts.count(verdict) for verdict in range(3)]
    totals = BlockTotals(trials[0].trial, trials[-1].trial, len(trials), *counts, *sums)
    shown: dict[str, list[int]] = {}
    for trial in trials:
        if trial.fault is not None:
            shown.setdefault(trial.fault, []).append(trial.trial)
    faults = [FaultTotal(fault, len(numbers), numbers[0]) for fault, numbers in shown.items()]
    features = _sealed(_feature_sums(trials, layout.features))
    return PackedBlock(totals, faults, features, _sealed(list(map(_plain, trials))), b"", b"")


def _plain(trial: TrialRecord) -> list[Any]:
    values: list[Any] = list(trial)
    for place in _BYTES:
        values[place] = values[place].hex()
    return values


def is_loose(part: bytes) -> bool:
    """Return whether a part belongs to a loose block."""
    return part[:1] == bytes([FORMAT])


def loose_records(columns: bytes) -> list[TrialRecord]:
    """Return the trials of a loose block; raise `DamagedBlockError` if it is damaged."""
    trials = []
    for values in opened(columns):
        for place in _BYTES:
            values[place] = bytes.fromhex(values[place])
        trials.append(TrialRecord._make(values))
    return trials


def _feature_sums(trials: Sequence[TrialRecord], features: int) -> list[Any]:
    """Return the sums of `FeatureSummary`: enabled, offered, used, steps and known."""
    sums = [[0] * features for _ in range(4)]
    known = 0
    for trial in trials:
        included = _included(trial.configuration, features)
        has_counts = features > 0 and _has_counts(trial.used, features)
        counts = unpack_counts(trial.used) if has_counts else ()
        known += has_counts
        for i in range(features):
            sums[0][i] += included[i]
            if has_counts:
                sums[1][i] += included[i]
                sums[2][i] += counts[i] > 0
                sums[3][i] += counts[i]
    return [*sums, known]


def _has_counts(used: bytes, features: int) -> bool:
    """Return whether a trial has a count for each feature, as `pack_counts` packs them."""
    if used[:1] == b"\4":
        return len(used) == 1 + 4 * features and max(unpack_counts(used)) > 255
    return used[:1] == b"\1" and len(used) == 1 + features


def _included(packed: bytes, features: int) -> list[bool]:
    """Return which features a configuration includes; none if it cannot be taken apart."""
    weighted = bool(packed and packed[0] & WEIGHTS)
    size = 2 * features if weighted else (features + 7) // 8
    if not packed or packed[0] >= 8 or len(packed) < 1 + size or (weighted and not features):
        return [False] * features
    if weighted:
        return [step > 0 for step in struct.unpack_from(f"<{features}H", packed, 1)]
    bits = int.from_bytes(packed[1 : 1 + size], "little")
    if bits >> features:
        return [False] * features
    return [bool(bits >> i & 1) for i in range(features)]


def _sealed(data: Any) -> bytes:
    body = bytes([FORMAT]) + zlib.compress(json.dumps(data, separators=(",", ":")).encode())
    return body + struct.pack("<I", zlib.crc32(body))


def opened(part: bytes) -> Any:
    """Return the data of a part of a loose block."""
    if len(part) < 6 or struct.unpack("<I", part[-4:])[0] != zlib.crc32(part[:-4]):
        raise DamagedBlockError("its checksum is wrong")
    return json.loads(zlib.decompress(part[1:-4]))
