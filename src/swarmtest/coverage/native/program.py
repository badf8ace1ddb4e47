"""A native program under test: run it on one input after another, and see what each reached.

`Program` is what users create, and `ProgramRun` the result of one input. A `Session` holds what one
process needs to run the program: its shared memory, its directory and its fork server are never
used by two processes, so `Program` creates a new session after a fork.
"""

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
from swarmtest.core.messages.crashes import recognise, with_stack
from swarmtest.core.result import Fault
from swarmtest.core.targets import Catalogue, Hits
from swarmtest.coverage.native.build import Build, up_to_date
from swarmtest.coverage.native.collector import (
    Collected,
    Collector,
    HitFile,
    LineNumbers,
    NoCoverage,
    campaign_wants_branches,
)
from swarmtest.coverage.native.fast import FastCoverage, ForkServer, has_runtime
from swarmtest.coverage.native.gcov import GcovCoverage, has_counters
from swarmtest.coverage.native.sanitizers import limits_resident_memory, options_in
from swarmtest.processes.commands import CommandLine, ProcessEnd
from swarmtest.processes.limits import own_memory_limit
from swarmtest.processes.perturbation import note_program

COVERAGE = ("auto", "fast", "gcov", "hits", "lcov", "none")
FOREVER = 1e9
_MESSAGES = ("sanitizers", "assert", "glibc", "c++")
"""The kinds of messages to look for in what a program prints."""
_MAX_DETAILS = 20_000
executed: list[str] = []
"""The programs that this process runs."""


@dataclass(frozen=True)
class ProgramRun:
    """One run of a program: how it ended, what it printed, and what it reached.

    >>> run = ProgramRun(status=None, signal=11)
    >>> run.fault().signature
    'SIGSEGV'
    """

    status: int | None
    """The exit status; None if a signal ended it."""
    signal: int = 0
    """The signal that ended it; 0 if it exited."""
    timed_out: bool = False
    stdout: bytes = b""
    """The first MiB."""
    stderr: bytes = b""
    """The first MiB."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    out_of_memory: bool = False
    """Whether it was ended because it held more memory than it may."""
    hits: Hits | None = None
    """What it reached; None if that is unknown, which is not the same as nothing."""
    missing: str = ""
    """Why coverage is missing (or partial, if there are hits); empty if it is complete."""
    stack: tuple[str, ...] = ()
    """The functions that the signal interrupted, the innermost first; empty if not known."""

    def fault(self) -> Fault | None:
        """Return the fault that the run showed: a time limit, a signal, or a sanitizer's message.

        An exit status alone is no fault: a compiler that rejects its input exits with 1.
        """
        errors = self.stderr.decode(errors="replace")
        message = recognise(errors, _MESSAGES)
        signature = message.signature if message else ""
        if self.timed_out:
            return Fault("timeout", "timeout", errors[-_MAX_DETAILS:])
        if self.out_of_memory:
            return Fault("memory", "out of memory", errors[-_MAX_DETAILS:])
        if self.signal:
            name = _signal_name(self.signal)
            text = f"{name}: {signature}" if signature else name
            text = with_stack(text, self.stack)
            stack = "".join(f"\n  in {function}" for function in self.stack if function)
            return Fault("signal", text, (errors[-_MAX_DETAILS:] + stack).strip())
        if signature:
            return Fault("exit", signature, errors[-_MAX_DETAILS:])
        return None


Run = ProgramRun
"""The name under which `swarmtest` exports it."""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


class Program:
    """Runs a program on one input after another, and says what each reached.

    `command`: its words; ``{test}`` in a word stands for a file that holds the input (named with
    `suffix`); without it the input comes on standard input.
    `coverage`: how hits are collected; ``auto`` looks at how the program was built.
    `sources`: the files, directories or patterns whose lines are targets; default: all except the
    system's headers.
    `branches`: besides lines, record which ways decisions went, if the program was built with
    `swarmtest cc`; a campaign with ``--coverage branch`` does so anyway.
    `fork_server`: start the program once and fork it for every test.
    `persistent`: with a fork server, tests that one process runs in its `swarmtest_next` loop.
    `timeout`: seconds of wall time for a test; 0: no limit.
    `memory`: bytes that a test may have; 0: what the worker may have (``--memory``). A program that
    was built with a sanitizer is ended if it holds more; for others, allocations fail.
    `env`: variables set for the program. `cwd`: the directory it runs in.
    `objects`: where gcov's `.gcno` files are, if the build tree was moved.
    `build`: how the program is built: a line for the shell, or a `Build`. It is built when it is
    missing, and when a source is not as it was built.

    It can be used in a forked process, which then has its own fork server and memory, but not in
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
        branches: bool = False,
        fork_server: bool = False,
        persistent: int = 0,
        timeout: float = 10.0,
        memory: int = 0,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        suffix: str = "",
        objects: str | Path | None = None,
        build: Build | str | None = None,
    ) -> None:
        if sys.platform != "linux":
            raise UserError("native programs can be tested on Linux only")
        if coverage not in COVERAGE:
            raise UserError(f"no such coverage: {coverage!r}{did_you_mean(coverage, COVERAGE)}")
        note_program()
        executable, *words = map(str, command) if command else [""]
        up_to_date(build, os.path.join(cwd or "", executable))
        program = find_program(executable, str(cwd or ""))
        executed.append(program)
        self._settings = ProgramSettings(
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
            branches,
        )
        self.catalogue = Catalogue()
        """All targets from the first run on, also those of code that was never reached."""
        self._lines = LineNumbers(self.catalogue, sources)
        self._directory = Path(tempfile.mkdtemp(prefix="swarmtest-"))
        self._remove = weakref.finalize(self, _remove, self._directory, os.getpid())
        self._session: Session | None = None
        self._owner = 0

    @property
    def coverage(self) -> str:
        """How hits are collected; for ``auto``, what was detected."""
        return self._settings.coverage

    @property
    def timeout(self) -> float | None:
        """Seconds of wall time that a test may take; None: there is no limit."""
        return self._settings.timeout or None

    def run(self, data: bytes, arguments: Sequence[str] = ()) -> ProgramRun:
        """Run the program on one input, with `arguments` added to its command."""
        if not self._remove.alive:
            raise UserError("this Program was closed: run it inside its `with` block")
        ended, collected = self._own_session().run(data, arguments)
        return ProgramRun(
            None if ended.signal else os.WEXITSTATUS(ended.status),
            ended.signal,
            ended.timed_out,
            ended.stdout,
            ended.stderr,
            ended.cpu_seconds,
            ended.wall_seconds,
            ended.out_of_memory,
            collected.hits,
            collected.missing,
            collected.stack,
        )

    def _own_session(self) -> Session:
        """Return this process's session; a session from before a fork belongs to the parent."""
        if self._session is not None and self._owner != os.getpid():
            self._session.abandon()
            self._session = None
        settings = self._settings
        if campaign_wants_branches() and not settings.branches:
            settings = replace(settings, branches=True)
        if self._session is not None and self._session.settings.branches != settings.branches:
            self._session.close()  # it began before the campaign's coverage
            self._session = None
        if self._session is None:
            self._owner = os.getpid()
            directory = self._directory / str(self._owner)
            self._session = Session(settings, self._lines, directory)
        return self._session

    def close(self) -> None:
        """End the processes that this process started for the program, and remove its files."""
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
    """Return the path of an executable, found as a shell finds it, from where it will run.

    >>> find_program("sh", "") == shutil.which("sh")
    True
    """
    if os.sep in executable:
        path = os.path.join(os.path.abspath(directory), executable)
        program = path if os.access(path, os.X_OK) and os.path.isfile(path) else None
    else:
        program = shutil.which(executable)
    if program is None:
        raise UserError(f"no program {executable!r}: command has to begin with an executable")
    return os.path.abspath(program)


def _detect(program: str) -> str:
    """Return how hits are collected from a program, by how it was built."""
    if has_runtime(program):
        return "fast"
    if has_counters(program):
        return "gcov"
    raise UserError(
        f"{program} was built without coverage: build it with `swarmtest cc` or --coverage, or "
        "say coverage='hits', 'lcov' or 'none'"
    )


@dataclass(frozen=True)
class ProgramSettings:
    """How a program is run; `Program` explains each setting."""

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
    branches: bool = False


class Session:
    """What one process needs to run tests, one after another."""

    def __init__(self, settings: ProgramSettings, lines: LineNumbers, directory: Path) -> None:
        self.settings = settings
        self._directory = directory
        directory.mkdir(exist_ok=True)
        self.collector = _collector(settings, lines, directory)
        self._input = _Input(settings, directory)
        environment = {**os.environ, **(settings.env or {}), **self.collector.environment}
        program = settings.command[0]
        resident = limits_resident_memory(program, environment)
        memory = settings.memory or (own_memory_limit() if resident else 0)
        extra = 0 if resident else self.collector.extra_memory
        self._command = CommandLine(
            tuple(word.replace("{test}", self._input.path) for word in settings.command),
            {**(options_in(environment) if resident else {}), **environment},
            settings.cwd,
            memory and memory + extra,
            resident,
        )
        self._server = self._fork_server() if settings.fork_server else None

    def run(self, data: bytes, arguments: Sequence[str]) -> tuple[ProcessEnd, Collected]:
        """Run one test."""
        self._input.write(data)
        seconds = self.settings.timeout or FOREVER
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
            before = after = _do_nothing
        else:
            raise UserError("a fork server needs a program built with `swarmtest cc`")
        per_process = self.settings.persistent
        return ForkServer(self._command, self._input.file, per_process, before, after)

    def abandon(self) -> None:
        """Release what belongs to the parent; call it in a forked process."""
        self._input.close()
        if self._server is not None:
            self._server.abandon()
        if isinstance(self.collector, FastCoverage):
            self.collector.close()

    def close(self) -> None:
        """End the fork server and remove the session's files."""
        if self._server is not None:
            self._server.close()
        self._input.close()
        self.collector.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class _Input:
    """The program's input: a named file, or a standard input that never blocks."""

    def __init__(self, settings: ProgramSettings, directory: Path) -> None:
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
            # The program's standard input is this open file and shares its position.
            os.ftruncate(self.file, 0)
            os.lseek(self.file, 0, os.SEEK_SET)
            remaining = memoryview(data)
            while remaining:
                remaining = remaining[os.write(self.file, remaining) :]
            os.lseek(self.file, 0, os.SEEK_SET)

    def close(self) -> None:
        os.close(self.file)


def _collector(settings: ProgramSettings, lines: LineNumbers, directory: Path) -> Collector:
    program = settings.command[0]
    if settings.coverage == "fast":
        return FastCoverage(program, lines, branches=settings.branches)
    if settings.coverage == "gcov":
        return GcovCoverage(program, lines, directory / "gcov", settings.objects)
    if settings.coverage in ("hits", "lcov"):
        lcov = settings.coverage == "lcov"
        return HitFile(program, lines, directory / "hits", lcov=lcov)
    return NoCoverage()


def _do_nothing() -> None:
    pass
