"""Threads of the operating system that serve many runs: starting one costs more than a short run.

A worker waits for its baton. Who starts a thread of a run gives it a worker, and does not even have
to wake that: the baton comes when the thread is first chosen. For the program it is a new thread:
thread-locals, context variables and trace functions are those of a thread that has just begun.
"""

from __future__ import annotations

import _thread
import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from threading import Thread
from typing import Any, Literal

from swarmtest.core.faults import fault_of_exception
from swarmtest.race.accelerator import accelerator
from swarmtest.race.control.baton_scheduler import IDENT, Handing
from swarmtest.race.control.tasks import Baton, Task, Unwound, new_baton
from swarmtest.race.primitives.locks import Started
from swarmtest.race.primitives.originals import get_ident, raw_lock

_MOST_IDLE = 64
_HAS_HANDLES = sys.version_info >= (3, 13)
_KNOWN = sys.version_info < (3, 14)
"""How Python keeps its threads is not the same in all versions."""

_idle: list[Worker] = []
os.register_at_fork(after_in_child=_idle.clear)


class Worker:
    """One thread of the system, that does what it is told whenever it gets its baton."""

    def __init__(self) -> None:
        self.baton = new_baton()
        self.does: Callable[[], Baton | None] | None = None
        """What to do next; it answers whose turn it is then, None if this worker is to end."""
        self.ident = self.native_id = 0
        self._pid = os.getpid()
        self._locals: dict[Any, Any] = {}
        begun = raw_lock()
        begun.acquire()
        _thread.start_new_thread(self._serve, (begun.release,))
        begun.acquire()

    def _serve(self, begun: Callable[[], None]) -> None:
        self.ident, self.native_id = get_ident(), threading.get_native_id()
        self._locals = _thread_locals()
        begun()
        self.baton.acquire()
        with suppress(Unwound):  # the watchdog may raise it in a thread that was given up
            while self.does is not None:
                does, self.does = self.does, None
                following = Context().run(does)
                del does
                if following is None or os.getpid() != self._pid:
                    break
                self.baton.hand(following)

    def forget(self) -> None:
        """Let go of what a thread has for itself; called in it."""
        if sys.gettrace() is not None:
            sys.settrace(None)
        if sys.getprofile() is not None:
            sys.setprofile(None)
        if self._locals:
            self._locals.clear()
        if _HAS_HANDLES:
            _forget_locals()()

    def plays(self, thread: Thread) -> None:
        """From now on Python takes this for a thread that has been started."""
        own: dict[str, Any] = thread.__dict__
        own["_started"] = _BEGUN
        own["_ident"], own["_native_id"] = self.ident, self.native_id
        if _HAS_HANDLES:
            own["_handle"] = _thread._make_thread_handle(self.ident)  # type: ignore[attr-defined]
        else:
            own["_tstate_lock"] = ends = raw_lock()
            ends.acquire()
        threading._active[self.ident] = thread  # type: ignore[attr-defined]

    def played(self, thread: Thread) -> None:
        """The thread has ended."""
        threading._active.pop(self.ident, None)  # type: ignore[attr-defined]
        if _HAS_HANDLES:
            thread._handle._set_done()  # type: ignore[attr-defined]
        else:
            ends, thread._tstate_lock = thread._tstate_lock, None  # type: ignore[attr-defined]
            thread._is_stopped = True  # type: ignore[attr-defined]
            ends.release()


def worker_for(thread: Thread) -> Worker | None:
    """One that has nothing to do; None if the thread needs one of its own."""
    is_plain = (
        _are_like_new()
        and threading._trace_hook is None  # type: ignore[attr-defined]
        and threading._profile_hook is None
        and not _stack_size()
        and thread._initialized  # type: ignore[attr-defined]
    )
    if not is_plain:
        return None
    return _idle.pop() if _idle else Worker()


def _stack_size() -> int:
    """What the program has set for its threads; Python tells by setting it back to 0."""
    size = threading.stack_size()
    if size:
        threading.stack_size(size)
    return size


def give_back(worker: Worker) -> None:
    """The run is over: the worker may serve the next one."""
    if len(_idle) < _MOST_IDLE:
        _idle.append(worker)
    else:
        worker.baton.release()  # with nothing to do: it ends


def _thread_locals() -> dict[Any, Any]:
    """Where Python keeps what `threading.local` has for this thread."""
    get = ctypes.pythonapi.PyThreadState_GetDict
    get.restype = ctypes.c_void_p  # the reference is borrowed: py_object would take it over
    found: dict[Any, Any] = ctypes.cast(get(), ctypes.py_object).value
    return found


@functools.cache
def _forget_locals() -> Callable[[], None]:
    """They are elsewhere since Python 3.13, where only C code gets at them."""
    module = accelerator()
    forget: Callable[[], None] = (lambda: None) if module is None else module.forget_locals
    return forget


@functools.cache
def _are_like_new() -> bool:
    """Whether workers can forget thread-locals in this Python."""
    if not _KNOWN or sys.implementation.name != "cpython":
        return False
    seen: list[bool] = []
    local, worker, over = threading.local(), Worker(), raw_lock()
    over.acquire()

    def look() -> None:
        seen.append(hasattr(local, "value"))
        local.value = True
        worker.forget()
        seen.append(hasattr(local, "value"))
        over.release()

    worker.does = look
    worker.baton.release()
    over.acquire()
    return seen == [False, False]


class _Begun:
    """What a thread has set that has begun."""

    def is_set(self) -> Literal[True]:
        return True

    def set(self) -> None:
        pass

    def wait(self, timeout: float | None = None) -> Literal[True]:
        return True

    def _at_fork_reinit(self) -> None:
        pass


_BEGUN = _Begun()


# -------------------------------------------------------------------------------------------------
# Threads of a run: real ones, that wait for their baton before they begin and tell their end.


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
