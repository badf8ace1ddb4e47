"""What a campaign holds as one hash: the same in every store, whatever ids a store gives.

Targets are hashed by what they are. A set of hits is the sum of its targets' hashes, so that its
order does not matter and numpy can add it up.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.store.records import CampaignRecord, TrialRecord
from swarmtest.store.store import Store
from swarmtest.targets import Target

_SECTIONS = ("campaign", "sources", "watched", "trials", "faults", "tests", "reductions", "workers")
_text = json.JSONEncoder(sort_keys=True).encode
_REMEMBERED = 4096
"""Sets of hits whose sums are kept: most tests of a campaign reach what others reached."""


def campaign_hash(store: Store, campaign: int, record: CampaignRecord | None = None) -> str:
    """The hash of all that a store keeps of a campaign; `record` stands in for its own.

    >>> from swarmtest.store import CampaignRecord, TrialRecord, open_store
    >>> with open_store(":memory:") as store:
    ...     for _ in range(2):
    ...         record = CampaignRecord("stack.py", "coin", 7, {"dimensions": []}, created=1.0)
    ...         store.record(store.add_campaign(record), [TrialRecord(0, b"", steps=20)])
    ...     campaign_hash(store, 1) == campaign_hash(store, 2)
    True
    """
    content = ContentHash(store)
    content.add_rest(campaign, record or store.campaign(campaign))
    for trial in store.trials(campaign):
        content.add_trial(trial)
    return content.hexdigest()


class ContentHash:
    """Grows with what is read of a campaign; sections may come in any order."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._targets = TargetSums(store)
        self._sections = {name: hashlib.sha256() for name in _SECTIONS}

    @property
    def unknown_targets(self) -> int:
        """Ids among the hits that the store cannot tell anything about."""
        return self._targets.unknown

    def add_rest(self, campaign: int, record: CampaignRecord) -> None:
        """Everything but the trials."""
        told = [record.subject, record.strategy, str(record.seed), record.status, record.created]
        told += [record.wall_seconds, record.cpu_seconds, record.space, record.options]
        self._add("campaign", told)
        self._sections["campaign"].update(self._targets.sum_of(record.outside))
        for source in self._store.sources(campaign):
            self._add("sources", [source.path, source.text, source.place])
        for target in sorted(self._store.watched_targets(campaign).values()):
            self._add("watched", target)
        for fault in sorted(self._store.faults(campaign)):
            self._add("faults", fault[:-1])
        for test in self._store.tests(campaign):
            self._add("tests", test)
        for reduction in self._store.reductions(campaign):
            self._add("reductions", reduction)
        for worker in self._store.workers(campaign):
            self._add("workers", worker)

    def add_trial(self, trial: TrialRecord) -> None:
        """The next trial, in order of their numbers."""
        packed = (trial.configuration, trial.propensities, trial.used)
        small = trial._replace(configuration=b"", propensities=b"", used=b"", hits=None)
        numbers = [value for value in small if not isinstance(value, bytes)]
        self._add("trials", [*numbers, trial.hits is None, *map(len, packed)])
        self._sections["trials"].update(b"".join([*packed, self._targets.sum_of(trial.hits)]))

    def hexdigest(self) -> str:
        """The hash of all that was added."""
        whole = hashlib.sha256()
        for name in _SECTIONS:
            whole.update(self._sections[name].digest())
        return whole.hexdigest()

    def _add(self, section: str, values: Any) -> None:
        self._sections[section].update(_text(values).encode() + b"\n")


class TargetSums:
    """Hashes of sets of targets, given as a store's packed ids."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hashes: npt.NDArray[np.uint64] = np.zeros((1, 2), np.uint64)
        self._seen = BitMap()
        self._sums: dict[bytes | None, bytes] = {None: b""}
        self.unknown = 0

    def sum_of(self, hits: bytes | None) -> bytes:
        """Sixteen bytes for the set; none for no set."""
        if hits not in self._sums:
            if len(self._sums) > _REMEMBERED:
                self._sums = {None: b""}
            self._sums[hits] = self._summed(BitMap.deserialize(hits) if hits else BitMap())
        return self._sums[hits]

    def _summed(self, ids: BitMap) -> bytes:
        self._learn(ids - self._seen)
        sums: npt.NDArray[np.uint64] = self._hashes[np.array(ids, np.int64)].sum(axis=0)
        return sums.tobytes()

    def _learn(self, ids: BitMap) -> None:
        if not ids:
            return
        self._seen |= ids
        if ids[-1] >= len(self._hashes):
            grown = np.zeros((max(ids[-1] + 1, 2 * len(self._hashes)), 2), np.uint64)
            grown[: len(self._hashes)] = self._hashes
            self._hashes = grown
        found = self._store.targets(ids)
        self.unknown += len(ids) - len(found)
        for id, target in found.items():
            self._hashes[id] = _target_hash(target)


def _target_hash(target: Target) -> npt.NDArray[np.uint64]:
    digest = hashlib.sha256(json.dumps(target).encode()).digest()
    return np.frombuffer(digest[:16], "<u8")
