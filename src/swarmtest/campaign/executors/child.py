"""The process that runs the tests: forked from a host, and free to die.

`Child` is the host's handle on it; `_live` is what happens on the other side of the fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

from swarmtest.campaign.executors.worker import (
    IDLE,
    PIPE_GONE,
    TELLING,
    TRIAL,
    Batch,
    Worker,
    restored,
)
from swarmtest.core.errors import UserError
from swarmtest.core.faults import python_stack_of_dump
from swarmtest.core.result import Fault
from swarmtest.processes import frames as wire

_PR_SET_PDEATHSIG = 1
_STACK_SECONDS = 1.0
"""How long a process that hangs may take to write its stack, on a machine that is busy."""


@dataclass(frozen=True)
class Death:
    """How a child ended."""

    status: int
    cpu_ns: int
    timed_out: bool
    asked: bool
    """The host killed it because the campaign was told to stop."""
    pipe_gone: bool = False
    """It could not tell its results any more: a test closed its pipe, or wrote into it."""

    def fault(self, dump: str, timeout: float) -> Fault:
        """The fault that a test showed by ending its process; `dump` is its standard error."""
        if self.pipe_gone:
            text = "the program closed, or wrote to, file descriptors that are not its own"
            return Fault("exit", text, dump)
        if self.timed_out:
            # Where a loop was when its time was up varies; what it was called from does not.
            outer = python_stack_of_dump(dump, outermost=True)
            where = f" [{' > '.join(outer)}]" if outer else ""
            return Fault("timeout", f"timeout{where}", f"after {timeout:g} s\n{dump}")
        frames = python_stack_of_dump(dump)
        where = f" [{' < '.join(frames)}]" if frames else ""
        if os.WIFSIGNALED(self.status):
            number = os.WTERMSIG(self.status)
            hint = " (out of memory?)" if number == signal.SIGKILL else ""
            return Fault("signal", f"{signal.Signals(number).name}{hint}{where}", dump)
        status = os.WEXITSTATUS(self.status)
        return Fault("exit", f"the program ended its process with exit status {status}", dump)


class Child:
    """A forked process that runs trials, and the host's end of its two pipes."""

    def __init__(
        self, worker: Worker, cell: memoryview, stderr: IO[bytes], memory: int, private: int
    ) -> None:
        """`private` is the host's line to the campaign, which is not the child's business."""
        down_read, self._down = os.pipe()
        up_read, up_write = os.pipe()
        self._cell = cell
        self._timed_out = self._asked = False
        self.overdue = IDLE
        """The trial whose time was up when the child was told to tell its stack."""
        self._death: Death | None = None
        self.pid = os.fork()
        if self.pid == 0:
            for fd in (self._down, up_read, private):
                os.close(fd)
            _live(worker, cell, stderr.fileno(), memory, down_read, up_write)
        os.close(down_read)
        os.close(up_write)
        self.frames = wire.Frames(up_read)
        self.silent = False
        """Whether nothing more can come: it is dead, or has closed its pipe."""
        # A process that the program forked may hold the pipe open after the child's death, so its
        # end alone does not tell. Linux can be asked to wake us up; elsewhere we look regularly.
        self.death_notice = [os.pidfd_open(self.pid)] if hasattr(os, "pidfd_open") else []

    def hear(self, ready: bool) -> list[Any]:
        """The messages that have arrived; `ready`: there is something to read."""
        # In this order: what a child said before its death is in the pipe when it is dead.
        dead = self.death() is not None
        frames = self.frames.receive() if ready else []
        while dead and not self.frames.ended and select.select([self.frames.fd], [], [], 0)[0]:
            frames += self.frames.receive()
        if self.frames.broken:
            self._cell[PIPE_GONE] = 1
            self.kill()
        self.silent = dead or self.frames.ended
        return frames

    def send(
        self,
        trials: list[int],
        told: list[Any] | None,
        *,
        careful: bool = False,
        journal: bool = False,
    ) -> None:
        """Hand over trials; a child that died meanwhile is noticed when its pipe ends.

        `careful`: tell each result before the next test. `journal`: tell each step instead.
        """
        with contextlib.suppress(BrokenPipeError):
            wire.send(self._down, (list(trials), told, careful, journal))

    def kill(self, asked: bool = False) -> None:
        """End it at once."""
        if self._death is None:
            self._asked = self._asked or asked
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def kill_with_stack(self) -> None:
        """End a child that hangs, after it has written where (faulthandler works even in C)."""
        if not self._timed_out and self._death is None:
            self._timed_out = True
            self.overdue = self._cell[TRIAL]
            end_with_stack(self.pid, lambda: self.death() is not None)
        self.kill()

    def death(self) -> Death | None:
        """How it ended; None if it has not."""
        if self._death is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                cpu_ns = int((usage.ru_utime + usage.ru_stime) * 1e9)
                gone = bool(self._cell[PIPE_GONE])
                self._death = Death(status, cpu_ns, self._timed_out, self._asked, gone)
                self._end_family()
        return self._death

    def close(self) -> None:
        """Let go of the pipes."""
        for fd in (self._down, self.frames.fd, *self.death_notice):
            os.close(fd)

    def _end_family(self) -> None:
        """End what the program had started and left behind: it is the test's, and so is its end."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def _live(worker: Worker, cell: memoryview, stderr: int, memory: int, down: int, up: int) -> None:
    """The life of a child; it never returns."""
    try:
        prepare_child(stderr, memory)
        worker.job.subject.interruptible = False
        frames = wire.Frames(down)
        while not frames.ended:
            for trials, told, careful, journal in frames.receive():
                _serve(worker, cell, up, trials, told, careful, journal)
    except _PipeGone:
        cell[PIPE_GONE] = 1
    except UserError as error:
        wire.send(up, ("error", str(error)))
    except MemoryError:
        wire.send(up, ("error", "a worker has no memory left between tests: raise --memory"))
    except BaseException:
        wire.send(up, ("error", f"a bug in swarmtest, please report it:\n{traceback.format_exc()}"))
    finally:
        os._exit(0)


class _PipeGone(Exception):
    """The host does not hear this child any more: it has ended, or a test closed the pipe."""


def _tell(up: int, message: Any) -> None:
    try:
        wire.send(up, message)
    except OSError:
        raise _PipeGone from None


def _serve(
    worker: Worker,
    cell: memoryview,
    up: int,
    trials: list[int],
    told: Any,
    careful: bool,
    journal: bool,
) -> None:
    subject = worker.job.subject
    proposals = worker.proposals(trials) if told is None else restored(subject.space, told)
    flush: Callable[[Batch], None]
    if journal:
        subject.journal = lambda step: _tell(up, ("step", json.dumps(step)))

        def flush(batch: Batch) -> None:
            pass
    else:

        def flush(batch: Batch) -> None:
            if batch.rows:
                cell[TELLING] = 1
                _tell(up, ("rows", batch.sealed()))
                cell[TELLING] = 0

    worker.run(trials, proposals, cell, flush, careful)
    _tell(up, ("done", None))


def _no_debugger(*args: object, **kwargs: object) -> None:
    raise UserError("breakpoint() needs the terminal: run with --workers 0")


def prepare_child(stderr: int, memory: int, *, quiet: bool = True) -> None:
    """Make a forked process fit to run a test: silent, limited, and able to tell how it died."""
    # A group of its own: a program that signals its whole group must not hit us.
    os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    if quiet:
        os.dup2(null, 1)
        os.dup2(stderr, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.breakpointhook = _no_debugger
    faulthandler.enable(file=stderr, all_threads=False)
    # With `chain` it ends after that, which `end_with_stack` waits for.
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    faulthandler.register(signal.SIGUSR2, file=stderr, all_threads=False, chain=True)
    if memory:
        limit_memory(memory)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What the host made is never garbage: keep the collector from touching (and so copying) it.
    gc.freeze()


def end_with_stack(pid: int, has_ended: Callable[[], bool]) -> None:
    """Have a prepared child write its stack and end; return when it has, or cannot."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGUSR2)
        os.kill(pid, signal.SIGCONT)  # one that was stopped would not hear it
    deadline = time.monotonic() + _STACK_SECONDS
    while time.monotonic() < deadline and not has_ended():
        time.sleep(0.002)


def limit_memory(memory: int) -> None:
    """Let this process hold so many bytes."""
    # The soft limit only: a program that the test starts may need more, and may lift it.
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
