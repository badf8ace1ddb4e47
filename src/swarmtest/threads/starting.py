"""Threads of a run: real ones, that wait for their baton before they begin and tell their end."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any

from swarmtest.faults import fault_of_exception
from swarmtest.threads.primitives import Started
from swarmtest.threads.tasks import Task, Unwound

if TYPE_CHECKING:
    from swarmtest.threads.handing import Handing


def under_control(control: Handing, task: Task, thread: Thread, start: Callable[[], None]) -> None:
    """Start a thread that runs only when it is its turn.

    Python calls `run` on a thread, and `_delete` when it has ended: both are ours for this one.
    """
    own: dict[str, Any] = thread.__dict__
    run = own.get("run")

    def controlled() -> None:
        if run is None:
            own.pop("run", None)
        else:
            own["run"] = run
        try:
            control.pause(task)
            thread.run()
        except (Unwound, SystemExit):
            pass  # Python ignores a SystemExit in a thread as well
        except BaseException as error:
            control.fail(fault_of_exception(error))

    def ended() -> None:
        own.pop("_delete", None)
        thread._delete()  # type: ignore[attr-defined]
        control.finished(task)

    own["run"], own["_delete"] = controlled, ended
    own["_started"] = Started()
    start()
    task.ident = thread.ident or 0
