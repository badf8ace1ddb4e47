"""Configurations tried: one page of them at a time, found by their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from swarmtest.report.fault_views import Code
from swarmtest.report.stored_code import StoredTests
from swarmtest.report.terminal import command_text, configuration_text, test_code
from swarmtest.result import Verdict
from swarmtest.space import Configuration, Space
from swarmtest.store import CampaignRecord, Store, TrialRecord, unpack_counts
from swarmtest.targets import unpack_hits

ROWS = 50
VERDICTS = {"passed": 0, "failed": 1, "invalid": 2}
_FAR = 2**62


@dataclass(frozen=True)
class TrialRow:
    """One line of the table."""

    record: TrialRecord
    verdict: str
    configuration: str
    hits: int | None
    """Targets that it reached; None if that is not known."""


@dataclass(frozen=True)
class TrialPage:
    """Some trials, the newest first, and where the others are."""

    rows: tuple[TrialRow, ...]
    verdict: str
    fault: str
    older: str
    """The query of the next page; empty if there is none."""
    newer: str
    newest: str
    features: int


def trial_page(store: Store, record: CampaignRecord, query: Mapping[str, str]) -> TrialPage:
    """The page that a query asks for: `before` or `after` a number, of a verdict or a fault."""
    verdict, fault = query.get("verdict", ""), query.get("fault", "")
    before, after = whole(query.get("before")), whole(query.get("after"))
    back = after is not None
    records = list(
        store.trials(
            record.id,
            before=before,
            after=-1 if after is None else after,
            verdict=VERDICTS.get(verdict),
            fault=fault or None,
            newest_first=not back,
            limit=ROWS + 1,
        )
    )
    more = len(records) > ROWS
    records = records[:ROWS]
    if back:
        records.reverse()
    space = space_of(record)
    kept = {"verdict": verdict if verdict in VERDICTS else "", "fault": fault}

    def place(**where: int) -> str:
        return "?" + urlencode({name: v for name, v in kept.items() if v} | where)

    older = bool(records) and (more or back)
    newer = bool(records) and (more if back else before is not None)
    return TrialPage(
        tuple(_row(space, one) for one in records),
        kept["verdict"],
        fault,
        place(before=records[-1].trial) if older else "",
        place(after=records[0].trial) if newer else "",
        place(),
        len(space.features) if space else 0,
    )


def space_of(record: CampaignRecord) -> Space | None:
    """The space of a campaign; None for coverage of other tools, which has none."""
    return Space.from_json(record.space) if record.space.get("dimensions") else None


def whole(text: str | None) -> int | None:
    """A number in an address; None if there is none, or something else."""
    return min(int(text), _FAR) if text and text.isdecimal() and len(text) < 20 else None


def _row(space: Space | None, record: TrialRecord) -> TrialRow:
    hits = len(unpack_hits(record.hits)) if record.hits else 0
    return TrialRow(
        record,
        Verdict(record.verdict).label,
        _configuration(space, record),
        hits if record.hits_are_known else None,
    )


def _configuration(space: Space | None, record: TrialRecord) -> str:
    if space is None:
        return record.origin
    return configuration_text(Configuration.from_bytes(space, record.configuration))


@dataclass(frozen=True)
class TrialView:
    """One test, whole."""

    row: TrialRow
    used: tuple[tuple[str, float, int], ...]
    """Each feature, its weight, and how often it appeared."""
    settings: tuple[tuple[str, str], ...]
    code: Code | None
    """If the test was kept."""
    replay: str


def trial_view(store: Store, record: CampaignRecord, number: int) -> TrialView:
    """What the store knows of one test."""
    trial = store.trial(record.id, number)
    space = space_of(record)
    used: tuple[tuple[str, float, int], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    if space is not None:
        configuration = Configuration.from_bytes(space, trial.configuration)
        counts = unpack_counts(trial.used)
        padded = [*counts, *[0] * (len(space.features) - len(counts))]
        weights = configuration.weights
        used = tuple(zip(space.feature_names, weights, padded, strict=False))
        settings = tuple((one.name, str(configuration[one.name])) for one in space.settings)
    test = store.test(record.id, number)
    code = None
    if test is not None:
        lines = test_code(test, StoredTests()).rstrip().splitlines()
        code = Code("\n".join(lines[:400]), max(len(lines) - 400, 0))
    replay = command_text(f"replay {record.id}#{number}", store.url)
    has_subject = bool(record.options.get("subject"))
    return TrialView(_row(space, trial), used, settings, code, replay if has_subject else "")
