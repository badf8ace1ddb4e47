"""Running one command of a subject: words filled in, limits kept, nothing left behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.instrument.native.process import Command, Ended, Output
from swarmtest.subjects.command.scratch import Scratch
from swarmtest.subjects.command.specification import Call
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
        process = super().start(stdin, outputs, keep)
        self.guard(process.pid)
        return process


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
        environment = {**self._environment, **(env or {})}
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
            return command.run(stdin, call.timeout)
        except UserError as error:
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
