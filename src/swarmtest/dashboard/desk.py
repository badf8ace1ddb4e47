"""Everything that the pages of one dashboard share."""

from __future__ import annotations

import datetime
import shlex
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse

from swarmtest.dashboard.computing import Computing
from swarmtest.dashboard.jobs import Jobs
from swarmtest.dashboard.live import Live
from swarmtest.dashboard.machine import Machine
from swarmtest.dashboard.settings import Settings
from swarmtest.dashboard.watching import Watch
from swarmtest.errors import UserError
from swarmtest.report.quantities import duration
from swarmtest.report.templating import environment
from swarmtest.report.terminal import command_text
from swarmtest.store import Store, open_store

_THEMES = ("light", "dark")


class StoreProblem(UserError):
    """The store cannot be read now; perhaps later."""


class Desk:
    """The store, those who watch and compute, and the templates."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.live = Live()
        self.watch = Watch(self.store, self.live, settings.seconds)
        self.computing = Computing(self.store, self.live)
        self.machine = Machine()
        self.jobs = Jobs(self.live, self._named_store)

    def store(self) -> Store:
        """A store for one request, for a store belongs to one thread."""
        try:
            return open_store(self.settings.store, must_exist=True, read_only=True)
        except UserError as error:
            raise StoreProblem(str(error)) from error

    @cached_property
    def store_name(self) -> str:
        """The store as a person may see it: without a password."""
        with self.store() as store:
            return store.url

    def _named_store(self) -> tuple[str, str]:
        return self.settings.store or self.store_name, self.store_name

    def begin(self) -> None:
        """From the loop that serves."""
        self.live.begin()
        self.watch.begin()

    def close(self) -> None:
        """End all that was begun."""
        self.live.close()
        self.watch.close()
        self.jobs.close()
        self.computing.close()

    def page(
        self, request: Request, template: str, status: int = 200, /, **values: Any
    ) -> HTMLResponse:
        """A template with what all of them need."""
        chosen = request.cookies.get("swarmtest_theme", "")
        html = self._templates.get_template(template).render(
            **values,
            path=request.url.path,
            csrf=request.state.csrf,
            theme=chosen if chosen in _THEMES else "",
            read_only=self.settings.read_only,
            store_name=self.store_name,
            jobs_running=sum(job.is_running for job in self.jobs.all()),
        )
        return HTMLResponse(html, status)

    @cached_property
    def _templates(self) -> Environment:
        made = environment("swarmtest.dashboard")
        made.filters |= _FILTERS
        made.filters["shell"] = lambda words: command_text(words, self.store_name)
        return made


def when(seconds: float) -> str:
    """A moment, by the clock of this machine."""
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def ago(seconds: float) -> str:
    """How long ago a moment was.

    >>> ago(time.time() - 150)
    '2 min ago'
    """
    return f"{span(max(time.time() - seconds, 0))} ago"


def span(seconds: float) -> str:
    """A duration in words, roughly.

    >>> span(0.2), span(59), span(150), span(7300), span(200_000)
    ('0 s', '59 s', '2 min', '2 h', '2 days')
    """
    for size, word in ((86400, " days"), (3600, " h"), (60, " min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f}{word}"
    return f"{seconds:.0f} s"


def size(count: float) -> str:
    """Bytes.

    >>> size(3_400_000)
    '3.4 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


_FILTERS: Mapping[str, Any] = {
    "when": when,
    "ago": ago,
    "span": span,
    "size": size,
    "duration": duration,
    "count": lambda value: f"{value:,}",
    "quote": shlex.quote,
}
