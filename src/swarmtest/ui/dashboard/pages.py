"""The pages of the dashboard, and what they can start and stop.

`Pages` are about campaigns, `SystemPages` about the machine and its jobs, and `Actions` are start,
stop, resume, focus and reduce: all but stop run a command of swarmtest, as a job.

Each page reads from the store what is cheap to read, and shows slow queries as far as they have
been answered in the background (`queries`).
"""

from __future__ import annotations

import itertools
import platform
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import format_percent
from swarmtest.processes.tree import interrupt
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
from swarmtest.ui.dashboard.commands import (
    AIMS,
    DashboardCommand,
    DashboardJob,
    Form,
    focus_command,
    reduce_command,
    resume_command,
    run_command,
)
from swarmtest.ui.dashboard.context import AccessGuard, DashboardContext
from swarmtest.ui.dashboard.fault_list import SORTS, fault_list
from swarmtest.ui.dashboard.queries import QueryState
from swarmtest.ui.dashboard.system import (
    MachineLoad,
    ProcessUsage,
    campaign_process,
    disk_share,
    is_swarmtest,
)
from swarmtest.ui.report.faults import known_faults, lifelines_of
from swarmtest.ui.report.reproduce import run_command as command_of_campaign
from swarmtest.ui.report.search_report import SearchPage
from swarmtest.ui.terminal.tables import command_text

T = TypeVar("T")
_CURVE_POINTS = 200
_NEWEST_FAULTS = 5
_MIN_COMPARED = 2
"""The fewest campaigns that can be compared."""
_MAX_COMPARED = 200
_PLOTS_PER_PAGE = 8
"""How many faults a page of roles shows, each with a plot."""
_FAULTS_TO_CHOOSE = 100
"""How many faults a menu has; with more of them, a page names its own."""


class Pages:
    """The pages about the store; each method renders one."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    def campaigns(self, request: Request) -> Response:
        """Render the list of campaigns, with a form for a new one."""
        before = whole(request.query_params.get("before"))
        with self._context.store() as store:
            page = campaign_page(store, self._context.watch, before)
        return self._context.page(request, "campaigns.html", page=page, strategies=strategy_names())

    def overview(self, request: Request) -> Response:
        """Render one campaign: its progress and speed, what it found and what is left to find."""
        with self._context.store() as store:
            view = self._view(request, store)
            record = view.record
            points = store.progress(record.id, _CURVE_POINTS)
            summary = store.summary(record.id)
            workers = worker_views(store, record)
            newest = sorted(known_faults(store, [record.id]), key=lambda fault: fault.first)
        samples = [(sample.at, sample.tests) for sample in self._context.watch.history(record.id)]
        rates = [
            (end, (tests_at_end - tests_at_start) / (end - start))
            for (start, tests_at_start), (end, tests_at_end) in itertools.pairwise(samples)
            if end > start
        ]
        current_rate = f"{view.rate:,.0f}/s" if view.rate is not None else ""
        return self._campaign_page(
            request,
            "overview.html",
            view,
            summary=summary,
            workers=workers,
            newest=newest[: -_NEWEST_FAULTS - 1 : -1],
            curves=progress_curves(record, points),
            rates=sparkline(rates, "tests per second", current_rate) if view.is_running else "",
            outlook=self._ask("outlook", view, questions.outlook),
            again=command_of_campaign(record, view.facts.tests),
            aims=AIMS,
            jobs=self._context.jobs.of_campaign(record.id),
        )

    def faults(self, request: Request) -> Response:
        """Render the faults of a campaign."""
        with self._context.store() as store:
            view = self._view(request, store)
            faults = known_faults(store, [view.record.id])
        page = fault_list(faults, dict(request.query_params))
        roles = self._ask("roles", view, questions.roles)
        return self._campaign_page(
            request,
            "faults_page.html",
            view,
            page=page,
            sorts=SORTS,
            roles=roles,
            lives=lifelines_of(page.faults),
        )

    def fault(self, request: Request) -> Response:
        """Render one fault, with its test as code."""
        with self._context.store() as store:
            view = self._view(request, store)
            fault = fault_page(store, view.record.id, request.path_params["fault"])
        roles = self._ask("roles", view, questions.roles)
        lives = lifelines_of([fault.reported])
        return self._campaign_page(
            request, "fault.html", view, fault=fault, roles=roles, lives=lives
        )

    def roles(self, request: Request) -> Response:
        """Render triggers and suppressors, with their intervals."""
        with self._context.store() as store:
            view = self._view(request, store)
            signatures = {fault.id: fault.signature for fault in store.faults(view.record.id)}
            command = command_text(f"roles {view.record.id}", store.url)
        roles = self._ask("roles", view, questions.roles)
        plots = list(roles.value.faults.items()) if roles.value else []
        pages = max(-(-len(plots) // _PLOTS_PER_PAGE), 1)
        number = min(max(whole(request.query_params.get("page")) or 1, 1), pages)
        return self._campaign_page(
            request,
            "roles.html",
            view,
            roles=roles,
            plots=plots[(number - 1) * _PLOTS_PER_PAGE : number * _PLOTS_PER_PAGE],
            number=number,
            pages=pages,
            signatures=signatures,
            shell=command,
        )

    def source(self, request: Request) -> Response:
        """Render what was reached: a table of files, and one file with hitting fractions."""
        with self._context.store() as store:
            view = self._view(request, store)
            command = command_text(f"coverage {view.record.id}", store.url)
        reached = self._ask("source", view, questions.reached)
        file = request.path_params.get("file", "")
        listing = None
        if reached.value is not None:
            listings = {listing.id: listing for listing in reached.value.listings}
            if file and file not in listings:
                raise UserError(f"campaign {view.record.id} did not measure this file")
            listing = listings.get(file)
        return self._campaign_page(
            request, "source.html", view, reached=reached, listing=listing, shell=command
        )

    def configurations(self, request: Request) -> Response:
        """Render one page of the configurations that were tried."""
        with self._context.store() as store:
            view = self._view(request, store)
            page = trial_page(store, view.record, dict(request.query_params))
            fault_ids = [fault.id for fault in store.faults(view.record.id)[:_FAULTS_TO_CHOOSE]]
        return self._campaign_page(
            request, "configurations.html", view, page=page, fault_ids=fault_ids
        )

    def trial(self, request: Request) -> Response:
        """Render one trial."""
        with self._context.store() as store:
            view = self._view(request, store)
            trial = trial_view(store, view.record, int(request.path_params["trial"]))
        return self._campaign_page(request, "trial.html", view, trial=trial)

    def races(self, request: Request) -> Response:
        """Render what the threads did in failing tests, in columns."""
        with self._context.store() as store:
            view = self._view(request, store)
            faults = race_pages(store, view.record.id)
        return self._campaign_page(request, "races.html", view, faults=faults)

    def search(self, request: Request) -> Response:
        """Render the space that a search has explored."""
        with self._context.store() as store:
            view = self._view(request, store)
            command = command_text(f"search plot {view.record.id}", store.url)
        answer: QueryState[SearchPage] = QueryState(
            problem=f"campaign {view.record.id} is no search"
        )
        if _is_search(view.record):
            answer = self._ask("search", view, questions.search)
        return self._campaign_page(request, "search.html", view, search=answer, shell=command)

    def compare(self, request: Request) -> Response:
        """Render a comparison of several campaigns."""
        numbers_asked = map(whole, request.query_params.getlist("c")[:_MAX_COMPARED])
        asked_for = {number for number in numbers_asked if number is not None}
        with self._context.store() as store:
            views = list(campaign_page(store, self._context.watch).views)
            listed = {view.record.id for view in views}
            views += [
                campaign_view(store, store.campaign(number), self._context.watch)
                for number in sorted(asked_for - listed, reverse=True)
            ]
        chosen = [view for view in reversed(views) if view.record.id in asked_for]
        numbers = [view.record.id for view in chosen]
        answer: QueryState[questions.ComparisonView] = QueryState()
        command = ""
        if len(chosen) >= _MIN_COMPARED:
            arguments = " ".join(map(str, numbers))
            command = command_text(f"compare {arguments}", self._context.store_name)
            answer = self._context.computing.ask(
                f"compare:{'-'.join(map(str, numbers))}",
                tuple((view.facts.status, view.facts.tests) for view in chosen),
                lambda store: questions.compared(store, numbers),
                hurry=not any(view.is_running for view in chosen),
            )
        return self._context.page(
            request,
            "compare.html",
            campaigns=views,
            chosen=numbers,
            compared=answer,
            shell=command,
            topics=" ".join(f"campaign:{number}" for number in numbers),
        )

    def _view(self, request: Request, store: Store) -> CampaignView:
        record = store.campaign(int(request.path_params["campaign"]))
        return campaign_view(store, record, self._context.watch)

    def _ask(
        self, name: str, view: CampaignView, question: Callable[[Store, int], T]
    ) -> QueryState[T]:
        facts, number = view.facts, view.record.id
        version = facts.status, facts.tests, facts.faults
        return self._context.computing.ask(
            f"{name}:{number}",
            version,
            lambda store: question(store, number),
            hurry=not view.is_running,
        )

    def _campaign_page(
        self, request: Request, template: str, view: CampaignView, **values: Any
    ) -> Response:
        return self._context.page(
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
    """Return whether a campaign explored a space."""
    return "search" in record.options


# This machine, and the commands that were started from the dashboard.

_SHOWN_LINES = 500


class SystemPages:
    """The pages about this machine and about the jobs; each method renders one."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    def resources(self, request: Request) -> Response:
        """Render the load of this machine, and the processes of campaigns on it."""
        machine = self._context.machine
        machine.sample()
        roots = self._roots()
        processes = machine.processes(roots)
        loads = machine.history()
        return self._context.page(
            request,
            "resources.html",
            host=platform.node(),
            load=loads[-1] if loads else None,
            pictures=_pictures(loads),
            processes=[(process, roots.get(process.pid, "")) for process in processes],
            total=_total(processes),
            disk=disk_share(self._context.store_name),
        )

    def commands(self, request: Request) -> Response:
        """Render the list of commands that were started from the dashboard."""
        return self._context.page(request, "commands.html", jobs=self._context.jobs.all())

    def command(self, request: Request) -> Response:
        """Render one command, and what it has printed."""
        job = self._context.jobs.get(int(request.path_params["job"]))
        if job is None:
            raise UserError("there is no command with this number")
        lines = list(job.lines)[-_SHOWN_LINES:]
        return self._context.page(
            request, "command.html", job=job, lines=lines, left_out=job.printed - len(lines)
        )

    def _roots(self) -> dict[int, str]:
        """Return the processes on this machine that are known to run campaigns, with labels."""
        labels = {
            job.process.pid: f"command {job.number}"
            for job in self._context.jobs.all()
            if job.is_running
        }
        with self._context.store() as store:
            running = [record.id for record in store.campaigns() if record.status == "running"]
            workers = [(number, worker) for number in running for worker in store.workers(number)]
        for number, worker in workers:
            if worker.host == platform.node() and is_swarmtest(worker.pid):
                parent = campaign_process(worker.pid)
                if parent is not None:
                    labels.setdefault(parent, f"campaign {number}")
                labels.setdefault(worker.pid, f"campaign {number}, worker")
        return labels


def _pictures(loads: list[MachineLoad]) -> list[tuple[str, object]]:
    if len(loads) < 2:
        return []
    last = loads[-1]
    return [
        (
            "CPU",
            sparkline(
                [(load.at, load.busy) for load in loads],
                "CPU",
                format_percent(last.busy, 0),
                1.0,
            ),
        ),
        (
            "Memory",
            sparkline(
                [(load.at, load.memory) for load in loads],
                "memory",
                format_percent(last.memory, 0),
                1,
            ),
        ),
        ("Load", sparkline([(load.at, load.load) for load in loads], "load", f"{last.load:.1f}")),
    ]


def _total(processes: list[ProcessUsage]) -> tuple[float, int]:
    return sum(process.cpu for process in processes), sum(process.memory for process in processes)


# Actions: what a page may start and stop.

Make = Callable[[CampaignRecord, Form], DashboardCommand]
Answer = Callable[[Request], Awaitable[Response]]
ABOUT: dict[str, Make] = {
    "resume": resume_command,
    "focus": focus_command,
    "reduce": reduce_command,
}
"""Builders of the commands about a campaign, by the last word of the address."""
_MAX_FIELDS = 50
"""The most fields that a form may have; our own have far fewer."""


class Actions:
    """The handlers of POST requests, which the guard has let through."""

    def __init__(self, context: DashboardContext, guard: AccessGuard) -> None:
        self._context = context
        self._guard = guard

    async def start(self, request: Request) -> Response:
        """Start a new campaign."""
        form = await self._form(request)
        return await run_in_threadpool(self._run, run_command(form))

    def about(self, make: Make) -> Answer:
        """Return the handler that builds a command about a campaign, and runs it."""

        async def handle(request: Request) -> Response:
            form = await self._form(request)
            campaign = int(request.path_params["campaign"])
            return await run_in_threadpool(self._run_about, campaign, form, make)

        return handle

    async def stop_campaign(self, request: Request) -> Response:
        """End a campaign as Ctrl-C would."""
        await self._form(request)
        campaign = int(request.path_params["campaign"])
        await run_in_threadpool(self._stop, campaign)
        return RedirectResponse(f"/campaigns/{campaign}", 303)

    async def stop_job(self, request: Request) -> Response:
        """End a command as Ctrl-C would."""
        await self._form(request)
        job = self._context.jobs.get(int(request.path_params["job"]))
        if job is None:
            raise UserError("there is no command with this number")
        self._context.jobs.stop(job)
        return RedirectResponse(f"/commands/{job.number}", 303)

    async def _form(self, request: Request) -> Form:
        """Return the posted form; raise `PermissionError` if it is not from one of our pages."""
        body = (await request.body()).decode("utf-8", "replace")
        try:
            fields = parse_qs(body, max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise UserError(f"a form has at most {_MAX_FIELDS} fields") from None
        form = {name: values[0] for name, values in fields.items()}
        if not self._guard.is_from_us(form.get("csrf", "")):
            raise PermissionError("this form does not come from this dashboard: reload the page")
        return form

    def _run_about(self, campaign: int, form: Form, make: Make) -> Response:
        with self._context.store() as store:
            record = store.campaign(campaign)
        return self._run(make(record, form))

    def _run(self, command: DashboardCommand) -> Response:
        job = self._context.jobs.start(command)
        return RedirectResponse(f"/commands/{job.number}", 303)

    def _stop(self, campaign: int) -> None:
        with self._context.store() as store:
            record = store.campaign(campaign)
            if record.status != "running":
                raise UserError(f"campaign {campaign} is {record.status}: there is nothing to stop")
            job = job_of(self._context.jobs.all(), record)
            if job is not None:
                self._context.jobs.stop(job)
                return
            pid = _campaign_process(store, campaign)
        interrupt(pid)


def job_of(jobs: list[DashboardJob], record: CampaignRecord) -> DashboardJob | None:
    """Return the running job of this dashboard that runs a campaign; None if none does."""
    text = (record.options.get("subject") or {}).get("text")
    for job in jobs:
        if job.is_running and (
            (job.command.campaign == record.id and job.command.plain[0] == "resume")
            or (job.command.plain == ("run", text) and record.created >= job.started - 1)
        ):
            return job
    return None


def _campaign_process(store: Store, campaign: int) -> int:
    """Return the process of a campaign that was started outside the dashboard, on this machine."""
    workers = store.workers(campaign)
    local_pids = [worker.pid for worker in workers if worker.host == platform.node()]
    parents = {parent for pid in local_pids if (parent := campaign_process(pid)) is not None}
    if len(parents) == 1:
        return parents.pop()
    hosts = sorted({worker.host for worker in workers})
    known_hosts = f" (its workers are on {', '.join(hosts)})" if hosts else ""
    raise UserError(
        f"campaign {campaign} was not started here, and its process was not found{known_hosts}: "
        "press Ctrl-C where it runs"
    )
