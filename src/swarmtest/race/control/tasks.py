"""The threads of a run, their batons, and what controlled and free runs have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol

from swarmtest.core.faults import fault_of_exception
from swarmtest.core.result import Fault
from swarmtest.race.accelerator import accelerator
from swarmtest.race.primitives.iteration import looped
from swarmtest.race.primitives.locks import Lock
from swarmtest.race.primitives.policy import Policy, raw_lock
from swarmtest.race.unwinding import Unwound

if TYPE_CHECKING:
    from swarmtest.race.control.worker_threads import WorkerThread


_MAIN = "main"


class ThreadTask:
    """One thread of a run, named after the thread that started it and its number among those."""

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
        "timed",
        "waiting",
        "worker",
    )

    def __init__(self, index: int, name: str, thread: Thread | None) -> None:
        self.index = index
        """Its position among the threads of the run."""
        self.name = name
        self.thread = thread
        self.daemon = thread is not None and thread.daemon
        self.baton: Baton
        """What it waits for while it may not run; threads that run freely have none."""
        self.ident = 0
        self.count = 0
        """The number of its own probes, up to when it last stopped running."""
        self.children = 0
        self.waiting: Any = None
        """What it waits for: a lock, a thread, the clock; None if it is able to run."""
        self.deadline: float | None = None
        self.expired = False
        self.timed = False
        """Whether it waits for a time, so that waiting no longer is no failure: a timer does."""
        self.done = False
        self.held: list[Lock] = []
        self.site = -1
        """The site that it is about to pass; -1 for synchronisation, and before it has begun."""
        self.obj: Any = None
        """The object that it is about to touch: the container, the lock."""
        self.doing = ""
        """What it does with objects built from locks: ``condition.wait``, ``queue.get``."""
        self.raised = 0
        self.worker: WorkerThread | None = None
        """The worker thread that runs this thread, if it has no thread of its own."""

    def __repr__(self) -> str:
        return f"<ThreadTask {self.name}>"


LOGGED = frozenset(
    ("condition.notify", "condition.notify_all", "semaphore.acquire", "semaphore.release")
)
"""The operations that a `SynchronisationLog` notes."""
_WAITS = ("condition.wait", "condition.wait_for")


@dataclass
class SynchronisationLog:
    """What a run has done with semaphores and conditions, which tells why its threads are stuck."""

    _taken: dict[int, Counter[str]] = field(default_factory=dict)
    """How many units of each semaphore each thread has taken and not given back."""
    _notified: set[int] = field(default_factory=set)
    """The conditions on which a thread was notified, whether or not one waited."""
    _objects: list[object] = field(default_factory=list)
    """The objects, which keep their addresses as long as they are here."""

    def note(self, thread: str, kind: str, obj: object, answer: object) -> None:
        """Note an operation that has returned."""
        if kind.startswith("condition.notify"):
            self._objects.append(obj)
            self._notified.add(id(obj))
        elif kind == "semaphore.release" or (kind == "semaphore.acquire" and answer):
            if id(obj) not in self._taken:
                self._objects.append(obj)
                self._taken[id(obj)] = Counter()
            self._taken[id(obj)][thread] += 1 if kind == "semaphore.acquire" else -1

    def holders(self, task: ThreadTask) -> list[tuple[str, int]]:
        """Return which threads hold units of the semaphore that a thread waits for."""
        if task.doing != "semaphore.acquire":
            return []
        taken = self._taken.get(id(task.obj), Counter())
        return [(name, units) for name, units in sorted(taken.items()) if units > 0]

    def name_of(self, culprits: Sequence[ThreadTask]) -> str:
        """Return the kind of the fault of threads that wait for no lock in a cycle."""
        if all(self.holders(task) for task in culprits):
            return "pool exhaustion"
        conditions = {id(task.obj) for task in culprits if task.doing.startswith("condition.wait")}
        nobody_notified = len(conditions) == 1 and not conditions & self._notified
        if nobody_notified and len(culprits) > 1 and all(t.doing in _WAITS for t in culprits):
            return "deadlock"
        return "lost wake-up"


class RunPolicy(Policy):
    """The threads and the outcome of one run, which is controlled or free."""

    watches_loops = False
    """Whether the steps of loops over containers have probes."""

    def __init__(self) -> None:
        self.main = main_task()
        self.tasks = [self.main]
        self.fault: Fault | None = None
        self.problem = ""
        """Why the run says nothing about the program; empty if it does."""
        self.log = SynchronisationLog()
        self.notes: list[str] = []
        self.ended = self.interrupted = False

    def note(self, line: str) -> None:
        """Note something that the user should know; duplicates are dropped."""
        if line not in self.notes:
            self.notes.append(line)

    def iterate(self, site: int, iterable: Any, is_local: bool = False) -> Any:
        """Return what a loop iterates over: with a probe at each step, if threads may share it."""
        if not self.watches_loops:
            return iterable
        return looped(iterable, is_local, site, self.access)

    def fail(self, fault: Fault) -> None:
        """End the run with a fault; the first fault counts."""
        if not self.ended:
            self.fault = fault
        self.end()

    def end(self) -> None:
        """Decide the run: its threads end."""
        self.ended = True

    def run_thread(self, thread: Thread) -> None:
        """Run what a thread is for; an exception that it does not catch is a fault."""
        try:
            thread.run()
        except (Unwound, SystemExit):
            pass  # Python ignores a SystemExit in a thread as well
        except BaseException as error:
            self.fail(fault_of_exception(error))


def main_task() -> ThreadTask:
    """Return the task of the thread that calls the function under test."""
    return ThreadTask(0, _MAIN, None)


def child_task(parent: ThreadTask, index: int, thread: Thread) -> ThreadTask:
    """Return the task of a thread that another one starts.

    >>> child_task(main_task(), 1, Thread()).name
    'main.1'
    """
    parent.children += 1
    return ThreadTask(index, f"{parent.name}.{parent.children}", thread)


class Baton(Protocol):
    """A baton per thread: releasing it lets its thread run, and only that thread waits for it."""

    def acquire(self) -> None:
        """Wait until this thread may run."""

    def release(self) -> None:
        """Let the thread run that the baton belongs to."""

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
        """Let the thread run that the baton belongs to."""
        self._lock.release()

    def hand(self, other: Baton) -> None:
        """Let another thread run, and wait until this one may."""
        other.release()
        self.acquire()


def new_baton() -> Baton:
    """Return a baton, held, in the fastest implementation that is available."""
    module = accelerator()
    baton: Baton = PythonBaton() if module is None else module.Baton()
    return baton
