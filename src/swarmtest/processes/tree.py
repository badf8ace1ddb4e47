"""Trees of processes: start a child, adopt what it leaves behind, kill it and everything below it.

No process that a test started may survive the test, also not one that left its process group, or
whose parent is dead. Linux gives an orphan to its nearest ancestor that asked for orphans (a child
sub-reaper). So every process that runs tests asks for them, and so does every process that starts
such a process:

- A process that runs tests looks after each test whether it has children that it did not start on
  purpose (`StrayCheck`), and kills them.
- A process that forked one, or started a command, kills it, waits for it, and then kills every
  child that it got meanwhile (`Supervision`). A killed child leaves its own children to us, so this
  is repeated until none is left.

Children that live across tests on purpose (a fork server, a guard, our own forks) are started by
`fork` and `spawn`, or declared by `keep`, and are never taken for strays.

Other systems have no sub-reapers: there, only the process group of a child is killed, and a process
that leaves the group survives.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from _thread import allocate_lock as _new_lock  # races patch `threading.Lock` for a while
from collections.abc import Collection
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_IS_LINUX = sys.platform == "linux"
_LIBC = ctypes.CDLL(None)
_LISTING = 1 << 16
_FEW_CHILDREN = 1 << 12  # a larger buffer takes longer
_NOT_A_LISTING = b"?"
_GUARD_SECONDS = 5.0

GUARD = "swarmtest-guard"
"""An argument by which a process is known that cleans up after its dead parent, and then ends."""


class _ChildProcesses:
    """What this process knows about its own children; a forked process begins with none."""

    def __init__(self) -> None:
        self.wanted: set[int] = set()
        """Children that were started on purpose, and perhaps some that have ended since."""
        self.ends: dict[int, tuple[int, float]] = {}
        """Status and CPU seconds of children that have ended, until they are reaped."""
        self.reported_ns: dict[int, int] = {}
        """CPU time that children which still live have reported, of theirs and their children."""
        self.parent = 0
        """The process that forked this one; 0 if that is not known."""
        self.supervisions = 0
        self.is_reaper = False
        """Whether it adopts orphans as long as it lives."""
        self.check: StrayCheck | None = None
        # Nobody may look for strays between the start of a child and its entry in `kept`.
        self.lock = _new_lock()


_state = _ChildProcesses()


def _forget() -> None:
    global _state
    _state = _ChildProcesses()


os.register_at_fork(after_in_child=_forget)


# Starting children.


def fork() -> int:
    """Fork this process; return the child's id, or 0 in the child."""
    parent = os.getpid()
    with _state.lock, warnings.catch_warnings():
        # Other threads of this process may only wait, or belong to a run that is over.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        pid = os.fork()
        if pid:
            _state.wanted.add(pid)
    if not pid:
        _state.parent = parent
    return pid


def spawn(words: Any, **options: Any) -> subprocess.Popen[Any]:
    """Start a program, with the arguments of `subprocess.Popen`."""
    with _state.lock:
        process: subprocess.Popen[Any] = subprocess.Popen(words, **options)
        _state.wanted.add(process.pid)
    return process


def keep(pid: int) -> None:
    """Declare a child that lives across tests: it is no stray."""
    _state.wanted.add(pid)


# The CPU time of children.


def report_cpu(pid: int, nanoseconds: int) -> None:
    """Count CPU time of a child that lives on, like a fork server that has run a test."""
    _state.reported_ns[pid] = _state.reported_ns.get(pid, 0) + nanoseconds


def reported_cpu_ns() -> int:
    """Return the CPU time that `report_cpu` counted, of children that still live."""
    return sum(_state.reported_ns.values()) if _state.reported_ns else 0


def children_cpu_ns() -> int:
    """Return the CPU time of children that have ended, and what the others have reported.

    It only grows. What a child reported is not counted again when the child ends.

    >>> before = children_cpu_ns()
    >>> _ = subprocess.run(["python3", "-c", "sum(range(1_000_000))"])
    >>> children_cpu_ns() - before > 1_000_000
    True
    """
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((usage.ru_utime + usage.ru_stime) * 1e9) + reported_cpu_ns()


def cpu_ns() -> int:
    """Return the CPU time of this process and of its children, as `children_cpu_ns` has it."""
    return time.process_time_ns() + children_cpu_ns()


# Ending children.


def kill(pid: int, number: int = signal.SIGKILL) -> bool:
    """Send a signal to a process; return whether that was allowed."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def resume_if_stopped(pid: int) -> None:
    """Let a child go on that a signal has stopped."""
    if hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):
            if os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None:
                kill(pid, signal.SIGCONT)


def interrupt(pid: int) -> None:
    """Interrupt a process as Ctrl-C would; raise `OSError` if that cannot be done."""
    os.kill(pid, signal.SIGINT)


def kill_group(leader: int) -> None:
    """Kill the processes of a group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def kill_and_await(leader: int) -> None:
    """Kill a child and its group; return when it has ended and left its children to us."""
    kill_group(leader)
    kill(leader)
    while not has_ended(leader):
        time.sleep(0.001)


def has_ended(pid: int) -> bool:
    """Return whether a child has ended; `reap` is still to be called."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    if pid not in _state.ends:  # macOS: to ask is to wait
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            _state.ends[pid] = status, usage.ru_utime + usage.ru_stime
    return pid in _state.ends


def reap(pid: int) -> tuple[int, float]:
    """Wait for a child's end and kill the rest of its group; return its status and CPU seconds."""
    if hasattr(os, "waitid"):
        # Until it is waited for, its id cannot become that of another group.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        kill_group(pid)
    if pid not in _state.ends:
        _, status, usage = os.wait4(pid, 0)
        _state.ends[pid] = status, usage.ru_utime + usage.ru_stime
    if not hasattr(os, "waitid"):
        kill_group(pid)
    _state.wanted.discard(pid)
    _state.reported_ns.pop(pid, None)
    return _state.ends.pop(pid)


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that forked it ends (Linux)."""
    if _IS_LINUX:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if _state.parent and os.getppid() != _state.parent:
            kill(os.getpid())  # it ended before the kernel was asked, which says nothing then


# Adopting orphans.


def adopt_orphans() -> None:
    """Have orphans below this process become its children, as long as it lives (Linux)."""
    _state.is_reaper = True
    _set_reaper(True)


def _set_reaper(on: bool) -> None:
    if _IS_LINUX:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


class Supervision:
    """Adopts what a child leaves behind, from before the child is started until it has ended.

    >>> import time
    >>> began = time.monotonic()
    >>> with Supervision():
    ...     _ = subprocess.run("setsid sleep 60 &", shell=True)
    >>> time.monotonic() - began < 30
    True
    """

    def __init__(self) -> None:
        self._before = frozenset(_adopted())
        self._is_over = False
        self.cpu_seconds = 0.0
        """CPU time of the processes that were left behind, and of those they had waited for."""
        _state.supervisions += 1
        _set_reaper(True)

    def end(self, *, kill: bool = True) -> None:
        """Kill what was left behind, and adopt nothing more."""
        if self._is_over:
            return
        self._is_over = True
        if kill:
            self.kill_strays()
        _state.supervisions -= 1
        if not _state.supervisions and not _state.is_reaper:
            _set_reaper(False)

    def kill_strays(self) -> None:
        """Kill what was left behind so far."""
        with _state.lock:
            self.cpu_seconds += _kill_all_but(self._before)

    def __enter__(self) -> Supervision:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()


class StrayCheck:
    """Kills, after each test that this thread runs, the processes that the test left behind.

    A test takes microseconds, so this must, too: it reads the list of this thread's children, which
    is the same as the last time unless a test started a process.

    >>> check = StrayCheck()
    >>> process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    >>> check.end_strays()
    >>> process.wait()  # nobody is there any more, which Python takes for a success
    0
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._thread = threading.get_native_id()
        self._file = _open_listing(self._thread)
        self._harmless = self._listing()
        """The last listing in which nothing was a stray."""
        self._before = frozenset(map(int, self._harmless.split()))

    def end_strays(self) -> None:
        """Kill what was started since this check was made and is not to be kept."""
        if self._file < 0:
            return
        listing = self._listing()
        if listing == self._harmless or os.getpid() != self._process:
            return
        with _state.lock:
            tracker, server = _infrastructure()
            _kill_children_of(server)
            _kill_all_but({*self._before, tracker, server})
        # The children of a fork server are not in our list, so look again each time.
        self._harmless = _NOT_A_LISTING if server else self._listing()

    def __del__(self) -> None:
        if self._file >= 0 and self._process == os.getpid():
            with contextlib.suppress(OSError):
                os.close(self._file)

    def _listing(self) -> bytes:
        if self._file < 0:
            return b""
        try:
            return os.pread(self._file, _FEW_CHILDREN, 0)
        except OSError:  # a test closed the file
            self._file = _open_listing(self._thread)
            return os.pread(self._file, _FEW_CHILDREN, 0) if self._file >= 0 else b""


def check_tests() -> None:
    """Begin to look for strays in this process, which has started none so far."""
    _state.check = StrayCheck()


def end_strays() -> None:
    """Kill what the last test left behind, in a process that was prepared for tests."""
    if _state.check is not None:
        _state.check.end_strays()


def stray_check() -> StrayCheck:
    """Return this process's check; in a process that was not prepared for tests, a new one."""
    return _state.check or StrayCheck()


def _kill_all_but(known: Collection[int]) -> float:
    """Kill children until only known ones are left; return the CPU seconds of the others."""
    seconds = 0.0
    spared = {*known, *_state.wanted}
    while strays := _adopted() - spared:
        guards = {pid for pid in strays if _is_guard(pid)}
        for pid in strays - guards:
            if not kill(pid):
                spared.add(pid)  # not ours to kill, like a program that changed its user
        for pid in strays - guards - spared:
            with contextlib.suppress(ChildProcessError):
                usage = os.wait4(pid, 0)[2]
                seconds += usage.ru_utime + usage.ru_stime
        # A guard ends when all processes are gone that might still need it.
        for pid in guards if guards == strays else ():
            _let_end(pid)
    return seconds


def _is_guard(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as words:
            return GUARD.encode() in words.read().split(b"\0")
    except OSError:
        return False


def _let_end(pid: int) -> None:
    deadline = time.monotonic() + _GUARD_SECONDS
    with contextlib.suppress(ChildProcessError):
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.monotonic() > deadline:
                kill(pid)
            time.sleep(0.001)


def _adopted() -> set[int]:
    """Return the children of this thread and of the main thread, to which orphans are given.

    The children of other threads are theirs: a thread that ends leaves them to the main thread.
    """
    return children_of_thread(os.getpid()) | children_of_thread(threading.get_native_id())


def children_of_thread(thread: int) -> set[int]:
    """Return the children of one thread of this process.

    >>> children_of_thread(0)
    set()
    """
    file = _open_listing(thread)
    if file < 0:
        return set()
    try:
        return {int(pid) for pid in os.read(file, _LISTING).split()}
    finally:
        os.close(file)


def _open_listing(thread: int) -> int:
    try:
        return os.open(f"/proc/self/task/{thread}/children", os.O_RDONLY)
    except OSError:  # no Linux, or a kernel without such lists
        return -1


def _infrastructure() -> tuple[int, int]:
    """Return the ids of the resource tracker and the fork server of `multiprocessing`, or 0.

    They serve all of a program, not only one test: a program that used them once relies on them.
    """
    tracker: Any = sys.modules.get("multiprocessing.resource_tracker")
    server: Any = sys.modules.get("multiprocessing.forkserver")
    return (
        getattr(getattr(tracker, "_resource_tracker", None), "_pid", None) or 0,
        getattr(getattr(server, "_forkserver", None), "_forkserver_pid", None) or 0,
    )


def _kill_children_of(pid: int) -> None:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as listing:
        for child in listing.read().split():
            kill(int(child))
