"""The load of this machine, and the processes of campaigns on it, read from ``/proc``."""

from __future__ import annotations

import itertools
import os
import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_MAX_SAMPLES = 150
_MAX_COMMAND_LENGTH = 160
_PASSWORD = re.compile(r"(\w://[^\s:/@]*:)[^\s@]*@")
"""A password in the address of a database, which may be part of a command line."""


@dataclass(frozen=True)
class MachineLoad:
    """The load of the machine at one moment; shares are from 0 to 1."""

    at: float
    busy: float
    """The busy share of all cores since the sample before."""
    memory: float
    load: float
    """The load average over the last minute: processes that want a core."""


@dataclass(frozen=True)
class ProcessUsage:
    """A process at one moment."""

    pid: int
    parent: int
    name: str
    state: str
    cpu: float
    """Cores used since the sample before; in its first sample, over its whole life."""
    memory: int
    """The resident set size in bytes, which includes memory shared with other processes."""
    threads: int
    seconds: float
    """The time since the process started."""


@dataclass(frozen=True)
class _Times:
    at: float
    ticks: int


class MachineMonitor:
    """Samples of this machine; keeps the last readings, because shares of time are differences."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before: tuple[int, int] | None = None
        self._history: deque[MachineLoad] = deque(maxlen=_MAX_SAMPLES)
        self._processes: dict[int, _Times] = {}
        self._tick = os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")

    def sample(self) -> None:
        """Take a sample of the load."""
        with self._lock:
            words = _words(_PROC / "stat")[1:9]
            if not words:
                return  # no /proc: another operating system
            times = [int(word) for word in words]
            idle, total = times[3] + times[4], sum(times)
            before, self._before = self._before, (idle, total)
            if before is None or total == before[1]:
                return
            busy = 1 - (idle - before[0]) / (total - before[1])
            self._history.append(
                MachineLoad(time.time(), busy, _memory_share(), os.getloadavg()[0])
            )

    def history(self) -> list[MachineLoad]:
        """Return the samples, oldest first; none on a system without ``/proc``."""
        return list(self._history)

    def processes(self, roots: Iterable[int]) -> list[ProcessUsage]:
        """Return the given processes and all their descendants, parents first."""
        children: dict[int, list[int]] = {}
        for pid in _pids():
            fields = _stat(pid)
            if fields:
                children.setdefault(int(fields[1]), []).append(pid)
        queue = list(dict.fromkeys(roots))
        processes: list[ProcessUsage] = []
        while queue:
            pid = queue.pop(0)
            process = self._process(pid)
            if process is not None and pid not in {other.pid for other in processes}:
                processes.append(process)
                queue = [*children.get(pid, ()), *queue]
        with self._lock:
            alive = {process.pid for process in processes}
            self._processes = {pid: times for pid, times in self._processes.items() if pid in alive}
        return processes

    def _process(self, pid: int) -> ProcessUsage | None:
        fields = _stat(pid)
        if not fields:
            return None
        now, ticks = time.time(), int(fields[11]) + int(fields[12])
        seconds = max(now - _boot_time() - int(fields[19]) / self._tick, 0.001)
        with self._lock:
            before = self._processes.get(pid)
            self._processes[pid] = _Times(now, ticks)
        if before is not None and now - before.at > 0.2:
            cpu = (ticks - before.ticks) / self._tick / (now - before.at)
        else:
            cpu = ticks / self._tick / seconds
        return ProcessUsage(
            pid,
            int(fields[1]),
            _name(pid),
            fields[0],
            cpu,
            int(fields[21]) * self._page,
            int(fields[17]),
            seconds,
        )


def is_swarmtest(pid: int) -> bool:
    """Return whether a process runs swarmtest for this user.

    A process id in a store may be out of date, and belong to another process by now.
    """
    try:
        is_mine = os.stat(_PROC / str(pid)).st_uid == os.getuid()
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return is_mine and runs_swarmtest(words)


def runs_swarmtest(words: Sequence[bytes]) -> bool:
    """Return whether a command line runs swarmtest, not just mentions it.

    >>> runs_swarmtest([b"python", b"-P", b"-m", b"swarmtest", b"run"])
    True
    >>> runs_swarmtest([b"psql", b"postgresql://me@host/swarmtest"])
    False
    """
    if os.path.basename(words[0]) == b"swarmtest":
        return True
    for before, word in itertools.pairwise(words):
        if before == b"-m":
            return word == b"swarmtest"
        if before == b"-c":
            return b"from swarmtest." in word
        if not word.startswith(b"-") and before not in (b"-X", b"-W"):
            is_python = os.path.basename(words[0]).startswith(b"python")
            return is_python and os.path.basename(word) == b"swarmtest"
    return False


def campaign_process(worker: int) -> int | None:
    """Return the process that started a worker, if both are processes of swarmtest."""
    fields = _stat(worker)
    if not fields or not is_swarmtest(worker):
        return None
    parent = int(fields[1])
    return parent if is_swarmtest(parent) else None


def disk_share(path: str) -> float | None:
    """Return how full the disk of a file is, from 0 to 1; None if that is not known."""
    try:
        disk = os.statvfs(os.path.dirname(os.path.abspath(path)))
    except OSError:
        return None
    return 1 - disk.f_bavail / disk.f_blocks if disk.f_blocks else None


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return []


def _stat(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` after the name, which may contain anything."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _name(pid: int) -> str:
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return "?"
    command_line = _PASSWORD.sub(r"\1***@", words.decode("utf-8", "replace"))
    return " ".join(command_line.split())[:_MAX_COMMAND_LENGTH] or "?"


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()[0].split()
    except (OSError, IndexError):
        return []


def _memory_share() -> float:
    kilobytes = {}
    for line in (_PROC / "meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        kilobytes[name] = int(value.split()[0])
    return 1 - kilobytes["MemAvailable"] / kilobytes["MemTotal"]


def _boot_time() -> float:
    for line in (_PROC / "stat").read_text().splitlines():
        if line.startswith("btime"):
            return float(line.split()[1])
    return 0.0
