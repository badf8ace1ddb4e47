"""Kill a process that runs tests, its host or the campaign, once for each of some tests.

To the platform, that looks as if somebody else did it: the same test, run again, does nothing.
`under_kills.sh` does the same for a command. The environment variable MARKS names a directory in
which each kill leaves a mark; without it, nothing is killed.
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

MARKS = os.environ.get("MARKS", "")
VICTIMS = ("host", "campaign", "child", "child", "child")
SIGNALS = (signal.SIGKILL, signal.SIGTERM)


def kill_for(value: int, one_in: int) -> None:
    """Kill for one in so many values.

    The values are compared without MARKS, too: what a program has compared in vain is drawn later
    in the same test, so a campaign that is not killed would draw others.
    """
    if value % one_in == 0 and MARKS:
        number = value // one_in
        strike(VICTIMS[number % len(VICTIMS)], number)


def kill_at(victims: dict[int, str]) -> None:
    """Count the tests that begin, and kill at some of them."""
    if MARKS:
        with open(f"{MARKS}.count", "ab") as count:
            count.write(b".")
            count.flush()
            number = count.tell()
        if number in victims:
            strike(victims[number], number)


def strike(victim: str, number: int) -> None:
    try:
        Path(MARKS, f"{victim}-{number}").touch(exist_ok=False)
    except FileExistsError:
        return
    if victim == "campaign":
        os.kill(parent_of(os.getppid()), signal.SIGKILL)
    else:
        os.kill(os.getppid() if victim == "host" else os.getpid(), SIGNALS[number // 5 % 2])
    time.sleep(60)  # until this process is ended, too: it must not begin another test


def parent_of(pid: int) -> int:
    found = re.search(r"^PPid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1])
