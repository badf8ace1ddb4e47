"""Running things in forks: whatever one does to its process, ours goes on.

A task is a list of items to run in one fork. The fork tells of each, in order; if it ends, or is
silent for too long, the item at hand is the one that did it, and a new fork goes on behind it.

A fork runs a function, or goes on where its parent stands: then `Forked` is raised in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
_LENGTH = struct.Struct("<I")

Tell = Callable[..., None]
"""``tell(value)`` says what came of the item at hand; ``tell(value, n)`` that it, and the n - 1
behind it, are done."""


@dataclass
class Task:
    """Items that one fork after the other runs, in order."""

    items: list[Any]
    seconds: list[float]
    """How long each may be silent."""
    settles: Callable[[Any, Any], bool] = lambda item, other: False
    """Whether the end of a process in one item makes another that follows it needless."""
    done: int = 0


@dataclass(frozen=True)
class Answer:
    """What came of one item."""

    item: Any
    value: Any
    """What the fork told; None if it did not come to that."""
    silent: bool = False
    """Whether it was ended because it took too long."""


@dataclass
class _Fork:
    task: Task
    pid: int
    pipe: int
    deadline: float
    buffer: bytearray = field(default_factory=bytearray)
    silent: bool = False


class Forks:
    """Up to `workers` forks at a time; `run(items, tell)` is what each does.

    Without `run`, `Forked` is raised in each out of `answers`.
    """

    def __init__(
        self, run: Callable[[list[Any], Tell], None] | None, workers: int, memory: int = 0
    ) -> None:
        self._run = run
        self._workers = max(workers, 1)
        self._memory = memory

    def answers(self, tasks: Iterable[Task]) -> Iterator[Answer]:
        """The answers of all tasks as they come; tasks are taken when there is room for one."""
        left = iter(tasks)
        again: list[Task] = []
        running: dict[int, _Fork] = {}
        more = True
        owner = os.getpid()
        try:
            while True:
                while len(running) < self._workers and (again or more):
                    task = again.pop() if again else next(left, None)
                    if task is None:
                        more = False
                    elif task.done < len(task.items):
                        fork = self._fork(task)
                        running[fork.pipe] = fork
                if not running:
                    return
                for fork in self._ready(running):
                    ended = yield from self._hear(fork)
                    if ended:
                        del running[fork.pipe]
                        yield from self._end(fork, again)
        finally:
            for fork in running.values() if os.getpid() == owner else ():
                kill_group(fork.pid)
                os.close(fork.pipe)
                os.waitpid(fork.pid, 0)

    def _fork(self, task: Task) -> _Fork:
        read, write = os.pipe()
        pid = forked()
        if pid == 0 and self._run is not None:
            _live(self._run, task, write, self._memory)
        elif pid == 0:
            prepare(self._memory)
            raise Forked(task.items[task.done :], teller(write))
        os.close(write)
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # the fork does so as well: whoever comes first
        return _Fork(task, pid, read, time.monotonic() + task.seconds[task.done])

    def _ready(self, running: dict[int, _Fork]) -> list[_Fork]:
        """The forks that told something; those whose time is up are ended."""
        now = time.monotonic()
        soonest = min(fork.deadline for fork in running.values())
        # What a test forked may hold the pipe open after the end, so look now and then.
        ready, _, _ = select.select(list(running), [], [], min(max(soonest - now, 0.0), 0.5))
        if not ready:
            now = time.monotonic()
            for fork in running.values():
                if now >= fork.deadline:
                    fork.silent = True
                    kill_group(fork.pid)
            ready = [
                pipe
                for pipe, fork in running.items()
                if os.waitid(os.P_PID, fork.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            ]
        return [running[pipe] for pipe in ready]

    def _hear(self, fork: _Fork) -> Generator[Answer, None, bool]:
        """Take what a fork told; whether that was the last."""
        # A fork that is dead but whose children hold the pipe has nothing more to tell.
        if not select.select([fork.pipe], [], [], 0)[0]:
            return True
        data = os.read(fork.pipe, 1 << 16)
        fork.buffer += data
        task = fork.task
        for value, count in taken(fork.buffer):
            item = task.items[task.done]
            task.done += count
            yield Answer(item, value)
            if task.done < len(task.items):
                fork.deadline = time.monotonic() + task.seconds[task.done]
        return not data

    def _end(self, fork: _Fork, again: list[Task]) -> Iterator[Answer]:
        """A fork is over: what it left undone goes on in another, if it is to."""
        os.close(fork.pipe)
        kill_group(fork.pid)
        _, status = os.waitpid(fork.pid, 0)
        task = fork.task
        if task.done == len(task.items):
            return
        if status != _REPLACED << 8 or fork.silent:
            item = task.items[task.done]
            task.done += 1
            yield Answer(item, None, fork.silent)
            while task.done < len(task.items) and task.settles(item, task.items[task.done]):
                task.done += 1
        if task.done < len(task.items):
            again.append(task)


_REPLACED = 86
"""The exit status of a fork that wants the rest to be done by another."""


class Replace(Exception):
    """Raised by what a fork runs: another process is to go on behind what was told last."""


class Forked(BaseException):
    """Raised in a fork that goes on by itself; whoever catches it ends it with `leave`."""

    def __init__(self, items: list[Any], tell: Tell) -> None:
        super().__init__()
        self.items = items
        self.tell = tell


def leave(*, replaced: bool = False) -> NoReturn:
    """End a fork at once; `replaced`: another is to go on behind what was told last."""
    os._exit(_REPLACED if replaced else 0)


def kill_group(pid: int) -> None:
    """End a process that leads a group, and the group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def told_by_fork(run: Callable[[Tell], None], output: int) -> Iterator[Any]:
    """What one process tells until its end; what it prints goes to the descriptor `output`."""
    read, write = os.pipe()
    pid = forked()
    if pid == 0:
        try:
            prepare(0, output)
            # Whoever captures what we print does so with objects, which are not the fork's to fill.
            sys.stdout, sys.stderr = (os.fdopen(fd, "w", closefd=False) for fd in (1, 2))
            run(teller(write))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    os.close(write)
    buffer = bytearray()
    try:
        while data := os.read(read, 1 << 16):
            buffer += data
            for value, _ in taken(buffer):
                yield value
    finally:
        os.close(read)
        kill_group(pid)
        os.waitpid(pid, 0)


def forked() -> int:
    """Fork, whatever threads there are."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded")
        return os.fork()


def taken(buffer: bytearray) -> Iterator[Any]:
    """The messages that are whole, taken off the front of a buffer."""
    while len(buffer) >= _LENGTH.size:
        (size,) = _LENGTH.unpack_from(buffer)
        if len(buffer) < _LENGTH.size + size:
            return
        value = pickle.loads(buffer[_LENGTH.size : _LENGTH.size + size])
        del buffer[: _LENGTH.size + size]
        yield value


def teller(pipe: int) -> Tell:
    """Tells through a pipe what `taken` takes."""
    pid = os.getpid()

    def tell(value: Any, count: int = 1) -> None:
        if os.getpid() != pid:
            os._exit(0)  # the program forked, and its child came back here
        body = pickle.dumps((value, count))
        view = memoryview(_LENGTH.pack(len(body)) + body)
        while view:
            view = view[os.write(pipe, view) :]

    return tell


def _live(run: Callable[..., None], task: Task, pipe: int, memory: int) -> None:
    """The life of a fork; it never returns."""
    status = 1
    try:
        prepare(memory)
        run(task.items[task.done :], teller(pipe))
        status = 0
    except Replace:
        status = _REPLACED
    finally:
        os._exit(status)


def prepare(memory: int, output: int | None = None) -> None:
    """Silent (but for `output`), limited, and gone when we are."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    for fd in (1, 2):
        os.dup2(null if output is None else output, fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if memory:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What was there before is never garbage: keep the collector from touching (and copying) it.
    gc.freeze()
