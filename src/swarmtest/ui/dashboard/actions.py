"""The actions of the dashboard: start, stop, resume, focus and reduce.

All but stopping run a command of swarmtest, as a job.
"""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swarmtest.core.errors import UserError
from swarmtest.processes.tree import interrupt
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.ui.dashboard.commands import (
    CommandLine,
    DashboardJob,
    Form,
    focus_command,
    reduce_command,
    resume_command,
    run_command,
)
from swarmtest.ui.dashboard.context import AccessGuard, DashboardContext
from swarmtest.ui.dashboard.system import campaign_process

Make = Callable[[CampaignRecord, Form], CommandLine]
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

    def _run(self, command: CommandLine) -> Response:
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
