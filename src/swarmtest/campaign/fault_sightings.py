"""Note in the history of faults which of them a campaign or a replay has seen."""

from __future__ import annotations

import time

from swarmtest.campaign.subject_version import directory_of, is_older
from swarmtest.store.fault_groups import groups_of
from swarmtest.store.fault_lives import (
    FIXED,
    OLDER,
    SEEN,
    FaultLife,
    in_groups,
    lives_of,
    version_in,
)
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultEvent


class FaultSightings:
    """The faults that a running campaign has seen; each is noted once while it runs."""

    def __init__(self, store: Store, campaign: int) -> None:
        self._store = store
        self._campaign = campaign
        self._noted: set[str] = set()
        self._waiting: dict[str, float] = {}

    def note(self, fault: str) -> None:
        """Note that a test has shown a fault."""
        if fault not in self._noted:
            self._noted.add(fault)
            self._waiting[fault] = time.time()

    def flush(self) -> None:
        """Write what is waiting to the store."""
        if not self._waiting or not self._store.keeps_fault_events:
            return
        record = self._store.campaign(self._campaign)
        version = version_in(record)
        # What is fixed has events, so campaigns without events need not be read.
        groups = groups_of(self._store.fault_decisions())
        lives = lives_of(in_groups(self._store.fault_events(record.subject), groups))
        events = []
        for fault, when in self._waiting.items():
            life = lives.get((record.subject, groups.get(fault, fault)))
            event = sighting(life, record.subject, fault, version, when)
            events.append(event._replace(campaign=self._campaign))
        self._store.add_fault_events(events)
        self._waiting = {}


def sighting(
    life: FaultLife | None, subject: str, fault: str, version: str, when: float
) -> FaultEvent:
    """Return the event of seeing a fault; `life` is its life before that, if it has one."""
    kind = SEEN
    if life is not None and life.state == FIXED and life.fix is not None:
        kind = OLDER if is_older(version, life.fix.version, directory_of(subject)) else SEEN
    return FaultEvent(subject, fault, kind, when, version)
