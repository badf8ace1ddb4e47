"""Run a native program with threads and noise, and report how it ended and what it did."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from swarmtest.core.errors import UserError
from swarmtest.core.messages.shapes import normalised
from swarmtest.core.result import Fault, Verdict
from swarmtest.core.targets import Catalogue, Hits
from swarmtest.coverage.native.program import ProgramRun, find_program
from swarmtest.processes.commands import CommandLine, Output, ProcessEnd, end_process, watch
from swarmtest.processes.tree import Supervision
from swarmtest.race.native.coverage import (
    NamedSite,
    SiteNames,
    ThreadStates,
    fault_of,
    handles_signals,
    hits_of,
    is_asleep,
    named_sites,
    thread_states,
)
from swarmtest.race.native.library import (
    KnownSites,
    MemorySnapshot,
    ThreadMemory,
    library,
    library_name,
    noise_text,
)
from swarmtest.race.noise_settings import NoiseSettings

NO_THREAD = "the program started no thread"
_PROFILED_HEURISTICS = ("shared-only", "one-variable", "predecessors")
"""The heuristics that need to know what earlier runs saw."""


@dataclass(frozen=True)
class ThreadRun:
    """What one thread of a run did.

    >>> ThreadRun("main.1", probes=20, noises=3, decisions=77).name
    'main.1'
    """

    name: str
    """The name by its creator: ``main.2`` is the second thread that main created."""
    probes: int
    noises: int
    decisions: int
    """A hash of its decisions about noise, equal for the same seed and number of probes."""


@dataclass(frozen=True)
class NativeRun:
    """The outcome of one run.

    >>> NativeRun(Verdict.PASSED, status=0).fault is None
    True
    """

    verdict: Verdict
    fault: Fault | None = None
    status: int | None = None
    """The exit status; None if a signal or swarmtest ended the program."""
    stdout: bytes = b""
    stderr: bytes = b""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    hits: Hits | None = None
    """Targets of the kinds ``sync``, ``pair`` and ``shared``."""
    missing: str = ""
    """Why the targets are not known, or not all; empty if they are."""
    threads: tuple[ThreadRun, ...] = ()
    accesses: bool = False
    """Whether every access to memory was seen: the program was built with -fsanitize=thread."""


class NativeThreads:
    """A dynamically linked pthread program that is run with noise and observed.

    `command` is a list of words. `seconds` is the time limit of a run. `expected` lists the exit
    statuses that are not failures. `env` holds variables to set for the program. `cwd` is the
    directory that it runs in. `compiler` builds the library that is loaded into it; default: $CC,
    else gcc or clang.

    >>> program = NativeThreads(["/bin/true"])
    >>> program.run(NoiseSettings(frequency=100), seed=1).missing
    'the program started no thread'
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        seconds: float = 10.0,
        expected: Sequence[int] = (0,),
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        compiler: str = "",
    ) -> None:
        if sys.platform != "linux":
            raise UserError("threads of native programs can be tested on Linux only")
        if not seconds > 0:
            raise UserError(f"a run needs a time limit above 0 seconds, not {seconds}")
        executable, *words = map(str, command) if command else [""]
        self.program = find_program(executable, str(cwd or ""))
        self.command = (self.program, *words)
        self.seconds = seconds
        self.library = library(library_name(self.program), compiler)
        self.catalogue = Catalogue()
        self._expected = frozenset(expected)
        self._environment = self._with_library({**os.environ, **(env or {})})
        self._cwd = str(cwd) if cwd else None
        self._names = SiteNames(self.catalogue, self._cwd or "")
        self._known: KnownSites | None = None

    def profile(self, runs: int = 2) -> None:
        """Learn from runs without noise which sites threads share and where they alternate.

        This is done automatically before the first run with a heuristic that needs it.
        """
        for _ in range(runs):
            memory = ThreadMemory(self._known)
            try:
                run_watched(
                    self._command(memory, NoiseSettings(frequency=0), 0), memory, self.seconds
                )
                self._known = memory.knowledge()
            finally:
                memory.close()

    def run(self, settings: NoiseSettings, seed: int) -> NativeRun:
        """Run the program once; the seed decides where noise is made, and which."""
        needs_profile = any(name in settings.heuristics for name in _PROFILED_HEURISTICS)
        if needs_profile and self._known is None:
            self.profile()
        memory = ThreadMemory(self._known if needs_profile else None)
        try:
            watched = run_watched(self._command(memory, settings, seed), memory, self.seconds)
            return self._outcome(watched, memory)
        finally:
            memory.close()

    def by_hand(self, settings: NoiseSettings, seed: int) -> str:
        """Return a shell line that runs the program with the same noise, without swarmtest."""
        words = [
            f"SWARMTEST_NOISE={shlex.quote(noise_text(settings, seed))}",
            f"LD_PRELOAD={shlex.quote(str(self.library))}",
            shlex.join(self.command),
        ]
        return " ".join(words)

    def _command(self, memory: ThreadMemory, settings: NoiseSettings, seed: int) -> CommandLine:
        variables = {
            "SWARMTEST_NOISE": noise_text(settings, seed),
            "SWARMTEST_THREADS": memory.path,
        }
        return CommandLine(self.command, self._environment | variables, self._cwd)

    def _with_library(self, environment: dict[str, str]) -> dict[str, str]:
        before = environment.get("LD_PRELOAD", "")
        preloaded = f"{self.library}:{before}" if before else str(self.library)
        return environment | {"LD_PRELOAD": preloaded}

    def _outcome(self, watched: Watched, memory: ThreadMemory) -> NativeRun:
        snapshot = memory.snapshot()
        named = named_sites(memory, self._names)
        ended = watched.ended
        fault = self._fault(ended, watched.stand, named, snapshot)
        threads = tuple(
            ThreadRun(
                row["name"].decode(errors="replace"),
                int(row["probes"]),
                int(row["noises"]),
                int(row["digest"]),
            )
            for row in snapshot.threads
        )
        ended_by_us = watched.stuck or ended.timed_out or ended.signal
        return NativeRun(
            Verdict.FAILED if fault else Verdict.PASSED,
            fault,
            None if ended_by_us else os.WEXITSTATUS(ended.status),
            ended.stdout,
            ended.stderr,
            ended.cpu_seconds,
            ended.wall_seconds,
            hits_of(memory, named, self._names) if snapshot.processes else None,
            _missing_reason(snapshot, self.program),
            threads,
            snapshot.accesses,
        )

    def _fault(
        self,
        ended: ProcessEnd,
        stand: ThreadStates | None,
        named: dict[int, NamedSite],
        snapshot: MemorySnapshot,
    ) -> Fault | None:
        names = {
            slot: row["name"].decode(errors="replace") for slot, row in enumerate(snapshot.threads)
        }
        if stand is not None:
            return fault_of(stand, named, names)
        run = ProgramRun(
            None if ended.signal else os.WEXITSTATUS(ended.status),
            ended.signal,
            False,
            ended.stdout,
            ended.stderr,
        )
        return run.fault() or self._exit_fault(run)

    def _exit_fault(self, run: ProgramRun) -> Fault | None:
        if run.status in self._expected:
            return None
        errors = run.stderr.decode(errors="replace")
        lines = [line for line in errors.splitlines() if line.strip()]
        message = f": {normalised(lines[-1])}" if lines else ""
        return Fault("exit", f"exit status {run.status}{message}", errors[-20_000:])


def run_native(
    command: Sequence[str | Path], settings: NoiseSettings, seed: int = 0, seconds: float = 10.0
) -> NativeRun:
    """Run a program once with noise; for many runs of one program, create a `NativeThreads`.

    >>> run_native(["/bin/false"], NoiseSettings(100)).fault.signature
    'exit status 1'
    """
    return NativeThreads(command, seconds=seconds).run(settings, seed)


def _missing_reason(snapshot: MemorySnapshot, program: str) -> str:
    if not snapshot.processes:
        return f"our library was not loaded into {program}: it clears LD_PRELOAD, or is static"
    if snapshot.no_room:
        return f"the program has too many {' and '.join(snapshot.no_room)} to tell of all"
    return NO_THREAD if len(snapshot.threads) == snapshot.processes else ""


# Running a program until it ends, its time is over, or its threads are stuck.

_POLL_SECONDS = 0.01
_STUCK_POLLS = 4
"""The number of equal observations in a row after which threads that all wait count as stuck."""


class Watched(NamedTuple):
    """How a run ended."""

    ended: ProcessEnd
    stand: ThreadStates | None
    """The state of its threads when they were stuck or the time was over; else None."""
    stuck: bool


def run_watched(command: CommandLine, memory: ThreadMemory, seconds: float) -> Watched:
    """Run a program whose library writes into `memory`."""
    outputs = (Output(), Output())
    stdin = os.open(os.devnull, os.O_RDONLY)
    began = time.monotonic()
    strays = Supervision()
    try:
        process = command.start(stdin, outputs)
        for output in outputs:
            output.close_write()
        end = os.pidfd_open(process.pid)
        stand, stuck, over = None, False, False
        try:
            detector = _StuckDetector(process.pid, memory)
            while stand is None and not watch(end, outputs, _POLL_SECONDS):
                stuck = detector.is_stuck()
                over = time.monotonic() - began >= seconds
                if stuck or over:
                    stand = thread_states(memory.snapshot())
        finally:
            os.close(end)
            status, cpu_seconds = end_process(process)
        ended = ProcessEnd(
            status,
            over and not stuck,
            outputs[0].take(),
            outputs[1].take(),
            cpu_seconds,
            time.monotonic() - began,
        )
        return Watched(ended, stand, stuck)
    finally:
        strays.end()
        os.close(stdin)
        for output in outputs:
            output.close()


class _StuckDetector:
    """A poller of a program's threads that reports when nothing has changed for a while."""

    def __init__(self, process: int, memory: ThreadMemory) -> None:
        self._process = process
        self._memory = memory
        self._seen: ThreadStates | None = None
        self._same_polls = 0

    def is_stuck(self) -> bool:
        """Return whether no thread of the program will ever continue."""
        snapshot = self._memory.snapshot()
        stand = thread_states(snapshot) if snapshot.processes == 1 else None
        if stand is None or not stand.all_wait:
            self._seen, self._same_polls = None, 0
            return False
        same = stand == self._seen and is_asleep(self._process, len(stand.waiting))
        self._same_polls = self._same_polls + 1 if same else 0
        self._seen = stand
        if self._same_polls < _STUCK_POLLS:
            return False
        return bool(stand.cycle()) or not handles_signals(self._process)
