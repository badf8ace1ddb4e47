"""Controlled primitives in place of Python's own, for as long as someone needs them.

They go where the names are: into `threading`, `time` and `queue`, and into every loaded module that
took such a name for its own (``from threading import Lock``). Plain locks that modules hold are
wrapped, so that those made before are controlled as well.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from swarmtest.race.primitives import locks as primitives
from swarmtest.race.primitives import originals as raw
from swarmtest.race.primitives.locks import (
    NUMBERED,
    OPERATIONS,
    exits,
    hash_of_numbered,
    numbering_init,
    operation_of,
    thread_methods,
)
from swarmtest.race.primitives.originals import (
    raw_monotonic,
    raw_monotonic_ns,
    raw_perf_counter,
    raw_perf_counter_ns,
    raw_sleep,
    raw_time,
    raw_time_ns,
)
from swarmtest.race.primitives.policy import current, switch_to

# -------------------------------------------------------------------------------------------------
# Clocks and sleep: those of the run, for its threads.

_NANO = 1_000_000_000


def sleep(seconds: float) -> None:
    """`time.sleep`."""
    policy = current.policy
    if policy is None:
        raw_sleep(seconds)
    else:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        policy.sleep(seconds)


def monotonic() -> float:
    """`time.monotonic`."""
    policy = current.policy
    return raw_monotonic() if policy is None else policy.monotonic()


def time() -> float:
    """`time.time`."""
    policy = current.policy
    return raw_time() if policy is None else policy.time()


def perf_counter() -> float:
    """`time.perf_counter`."""
    policy = current.policy
    return raw_perf_counter() if policy is None else policy.monotonic()


def monotonic_ns() -> int:
    """`time.monotonic_ns`."""
    policy = current.policy
    return raw_monotonic_ns() if policy is None else round(policy.monotonic() * _NANO)


def time_ns() -> int:
    """`time.time_ns`."""
    policy = current.policy
    return raw_time_ns() if policy is None else round(policy.time() * _NANO)


def perf_counter_ns() -> int:
    """`time.perf_counter_ns`."""
    policy = current.policy
    return raw_perf_counter_ns() if policy is None else round(policy.monotonic() * _NANO)


# -------------------------------------------------------------------------------------------------

_OURS = {
    raw.raw_lock: primitives.Lock,
    raw.raw_lock_class: primitives.Lock,
    raw.raw_rlock: primitives.RLock,
    raw.RAW_RLOCK_TYPE: primitives.RLock,
    raw.raw_sleep: sleep,
    raw.raw_monotonic: monotonic,
    raw.raw_time: time,
    raw.raw_perf_counter: perf_counter,
    raw.raw_monotonic_ns: monotonic_ns,
    raw.raw_time_ns: time_ns,
    raw.raw_perf_counter_ns: perf_counter_ns,
    raw.raw_simple_queue: queue._PySimpleQueue,  # type: ignore[attr-defined]
    raw.raw_exit: exits,
}
_BY_ID = {id(theirs): ours for theirs, ours in _OURS.items()}
_LEFT_ALONE = ("_thread", "importlib", "_frozen_importlib", "swarmtest", "_pytest", "faulthandler")

_Undo = Callable[[], None]


class _Installed:
    count = 0
    undo: list[_Undo] = []


@contextmanager
def installed() -> Iterator[None]:
    """While this lasts, locks, threads and clocks are ours; plain ones, unless a run is on."""
    if not _Installed.count:
        _install()
    _Installed.count += 1
    try:
        yield
    finally:
        _Installed.count -= 1
        if not _Installed.count:
            while _Installed.undo:
                _Installed.undo.pop()()


def _install() -> None:
    for module in list(sys.modules.values()):
        name = getattr(module, "__name__", "")
        if isinstance(module, ModuleType) and isinstance(name, str) and not _is_left_alone(name):
            _take_over(module)
    for method, ours in thread_methods().items():
        _set(threading.Thread, method, ours)
    for owner, name, kind in OPERATIONS:
        _set(owner, name, operation_of(kind, owner.__dict__[name]))
    for numbered in NUMBERED:
        _set(numbered, "__init__", numbering_init(numbered.__init__))
        _set(numbered, "__hash__", hash_of_numbered)
    _take_over_handlers()


def _is_left_alone(name: str) -> bool:
    return name.startswith(_LEFT_ALONE)


def _take_over(module: ModuleType) -> None:
    names = vars(module)
    for name, value in list(names.items()):
        ours = _BY_ID.get(id(value))
        if ours is not None:
            _put(names, name, ours)
        elif type(value) is raw.RAW_LOCK_TYPE and module is not threading:
            _put(names, name, primitives.Lock(value))
        elif type(value) is raw.RAW_RLOCK_TYPE and module is not threading:
            _put(names, name, primitives.RLock())


def _take_over_handlers() -> None:
    """Handlers of the log hold a lock while they print the program's objects."""
    for reference in logging._handlerList:  # type: ignore[attr-defined]
        handler = reference()
        if handler is not None and type(handler.lock) is raw.RAW_RLOCK_TYPE:
            _put(handler.__dict__, "lock", primitives.RLock())


def _put(names: dict[str, Any], name: str, value: Any) -> None:
    before = names[name]
    names[name] = value

    def undo() -> None:
        if names.get(name) is value:
            names[name] = before

    _Installed.undo.append(undo)


def _set(owner: type, name: str, value: Any) -> None:
    before = owner.__dict__.get(name)
    setattr(owner, name, value)

    def undo() -> None:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    _Installed.undo.append(undo)


def _forget_run() -> None:
    """A fork has one thread: no run goes on in it."""
    if current.policy is not None:
        switch_to(None)


def _tell_run() -> None:
    if current.policy is not None:
        current.policy.forks()


os.register_at_fork(before=_tell_run, after_in_child=_forget_run)
