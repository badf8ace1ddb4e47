"""Real campaigns, a real server, and a real browser that looks at them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

PROGRAMS = Path(__file__).parents[1] / "report" / "programs"
CHROMIUM = shutil.which("chromium")
Start = Callable[..., subprocess.Popen[str]]

COUNTER = """
import threading

class Counter:
    def __init__(self):
        self.value = 0

    def add(self):
        value = self.value
        self.value = value + 1

def count_to_two():
    counter = Counter()
    threads = [threading.Thread(target=counter.add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 2, counter.value
"""
HILL = """
from swarmtest import Choice, Integer, Test
from swarmtest.search import Search, SearchSpace

def climb(height, wind):
    seen = height * (2 if wind == "calm" else 1)
    return {"seen": seen, "hits": [f"step {n}" for n in range(height)]}

dimensions = [Integer("height", 1, 6), Choice("wind", ["calm", "storm"]), Test("test", ["climb"])]
Search(SearchSpace(dimensions, {"climb": climb}), "sequential").run()
"""
# Slow enough to be watched, whatever the machine.
SLOW = """
import time
from swarmtest import Machine, action

class Slow(Machine):
    steps = 5

    def start(self):
        self.n = 0

    @action
    def step(self):
        self.n += 1
        time.sleep(0.004)
        assert self.n < 5, "five steps"

    @action
    def rest(self):
        self.n = 0
"""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, swarmtest: Any) -> Path:
    """Campaigns 1 and 2: coin and all-on, with coverage. 3: hostile. 4: a race. 5: a search."""
    place = tmp_path_factory.mktemp("site")
    for program in PROGRAMS.glob("*.py"):
        shutil.copy(program, place)
    (place / "counter.py").write_text(COUNTER)
    (place / "slow.py").write_text(SLOW)
    (place / "hill.py").write_text(HILL)
    for words in (
        "fs_machine.py --tests 300 --coverage line,branch --strategy coin",
        "fs_machine.py --tests 300 --coverage line,branch --strategy all-on",
        "hostile.py --tests 200 --coverage line,path --strategy coin",
    ):
        done = swarmtest("run", *words.split(), "--no-reduce", "-q", "-j", 1, cwd=place)
        assert done.returncode == 1, done.stderr
    done = swarmtest("race", "counter.py::count_to_two", "-n", 60, "--control", cwd=place)
    assert done.returncode == 1, done.stderr
    subprocess.run([sys.executable, "hill.py"], cwd=place, check=True, timeout=60)
    return place


TOKENS: dict[str, str] = {}
"""The tokens of dashboards by their address without the last slash."""


class Served(str):
    """The address of a dashboard, which also knows how much its server has worked."""

    pid: int
    entry: Path | None = None
    """The file that has the address with the token."""
    token: str = ""

    @contextlib.contextmanager
    def admitted(self) -> Iterator[httpx.Client]:
        """Ask it without a browser, with the cookie that the token gives."""
        with httpx.Client(base_url=self, timeout=60) as client:
            if self.token:
                assert client.get("/", params={"token": self.token}).status_code == 303
            yield client

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


_servers: list[tuple[subprocess.Popen[str], str]] = []
"""The dashboards that run, with their addresses."""


def end_servers_but_the_first(count: int) -> None:
    """End the dashboards that were started last, as by Ctrl-C: they say nothing."""
    servers = _servers[count:]
    del _servers[count:]
    for server, address in servers:
        if server.poll() is None:
            httpx.get(address, timeout=60)  # one that still starts says that it was interrupted
        server.send_signal(signal.SIGINT)
    for server, _ in servers:
        out, err = server.communicate(timeout=60)
        assert (server.returncode, err) == (0, ""), (out, err)


@pytest.fixture(autouse=True)
def no_server_of_a_test_stays() -> Iterator[None]:
    """End the dashboards that only this test has asked."""
    before = len(_servers)  # those of fixtures that several tests share
    yield
    end_servers_but_the_first(before)


@pytest.fixture(scope="session")
def serve(start: Start) -> Iterator[Callable[..., Served]]:
    """Serve a directory's store; gives the address. Servers end as by Ctrl-C."""

    def begin(place: Path, *words: object, **env: str) -> Served:
        server = start("dashboard", "--port", 0, *words, cwd=place, **env)
        assert server.stdout
        line = server.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, (line, server.stderr and server.poll() is not None and server.stderr.read())
        _servers.append((server, found[0]))
        served = Served(found[0])
        served.pid = server.pid
        entry = re.search(r"which only you can read: (\S+)", server.stdout.readline())
        if entry:
            served.entry = Path(entry[1])
            token = re.search(r"\?token=([\w-]+)", served.entry.read_text())
            assert token
            served.token = token[1]
        TOKENS[served.rstrip("/")] = served.token
        return served

    yield begin
    end_servers_but_the_first(0)


@pytest.fixture(scope="session")
def dashboard(site: Path, serve: Callable[..., Served]) -> Served:
    """A dashboard from which campaigns can be started."""
    return serve(site)


@pytest.fixture(scope="session")
def address(dashboard: Served) -> str:
    """Its address."""
    return dashboard.rstrip("/")


@pytest.fixture(scope="session")
def client(dashboard: Served) -> Iterator[httpx.Client]:
    """Asks it without a browser."""
    with dashboard.admitted() as client:
        yield client


@pytest.fixture
def csrf(client: httpx.Client) -> str:
    """What its own pages send along."""
    found = re.search(r'name="csrf" value="([^"]+)"', client.get("/").text)
    assert found
    return found[1]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests."""
    if not CHROMIUM:
        pytest.skip("needs a browser: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as run:
        browser = run.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


class Visitor:
    """A page, what it complained about, and what tests ask of it."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.entered = False
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))

    def go(self, path: str) -> Any:
        """Load a page, and wait until it is live and nothing is being computed."""
        self.enter()
        self.page.goto(self.address + path)
        self.page.locator("#live.on").wait_for()
        self.page.locator(".computing").first.wait_for(state="detached", timeout=60_000)
        return self.page

    def enter(self) -> None:
        """Open the address with the token, once."""
        if not self.entered and TOKENS.get(self.address):
            self.page.goto(f"{self.address}/?token={TOKENS[self.address]}")
        self.entered = True

    @property
    def is_too_wide(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))


@pytest.fixture
def visit(chromium: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., Visitor]]:
    """A new visitor; none may have had a reason to complain."""
    contexts, visitors = [], []

    def begin(at: str = "", **options: Any) -> Visitor:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 860}} | options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        at = at or request.getfixturevalue("address")
        visitors.append(Visitor(context.new_page(), at))
        return visitors[-1]

    yield begin
    for context in contexts:
        context.close()
    assert [visitor.complaints for visitor in visitors] == [[] for _ in visitors]
