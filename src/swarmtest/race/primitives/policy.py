"""The current policy: what probes and primitives do, if anything; and Python's own primitives.

Woven code calls ``__p__(site, obj)``, and controlled primitives ask the current policy. To switch a
policy on, its own `access` method is bound to that name in every woven module, so that a probe is a
single call.

Python's own locks, threads and clocks are saved here before anything is replaced.
"""

from __future__ import annotations

import _thread
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError

if TYPE_CHECKING:
    from threading import Thread

    from swarmtest.race.primitives.locks import Lock


# Python's own primitives.

raw_lock = _thread.allocate_lock
raw_lock_class = threading.Lock
RAW_LOCK_TYPE = type(raw_lock())
RAW_RLOCK_TYPE = _thread.RLock
raw_rlock = threading.RLock
raw_sleep = time.sleep
raw_monotonic = time.monotonic
raw_time = time.time
raw_perf_counter = time.perf_counter
raw_monotonic_ns = time.monotonic_ns
raw_time_ns = time.time_ns
raw_perf_counter_ns = time.perf_counter_ns
raw_exit = os._exit
raw_simple_queue = queue.SimpleQueue
get_ident = _thread.get_ident

thread_start = threading.Thread.start
thread_join = threading.Thread.join
thread_is_alive = threading.Thread.is_alive
timer_run = threading.Timer.run


# Policies.

PROBE = "__p__"
"""The name that woven code calls before an access; it returns the object that it gets."""
EVENT = "__e__"
"""The name that woven code calls in feasible mode at entries and backward jumps, where this
interpreter may switch threads."""
CALL = "__k__"
"""The name that woven code calls in feasible mode to call a function; it knows whether threads
may switch before or after."""
ITERATE = "__i__"
"""The name that woven code calls with what a loop iterates over; it returns what to iterate over
instead."""


class Policy:
    """A policy that lets threads run freely; subclasses override the methods they need."""

    def access(self, site: int, obj: Any = None) -> Any:
        """Handle a thread that is about to read or write a variable; return `obj`."""
        return obj

    def event(self) -> None:
        """Handle a thread that is where this interpreter may switch (feasible mode only)."""

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function for a thread (feasible mode only)."""
        return function(*args, **kwargs)

    def iterate(self, site: int, iterable: Any, is_local: bool = False) -> Any:
        """Return what a loop iterates over."""
        return iterable

    def acquire(self, lock: Lock, blocking: bool, timeout: float) -> bool:
        """Acquire a lock for a thread."""
        return lock.raw.acquire(blocking, timeout)

    def release(self, lock: Lock) -> None:
        """Release a lock for a thread."""
        lock.raw.release()

    def operation(self, kind: str, obj: Any, call: Callable[[], Any]) -> Any:
        """Call an operation of an object built from locks, such as ``condition.wait``."""
        return call()

    def start(self, thread: Thread, call: Callable[[], None]) -> None:
        """Start a thread."""
        call()

    def join(self, thread: Thread, timeout: float | None, call: Callable[[], None]) -> None:
        """Wait for a thread to end."""
        call()

    def is_alive(self, thread: Thread, call: Callable[[], bool]) -> bool:
        """Return whether a thread has been started and has not ended."""
        return call()

    def wait_until(
        self, kind: str, obj: Any, is_ready: Callable[[], bool], timeout: float | None
    ) -> bool | None:
        """Let other threads run until input or output is ready; return whether it is.

        None means that the thread is not controlled, so the caller has to wait in its usual way.
        """
        return None

    def wait_for_timer(self, call: Callable[[], Any]) -> None:
        """Let a thread wait until its timer is due or cancelled."""
        call()

    def runs_loop(self, loop: Any, call: Callable[[], None]) -> None:
        """Run one iteration of an event loop of asyncio."""
        call()

    def creates_task(self, task: Any) -> None:
        """Handle a new task of an event loop."""

    def sets_timer(self, handle: Any) -> None:
        """Handle a new timer of an event loop."""

    def calls_loop(self, loop: Any) -> bool:
        """Handle a thread that calls an event loop; return whether the loop needs no signal."""
        return False

    def loop_reports(
        self, loop: Any, context: dict[str, Any], original: Callable[..., None]
    ) -> None:
        """Handle what an event loop would log."""
        original(loop, context)

    def exits(self, code: int) -> None:
        """Handle a program that is about to end its process by `os._exit`."""

    def forks(self) -> None:
        """Handle a program that is about to fork; its child has no policy."""

    def new_number(self) -> int:
        """Return a number for a new thread or future; 0 if it needs none."""
        return 0

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        raw_sleep(seconds)

    def monotonic(self) -> float:
        """Return the time for `time.monotonic`."""
        return raw_monotonic()

    def time(self) -> float:
        """Return the time for `time.time`."""
        return raw_time()


class _Current:
    """The holder of the current policy, which primitives look up."""

    policy: Policy | None = None


current = _Current()
_namespaces: list[dict[str, Any]] = []


def _no_probe(site: int, obj: Any = None) -> Any:
    return obj


def _no_event() -> None:
    pass


def _plain_iteration(site: int, iterable: Any, is_local: bool = False) -> Any:
    return iterable


def _plain_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def prepare(namespace: dict[str, Any]) -> None:
    """Bind the probes in the globals of a woven module, before its code runs."""
    _namespaces.append(namespace)
    _bind(namespace, current.policy)


def woven_namespaces() -> list[dict[str, Any]]:
    """Return the globals of all woven modules."""
    return _namespaces


def _bind(namespace: dict[str, Any], policy: Policy | None) -> None:
    namespace[PROBE] = _no_probe if policy is None else policy.access
    namespace[EVENT] = _no_event if policy is None else policy.event
    namespace[CALL] = _plain_call if policy is None else policy.call
    namespace[ITERATE] = _plain_iteration if policy is None else policy.iterate


@contextmanager
def policy_on(policy: Policy) -> Iterator[None]:
    """Make probes and primitives ask a policy inside a ``with`` block.

    >>> with policy_on(Policy()):
    ...     current.policy is not None
    True
    """
    if current.policy is not None:
        raise UserError("a controlled run is on already: runs cannot be nested in one process")
    switch_to(policy)
    try:
        yield
    finally:
        switch_to(None)


def switch_to(policy: Policy | None) -> None:
    """Bind every probe to a policy, or to none."""
    current.policy = policy
    for namespace in _namespaces:
        _bind(namespace, policy)
