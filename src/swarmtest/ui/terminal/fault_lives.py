"""The states and histories of faults as text: one line when a fault is seen, two lines about it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, NamedTuple

from swarmtest.core.formatting import plural, printable_line
from swarmtest.store.fault_lives import BACK, FIXED, KNOWN, PASSED, FaultLife
from swarmtest.store.records import FaultEvent, FaultRecord

_MOST_VERSIONS = 3
"""How many versions a line names; of more, the first and the last ones."""


class Announcement(NamedTuple):
    """The line that says that a campaign has seen a fault.

    >>> print(Announcement("new fault", "4ee18053", "", "IndexError"))
    new fault 4ee18053: IndexError
    """

    word: str
    fault: str
    more: str
    signature: str

    def __str__(self) -> str:
        return f"{self.word} {self.fault}{self.more}: {self.signature}"


def announce(fault: FaultRecord, before: Mapping[str, FaultLife] | None) -> Announcement:
    """Return the line about a fault; `before` are the lives of faults before the campaign.

    With None for `before`, it is not said whether the fault is new.
    """
    if before is None:
        return Announcement("fault", fault.id, "", fault.signature)
    life = before.get(fault.id)
    word, more = "known fault", ", still there"
    if life is None:
        word, more = "new fault", ""
    elif life.state == KNOWN:
        more = ", marked as known"
    elif life.state == FIXED:
        word, more = "fault", ", which was fixed, is seen again"
    return Announcement(word, fault.id, more, fault.signature)


def life_lines(life: FaultLife | None, before: Mapping[str, FaultLife] | None = None) -> list[str]:
    """Return lines about the state and the history of a fault.

    `before` are the lives of faults before a campaign that has just ended, if there was one.
    """
    if life is None or not life.sightings:
        return []
    if before is not None and life.fault not in before:
        version = life.sightings[-1].version  # without one, there is nothing to add
        return [printable_line(f"state: new in {version}")] if version else []
    still = ", still there" if before is not None and life.is_there else ""
    return [
        printable_line(f"state: {state_text(life, still)}"),
        printable_line(f"seen: {_sightings_text(life)}"),
    ]


def state_text(life: FaultLife, still: str = "") -> str:
    """Return the state of a fault, and what led to it; `still` follows the word for the state.

    >>> seen = FaultEvent("stack.py", "4ee18053", "seen", 5.0, "3f2a1bc40d17")
    >>> life = FaultLife("stack.py", "4ee18053").after(seen)
    >>> state_text(life.after(seen._replace(event="passed", version="90ab12cd34ef", note="3 runs")))
    'fixed in 90ab12cd34ef (3 runs)'
    """
    words = life.state + still
    fix = life.fix
    if fix is not None and life.state == FIXED:
        how = f" ({fix.note})" if fix.event == PASSED and fix.note else ""
        marked = "" if fix.event == PASSED else f", as marked on {date_text(fix.time)}"
        words += f"{_in_version(fix)}{how}{marked}"
    elif fix is not None and life.state == BACK:
        returned = next(event for event in life.sightings if event.time >= fix.time)
        words += f"{_in_version(returned)}; it was fixed{_in_version(fix)}"
    if life.flaky:
        words += ", flaky: its test also passed in a version that showed it"
    return f"{words}: {life.note}" if life.note else words


def _sightings_text(life: FaultLife) -> str:
    seen = life.sightings
    first, last = seen[0], seen[-1]
    words = f"first {_when(first)}"
    if len(seen) > 1:
        words += f", last {_when(last)}, {plural(len(seen), 'time')}"
    versions = life.versions
    if len(versions) > 2:
        shown = versions
        if len(versions) > _MOST_VERSIONS:
            shown = [versions[0], "...", *versions[1 - _MOST_VERSIONS :]]
        words += f"; in {len(versions)} versions: {'; '.join(shown)}"
    return words


def _when(event: FaultEvent) -> str:
    where = f" (campaign {event.campaign})" if event.campaign else ""
    return f"{date_text(event.time)}{_in_version(event)}{where}"


def _in_version(event: FaultEvent) -> str:
    return f" in {event.version}" if event.version else ""


def date_text(seconds: float) -> str:
    """Return a time for people, in the local time zone; ``?`` for one that no calendar has."""
    try:
        return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "?"


def life_data(life: FaultLife | None) -> dict[str, Any] | None:
    """Return the life of a fault as plain data, for JSON."""
    if life is None:
        return None
    return {
        "state": life.state,
        "flaky": life.flaky,
        "note": life.note,
        "first_seen": life.first_seen,
        "last_seen": life.last_seen,
        "versions": life.versions,
        "events": [event._asdict() for event in life.events],
    }
