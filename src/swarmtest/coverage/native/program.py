"""A native program under test: one input in, one `Run` out, with what it reached."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.messages.crashes import recognise
from swarmtest.core.result import Fault
from swarmtest.core.targets import Catalogue, Hits
from swarmtest.coverage.native.collector import Collected, Collector, HitFile, Lines, NoCoverage
from swarmtest.coverage.native.fast import FastCoverage, ForkServer, has_runtime
from swarmtest.coverage.native.gcov import GcovCoverage, has_counters
from swarmtest.processes.commands import Command, Ended

# -------------------------------------------------------------------------------------------------
# What came of running a native program on one input.

_TELLING = ("sanitizers", "assert", "glibc", "c++")
"""What is looked for in what a program printed."""
_LONGEST_DETAILS = 20_000


@dataclass(frozen=True)
class Run:
    """One run: how it ended, what it printed, and what it reached.

    >>> run = Run(status=None, signal=11)
    >>> run.fault().signature
    'SIGSEGV'
    """

    status: int | None
    """The exit status; None when a signal ended it."""
    signal: int = 0
    """The signal that ended it; 0 when it exited by itself."""
    timed_out: bool = False
    stdout: bytes = b""
    """The first MiB."""
    stderr: bytes = b""
    """The first MiB."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    hits: Hits | None = None
    """What it reached; None when that is not known, which is not the same as nothing."""
    missing: str = ""
    """Why coverage is missing (or, beside hits, partial); empty when it is all there."""

    def fault(self) -> Fault | None:
        """The fault that it showed: a time limit, a signal, or a sanitizer's complaint.

        An exit status alone is no fault: a compiler that rejects its input exits with 1.
        """
        errors = self.stderr.decode(errors="replace")
        known = recognise(errors, _TELLING)
        told = known.signature if known else ""
        if self.timed_out:
            return Fault("timeout", "timeout", errors[-_LONGEST_DETAILS:])
        if self.signal:
            words = [_signal_name(self.signal), *filter(None, [told])]
            return Fault("signal", ": ".join(words), errors[-_LONGEST_DETAILS:])
        if told:
            return Fault("exit", told, errors[-_LONGEST_DETAILS:])
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


# -------------------------------------------------------------------------------------------------
# Everything that one process needs to run a native program again and again.
#
# A session belongs to the process that made it: its shared memory, its directory and its fork
# server
# are never used by two. `Program` makes a new one after a fork.

FOREVER = 1e9


@dataclass(frozen=True)
class Settings:
    """How a program is run; `Program` explains each."""

    command: tuple[str, ...]
    coverage: str
    fork_server: bool = False
    persistent: int = 0
    timeout: float = 10.0
    memory: int = 0
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    suffix: str = ""
    objects: Path | None = None


class Session:
    """Runs tests, one after another, for one process."""

    def __init__(self, settings: Settings, lines: Lines, directory: Path) -> None:
        self._settings = settings
        self._directory = directory
        directory.mkdir(exist_ok=True)
        self.collector = _collector(settings, lines, directory)
        self._input = _Input(settings, directory)
        memory = settings.memory and settings.memory + self.collector.extra_memory
        self._command = Command(
            tuple(word.replace("{test}", self._input.path) for word in settings.command),
            {**os.environ, **(settings.env or {}), **self.collector.environment},
            settings.cwd,
            memory,
        )
        self._server = self._fork_server() if settings.fork_server else None

    def run(self, data: bytes, arguments: Sequence[str]) -> tuple[Ended, Collected]:
        """One test."""
        self._input.write(data)
        seconds = self._settings.timeout or FOREVER
        if self._server is not None:
            if arguments:
                raise UserError(
                    "a fork server has one command line: pass arguments= with fork_server=False"
                )
            ended = self._server.run(seconds)
        else:
            words = (word.replace("{test}", self._input.path) for word in arguments)
            command = replace(self._command, arguments=(*self._command.arguments, *words))
            ended = command.run(self._input.file, seconds)
        return ended, self.collector.collect(ended)

    def _fork_server(self) -> ForkServer:
        collector = self.collector
        if isinstance(collector, FastCoverage):
            before, after = collector.starting_server, collector.started_server
        elif isinstance(collector, NoCoverage):
            before = after = _nothing
        else:
            raise UserError("a fork server needs a program built with `swarmtest cc`")
        per_process = self._settings.persistent
        return ForkServer(self._command, self._input.file, per_process, before, after)

    def abandon(self) -> None:
        """In a forked process: let go of what belongs to the parent."""
        self._input.close()
        if self._server is not None:
            self._server.abandon()
        if isinstance(self.collector, FastCoverage):
            self.collector.close()

    def close(self) -> None:
        """End the fork server and remove what was made."""
        if self._server is not None:
            self._server.close()
        self._input.close()
        self.collector.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class _Input:
    """Where the program finds its input: a file, or a standard input that never blocks."""

    def __init__(self, settings: Settings, directory: Path) -> None:
        self.path = str(directory / f"test{settings.suffix}")
        self._named = any("{test}" in word for word in settings.command)
        if self._named:
            self.file = os.open(os.devnull, os.O_RDONLY)
        else:
            self.file = os.memfd_create("swarmtest-input")

    def write(self, data: bytes) -> None:
        if self._named:
            Path(self.path).write_bytes(data)
        else:
            # The program's standard input is this very file, position included.
            os.ftruncate(self.file, 0)
            os.lseek(self.file, 0, os.SEEK_SET)
            left = memoryview(data)
            while left:
                left = left[os.write(self.file, left) :]
            os.lseek(self.file, 0, os.SEEK_SET)

    def close(self) -> None:
        os.close(self.file)


def _collector(settings: Settings, lines: Lines, directory: Path) -> Collector:
    program = settings.command[0]
    if settings.coverage == "fast":
        return FastCoverage(program, lines)
    if settings.coverage == "gcov":
        return GcovCoverage(program, lines, directory / "gcov", settings.objects)
    if settings.coverage in ("hits", "lcov"):
        lcov = settings.coverage == "lcov"
        return HitFile(program, lines, directory / "hits", lcov=lcov)
    return NoCoverage()


def _nothing() -> None:
    pass


# -------------------------------------------------------------------------------------------------

COVERAGE = ("auto", "fast", "gcov", "hits", "lcov", "none")


class Program:
    """Runs a program on one input after another, and says what each reached.

    `command`: its words; ``{test}`` in a word stands for a file that holds the input (named with
    `suffix`); without it the input comes on standard input.
    `coverage`: how hits are collected; ``auto`` looks at how the program was built.
    `sources`: the files, directories or patterns whose lines are targets; default: all but the
    system's headers.
    `fork_server`: start the program once and fork it for every test.
    `persistent`: with a fork server, tests that one process runs in its `swarmtest_next` loop.
    `timeout`: seconds of wall time for a test; 0: no limit. `memory`: bytes of address space.
    `env`: variables set for the program. `cwd`: the directory it runs in.
    `objects`: where gcov's `.gcno` files are, if the build tree was moved.

    It can be used in a forked process, which then has a fork server and memory of its own; not in
    two threads at once.

    >>> with Program(["cat"], coverage="none") as cat:
    ...     cat.run(b"hello").stdout
    b'hello'
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        coverage: str = "auto",
        sources: Iterable[str | Path] | None = None,
        fork_server: bool = False,
        persistent: int = 0,
        timeout: float = 10.0,
        memory: int = 0,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        suffix: str = "",
        objects: str | Path | None = None,
    ) -> None:
        if sys.platform != "linux":
            raise UserError("native programs can be tested on Linux only")
        if coverage not in COVERAGE:
            raise UserError(f"no such coverage: {coverage!r}{did_you_mean(coverage, COVERAGE)}")
        executable, *words = map(str, command) if command else [""]
        program = find_program(executable, str(cwd or ""))
        self._settings = Settings(
            (program, *words),
            _detect(program) if coverage == "auto" else coverage,
            fork_server or persistent > 0,
            persistent,
            timeout,
            memory,
            env,
            str(cwd) if cwd else None,
            suffix,
            Path(objects) if objects else None,
        )
        self.catalogue = Catalogue()
        """All targets: those of code that was never reached too, from the first run on."""
        self._lines = Lines(self.catalogue, sources)
        self._directory = Path(tempfile.mkdtemp(prefix="swarmtest-"))
        self._remove = weakref.finalize(self, _remove, self._directory, os.getpid())
        self._session: Session | None = None
        self._owner = 0

    @property
    def coverage(self) -> str:
        """How hits are collected: what ``auto`` found."""
        return self._settings.coverage

    def run(self, data: bytes, arguments: Sequence[str] = ()) -> Run:
        """Run the program on one input, with more words at the end of its command."""
        if not self._remove.alive:
            raise UserError("this Program was closed: run it inside its `with` block")
        ended, collected = self._own_session().run(data, arguments)
        return Run(
            None if ended.signal else os.WEXITSTATUS(ended.status),
            ended.signal,
            ended.timed_out,
            ended.stdout,
            ended.stderr,
            ended.cpu_seconds,
            ended.wall_seconds,
            collected.hits,
            collected.missing,
        )

    def _own_session(self) -> Session:
        """This process's session: one from before a fork is the parent's."""
        if self._session is not None and self._owner != os.getpid():
            self._session.abandon()
            self._session = None
        if self._session is None:
            self._owner = os.getpid()
            place = self._directory / str(self._owner)
            self._session = Session(self._settings, self._lines, place)
        return self._session

    def close(self) -> None:
        """End what this process started for the program, and remove its files."""
        if self._session is not None and self._owner == os.getpid():
            self._session.close()
            self._session = None
        self._remove()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _remove(directory: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def find_program(executable: str, directory: str) -> str:
    """The path of an executable, found as a shell would, in the directory it will run in.

    >>> find_program("sh", "") == shutil.which("sh")
    True
    """
    if os.sep in executable:
        path = os.path.join(os.path.abspath(directory), executable)
        found = path if os.access(path, os.X_OK) and os.path.isfile(path) else None
    else:
        found = shutil.which(executable)
    if found is None:
        raise UserError(f"no program {executable!r}: command has to begin with an executable")
    return os.path.abspath(found)


def _detect(program: str) -> str:
    if has_runtime(program):
        return "fast"
    if has_counters(program):
        return "gcov"
    raise UserError(
        f"{program} was built without coverage: build it with `swarmtest cc` or --coverage, or "
        "say coverage='hits', 'lcov' or 'none'"
    )
