"""Forks that answer questions, one after the other, and runs in a fork each.

A fork for every run of a test costs many times what a short test does: page tables are copied, and
everything that a process learns in its first test, like which probes mean which targets, is learnt
again. So a caller with thousands of questions (a reduction) keeps a `ForkPool`. A caller with one
question starts an `IsolatedRun`, or several at once, or calls `run_isolated`.

Invariants:

- What tests leave behind stays small: a process answers no more questions after a test that left
  children or threads in it, or changed something that all code in it shares (`process_state`), and
  none answers more than its `most`. A fork comes from a process that has run no test, so a new one
  starts clean.
- A process is killed, with everything that it started, when it is over or its answer is not wanted.
- A process that ends before it has answered has failed in that question, unless it was killed,
  perhaps from outside: then another is asked, and only what repeats is a failure.
"""

from __future__ import annotations

import os
import pickle
import select
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Generic, TypeVar

from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.processes import frames, limits
from swarmtest.processes.fork import Death, ShieldedFork
from swarmtest.processes.kills import ControlProcess, OutOfMemoryRecord, kills_itself
from swarmtest.processes.process_state import Habits, ProcessState
from swarmtest.processes.shared_limit import SharedLimit

Answer = TypeVar("Answer")

_LOOK_SECONDS = 0.02
"""A process that the program forked may hold the pipe open after the end, so look often."""


class AnsweringFork(Generic[Answer]):
    """A fork of this process that answers questions by a function."""

    def __init__(
        self, answer: Callable[[Any], Answer], memory: int = 0, *, quiet: bool, most: int
    ) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `reap`
        self.is_new = True
        """Whether it was asked nothing yet."""
        questions, self._ask = os.pipe()
        answers, replies = os.pipe()

        def live(wait_for_parent: Callable[[], None]) -> None:
            os.close(self._ask)
            os.close(answers)
            dump = self._stderr.fileno()
            limits.prepare(memory, errors=dump, quiet=quiet)
            limits.refuse_debugger()
            limits.dump_stack_on_death(dump)
            _serve(answer, questions, replies, most, wait_for_parent)

        self._fork = ShieldedFork(live)
        os.close(questions)
        os.close(replies)
        self.answers = frames.Frames(answers, pickle.loads)

    def ask(self, question: Any) -> bool:
        """Put a question; return False if the process has died meanwhile."""
        self.is_new = False
        self._stderr.seek(0)
        self._stderr.truncate()
        try:
            frames.send_pickled(self._ask, question)
        except BrokenPipeError:
            return False
        return True

    @property
    def has_ended(self) -> bool:
        """Whether it has ended; `reap` is still to be called."""
        return self._fork.has_ended

    @property
    def killed_parent(self) -> bool:
        """Whether it killed its parent; known after `reap`."""
        return self._fork.killed_parent

    def end_with_stack(self) -> None:
        """Have a process that takes too long write down what it is doing, and end."""
        limits.end_with_stack(self._fork.pid, lambda: self.has_ended)

    def reap(self, *, killed: bool) -> tuple[int, int, str]:
        """End it and what it started; return its status, CPU time in ns, and standard error."""
        if killed:
            self._fork.kill()
        os.close(self._ask)
        os.close(self.answers.fd)
        status, cpu_seconds = self._fork.reap(kill=killed)
        with self._stderr:
            self._stderr.seek(0)
            words = self._stderr.read().decode(errors="replace")
        return status, int(cpu_seconds * 1e9), words


class PendingAnswer(Generic[Answer]):
    """A question that a process is at.

    `done_with` gets the process back if it can answer more, with what has changed in it; otherwise
    it is ended. `another` makes a new process: one that was killed, perhaps from outside, says
    nothing about the question.
    """

    def __init__(
        self,
        process: AnsweringFork[Answer],
        question: Any,
        seconds: float,
        done_with: Callable[[AnsweringFork[Answer], Collection[str]], None] | None = None,
        another: Callable[[], AnsweringFork[Answer]] | None = None,
        limit: SharedLimit | None = None,
    ) -> None:
        self._question = question
        self._limit = limit
        self._another = another
        self._kills = self._control_kills = 0
        self._control: ControlProcess | None = None
        self._out_of_memory = OutOfMemoryRecord()
        self._process = process
        self.alone = process.is_new
        """Whether the process has run nothing before."""
        self._seconds = seconds
        self._done_with = done_with
        self._outcome: Answer | Fault | UserError | None = None
        self.over = False
        self._deadline = time.monotonic() + seconds
        process.ask(question)  # one that has died says nothing, which is noticed

    def fileno(self) -> int:
        """Return what `select` waits for: the process has an answer, or has ended."""
        return self._process.answers.fd

    def advance(self, ready: bool) -> None:
        """Take the answer, if there is one, and end the process if its time is up."""
        answers = self._process.answers
        if ready:
            self._take(answers.receive())
        elif self._process.has_ended:
            while not (self.over or answers.ended) and select.select([answers.fd], [], [], 0)[0]:
                self._take(answers.receive())
            if not self.over:
                self._died(timed_out=False)
        elif self._is_late():
            self._process.end_with_stack()
            self._died(timed_out=True)

    def _is_late(self) -> bool:
        if self._limit is not None:
            seconds = self._limit.seconds  # first, since the process may just go on
            if self._limit.has_passed():
                self._seconds = seconds
                return True
        return time.monotonic() > self._deadline

    def end(self) -> None:
        """End it, whatever it is doing."""
        if not self.over:
            self._died(timed_out=True)

    def outcome(self) -> Answer | Fault:
        """Return the answer; or, if it ended its process or took too long, the fault it showed."""
        if isinstance(self._outcome, UserError):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome

    def _take(self, answers: list[Any]) -> None:
        if answers:
            self._answered(*answers[0])
        elif self._process.answers.broken:  # the program wrote to our pipe
            self.over = True
            self._end_control()
            *_, words = self._process.reap(killed=True)
            self._outcome = Death(0, 0, False, stopped=False).fault(words, self._seconds)
        elif self._process.answers.ended:
            self._died(timed_out=False)

    def _answered(self, answer: Answer | UserError, fit: bool, changes: Collection[str]) -> None:
        self.over = True
        self._end_control()
        self._outcome = answer
        if fit and self._done_with is not None:
            self._done_with(self._process, changes)
        else:
            self._process.reap(killed=fit)

    def _may_ask_again(self) -> bool:
        self._kills += 1
        return not kills_itself(self._kills, self._control_kills)

    def _end_control(self) -> None:
        if self._control is not None:
            self._control.end()
            self._control_kills += self._control.was_killed
            self._control = None

    def _ends_in_time(self) -> bool:
        """Wait for a process that has closed its pipe: it is about to end, or goes on silently."""
        while not self._process.has_ended:
            if self._is_late():
                self._process.end_with_stack()
                return False
            time.sleep(_LOOK_SECONDS / 10)
        return True

    def _died(self, timed_out: bool) -> None:
        self.over = True
        timed_out = timed_out or not self._ends_in_time()
        status, cpu_ns, words = self._process.reap(killed=timed_out)
        self._end_control()
        killed_parent = self._process.killed_parent
        death = Death(status, cpu_ns, timed_out, stopped=False, killed_parent=killed_parent)
        if death.perhaps_from_outside and self._out_of_memory.happened_again():
            death = replace(death, out_of_memory=True)
        elif self._another is not None and death.perhaps_from_outside and self._may_ask_again():
            self.over = False
            if self._limit is not None:
                self._limit.clear()
            self._control = ControlProcess()
            self._process = self._another()
            self.alone = True
            self._deadline = time.monotonic() + self._seconds
            self._process.ask(self._question)
            return
        self._outcome = death.fault(words, self._seconds)


class ForkPool(Generic[Answer]):
    """Processes that stand ready to answer by the same function.

    >>> with ForkPool(lambda n: 6 * n, seconds=5) as pool:
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
        self._ready: list[AnsweringFork[Answer]] = []
        self._habits = Habits()

    def ask(self, question: Any) -> PendingAnswer[Answer]:
        """Put a question to a process that is ready, or to a new one."""
        while self._ready:
            process = self._ready.pop()
            if not process.has_ended:
                return self._pending(process, question)
            process.reap(killed=True)
        return self._pending(self._new_process(), question)

    def _pending(self, process: AnsweringFork[Answer], question: Any) -> PendingAnswer[Answer]:
        return PendingAnswer(process, question, self._seconds, self._keep, self._new_process)

    def _keep(self, process: AnsweringFork[Answer], changes: Collection[str]) -> None:
        """Let a process answer more, unless its last question changed what is no habit."""
        self._habits.count_test()
        self._habits.count_changes(changes)
        if all(name in self._habits for name in changes):
            self._ready.append(process)
        else:
            process.reap(killed=True)

    def _new_process(self) -> AnsweringFork[Answer]:
        return AnsweringFork(self._answer, quiet=True, most=self._most)

    def close(self) -> None:
        """End the processes that are ready."""
        while self._ready:
            self._ready.pop().reap(killed=True)

    def __enter__(self) -> ForkPool[Answer]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class IsolatedRun(PendingAnswer[Answer]):
    """A function that runs in a process of its own; `end` kills it with everything it started.

    `quiet`: drop what it prints. `limit`: one that the function sets for parts of its work.

    >>> run = IsolatedRun(lambda: 6 * 7, seconds=5)
    >>> wait_for_any([run])
    >>> run.over, run.outcome()
    (True, 42)
    """

    def __init__(
        self,
        run: Callable[[], Answer],
        seconds: float,
        memory: int = 0,
        *,
        quiet: bool = False,
        limit: SharedLimit | None = None,
    ) -> None:
        def start() -> AnsweringFork[Answer]:
            return AnsweringFork(lambda _: run(), memory, quiet=quiet, most=1)

        super().__init__(start(), None, seconds, another=start, limit=limit)


def wait_for_any(runs: Collection[PendingAnswer[Any]], until: float | None = None) -> None:
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
    """Return what `run` returns in a process of its own.

    If it ends its process or takes too long, the result is the fault that it showed. `quiet`: drop
    what it prints.

    >>> import os
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


def _serve(
    answer: Callable[[Any], Any],
    questions: int,
    replies: int,
    most: int,
    wait_for_parent: Callable[[], None],
) -> None:
    arriving = frames.Frames(questions, pickle.loads)
    state = ProcessState() if most > 1 else None
    for left in reversed(range(most)):
        question = arriving.next()
        if arriving.ended:  # nobody will ask any more
            return
        reply: Any
        try:
            reply = answer(question)
        except UserError as error:
            reply = error
        changes = state.changes() if state is not None and left > 0 and _left_nothing() else None
        fit = changes is not None and not changes.taken
        wait_for_parent()
        frames.send_pickled(replies, (reply, fit, changes.others if changes else ()))
        if not fit:
            return


def _left_nothing() -> bool:
    """Return whether a test has left neither threads nor children here."""
    if threading.active_count() > 1:
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False
