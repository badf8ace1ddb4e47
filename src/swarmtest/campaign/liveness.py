"""Whether the process of a campaign that the store calls running is still there.

A process that is killed with SIGKILL cannot change its campaign's status. So while a campaign runs,
its options name its process: machine, number, and when it started, since the number of a dead
process is given to another one sooner or later. On the same machine, this tells for certain. For a
campaign on another machine, only the reports of its workers are known.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from swarmtest.core.formatting import plural
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, WorkerRecord

PROCESS = "process"
"""The key of a campaign's options that names its process while it is running."""
GONE = "stopped (its process is gone)"
_LONG = 300.0
"""A campaign elsewhere is silent if no worker has reported for this many seconds. They report
every two seconds; clocks of machines may differ by minutes."""


def this_process() -> dict[str, Any]:
    """Return what identifies this process.

    >>> is_gone(this_process())
    False
    """
    pid = os.getpid()
    return {"host": platform.node(), "pid": pid, "started": _start_of(pid)}


def is_gone(process: dict[str, Any]) -> bool:
    """Return whether a process of this machine has ended; False for one of another machine.

    >>> is_gone(this_process() | {"started": "before the last reboot"})
    True
    """
    if process.get("host") != platform.node() or not _start_of(os.getpid()):
        return False
    return _start_of(int(process["pid"])) != process.get("started")


def running_process(record: CampaignRecord) -> int:
    """Return the process of this machine that runs a campaign now; 0 if none is known.

    >>> record = CampaignRecord("stack.py", "coin", 7, {}, {"process": this_process()})
    >>> running_process(record) == os.getpid()
    True
    """
    process = record.options.get(PROCESS)
    if record.status != "running" or not isinstance(process, dict) or is_gone(process):
        return 0
    return int(process["pid"]) if process.get("host") == platform.node() else 0


def shown_status(record: CampaignRecord, workers: Iterable[WorkerRecord]) -> str:
    """Return the status of a campaign for people.

    >>> process = this_process() | {"started": "before the last reboot"}
    >>> record = CampaignRecord("stack.py", "coin", 7, {}, {"process": process})
    >>> shown_status(record, [])
    'stopped (its process is gone)'
    """
    if record.status != "running":
        return record.status
    process = record.options.get(PROCESS)
    if isinstance(process, dict) and is_gone(process):
        return GONE
    seen = [worker.last_seen for worker in workers if worker.host != platform.node()]
    silent = time.time() - max(seen) if seen else 0.0
    if silent > _LONG:
        return f"silent (no report for {plural(int(silent // 60), 'minute')})"
    return record.status


def status_in(store: Store, record: CampaignRecord) -> str:
    """Return the status of a campaign in a store, for people."""
    workers = store.workers(record.id) if record.status == "running" else []
    return shown_status(record, workers)


def _start_of(pid: int) -> str:
    """Return when a process started, unique since the machine exists; empty if it has ended.

    It is also empty on systems without /proc.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # The name of the program, in parentheses, may contain spaces.
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else f"{boot} {fields[18]}"
