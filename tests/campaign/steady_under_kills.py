"""A program that kills its own process or its host, once for each of some values.

To the platform, that looks as if somebody else did it: the same test, run again, does nothing.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from swarmtest import Machine, action, integers

MARKS = os.environ.get("MARKS", "")
SIGNALS = (signal.SIGKILL, signal.SIGTERM)


def kill_once(value: int) -> None:
    try:
        Path(MARKS, str(value)).touch(exist_ok=False)
    except FileExistsError:
        return
    victim = os.getppid() if value // 20 % 5 == 0 else os.getpid()
    os.kill(victim, SIGNALS[value // 20 % 2])


class Steady(Machine):
    steps = 4

    @action(value=integers(0, 10**9))
    def work(self, value):
        self.event(f"worked {value % 5}")
        if MARKS and value % 20 == 0:
            kill_once(value)
        if value % 20 == 7:
            raise RuntimeError("a real fault")

    @action
    def rest(self):
        pass
