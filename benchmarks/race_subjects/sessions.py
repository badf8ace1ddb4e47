"""Sessions: old ones are looked for in a set comprehension while others log in."""

from __future__ import annotations

import threading

from threaded import run_threads


class Sessions:
    """Who is logged in, and since when."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.since = {"ann": 1, "bob": 5, "cy": 9}

    def log_in(self, name: str, now: int) -> None:
        with self.lock:
            self.since[name] = now

    def is_old(self, since: int) -> bool:
        return since < 6

    def expire(self) -> None:
        old = {name for name in self.since if self.is_old(self.since[name])}
        with self.lock:
            for name in old:
                del self.since[name]


def logs_in(sessions: Sessions) -> None:
    for number, name in enumerate(("dan", "eve", "fay")):
        name.title().encode()
        sessions.log_in(name, 10 + number)


def expires(sessions: Sessions) -> None:
    sessions.expire()


WORKERS = [logs_in, expires]


def setup() -> Sessions:
    return Sessions()


def holds(sessions: Sessions) -> bool:
    return "ann" not in sessions.since


def program() -> None:
    """The whole program; it raises if something went wrong."""
    state = setup()
    run_threads(state, WORKERS)
    assert holds(state)
