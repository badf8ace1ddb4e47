"""Other mutation tools, each in a virtual environment of its own, on a copy of the same project.

Each is run at its best settings for two processes, for at most so many seconds; what it had judged
by then counts. A tool runs nothing but its own mutants: what is compared is verdicts per second of
CPU time, of all processes that it started.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "swarmtest" / "mutation"
PROJECT = """\
[project]
name = "red-black"
version = "1"

[tool.pytest.ini_options]
pythonpath = ["src"]
testpaths = ["tests"]

[tool.mutmut]
source_paths = ["src"]
"""
COSMIC_RAY = """\
[cosmic-ray]
module-path = "src/red_black.py"
timeout = 10.0
excluded-modules = []
test-command = "{python} -m pytest -x -q -p no:cacheprovider"

[cosmic-ray.distributor]
name = "local"
"""


class NotInstalled(Exception):
    """Why a tool cannot be measured here."""


@dataclass(frozen=True)
class Measured:
    """What a tool did."""

    tool: str
    mutants: int
    """Those with a verdict."""
    seconds: float
    """CPU time."""
    whole: bool
    """Whether it got to its end."""

    @property
    def rate(self) -> float:
        """Verdicts per second of CPU time."""
        return self.mutants / self.seconds


@dataclass(frozen=True)
class Peer:
    """A tool: what to install, how to run it, how to count its verdicts."""

    name: str
    requirements: tuple[str, ...]
    run: Callable[[Path, Path, float], tuple[int, Said]]
    """Directory of the environment's programs, project, seconds: how many verdicts it gave."""

    @property
    def programs(self) -> Path:
        return CACHE / self.name / "bin"

    @property
    def installed(self) -> bool:
        return (CACHE / self.name / "done").exists()

    def install(self) -> None:
        """Make its environment, unless it is there."""
        if self.installed:
            return
        place = CACHE / self.name
        shutil.rmtree(place, ignore_errors=True)
        venv.create(place)
        # Our own pip installs into it: it needs none, and compiles only what it imports.
        pip = [sys.executable, "-m", "pip", "--python", str(self.programs / "python"), "install"]
        done = subprocess.run(
            [*pip, "-q", "--no-compile", *self.requirements], capture_output=True, text=True
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise NotInstalled(f"{self.name} could not be installed: {last}")
        (place / "done").touch()

    def measure(self, seconds: float) -> Measured:
        """Run it on a fresh project."""
        with project() as place:
            before = _cpu()
            mutants, said = self.run(self.programs, place, seconds)
            return Measured(self.name, mutants, _cpu() - before + said.hidden, said.whole)


@contextlib.contextmanager
def project() -> Iterator[Path]:
    """The module and its suite, as a project in a directory of its own."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        for folder in ("src", "tests"):
            (place / folder).mkdir()
        shutil.copy(HERE / "red_black.py", place / "src")
        shutil.copy(HERE / "mutation_suite.py", place / "tests" / "test_red_black.py")
        (place / "pyproject.toml").write_text(PROJECT)
        yield place


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Said:
    """What a program printed, whether it ended in time, and CPU time that its end hides from us."""

    text: str
    whole: bool
    hidden: float


def _cpu_of_session(leader: int) -> float:
    """CPU time of the living processes of a session, and of those that they waited for."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _descendants(leader: int) -> list[int]:
    """Processes below one: some tools put their tests into sessions of their own."""
    below: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            below.setdefault(parent, []).append(int(stat.parent.name))
    found = [leader]
    for one in found:
        found += below.get(one, [])
    return found[1:]


def _call(command: list[object], place: Path, seconds: float, programs: Path) -> Said:
    """Run a program in a session of its own, for at most so long."""
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "200"}
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        whole, spent = False, 0.0
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not whole:
            spent = max(spent, _cpu_of_session(process.pid))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
                whole = True
        before = _cpu()
        left = _descendants(process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        return Said(output.read(), whole, 0.0 if whole else max(spent - (_cpu() - before), 0.0))


def _mutmut(programs: Path, place: Path, seconds: float, some: str = "") -> tuple[int, Said]:
    """`some`: a pattern for the names of mutants; without it, all."""
    command = [programs / "mutmut", "run", "--max-children", 2, *filter(None, [some])]
    said = _call(command, place, seconds, programs)
    found = re.findall(r"(\d+)/(\d+)  ", said.text)
    if not found and said.whole:
        raise RuntimeError(f"mutmut: {said.text[-500:]}")
    return (int(found[-1][0]) if found else 0), said


def _cosmic_ray(programs: Path, place: Path, seconds: float) -> tuple[int, Said]:
    (place / "cr.toml").write_text(COSMIC_RAY.format(python=programs / "python"))
    _call([programs / "cosmic-ray", "init", "cr.toml", "cr.sqlite"], place, seconds, programs)
    command = [programs / "cosmic-ray", "exec", "cr.toml", "cr.sqlite"]
    said = _call(command, place, seconds, programs)
    with contextlib.closing(sqlite3.connect(place / "cr.sqlite")) as session:
        (count,) = session.execute("select count(*) from work_results").fetchone()
    return count, said


def _universalmutator(programs: Path, place: Path, seconds: float) -> tuple[int, Said]:
    (place / "mutants").mkdir()
    make = [programs / "mutate", "src/red_black.py", "--mutantDir", "mutants"]
    _call(make, place, 20 * seconds, programs)
    test = f"{programs / 'python'} -m pytest -x -q -p no:cacheprovider"
    command = [programs / "analyze_mutants", "src/red_black.py", test]
    command += ["--mutantDir", "mutants", "--timeout", 10, "--seed", 1]
    said = _call(command, place, seconds, programs)
    files = [place / name for name in ("killed.txt", "notkilled.txt")]
    return sum(len(file.read_text().splitlines()) for file in files if file.exists()), said


def _gremlins(programs: Path, place: Path, seconds: float) -> tuple[int, Said]:
    command: list[object] = [programs / "python", "-m", "pytest", "--gremlins"]
    command += ["--gremlin-targets=src/red_black.py", "--gremlin-workers=2", "--gremlin-batch"]
    command += ["--gremlin-report=console"]
    said = _call(command, place, seconds, programs)
    found = re.search(r"\((\d+) gremlins", said.text)
    if found is None:
        raise RuntimeError(f"pytest-gremlins: {said.text[-500:]}")
    # It tells its verdicts at the end only: if that was not reached, all count, in its favour.
    return int(found[1]), said


PEERS = (
    # It looks into pytest's items, and those of pytest 9 are others.
    Peer("mutmut", ("mutmut==3.8.0", "pytest<9"), _mutmut),
    Peer("cosmic-ray", ("cosmic-ray", "pytest"), _cosmic_ray),
    Peer("universalmutator", ("universalmutator==1.14.1", "pytest"), _universalmutator),
    Peer("pytest-gremlins", ("pytest-gremlins==1.12.2", "pytest"), _gremlins),
)
QUICK_PEERS = (replace(PEERS[0], run=partial(_mutmut, some="*ǁcheck__mutmut_*")),)
"""The fastest of them, on the mutants of one method, of which none loops for ever."""
