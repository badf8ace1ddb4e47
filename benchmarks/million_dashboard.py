"""What the pages of a dashboard cost on a large campaign: `benchmarks/million.py` prints it.

A real server is started, and every page is asked for over HTTP. A page shows slow answers (roles,
growth, coverage) as soon as they were computed in the background, and never waits for them. So a
page has two figures: CPU seconds of the server from the request to the response, once the answers
are there, which is the least of some requests; and the CPU seconds that the answers took before
that, with the requests while they were computed.

`live_costs` asks for the pages of a campaign while 16 workers continue it, and listens to the
events that tell an open page to load itself again. CPU seconds of a page are then with whatever the
server does beside it.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import cannot_measure, cpu_seconds_of

PATIENCE = 300.0
"""Seconds to wait for the server or for an answer, on a machine that may be busy."""
_ROUNDS = 3


@dataclass(frozen=True)
class PageCost:
    """What a page took."""

    title: str
    cpu_seconds: float
    """To show it."""
    wall_seconds: float
    """Likewise."""
    answer_seconds: float
    """CPU seconds until its answers were there."""


def page_costs(swarmtest: str, store: Path, tests: int) -> list[PageCost]:
    """Ask for every page of the first campaign of a store."""
    with _server(swarmtest, store) as (address, pid):
        return [_cost(address, pid, *page) for page in _pages(address, tests)]


WORKERS = 16
_EVENTS = 3
"""Events with more tests than before that are waited for."""


@dataclass(frozen=True)
class LiveCosts:
    """What the pages took while a campaign ran, and what an open page was told."""

    pages: list[PageCost]
    events: int
    """Events about the campaign, each with more tests than the one before."""
    tests: int
    """By how many tests the campaign grew while its pages were asked for."""
    server_share: float
    """CPU seconds of the server for each second."""


def live_costs(
    swarmtest: str, store: Path, program: Path, tests: int, workers: int = WORKERS
) -> LiveCosts:
    """Continue the campaign of a store, and look at it meanwhile."""
    words = [swarmtest, "resume", "1", "-n", str(100 * tests), "-j", str(workers)]
    with _server(swarmtest, store) as (address, pid), (program / "resumed.txt").open("w") as log:
        events = _Events(address)
        campaign = subprocess.Popen(
            [*words, "--store", str(store)],
            cwd=program,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            seen = events.wait(_EVENTS, campaign)
            cpu, wall = cpu_seconds_of(pid), time.monotonic()
            pages = [
                PageCost(title, *_page_cost(address, pid, path), 0.0)
                for title, path in _pages(address, tests)
            ]
            seen = events.wait(len(seen) + _EVENTS, campaign)
            share = (cpu_seconds_of(pid) - cpu) / (time.monotonic() - wall)
        finally:
            campaign.send_signal(signal.SIGINT)
            campaign.wait(PATIENCE)
    return LiveCosts(pages, len(seen), seen[-1] - seen[0], share)


class _Events:
    """The events about a campaign, as an open page receives them."""

    def __init__(self, address: str) -> None:
        self._tests: list[int] = []
        self._stream = urllib.request.urlopen(address.rstrip("/") + "/events", timeout=PATIENCE)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._stream:
                event = json.loads(line[6:]) if line.startswith(b"data: ") else {}
                tests = event.get("tests", 0)
                if event.get("topic") == "campaign:1" and tests > (self._tests or [0])[-1]:
                    self._tests.append(tests)

    def wait(self, count: int, campaign: subprocess.Popen[bytes]) -> list[int]:
        """Wait for so many events; return the number of tests that each told."""
        deadline = time.monotonic() + PATIENCE
        while len(self._tests) < count:
            if campaign.poll() is not None:
                cannot_measure("the campaign ended while its pages were measured")
            if time.monotonic() > deadline:
                cannot_measure("the dashboard tells nothing about a campaign that runs")
            time.sleep(0.05)
        return list(self._tests)


def _pages(address: str, tests: int) -> Iterator[tuple[str, str]]:
    """Yield the title and the path of each page; faults and files are found in other pages."""
    campaign = "/campaigns/1"
    yield "campaigns", "/"
    yield "overview", campaign
    yield "faults", f"{campaign}/faults"
    faults = _links(address, f"{campaign}/faults", f"{campaign}/faults/")
    yield "the first fault", faults[0]
    yield "the last fault", faults[-1]
    yield "roles", f"{campaign}/roles"
    yield "source", f"{campaign}/source"
    yield "source of a file", _links(address, f"{campaign}/source", f"{campaign}/source/")[0]
    tried = f"{campaign}/configurations"
    yield "configurations", tried
    yield "configurations, in the middle", f"{tried}?before={tests // 2}"
    yield "configurations, invalid (none)", f"{tried}?verdict=invalid"
    yield "configurations of a rare fault", f"{tried}?fault={faults[-1].rpartition('/')[2]}"
    yield "a trial in the middle", f"{campaign}/trials/{tests // 2 + 17}"
    yield "the last trial", f"{campaign}/trials/{tests - 1}"
    yield "comparison", "/compare?c=1"
    yield "resources", "/resources"
    yield "commands", "/commands"


def _cost(address: str, pid: int, title: str, path: str) -> PageCost:
    before = cpu_seconds_of(pid)
    deadline = time.monotonic() + PATIENCE
    while "computing" in _text(address, path):
        if time.monotonic() > deadline:
            cannot_measure(f"the page {path} has no answer after {PATIENCE:.0f} s")
        time.sleep(0.1)
    answered = cpu_seconds_of(pid) - before
    return PageCost(title, *_page_cost(address, pid, path), answered)


def _page_cost(address: str, pid: int, path: str) -> tuple[float, float]:
    """Return the CPU and the wall time of a page, each the least of some requests."""
    rounds = []
    for _ in range(_ROUNDS):
        cpu, start = cpu_seconds_of(pid), time.monotonic()
        _text(address, path)
        rounds.append((cpu_seconds_of(pid) - cpu, time.monotonic() - start))
    return min(cpu for cpu, _ in rounds), min(wall for _, wall in rounds)


def _links(address: str, path: str, beginning: str) -> list[str]:
    """Return the links of a page that begin like this."""
    deadline = time.monotonic() + PATIENCE
    link = re.compile(rf'href="({re.escape(beginning)}[^"?#]+)"')
    while not (links := link.findall(_text(address, path))):
        if time.monotonic() > deadline:
            cannot_measure(f"the page {path} has no link to {beginning}...")
        time.sleep(0.1)
    return list(dict.fromkeys(links))


def _text(address: str, path: str) -> str:
    with urllib.request.urlopen(address.rstrip("/") + path, timeout=PATIENCE) as response:
        text: str = response.read().decode()
        return text


@contextmanager
def _server(swarmtest: str, store: Path) -> Iterator[tuple[str, int]]:
    """Serve a store; yield the address and the process."""
    words = [swarmtest, "dashboard", "--store", str(store), "--port", "0", "--no-token"]
    server = subprocess.Popen(
        [*words, "--read-only"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        found = re.search(r"http://\S+", line)
        if found is None:
            cannot_measure(f"the dashboard did not start: {line}")
        deadline = time.monotonic() + PATIENCE
        while not _answers(found[0]):
            if time.monotonic() > deadline:
                cannot_measure("the dashboard does not answer")
            time.sleep(0.05)
        yield found[0], server.pid
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _answers(address: str) -> bool:
    try:
        _text(address, "/commands")
    except OSError:
        return False
    return True
