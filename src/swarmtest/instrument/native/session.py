"""Everything that one process needs to run a native program again and again.

A session belongs to the process that made it: its shared memory, its directory and its fork server
are never used by two. `Program` makes a new one after a fork.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.instrument.native.collector import Collected, Collector, NoCoverage
from swarmtest.instrument.native.fast import FastCoverage
from swarmtest.instrument.native.fork_server import ForkServer
from swarmtest.instrument.native.gcov import GcovCoverage
from swarmtest.instrument.native.hitfile import HitFile
from swarmtest.instrument.native.places import Lines
from swarmtest.instrument.native.process import Command, Ended

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
