"""Locks that ask the current policy, and are plain locks if there is none.

Everything else that Python offers for threads (conditions, events, semaphores, barriers, queues,
pools) is Python code on top of locks, so it follows the policy too. The methods of these classes
are wrapped only to tell the policy which operation a thread performs.
"""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

from swarmtest.race.primitives.policy import (
    current,
    get_ident,
    raw_exit,
    raw_lock,
    thread_is_alive,
    thread_join,
    thread_start,
    timer_run,
)

if TYPE_CHECKING:
    from _thread import LockType

    from swarmtest.race.control.tasks import ThreadTask


class Lock:
    """A replacement for `threading.Lock`."""

    __slots__ = ("__weakref__", "outer", "owner", "raw")

    def __init__(self, raw: LockType | None = None, outer: RLock | None = None) -> None:
        self.raw = raw_lock() if raw is None else raw
        self.owner: ThreadTask | None = None
        """The thread that holds it in the current run."""
        self.outer = outer
        """The reentrant lock that it is part of."""

    def free(self) -> None:
        """Release the lock after the run in which it was held."""
        self.owner = None
        if self.raw.locked():
            self.raw.release()
        if self.outer is not None:
            self.outer.forget_owner()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock; wait if another thread holds it."""
        policy = current.policy
        if policy is None:
            return self.raw.acquire(blocking, timeout)
        _check_timeout(blocking, timeout)
        return policy.acquire(self, blocking, timeout)

    def release(self) -> None:
        """Release the lock."""
        policy = current.policy
        if policy is None:
            self.raw.release()
        else:
            policy.release(self)

    def locked(self) -> bool:
        """Return whether a thread holds the lock."""
        return self.raw.locked()

    acquire_lock, release_lock, locked_lock = acquire, release, locked

    def __enter__(self) -> bool:
        policy = current.policy
        if policy is None:
            return self.raw.acquire()
        return policy.acquire(self, True, -1)

    def __exit__(self, *_: object) -> None:
        policy = current.policy
        if policy is None:
            self.raw.release()
        else:
            policy.release(self)

    def _at_fork_reinit(self) -> None:
        self.raw = raw_lock()
        self.owner = None

    def __repr__(self) -> str:
        return f"<{'locked' if self.locked() else 'unlocked'} swarmtest Lock at {id(self):#x}>"


class RLock:
    """A replacement for `threading.RLock`."""

    __slots__ = ("__weakref__", "_count", "_owner", "block")

    def __init__(self) -> None:
        self.block = Lock(outer=self)
        self._owner: int | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock once more; wait if another thread holds it."""
        me = get_ident()
        if self._owner == me:
            self._count += 1
            return True
        policy = current.policy
        if policy is None:
            taken = self.block.raw.acquire(blocking, timeout)
        else:
            _check_timeout(blocking, timeout)
            taken = policy.acquire(self.block, blocking, timeout)
        if taken:
            self._owner, self._count = me, 1
        return taken

    def release(self) -> None:
        """Release the lock once."""
        if self._owner != get_ident():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = None
            policy = current.policy
            if policy is None:
                self.block.raw.release()
            else:
                policy.release(self.block)

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()

    def locked(self) -> bool:
        """Return whether a thread holds the lock."""
        return self.block.locked()

    # The protocol that `threading.Condition` uses on reentrant locks.

    def _release_save(self) -> tuple[int, int | None]:
        if not self._count:
            raise RuntimeError("cannot release un-acquired lock")
        state = self._count, self._owner
        self._count, self._owner = 0, None
        self.block.release()
        return state

    def _acquire_restore(self, state: tuple[int, int | None]) -> None:
        self.block.acquire()
        self._count, self._owner = state

    def _is_owned(self) -> bool:
        return self._owner == get_ident()

    def _recursion_count(self) -> int:
        return self._count if self._owner == get_ident() else 0

    def _at_fork_reinit(self) -> None:
        self.block._at_fork_reinit()
        self._owner, self._count = None, 0

    def forget_owner(self) -> None:
        """Reset the lock after the run in which it was held."""
        self._owner, self._count = None, 0


class Started:
    """The event that a thread sets when it has begun, made of a real lock.

    The starting thread waits for it, so that the new thread has an identity when `start` returns.
    It is internal to Python, so no policy may interfere with it.
    """

    __slots__ = ("_gate", "_is_set")

    def __init__(self) -> None:
        self._gate = raw_lock()
        self._gate.acquire()
        self._is_set = False

    def is_set(self) -> bool:
        """Return whether the thread has begun."""
        return self._is_set

    def set(self) -> None:
        """Note that the thread has begun."""
        self._is_set = True
        self._gate.release()

    def wait(self, timeout: float | None = None) -> Literal[True]:
        """Wait until the thread has begun."""
        if not self._is_set:
            with self._gate:
                pass
        return True

    def _at_fork_reinit(self) -> None:
        self._gate = raw_lock()


def _check_timeout(blocking: Any, timeout: float) -> None:
    if timeout != -1:
        if not blocking:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if timeout < 0:
            raise ValueError("timeout value must be a non-negative number")


# Synchronisation objects and threads.

_METHODS: dict[type, tuple[str, str]] = {
    threading.Condition: ("condition", "__enter__ wait wait_for notify notify_all"),
    threading.Event: ("event", "set clear wait"),
    threading.Semaphore: ("semaphore", "__enter__ acquire release"),
    threading.BoundedSemaphore: ("semaphore", "release"),
    threading.Barrier: ("barrier", "wait reset abort"),
    queue.Queue: ("queue", "put get join task_done"),
    queue._PySimpleQueue: ("queue", "put get"),  # type: ignore[attr-defined]
    Future: ("future", "result exception cancel"),
    ThreadPoolExecutor: ("pool", "submit shutdown"),
}
SYNCHRONISERS = (*_METHODS, threading.Thread, Lock, RLock)
OWN_POINT = {"start", "join", "acquire"}.union(*(names.split() for _, names in _METHODS.values()))
"""The methods whose calls are reported to the policy."""
OPERATIONS = [
    (owner, name, f"{what}.{'acquire' if name == '__enter__' else name}")
    for owner, (what, names) in _METHODS.items()
    for name in names.split()
]


def operation_of(kind: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that reports its call to the policy."""

    @functools.wraps(method)
    def reporting(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        policy = current.policy
        if policy is None:
            return method(self, *args, **kwargs)
        return policy.operation(kind, self, lambda: method(self, *args, **kwargs))

    return reporting


NUMBERED = (threading.Thread, Future)
"""The classes whose instances are numbered. Pools keep them in sets, which would be ordered by
address."""


def numbering_init(init: Callable[..., None]) -> Callable[..., None]:
    """Return an ``__init__`` that first numbers the object; in a run it is hashed by its number."""

    @functools.wraps(init)
    def numbered(self: Any, /, *args: Any, **kwargs: Any) -> None:
        number = 0 if current.policy is None else current.policy.new_number()
        if number:
            self.__dict__["_number_in_run"] = number
        init(self, *args, **kwargs)

    return numbered


def hash_of_numbered(self: Any) -> int:
    """Return the object's number if it was created in a run, else its usual hash."""
    return self.__dict__.get("_number_in_run") or object.__hash__(self)


def exits(code: int) -> None:
    """Replace `os._exit`."""
    if current.policy is not None:
        current.policy.exits(code)
    raw_exit(code)


def hook_thread(
    thread: threading.Thread, begin: Callable[[], None], end: Callable[[], None]
) -> None:
    """Call `begin` in a thread in place of its `run`, and `end` when it has ended.

    Python calls a thread's `_delete` when it ends.
    """
    own: dict[str, Any] = thread.__dict__
    run = own.get("run")

    def begins() -> None:
        if run is None:
            own.pop("run", None)
        else:
            own["run"] = run
        begin()

    def ends() -> None:
        own.pop("_delete", None)
        thread._delete()  # type: ignore[attr-defined]
        end()

    own["run"], own["_delete"] = begins, ends
    own["_started"] = Started()


def thread_methods() -> dict[str, Callable[..., Any]]:
    """Return the replaced methods of `threading.Thread`."""
    return {"start": _start, "join": _join, "is_alive": _is_alive}


@functools.wraps(thread_start)
def _start(self: threading.Thread) -> None:
    policy = current.policy
    if policy is None:
        thread_start(self)
    else:
        policy.start(self, lambda: thread_start(self))


@functools.wraps(thread_join)
def _join(self: threading.Thread, timeout: float | None = None) -> None:
    policy = current.policy
    if policy is None:
        thread_join(self, timeout)
    else:
        policy.join(self, timeout, lambda: thread_join(self, timeout))


@functools.wraps(thread_is_alive)
def _is_alive(self: threading.Thread) -> bool:
    policy = current.policy
    if policy is None:
        return thread_is_alive(self)
    return policy.is_alive(self, lambda: thread_is_alive(self))


@functools.wraps(timer_run)
def run_timer(self: threading.Timer) -> None:
    """Replace `threading.Timer.run`."""
    policy = current.policy
    if policy is None:
        timer_run(self)
        return
    policy.wait_for_timer(lambda: self.finished.wait(self.interval))
    if not self.finished.is_set():
        self.function(*self.args, **self.kwargs)
    self.finished.set()
