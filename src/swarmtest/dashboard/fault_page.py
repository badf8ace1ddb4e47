"""Faults as pages show them: with their tests as code, from what the store has, and no more."""

from __future__ import annotations

from dataclasses import dataclass

from swarmtest.errors import UserError
from swarmtest.report.fault_views import Code, KnownFault, known_faults
from swarmtest.report.reduced import as_shown, reduction_line, replay_words
from swarmtest.report.stored_code import StoredTests
from swarmtest.report.terminal import command_text, fault_configurations, test_code
from swarmtest.report.timeline import RaceView, race_view
from swarmtest.store import FaultRecord, Store

_CODE_LINES = 400


@dataclass(frozen=True)
class FaultPage:
    """One fault."""

    known: KnownFault
    record: FaultRecord
    """With the test and the output that are shown: the smallest."""
    code: Code
    original: Code | None
    """The test as it was found, if `code` is what is left of it."""
    reduced: str
    configuration: str
    part: str
    race: RaceView | None
    replay: str


def fault_page(store: Store, campaign: int, id: str) -> FaultPage:
    """A fault of a campaign; a `UserError` if it has none of this name."""
    known = next((one for one in known_faults(store, [campaign]) if one.record.id == id), None)
    if known is None:
        raise UserError(f"campaign {campaign} has no fault {id}")
    return _page(store, campaign, known)


def race_pages(store: Store, campaign: int) -> list[FaultPage]:
    """The faults of which the store knows what the threads did."""
    pages = [_page(store, campaign, known) for known in known_faults(store, [campaign])]
    return [page for page in pages if page.race is not None]


def _page(store: Store, campaign: int, known: KnownFault) -> FaultPage:
    record = as_shown(known.record, known.reduction)
    options = store.campaign(campaign).options
    part = str(options.get("part", "step"))
    code, original = _code(record), _code(known.record)
    replay = command_text(replay_words(campaign, known.record, known.reduction), store.url)
    return FaultPage(
        known,
        record,
        code,
        original if original != code else None,
        reduction_line(known.record, known.reduction, known.reduced_in, part),
        fault_configurations(store, campaign, [known.record])[known.record.id],
        part,
        _race(record.test),
        replay if options.get("subject") else "",
    )


def _race(test: str | None) -> RaceView | None:
    try:
        return race_view(test)
    except (UserError, ValueError):
        return None


def _code(record: FaultRecord) -> Code:
    try:
        lines = test_code(record.test, StoredTests()).rstrip().splitlines()
    except ValueError:  # not even JSON
        lines = str(record.test).splitlines()
    return Code("\n".join(lines[:_CODE_LINES]), max(len(lines) - _CODE_LINES, 0))
