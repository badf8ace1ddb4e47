"""A program whose tests change their process, and fail if they find it changed by another test."""

from __future__ import annotations

import builtins
import faulthandler
import gc
import locale
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable

from swarmtest import Machine, action, integers, sampled_from


def lower(name: str, soft: int, hard: int | None = None) -> Callable[[], object]:
    limit = getattr(resource, name)
    highest = resource.getrlimit(limit)[1]
    return lambda: resource.setrlimit(limit, (soft, highest if hard is None else hard))


def remove_directory() -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)


def stay_as_thread() -> None:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()


CHANGES: dict[str, Callable[[], object]] = {
    "address space": lower("RLIMIT_AS", 1),
    "address space for good": lower("RLIMIT_AS", 1, 1),
    "data": lower("RLIMIT_DATA", 1),
    "open files": lower("RLIMIT_NOFILE", 3),
    "size of files": lower("RLIMIT_FSIZE", 0),
    "processes": lower("RLIMIT_NPROC", 0),
    "stack": lower("RLIMIT_STACK", 1 << 16),
    "CPU time": lower("RLIMIT_CPU", 1),
    "recursion": lambda: sys.setrecursionlimit(60),
    "directory": lambda: os.chdir("/"),
    "removed directory": remove_directory,
    "mask of new files": lambda: os.umask(0o777),
    "ignored signal": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    "blocked signal": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM}),
    "timer": lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 0.1),
    "locale": lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"),
    "garbage": gc.disable,
    "hook": lambda: setattr(threading, "excepthook", None),
    "output": lambda: setattr(sys, "stdout", None),
    "closed output": lambda: sys.stdout.close(),
    "environment": os.environ.clear,
    "fault handler": faulthandler.disable,
    "priority": lambda: os.nice(5),
    "thread": stay_as_thread,
    "patched resource": lambda: setattr(resource, "getrlimit", None),
    "built-ins": lambda: setattr(builtins, "ascii", None),
    "modules": sys.modules.clear,
    "user": lambda: os.seteuid(65534) if os.geteuid() == 0 else None,
    "user for good": lambda: os.setuid(65534) if os.geteuid() == 0 else None,
}
"""Harmless for the test that does it; all but the patched module are felt by others."""
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def surroundings() -> dict[str, object]:
    limits = [resource.prlimit(0, limit) for limit in LIMITS]
    mask = os.umask(0)
    os.umask(mask)
    return {
        "limits": limits,
        "recursion": sys.getrecursionlimit(),
        "directory": os.getcwd(),
        "mask": mask,
        "handler": signal.getsignal(signal.SIGCHLD),
        "blocked": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "timer": signal.getitimer(signal.ITIMER_VIRTUAL),
        "locale": locale.setlocale(locale.LC_ALL),
        "garbage": gc.isenabled(),
        "hook": threading.excepthook,
        "output": (sys.stdout, sys.stdout.closed),
        "environment": os.environ.get("PATH"),
        "fault handler": faulthandler.is_enabled(),
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "threads": threading.active_count(),
        "built-ins": ascii,
        "modules": "os" in sys.modules,
        "user": (os.getuid(), os.geteuid()),
    }


at_first: dict[int, dict[str, object]] = {}
"""What the first test of each process found."""


class Leaving(Machine):
    steps = 4

    def start(self):
        self.has_left = False
        found = surroundings()
        expected = at_first.setdefault(os.getpid(), found)
        changed = [name for name in expected if expected[name] != found[name]]
        assert not changed, f"changed by another test: {changed}"

    @action(value=integers(0, 9))
    def work(self, value):
        self.event(f"worked {value}")

    @action(change=sampled_from(sorted(CHANGES)), value=integers(0, 3))
    def leave(self, change, value):
        if value == 0 and not self.has_left:
            self.has_left = True
            self.event(f"left {change}")
            CHANGES[change]()
