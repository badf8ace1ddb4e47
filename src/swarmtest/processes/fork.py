"""Calling a function in a fork of this process, which it may end, block or leave in any state.

`Fork` is a forked process, from its start until it is reaped and all that it started is killed.
`in_fork` returns what a function returns there. `messages_of_fork` returns what a function sent
until its process ended, and `last_answer` the last thing that it sent. `Death` says how a process
ended, as the fault of a test.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from swarmtest.core.errors import UserError
from swarmtest.core.faults import message_of, python_stack_of_dump
from swarmtest.core.result import Fault
from swarmtest.processes import frames, limits, tree

Answer = TypeVar("Answer")

KILLS = (signal.SIGKILL, signal.SIGTERM)
"""The signals that people, schedulers and kernels send."""
_TIMER_SIGNALS = (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU)
_LOOK = 0.05
"""Seconds between looks whether a silent process has ended."""
_DYING = 1.0
"""Seconds that a killed process may take to end."""
_DESCRIPTORS = 1 << 16


class Fork:
    """A fork of this process that runs a function, and ends when that returns.

    Without a function, it goes on where this process stands, and `is_child` is true there.
    """

    def __init__(self, run: Callable[[], object] | None = None) -> None:
        self._supervision = tree.Supervision()
        self._end: tuple[int, float] | None = None
        # Python drops an exception that Ctrl-C raises while it forks: it has to wait until then.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self.pid = tree.fork()
        self.is_child = self.pid == 0
        if self.is_child and run is not None:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                run()
            finally:
                os._exit(0)
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        except KeyboardInterrupt:
            self.reap(kill=True)
            raise

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self._end is not None or tree.has_ended(self.pid)

    def kill(self) -> None:
        """Kill it, but not yet what it started."""
        if self._end is None:
            tree.kill(self.pid)

    def reap(self, *, kill: bool, kill_strays: bool = True) -> tuple[int, float]:
        """Wait for its end, kill what it started, and return its status and CPU seconds."""
        if self._end is None:
            if kill:
                self.kill()
            status, seconds = tree.reap(self.pid)
            self._supervision.end(kill=kill_strays)
            self._end = status, seconds + self._supervision.cpu_seconds
        return self._end


class ShieldedFork(Fork):
    """A fork whose parent is not this process, but one between them.

    A test may kill or stop its parent. That must not be the program that waits for the test, which
    could not tell anybody then. The process between waits for the fork, and reports how it ended.

    The function gets another one, which returns if the parent is alive, and otherwise never: the
    kernel kills the fork then. A kill takes its time, so call it before an answer counts.

    >>> def run(wait_for_parent):
    ...     os.kill(os.getppid(), signal.SIGKILL)
    ...     wait_for_parent()
    >>> fork = ShieldedFork(run)
    >>> _ = fork.reap(kill=False)
    >>> fork.killed_parent
    True
    """

    def __init__(self, run: Callable[[Callable[[], None]], object]) -> None:
        # Here, so that the user is told if no more files can be opened.
        self._report, report = os.pipe()
        question, reply = os.pipe(), os.pipe()
        self.killed_parent = False
        """Whether the process between was killed, and not by `kill`; known when it is reaped."""
        self._was_killed = False
        super().__init__(lambda: self._stand_between(run, report, question, reply))
        for descriptor in (report, *question, *reply):
            os.close(descriptor)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        if self._end is None:
            tree.resume_if_stopped(self.pid)
        return super().has_ended

    def kill(self) -> None:
        """Kill it, but not yet what it started."""
        self._was_killed = self._was_killed or self._end is None
        super().kill()

    def reap(self, *, kill: bool, kill_strays: bool = True) -> tuple[int, float]:
        """Wait for its end, kill what it started, and return its status and CPU seconds."""
        if self._end is not None:
            return self._end
        while not kill and not self.has_ended:  # it may be stopped, and then has to be resumed
            time.sleep(_LOOK / 100)
        status, seconds = super().reap(kill=kill, kill_strays=kill_strays)
        os.set_blocking(self._report, False)
        try:
            report = os.read(self._report, 4)
        except BlockingIOError:  # a process that could not be killed still has the pipe
            report = b""
        os.close(self._report)
        self.killed_parent = not report and not self._was_killed and os.WIFSIGNALED(status)
        self._end = int.from_bytes(report, "little") if report else status, seconds
        return self._end

    def _stand_between(
        self,
        run: Callable[[Callable[[], None]], object],
        report: int,
        question: tuple[int, int],
        reply: tuple[int, int],
    ) -> None:
        """Fork again, run the function there, and report how that ended."""
        os.close(self._report)
        tree.die_with_parent()
        (asked, ask), (told, tell) = question, reply
        # Before the fork, which may send one of these at once.
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
        handlers = [signal.signal(number, signal.SIG_IGN) for number in signals]
        pid = tree.fork()
        if not pid:
            for number, handler in zip(signals, handlers, strict=True):
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)
            for descriptor in (report, asked, tell):
                os.close(descriptor)

            def wait_for_parent() -> None:
                os.write(ask, b"?")
                if not os.read(told, 1):
                    # The parent is dead, and so is this process in a moment; or else the program
                    # has overwritten the descriptors, and then no answer will arrive either.
                    time.sleep(_DYING)

            run(wait_for_parent)
            return
        signal.signal(signal.SIGUSR2, lambda *_: _ask_for_stack(pid))
        # A pipe of others that is open here would not seem closed when the fork has ended.
        kept = sorted((report, asked, tell))
        for low, high in itertools.pairwise([-1, *kept, _DESCRIPTORS]):
            os.closerange(low + 1, high)
        watched = [asked, *([os.pidfd_open(pid)] if hasattr(os, "pidfd_open") else [])]
        while not tree.has_ended(pid):
            if asked in select.select(watched, [], [], _LOOK)[0]:
                if os.read(asked, 1):
                    os.write(tell, b"!")
                else:  # the program has closed its end
                    watched.remove(asked)
        status, _ = tree.reap(pid)
        os.write(report, status.to_bytes(4, "little"))


def _ask_for_stack(pid: int) -> None:
    """Pass `limits.end_with_stack` on."""
    tree.kill(pid, signal.SIGUSR2)
    tree.kill(pid, signal.SIGCONT)


@dataclass(frozen=True)
class Death:
    """How a process that ran a test ended."""

    status: int
    cpu_ns: int
    timed_out: bool
    stopped: bool
    """Whether it was killed because it was no longer needed."""
    pipe_gone: bool = False
    """It could not send its results any more: a test closed its pipe, or wrote into it."""
    broken: bool = False
    """The code that runs tests failed in it: a test changed something that all code needs."""
    killed_parent: bool = False
    """Whether its parent was killed, and it with it."""
    out_of_memory: bool = False
    """Whether the kernel killed it for want of memory, by its own record."""
    full: bool = False
    """The code that runs tests found no memory in it: a test keeps too much, or lowered a limit."""

    @property
    def by_timer(self) -> bool:
        """Whether a timer or a limit of CPU time ended it, which an earlier test may have set."""
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) in _TIMER_SIGNALS

    @property
    def perhaps_from_outside(self) -> bool:
        """Whether it was killed by one of `KILLS`; if a test did that, it does so again."""
        ours = self.stopped or self.timed_out or self.pipe_gone or self.broken or self.full
        return not ours and os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) in KILLS

    def fault(self, dump: str, timeout: float) -> Fault:
        """Return the fault that a test showed by ending its process; `dump` is what it printed."""
        if self.pipe_gone:
            text = "the program closed, or wrote to, file descriptors that are not its own"
            return Fault("exit", text, dump)
        if self.broken:
            text = "the program changed its process so that nothing can run in it any more"
            return Fault("exit", text, dump)
        if self.full:
            text = "the program left no memory for anything else in its process"
            return Fault("memory", text, dump)
        if self.killed_parent:
            return Fault("signal", _KILLED_PARENT, dump)
        if self.timed_out:
            # Where a loop was when its time was up varies; what it was called from does not.
            outer = python_stack_of_dump(dump, outermost=True)
            where = f" [{' > '.join(outer)}]" if outer else ""
            return Fault("timeout", f"timeout{where}", f"after {timeout:g} s\n{dump}")
        stack = python_stack_of_dump(dump)
        where = f" [{' < '.join(stack)}]" if stack else ""
        if os.WIFSIGNALED(self.status):
            number = os.WTERMSIG(self.status)
            hint = " (out of memory?)" if number == signal.SIGKILL else ""
            hint = hint.replace("?", "") if self.out_of_memory else hint
            return Fault("signal", f"{signal.Signals(number).name}{hint}{where}", dump)
        status = os.WEXITSTATUS(self.status)
        return Fault("exit", f"the program ended its process with exit status {status}", dump)


_KILLED_PARENT = "the program killed the process that had started it"


class NoAnswer(Exception):
    """The process ended, or its time was up, before it answered; the message says which."""


def in_fork(call: Callable[[], Answer], seconds: float) -> Answer:
    """Return what a function returns in a fork; whatever it does to its process stays there.

    >>> in_fork(lambda: 6 * 7, seconds=5)
    42
    >>> in_fork(lambda: os._exit(3), seconds=5)
    Traceback (most recent call last):
    ...
    swarmtest.processes.fork.NoAnswer: it ended its process with exit status 3
    """

    def run(send: Callable[[Any], None]) -> None:
        answer: Any
        try:
            answer = call()
        except UserError as error:
            answer = error
        except BaseException as error:
            answer = NoAnswer(message_of(error))
        send(answer)

    answers, end = _run_in_fork(run, seconds)
    if not answers:
        raise NoAnswer(end or f"it was not over after {seconds:g} s")
    if isinstance(answers[0], UserError | NoAnswer | OSError):
        raise answers[0]
    return answers[0]  # type: ignore[no-any-return]


def messages_of_fork(
    work: Callable[[Callable[[Any], None]], None], seconds: float = float("inf")
) -> list[Any]:
    """Return the messages (JSON data) that `work` sent from a fork until its end, or in its time.

    >>> messages_of_fork(lambda send: [send("before"), os._exit(1), send("after")], seconds=5)
    ['before']
    """

    def run(send: Callable[[Any], None]) -> None:
        work(lambda message: send(json.dumps(message)))

    return [json.loads(message) for message in _run_in_fork(run, seconds)[0]]


def last_answer(work: Callable[[Callable[[Any], None]], None], silence: float) -> Any:
    """Return the last answer that `work` sent from a fork, until its end or its silence.

    `work` sends better and better answers, and None to say that it is still busy. It is ended if it
    sends nothing for `silence` seconds; so it may take as long as it needs on a busy machine.

    >>> last_answer(lambda send: [send("good"), send("better"), os._exit(1)], silence=5)
    'better'
    """

    def run(send: Callable[[Any], None]) -> None:
        try:
            work(send)
        except UserError as error:
            send(error)
        except BaseException as error:
            send(NoAnswer(message_of(error)))

    messages, end = _run_in_fork(run, silence, restarts=True)
    answers = [message for message in messages if message is not None]
    good = [answer for answer in answers if not isinstance(answer, Exception)]
    if good:
        return good[-1]
    raise answers[-1] if answers else NoAnswer(end or f"it did nothing for {silence:g} s")


def _run_in_fork(
    work: Callable[[Callable[[Any], None]], None], seconds: float, *, restarts: bool = False
) -> tuple[list[Any], str]:
    """Run `work` in a fork; return its messages and how it ended, empty if its time was up.

    If its time `restarts`, each message gives it as many seconds again.
    """
    limits.flush_streams()
    read, write = os.pipe()

    def live(wait_for_parent: Callable[[], None]) -> None:
        def send(message: Any) -> None:
            wait_for_parent()
            frames.send_pickled(write, message)

        os.close(read)
        try:
            # What a race waits for in vain is ended by an interrupt.
            limits.prepare(hears_interrupts=True)
            limits.replace_streams()
        except OSError as error:  # too many open files
            frames.send_pickled(write, error)
            return
        work(send)

    fork = ShieldedFork(live)
    os.close(write)
    try:
        messages, in_time = _receive_until_end(read, fork, seconds, restarts)
        status, _ = fork.reap(kill=bool(messages) or not in_time)
    finally:
        fork.reap(kill=True)
        os.close(read)
    if not in_time:
        return messages, ""
    return messages, "it killed its parent" if fork.killed_parent else _how_it_ended(status)


def _receive_until_end(
    read: int, fork: Fork, seconds: float, restarts: bool
) -> tuple[list[Any], bool]:
    """Return the messages until a fork's end, and whether that came in time."""
    until = time.monotonic() + seconds
    messages: list[Any] = []
    arriving = frames.Frames(read, pickle.loads)
    while (left := until - time.monotonic()) > 0:
        # A process that the program forked may hold the pipe open after the end, so look often.
        if select.select([read], [], [], min(left, _LOOK))[0]:
            messages += (received := arriving.receive())
            if received and restarts:
                until = time.monotonic() + seconds
        if arriving.ended or fork.has_ended:
            break
    while not arriving.ended and select.select([read], [], [], 0)[0]:
        messages += arriving.receive()
    if messages and arriving.ended:
        return messages, True  # it is about to end, and how does not matter
    while not (in_time := fork.has_ended) and time.monotonic() < until:
        time.sleep(_LOOK / 100)  # it has closed the pipe, and is about to end
    return messages, in_time


def _how_it_ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"it was killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"it ended its process with exit status {os.WEXITSTATUS(status)}"
