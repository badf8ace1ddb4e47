"""The life of a fault: its state and history, over all campaigns of its subject.

A store keeps events (`FaultEvent`), and nothing else: the state of a fault follows from them.

- ``seen``: a campaign or a replay showed it. It is then *open*; or *back again*, if it was fixed.
- ``older``: it was seen, but in an older version than the one that fixed it. It stays fixed.
- ``passed``: its test ran, and passed each time. It is then *fixed*, unless it is flaky.
- ``known``, ``open`` and ``fixed``: a person marked it.

A fault is *flaky* if its test passed in a version that also showed the fault: nothing was changed,
so that is no fix. Only a person can call it fixed. Two versions are the same if they have the same
commit and packages, and nothing in the repository was changed since the commit.

Recorded faults that are shown as one (`swarmtest.store.fault_groups`) have one life, with the
events of all of them.

A campaign that has a fault for which there is no event of that campaign counts as an event: it is
of an older swarmtest, or was killed between two writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from swarmtest.store.fault_groups import groups_of
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultEvent

SEEN, OLDER, PASSED = "seen", "older", "passed"
OPEN, FIXED, BACK, KNOWN = "open", "fixed", "back again", "known"
MARKS = (KNOWN, OPEN, FIXED)
"""What a person can mark a fault as."""
EVENTS = (SEEN, OLDER, PASSED, *MARKS)
CHANGED = "+changes"
"""What follows the commit in a version if files were changed since."""


@dataclass(frozen=True)
class FaultLife:
    """The state of a fault, and how it came about.

    >>> seen = FaultEvent("stack.py", "4ee18053", "seen", 5)
    >>> life = FaultLife("stack.py", "4ee18053").after(seen)
    >>> life.state, life.first_seen
    ('open', 5)
    """

    subject: str
    fault: str
    state: str = ""
    """``open``, ``fixed``, ``back again`` or ``known``; empty if it was never seen."""
    events: tuple[FaultEvent, ...] = ()
    flaky: bool = False
    """Whether its test passed in a version that also showed it."""

    @property
    def sightings(self) -> list[FaultEvent]:
        """When it was seen."""
        return [event for event in self.events if event.event in (SEEN, OLDER)]

    @property
    def first_seen(self) -> float:
        """When it was first seen, in seconds since 1970; 0 if never."""
        return min((event.time for event in self.sightings), default=0.0)

    @property
    def last_seen(self) -> float:
        """When it was last seen, in seconds since 1970; 0 if never."""
        return max((event.time for event in self.sightings), default=0.0)

    @property
    def versions(self) -> list[str]:
        """The versions in which it was seen, as far as they are known, in the order of time."""
        versions = [event.version for event in self.sightings if event.version]
        return list(dict.fromkeys(versions))

    @property
    def fix(self) -> FaultEvent | None:
        """The latest event that fixed it, even if it came back."""
        fixes = [event for event in self.events if event.event in (PASSED, FIXED)]
        return fixes[-1] if fixes and (self.state in (FIXED, BACK)) else None

    @property
    def note(self) -> str:
        """What the person wrote who marked it last."""
        marks = [event.note for event in self.events if event.event in MARKS]
        return marks[-1] if marks else ""

    @property
    def is_there(self) -> bool:
        """Whether it is in the program, as far as is known."""
        return self.state in (OPEN, BACK, KNOWN)

    def after(self, event: FaultEvent) -> FaultLife:
        """Return the life after one more event."""
        state, flaky = self.state, self.flaky
        if event.event in MARKS:
            state = event.event
        elif event.event == SEEN:
            state, flaky = self._after_sighting(event)
        elif event.event == PASSED:
            flaky = flaky or (is_exact(event.version) and event.version in self.versions)
            state = state if flaky else FIXED
        elif not state:  # seen in an older version than a fix that is not in the store
            state = OPEN
        return replace(self, state=state, flaky=flaky, events=(*self.events, event))

    def _after_sighting(self, event: FaultEvent) -> tuple[str, bool]:
        if self.state != FIXED:
            return self.state or OPEN, self.flaky
        fix = self.fix
        if fix is not None and is_exact(event.version):
            if fix.event == PASSED and fix.version == event.version:
                return OPEN, True
            if event.version in self.versions:
                return FIXED, self.flaky  # a version from before the fix was tested once more
        return BACK, self.flaky


def is_exact(version: str) -> bool:
    """Return whether a version says exactly what was tested.

    >>> is_exact("3f2a1bc40d17"), is_exact("3f2a1bc40d17+changes"), is_exact("")
    (True, False, False)
    """
    return bool(version) and CHANGED not in version


def lives_of(events: Iterable[FaultEvent]) -> dict[tuple[str, str], FaultLife]:
    """Return the lives of faults by subject and fault; `events` are in the order of time."""
    lives: dict[tuple[str, str], FaultLife] = {}
    for event in events:
        key = event.subject, event.fault
        lives[key] = lives.get(key, FaultLife(*key)).after(event)
    return lives


def fault_lives(store: Store, subject: str) -> dict[str, FaultLife]:
    """Return the lives of a subject's faults, by fault, in the order in which they were first seen.

    >>> from swarmtest import open_store, swarm
    >>> with open_store(":memory:") as store:
    ...     for trial in swarm(["push", "pop"], seed=1, tests=20, store=store, name="stack"):
    ...         trial.record(failed="pop" not in trial and "overflow")
    ...     [life.state for life in fault_lives(store, "stack").values()]
    ['open']
    """
    lives = lives_of(events_of(store, subject))
    return {fault: life for (_, fault), life in lives.items()}


def events_of(store: Store, subject: str | None = None) -> list[FaultEvent]:
    """Return what happened to the faults of a subject, or of all, also in campaigns without events.

    The events are in the order of time.
    """
    events = store.fault_events(subject)
    recorded = [*events, *unrecorded_events(store, subject, events)]
    groups = groups_of(store.fault_decisions())
    return sorted(in_groups(recorded, groups), key=lambda event: event.time)


def in_groups(events: Iterable[FaultEvent], groups: Mapping[str, str]) -> list[FaultEvent]:
    """Return events with the faults as which those of the events are shown."""
    return [event._replace(fault=groups.get(event.fault, event.fault)) for event in events]


def lives_by_recorded_fault(store: Store, subject: str) -> dict[str, FaultLife]:
    """Return the lives of a subject's faults, also by the ids of faults that are shown as others.

    A running campaign knows faults only as they are recorded.
    """
    lives = fault_lives(store, subject)
    groups = groups_of(store.fault_decisions())
    return lives | {old: lives[shown] for old, shown in groups.items() if shown in lives}


def unrecorded_events(
    store: Store, subject: str | None, events: Sequence[FaultEvent]
) -> list[FaultEvent]:
    """Return an event for each fault of a campaign that has none of that campaign."""
    recorded = {(event.campaign, event.fault) for event in events}
    unrecorded = [pair for pair in store.fault_ids() if pair not in recorded]
    if not unrecorded:
        return []
    campaigns = {record.id: record for record in store.campaigns()}
    return [
        FaultEvent(record.subject, fault, SEEN, record.created, version_in(record), number)
        for number, fault in unrecorded
        if (record := campaigns.get(number)) is not None
        and (subject is None or record.subject == subject)
    ]


def version_in(record: CampaignRecord) -> str:
    """Return the version that a campaign tested; empty if that is not known."""
    return str(record.options.get("version") or "")


def keep_history(store: Store, campaign: int) -> None:
    """Store events for the faults of a campaign that has none; for one that is to be deleted."""
    if store.keeps_fault_events:
        subject = store.campaign(campaign).subject
        unrecorded = unrecorded_events(store, subject, store.fault_events(subject))
        store.add_fault_events([event for event in unrecorded if event.campaign == campaign])
