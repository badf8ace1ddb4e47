"""Copy campaigns from one store to another, of the same kind or not, without loss.

An incomplete copy has the status ``copying``; copying again continues where it ended. When all is
written, the copy is read back; only if it has the same hash as the original does it get the
original's status.

The hash of a campaign is the same in every store, whatever ids a store assigns. Targets are hashed
by their contents. The hash of a set of hits is the sum of its targets' hashes, so that its order
does not matter and numpy can add it up.
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
from swarmtest.store.records import CampaignRecord, FaultRecord, TrialRecord

COPYING = "copying"
"""The status of a campaign whose copy is not complete."""
_COPY_OF = "copy_of"
_BATCH = 4096
"""Trials that are written at once: a full block."""
_SECTIONS = ("campaign", "sources", "watched", "trials", "faults", "tests", "reductions", "workers")
_text = json.JSONEncoder(sort_keys=True).encode
_REMEMBERED = 4096
"""Sets of hits that are cached: most tests of a campaign reach the same as earlier ones."""

T = TypeVar("T")


# Hashing.


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
    for trial in store.trials(campaign):
        content.add_trial(trial)
    return content.hexdigest()


_HASHED = FaultRecord._fields.index("code")
"""How many fields of a fault are hashed: the code follows from the test, groups are no contents."""


class ContentHash:
    """The hash of a campaign's contents; its sections may be added in any order."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._targets = TargetSums(store)
        self._sections = {name: hashlib.sha256() for name in _SECTIONS}

    @property
    def unknown_targets(self) -> int:
        """How many ids among the hits are not targets of the store."""
        return self._targets.unknown

    def add_rest(self, campaign: int, record: CampaignRecord) -> None:
        """Add everything except the trials."""
        values = [record.subject, record.strategy, str(record.seed), record.status, record.created]
        values += [record.wall_seconds, record.cpu_seconds, record.space, record.options]
        self._add("campaign", values)
        self._sections["campaign"].update(self._targets.sum_of(record.outside))
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

    def add_trial(self, trial: TrialRecord) -> None:
        """Add the next trial, in the order of their numbers."""
        packed = (trial.configuration, trial.propensities, trial.used)
        small = trial._replace(configuration=b"", propensities=b"", used=b"", hits=None)
        numbers = [value for value in small if not isinstance(value, bytes)]
        self._add("trials", [*numbers, trial.hits is None, *map(len, packed)])
        self._sections["trials"].update(b"".join([*packed, self._targets.sum_of(trial.hits)]))

    def hexdigest(self) -> str:
        """Return the hash of everything that was added."""
        whole = hashlib.sha256()
        for name in _SECTIONS:
            whole.update(self._sections[name].digest())
        return whole.hexdigest()

    def _add(self, section: str, values: Any) -> None:
        self._sections[section].update(_text(values).encode() + b"\n")


class TargetSums:
    """The hashes of sets of targets, which are passed as a store's packed ids."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hashes: npt.NDArray[np.uint64] = np.zeros((1, 2), np.uint64)
        self._seen = BitMap()
        self._sums: dict[bytes | None, bytes] = {None: b""}
        self.unknown = 0

    def sum_of(self, hits: bytes | None) -> bytes:
        """Return the sixteen-byte hash of a set; empty bytes for None."""
        if hits not in self._sums:
            if len(self._sums) > _REMEMBERED:
                self._sums = {None: b""}
            self._sums[hits] = self._summed(BitMap.deserialize(hits) if hits else BitMap())
        return self._sums[hits]

    def _summed(self, ids: BitMap) -> bytes:
        self._learn(ids - self._seen)
        sums: npt.NDArray[np.uint64] = self._hashes[np.array(ids, np.int64)].sum(
            axis=0, dtype=np.uint64
        )
        return sums.tobytes()

    def _learn(self, ids: BitMap) -> None:
        if not ids:
            return
        self._seen |= ids
        if ids[-1] >= len(self._hashes):
            grown = np.zeros((max(ids[-1] + 1, 2 * len(self._hashes)), 2), np.uint64)
            grown[: len(self._hashes)] = self._hashes
            self._hashes = grown
        targets = self._store.targets(ids)
        self.unknown += len(ids) - len(targets)
        for id, target in targets.items():
            self._hashes[id] = _target_hash(target)


def _target_hash(target: Target) -> npt.NDArray[np.uint64]:
    digest = hashlib.sha256(json.dumps(target).encode()).digest()
    return np.frombuffer(digest[:16], "<u8")


# Copying.


@dataclass(frozen=True, slots=True)
class CampaignCopy:
    """The result of copying a campaign."""

    number: int
    """Its number in the destination."""
    trials: int
    hash: str
    """The hash of its contents, equal in both stores."""
    was_there: bool = False
    """Whether there was nothing to do because it had been copied before."""
    unknown_targets: int = 0
    """Hits that were left out because the source no longer has their targets."""


def copy_campaign(
    source: Store,
    destination: Store,
    campaign: int,
    progress: Callable[[int], None] = lambda trials: None,
) -> CampaignCopy:
    """Copy a campaign with everything that belongs to it, and check the copy.

    `progress` is called with the number of trials copied so far.

    >>> from swarmtest.store.records import CampaignRecord, TrialRecord
    >>> from swarmtest.store import open_store
    >>> with open_store(":memory:") as old, open_store(":memory:") as new:
    ...     number = old.add_campaign(CampaignRecord("stack.py", "coin", 7, {"dimensions": []}))
    ...     old.record(number, [TrialRecord(0, b""), TrialRecord(1, b"")])
    ...     copied = copy_campaign(old, new, number)
    ...     copied.trials, copy_campaign(old, new, number).was_there
    (2, True)
    """
    source, destination = source.recorded, destination.recorded
    record = source.campaign(campaign)
    earlier = _complete_copy(source, destination, campaign, record)
    if earlier is not None:
        _copy_history(source, destination, record, earlier.number)
        return earlier
    number = _unfinished_copy(destination, record) or destination.add_campaign(
        replace(record, status=COPYING, options=_marked(record), outside=None, id=0)
    )
    content = ContentHash(source)
    content.add_rest(campaign, record)
    ids = IdTranslation(source, destination)
    ids.translate(BitMap(source.watched_targets(campaign)))
    destination.add_sources(number, source.sources(campaign))
    trials = _copy_trials(source.trials(campaign), destination, number, content, ids, progress)
    _copy_rest(source, destination, campaign, number)
    outside = ids.packed(record.outside)
    destination.update_campaign(number, outside=outside)
    wanted = content.hexdigest()
    if campaign_hash(destination, number, replace(record, outside=outside)) != wanted:
        raise UserError(
            f"campaign {number} in {destination.url} differs from campaign {campaign} in "
            f"{source.url}: if that campaign is still running, copy it again when it has ended"
        )
    _copy_history(source, destination, record, number)
    destination.update_campaign(number, status=record.status, options=record.options)
    _copy_decisions(source, destination, campaign)
    return CampaignCopy(number, trials, wanted, unknown_targets=content.unknown_targets)


def _complete_copy(
    source: Store, destination: Store, campaign: int, record: CampaignRecord
) -> CampaignCopy | None:
    """Return the complete copy that was made before, if its contents are equal."""
    plain = replace(record, outside=None, id=0)
    candidates = destination.campaigns()
    same = [copy.id for copy in candidates if replace(copy, outside=None, id=0) == plain]
    if not same:
        return None
    wanted = campaign_hash(source, campaign)
    for number in same:
        if campaign_hash(destination, number) == wanted:
            return CampaignCopy(
                number, destination.summary(number)["trials"], wanted, was_there=True
            )
    return None


def _unfinished_copy(destination: Store, record: CampaignRecord) -> int | None:
    wanted = _marked(record)
    for campaign in destination.campaigns():
        if campaign.status == COPYING and campaign.options == wanted:
            return campaign.id
    return None


def _marked(record: CampaignRecord) -> dict[str, object]:
    """Return the options of the copy, with a hash that identifies the original."""
    defining = [record.subject, record.strategy, str(record.seed), record.created, record.space]
    text = json.dumps([*defining, record.options, record.status], sort_keys=True)
    return record.options | {_COPY_OF: hashlib.sha256(text.encode()).hexdigest()}


def _copy_trials(
    trials: Iterable[TrialRecord],
    destination: Store,
    number: int,
    content: ContentHash,
    ids: IdTranslation,
    progress: Callable[[int], None],
) -> int:
    """Copy the trials that are not in the copy yet; return how many trials there are in all."""
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


def _copy_decisions(source: Store, destination: Store, campaign: int) -> None:
    """Copy what was decided about the campaign's faults, unless the destination decided itself."""
    faults = {fault.id for fault in source.faults(campaign)}
    decided = {(each.fault, each.decided_by) for each in destination.fault_decisions()}
    new = [
        each
        for each in source.fault_decisions()
        if each.fault in faults and (each.fault, each.decided_by) not in decided
    ]
    if new:
        destination.decide_faults(new)


def _copy_history(source: Store, destination: Store, record: CampaignRecord, number: int) -> None:
    """Copy what happened to the faults of a subject, and check the copy.

    What other campaigns showed is copied with them. An event that was copied before is not copied
    again, so marks that were made since are added to an earlier copy.
    """
    events = [
        event._replace(campaign=number if event.campaign else 0)
        for event in source.fault_events(record.subject)
        if event.campaign in (0, record.id)
    ]
    if not events:
        return
    destination.add_fault_events(events)
    if not {*events} <= {*destination.fault_events(record.subject)}:
        raise UserError(f"the history of faults in {destination.url} differs from {source.url}")


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(items)
    while batch := list(islice(remaining, _BATCH)):
        yield batch


class IdTranslation:
    """A translation of the source's ids of targets to the destination's."""

    def __init__(self, source: Store, destination: Store) -> None:
        self._source, self._destination = source, destination
        self._new: npt.NDArray[np.int64] = np.full(1, -1, np.int64)
        self._seen = BitMap()
        self._packed: dict[bytes | None, bytes | None] = {None: None}

    def packed(self, hits: bytes | None) -> bytes | None:
        """Return packed hits with the ids of the destination."""
        if hits not in self._packed:
            if len(self._packed) > _REMEMBERED:
                self._packed = {None: None}
            ids = BitMap.deserialize(hits) if hits else BitMap()
            self._packed[hits] = pack_hits(self.translate(ids)) if hits else hits
        return self._packed[hits]

    def translate(self, ids: BitMap) -> list[int]:
        """Return the ids in the destination, without those that the source does not know."""
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
        targets: dict[int, Target] = self._source.targets(ids)
        self._new[list(targets)] = self._destination.target_ids(list(targets.values()))
