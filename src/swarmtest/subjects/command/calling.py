"""Running one command of a subject: words filled in, limits kept, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.instrument.native.process import Command, Ended, Output
from swarmtest.subjects.command.scratch import Scratch
from swarmtest.subjects.command.specification import Call
from swarmtest.subjects.command.strays import ended_strays
from swarmtest.subjects.command.words import Values, expanded, filled


class CannotStart(Exception):
    """The command could not be started at all; why, in one line."""


@dataclass(frozen=True)
class _Guarded(Command):
    """A command whose process group is killed even if this process is."""

    guard: Callable[[int], None] = lambda group: None

    def start(
        self, stdin: int, outputs: Sequence[Output], keep: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        with _own_memory_limit_lifted():
            process = super().start(stdin, outputs, keep)
        self.guard(process.pid)
        return process


@contextlib.contextmanager
def _own_memory_limit_lifted() -> Iterator[None]:
    """What a worker may use is no limit for commands: `memory` is.

    A program that was built with a sanitizer reserves terabytes, and would not even start.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == hard:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


class Caller:
    """Runs calls in a directory of the test at hand."""

    def __init__(self, scratch: Scratch, here: str) -> None:
        self._scratch = scratch
        self._here = here
        self._environment = dict(os.environ)

    def places(self, call: Call, directory: Path, test: str) -> Values:
        """What ``{test}``, ``{dir}`` and ``{here}`` stand for.

        In the test's own directory they are relative: a path that is another in every run would
        find its way into messages, and through ``__FILE__`` into programs.
        """
        if not call.cwd:
            return {"test": test, "dir": ".", "here": self._here}
        return {"test": str(directory / test), "dir": str(directory), "here": self._here}

    def run(
        self,
        call: Call,
        directory: Path,
        values: Values,
        *,
        env: Mapping[str, str] | None = None,
        extra_memory: int = 0,
        separator: str = " ",
    ) -> Ended:
        """Run it to its end, or to its time limit."""
        words = expanded(call.words, values, separator)
        environment = {**self._environment, "TMPDIR": self._scratch.temporary, **(env or {})}
        environment.update({name: filled(text, values) for name, text in call.env.items()})
        cwd = filled(call.cwd, values) if call.cwd else str(directory)
        command = _Guarded(
            tuple(words),
            environment,
            cwd,
            call.memory and call.memory + extra_memory,
            self._scratch.guard,
        )
        stdin = _open(os.path.join(cwd, filled(call.stdin, values)) if call.stdin else os.devnull)
        try:
            with ended_strays() as strays:
                ended = command.run(stdin, call.timeout)
            return replace(ended, cpu_seconds=ended.cpu_seconds + strays.cpu_seconds)
        except (UserError, ValueError) as error:
            raise CannotStart(str(error)) from None
        finally:
            os.close(stdin)
            self._scratch.guard(0)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError as error:
        name = os.path.basename(path)
        raise CannotStart(f"cannot read {name} as standard input: {error.strerror}") from None
