"""The command line as a real process, and what it left in a store."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from swarmtest.core.targets import unpack_hits
from swarmtest.store import open_store
from swarmtest.store.records import unpack_counts

# Hypothesis and pytest behave otherwise where these are set (no example database, longer output).
# The tests show what a user sees at a desk, so they say themselves when they mean a CI machine.
for name in (
    "CI",
    "BUILD_NUMBER",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "CIRCLECI",
    "CIRRUS_CI",
    "BUILDKITE",
    "TF_BUILD",
    "TEAMCITY_VERSION",
    "CODEBUILD_BUILD_ID",
    "HEROKU_TEST_RUN_ID",
    "bamboo.buildKey",
    "__TOX_ENVIRONMENT_VARIABLE_ORIGINAL_CI",
):
    os.environ.pop(name, None)

# Where this is set, every process that a test starts compiles again what it imports, and pytest
# rewrites Hypothesis again in each of its runs: a second of CPU time for every pytest in a test.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# As in an environment that is activated: `python3` of a program under test is this Python. It may
# be a shell script elsewhere (pyenv's), which takes ten times as long to start.
os.environ["PATH"] = os.pathsep.join(
    [os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
)

# What somebody wants this run to print is not for the pytest that tests start.
os.environ.pop("PYTEST_ADDOPTS", None)

# Without this an example that takes more than 0.2 s fails, and examples that are made slowly, too.
# The parent is named, because Hypothesis was imported before the variables above were removed.
settings.register_profile(
    "any load",
    settings.get_profile("default"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any load")

# -P: as for the installed program, the current directory is not on the path.
SWARMTEST = [sys.executable, "-P", "-c", "from swarmtest.ui.cli import main; main()"]
PATIENCE = 180.0
"""Seconds after which a command that should have ended counts as hanging."""


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SWARMTEST", "PYTEST"))}
    # One worker, where a test does not ask for more: results are the same, and it starts sooner.
    usual = {"PYTHONUNBUFFERED": "1", "COLUMNS": "100", "SWARMTEST_WORKERS": "1"}
    return kept | usual | more


def marked_processes(mark: str) -> list[int]:
    """The living processes whose environment has a mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def pytest_configure() -> None:
    """Let tests, and what they start, hear Ctrl-C even where a shell started us to ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def hear_interrupts() -> None:
    """Shells let what they start in the background ignore Ctrl-C, and all that it starts, too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def no_program_of_a_test_stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test has written and imported is forgotten: others have modules of that name, too."""
    before = set(sys.modules)
    yield
    written = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(written):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def no_surroundings_of_a_test_stay() -> Iterator[None]:
    """Fail the test that leaves the process in other surroundings, not one that comes later.

    They are what a derived machine changes: the directory, the home, and the ban on other hosts.
    """
    before = _surroundings()
    yield
    after = _surroundings()
    for restore, found, left in zip(_RESTORE, before, after, strict=True):
        if found != left:
            restore(found)
    assert after == before


def _surroundings() -> tuple[Any, ...]:
    own = vars(socket.socket)
    variables = {name: os.environ.get(name) for name in ("HOME", "TMPDIR")}
    return os.getcwd(), variables, own.get("connect"), socket.getaddrinfo


def _set_variables(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _set_connect(method: Any) -> None:
    if method is None:
        del socket.socket.connect
    else:
        socket.socket.connect = method  # type: ignore[method-assign]


_RESTORE: tuple[Callable[[Any], object], ...] = (
    os.chdir,
    _set_variables,
    _set_connect,
    lambda look_up: setattr(socket, "getaddrinfo", look_up),
)


_started: list[subprocess.Popen[str]] = []
"""The commands that tests and their fixtures have started, until they are ended."""


def end_all_but_the_first(count: int) -> None:
    """End the commands that were started last, with everything that they started."""
    while len(_started) > count:
        process = _started.pop()
        end_family(process)
        process.communicate()


@pytest.fixture(autouse=True)
def no_command_of_a_test_stays() -> Iterator[None]:
    """End what a test has started: twenty dashboards that wait take a tenth of a core."""
    before = len(_started)  # those of fixtures that several tests share
    yield
    end_all_but_the_first(before)


@pytest.fixture(scope="session")
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `swarmtest` without waiting for it; `process.mark` marks it and all it starts."""
    numbers = itertools.count()

    def begin(*arguments: object, cwd: Path, **env: str) -> subprocess.Popen[str]:
        mark = f"{os.getpid()}-{next(numbers)}-"
        process = subprocess.Popen(
            [*SWARMTEST, *map(str, arguments)],
            cwd=cwd,
            env=environment(TEST_MARK=mark, **env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_interrupts,
        )
        process.mark = f"TEST_MARK={mark}"  # type: ignore[attr-defined]
        _started.append(process)
        return process

    yield begin
    end_all_but_the_first(0)


def end_family(process: subprocess.Popen[str]) -> None:
    """End a command and everything that it started."""
    mark: str = process.mark  # type: ignore[attr-defined]
    for pid in marked_processes(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


SERVER = """
import json, os, sys
import swarmtest.ui.cli
for name in swarmtest.ui.cli.COMMANDS:
    swarmtest.ui.cli.group.get_command(None, name)
for line in sys.stdin:
    order = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for fd in (1, 2):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(order["files"][fd - 1], flags), fd)
        sys.argv[1:] = order["arguments"]
        status = 1
        try:
            swarmtest.ui.cli.main()
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            try:
                sys.stdout.flush()
            finally:
                os._exit(status)
    print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])), flush=True)
"""
"""Forks a process per command from one that has imported swarmtest: saves the time to start."""


@pytest.fixture(scope="session")
def swarmtest(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Run `swarmtest` to its end, in a process of its own."""
    place = tmp_path_factory.mktemp("output")
    server = subprocess.Popen(
        [sys.executable, "-P", "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert server.stdin
    assert server.stdout
    answers = server.stdout
    numbers = itertools.count()

    def run(
        *arguments: object, cwd: Path, patience: float = PATIENCE, **env: str
    ) -> subprocess.CompletedProcess[str]:
        mark = f"{os.getpid()}-run-{next(numbers)}-"
        files = [place / f"{mark}{name}" for name in ("out", "err")]
        order = {
            "arguments": [*map(str, arguments)],
            "cwd": str(cwd),
            "env": environment(TEST_MARK=mark, **env),
            "files": [*map(str, files)],
        }
        print(json.dumps(order), file=server.stdin, flush=True)
        ended = bool(select.select([answers], [], [], patience)[0])
        if not ended:
            child = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            for pid in [*map(int, child), *marked_processes(f"TEST_MARK={mark}")]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        status = json.loads(answers.readline())
        out, err = (file.read_text(errors="replace") for file in files)
        if not ended:
            pytest.fail(f"swarmtest {arguments} still ran after {patience} s\n{out}\n{err}")
        return subprocess.CompletedProcess([*map(str, arguments)], status, out, err)

    yield run
    server.communicate()


@pytest.fixture(scope="session")
def refused() -> Callable[..., str]:
    """The one line that a command printed when it refused its input."""

    def line(done: subprocess.CompletedProcess[str], *words: str) -> str:
        assert "Traceback" not in done.stderr, done.stderr
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("swarmtest: "), lines[0]
        assert done.returncode == 2, (done.returncode, lines)
        for word in words:
            assert word in lines[0], lines[0]
        return lines[0]

    return line


@pytest.fixture(scope="session")
def rows() -> Callable[..., list[dict[str, Any]]]:
    """Everything of a campaign's trials that must not depend on time or on workers."""

    def read(store: Path | str, campaign: int = 1) -> list[dict[str, Any]]:
        with open_store(str(store), must_exist=True) as opened:
            names = opened.targets()
            return [
                {
                    "trial": t.trial,
                    "configuration": t.configuration,
                    "propensities": t.propensities,
                    "origin": t.origin,
                    "seed": t.seed,
                    "verdict": t.verdict,
                    "fault": t.fault,
                    "steps": t.steps,
                    "skipped": t.skipped,
                    "used": unpack_counts(t.used),
                    "hits": sorted(str(names[i]) for i in unpack_hits(t.hits)) if t.hits else [],
                }
                for t in opened.trials(campaign)
            ]

    return read


@pytest.fixture(scope="session")
def until() -> Callable[..., Any]:
    """Wait until a condition holds, or fail."""

    def wait(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            answer = condition()
            if answer:
                return answer
            time.sleep(0.02)
        return pytest.fail(f"{what}: not within {seconds} s")

    return wait


@pytest.fixture(scope="session")
def family() -> Callable[[subprocess.Popen[str]], list[int]]:
    """The living processes of a campaign: itself, its hosts, their children and what those left."""
    return lambda process: marked_processes(process.mark)  # type: ignore[attr-defined]
