"""Run a command on a hostile input, and judge how it ended.

Used by hostile.py. Every command is a real process in a directory of its own. Its environment has a
mark, which all processes that it starts inherit: those alive after it are orphans.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

SWARMTEST = (sys.executable, "-P", "-c", "from swarmtest.ui.cli import main; main()")
# -P: as for the installed program, the current directory is not on the path.
PATIENCE = 300.0
"""Seconds after which a command hangs: generous, because the machine may be busy."""
_SETTLE = 10.0
"""Seconds in which the last processes of a command may end by themselves."""
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal obeys, or what changes the order of text."""
_ON_TERMINAL = re.compile("\x1b\\]|\x9b|\x07|[\u202a-\u202e\u2066-\u2069]")
"""What is left of it on a terminal, where colours and progress are our own."""
_NO_TEXT = (".parquet", ".db", ".pdf", ".png", ".db-wal", ".db-shm", ".db-journal", ".pyc", ".py")
_INPUTS = "inputs"
"""The directory of `faults --inputs`: inputs of the program, which nobody may change."""
_marks = itertools.count()


@dataclass(frozen=True)
class Surroundings:
    """What a command finds around it."""

    env: Mapping[str, str | None] = field(default_factory=dict)
    """Variables to set, or, with None, to remove."""
    limits: Mapping[int, int] = field(default_factory=dict)
    """Resource limits, such as ``{resource.RLIMIT_NOFILE: 12}``."""
    stdout: str = ""
    """A file to write to; empty: a pipe that is read."""
    closed: tuple[int, ...] = ()
    """Descriptors that are closed."""
    terminal: bool = False
    """Whether output goes to a terminal."""


@dataclass(frozen=True)
class HostileInput:
    """One hostile thing and the command that meets it."""

    group: str
    name: str
    words: tuple[str, ...]
    prepare: Callable[[Path], None] = lambda place: None
    """Makes a directory, which has the files of an ordinary user, hostile."""
    surroundings: Surroundings = Surroundings()
    program: tuple[str, ...] = SWARMTEST
    works: bool = False
    """Whether nothing is hostile: then the command must not be refused, or it tests nothing."""
    trials: int = 0
    """How many trials the store must have afterwards; 0: not asked."""


@dataclass
class Outcome:
    """What a hostile input led to."""

    input: HostileInput
    traceback: str = ""
    hang: str = ""
    executed: str = ""
    escape: str = ""
    orphan: str = ""
    other_end: str = ""
    """It ended neither well nor with one line."""
    said: str = ""

    @property
    def problems(self) -> dict[str, str]:
        """What must not be, by the name of its figure."""
        return {
            "tracebacks": self.traceback,
            "hangs": self.hang,
            "executed": self.executed,
            "escapes": self.escape,
            "orphans": self.orphan,
            "other_ends": self.other_end,
        }


def attempt(each: HostileInput, template: Path) -> Outcome:
    """Run a command on a hostile input in a copy of a directory; return what came of it."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        top = Path(name)
        place = top / "place"
        shutil.copytree(template, place)
        markers = top / "markers"
        markers.mkdir()
        each.prepare(place)
        before = {path: path.stat().st_mtime_ns for path in _files(place)}
        outcome = _judge(each, place, top, markers)
        if not outcome.escape:
            written = [p for p in _files(place) if before.get(p) != p.stat().st_mtime_ns]
            outcome.escape = next(filter(None, map(escapes_of_file, written)), "")
        return outcome


def _judge(each: HostileInput, place: Path, top: Path, markers: Path) -> Outcome:
    outcome = Outcome(each)
    mark = f"{os.getpid()}-{next(_marks)}-"
    status, out, err = _run(each, place, top, mark, markers, outcome)
    outcome.said = f"{out[-600:]!r} {err[-1500:]!r}"
    if outcome.hang:
        return outcome
    outcome.orphan = _orphans(mark)
    outcome.executed = ", ".join(sorted(path.name for path in markers.iterdir()))
    # The debugger begins with the traceback of the program that failed.
    if "Traceback (most recent call last)" in err and "--pdb" not in each.words:
        frames = re.findall(r'File "(\S+)", line (\d+)', err)
        raised_at = ":".join(frames[-1]) if frames else ""
        outcome.traceback = f"{err.strip().splitlines()[-1][:200]} at {raised_at}"
    is_terminal = each.surroundings.terminal
    outcome.escape = next(
        filter(None, (escapes_of(text.replace("\r\n", "\n"), is_terminal) for text in (out, err))),
        "",
    )
    outcome.other_end = _other_end(each, status, err, place)
    return outcome


def _other_end(each: HostileInput, status: int, err: str, place: Path) -> str:
    """Return what is wrong with the end of a command; empty if nothing is."""
    if each.program is not SWARMTEST:
        return "" if status in range(6) else f"status {status}"
    if status not in (0, 1, 2):
        return f"status {status}"
    lines = [line for line in err.splitlines() if not line.startswith("swarmtest: note")]
    is_heard = 2 not in each.surroundings.closed and not each.surroundings.terminal
    if status == 2 and is_heard and not lines:
        return "status 2 without a reason"
    if status == 2 and len(lines) > 2:
        return f"{len(lines)} lines for a mistake"
    if each.works and status == 2:
        return f"refused, although nothing is hostile: {err.strip()[-200:]}"
    if each.trials and (counted := _count_trials(place)) != each.trials:
        return f"{counted} of {each.trials} trials stored"
    return ""


def _count_trials(place: Path) -> int:
    from swarmtest.store import open_store

    with open_store(str(place / "new.db"), read_only=True) as store:
        return int(store.summary(1)["trials"])


def _run(
    each: HostileInput, place: Path, top: Path, mark: str, markers: Path, outcome: Outcome
) -> tuple[int, str, str]:
    around = each.surroundings
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SWARMTEST", "PYTEST"))}
    env = kept | {
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "100",
        "SWARMTEST_WORKERS": "1",
        "XDG_CACHE_HOME": str(top / "cache"),
        "HOSTILE_MARK": mark,
        "HOSTILE_MARKERS": str(markers),
    }
    for key, value in around.env.items():
        if value is None:
            env.pop(key, None)
        else:
            env[key] = value
    if around.terminal:
        return _run_on_terminal(each, place, env, mark, outcome)
    # Files, not pipes: a process that is left behind would keep a pipe open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdout = open(around.stdout, "wb") if around.stdout else None  # noqa: SIM115
        process = subprocess.Popen(
            [*each.program, *each.words],
            cwd=place,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=stdout or out,
            stderr=err,
            preexec_fn=lambda: _surround(around),
            start_new_session=True,
        )
        if stdout:
            stdout.close()
        try:
            status = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            status = _give_up(process, mark, outcome)
        out.seek(0)
        err.seek(0)
        return status, _decoded(out.read()), _decoded(err.read())


def _give_up(process: subprocess.Popen[bytes], mark: str, outcome: Outcome) -> int:
    outcome.hang = f"alive after {PATIENCE:.0f} s"
    _end_marked(mark)
    process.kill()
    return process.wait()


def _run_on_terminal(
    each: HostileInput, place: Path, env: dict[str, str], mark: str, outcome: Outcome
) -> tuple[int, str, str]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*each.program, *each.words],
        cwd=place,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        text = _read_terminal(master, process)
    except subprocess.TimeoutExpired:
        return _give_up(process, mark, outcome), "", ""
    finally:
        os.close(master)
    return process.wait(), text, ""


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _read_terminal(master: int, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + PATIENCE
    text = b""
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            try:
                text += os.read(master, 65536)
            except OSError:  # the last process that had the terminal has ended
                return _decoded(text)
        elif process.poll() is not None:
            return _decoded(text)
    raise subprocess.TimeoutExpired(process.args, PATIENCE)


def _surround(around: Surroundings) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number, value in around.limits.items():
        resource.setrlimit(number, (value, value))
    for descriptor in around.closed:
        os.close(descriptor)


# What is alive.


def marked(mark: str) -> Iterator[tuple[int, str]]:
    """Yield the living processes that have a mark in their environment, with their commands."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and mark.encode() in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
                yield int(entry.name), command.replace("\0", " ")[-80:]


def _orphans(mark: str) -> str:
    """Return the processes that outlive their command, and end them."""
    deadline = time.monotonic() + _SETTLE
    while left := list(marked(mark)):
        if time.monotonic() > deadline:
            _end_marked(mark)
            return "; ".join(f"{pid} {command}" for pid, command in left)
        time.sleep(0.02)
    return ""


def _end_marked(mark: str) -> None:
    for _ in range(3):
        for pid, _command in list(marked(mark)):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


# What others receive.


def _files(place: Path) -> list[Path]:
    return [path for path in place.rglob("*") if path.is_file()]


def escapes_of(text: str, is_terminal: bool = False) -> str:
    """Return what a terminal would obey; empty if nothing is."""
    found = (_ON_TERMINAL if is_terminal else RAW).search(text)
    return ascii(text[max(found.start() - 30, 0) : found.end() + 30]) if found else ""


def escapes_of_file(path: Path) -> str:
    """Return what a terminal, a spreadsheet or a browser would obey in a file."""
    if path.suffix in _NO_TEXT or ".swarmtest" in path.parts or path.parent.name == _INPUTS:
        return ""
    data = path.read_bytes()
    if data.startswith(b"SQLite format 3\0"):  # a store, whatever it is called
        return ""
    text = _decoded(data)
    found = escapes_of(text.replace("\r\n", "\n"))  # the lines of a CSV file
    if found:
        return f"{path.name}: {found}"
    if path.suffix == ".csv":
        rows = csv.reader(io.StringIO(text, newline=""))
        return next((cell for row in rows for cell in row if re.match(r"\s*[=@]", cell)), "")
    return live_element(text) if path.suffix in (".html", ".svg") else ""


class _Elements(HTMLParser):
    """Looks for elements of a page that run code, as a browser sees them."""

    live = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            leads = name in ("href", "src") and (value or "").strip().lower().startswith(
                "javascript"
            )
            if tag == "img" or name.lower().startswith("on") or leads:
                self.live = f"<{tag} {name}={value!r}>"[:100]


def live_element(page: str) -> str:
    """Return an element that runs code of a store; empty if there is none."""
    elements = _Elements()
    elements.feed(page)
    elements.close()
    return elements.live
