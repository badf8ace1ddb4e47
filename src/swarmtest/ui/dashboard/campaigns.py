"""Campaigns, faults and trials as the pages of the dashboard show them.

Everything here is cheap to read from a store; what takes longer is in `queries`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup

from swarmtest.campaign.budget import Budget
from swarmtest.campaign.liveness import GONE, status_in
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.core.result import Verdict
from swarmtest.core.space import Space
from swarmtest.core.targets import unpack_hits
from swarmtest.race.views import RaceView, race_view
from swarmtest.store.interface import Store
from swarmtest.store.records import (
    CampaignRecord,
    FaultRecord,
    ProgressPoint,
    TrialRecord,
    WorkerRecord,
    unpack_counts,
)
from swarmtest.subjects.stored_tests import StoredTests
from swarmtest.ui.dashboard.store_watch import CampaignFacts, StoreWatch, facts_of
from swarmtest.ui.report.faults import ReportedFault, TestCode, known_faults
from swarmtest.ui.report.figures import DiscoveryPlot, PlottedCurve
from swarmtest.ui.svg import Scale, element, line, picture, text
from swarmtest.ui.terminal.reduced_tests import as_shown, reduction_line, replay_words
from swarmtest.ui.terminal.shown_code import folded_lines
from swarmtest.ui.terminal.tables import (
    command_text,
    configuration_text,
    fault_configurations,
    test_code,
)

# Sparklines: small curves of a current rate or load.

_WIDTH, _HEIGHT = 300.0, 64.0
_TOP, _BOTTOM, _RIGHT = 6.0, 14.0, 56.0


def sparkline(
    points: Sequence[tuple[float, float]], label: str, shown: str, high: float = 0.0
) -> Markup:
    """Draw a curve over time with its last value beside it.

    `high` is the top of the vertical axis; 0 means the largest value.
    """
    if len(points) < 2:
        return Markup("")
    top = high or max(value for _, value in points) or 1.0
    across = Scale(points[0][0], points[-1][0], 2, _WIDTH - _RIGHT)
    up = Scale(0, top * 1.02, _HEIGHT - _BOTTOM, _TOP)
    path = "M" + "L".join(f"{across.at(at):.1f},{up.at(value):.1f}" for at, value in points)
    floor = up.at(0)
    area = f"{path}L{across.end:.1f},{floor:.1f}L{across.start:.1f},{floor:.1f}z"
    seconds = points[-1][0] - points[0][0]
    parts = [
        element("path", d=area, cls="area"),
        line(2, floor, _WIDTH - _RIGHT, floor, "axis"),
        element("path", d=path, cls="curve s0"),
        element("circle", cx=across.end, cy=up.at(points[-1][1]), r=2.5, cls="now"),
        text(_WIDTH - _RIGHT + 8, up.at(points[-1][1]) + 4, shown, "now-text"),
        text(2, _HEIGHT - 2, f"{seconds:.0f} s ago", "tick"),
        text(_WIDTH - _RIGHT, _HEIGHT - 2, "now", "tick", "end"),
    ]
    return Markup(picture(_WIDTH, _HEIGHT, f"{label}: {shown}", *parts))


# Campaigns and their workers.

_CAMPAIGNS_PER_PAGE = 100
_SILENT_AFTER = 30.0
"""Seconds without a sign of life after which a worker or a campaign is called silent."""


@dataclass(frozen=True)
class CampaignView:
    """A campaign, with what is cheap to know about it."""

    record: CampaignRecord
    facts: CampaignFacts
    rate: float | None
    """Current tests per second; None if the campaign does not run or its rate is not known yet."""
    silent: float
    """Seconds since a running campaign last showed progress; 0 if that is not long ago."""
    status: str
    """`swarmtest.campaign.liveness.shown_status`."""

    @property
    def is_running(self) -> bool:
        """Whether the campaign is running, as far as is known."""
        return self.record.status == "running" and self.status != GONE

    @property
    def seconds(self) -> float:
        """How long the campaign has taken so far."""
        if self.is_running:
            return max(self.record.wall_seconds, time.time() - self.record.created)
        return self.record.wall_seconds

    @property
    def mean_rate(self) -> float:
        """Tests per second since the start."""
        return self.facts.tests / self.seconds if self.seconds > 0 else 0.0

    @property
    def budget(self) -> str:
        """When the campaign will stop, in words."""
        try:
            return Budget(**self.record.options.get("budget", {})).describe()
        except (TypeError, UserError):  # written by another version or another program
            return "?"

    @property
    def share(self) -> float | None:
        """The share of the budget that is used, from 0 to 1; None if there is no limit."""
        if self.record.status == "finished":
            return 1.0
        limits = self.record.options.get("budget", {})
        used = {
            "tests": self.facts.tests,
            "wall_seconds": self.seconds,
            "cpu_seconds": self.record.cpu_seconds,
            "faults": self.facts.faults,
        }
        shares = [used[name] / limit for name, limit in limits.items() if name in used and limit]
        return min(max(shares), 1.0) if shares else None

    @property
    def health(self) -> str:
        """The status, or ``silent``, for a badge."""
        if self.is_running and self.silent:
            return "silent"
        return self.status


def campaign_view(store: Store, record: CampaignRecord, watch: StoreWatch) -> CampaignView:
    """Return the current view of a campaign."""
    facts = facts_of(store, record)
    running = record.status == "running"
    rate = watch.rate(record.id) if running else None
    silence = _silence(record, facts, watch) if running else 0.0
    return CampaignView(record, facts, rate, silence, status_in(store, record))


@dataclass(frozen=True)
class CampaignPage:
    """One page of campaigns, newest first."""

    views: tuple[CampaignView, ...]
    older: int | None
    """The next page has the campaigns before this number; None if there is none."""
    is_first: bool


def campaign_page(store: Store, watch: StoreWatch, before: int | None = None) -> CampaignPage:
    """Return the newest campaigns, or the newest ones before a number."""
    records = [record for record in store.campaigns() if before is None or record.id < before]
    shown = records[: -_CAMPAIGNS_PER_PAGE - 1 : -1]
    views = tuple(campaign_view(store, record, watch) for record in shown)
    older = shown[-1].id if len(records) > _CAMPAIGNS_PER_PAGE else None
    return CampaignPage(views, older, before is None)


def _silence(record: CampaignRecord, facts: CampaignFacts, watch: StoreWatch) -> float:
    """Return for how long a running campaign has shown no progress; 0 if that is not long."""
    samples = watch.history(record.id)
    if not samples:
        return 0.0
    first_unchanged = next(sample for sample in samples if sample.tests == samples[-1].tests)
    unchanged = samples[-1].at - first_unchanged.at
    if facts.workers:
        unchanged = min(unchanged, max(time.time() - facts.workers, 0.0))
    return unchanged if unchanged >= _SILENT_AFTER else 0.0


@dataclass(frozen=True)
class WorkerView:
    """A worker and its health."""

    record: WorkerRecord
    health: str
    """The state of the worker; ``silent`` if it should be working and has sent nothing for long."""
    rate: float


def worker_views(store: Store, record: CampaignRecord) -> list[WorkerView]:
    """Return the workers of a campaign."""
    views = []
    for worker in store.workers(record.id):
        is_quiet = record.status == "running" and time.time() - worker.last_seen > _SILENT_AFTER
        health = "silent" if is_quiet and worker.state in ("working", "idle") else worker.state
        seconds = worker.last_seen - worker.started
        views.append(WorkerView(worker, health, worker.tests / seconds if seconds > 0 else 0.0))
    return views


def progress_curves(record: CampaignRecord, points: list[ProgressPoint]) -> list[DiscoveryPlot]:
    """Return curves of faults by tests and by CPU time.

    They are drawn from running totals, so their cost does not depend on the number of tests.
    """
    if not points or not points[-1].faults:
        return []
    faults = tuple(point.faults for point in points)
    by_tests = tuple(float(point.tests) for point in points)
    by_time = tuple(max(point.cpu_ns / 1e9, 1e-9) for point in points)
    return [
        DiscoveryPlot(
            f"faults-by-{unit.split()[0].lower()}",
            f"Faults by {unit}",
            unit if unit == "tests" else "CPU seconds",
            "faults",
            (PlottedCurve(record.id, record.label, effort, faults),),
        )
        for unit, effort in (("tests", by_tests), ("CPU time", by_time))
    ]


def tests_in_words(view: CampaignView) -> str:
    """Return the number of tests and faults as text for a title."""
    return f"{plural(view.facts.tests, 'test')}, {plural(view.facts.faults, 'fault')}"


# Faults, with their tests as code. Only the store is read: no subject is loaded.

_MAX_CODE_LINES = 400


@dataclass(frozen=True)
class FaultPage:
    """A fault, with everything that its page shows."""

    reported: ReportedFault
    record: FaultRecord
    """The fault with its smallest test, and the output of that test."""
    code: TestCode
    original: TestCode | None
    """The test as it was found, if `code` is a reduced one."""
    reduced: str
    configuration: str
    part: str
    race: RaceView | None
    replay: str


def fault_page(store: Store, campaign: int, id: str) -> FaultPage:
    """Return a fault of a campaign; raise `UserError` if the campaign has no fault of this id."""
    match = next(
        (
            fault
            for fault in known_faults(store, [campaign])
            if id == fault.record.id or id in fault.also_ids
        ),
        None,
    )
    if match is None:
        raise UserError(f"campaign {campaign} has no fault {id}")
    return _fault_page(store, campaign, match)


def race_pages(store: Store, campaign: int) -> list[FaultPage]:
    """Return the faults for which the store has recorded what the threads did."""
    pages = [_fault_page(store, campaign, fault) for fault in known_faults(store, [campaign])]
    return [page for page in pages if page.race is not None]


def _fault_page(store: Store, campaign: int, fault: ReportedFault) -> FaultPage:
    record = as_shown(fault.record, fault.reduction)
    options = store.campaign(campaign).options
    part = str(options.get("part", "step"))
    code, original = _fault_code(record), _fault_code(fault.record)
    replay = command_text(replay_words(campaign, fault.record, fault.reduction), store.url)
    return FaultPage(
        fault,
        record,
        code,
        original if original != code else None,
        reduction_line(fault.record, fault.reduction, fault.reduced_in, part),
        fault_configurations(store, campaign, [fault.record])[fault.record.id],
        part,
        _race(record.test),
        replay if options.get("subject") else "",
    )


def _race(test: str | None) -> RaceView | None:
    try:
        return race_view(test)
    except (UserError, ValueError):
        return None


def _fault_code(record: FaultRecord) -> TestCode:
    try:
        code = record.code or test_code(record.test, StoredTests())
    except ValueError:  # not even JSON
        code = str(record.test)
    return _cut(folded_lines(code))


def _cut(lines: Sequence[str]) -> TestCode:
    return TestCode("\n".join(lines[:_MAX_CODE_LINES]), max(len(lines) - _MAX_CODE_LINES, 0))


# Trials, one page at a time. A page starts at a trial number, which the store finds fast.

ROWS = 50
VERDICTS = {"passed": 0, "failed": 1, "invalid": 2}
_MAX_NUMBER = 2**62
"""Keeps numbers from an address within the 64-bit integers of the store."""


@dataclass(frozen=True)
class TrialRow:
    """A trial as a row of the table."""

    record: TrialRecord
    verdict: str
    configuration: str
    hits: int | None
    """The number of targets that the trial reached; None if that is not known."""


@dataclass(frozen=True)
class TrialPage:
    """One page of trials, newest first, with the queries of its neighbours."""

    rows: tuple[TrialRow, ...]
    verdict: str
    fault: str
    older: str
    """The query of the page with older trials; empty if there is none."""
    newer: str
    newest: str
    features: int


def trial_page(store: Store, record: CampaignRecord, query: Mapping[str, str]) -> TrialPage:
    """Return the page of trials that a query asks for.

    A query may have `before` or `after`, which are trial numbers, and a `verdict` and a `fault`
    that the trials must have.
    """
    verdict, fault = query.get("verdict", ""), query.get("fault", "")
    before, after = whole(query.get("before")), whole(query.get("after"))
    goes_back = after is not None
    records = list(
        store.trials(
            record.id,
            before=before,
            after=-1 if after is None else after,
            verdict=VERDICTS.get(verdict),
            fault=fault or None,
            newest_first=not goes_back,
            limit=ROWS + 1,
        )
    )
    has_more = len(records) > ROWS
    records = records[:ROWS]
    if goes_back:
        records.reverse()
    space = space_of(record)
    filters = {"verdict": verdict if verdict in VERDICTS else "", "fault": fault}

    def link(**bound: int) -> str:
        return "?" + urlencode({name: value for name, value in filters.items() if value} | bound)

    has_older = bool(records) and (has_more or goes_back)
    has_newer = bool(records) and (has_more if goes_back else before is not None)
    return TrialPage(
        tuple(_row(space, trial) for trial in records),
        filters["verdict"],
        fault,
        link(before=records[-1].trial) if has_older else "",
        link(after=records[0].trial) if has_newer else "",
        link(),
        len(space.features) if space else 0,
    )


def space_of(record: CampaignRecord) -> Space | None:
    """Return the space of a campaign; None for coverage of other tools, which has none."""
    return Space.from_json(record.space) if record.space.get("dimensions") else None


def whole(text: str | None) -> int | None:
    """Return the number in a query; None if it is missing or is not a number."""
    return min(int(text), _MAX_NUMBER) if text and text.isdecimal() and len(text) < 20 else None


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
    """A trial, with everything that its page shows."""

    row: TrialRow
    used: tuple[tuple[str, float, int], ...]
    """For each feature: its name, its weight, and how often it appeared in the test."""
    settings: tuple[tuple[str, str], ...]
    code: TestCode | None
    """The test; None if the store has not kept it."""
    replay: str


def trial_view(store: Store, record: CampaignRecord, number: int) -> TrialView:
    """Return what the store knows about one trial."""
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
        settings = tuple(
            (dimension.name, str(configuration[dimension.name])) for dimension in space.settings
        )
    test = store.test(record.id, number)
    code = None
    if test is not None:
        code = _cut(test_code(test, StoredTests()).rstrip().splitlines())
    replay = command_text(f"replay {record.id}#{number}", store.url)
    has_subject = bool(record.options.get("subject"))
    return TrialView(_row(space, trial), used, settings, code, replay if has_subject else "")
