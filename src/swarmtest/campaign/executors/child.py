"""The process that runs the tests of a worker: forked from a host, and free to die.

`WorkerChild` is the host's handle on it; `_live` is what happens on the other side of the fork.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import traceback
from collections.abc import Callable
from typing import IO, Any

from swarmtest.campaign.executors.worker import (
    IDLE,
    PIPE_GONE,
    SENDING,
    TRIAL,
    RowBatch,
    TrialRunner,
    restored,
)
from swarmtest.core.errors import UserError
from swarmtest.processes import frames as wire
from swarmtest.processes import limits
from swarmtest.processes.fork import Death, Fork


class WorkerChild:
    """A forked process that runs trials, and the host's end of its two pipes."""

    def __init__(
        self, worker: TrialRunner, cell: memoryview, stderr: IO[bytes], memory: int, private: int
    ) -> None:
        """Fork; the child closes `private`, the host's connection to the campaign."""
        down_read, self._down = os.pipe()
        up_read, up_write = os.pipe()
        self._cell = cell
        self._timed_out = self._asked = False
        self.overdue = IDLE
        """The trial whose time was up when the child was asked for its stack."""
        self._death: Death | None = None

        def live() -> None:
            for fd in (self._down, up_read, private):
                os.close(fd)
            limits.prepare(memory, errors=stderr.fileno())
            limits.refuse_debugger()
            limits.dump_stack_on_death(stderr.fileno())
            _live(worker, cell, down_read, up_write)

        self._fork = Fork(live)
        os.close(down_read)
        os.close(up_write)
        self.frames = wire.Frames(up_read)
        self.silent = False
        """Whether nothing more can come: it is dead, or has closed its pipe."""
        # A process that the program forked may hold the pipe open after the child's death, so its
        # end alone does not tell. Linux can be asked to wake us up; elsewhere we look regularly.
        self.death_notice = [os.pidfd_open(self._fork.pid)] if hasattr(os, "pidfd_open") else []

    def hear(self, ready: bool) -> list[Any]:
        """Return the messages that have arrived; `ready`: there is something to read."""
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
        proposals: list[Any] | None,
        *,
        careful: bool = False,
        journal: bool = False,
    ) -> None:
        """Send trials; a child that died meanwhile is noticed when its pipe ends.

        `careful`: it sends each result before the next test. `journal`: it sends each step instead.
        """
        with contextlib.suppress(BrokenPipeError):
            wire.send(self._down, (list(trials), proposals, careful, journal))

    def kill(self, asked: bool = False) -> None:
        """Kill it."""
        if self._death is None:
            self._asked = self._asked or asked
            self._fork.kill()

    def kill_with_stack(self) -> None:
        """Kill a child that hangs, after it has written its stack (which works even in C code)."""
        if not self._timed_out and self._death is None:
            self._timed_out = True
            self.overdue = self._cell[TRIAL]
            limits.end_with_stack(self._fork.pid, lambda: self.death() is not None)
        self.kill()

    def death(self) -> Death | None:
        """Return how it ended; None if it has not."""
        if self._death is None and self._fork.has_ended:
            # What the program had started and left behind ends with it.
            status, cpu_seconds = self._fork.reap(kill=False)
            gone = bool(self._cell[PIPE_GONE])
            cpu_ns = int(cpu_seconds * 1e9)
            self._death = Death(status, cpu_ns, self._timed_out, self._asked, gone)
        return self._death

    def close(self) -> None:
        """Close the pipes."""
        for fd in (self._down, self.frames.fd, *self.death_notice):
            os.close(fd)


def _live(worker: TrialRunner, cell: memoryview, down: int, up: int) -> None:
    """Run the batches that the host sends, until it closes the pipe."""
    try:
        worker.job.subject.interruptible = False
        frames = wire.Frames(down)
        while not frames.ended:
            for trials, proposals, careful, journal in frames.receive():
                _serve(worker, cell, up, trials, proposals, careful, journal)
    except _PipeGone:
        cell[PIPE_GONE] = 1
    except UserError as error:
        wire.send(up, ("error", str(error)))
    except MemoryError:
        wire.send(up, ("error", "a worker has no memory left between tests: raise --memory"))
    except BaseException:
        wire.send(up, ("error", f"a bug in swarmtest, please report it:\n{traceback.format_exc()}"))


class _PipeGone(Exception):
    """The host does not receive anything: it has ended, or a test closed the pipe."""


def _tell(up: int, message: Any) -> None:
    try:
        wire.send(up, message)
    except OSError:
        raise _PipeGone from None


def _serve(
    worker: TrialRunner,
    cell: memoryview,
    up: int,
    trials: list[int],
    described: Any,
    careful: bool,
    journal: bool,
) -> None:
    subject = worker.job.subject
    proposals = (
        worker.proposals(trials) if described is None else restored(subject.space, described)
    )
    flush: Callable[[RowBatch], None]
    if journal:
        subject.journal = lambda step: _tell(up, ("step", json.dumps(step)))

        def flush(batch: RowBatch) -> None:
            pass
    else:

        def flush(batch: RowBatch) -> None:
            if batch.rows:
                cell[SENDING] = 1
                _tell(up, ("rows", batch.sealed()))
                cell[SENDING] = 0

    worker.run(trials, proposals, cell, flush, careful)
    _tell(up, ("done", None))
