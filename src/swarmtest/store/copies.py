"""Copying campaigns from one store to another, of the same kind or not, without loss.

A copy that is not whole has the status ``copying``; it is made whole by copying again, which goes
on where it ended. Only when what was written has been read back and has the hash of what was read
does the copy get the status of its original.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Target, pack_hits
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, TrialRecord

# -------------------------------------------------------------------------------------------------
# What a campaign holds as one hash: the same in every store, whatever ids a store gives.
#
# Targets are hashed by what they are. A set of hits is the sum of its targets' hashes, so that its
# order does not matter and numpy can add it up.

_SECTIONS = ("campaign", "sources", "watched", "trials", "faults", "tests", "reductions", "workers")
_text = json.JSONEncoder(sort_keys=True).encode
_REMEMBERED = 4096
"""Sets of hits whose sums are kept: most tests of a campaign reach what others reached."""


def campaign_hash(store: Store, campaign: int, record: CampaignRecord | None = None) -> str:
    """The hash of all that a store keeps of a campaign; `record` stands in for its own.

    >>> from swarmtest.store.records import CampaignRecord, TrialRecord
    >>> from swarmtest.store import open_store
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


# -------------------------------------------------------------------------------------------------

COPYING = "copying"
"""The status of a campaign whose copy is not whole."""
_COPY_OF = "copy_of"
_BATCH = 1000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Copied:
    """How a campaign was copied."""

    number: int
    """Its number in the store that it was copied to."""
    trials: int
    hash: str
    """Of its contents, equal in both stores."""
    was_there: bool = False
    """Whether there was nothing to do, because it had been copied before."""
    unknown_targets: int = 0
    """Hits that were left out because the store no longer knows what they were."""


def copy_campaign(
    source: Store,
    destination: Store,
    campaign: int,
    progress: Callable[[int], None] = lambda trials: None,
) -> Copied:
    """Copy a campaign with all that belongs to it, and check it; `progress` hears trials copied.

    >>> from swarmtest.store.records import CampaignRecord, TrialRecord
    >>> from swarmtest.store import open_store
    >>> with open_store(":memory:") as old, open_store(":memory:") as new:
    ...     number = old.add_campaign(CampaignRecord("stack.py", "coin", 7, {"dimensions": []}))
    ...     old.record(number, [TrialRecord(0, b""), TrialRecord(1, b"")])
    ...     copied = copy_campaign(old, new, number)
    ...     copied.trials, copy_campaign(old, new, number).was_there
    (2, True)
    """
    record = source.campaign(campaign)
    there = _whole_copy(source, destination, campaign, record)
    if there is not None:
        return there
    number = _unfinished_copy(destination, record) or destination.add_campaign(
        replace(record, status=COPYING, options=_marked(record), outside=None, id=0)
    )
    content = ContentHash(source)
    content.add_rest(campaign, record)
    ids = _Ids(source, destination)
    ids.translate(BitMap(source.watched_targets(campaign)))
    destination.add_sources(number, source.sources(campaign))
    trials = _copy_trials(source.trials(campaign), destination, number, content, ids, progress)
    _copy_rest(source, destination, campaign, number)
    outside = ids.packed(record.outside)
    destination.update_campaign(number, outside=outside)
    wanted = content.hexdigest()
    if campaign_hash(destination, number, replace(record, outside=outside)) != wanted:
        raise UserError(
            f"campaign {number} in {destination.url} is not what campaign {campaign} in "
            f"{source.url} was when it was read: if that one is still running, copy it again "
            "when it has ended"
        )
    destination.update_campaign(number, status=record.status, options=record.options)
    return Copied(number, trials, wanted, unknown_targets=content.unknown_targets)


def _whole_copy(
    source: Store, destination: Store, campaign: int, record: CampaignRecord
) -> Copied | None:
    """The copy that was made before, if there is one and it is equal."""
    plain = replace(record, outside=None, id=0)
    candidates = destination.campaigns()
    same = [one.id for one in candidates if replace(one, outside=None, id=0) == plain]
    if not same:
        return None
    wanted = campaign_hash(source, campaign)
    for number in same:
        if campaign_hash(destination, number) == wanted:
            return Copied(number, destination.summary(number)["trials"], wanted, was_there=True)
    return None


def _unfinished_copy(destination: Store, record: CampaignRecord) -> int | None:
    wanted = _marked(record)
    for one in destination.campaigns():
        if one.status == COPYING and one.options == wanted:
            return one.id
    return None


def _marked(record: CampaignRecord) -> dict[str, object]:
    """Its options, with a note of what it is to be a copy of."""
    defining = [record.subject, record.strategy, str(record.seed), record.created, record.space]
    text = json.dumps([*defining, record.options, record.status], sort_keys=True)
    return record.options | {_COPY_OF: hashlib.sha256(text.encode()).hexdigest()}


def _copy_trials(
    trials: Iterable[TrialRecord],
    destination: Store,
    number: int,
    content: ContentHash,
    ids: _Ids,
    progress: Callable[[int], None],
) -> int:
    """All trials that are not there yet; answers how many there are."""
    newest = next(iter(destination.trials(number, newest_first=True, limit=1)), None)
    copied_before = -1 if newest is None else newest.trial
    count = 0
    for batch in _batches(trials):
        for trial in batch:
            content.add_trial(trial)
        new = [t._replace(hits=ids.packed(t.hits)) for t in batch if t.trial > copied_before]
        if new:
            destination.record(number, new)
        count += len(batch)
        progress(count)
    return count


def _copy_rest(source: Store, destination: Store, campaign: int, number: int) -> None:
    destination.record(number, (), source.faults(campaign))
    for tests in _batches(source.tests(campaign)):
        destination.record(number, (), (), tests)
    for reduction in source.reductions(campaign):
        destination.add_reduction(number, reduction)
    for worker in source.workers(campaign):
        destination.note_worker(number, worker)


def _batches(things: Iterable[T]) -> Iterator[list[T]]:
    left = iter(things)
    while batch := list(islice(left, _BATCH)):
        yield batch


class _Ids:
    """From a store's ids of targets to another's."""

    def __init__(self, source: Store, destination: Store) -> None:
        self._source, self._destination = source, destination
        self._new: npt.NDArray[np.int64] = np.full(1, -1, np.int64)
        self._seen = BitMap()
        self._packed: dict[bytes | None, bytes | None] = {None: None}

    def packed(self, hits: bytes | None) -> bytes | None:
        """Packed hits in the ids of the other store."""
        if hits not in self._packed:
            if len(self._packed) > _REMEMBERED:
                self._packed = {None: None}
            ids = BitMap.deserialize(hits) if hits else BitMap()
            self._packed[hits] = pack_hits(self.translate(ids)) if hits else hits
        return self._packed[hits]

    def translate(self, ids: BitMap) -> list[int]:
        """The ids in the other store; those that mean nothing in the first are left out."""
        self._learn(ids - self._seen)
        new = self._new[np.array(ids, np.int64)]
        return [int(id) for id in new[new >= 0]]

    def _learn(self, ids: BitMap) -> None:
        if not ids:
            return
        self._seen |= ids
        if ids[-1] >= len(self._new):
            grown = np.full(max(ids[-1] + 1, 2 * len(self._new)), -1, np.int64)
            grown[: len(self._new)] = self._new
            self._new = grown
        found: dict[int, Target] = self._source.targets(ids)
        given = self._destination.target_ids(list(found.values()))
        self._new[list(found)] = given
