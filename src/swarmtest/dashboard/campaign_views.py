"""Campaigns as pages show them: how far, how fast, how healthy."""

from __future__ import annotations

import time
from dataclasses import dataclass

from swarmtest.campaign.budget import Budget
from swarmtest.dashboard.watching import Facts, Watch, facts_of
from swarmtest.errors import UserError
from swarmtest.report.figures import Curve, Curves
from swarmtest.report.terminal import plural
from swarmtest.store import CampaignRecord, ProgressPoint, Store, WorkerRecord

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
