"""Threads of a run: real ones, that wait for their baton before they begin and tell their end."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

from swarmtest.faults import fault_of_exception
from swarmtest.threads.batons import Baton, new_baton
from swarmtest.threads.handing import IDENT, Handing
from swarmtest.threads.primitives import Started
from swarmtest.threads.tasks import Task, Unwound
from swarmtest.threads.workers import Worker, worker_for


def under_control(control: Handing, task: Task, thread: Thread, start: Callable[[], None]) -> None:
    """Start a thread that runs only when it is its turn."""
    worker = worker_for(thread)
    if worker is None:
        _started(control, task, thread, start)
    else:
        _served(control, task, thread, worker)


def _served(control: Handing, task: Task, thread: Thread, worker: Worker) -> None:
    """A thread of the system that is there already plays this one."""

    def controlled() -> Baton | None:
        if not control.ended:
            _run(control, thread)
        if control.ended:
            control.state[IDENT] = 0  # what thread-locals do when they go is not to be unwound
        worker.forget()
        worker.played(thread)
        return control.finished(task)

    task.worker, task.baton, task.ident = worker, worker.baton, worker.ident
    worker.does = controlled
    worker.plays(thread)


def _started(control: Handing, task: Task, thread: Thread, start: Callable[[], None]) -> None:
    """A thread of its own. Python calls `run` on it, and `_delete` at its end: both are ours."""
    own: dict[str, Any] = thread.__dict__
    run = own.get("run")

    def controlled() -> None:
        if run is None:
            own.pop("run", None)
        else:
            own["run"] = run
        task.baton.acquire()
        if not control.ended:
            _run(control, thread)

    def ended() -> None:
        own.pop("_delete", None)
        thread._delete()  # type: ignore[attr-defined]
        following = control.finished(task)
        if following is not None:
            following.release()

    task.baton = new_baton()
    own["run"], own["_delete"] = controlled, ended
    own["_started"] = Started()
    start()
    task.ident = thread.ident or 0


def _run(control: Handing, thread: Thread) -> None:
    try:
        thread.run()
    except (Unwound, SystemExit):
        pass  # Python ignores a SystemExit in a thread as well
    except BaseException as error:
        control.fail(fault_of_exception(error))
