"""Install the controlled primitives in place of Python's own, for as long as they are needed.

They are put where the names are: into `threading`, `time` and `queue`, and into every loaded module
that imported such a name (``from threading import Lock``). Plain locks that modules hold are
wrapped, so that locks created earlier are controlled as well.
"""

from __future__ import annotations

import functools
import gc
import io
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
from swarmtest.race.primitives.locks import (
    NUMBERED,
    OPERATIONS,
    exits,
    hash_of_numbered,
    numbering_init,
    operation_of,
    run_timer,
    thread_methods,
)
from swarmtest.race.primitives.policy import (
    RAW_LOCK_TYPE,
    RAW_RLOCK_TYPE,
    current,
    raw_exit,
    raw_lock,
    raw_lock_class,
    raw_monotonic,
    raw_monotonic_ns,
    raw_perf_counter,
    raw_perf_counter_ns,
    raw_rlock,
    raw_simple_queue,
    raw_sleep,
    raw_time,
    raw_time_ns,
    switch_to,
)
from swarmtest.race.unwinding import Unwound

# Clocks and sleep: a thread of a run gets the run's time.

_NANO = 1_000_000_000


def sleep(seconds: float) -> None:
    """Replace `time.sleep`."""
    policy = current.policy
    if policy is None:
        raw_sleep(seconds)
    else:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        policy.sleep(seconds)


def monotonic() -> float:
    """Replace `time.monotonic`."""
    policy = current.policy
    return raw_monotonic() if policy is None else policy.monotonic()


def time() -> float:
    """Replace `time.time`."""
    policy = current.policy
    return raw_time() if policy is None else policy.time()


def perf_counter() -> float:
    """Replace `time.perf_counter`."""
    policy = current.policy
    return raw_perf_counter() if policy is None else policy.monotonic()


def monotonic_ns() -> int:
    """Replace `time.monotonic_ns`."""
    policy = current.policy
    return raw_monotonic_ns() if policy is None else round(policy.monotonic() * _NANO)


def time_ns() -> int:
    """Replace `time.time_ns`."""
    policy = current.policy
    return raw_time_ns() if policy is None else round(policy.time() * _NANO)


def perf_counter_ns() -> int:
    """Replace `time.perf_counter_ns`."""
    policy = current.policy
    return raw_perf_counter_ns() if policy is None else round(policy.monotonic() * _NANO)


# Installing the replacements.

_REPLACEMENTS: dict[Any, Any] = {
    raw_lock: primitives.Lock,
    raw_lock_class: primitives.Lock,
    raw_rlock: primitives.RLock,
    RAW_RLOCK_TYPE: primitives.RLock,
    raw_sleep: sleep,
    raw_monotonic: monotonic,
    raw_time: time,
    raw_perf_counter: perf_counter,
    raw_monotonic_ns: monotonic_ns,
    raw_time_ns: time_ns,
    raw_perf_counter_ns: perf_counter_ns,
    raw_simple_queue: queue._PySimpleQueue,  # type: ignore[attr-defined]
    raw_exit: exits,
}
# By identity, because the values in modules may be unhashable or define `__eq__`.
_REPLACEMENTS_BY_ID = {id(original): ours for original, ours in _REPLACEMENTS.items()}
_EXCLUDED_PREFIXES = (
    "_thread",
    "importlib",
    "_frozen_importlib",
    "swarmtest",
    "_pytest",
    "faulthandler",
)

_Undo = Callable[[], None]


class _Installed:
    count = 0
    undo: list[_Undo] = []
    sees_forks = False


@contextmanager
def installed() -> Iterator[None]:
    """Replace locks, threads and clocks inside a ``with`` block.

    The replacements behave like the originals unless a run is on.
    """
    if not _Installed.sees_forks:
        # Hooks cannot be removed, so a process that runs no program gets none.
        os.register_at_fork(before=_report_fork, after_in_child=_end_run_in_fork)
        _Installed.sees_forks = True
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
    # Imported here, as asyncio below: it needs multiprocessing, which is large.
    from swarmtest.race.primitives import blocking

    functions = {id(original): ours for original, ours in blocking.FUNCTIONS.items()}
    replacements = _REPLACEMENTS_BY_ID | functions
    for module in list(sys.modules.values()):
        name = getattr(module, "__name__", "")
        if isinstance(module, ModuleType) and isinstance(name, str) and not _is_excluded(name):
            _patch_module(module, replacements)
    for method, ours in thread_methods().items():
        _replace_attribute(threading.Thread, method, ours)
    _replace_attribute(threading.Timer, "run", run_timer)
    for owner, name, kind in OPERATIONS:
        _replace_attribute(owner, name, operation_of(kind, owner.__dict__[name]))
    for numbered in NUMBERED:
        _replace_attribute(numbered, "__init__", numbering_init(numbered.__init__))
        _replace_attribute(numbered, "__hash__", hash_of_numbered)
    _patch_log_handlers()
    _patch_asyncio()
    _patch_blocking_calls()
    _hide_unwound()


def _is_excluded(name: str) -> bool:
    return name.startswith(_EXCLUDED_PREFIXES)


def _patch_module(module: ModuleType, replacements: dict[int, Any]) -> None:
    names = vars(module)
    for name, value in list(names.items()):
        ours = replacements.get(id(value))
        if ours is not None:
            _replace_item(names, name, ours)
        elif type(value) is RAW_LOCK_TYPE and module is not threading:
            _replace_item(names, name, primitives.Lock(value))
        elif type(value) is RAW_RLOCK_TYPE and module is not threading:
            _replace_item(names, name, primitives.RLock())


def _patch_log_handlers() -> None:
    """Replace the locks of log handlers, which hold them while they print the program's objects."""
    for reference in logging._handlerList:  # type: ignore[attr-defined]
        handler = reference()
        if handler is not None and type(handler.lock) is RAW_RLOCK_TYPE:
            _replace_item(handler.__dict__, "lock", primitives.RLock())


def _patch_asyncio() -> None:
    # Imported here: asyncio is large, and this module is imported with the package.
    from swarmtest.race.loops.patches import METHODS, MODULES, NAMES

    for owner, name, ours in METHODS:
        _replace_attribute(owner, name, ours)
    for module in MODULES:
        for name, value in list(vars(module).items()):
            if id(value) in NAMES:
                _replace_item(vars(module), name, NAMES[id(value)])


def _patch_blocking_calls() -> None:
    from swarmtest.race.primitives import blocking

    for owner, name, ours in blocking.METHODS:
        _replace_attribute(owner, name, ours)
    _replace_item(vars(io), "open", blocking.OPEN)
    # The locks that exist already have Python's methods among their attributes.
    for lock in gc.get_objects():
        if type(lock) in blocking.PROCESS_LOCKS:
            _replace_item(vars(lock), "acquire", functools.partial(blocking.acquire, lock._semlock))


def _hide_unwound() -> None:
    """Hide what Python prints when the threads of a decided run are ended."""

    def is_other(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], Unwound))

    for name in ("concurrent.futures", "asyncio"):
        logger = logging.getLogger(name)
        logger.addFilter(is_other)
        _Installed.undo.append(functools.partial(logger.removeFilter, is_other))
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, Unwound):
            before(unraisable)

    def undo() -> None:
        if sys.unraisablehook is hook:
            sys.unraisablehook = before

    sys.unraisablehook = hook
    _Installed.undo.append(undo)


def _replace_item(names: dict[str, Any], name: str, value: Any) -> None:
    before = names[name]
    names[name] = value

    def undo() -> None:
        if names.get(name) is value:
            names[name] = before

    _Installed.undo.append(undo)


def _replace_attribute(owner: type, name: str, value: Any) -> None:
    before = owner.__dict__.get(name)
    setattr(owner, name, value)

    def undo() -> None:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    _Installed.undo.append(undo)


def _end_run_in_fork() -> None:
    """Switch the policy off in a forked child, which has one thread only."""
    if current.policy is not None:
        switch_to(None)


def _report_fork() -> None:
    if current.policy is not None:
        current.policy.forks()
