"""What can be done from a page: start, stop, resume, focus, reduce. Each is a command."""

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
    Command,
    Form,
    Job,
    focus_command,
    reduce_command,
    resume_command,
    run_command,
)
from swarmtest.ui.dashboard.context import Desk, Guard
from swarmtest.ui.dashboard.system import campaign_process

Make = Callable[[CampaignRecord, Form], Command]
Answer = Callable[[Request], Awaitable[Response]]
ABOUT: dict[str, Make] = {
    "resume": resume_command,
    "focus": focus_command,
    "reduce": reduce_command,
}
"""What can be done with a campaign, by the last word of the address."""


_MOST_FIELDS = 50
"""Of a form: ours have far fewer."""


class Actions:
    """Only reached by a POST that the guard has let through."""

    def __init__(self, desk: Desk, guard: Guard) -> None:
        self._desk = desk
        self._guard = guard

    async def start(self, request: Request) -> Response:
        """A new campaign."""
        form = await self._form(request)
        return await run_in_threadpool(self._run, run_command(form))

    def about(self, make: Make) -> Answer:
        """Resume, focus or reduce."""

        async def answer(request: Request) -> Response:
            form = await self._form(request)
            campaign = int(request.path_params["campaign"])
            return await run_in_threadpool(self._about, campaign, form, make)

        return answer

    async def stop_campaign(self, request: Request) -> Response:
        """End a campaign as Ctrl-C would."""
        await self._form(request)
        campaign = int(request.path_params["campaign"])
        await run_in_threadpool(self._stop, campaign)
        return RedirectResponse(f"/campaigns/{campaign}", 303)

    async def stop_job(self, request: Request) -> Response:
        """End a command as Ctrl-C would."""
        await self._form(request)
        job = self._desk.jobs.get(int(request.path_params["job"]))
        if job is None:
            raise UserError("there is no such command")
        self._desk.jobs.stop(job)
        return RedirectResponse(f"/commands/{job.number}", 303)

    async def _form(self, request: Request) -> Form:
        """What was posted, if our own page posted it."""
        body = (await request.body()).decode("utf-8", "replace")
        try:
            told = parse_qs(body, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise UserError(f"a form of at most {_MOST_FIELDS} fields is expected") from None
        form = {name: values[0] for name, values in told.items()}
        if not self._guard.is_from_us(form.get("csrf", "")):
            raise PermissionError("this form is not of this dashboard: load the page again")
        return form

    def _about(self, campaign: int, form: Form, make: Make) -> Response:
        with self._desk.store() as store:
            record = store.campaign(campaign)
        return self._run(make(record, form))

    def _run(self, command: Command) -> Response:
        job = self._desk.jobs.start(command)
        return RedirectResponse(f"/commands/{job.number}", 303)

    def _stop(self, campaign: int) -> None:
        with self._desk.store() as store:
            record = store.campaign(campaign)
            if record.status != "running":
                raise UserError(f"campaign {campaign} is {record.status}: there is nothing to stop")
            job = job_of(self._desk.jobs.all(), record)
            if job is not None:
                self._desk.jobs.stop(job)
                return
            pid = _campaign_process(store, campaign)
        interrupt(pid)


def job_of(jobs: list[Job], record: CampaignRecord) -> Job | None:
    """The command of this dashboard that runs a campaign, if one does."""
    text = (record.options.get("subject") or {}).get("text")
    for job in jobs:
        if job.is_running and (
            (job.command.campaign == record.id and job.command.plain[0] == "resume")
            or (job.command.plain == ("run", text) and record.created >= job.started - 1)
        ):
            return job
    return None


def _campaign_process(store: Store, campaign: int) -> int:
    """The process of a campaign that somebody else has started on this machine."""
    workers = store.workers(campaign)
    here = [one.pid for one in workers if one.host == platform.node()]
    found = {parent for pid in here if (parent := campaign_process(pid)) is not None}
    if len(found) == 1:
        return found.pop()
    where = sorted({one.host for one in workers})
    told = f" (its workers are on {', '.join(where)})" if where else ""
    raise UserError(
        f"campaign {campaign} was not started here, and its process is not known{told}: "
        "press Ctrl-C where it runs"
    )
