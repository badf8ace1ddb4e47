"""The child: the process that runs tests, forked from the host and free to die.

A child runs the trials that its host sends, and sends rows back, some tests at a time. Before it
sends rows, it looks whether a test has changed something that all code in the process shares
(`processes/process_state.py`). Rows of tests that ran after such a test do not count. The host has
them run again one by one, and a child ends after a test that changes something.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import traceback
from collections.abc import Callable, Container
from typing import IO, Any

from swarmtest.campaign.executors.worker import (
    IDLE,
    PIPE_GONE,
    SENDING,
    TRIAL,
    RowBatch,
    TrialRunner,
    unpack_proposals,
)
from swarmtest.core.errors import UserError
from swarmtest.processes import frames as wire
from swarmtest.processes import limits
from swarmtest.processes.fork import Death, Fork
from swarmtest.processes.process_state import ProcessState

_BROKEN = 2
"""In the place of `PIPE_GONE`: our own code failed, after what the test at hand has changed."""
_FULL = 3
"""Likewise: our own code found no memory."""


class WorkerChild:
    """A forked process that runs trials, and the host's end of its two pipes."""

    def __init__(
        self,
        worker: TrialRunner,
        cell: memoryview,
        stderr: IO[bytes],
        memory: int,
        private: int,
        habits: Container[str],
    ) -> None:
        """Fork; the child closes `private`, the host's connection to the campaign.

        `habits`: what tests of this program may change.
        """
        down_read, self._down = os.pipe()
        up_read, up_write = os.pipe()
        self._cell = cell
        self._timed_out = self._stopped_by_host = False
        self.overdue = IDLE
        """The trial whose time was up when the child was asked for its stack."""
        self._death: Death | None = None

        def live() -> None:
            for fd in (self._down, up_read, private):
                os.close(fd)
            limits.prepare(memory, errors=stderr.fileno())
            limits.refuse_debugger()
            limits.dump_stack_on_death(stderr.fileno())
            _ChildLoop(worker, cell, up_write, habits).live(down_read)

        self._fork = Fork(live)
        os.close(down_read)
        os.close(up_write)
        self.frames = wire.Frames(up_read)
        self.has_run = False
        """Whether it has sent the result of a test."""
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

    def kill(self, stopped: bool = False) -> None:
        """Kill it."""
        if self._death is None:
            self._stopped_by_host = self._stopped_by_host or stopped
            self._fork.kill()

    def kill_with_stack(self) -> None:
        """Kill a child that hangs, after it has written its stack (which works even in C code)."""
        if not self._timed_out and self._death is None:
            self._timed_out = True
            self.overdue = self._cell[TRIAL]
            limits.end_with_stack(self._fork.pid, lambda: self.death() is not None)
        self.kill()

    def seconds_of_waiting(self) -> float:
        """Return how long its first thread could have run, but had no processor (Linux only)."""
        try:
            with open(f"/proc/{self._fork.pid}/schedstat") as file:
                return int(file.read().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0

    @property
    def has_timed_out(self) -> bool:
        """Whether it was killed because its test took too long."""
        return self._timed_out

    def death(self) -> Death | None:
        """Return how it ended; None if it has not."""
        if self._death is None and self._fork.has_ended:
            # What the program had started and left behind ends with it.
            status, cpu_seconds = self._fork.reap(kill=False)
            why = self._cell[PIPE_GONE]
            self._death = Death(
                status,
                int(cpu_seconds * 1e9),
                self._timed_out,
                self._stopped_by_host,
                pipe_gone=why == 1,
                broken=why == _BROKEN,
                full=why == _FULL,
            )
        return self._death

    def close(self) -> None:
        """Close the pipes."""
        for fd in (self._down, self.frames.fd, *self.death_notice):
            os.close(fd)


class _Tainted(Exception):
    """A test changed the process: the next test needs another one."""


class _PipeGone(Exception):
    """The host does not receive anything: it has ended, or a test closed the pipe."""


class _ChildLoop:
    """What happens in the child."""

    def __init__(
        self, worker: TrialRunner, cell: memoryview, up: int, habits: Container[str]
    ) -> None:
        self._worker = worker
        self._cell = cell
        self._up = up
        self._habits = habits
        self._state = ProcessState()
        self._sent = 0
        """How many tests it has sent the results of."""

    def live(self, down: int) -> None:
        """Run the batches that the host sends, until it closes the pipe."""
        cell = self._cell
        try:
            self._worker.job.subject.interruptible = False
            frames = wire.Frames(down)
            while not frames.ended:
                for trials, proposals, careful, journal in frames.receive():
                    self._serve(trials, proposals, careful, journal)
        except _Tainted:
            pass
        except _PipeGone:
            cell[PIPE_GONE] = 1
        except UserError as error:
            wire.send(self._up, ("error", str(error)))
        except MemoryError:
            if self._has_run_tests:
                cell[PIPE_GONE] = _FULL
            else:
                message = "a worker has no memory for its first test: raise --memory"
                wire.send(self._up, ("error", message))
        except BaseException:
            if self._has_run_tests:
                cell[PIPE_GONE] = _BROKEN
                traceback.print_exc()
            else:
                message = f"a bug in swarmtest, please report it:\n{traceback.format_exc()}"
                wire.send(self._up, ("error", message))

    @property
    def _has_run_tests(self) -> bool:
        """Whether a test, and not our own code, may be the cause of what happens."""
        return self._sent > 0 or self._cell[TRIAL] != IDLE

    def _serve(self, trials: list[int], described: Any, careful: bool, journal: bool) -> None:
        worker, subject = self._worker, self._worker.job.subject
        proposals = (
            worker.proposals(trials)
            if described is None
            else unpack_proposals(subject.space, described)
        )
        flush: Callable[[RowBatch], None]
        if journal:
            subject.journal = lambda step: self._tell(("step", json.dumps(step)))

            def flush(batch: RowBatch) -> None:
                pass
        else:

            def flush(batch: RowBatch) -> None:
                if batch.rows:
                    self._send_rows(batch, careful)

        worker.run(trials, proposals, self._cell, flush, careful)
        self._tell(("done", None))

    def _send_rows(self, batch: RowBatch, careful: bool) -> None:
        """Send results, unless a test may have suffered from what another one did."""
        changes = self._state.changes().but(self._habits)
        alone = careful and not self._sent
        if (changes and not careful) or (batch.lacked_memory and not alone):
            self._cell[PIPE_GONE] = _BROKEN
            raise _Tainted
        self._cell[SENDING] = 1
        self._tell(("rows", self._worker.complete(batch).packed()))
        self._cell[SENDING] = 0
        self._sent += len(batch.rows)
        if changes:
            self._tell(("changes", changes))
            raise _Tainted

    def _tell(self, message: Any) -> None:
        try:
            wire.send(self._up, message)
        except OSError:
            raise _PipeGone from None
