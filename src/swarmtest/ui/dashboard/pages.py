"""The pages about the store: each reads a little, and asks for what takes long."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from swarmtest.core.errors import UserError
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.strategies.strategy import strategy_names
from swarmtest.ui.dashboard import queries as questions
from swarmtest.ui.dashboard.campaigns import (
    CampaignView,
    campaign_page,
    campaign_view,
    fault_page,
    progress_curves,
    race_pages,
    sparkline,
    trial_page,
    trial_view,
    whole,
    worker_views,
)
from swarmtest.ui.dashboard.commands import AIMS
from swarmtest.ui.dashboard.context import Desk
from swarmtest.ui.dashboard.queries import Computed
from swarmtest.ui.dashboard.system import Load, Process, campaign_process, disk_share, is_swarmtest
from swarmtest.ui.report.faults import known_faults
from swarmtest.ui.report.reproduce import run_command
from swarmtest.ui.report.search_report import SearchPage
from swarmtest.ui.terminal.tables import command_text

T = TypeVar("T")
_CURVE_POINTS = 200
_NEWEST_FAULTS = 5
_FEWEST = 2
"""Campaigns that can be compared."""
_MOST = 200


class Pages:
    """What is shown for which address."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def campaigns(self, request: Request) -> Response:
        """All campaigns, and a form for a new one."""
        before = whole(request.query_params.get("before"))
        with self._desk.store() as store:
            found = campaign_page(store, self._desk.watch, before)
        return self._desk.page(request, "campaigns.html", page=found, strategies=strategy_names())

    def overview(self, request: Request) -> Response:
        """One campaign: how far, how fast, what was found and what is left."""
        with self._desk.store() as store:
            view = self._view(request, store)
            record = view.record
            points = store.progress(record.id, _CURVE_POINTS)
            summary = store.summary(record.id)
            workers = worker_views(store, record)
            newest = sorted(known_faults(store, [record.id]), key=lambda one: one.first)
        samples = [(one.at, one.tests) for one in self._desk.watch.history(record.id)]
        rates = [
            (b[0], (b[1] - a[1]) / (b[0] - a[0]))
            for a, b in itertools.pairwise(samples)
            if b[0] > a[0]
        ]
        now = f"{view.rate:,.0f}/s" if view.rate is not None else ""
        return self._campaign_page(
            request,
            "overview.html",
            view,
            summary=summary,
            workers=workers,
            newest=newest[: -_NEWEST_FAULTS - 1 : -1],
            curves=progress_curves(record, points),
            rates=sparkline(rates, "tests per second", now) if view.is_running else "",
            outlook=self._ask("outlook", view, questions.outlook),
            again=run_command(record, view.facts.tests),
            aims=AIMS,
            jobs=self._desk.jobs.of_campaign(record.id),
        )

    def faults(self, request: Request) -> Response:
        """The faults of a campaign."""
        with self._desk.store() as store:
            view = self._view(request, store)
            found = known_faults(store, [view.record.id])
        found.sort(key=lambda fault: fault.first)
        roles = self._ask("roles", view, questions.roles)
        return self._campaign_page(request, "faults_page.html", view, faults=found, roles=roles)

    def fault(self, request: Request) -> Response:
        """One fault, with its test as code."""
        with self._desk.store() as store:
            view = self._view(request, store)
            found = fault_page(store, view.record.id, request.path_params["fault"])
        roles = self._ask("roles", view, questions.roles)
        return self._campaign_page(request, "fault.html", view, fault=found, roles=roles)

    def roles(self, request: Request) -> Response:
        """Triggers and suppressors, with intervals."""
        with self._desk.store() as store:
            view = self._view(request, store)
            signatures = {one.id: one.signature for one in store.faults(view.record.id)}
            command = command_text(f"roles {view.record.id}", store.url)
        return self._campaign_page(
            request,
            "roles.html",
            view,
            roles=self._ask("roles", view, questions.roles),
            signatures=signatures,
            shell=command,
        )

    def source(self, request: Request) -> Response:
        """What was reached: a table of files, and one of them with hitting fractions."""
        with self._desk.store() as store:
            view = self._view(request, store)
            command = command_text(f"coverage {view.record.id}", store.url)
        reached = self._ask("source", view, questions.reached)
        wanted = request.path_params.get("file", "")
        listing = None
        if reached.value is not None:
            known = {one.id: one for one in reached.value.listings}
            if wanted and wanted not in known:
                raise UserError(f"campaign {view.record.id} watched no such file")
            listing = known.get(wanted)
        return self._campaign_page(
            request, "source.html", view, reached=reached, listing=listing, shell=command
        )

    def configurations(self, request: Request) -> Response:
        """The configurations tried, a page of them at a time."""
        with self._desk.store() as store:
            view = self._view(request, store)
            found = trial_page(store, view.record, dict(request.query_params))
            faults = [one.id for one in store.faults(view.record.id)]
        return self._campaign_page(
            request, "configurations.html", view, page=found, fault_ids=faults
        )

    def trial(self, request: Request) -> Response:
        """One test."""
        with self._desk.store() as store:
            view = self._view(request, store)
            found = trial_view(store, view.record, int(request.path_params["trial"]))
        return self._campaign_page(request, "trial.html", view, trial=found)

    def races(self, request: Request) -> Response:
        """What threads did, in columns."""
        with self._desk.store() as store:
            view = self._view(request, store)
            found = race_pages(store, view.record.id)
        return self._campaign_page(request, "races.html", view, faults=found)

    def search(self, request: Request) -> Response:
        """An explored space."""
        with self._desk.store() as store:
            view = self._view(request, store)
            command = command_text(f"search plot {view.record.id}", store.url)
        asked: Computed[SearchPage] = Computed(problem=f"campaign {view.record.id} is no search")
        if _is_search(view.record):
            asked = self._ask("search", view, questions.search)
        return self._campaign_page(request, "search.html", view, search=asked, shell=command)

    def compare(self, request: Request) -> Response:
        """Several campaigns side by side."""
        told = map(whole, request.query_params.getlist("c")[:_MOST])
        wanted = {number for number in told if number is not None}
        with self._desk.store() as store:
            known = list(campaign_page(store, self._desk.watch).views)
            shown = {view.record.id for view in known}
            known += [
                campaign_view(store, store.campaign(number), self._desk.watch)
                for number in sorted(wanted - shown, reverse=True)
            ]
        chosen = [view for view in reversed(known) if view.record.id in wanted]
        numbers = [view.record.id for view in chosen]
        asked: Computed[questions.Compared] = Computed()
        command = ""
        if len(chosen) >= _FEWEST:
            words = " ".join(map(str, numbers))
            command = command_text(f"compare {words}", self._desk.store_name)
            asked = self._desk.computing.ask(
                f"compare:{'-'.join(map(str, numbers))}",
                tuple((view.facts.status, view.facts.tests) for view in chosen),
                lambda store: questions.compared(store, numbers),
                hurry=not any(view.is_running for view in chosen),
            )
        return self._desk.page(
            request,
            "compare.html",
            campaigns=known,
            chosen=numbers,
            compared=asked,
            shell=command,
            topics=" ".join(f"campaign:{number}" for number in numbers),
        )

    def _view(self, request: Request, store: Store) -> CampaignView:
        record = store.campaign(int(request.path_params["campaign"]))
        return campaign_view(store, record, self._desk.watch)

    def _ask(
        self, name: str, view: CampaignView, question: Callable[[Store, int], T]
    ) -> Computed[T]:
        facts, number = view.facts, view.record.id
        version = facts.status, facts.tests, facts.faults
        return self._desk.computing.ask(
            f"{name}:{number}",
            version,
            lambda store: question(store, number),
            hurry=not view.is_running,
        )

    def _campaign_page(
        self, request: Request, template: str, view: CampaignView, **values: Any
    ) -> Response:
        return self._desk.page(
            request,
            template,
            view=view,
            record=view.record,
            base=f"/campaigns/{view.record.id}",
            has_search=_is_search(view.record),
            has_races=view.record.subject.startswith("race "),
            **values,
        )


def _is_search(record: CampaignRecord) -> bool:
    """Whether a campaign explored a space."""
    return "search" in record.options


# -------------------------------------------------------------------------------------------------
# The pages about this machine, and about the commands that were started here.

_SHOWN_LINES = 500


class SystemPages:
    """Resources and commands."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def resources(self, request: Request) -> Response:
        """What this machine is doing, and who of the campaigns' processes."""
        machine = self._desk.machine
        machine.sample()
        roots = self._roots()
        processes = machine.processes(roots)
        loads = machine.history()
        return self._desk.page(
            request,
            "resources.html",
            host=platform.node(),
            load=loads[-1] if loads else None,
            pictures=_pictures(loads),
            processes=[(one, roots.get(one.pid, "")) for one in processes],
            total=_total(processes),
            disk=disk_share(self._desk.store_name),
        )

    def commands(self, request: Request) -> Response:
        """All commands that were started here."""
        return self._desk.page(request, "commands.html", jobs=self._desk.jobs.all())

    def command(self, request: Request) -> Response:
        """One command, and what it prints."""
        job = self._desk.jobs.get(int(request.path_params["job"]))
        if job is None:
            raise UserError("there is no such command")
        lines = list(job.lines)[-_SHOWN_LINES:]
        return self._desk.page(
            request, "command.html", job=job, lines=lines, left_out=job.printed - len(lines)
        )

    def _roots(self) -> dict[int, str]:
        """The processes that campaigns are known to have here, and what they are."""
        found = {
            job.process.pid: f"command {job.number}"
            for job in self._desk.jobs.all()
            if job.is_running
        }
        with self._desk.store() as store:
            running = [one.id for one in store.campaigns() if one.status == "running"]
            workers = [(number, one) for number in running for one in store.workers(number)]
        for number, worker in workers:
            if worker.host == platform.node() and is_swarmtest(worker.pid):
                whole = campaign_process(worker.pid)
                if whole is not None:
                    found.setdefault(whole, f"campaign {number}")
                found.setdefault(worker.pid, f"campaign {number}, worker")
        return found


def _pictures(loads: list[Load]) -> list[tuple[str, object]]:
    if len(loads) < 2:
        return []
    last = loads[-1]
    return [
        ("CPU", sparkline([(x.at, x.busy) for x in loads], "CPU", f"{last.busy:.0%}", 1.0)),
        ("Memory", sparkline([(x.at, x.memory) for x in loads], "memory", f"{last.memory:.0%}", 1)),
        ("Load", sparkline([(x.at, x.load) for x in loads], "load", f"{last.load:.1f}")),
    ]


def _total(processes: list[Process]) -> tuple[float, int]:
    return sum(one.cpu for one in processes), sum(one.memory for one in processes)
