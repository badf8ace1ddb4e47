"""What stands behind the probes: nothing, or one policy at a time.

Woven code calls ``__p__(site, obj)``, and controlled primitives ask for the policy that is on. To
switch it on, its own `access` is bound to that name in every woven module: a probe is one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError
from swarmtest.race.primitives.originals import raw_monotonic, raw_sleep, raw_time

if TYPE_CHECKING:
    from threading import Thread

    from swarmtest.race.primitives.locks import Lock

PROBE = "__p__"
"""The name that woven code calls before an access; the answer is the object it was given."""
EVENT = "__e__"
"""Where this interpreter may switch threads: called at entries and back-jumps, in feasible mode."""
CALL = "__k__"
"""Calls a function, and knows whether threads may switch before or after; in feasible mode."""


class Policy:
    """Threads run as they like. Policies that do more override what they care for."""

    def access(self, site: int, obj: Any = None) -> Any:
        """A thread is about to read or write a variable."""
        return obj

    def event(self) -> None:
        """A thread is where this interpreter may switch (feasible mode only)."""

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A thread calls something (feasible mode only)."""
        return function(*args, **kwargs)

    def acquire(self, lock: Lock, blocking: bool, timeout: float) -> bool:
        """A thread wants a lock."""
        return lock.raw.acquire(blocking, timeout)

    def release(self, lock: Lock) -> None:
        """A thread gives a lock back."""
        lock.raw.release()

    def operation(self, kind: str, obj: Any, call: Callable[[], Any]) -> Any:
        """A thread uses something made of locks: ``condition.wait``, ``queue.get`` and so on."""
        return call()

    def start(self, thread: Thread, call: Callable[[], None]) -> None:
        """A thread starts another."""
        call()

    def join(self, thread: Thread, timeout: float | None, call: Callable[[], None]) -> None:
        """A thread waits for the end of another."""
        call()

    def is_alive(self, thread: Thread, call: Callable[[], bool]) -> bool:
        """Whether a thread has been started and has not ended."""
        return call()

    def exits(self, code: int) -> None:
        """The program is about to end its process by `os._exit`."""

    def forks(self) -> None:
        """The program is about to fork; in its child no policy is on."""

    def new_number(self) -> int:
        """A number for a thread or future that is made; 0 if it needs none."""
        return 0

    def sleep(self, seconds: float) -> None:
        """A thread sleeps."""
        raw_sleep(seconds)

    def monotonic(self) -> float:
        """What `time.monotonic` answers."""
        return raw_monotonic()

    def time(self) -> float:
        """What `time.time` answers."""
        return raw_time()


class _Current:
    """The policy that is on; primitives look here."""

    policy: Policy | None = None


current = _Current()
_namespaces: list[dict[str, Any]] = []


def _nothing(site: int, obj: Any = None) -> Any:
    return obj


def _no_event() -> None:
    pass


def _plain_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def prepare(namespace: dict[str, Any]) -> None:
    """Bind the probes in the globals of a woven module, before its code runs."""
    _namespaces.append(namespace)
    _bind(namespace, current.policy)


def woven_namespaces() -> list[dict[str, Any]]:
    """The globals of all woven modules."""
    return _namespaces


def _bind(namespace: dict[str, Any], policy: Policy | None) -> None:
    namespace[PROBE] = _nothing if policy is None else policy.access
    namespace[EVENT] = _no_event if policy is None else policy.event
    namespace[CALL] = _plain_call if policy is None else policy.call


@contextmanager
def policy_on(policy: Policy) -> Iterator[None]:
    """While this lasts, probes and primitives ask the policy.

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
