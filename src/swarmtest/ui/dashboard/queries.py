"""Slow queries about campaigns, and the thread pool that answers them in the background.

A page never waits for a slow query: it shows the last answer, or that one is being computed, and
reloads when the answer is announced (`QueryPool`). Each query reads a store and returns plain
values. The values are complete: nothing in them reads the store later, because it is closed by
then. No query loads a subject.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from swarmtest.analysis.discovery import Discovery, discovery
from swarmtest.compare.comparison import compare_campaigns
from swarmtest.compare.views import conclusions
from swarmtest.core.errors import UserError
from swarmtest.growth.growth import KindGrowth, measure_growth
from swarmtest.growth.verdict import verdict
from swarmtest.roles.study import Study
from swarmtest.roles.triage import triage
from swarmtest.roles.views import pair_lines, roles_in_short
from swarmtest.store.interface import Store
from swarmtest.ui.dashboard.store_watch import EventBroadcaster
from swarmtest.ui.report.coverage import SourceListing, coverage_of, script_data
from swarmtest.ui.report.faults import MOST_FAULTS
from swarmtest.ui.report.figures import (
    DiscoveryPlot,
    ExpectedPoint,
    HeatMap,
    IntervalPlot,
    RoleShares,
    configurations,
    discovery_curves,
    interval_plot,
    role_shares,
)
from swarmtest.ui.report.file_heat import FileHeat, file_heats
from swarmtest.ui.report.search_report import SearchPage, search_page
from swarmtest.ui.report.strategy_plot import StrategyPlot, strategy_plots
from swarmtest.ui.report.tables import (
    HtmlTable,
    amount_table,
    comparison_tables,
    growth_table,
    role_table,
)

T = TypeVar("T")
_THREADS = 2
_MAX_ANSWERS = 64
_REST_FACTOR = 8.0
"""A query rests for this many times its duration before it is repeated: campaigns need the CPU."""


# Computing in the background.


@dataclass(frozen=True)
class QueryState(Generic[T]):
    """The state of a query: its last answer, and whether a new one is being computed."""

    value: T | None = None
    problem: str = ""
    """Why there is no value, if it could not be computed."""
    version: Hashable = None
    """The version of the data that the value was computed from."""
    is_computing: bool = False
    seconds: float = 0.0


class QueryPool:
    """A thread pool that answers queries and keeps their last answers."""

    def __init__(self, open_store: Callable[[], Store], live: EventBroadcaster) -> None:
        self._open = open_store
        self._live = live
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="computing")
        self._lock = threading.Lock()
        self._answers: dict[str, QueryState[Any]] = {}
        self._due: dict[str, float] = {}
        self._running: dict[str, Future[None]] = {}

    def close(self) -> None:
        """Start no more queries, and wait for those that are running."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def ask(
        self, topic: str, version: Hashable, question: Callable[[Store], T], hurry: bool = False
    ) -> QueryState[T]:
        """Return the last answer, and start computing a new one if the data has changed.

        A new computation waits until the rest after the last one is over, unless `hurry` is set,
        which callers do for a campaign that has ended. `topic` names the query, and is what is
        announced to pages when there is a new answer.
        """
        with self._lock:
            last = self._answers.get(topic, QueryState())
            is_fresh = last.version == version
            is_due = hurry or time.monotonic() >= self._due.get(topic, 0.0)
            if not is_fresh and is_due and topic not in self._running:
                self._running[topic] = self._pool.submit(self._answer, topic, version, question)
            return QueryState(
                last.value,
                last.problem,
                last.version,
                not is_fresh and topic in self._running,
                last.seconds,
            )

    def _answer(self, topic: str, version: Hashable, question: Callable[[Store], T]) -> None:
        started = time.monotonic()
        value, problem = None, ""
        try:
            with self._open() as store:
                value = question(store)
        except UserError as error:
            problem = str(error)
        except Exception as error:  # the page shows it, and the other pages keep working
            problem = f"a bug in swarmtest: {type(error).__name__}: {error}"
        seconds = time.monotonic() - started
        with self._lock:
            self._answers[topic] = QueryState(value, problem, version, False, seconds)
            self._due[topic] = time.monotonic() + _REST_FACTOR * seconds
            del self._running[topic]
            while len(self._answers) > _MAX_ANSWERS:
                del self._answers[next(iter(self._answers))]
        self._live.announce(topic)


# The queries.


@dataclass(frozen=True)
class GrowthView:
    """What a campaign found when, and how much is left to find."""

    sentence: str
    """Advice on whether to go on, with its reason."""
    table: HtmlTable
    curves: tuple[tuple[DiscoveryPlot, DiscoveryPlot], ...]
    """For each kind of target, a curve by tests and a curve by CPU time."""


def outlook(store: Store, campaign: int) -> GrowthView:
    """Return the discovery curves of a campaign, and estimates of what is still to be found."""
    discovered = discovery(store, campaign)
    curves = discovery_curves([discovered])
    estimate = measure_growth(store, [campaign])
    ahead = {kind.kind: _ahead(kind) for kind in estimate.kinds}
    pairs = tuple(
        (_with_forecast(by_tests, ahead.get(kind)), by_time)
        for kind, by_tests, by_time in zip(
            _kinds(discovered), curves[::2], curves[1::2], strict=True
        )
    )
    return GrowthView(str(verdict(estimate)), growth_table([estimate]), pairs)


def _kinds(run: Discovery) -> list[str]:
    """Return the kinds in the order in which their curves are drawn."""
    return sorted(run.kinds(), key=lambda kind: (kind != "fault", kind))


def _ahead(kind: KindGrowth) -> ExpectedPoint:
    """Return the expected point of a kind's curve after as many tests again."""
    so_far, new = kind.seen.found, kind.new
    return ExpectedPoint(
        2.0 * kind.seen.tests, so_far + new.value, so_far + new.low, so_far + new.high
    )


def _with_forecast(curves: DiscoveryPlot, ahead: ExpectedPoint | None) -> DiscoveryPlot:
    (curve,) = curves.curves
    return replace(curves, curves=(replace(curve, ahead=ahead),))


@dataclass(frozen=True)
class FaultRoles:
    """The features that trigger or suppress one fault, as far as the tests show."""

    short: str
    plot: IntervalPlot
    table: HtmlTable
    amounts: HtmlTable
    pairs: tuple[str, ...]


@dataclass(frozen=True)
class RolesView:
    """Triggers and suppressors of a campaign's faults."""

    notes: tuple[str, ...]
    faults: dict[str, FaultRoles]
    """The most frequent faults, by id."""
    shares: tuple[RoleShares, ...]
    relations: tuple[str, ...]
    """Sentences about faults that may be one bug."""
    heat: HeatMap
    no_variation: str = ""
    """Why no feature can have a role, if the campaign varied no feature."""


def roles(store: Store, campaign: int) -> RolesView:
    """Return the roles of features for the faults of a campaign, limited to what a page shows."""
    study = Study(store, [campaign])
    heat = configurations(study)
    try:
        study.require_variation()
    except UserError as error:
        return RolesView(study.notes, {}, (), (), heat, str(error))
    by_frequency = sorted(study.faults, key=lambda fault: -len(study.hits(fault)))
    error_rate = 1 - study.confidence
    by_fault = {}
    for fault in by_frequency[:MOST_FAULTS]:
        plot = interval_plot(study, fault)
        by_fault[fault.name] = FaultRoles(
            roles_in_short(plot.roles, error_rate),
            plot,
            role_table(plot, study.effects(fault)),
            amount_table(study.amounts(fault), error_rate),
            tuple(pair_lines(study.pairs(fault))),
        )
    shares = (role_shares("fault", study.table("fault")),) if by_fault else ()
    relations = tuple(triage(study, by_frequency[:MOST_FAULTS]).sentences()) if by_fault else ()
    return RolesView(study.notes, by_fault, shares, relations, heat)


@dataclass(frozen=True)
class CoverageView:
    """The source of a subject, with hitting fractions."""

    files: HtmlTable | None
    listings: tuple[SourceListing, ...]
    others: tuple[HtmlTable, ...]
    heats: dict[str, FileHeat]
    """Files at a glance, by the ids of their listings."""
    shares: tuple[RoleShares, ...]
    """For each kind, how many targets each feature matters to."""
    notes: tuple[str, ...]
    why_none: str
    data: dict[str, Any]
    """The data of the script that shows the roles of a line."""


def reached(store: Store, campaign: int) -> CoverageView:
    """Return what the tests of a campaign reached, using the sources that the store has kept."""
    study = Study(store, [campaign])
    tables = {kind: study.table(kind) for kind in study.kinds() if kind != "fault"}
    coverage = coverage_of(study, tables, disk=False)
    return CoverageView(
        coverage.files,
        coverage.listings,
        coverage.others,
        file_heats(coverage, study.evidence.features),
        tuple(role_shares(kind, table) for kind, table in tables.items()),
        coverage.left_out if coverage.listings else (),
        coverage.why_none,
        script_data(study, coverage),
    )


@dataclass(frozen=True)
class ComparisonView:
    """A comparison of campaigns."""

    conclusions: tuple[str, ...]
    plots: tuple[StrategyPlot, ...]
    tables: tuple[HtmlTable, ...]
    notes: tuple[str, ...]
    refusal: str
    """Why the strategies cannot be compared; the curves are present in any case."""
    curves: tuple[tuple[DiscoveryPlot, DiscoveryPlot], ...]


def compared(store: Store, campaigns: Sequence[int]) -> ComparisonView:
    """Return the discovery curves of several campaigns, and a comparison of their strategies."""
    curves = discovery_curves([discovery(store, campaign) for campaign in campaigns])
    pairs = tuple(zip(curves[::2], curves[1::2], strict=True))
    try:
        comparison = compare_campaigns(store, campaigns)
    except UserError as error:
        return ComparisonView((), (), (), (), str(error), pairs)
    return ComparisonView(
        tuple(conclusions(comparison)),
        tuple(strategy_plots(comparison)),
        tuple(comparison_tables(comparison)),
        comparison.notes,
        "",
        pairs,
    )


def search(store: Store, campaign: int) -> SearchPage:
    """Return what a search learnt about its space."""
    return search_page(store, [campaign])
