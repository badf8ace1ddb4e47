"""The pages about this machine, and about the commands that were started here."""

from __future__ import annotations

import platform

from starlette.requests import Request
from starlette.responses import Response

from swarmtest.dashboard.desk import Desk
from swarmtest.dashboard.machine import (
    Load,
    Process,
    campaign_process,
    disk_share,
    is_swarmtest,
)
from swarmtest.dashboard.sparkline import sparkline
from swarmtest.errors import UserError

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
