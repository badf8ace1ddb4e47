"""Start the threads of a controlled run, on worker threads that serve many runs.

Starting a thread of the operating system costs more than a short run, so finished workers are
reused. A worker waits for its baton. Starting a thread of the run assigns a worker to it without
waking the worker: the baton comes when the thread is first chosen. To the program it is a new
thread: thread-locals, context variables and trace functions are those of a thread that has just
begun.
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

from swarmtest.race.accelerator import accelerator
from swarmtest.race.control.baton_scheduler import IDENT, BatonPolicy
from swarmtest.race.control.tasks import Baton, ThreadTask, new_baton
from swarmtest.race.primitives.locks import hook_thread
from swarmtest.race.primitives.policy import get_ident, raw_lock
from swarmtest.race.unwinding import Unwound

_MAX_IDLE = 64
_HAS_HANDLES = sys.version_info >= (3, 13)
_IS_KNOWN_VERSION = sys.version_info < (3, 14)
"""Whether it is known how this Python version keeps its threads; that differs between versions."""

_idle: list[WorkerThread] = []
os.register_at_fork(after_in_child=_idle.clear)


def start_controlled_thread(
    control: BatonPolicy, task: ThreadTask, thread: Thread, start: Callable[[], None]
) -> None:
    """Start a thread that runs only when the scheduler chooses it."""
    worker = worker_for(thread)
    if worker is None:
        _run_on_own_thread(control, task, thread, start)
    else:
        _run_on_worker(control, task, thread, worker)


def _run_on_worker(
    control: BatonPolicy, task: ThreadTask, thread: Thread, worker: WorkerThread
) -> None:
    """Run the thread on a worker that exists already."""

    def controlled() -> Baton | None:
        if not control.ended:
            control.run_thread(thread)
        if control.ended:
            control.state[IDENT] = 0  # finalizers of thread-locals must not be unwound
        worker.forget()
        worker.played(thread)
        return control.finished(task)

    task.worker, task.baton, task.ident = worker, worker.baton, worker.ident
    worker.does = controlled
    worker.plays(thread)


def _run_on_own_thread(
    control: BatonPolicy, task: ThreadTask, thread: Thread, start: Callable[[], None]
) -> None:
    """Run the thread on a thread of its own."""

    def begin() -> None:
        task.baton.acquire()
        if not control.ended:
            control.run_thread(thread)

    def end() -> None:
        next_baton = control.finished(task)
        if next_baton is not None:
            next_baton.release()

    task.baton = new_baton()
    hook_thread(thread, begin, end)
    start()
    task.ident = thread.ident or 0


# Workers.


class WorkerThread:
    """A thread of the operating system that executes a job whenever it gets its baton."""

    def __init__(self) -> None:
        self.baton = new_baton()
        self.does: Callable[[], Baton | None] | None = None
        """The next job. It returns the baton of the thread that runs next, or None to end this
        worker."""
        self.ident = self.native_id = 0
        self._pid = os.getpid()
        self._locals: dict[Any, Any] = {}
        started = raw_lock()
        started.acquire()
        _thread.start_new_thread(self._serve, (started.release,))
        started.acquire()

    def _serve(self, report_start: Callable[[], None]) -> None:
        self.ident, self.native_id = get_ident(), threading.get_native_id()
        self._locals = _thread_locals()
        report_start()
        self.baton.acquire()
        with suppress(Unwound):  # the watchdog may raise it in an abandoned thread
            while self.does is not None:
                job, self.does = self.does, None
                next_baton = Context().run(job)
                del job  # it refers to the run, which must not be kept alive while waiting
                if next_baton is None or os.getpid() != self._pid:
                    break
                self.baton.hand(next_baton)

    def forget(self) -> None:
        """Drop this thread's thread-locals and trace functions; call it in the thread itself."""
        if sys.gettrace() is not None:
            sys.settrace(None)
        if sys.getprofile() is not None:
            sys.setprofile(None)
        if self._locals:
            self._locals.clear()
        if _HAS_HANDLES:
            _forget_locals_function()()

    def plays(self, thread: Thread) -> None:
        """Make Python treat the thread object as started, with this worker's identity."""
        own: dict[str, Any] = thread.__dict__
        own["_started"] = _STARTED_EVENT
        own["_ident"], own["_native_id"] = self.ident, self.native_id
        if _HAS_HANDLES:
            own["_handle"] = _thread._make_thread_handle(self.ident)  # type: ignore[attr-defined]
        else:
            own["_tstate_lock"] = ends = raw_lock()
            ends.acquire()
        threading._active[self.ident] = thread  # type: ignore[attr-defined]

    def played(self, thread: Thread) -> None:
        """Make Python treat the thread object as ended."""
        threading._active.pop(self.ident, None)  # type: ignore[attr-defined]
        if _HAS_HANDLES:
            thread._handle._set_done()  # type: ignore[attr-defined]
        else:
            ends, thread._tstate_lock = thread._tstate_lock, None  # type: ignore[attr-defined]
            thread._is_stopped = True  # type: ignore[attr-defined]
            ends.release()


def worker_for(thread: Thread) -> WorkerThread | None:
    """Return an idle worker, or None if the thread needs a thread of its own."""
    is_plain = (
        _can_forget_locals()
        and threading._trace_hook is None  # type: ignore[attr-defined]
        and threading._profile_hook is None
        and not _stack_size()
        and thread._initialized  # type: ignore[attr-defined]
    )
    if not is_plain:
        return None
    return _idle.pop() if _idle else WorkerThread()


def _stack_size() -> int:
    """Return the stack size that the program has set; reading it resets it, so set it again."""
    size = threading.stack_size()
    if size:
        threading.stack_size(size)
    return size


def give_back(worker: WorkerThread) -> None:
    """Keep a worker for the next run, or end it if enough are idle."""
    if len(_idle) < _MAX_IDLE:
        _idle.append(worker)
    else:
        worker.baton.release()  # it has nothing to do and ends


def _thread_locals() -> dict[Any, Any]:
    """Return the dictionary in which Python keeps this thread's `threading.local` values."""
    get = ctypes.pythonapi.PyThreadState_GetDict
    get.restype = ctypes.c_void_p  # a borrowed reference: py_object would steal it
    locals_by_key: dict[Any, Any] = ctypes.cast(get(), ctypes.py_object).value
    return locals_by_key


@functools.cache
def _forget_locals_function() -> Callable[[], None]:
    """Return a function that drops thread-locals; from Python 3.13 on that needs C code."""
    module = accelerator()
    forget: Callable[[], None] = (lambda: None) if module is None else module.forget_locals
    return forget


@functools.cache
def _can_forget_locals() -> bool:
    """Return whether workers can drop thread-locals in this Python."""
    if not _IS_KNOWN_VERSION or sys.implementation.name != "cpython":
        return False
    seen: list[bool] = []
    local, worker, over = threading.local(), WorkerThread(), raw_lock()
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


class _StartedEvent:
    """The event of a thread that has started."""

    def is_set(self) -> Literal[True]:
        return True

    def set(self) -> None:
        pass

    def wait(self, timeout: float | None = None) -> Literal[True]:
        return True

    def _at_fork_reinit(self) -> None:
        pass


_STARTED_EVENT = _StartedEvent()
