"""Copy campaigns from one store to another, of the same kind or not, without loss.

An incomplete copy has the status ``copying``; copying again continues where it ended. When all is
written, the copy is read back; only if it has the same hash as the original does it get the
original's status (`content_hash`).

Blocks of trials are copied as they are, except for the ids of targets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Target, pack_hits
from swarmtest.store.blocks import TrialBlock
from swarmtest.store.blocks.codec import renumber_targets, unpack_hit_summary, unpack_whole
from swarmtest.store.content_hash import ContentHash, TargetTable, campaign_hash
from swarmtest.store.interface import Store
from swarmtest.store.loose_blocks import BlockLayout, PackedBlock, features_of
from swarmtest.store.records import CampaignRecord, TrialRecord

COPYING = "copying"
"""The status of a campaign whose copy is not complete."""
_COPY_OF = "copy_of"
_BATCH = 4096
"""Tests that are written at once."""

T = TypeVar("T")


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
    ids.translate([*source.watched_targets(campaign)])
    destination.add_sources(number, source.sources(campaign))
    layout = BlockLayout(features_of(record.space), record.seed)
    copy = _TrialCopy(source, destination, content, ids, layout)
    trials = copy.run(campaign, number, progress)
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


@dataclass(frozen=True)
class _TrialCopy:
    """Copies trials, block by block."""

    source: Store
    destination: Store
    content: ContentHash
    ids: IdTranslation
    layout: BlockLayout

    def run(self, campaign: int, number: int, progress: Callable[[int], None]) -> int:
        """Copy the trials that are not in the copy yet; return how many trials there are in all."""
        ranges = self.destination.block_ranges(number)
        copied_before = ranges[-1][1] if ranges else -1
        count = 0
        for packed in self.source.packed_blocks(campaign):
            block = unpack_whole(packed, self.layout)
            self.content.add_block(block)
            count += block.size
            if block.last > copied_before:
                self._write(number, packed, block)
            progress(count)
        return count

    def _write(self, number: int, packed: PackedBlock, block: TrialBlock) -> None:
        targets = self._new_targets(packed.targets)
        if targets is None:
            self.destination.record(number, [*self._without_unknown(block)])
        else:
            self.destination.record_blocks(number, [packed._replace(targets=targets)])

    def _new_targets(self, targets: bytes) -> bytes | None:
        """Return the targets of a block as the destination has them; None if some are unknown."""
        if not targets:
            return b""
        new = self.ids.translate(unpack_hit_summary(targets).targets)
        return None if (new < 0).any() else renumber_targets(targets, new)

    def _without_unknown(self, block: TrialBlock) -> Iterator[TrialRecord]:
        """Yield the trials of a block without hits of targets that the source no longer has."""
        for trial in block.records():
            yield trial._replace(hits=self.ids.packed(trial.hits))


class IdTranslation:
    """A translation of the source's ids of targets to the destination's."""

    def __init__(self, source: Store, destination: Store) -> None:
        def new_ids(targets: list[Target]) -> npt.NDArray[np.int64]:
            return np.array(destination.target_ids(targets), np.int64)[:, None]

        self._ids = TargetTable(source, new_ids, np.full(1, -1, np.int64))

    def translate(self, ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the ids in the destination; -1 for those that the source does not know."""
        new: npt.NDArray[np.int64] = self._ids.of(np.asarray(ids, np.int64))[:, 0]
        return new

    def packed(self, hits: bytes | None) -> bytes | None:
        """Return packed hits with the ids of the destination, without unknown ones."""
        if not hits:
            return hits
        new = self.translate(np.array(BitMap.deserialize(hits)))
        return pack_hits(new[new >= 0].tolist())


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
