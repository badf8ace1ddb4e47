"""The threads of a controlled run."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol

from swarmtest.race.accelerator import accelerator
from swarmtest.race.primitives.locks import Lock
from swarmtest.race.primitives.originals import raw_lock

if TYPE_CHECKING:
    from swarmtest.race.control.worker_threads import Worker


_FIRST = "main"


class Unwound(BaseException):
    """Raised in the threads of a run that is decided, so that they end."""


class Task:
    """One thread of a run: named by who started it, and as which of its children."""

    __slots__ = (
        "baton",
        "children",
        "count",
        "daemon",
        "deadline",
        "doing",
        "done",
        "expired",
        "held",
        "ident",
        "index",
        "name",
        "obj",
        "raised",
        "site",
        "thread",
        "waiting",
        "worker",
    )

    def __init__(self, index: int, name: str, thread: Thread | None) -> None:
        self.index = index
        """The how manieth of the run."""
        self.name = name
        self.thread = thread
        self.daemon = thread is not None and thread.daemon
        self.baton: Baton
        """What it waits for when it may not run; threads that run freely have none."""
        self.ident = 0
        self.count = 0
        """Its own probes, up to when it last stopped running."""
        self.children = 0
        self.waiting: Any = None
        """What it waits for: a lock, a thread, the clock; None if it is able to run."""
        self.deadline: float | None = None
        self.expired = False
        self.done = False
        self.held: list[Lock] = []
        self.site = -1
        """The site it is about to pass; -1 for synchronisation, and before it has begun."""
        self.obj: Any = None
        """What it is about to touch: the container, the lock."""
        self.doing = ""
        """What it does with things made of locks: ``condition.wait``, ``queue.get``."""
        self.raised = 0
        self.worker: Worker | None = None
        """Who plays this thread, if it has none of its own."""

    def __repr__(self) -> str:
        return f"<Task {self.name}>"


def main_task() -> Task:
    """The thread that calls the function under test."""
    return Task(0, _FIRST, None)


def child_task(parent: Task, index: int, thread: Thread) -> Task:
    """A thread that another one starts.

    >>> child_task(main_task(), 1, Thread()).name
    'main.1'
    """
    parent.children += 1
    return Task(index, f"{parent.name}.{parent.children}", thread)


# -------------------------------------------------------------------------------------------------
# Batons: who has its own may run.


class Baton(Protocol):
    """Held by its thread unless that may run; only the thread itself waits for it."""

    def acquire(self) -> None:
        """Wait until this thread may run."""

    def release(self) -> None:
        """Let the thread run whose baton this is."""

    def hand(self, other: Baton) -> None:
        """Let another thread run, and wait until this one may."""


class PythonBaton:
    """A baton without the accelerator."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = raw_lock()
        self._lock.acquire()

    def acquire(self) -> None:
        """Wait until this thread may run."""
        self._lock.acquire()

    def release(self) -> None:
        """Let the thread run whose baton this is."""
        self._lock.release()

    def hand(self, other: Baton) -> None:
        """Let another thread run, and wait until this one may."""
        other.release()
        self.acquire()


def new_baton() -> Baton:
    """The fastest that can be had; it is held."""
    module = accelerator()
    baton: Baton = PythonBaton() if module is None else module.Baton()
    return baton
