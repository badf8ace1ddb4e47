"""Tasks: work beside a test that gives no result of its own, like building and cleaning up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

from swarmtest.errors import UserError
from swarmtest.faults import message_of
from swarmtest.search.executors.calling import Calling
from swarmtest.search.executors.command import check_placeholders, environment, filled, run_shell
from swarmtest.space import Configuration, Space

_SECONDS = 600.0


@runtime_checkable
class Task(Protocol):
    """Some work; one that fails raises `UserError`.

    >>> task_of("true").perform(None)
    """

    name: str

    def perform(self, point: Configuration | None) -> None:
        """Do it; at a point, or for the whole search."""

    def check(self, space: Space) -> None:
        """Complain about a name that is no dimension."""


TaskLike: TypeAlias = "Task | Callable[..., Any] | str"


def task_of(told: TaskLike) -> Task:
    """A task: a shell command as a text, a function, or a task.

    >>> task_of("exit 3").perform(None)
    Traceback (most recent call last):
    ...
    swarmtest.errors.UserError: task 'exit 3' failed: exit status 3
    """
    if isinstance(told, str):
        return CommandTask(told)
    if isinstance(told, Task):
        return told
    if callable(told):
        return FunctionTask(told)
    raise UserError(f"a task is a shell command or a function, not {told!r}")


class CommandTask:
    """A shell command; ``{name}`` in it is the point's value.

    >>> CommandTask("true").perform(None)
    """

    def __init__(self, command: str, seconds: float = _SECONDS) -> None:
        self.name = command
        self._seconds = seconds

    def check(self, space: Space) -> None:
        """Complain about a placeholder that is no dimension."""
        check_placeholders(self.name, space)

    def perform(self, point: Configuration | None) -> None:
        """Run it."""
        values = {} if point is None else point.to_json()
        command = self.name if point is None else filled(self.name, values)
        done = run_shell(command, self._seconds, environment(values))
        fault = done.result().fault
        if fault is not None:
            raise UserError(f"task {self.name!r} failed: {fault.signature}")


class FunctionTask:
    """A Python function that names the dimensions it needs, or none.

    >>> FunctionTask(print).perform(None)
    <BLANKLINE>
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = getattr(function, "__name__", repr(function))
        self._function = function

    def check(self, space: Space) -> None:
        """Complain about a parameter that is no dimension."""
        Calling(self._function).check(space)

    def perform(self, point: Configuration | None) -> None:
        """Call it."""
        try:
            if point is None:
                self._function()
            else:
                Calling(self._function)(point, 0)
        except (UserError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise UserError(f"task {self.name} failed: {message_of(error)}") from None
