"""What takes long to know of a campaign: each question reads a store and gives plain values.

The values are whole: nothing in them reads the store later, for it is closed by then. Nothing here
loads a subject.
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
from swarmtest.growth.growth import KindGrowth, growth
from swarmtest.growth.verdict import verdict
from swarmtest.roles.study import Study
from swarmtest.roles.triage import triage
from swarmtest.roles.views import pair_lines, roles_in_short
from swarmtest.store.interface import Store
from swarmtest.ui.dashboard.store_watch import Live
from swarmtest.ui.report.coverage import Listing, coverage_of, script_data
from swarmtest.ui.report.faults import MOST_FAULTS
from swarmtest.ui.report.figures import Ahead, Curves, HeatMap, IntervalPlot, RoleShares
from swarmtest.ui.report.search_report import SearchPage, search_page
from swarmtest.ui.report.study_figures import (
    configurations,
    discovery_curves,
    interval_plot,
    role_shares,
)
from swarmtest.ui.report.tables import (
    Table,
    amount_table,
    comparison_tables,
    growth_table,
    role_table,
)

# -------------------------------------------------------------------------------------------------
# What takes long is computed beside the page, kept, and told when it is there.
#
# A page never waits: it shows what is known so far, or that it is being computed.

T = TypeVar("T")
_THREADS = 2
_MOST_KEPT = 64
_RESTS = 8.0
"""After a computation it rests so many times as long as it took: the campaign needs the CPU."""


@dataclass(frozen=True)
class Computed(Generic[T]):
    """What is known of a question."""

    value: T | None = None
    problem: str = ""
    """Why there is no value, if it could not be computed."""
    version: Hashable = None
    """Of the data that the value is about."""
    is_computing: bool = False
    seconds: float = 0.0


class Computing:
    """Questions to a store, their last answers, and who is working on them."""

    def __init__(self, open_store: Callable[[], Store], live: Live) -> None:
        self._open = open_store
        self._live = live
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="computing")
        self._lock = threading.Lock()
        self._known: dict[str, Computed[Any]] = {}
        self._due: dict[str, float] = {}
        self._running: dict[str, Future[None]] = {}

    def close(self) -> None:
        """Begin nothing more, and wait for what has begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def ask(
        self, topic: str, version: Hashable, question: Callable[[Store], T], hurry: bool = False
    ) -> Computed[T]:
        """The last answer; a new one is begun if the data has changed and it is time for that.

        `topic`: what pages are told when there is a new one. `hurry`: the campaign has ended.
        """
        with self._lock:
            known = self._known.get(topic, Computed())
            fresh = known.version == version
            due = hurry or time.monotonic() >= self._due.get(topic, 0.0)
            if not fresh and due and topic not in self._running:
                self._running[topic] = self._pool.submit(self._answer, topic, version, question)
            return Computed(
                known.value,
                known.problem,
                known.version,
                not fresh and topic in self._running,
                known.seconds,
            )

    def _answer(self, topic: str, version: Hashable, question: Callable[[Store], T]) -> None:
        begun = time.monotonic()
        value, problem = None, ""
        try:
            with self._open() as store:
                value = question(store)
        except UserError as error:
            problem = str(error)
        except Exception as error:  # a page says so; the others go on
            problem = f"a bug in swarmtest: {type(error).__name__}: {error}"
        took = time.monotonic() - begun
        with self._lock:
            self._known[topic] = Computed(value, problem, version, False, took)
            self._due[topic] = time.monotonic() + _RESTS * took
            del self._running[topic]
            while len(self._known) > _MOST_KEPT:
                del self._known[next(iter(self._known))]
        self._live.announce(topic)


# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outlook:
    """What was found when, and what is left."""

    sentence: str
    """What to do, and why."""
    table: Table
    curves: tuple[tuple[Curves, Curves], ...]
    """By kind: by tests and by CPU time."""


def outlook(store: Store, campaign: int) -> Outlook:
    """Discovery curves, and estimates of what is still to be found."""
    run = discovery(store, campaign)
    curves = discovery_curves([run])
    told = growth(store, [campaign])
    ahead = {kind.kind: _ahead(kind) for kind in told.kinds}
    pairs = tuple(
        (_going(by_tests, ahead.get(kind)), by_time)
        for kind, by_tests, by_time in zip(_kinds(run), curves[::2], curves[1::2], strict=True)
    )
    return Outlook(str(verdict(told)), growth_table([told]), pairs)


def _kinds(run: Discovery) -> list[str]:
    """In the order in which curves are drawn."""
    return sorted(run.kinds(), key=lambda kind: (kind != "fault", kind))


def _ahead(kind: KindGrowth) -> Ahead:
    """Where a kind will be after as many tests again."""
    found, new = kind.seen.found, kind.new
    return Ahead(2.0 * kind.seen.tests, found + new.value, found + new.low, found + new.high)


def _going(curves: Curves, ahead: Ahead | None) -> Curves:
    (curve,) = curves.curves
    return replace(curves, curves=(replace(curve, ahead=ahead),))


@dataclass(frozen=True)
class FaultRoles:
    """Why a fault shows, as far as the tests tell."""

    short: str
    plot: IntervalPlot
    table: Table
    amounts: Table
    pairs: tuple[str, ...]


@dataclass(frozen=True)
class Roles:
    """Triggers and suppressors of a campaign's faults."""

    notes: tuple[str, ...]
    faults: dict[str, FaultRoles]
    """By id, the most frequent."""
    shares: tuple[RoleShares, ...]
    relations: tuple[str, ...]
    """Faults that may be one bug."""
    heat: HeatMap
    no_variation: str = ""
    """Why no feature has a role, if nothing was left to chance."""


def roles(store: Store, campaign: int) -> Roles:
    """Roles for every fault, as far as a page shows them."""
    study = Study(store, [campaign])
    heat = configurations(study)
    try:
        study.require_variation()
    except UserError as error:
        return Roles(study.notes, {}, (), (), heat, str(error))
    often = sorted(study.faults, key=lambda fault: -int(study.hit(fault).sum()))
    rate = 1 - study.confidence
    found = {}
    for fault in often[:MOST_FAULTS]:
        plot = interval_plot(study, fault)
        found[fault.name] = FaultRoles(
            roles_in_short(plot.roles, rate),
            plot,
            role_table(plot, study.effects(fault)),
            amount_table(study.amounts(fault), rate),
            tuple(pair_lines(study.pairs(fault))),
        )
    shares = (role_shares("fault", study.table("fault")),) if found else ()
    related = tuple(one.sentence() for one in triage(study).relations) if found else ()
    return Roles(study.notes, found, shares, related, heat)


@dataclass(frozen=True)
class Reached:
    """Source with hitting fractions."""

    files: Table | None
    listings: tuple[Listing, ...]
    others: tuple[Table, ...]
    shares: tuple[RoleShares, ...]
    """For how many targets of each kind a feature matters."""
    notes: tuple[str, ...]
    why_none: str
    data: dict[str, Any]
    """For the script that shows a line's roles."""


def reached(store: Store, campaign: int) -> Reached:
    """What the tests of a campaign reached, from the sources that the store has kept."""
    study = Study(store, [campaign])
    tables = {kind: study.table(kind) for kind in study.kinds() if kind != "fault"}
    coverage = coverage_of(study, tables, disk=False)
    return Reached(
        coverage.files,
        coverage.listings,
        coverage.others,
        tuple(role_shares(kind, table) for kind, table in tables.items()),
        coverage.left_out if coverage.listings else (),
        coverage.why_none,
        script_data(study, coverage),
    )


@dataclass(frozen=True)
class Compared:
    """Campaigns side by side."""

    conclusions: tuple[str, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    refusal: str
    """Why strategies cannot be compared; curves are there all the same."""
    curves: tuple[tuple[Curves, Curves], ...]


def compared(store: Store, campaigns: Sequence[int]) -> Compared:
    """Discovery curves of several campaigns, and how their strategies compare."""
    curves = discovery_curves([discovery(store, campaign) for campaign in campaigns])
    pairs = tuple(zip(curves[::2], curves[1::2], strict=True))
    try:
        found = compare_campaigns(store, campaigns)
    except UserError as error:
        return Compared((), (), (), str(error), pairs)
    return Compared(
        tuple(conclusions(found)), tuple(comparison_tables(found)), found.notes, "", pairs
    )


def search(store: Store, campaign: int) -> SearchPage:
    """What a search found out about a space."""
    return search_page(store, [campaign])
