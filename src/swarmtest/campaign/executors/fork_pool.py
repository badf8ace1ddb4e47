"""A fork that answers questions, one after the other, and what becomes of it when it dies in one.

A fork for every run of a test costs many times what a short test does: page tables are copied, and
all that a process learns in its first test, like which probes mean which targets, is learnt again.
So whoever asks thousands of questions (a reduction) asks a process that stands ready.

Invariants:

- What tests leave behind stays small: a process in which a test left children or threads answers no
  more questions, and none answers more than its `most`. A fork comes from a process that has run no
  test, so a new one starts clean.
- A process is killed, with all that it started, when it is over or nobody wants its answer.
- A process that ends before it has answered has failed in that question.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from swarmtest.campaign.executors.child import Death, end_with_stack, prepare_child
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault

Answer = TypeVar("Answer")

_HEADER = struct.Struct("<Q")


class Process(Generic[Answer]):
    """A fork of this process that answers questions by a function."""

    def __init__(
        self, answer: Callable[[Any], Answer], memory: int = 0, *, quiet: bool, most: int
    ) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `bury`
        self.is_new = True
        """Whether it was asked nothing yet."""
        asked, self._ask = os.pipe()
        self.told, tell = os.pipe()
        # Python drops an exception that Ctrl-C raises while it forks: it has to wait until then.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._ask)
                os.close(self.told)
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                prepare_child(self._stderr.fileno(), memory, quiet=quiet)
                _serve(answer, asked, tell, most)
            finally:
                os._exit(0)
        os.close(asked)
        os.close(tell)
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        except KeyboardInterrupt:
            self.bury(killed=True)
            raise

    def ask(self, question: Any) -> bool:
        """Put a question; False: it has died meanwhile."""
        self.is_new = False
        self._stderr.seek(0)
        self._stderr.truncate()
        try:
            _write(self._ask, pickle.dumps(question))
        except BrokenPipeError:
            return False
        return True

    @property
    def has_ended(self) -> bool:
        """Whether it has; it waits to be buried."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end_with_stack(self) -> None:
        """Have a process that takes too long write down what it is doing, and end."""
        end_with_stack(self.pid, lambda: self.has_ended)

    def bury(self, *, killed: bool) -> tuple[int, int, str]:
        """End it with all that it started: its status, CPU time in ns, and its last words."""
        if killed:
            self._kill_group()
            os.kill(self.pid, signal.SIGKILL)  # it may not have come to have a group of its own
        os.close(self._ask)
        os.close(self.told)
        _, status, usage = os.wait4(self.pid, 0)
        self._kill_group()  # what the program started and left behind
        with self._stderr:
            self._stderr.seek(0)
            words = self._stderr.read().decode(errors="replace")
        return status, int((usage.ru_utime + usage.ru_stime) * 1e9), words

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


class Asked(Generic[Answer]):
    """A question that a process is at.

    `done_with` gets the process back if it can answer more; otherwise it is ended.
    """

    def __init__(
        self,
        process: Process[Answer],
        question: Any,
        seconds: float,
        done_with: Callable[[Process[Answer]], None] | None = None,
    ) -> None:
        self._process = process
        self.alone = process.is_new
        """Whether the process has run nothing before."""
        self._seconds = seconds
        self._done_with = done_with
        self._data = b""
        self._outcome: Answer | Fault | UserError | None = None
        self.over = False
        self._deadline = time.monotonic() + seconds
        process.ask(question)  # one that has died says nothing, which is noticed

    def fileno(self) -> int:
        """What `select` waits for: the process has something to tell, or is over."""
        return self._process.told

    def advance(self, ready: bool) -> None:
        """Take what it tells, if it does; and end it if its time is up."""
        if ready:
            if not self._read():
                self._died(timed_out=False)
            elif self._is_whole():
                self._answered()
        elif self._process.has_ended:
            while select.select([self._process.told], [], [], 0)[0] and self._read():
                pass
            self._answered() if self._is_whole() else self._died(timed_out=False)
        elif time.monotonic() > self._deadline:
            self._process.end_with_stack()
            self._died(timed_out=True)

    def end(self) -> None:
        """End it, whatever it is doing."""
        if not self.over:
            self._died(timed_out=True)

    def outcome(self) -> Answer | Fault:
        """What it answered; or, if it ended its process or took too long, the fault it showed."""
        if isinstance(self._outcome, UserError):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome

    def _read(self) -> bytes:
        chunk = os.read(self._process.told, 1 << 16)
        self._data += chunk
        return chunk

    def _is_whole(self) -> bool:
        if len(self._data) < _HEADER.size:
            return False
        (size,) = _HEADER.unpack_from(self._data)
        return len(self._data) >= _HEADER.size + int(size)

    def _answered(self) -> None:
        self.over = True
        try:
            self._outcome, fit = pickle.loads(self._data[_HEADER.size :])
        except (pickle.UnpicklingError, EOFError):  # the program wrote to our pipe
            *_, words = self._process.bury(killed=True)
            self._outcome = Death(0, 0, False, asked=False).fault(words, self._seconds)
            return
        if fit and self._done_with is not None:
            self._done_with(self._process)
        else:
            self._process.bury(killed=fit)

    def _died(self, timed_out: bool) -> None:
        self.over = True
        status, cpu_ns, words = self._process.bury(killed=timed_out)
        death = Death(status, cpu_ns, timed_out, asked=False)
        self._outcome = death.fault(words, self._seconds)


class Pool(Generic[Answer]):
    """Processes that stand ready to answer by the same function.

    >>> with Pool(lambda n: 6 * n, seconds=5) as pool:
    ...     asked = pool.ask(7)
    ...     while not asked.over:
    ...         asked.advance(True)
    ...     asked.outcome()
    42
    """

    def __init__(self, answer: Callable[[Any], Answer], seconds: float, most: int = 200) -> None:
        self._answer = answer
        self._seconds = seconds
        self._most = most
        self._ready: list[Process[Answer]] = []

    def ask(self, question: Any) -> Asked[Answer]:
        """Put a question to a process that is ready, or to a new one."""
        while self._ready:
            process = self._ready.pop()
            if not process.has_ended:
                return Asked(process, question, self._seconds, self._ready.append)
            process.bury(killed=True)
        process = Process(self._answer, quiet=True, most=self._most)
        return Asked(process, question, self._seconds, self._ready.append)

    def close(self) -> None:
        """End the processes that are ready."""
        while self._ready:
            self._ready.pop().bury(killed=True)

    def __enter__(self) -> Pool[Answer]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _serve(answer: Callable[[Any], Any], asked: int, tell: int, most: int) -> None:
    with os.fdopen(asked, "rb") as questions:
        for left in reversed(range(most)):
            try:
                (size,) = _HEADER.unpack(questions.read(_HEADER.size))
            except struct.error:  # nobody will ask any more
                return
            question = pickle.loads(questions.read(size))
            given: Any
            try:
                given = answer(question)
            except UserError as error:
                given = error
            fit = left > 0 and _left_nothing()
            _write(tell, pickle.dumps((given, fit)))
            if not fit:
                return


def _left_nothing() -> bool:
    """Whether a test has left neither threads nor children here."""
    if threading.active_count() > 1:
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _write(fd: int, body: bytes) -> None:
    view = memoryview(_HEADER.pack(len(body)) + body)
    while view:
        view = view[os.write(fd, view) :]
