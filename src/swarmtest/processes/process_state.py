"""What everything in a process shares, and what a test has changed of it.

A test may lower a limit, block a signal, clear the environment, remove the current directory or
replace a built-in function. The tests after it in the same process would fail for that, or the code
that runs them would. Putting things back is not enough: a program that set up something once, and
remembers that in a variable of its own, would miss it. So a process in which something changed is
replaced by a fresh fork.

Two kinds of change are told apart. Some take away what other tests need, like a limit that is lower
now. Others may be the way in which a program works, like a signal handler that it installs when it
is first used. If tests do such a thing all the time, it is a habit of the program, which a new
process for each test would only make slow (`Habits`).
"""

from __future__ import annotations

import builtins
import faulthandler
import gc
import io
import os
import resource
import signal
import sys
import threading

# By their names: a test may replace what these modules have.
from _locale import LC_ALL, setlocale
from _signal import getsignal  # type: ignore[import-not-found]  # it makes no enumerations
from collections import Counter
from collections.abc import Callable, Collection, Container
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from os import getcwd, getegid, geteuid, getgid, getgroups, getpriority, getuid, stat, umask
from resource import getrlimit
from signal import getitimer, pthread_sigmask
from sys import getprofile, getrecursionlimit, gettrace
from threading import active_count
from typing import Any, NamedTuple

_LIMITS = ("AS", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "STACK")
_SIGNALS = sorted(set(signal.valid_signals()) & set(range(1, 32)))
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_STREAMS = ("stdin", "stdout", "stderr")
_HOOKS = ("excepthook", "unraisablehook", "displayhook")

Limit = tuple[int, int]
"""A soft and a hard limit."""


def _is_lower(before: Limit, now: Limit) -> bool:
    return any(
        new != resource.RLIM_INFINITY and (old == resource.RLIM_INFINITY or new < old)
        for old, new in zip(before, now, strict=True)
    )


_BUILTINS = tuple(
    name for name in vars(builtins) if name[0] != "_" or name in ("__import__", "__build_class__")
)
_own_builtins = itemgetter(*_BUILTINS)


def _builtin_objects() -> tuple[int, ...]:
    """Return what all code finds without an import, by the addresses of the objects."""
    return tuple(map(id, _own_builtins(vars(builtins))))


_OWN_MODULES = tuple(name for name in sys.modules if name.startswith("swarmtest"))


def _has_own_modules() -> bool:
    modules = sys.modules
    return all(name in modules for name in _OWN_MODULES)


def _current_directory() -> str:
    try:
        return getcwd()
    except OSError:  # it was removed
        return ""


def _root_directory() -> tuple[int, int]:
    status = stat("/")
    return status.st_dev, status.st_ino


def _mask_of_new_files() -> int:
    mask = umask(0o077)
    umask(mask)
    return mask


def _environment() -> tuple[int, dict[Any, Any]]:
    # The dictionary behind it, where there is one: it takes a tenth of the time to copy.
    environment = os.environ
    return id(environment), dict(getattr(environment, "_data", environment))


def _streams() -> list[tuple[int, bool]]:
    streams = [getattr(sys, name, None) for name in _STREAMS]
    return [(id(each), type(each) is io.TextIOWrapper and each.closed) for each in streams]


def _hooks() -> list[int]:
    hooks = [id(getattr(sys, name, None)) for name in _HOOKS]
    return [*hooks, id(threading.excepthook), id(gettrace()), id(getprofile())]


def _priority() -> int:
    return getpriority(os.PRIO_PROCESS, 0)


class _Part(NamedTuple):
    """Something that all code in a process shares."""

    name: str
    read: Callable[[], Any]
    takes_away: Callable[[Any, Any], bool]
    """Whether others miss something, given the value before and the one now, which differs."""


def _always(_before: object, _now: object) -> bool:
    return True


def _never(_before: object, _now: object) -> bool:
    return False


_PARTS = [
    _Part("the depth of recursion", getrecursionlimit, lambda before, now: now < before),
    *(
        _Part(f"RLIMIT_{name}", partial(getrlimit, getattr(resource, f"RLIMIT_{name}")), _is_lower)
        for name in _LIMITS
    ),
    _Part("built-in functions", _builtin_objects, _always),
    _Part("modules", _has_own_modules, _always),
    _Part("the user", lambda: (getuid(), geteuid()), _always),
    _Part("the group", lambda: (getgid(), getegid(), getgroups()), _always),
    _Part("the root directory", _root_directory, _always),
    _Part("the current directory", _current_directory, lambda _, now: not now),
    _Part("timers", lambda: [getitimer(timer) != (0.0, 0.0) for timer in _TIMERS], _always),
    _Part("the fault handler", faulthandler.is_enabled, lambda _, now: not now),
    _Part("the environment", _environment, _never),
    _Part("blocked signals", lambda: pthread_sigmask(signal.SIG_BLOCK, ()), _never),
    _Part("signal handlers", lambda: [id(getsignal(number)) for number in _SIGNALS], _never),
    _Part("the mask of new files", _mask_of_new_files, _never),
    _Part("standard streams", _streams, _never),
    _Part("hooks of the interpreter", _hooks, _never),
    _Part("the garbage collector", lambda: (gc.isenabled(), gc.get_threshold()), _never),
    _Part("the locale", lambda: setlocale(LC_ALL, None), _never),
    _Part("the priority", _priority, _never),
    _Part("threads", active_count, _never),
]
_READS = [part.read for part in _PARTS]
_UNREADABLE = (OSError, ValueError, LookupError, AttributeError, TypeError)


@dataclass(frozen=True)
class StateChanges:
    """Names of what has changed in a process."""

    taken: tuple[str, ...] = ()
    """What takes away something that other tests need."""
    others: tuple[str, ...] = ()

    def but(self, habits: Container[str]) -> tuple[str, ...]:
        """Return all but the habits of a program.

        >>> StateChanges(("RLIMIT_AS",), ("the locale", "timers")).but({"the locale"})
        ('RLIMIT_AS', 'timers')
        """
        return (*self.taken, *(name for name in self.others if name not in habits))


_NOTHING = StateChanges()


class ProcessState:
    """What all code in this process shares, as it was when this was made.

    >>> state = ProcessState()
    >>> limit = sys.getrecursionlimit()
    >>> sys.setrecursionlimit(limit - 1)
    >>> state.changes()
    StateChanges(taken=('the depth of recursion',), others=())
    >>> sys.setrecursionlimit(limit)
    >>> state.changes()
    StateChanges(taken=(), others=())
    """

    def __init__(self) -> None:
        self._before = [_value(part) for part in _PARTS]
        # Kept, so that no other object gets the address of one of these.
        streams = [getattr(sys, name, None) for name in _STREAMS]
        hooks = [getattr(sys, name, None) for name in _HOOKS]
        handlers = [getsignal(number) for number in _SIGNALS]
        functions = list(vars(builtins).values())
        others = (threading.excepthook, gettrace(), getprofile(), os.environ)
        self._objects = (streams, hooks, handlers, functions, others)

    def changes(self) -> StateChanges:
        """Return what is different now."""
        with suppress(*_UNREADABLE):
            if [read() for read in _READS] == self._before:
                return _NOTHING
        taken: list[str] = []
        others: list[str] = []
        for part, before in zip(_PARTS, self._before, strict=True):
            now = _value(part)
            if now == before:
                continue
            loss = now is None or part.takes_away(before, now)
            (taken if loss else others).append(part.name)
        return StateChanges(tuple(taken), tuple(others))


def _value(part: _Part) -> Any:
    """Return the value of a part; None if it cannot be read any more."""
    with suppress(*_UNREADABLE):
        return part.read()
    return None


_FEW_TESTS = 5
_MOST_TESTS = 100


class Habits:
    """What the tests of a program change so often that it is the program's way of working.

    It is a habit if four of five tests do it, or a hundred in all.

    >>> habits = Habits()
    >>> for _ in range(5):
    ...     habits.count_test()
    ...     habits.count_changes(["the locale"])
    >>> "the locale" in habits
    True
    """

    def __init__(self) -> None:
        self._tests = 0
        self._changes: Counter[str] = Counter()
        self._names: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def count_test(self) -> None:
        """Count a test after which the process was compared."""
        self._tests += 1

    def count_changes(self, names: Collection[str]) -> None:
        """Count what the last test changed."""
        self._changes.update(names)
        for name in names:
            tests = self._changes[name]
            often = tests >= _FEW_TESTS and 5 * tests >= 4 * self._tests
            if often or tests >= _MOST_TESTS:
                self._names.add(name)
