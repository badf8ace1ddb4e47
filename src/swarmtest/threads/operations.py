"""What is made of locks, wrapped to know what a thread does with them; and threads themselves."""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from swarmtest.threads import raw
from swarmtest.threads.policy import current
from swarmtest.threads.primitives import Lock, RLock

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
"""The methods that are told to the policy when they are called."""
OPERATIONS = [
    (owner, name, f"{what}.{'acquire' if name == '__enter__' else name}")
    for owner, (what, names) in _METHODS.items()
    for name in names.split()
]


def operation_of(kind: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that tells the policy what it is."""

    @functools.wraps(method)
    def told(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        policy = current.policy
        if policy is None:
            return method(self, *args, **kwargs)
        return policy.operation(kind, self, lambda: method(self, *args, **kwargs))

    return told


NUMBERED = (threading.Thread, Future)
"""Pools keep these in sets, whose order would be that of addresses."""


def numbering_init(init: Callable[..., None]) -> Callable[..., None]:
    """An ``__init__`` that first gives an object the number that it is hashed by in a run."""

    @functools.wraps(init)
    def numbered(self: Any, /, *args: Any, **kwargs: Any) -> None:
        number = 0 if current.policy is None else current.policy.new_number()
        if number:
            self.__dict__["_number_in_run"] = number
        init(self, *args, **kwargs)

    return numbered


def hash_of_numbered(self: Any) -> int:
    """The object's number, if it was made in a run."""
    return self.__dict__.get("_number_in_run") or object.__hash__(self)


def exits(code: int) -> None:
    """`os._exit`."""
    if current.policy is not None:
        current.policy.exits(code)
    raw.raw_exit(code)


def thread_methods() -> dict[str, Callable[..., Any]]:
    """The methods of a thread that a policy is told of."""
    return {"start": _start, "join": _join, "is_alive": _is_alive}


@functools.wraps(raw.thread_start)
def _start(self: threading.Thread) -> None:
    policy = current.policy
    if policy is None:
        raw.thread_start(self)
    else:
        policy.start(self, lambda: raw.thread_start(self))


@functools.wraps(raw.thread_join)
def _join(self: threading.Thread, timeout: float | None = None) -> None:
    policy = current.policy
    if policy is None:
        raw.thread_join(self, timeout)
    else:
        policy.join(self, timeout, lambda: raw.thread_join(self, timeout))


@functools.wraps(raw.thread_is_alive)
def _is_alive(self: threading.Thread) -> bool:
    policy = current.policy
    if policy is None:
        return raw.thread_is_alive(self)
    return policy.is_alive(self, lambda: raw.thread_is_alive(self))
