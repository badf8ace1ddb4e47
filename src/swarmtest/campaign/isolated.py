"""Runs in processes of their own: for tests that may kill the process, hang, or leave a mess.

`IsolatedRun` is one that is under way; several may be. `run_isolated` waits for one. A run never
outlives whoever looks after it: `end` kills it with all that it started.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import tempfile
import time
from collections.abc import Callable, Collection
from typing import Any, Generic, TypeVar

from swarmtest.campaign.child import Death, prepare_child
from swarmtest.errors import UserError
from swarmtest.result import Fault, Result, Verdict

Answer = TypeVar("Answer")

_LOOK_SECONDS = 0.02
"""A process that the program forked may hold the pipe open after the end, so look often."""


class IsolatedRun(Generic[Answer]):
    """A function that runs in a process of its own.

    `quiet`: what it prints is of no use to anybody.

    >>> run = IsolatedRun(lambda: 6 * 7, seconds=5)
    >>> wait_for_any([run])
    >>> run.over, run.outcome()
    (True, 42)
    """

    def __init__(
        self, run: Callable[[], Answer], seconds: float, memory: int = 0, *, quiet: bool = False
    ) -> None:
        self._seconds = seconds
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `_finish`
        self._pipe, write = os.pipe()
        self._data = b""
        self._outcome: Answer | Fault | UserError | None = None
        self.over = False
        # Python drops an exception that Ctrl-C raises while it forks: it has to wait until then.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._pipe)
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                prepare_child(self._stderr.fileno(), memory, quiet=quiet)
                _answer(run, write)
            finally:
                os._exit(0)
        os.close(write)
        self._deadline = time.monotonic() + seconds
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        except KeyboardInterrupt:
            self.end()
            raise

    def fileno(self) -> int:
        """What `select` waits for: the run has something to tell, or is over."""
        return self._pipe

    def advance(self, ready: bool) -> None:
        """Take what it tells, if it does; and end it if its time is up."""
        if ready:
            chunk = os.read(self._pipe, 1 << 16)
            self._data += chunk
            if not chunk:
                self._finish(timed_out=False)
        elif os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            self._read_the_rest()
            self._finish(timed_out=False)
        elif time.monotonic() > self._deadline:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGUSR2)  # it tells where it is
                time.sleep(0.05)
            self._finish(timed_out=True)

    def end(self) -> None:
        """End it, whatever it is doing."""
        if not self.over:
            self._finish(timed_out=True)

    def outcome(self) -> Answer | Fault:
        """What it answered; or, if it ended its process or took too long, the fault it showed."""
        if isinstance(self._outcome, UserError):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome

    def _finish(self, timed_out: bool) -> None:
        self.over = True
        if timed_out:
            self._kill_group()
            os.kill(self._pid, signal.SIGKILL)  # it may not have come to have a group of its own
        os.close(self._pipe)
        _, status, usage = os.wait4(self._pid, 0)
        self._kill_group()  # what the program started and left behind
        with self._stderr:
            if self._data and not timed_out:
                with contextlib.suppress(EOFError, pickle.UnpicklingError):  # cut off by its death
                    self._outcome = pickle.loads(self._data)
                    return
            self._stderr.seek(0)
            dump = self._stderr.read().decode(errors="replace")
        cpu_ns = int((usage.ru_utime + usage.ru_stime) * 1e9)
        self._outcome = Death(status, cpu_ns, timed_out, asked=False).fault(dump, self._seconds)

    def _read_the_rest(self) -> None:
        """What it told between our last look and its end."""
        while select.select([self._pipe], [], [], 0)[0]:
            chunk = os.read(self._pipe, 1 << 16)
            if not chunk:
                return
            self._data += chunk

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)


def wait_for_any(runs: Collection[IsolatedRun[Any]], until: float | None = None) -> None:
    """Wait until one of the runs is over, or the (monotonic) time `until` has come."""
    going = [run for run in runs if not run.over]
    while going and all(not run.over for run in going):
        ready, _, _ = select.select(going, [], [], _LOOK_SECONDS)
        for run in going:
            run.advance(run in ready)
        if until is not None and time.monotonic() >= until:
            return


def run_isolated(
    run: Callable[[], Result], seconds: float, memory: int = 0, *, quiet: bool = False
) -> Result:
    """What `run` answers; or, if it ends its process or takes too long, the fault it showed.

    `quiet`: what it prints is of no use to anybody.

    >>> run_isolated(lambda: os._exit(3), seconds=5).fault.signature
    'the program ended its process with exit status 3'
    """
    isolated = IsolatedRun(run, seconds, memory, quiet=quiet)
    try:
        wait_for_any([isolated])
    finally:
        isolated.end()
    outcome = isolated.outcome()
    return Result(Verdict.FAILED, outcome) if isinstance(outcome, Fault) else outcome


def _answer(run: Callable[[], Any], write: int) -> None:
    try:
        answer = run()
    except UserError as error:
        answer = error
    with os.fdopen(write, "wb") as out:
        pickle.dump(answer, out)
