"""Campaigns as pages show them: how far, how fast, how healthy."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup

from swarmtest.campaign.budget import Budget
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
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
from swarmtest.ui.dashboard.store_watch import Facts, Watch, facts_of
from swarmtest.ui.report.faults import Code, KnownFault, known_faults
from swarmtest.ui.report.figures import Curve, Curves
from swarmtest.ui.report.reproduce import StoredTests
from swarmtest.ui.svg import Scale, element, line, picture, text
from swarmtest.ui.terminal.reduced_tests import as_shown, reduction_line, replay_words
from swarmtest.ui.terminal.tables import (
    command_text,
    configuration_text,
    fault_configurations,
    plural,
    test_code,
)

# -------------------------------------------------------------------------------------------------
# Small curves of what happens now: a rate, a load.

_WIDTH, _HEIGHT = 300.0, 64.0
_TOP, _BOTTOM, _RIGHT = 6.0, 14.0, 56.0


def sparkline(
    points: Sequence[tuple[float, float]], label: str, shown: str, high: float = 0.0
) -> Markup:
    """A curve over time with its last value beside it; `high`: the top of its axis, if known."""
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


# -------------------------------------------------------------------------------------------------

_ROWS = 100
"""Campaigns on a page."""
_SILENT = 30.0
"""Seconds without a word after which a worker, or a campaign, is called silent."""


@dataclass(frozen=True)
class CampaignView:
    """One campaign, from what is cheap to know."""

    record: CampaignRecord
    facts: Facts
    rate: float | None
    """Tests per second now; None if it does not run or that is not known yet."""
    silent: float
    """For how many seconds nothing has come from it, though it runs; 0: not long enough."""

    @property
    def is_running(self) -> bool:
        """Whether the store says so."""
        return self.record.status == "running"

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        if self.is_running:
            return max(self.record.wall_seconds, time.time() - self.record.created)
        return self.record.wall_seconds

    @property
    def mean_rate(self) -> float:
        """Tests per second from its beginning."""
        return self.facts.tests / self.seconds if self.seconds > 0 else 0.0

    @property
    def budget(self) -> str:
        """When it is to stop, in words."""
        try:
            return Budget(**self.record.options.get("budget", {})).describe()
        except (TypeError, UserError):  # of another version, or written by another program
            return "?"

    @property
    def share(self) -> float | None:
        """How much of its budget is used, from 0 to 1; None if it has no limit."""
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
        """One word for a badge."""
        if self.is_running and self.silent:
            return "silent"
        return self.record.status


def campaign_view(store: Store, record: CampaignRecord, watch: Watch) -> CampaignView:
    """One campaign as it is now."""
    facts = facts_of(store, record)
    running = record.status == "running"
    rate = watch.rate(record.id) if running else None
    return CampaignView(record, facts, rate, _silence(record, facts, watch) if running else 0.0)


@dataclass(frozen=True)
class CampaignPage:
    """Some campaigns, newest first, and where the others are."""

    views: tuple[CampaignView, ...]
    older: int | None
    """Those before this number are on the next page."""
    is_first: bool


def campaign_page(store: Store, watch: Watch, before: int | None = None) -> CampaignPage:
    """The newest campaigns, or those before a number."""
    records = [one for one in store.campaigns() if before is None or one.id < before]
    shown = records[: -_ROWS - 1 : -1]
    views = tuple(campaign_view(store, record, watch) for record in shown)
    older = shown[-1].id if len(records) > _ROWS else None
    return CampaignPage(views, older, before is None)


def _silence(record: CampaignRecord, facts: Facts, watch: Watch) -> float:
    """How long ago a running campaign last said anything, as far as we have seen."""
    samples = watch.history(record.id)
    if not samples:
        return 0.0
    last = next(one for one in samples if one.tests == samples[-1].tests)
    still = samples[-1].at - last.at
    if facts.workers:
        still = min(still, max(time.time() - facts.workers, 0.0))
    return still if still >= _SILENT else 0.0


@dataclass(frozen=True)
class WorkerView:
    """A worker, and whether it is well."""

    record: WorkerRecord
    health: str
    """Its state; ``silent`` if it works and has not spoken for long."""
    rate: float


def worker_views(store: Store, record: CampaignRecord) -> list[WorkerView]:
    """The workers of a campaign."""
    found = []
    for one in store.workers(record.id):
        quiet = record.status == "running" and time.time() - one.last_seen > _SILENT
        health = "silent" if quiet and one.state in ("working", "idle") else one.state
        seconds = one.last_seen - one.started
        found.append(WorkerView(one, health, one.tests / seconds if seconds > 0 else 0.0))
    return found


def progress_curves(record: CampaignRecord, points: list[ProgressPoint]) -> list[Curves]:
    """Faults by tests and by CPU time, from totals: at once, whatever the number of tests."""
    if not points or not points[-1].faults:
        return []
    found = tuple(point.faults for point in points)
    by_tests = tuple(float(point.tests) for point in points)
    by_time = tuple(max(point.cpu_ns / 1e9, 1e-9) for point in points)
    return [
        Curves(
            f"faults-by-{unit.split()[0].lower()}",
            f"Faults by {unit}",
            unit if unit == "tests" else "CPU seconds",
            "faults",
            (Curve(record.id, record.label, effort, found),),
        )
        for unit, effort in (("tests", by_tests), ("CPU time", by_time))
    ]


def tests_in_words(view: CampaignView) -> str:
    """For a title."""
    return f"{plural(view.facts.tests, 'test')}, {plural(view.facts.faults, 'fault')}"


# -------------------------------------------------------------------------------------------------
# Faults as pages show them: with their tests as code, from what the store has, and no more.

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


# -------------------------------------------------------------------------------------------------
# Configurations tried: one page of them at a time, found by their numbers.

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
