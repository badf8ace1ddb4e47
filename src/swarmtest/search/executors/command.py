"""A shell command as the test of a point, or as a task before or after a test.

In the command, ``{name}`` is the point's value of that dimension and ``{seed}`` the seed of the
run; in its environment they are ``POINT_NAME`` and ``POINT_SEED``. Exit status 0 is a pass. Lines
of its output report more: ``measure sold=151``, ``hit pair:12->15``. Tasks are shell commands or
functions that give no result of their own, like building and cleaning up.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import message_of
from swarmtest.core.messages.shapes import normalised
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space
from swarmtest.processes.commands import capture
from swarmtest.search.executors.function import FunctionCall
from swarmtest.search.results import INTERRUPTED, result_of

_PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z_][\w.-]*)\}")
_KEPT_OUTPUT = 4000
"""How many characters of an output are kept with a fault."""


class CommandExecutor:
    """A shell command that is the test; each run may take `seconds`.

    >>> from swarmtest import Integer, Test
    >>> from swarmtest.search import SearchSpace
    >>> check = CommandExecutor("test {n} -lt 5 && echo measure n={n}")
    >>> space = SearchSpace([Integer("n", 0, 9), Test("test", ["check"])], {"check": check})
    >>> [check.run(space.configuration({"n": n}), iter([1]))[0].verdict.label for n in (4, 5)]
    ['passed', 'failed']
    """

    def __init__(self, command: str, name: str = "", seconds: float = 60.0) -> None:
        if not command.strip():
            raise UserError("a command is empty")
        self.command = command
        self.name = name or command
        self.seconds = seconds

    @property
    def uses(self) -> frozenset[str] | None:
        """Return None: its environment has all dimensions."""
        return None

    def check(self, space: Space) -> None:
        """Raise an error for a placeholder that is not a dimension."""
        check_placeholders(self.command, space)

    def most_runs(self, point: Configuration) -> int:
        """Return 1: the command runs once."""
        return 1

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Run the command once."""
        values = point.to_json() | {"seed": next(seeds)}
        done = run_shell(fill_placeholders(self.command, values), self.seconds, environment(values))
        return [done.result()]


@dataclass(frozen=True)
class ShellResult:
    """How a command ended."""

    command: str
    status: int | None
    """The exit status; None if its time was up."""
    output: str
    errors: str
    seconds: float
    cpu_seconds: float

    def result(self) -> Result:
        """Return the result that its exit status and its output show."""
        fault = self._fault()
        reported = result_of(_reported(self.output))
        verdict = Verdict.FAILED if fault else Verdict.PASSED
        return reported._replace(
            verdict=verdict,
            fault=fault,
            wall_seconds=self.seconds,
            cpu_seconds=self.cpu_seconds,
        )

    def _fault(self) -> Fault | None:
        text = (self.errors or self.output)[-_KEPT_OUTPUT:]
        if self.status is None:
            return Fault(INTERRUPTED, "timeout", f"after {self.seconds:.3g} s\n{text}")
        if self.status < 0:
            return Fault("signal", signal.Signals(-self.status).name, text)
        lines = [line for line in self.errors.splitlines() if line.strip()]
        last = f": {normalised(lines[-1])}" if lines else ""
        return Fault("exit", f"exit status {self.status}{last}", text) if self.status else None


def run_shell(
    command: str, seconds: float, env: Mapping[str, str], *, kill_strays: bool = True
) -> ShellResult:
    """Run a command and everything that it starts, for `seconds` at most.

    >>> run_shell("exit 3", 5, {}).status
    3
    """
    words = ["/bin/sh", "-c", command]
    ended = capture(words, seconds, environment={**os.environ, **env}, kill_strays=kill_strays)
    output, errors = (text.decode(errors="replace") for text in (ended.stdout, ended.stderr))
    return ShellResult(command, ended.status, output, errors, ended.wall_seconds, ended.cpu_seconds)


def fill_placeholders(command: str, values: Mapping[str, object]) -> str:
    """Return a command with its placeholders filled in, quoted for a shell.

    >>> fill_placeholders("run --name {name} ${HOME}", {"name": "a b"})
    "run --name 'a b' ${HOME}"
    """
    return _PLACEHOLDER.sub(lambda match: shlex.quote(shown(values[match[1]])), command)


def shown(value: object) -> str:
    """Return a value as a command reads it: flags are 1 and 0.

    >>> shown(True), shown("sleep")
    ('1', 'sleep')
    """
    return str(int(value)) if isinstance(value, bool) else str(value)


def check_placeholders(command: str, space: Space) -> None:
    """Raise an error for a placeholder that is neither a dimension nor the seed."""
    known = [*(dimension.name for dimension in space.dimensions), "seed"]
    for name in _PLACEHOLDER.findall(command):
        if name not in known:
            raise UserError(
                f"command {command!r}: {{{name}}} is not a dimension{did_you_mean(name, known)}"
            )


def environment(values: Mapping[str, object]) -> dict[str, str]:
    """Return the variables that give a program its point.

    >>> environment({"noise-kind": "sleep"})
    {'POINT_NOISE_KIND': 'sleep'}
    """
    return {
        f"POINT_{re.sub(r'[^A-Z0-9]', '_', name.upper())}": shown(value)
        for name, value in values.items()
    }


def _reported(output: str) -> dict[str, Any]:
    """Return the hits and measures that lines of an output report."""
    report: dict[str, Any] = {"hits": []}
    for line in output.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "hit" and rest:
            report["hits"].append(rest.strip())
        name, sign, value = rest.partition("=")
        if word == "measure" and sign:
            try:
                report[name.strip()] = float(value)
            except ValueError:
                raise UserError(
                    f"{line.strip()!r} is not a measure: write measure NAME=NUMBER"
                ) from None
    return report


# Tasks.

_SECONDS = 600.0


@runtime_checkable
class SearchTask(Protocol):
    """Work before or after a test; raises `UserError` if it fails.

    >>> task_of("true").perform(None)
    """

    name: str

    def perform(self, point: Configuration | None) -> None:
        """Do the work, at a point or for the whole search."""

    def check(self, space: Space) -> None:
        """Raise an error for a name that is not a dimension."""


TaskLike: TypeAlias = "SearchTask | Callable[..., Any] | str"


def task_of(source: TaskLike) -> SearchTask:
    """Return a task from a shell command, a function or a task.

    >>> task_of("exit 3").perform(None)
    Traceback (most recent call last):
    ...
    swarmtest.UserError: task 'exit 3' failed: exit status 3
    """
    if isinstance(source, str):
        return CommandTask(source)
    if isinstance(source, SearchTask):
        return source
    if callable(source):
        return FunctionTask(source)
    raise UserError(f"a task is a shell command or a function, not {source!r}")


class CommandTask:
    """A shell command; ``{name}`` in it is the point's value.

    >>> CommandTask("true").perform(None)
    """

    def __init__(self, command: str, seconds: float = _SECONDS) -> None:
        self.name = command
        self._seconds = seconds

    def check(self, space: Space) -> None:
        """Raise an error for a placeholder that is not a dimension."""
        check_placeholders(self.name, space)

    def perform(self, point: Configuration | None) -> None:
        """Run the command."""
        values = {} if point is None else point.to_json()
        command = self.name if point is None else fill_placeholders(self.name, values)
        # What it starts is there for the test, and ends after it.
        done = run_shell(command, self._seconds, environment(values), kill_strays=False)
        fault = done.result().fault
        if fault is not None:
            raise UserError(f"task {self.name!r} failed: {fault.signature}")


class FunctionTask:
    """A Python function whose parameters are dimensions, if it has any.

    >>> FunctionTask(print).perform(None)
    <BLANKLINE>
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = getattr(function, "__name__", repr(function))
        self._function = function

    def check(self, space: Space) -> None:
        """Raise an error for a parameter that is not a dimension."""
        FunctionCall(self._function).check(space)

    def perform(self, point: Configuration | None) -> None:
        """Call the function."""
        try:
            if point is None:
                self._function()
            else:
                FunctionCall(self._function)(point, 0)
        except (UserError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise UserError(f"task {self.name} failed: {message_of(error)}") from None
