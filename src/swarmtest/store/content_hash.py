"""The hash of everything that a store keeps of a campaign.

It is the same in every store, whatever ids a store assigns to targets, and however it cuts trials
into blocks: each trial is a row of bytes of the same length, made from columns, and the rows are
hashed in order. A value of any length, such as an origin, is in the row as its own hash.

Targets are hashed by their contents. The hash of a set of hits is the sum of its targets' hashes,
so that their order does not matter and numpy can add them up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.core.targets import Target
from swarmtest.store.blocks import BlockHits, TrialBlock, unpacked
from swarmtest.store.blocks.columns import ODD_COUNTS, ODD_HITS
from swarmtest.store.blocks.hits import Ints, Words
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord

_SECTIONS = ("campaign", "sources", "watched", "trials", "faults", "tests", "reductions", "workers")
_NUMBERS = ("numbers", "seeds", "verdicts", "steps", "skipped", "cpu_ns", "wall_ns")
_STATES = ("kinds", "used_states", "hit_states")
_VALUES = {
    "tails": "tail_index",
    "propensity_rows": "propensity_index",
    "origins": "origin_index",
    "faults": "fault_index",
    "missing": "missing_index",
}
_HASHED = FaultRecord._fields.index("code")
"""How many fields of a fault are hashed: the code follows from the test, groups are no contents."""
_text = json.JSONEncoder(sort_keys=True).encode

Rows = npt.NDArray[np.uint8]


def campaign_hash(store: Store, campaign: int, record: CampaignRecord | None = None) -> str:
    """Return the hash of everything that a store keeps of a campaign.

    `record` replaces the stored record of the campaign.

    >>> from swarmtest.store.records import CampaignRecord, TrialRecord
    >>> from swarmtest.store import open_store
    >>> with open_store(":memory:") as store:
    ...     for _ in range(2):
    ...         record = CampaignRecord("stack.py", "coin", 7, {"dimensions": []}, created=1.0)
    ...         store.record(store.add_campaign(record), [TrialRecord(0, b"", steps=20)])
    ...     campaign_hash(store, 1) == campaign_hash(store, 2)
    True
    """
    store = store.recorded
    content = ContentHash(store)
    content.add_rest(campaign, record or store.campaign(campaign))
    for block in store.blocks(campaign):
        content.add_block(block)
    return content.hexdigest()


class ContentHash:
    """The hash of a campaign's contents; its sections may be added in any order."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._targets = TargetTable(store, _target_hashes, np.zeros(2, np.uint64))
        self._sections = {name: hashlib.sha256() for name in _SECTIONS}

    @property
    def unknown_targets(self) -> int:
        """How many ids among the hits are not targets of the store."""
        return self._targets.unknown

    def add_rest(self, campaign: int, record: CampaignRecord) -> None:
        """Add everything except the trials."""
        values = [record.subject, record.strategy, str(record.seed), record.status, record.created]
        values += [record.wall_seconds, record.cpu_seconds, record.space, record.options]
        self._add("campaign", [*values, record.outside is None])
        outside = BitMap.deserialize(record.outside) if record.outside else BitMap()
        hashes = self._targets.of(np.array(outside, np.int64))
        self._sections["campaign"].update(hashes.sum(axis=0, dtype=np.uint64).tobytes())
        for source in self._store.sources(campaign):
            self._add("sources", [source.path, source.text, source.place])
        for target in sorted(self._store.watched_targets(campaign).values()):
            self._add("watched", target)
        for fault in sorted(self._store.faults(campaign)):
            self._add("faults", fault[:_HASHED])
        for test in self._store.tests(campaign):
            self._add("tests", test)
        for reduction in self._store.reductions(campaign):
            self._add("reductions", reduction)
        for worker in self._store.workers(campaign):
            self._add("workers", worker)

    def add_block(self, block: TrialBlock) -> None:
        """Add the next trials, in the order of their numbers."""
        parts = [
            _bytes(np.stack([getattr(block, name).astype("<i8") for name in _NUMBERS], axis=1)),
            np.stack([getattr(block, name) for name in _STATES], axis=1),
            np.packbits(unpacked(block.enabled, block.size).T, axis=1, bitorder="little"),
            _bytes(np.ascontiguousarray(block.used.T).astype("<u4")),
            _bytes(_hit_sums(block.hits, self._targets.of(block.hits.targets)).astype("<u8")),
            _digests(map(bytes, block.weight_rows), block.weight_index),
            _digests_at(block.odd_used, block.used_states == ODD_COUNTS),
            _digests_at(block.odd_hits, block.hit_states == ODD_HITS),
        ]
        for values, index in _VALUES.items():
            parts.append(_digests(map(_encoded, getattr(block, values)), getattr(block, index)))
        self._sections["trials"].update(np.concatenate(parts, axis=1).tobytes())

    def hexdigest(self) -> str:
        """Return the hash of everything that was added."""
        whole = hashlib.sha256()
        for name in _SECTIONS:
            whole.update(self._sections[name].digest())
        return whole.hexdigest()

    def _add(self, section: str, values: Any) -> None:
        self._sections[section].update(_text(values).encode() + b"\n")


def _bytes(numbers: npt.NDArray[Any]) -> Rows:
    """Return rows of numbers as rows of bytes."""
    size = len(numbers)
    return np.frombuffer(numbers.tobytes(), np.uint8).reshape(size, -1 if numbers.size else 0)


def _encoded(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _digests(values: Iterable[bytes], index: npt.NDArray[Any]) -> Rows:
    """Return the hash of a value for each index; zeros for index -1."""
    table = [np.frombuffer(hashlib.sha256(value).digest()[:16], np.uint8) for value in values]
    rows: Rows = np.stack([*table, np.zeros(16, np.uint8)])[index]
    return rows


def _digests_at(values: tuple[bytes, ...], places: npt.NDArray[np.bool_]) -> Rows:
    """Return the hashes of values, in order, at these places; zeros elsewhere."""
    index = np.where(places, np.cumsum(places) - 1, -1)
    return _digests(values, index)


def _hit_sums(hits: BlockHits, hashes: Words) -> Words:
    """Return for each trial of a block the sum of the hashes of the targets that it hit."""
    sums = np.zeros((hits.size, 2), np.uint64)
    if not len(hits.targets):
        return sums
    starts, positions, others = hits.stored
    owners = np.repeat(np.arange(len(others)), np.diff(starts))
    for column in range(2):
        of_class = np.zeros(len(others), np.uint64)
        np.add.at(of_class, hits.classes, hashes[:, column])
        sums[:, column] = of_class[others].sum(dtype=np.uint64)
        # Where the positions are those of the other trials, these do not have the class.
        signed = np.where(others, np.uint64(0) - of_class, of_class)
        np.add.at(sums[:, column], positions, signed[owners])
    return sums


class TargetTable:
    """A row of numbers for each id of a store's targets, computed when it is first needed."""

    def __init__(
        self,
        store: Store,
        rows: Callable[[list[Target]], npt.ArrayLike],
        unknown: npt.NDArray[Any],
    ) -> None:
        """Create a table; `unknown` is the row of an id that is no target of the store."""
        self._store = store
        self._rows = rows
        self._unknown = unknown
        self._table = unknown[None, :]
        self._seen = BitMap()
        self.unknown = 0
        """How many ids were not targets of the store."""

    def of(self, ids: Ints) -> npt.NDArray[Any]:
        """Return the rows of ids."""
        new = BitMap(ids.astype(np.uint32)) - self._seen
        if new:
            self._learn(new)
        return self._table[ids]

    def _learn(self, ids: BitMap) -> None:
        self._seen |= ids
        if ids[-1] >= len(self._table):
            more = max(ids[-1] + 1, 2 * len(self._table)) - len(self._table)
            self._table = np.concatenate([self._table, np.tile(self._unknown, (more, 1))])
        targets = self._store.targets(ids)
        self.unknown += len(ids) - len(targets)
        if targets:
            self._table[list(targets)] = self._rows(list(targets.values()))


def _target_hashes(targets: list[Target]) -> Words:
    digests = [hashlib.sha256(json.dumps(target).encode()).digest()[:16] for target in targets]
    return np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2)
