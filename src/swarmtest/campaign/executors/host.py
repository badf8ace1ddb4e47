"""The host: a process that forks a child to run the tests, and survives it.

Why two processes: a test may crash, hang or exhaust the memory of the process that runs it. The
host imports the subject once and forks children from that state, so a crash costs a fork, not the
start of an interpreter; and the host can always say how the child died and in which test.

Invariants:

- The host alone writes to the campaign; a child's half-written frame dies with the child's pipe.
- A trial of a batch is answered exactly once, and in the batch's order: by the child, or, if the
  child died in it, by the host with the fault it showed (a signal, an exit, a timeout). The rest
  goes to a new child.
- A kill is not a verdict: a trial whose process was killed runs again alone, in a new child. Only
  what repeats, or what the kernel recorded as out of memory, is a fault.
- If the host is killed, its cell of shared memory tells the process that started it which trial was
  running; the next host runs that trial again alone.
- When the campaign's end of the pipe closes, the host kills its child and ends. A child whose host
  dies is killed by the kernel (Linux) or ends at its next write.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pickle
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from swarmtest.campaign.executors.worker import (
    IDLE,
    LAST,
    PIPE_GONE,
    SENDING,
    SPENT,
    STARTED,
    STOP,
    TRIAL,
    CampaignJob,
    RowBatch,
    TrialRunner,
    cell_of_file,
    pack_proposal,
    unpack_proposals,
)
from swarmtest.campaign.executors.worker_child import WorkerChild
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import FEW, seed_of_test
from swarmtest.processes import frames as wire
from swarmtest.processes import tree
from swarmtest.processes.fork import Death
from swarmtest.processes.kills import (
    FEWEST_KILLS,
    ControlProcess,
    OutOfMemoryRecord,
    kills_itself,
)
from swarmtest.processes.process_state import Habits
from swarmtest.subjects.subject import Subject

if TYPE_CHECKING:
    from swarmtest.coverage.watch import Coverage

_LONGEST_DUMP = 20_000
_IDLE_DEATHS = 3
"""How often a child may die outside a test (a strategy ends the process?) before we give up."""
_IDLE_KILLS = 40
"""The same for a child that is killed, perhaps from outside."""
_GRACE = 0.4
"""Seconds that a stopped child has to finish its test before it is killed."""
_SUSPICIOUS_SECONDS = 1.0
_SUSPICIOUS_TIMES = 100
"""A test that runs when the campaign ends hangs if it has taken so long, and so many times the mean
of the others. One that is only slow is stopped, and counts for nothing."""
_PATIENT_TESTS = 20
"""How many tests must have ended before the usual limit of one is lowered to what is suspicious."""
_JOURNAL_SECONDS = 0.5
"""How long the steps of such a test may take to come to where it hangs."""


@dataclass(frozen=True)
class HostSetup:
    """What a host needs to start; it is pickled, because it holds the user's objects."""

    make_job: Any
    """A function without arguments, picklable, that makes the `CampaignJob`."""
    timeout: float
    memory: int
    """Bytes of data a child may hold; 0: no limit."""
    packs_blocks: bool = False
    """`CampaignJob.packs_blocks`."""
    moved_below: str = ""
    """`CampaignJob.moved_below`."""
    adapts: bool = False
    """Whether `timeout` is only the most that a test may take: nobody has asked for it."""


_KILLED_HOST = Fault("signal", "the program killed the process that had started it")


@dataclass
class _DeadlyTrial:
    """A trial in which a child died."""

    death: Death
    fault: Fault
    wall_ns: int
    kills: int = 0
    """How often its child was killed, perhaps from outside."""
    control_kills: int = 0
    """How often a process that did nothing meanwhile was killed."""


class _Failed(Exception):
    """An error that is not a test's fault; it was reported to the campaign."""


class Host:
    """Runs batches in a child, and survives it."""

    def __init__(
        self, up: int, cell: memoryview, setup: HostSetup, coverage: Coverage | None = None
    ) -> None:
        self._up = up
        self._setup = setup
        self._frames = wire.Frames(up)
        self._cell = cell
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the host)
        self._job: CampaignJob = setup.make_job()
        self._job.coverage = coverage
        self._job.packs_blocks = setup.packs_blocks
        self._job.moved_below = setup.moved_below
        self._worker = TrialRunner(self._job)
        self._child: WorkerChild | None = None
        self._waiting: list[Any] = []
        self._stopped = 0.0
        self._out_of_memory = OutOfMemoryRecord()
        self._runs_again = IDLE
        """The trial that runs again, until its row comes."""
        self._tests = 0
        self._busy_seconds = 0.0
        """How many tests have ended, and how long they took together."""
        self._began = 0.0
        """When the child received what it runs now."""
        self._left: list[int] = []
        self._sent = 0
        """The trials of what it runs now that are not answered, and how many are."""
        self._careful = False
        """Whether the child passes on each result, and what the test has changed."""
        self._habits = Habits()
        self._doubted = IDLE
        """The trial that was ended when it became suspicious, and runs again."""
        self._unhurried: set[int] = set()
        """Trials that took suspiciously long, and ended when they ran again."""
        self._seen = (IDLE, 0.0)
        """The test at hand, and how long its child had waited for a processor when it was seen."""

    def serve(self) -> None:
        """Run batches until the campaign closes the connection."""
        self._send("ready", self._worker.introduction().packed()[2])
        if isinstance(self._job.subject, Subject):
            self._job.subject.warm_up()  # once, and not in every child
        try:
            while True:
                message = self._next_message()
                if message is None:
                    return
                kind, body = message
                if kind == "batch" and not self._stopped:
                    self._run_batch(*body)
                if kind == "stop":
                    self._stopped = time.monotonic()
                self._send("done", None)
        except _Failed:
            pass
        finally:
            self._end_child()

    def _send(self, kind: str, body: Any) -> None:
        wire.send(self._up, (kind, body))

    def _next_message(self) -> Any:
        while not self._waiting:
            if self._frames.ended:
                return None
            self._waiting += self._frames.receive()
        return self._waiting.pop(0)

    def _run_batch(
        self,
        trials: list[int],
        described: list[Any] | None,
        one_by_one: bool = False,
        deaths: Mapping[int, int] | None = None,
        to_follow: int = 0,
        other_deaths: int = 0,
    ) -> None:
        """Run a batch.

        `one_by_one`: pass each result on before the next trial begins. `deaths`: how many hosts
        were killed while they ran a trial. `to_follow`: how many trials will come soon, in other
        batches. `other_deaths`: how many hosts are known to have been killed from outside.
        """
        left = list(trials)
        if len(trials) + to_follow > FEW:
            # A child would need it, and every later child again.
            import numpy  # noqa: F401

            if self._job.packs_blocks:
                import swarmtest.campaign.executors.block_batch  # noqa: F401
        given = (
            unpack_proposals(self._job.subject.space, described) if described is not None else ()
        )
        proposals = dict(zip(trials, given, strict=False))
        no_death = Death(0, 0, timed_out=False, stopped=False)
        deadly = {
            # At most half: which hosts could have been killed, and when, is not known.
            trial: _DeadlyTrial(no_death, _KILLED_HOST, 0, kills, min(other_deaths, kills // 2))
            for trial, kills in (deaths or {}).items()
        }
        self._careful = False
        idle_deaths = 0
        while left and not self._stopped:
            first = deadly.get(left[0])
            if first is not None and not _runs_again(first):
                proposal = proposals.get(left[0]) or self._worker.propose(left[0])
                if self._report_death(left[0], proposal, first):
                    left.pop(0)
                elif first.death.timed_out:
                    self._unhurried.add(left[0])
                    del deadly[left[0]]
                else:
                    deadly[left[0]] = replace(first, kills=1, control_kills=0)
                continue
            part = left[:1] if one_by_one else _next_part(left, deadly)
            before = len(part)
            child = self._ready_child(new=first is not None)
            still = [pack_proposal(proposals[t]) for t in part] if proposals else None
            # Before the test begins, which may be killed at once, together with all others.
            control = ControlProcess() if first is not None and first.kills else None
            child.send(part, still, careful=self._careful)
            self._runs_again = part[0] if first is not None else IDLE
            self._began = time.monotonic()
            try:
                finished = self._finishes(child, part)
            finally:
                if control is not None:
                    control.end()
            if first is not None and control is not None and control.was_killed:
                deadly[left[0]] = replace(first, control_kills=first.control_kills + 1)
            self._note_time(before - len(part))
            if len(part) < before:
                del left[: before - len(part)]
                idle_deaths = 0
                child.has_run = True
            if finished:
                continue
            death = self._reap(child)
            victim = self._cell[TRIAL]
            if death.stopped or (death.timed_out and victim != child.overdue):
                continue  # told to stop; or the slow test ended after all, in its last moment
            if self._results_are_lost(death, part) or death.by_timer:
                # Some test in this child did that; sent one by one, we see which.
                if not self._careful or child.has_run:
                    self._careful = True
                    continue
                if not death.by_timer:
                    death = replace(death, pipe_gone=not (death.broken or death.full))
                    victim = part[0]
            if victim not in part:
                idle_deaths += 1
                if idle_deaths > (_IDLE_KILLS if death.perhaps_from_outside else _IDLE_DEATHS):
                    status = death.fault("", self._setup.timeout).signature
                    self._relay("error", f"workers keep dying between tests: {status}", part)
                continue
            deadly[victim] = self._deadly_trial(death, deadly.get(victim))
            if self._stopped and death.timed_out:
                proposal = proposals.get(victim) or self._worker.propose(victim)
                self._report_death(victim, proposal, deadly[victim])

    def _note_time(self, tests: int) -> None:
        """Count the tests that a child has ended, and their time without that of one in flight."""
        in_flight = self._age() if self._cell[TRIAL] != IDLE else 0.0
        self._tests += tests
        self._busy_seconds += max(0.0, time.monotonic() - self._began - in_flight)

    def _age(self) -> float:
        """Return for how many seconds the test at hand has run."""
        return (time.monotonic_ns() - self._cell[STARTED]) / 1e9

    def _hangs_at_the_end(self) -> bool:
        """Return whether the test at hand has run far too long when the campaign is over."""
        if not self._stopped or self._cell[TRIAL] == IDLE or self._cell[SENDING]:
            return False
        return self._ended()[0] > 0 and self._age() > self._suspicious_seconds()

    def _ended(self) -> tuple[int, float]:
        """Return how many tests have ended, and how long they took."""
        trial = self._cell[TRIAL]
        if trial not in self._left:
            return self._tests, self._busy_seconds
        # The child has ended those before it, though it may not have sent their rows.
        seconds = self._busy_seconds + max(0.0, time.monotonic() - self._began - self._age())
        return self._tests + self._sent + self._left.index(trial), seconds

    def _suspicious_seconds(self) -> float:
        """Return for how long a test runs that probably hangs, judged by those that ended."""
        tests, seconds = self._ended()
        return max(_SUSPICIOUS_SECONDS, _SUSPICIOUS_TIMES * seconds / max(1, tests))

    def _results_are_lost(self, death: Death, part: list[int]) -> bool:
        """Return whether a child could not send what it had: a test had closed its pipe, or so."""
        if death.pipe_gone or death.broken or death.full or self._cell[SENDING]:
            return not death.perhaps_from_outside
        return self._cell[LAST] in part and os.WIFEXITED(death.status)

    def _ready_child(self, *, new: bool) -> WorkerChild:
        """Return a child that waits for trials; `new`: one that has run none."""
        self._out_of_memory.happened_again()  # what happened before is not about these trials
        if new:
            self._end_child()
        for index in (STOP, SENDING, PIPE_GONE):
            self._cell[index] = 0
        self._cell[TRIAL] = self._cell[LAST] = IDLE
        return self._child or self._new_child()

    def _deadly_trial(self, death: Death, before: _DeadlyTrial | None) -> _DeadlyTrial:
        """Describe the trial at hand, whose child has died."""
        killed = death.perhaps_from_outside
        if killed and self._out_of_memory.happened_again():
            death, killed = replace(death, out_of_memory=True), False
        timeout = min(self._limit(), self._age()) if self._stopped else self._limit()
        fault = death.fault(self._dump(), timeout)
        wall_ns = time.monotonic_ns() - self._cell[STARTED]
        # The child, and all that it had started, without what earlier tests took.
        death = replace(death, cpu_ns=max(0, death.cpu_ns - self._cell[SPENT]))
        if not killed:
            return _DeadlyTrial(death, fault, wall_ns)
        kills, control_kills = (
            (before.kills, before.control_kills) if before is not None else (0, 0)
        )
        return _DeadlyTrial(death, fault, wall_ns, kills + 1, control_kills)

    def _report_kill(self, trial: int) -> None:
        """Say that a trial was killed from outside: its row is that of another run."""
        batch = RowBatch()
        batch.killed.append(trial)
        self._send("rows", batch.packed())

    def _finishes(self, child: WorkerChild, left: list[int]) -> bool:
        """Pass on a child's rows; return whether it finished its batch before it fell silent."""
        self._left, self._sent = left, 0
        while not child.silent:
            for kind, body in self._receive(child):
                if kind != "done":
                    self._relay(kind, body, left)
                elif self._stopped or not left:  # a copy that the program forked may say it early
                    return True
            if self._overdue(child) or self._hangs_at_the_end():
                child.kill_with_stack()
            elif self._stopped and time.monotonic() - self._stopped > _GRACE:
                child.kill(stopped=True)
        return False

    def _receive(self, child: WorkerChild) -> list[Any]:
        """Return a child's messages within a moment; also notice when the campaign says stop."""
        watched = [child.frames.fd, self._up, *child.death_notice]
        ready, _, _ = select.select(watched, [], [], self._patience())
        if self._up in ready and not self._stopped:
            self._waiting += self._frames.receive()
            if self._frames.ended or any(kind == "stop" for kind, _ in self._waiting):
                self._cell[STOP] = 1
                self._stopped = time.monotonic()
        return child.hear(child.frames.fd in ready)

    def _patience(self) -> float:
        return 0.05 if self._stopped else max(0.005, min(0.25, self._setup.timeout / 8))

    def _limit(self) -> float:
        """Return how many seconds the test at hand may take.

        If nobody has set a limit, tests that ended tell what is suspicious. Such a test runs twice,
        the second time for twice as long, and if it ends then, a third time, with the whole limit.
        """
        most = self._setup.timeout
        if not self._setup.adapts or self._cell[TRIAL] in self._unhurried:
            return most
        too_few = self._ended()[0] < _PATIENT_TESTS
        times = 2 if self._cell[TRIAL] == self._doubted else 1
        return most if too_few else min(most, times * self._suspicious_seconds())

    def _overdue(self, child: WorkerChild) -> bool:
        """Return whether the test at hand has taken too long."""
        trial = self._cell[TRIAL]
        if trial == IDLE or self._cell[SENDING]:
            return False
        limit = self._limit()
        if limit == self._setup.timeout:
            return self._age() > limit
        if self._seen[0] != trial:
            self._seen = trial, child.seconds_of_waiting()
        return (
            self._age() > limit and self._age() - child.seconds_of_waiting() + self._seen[1] > limit
        )

    def _relay(self, kind: str, body: Any, left: list[int]) -> None:
        if kind == "rows":
            count, ranks, _packed = body
            if count and self._runs_again != IDLE:
                # Before the row, so that no store has the row without the note.
                self._report_kill(self._runs_again)
                self._runs_again = IDLE
            for fault, *rank in ranks:
                best = self._worker.best
                best[fault] = min(best.get(fault, tuple(rank)), tuple(rank))
            del left[:count]  # trials run in order
            self._sent += count
            if self._careful and count:
                self._habits.count_test()
        if kind == "changes":
            self._habits.count_changes(body)
            return
        self._send(kind, body)
        if kind == "error":
            raise _Failed

    def _reap(self, child: WorkerChild) -> Death:
        """Return how a silent child ended; one that still runs may use up its time."""
        self._child = None
        while True:
            death = child.death()
            if death is not None:
                child.close()
                return death
            if (self._stopped and not child.has_timed_out) or self._frames.ended:
                child.kill(stopped=True)
            elif self._overdue(child):
                child.kill_with_stack()
            time.sleep(0.002)

    def _report_death(self, trial: int, proposal: Proposal, deadly: _DeadlyTrial) -> bool:
        """Send the row of a test that killed its process, with the steps until then.

        Return False, and send nothing, if its process was killed so far, but not this time, or if
        the test seemed to hang, and now ended by itself, with its process or without.
        """
        steps: list[Any] = []
        if deadly.fault is not _KILLED_HOST:
            self._doubted = trial if deadly.death.timed_out else IDLE
            steps, death, survived = self._journal(trial, proposal, deadly.death)
            if survived and deadly.kills:
                return False
            if survived and self._is_suspicious(deadly.death):
                return False
            if not survived and not death.stopped and self._had_less_time(deadly.death):
                return False  # it ends its process, and had only been slow to do so
        result = self._job.subject.result_of_journal(steps, proposal.configuration, deadly.fault)
        if self._job.coverage is not None or _watches_libraries():
            result = result._replace(missing="its process died before it could tell")
        batch = RowBatch()
        seed = seed_of_test(self._job.seed, trial)
        cpu_ns, wall_ns = deadly.death.cpu_ns, deadly.wall_ns
        self._worker.note(batch, trial, proposal, seed, result, cpu_ns, wall_ns)
        self._send("rows", batch.packed())
        return True

    def _had_less_time(self, death: Death) -> bool:
        """Return whether a test was ended before its whole limit."""
        return death.timed_out and (self._setup.adapts or bool(self._stopped))

    def _is_suspicious(self, death: Death) -> bool:
        """Return whether a test that ended now had less than the whole limit before."""
        return death.timed_out and self._setup.adapts and not self._stopped

    def _journal(
        self, trial: int, proposal: Proposal, known: Death
    ) -> tuple[list[Any], Death, bool]:
        """Run such a test again, in a child that sends each step before it takes it.

        Return its steps, how its process ended, and whether the test ended before that.
        """
        for _ in range(FEWEST_KILLS):
            steps, death, survived = self._run_with_journal(trial, proposal)
            if death.stopped or known.perhaps_from_outside or not death.perhaps_from_outside:
                break  # otherwise it was killed from outside, and there may be more steps
        return steps, death, survived

    def _run_with_journal(self, trial: int, proposal: Proposal) -> tuple[list[Any], Death, bool]:
        child = self._ready_child(new=True)
        child.send([trial], [pack_proposal(proposal)], journal=True)
        messages: list[Any] = []
        until = time.monotonic() + _JOURNAL_SECONDS
        while not child.silent and ("done", None) not in messages[-1:]:
            messages += self._receive(child)
            if self._overdue(child) or (self._stopped and time.monotonic() > until):
                break
        last_moment = time.monotonic() + _GRACE  # a dying process closes its pipe first
        while child.silent and child.death() is None and time.monotonic() < last_moment:
            time.sleep(0.002)
        child.kill(stopped=True)
        death = self._reap(child)
        steps = [json.loads(body) for kind, body in messages if kind == "step"]
        return steps, death, ("done", None) in messages

    def _dump(self) -> str:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _LONGEST_DUMP))
        text = self._stderr.read().decode(errors="replace")
        self._stderr.seek(0)
        self._stderr.truncate()
        return text

    def _new_child(self) -> WorkerChild:
        self._dump()
        self._seen = IDLE, 0.0
        memory = self._setup.memory
        self._child = WorkerChild(
            self._worker, self._cell, self._stderr, memory, self._up, self._habits
        )
        return self._child

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.kill(stopped=True)
            self._reap(self._child)


def _watches_libraries() -> bool:
    """Return whether tests report what a library in their own process reached."""
    library = sys.modules.get("swarmtest.coverage.native.library")
    return library is not None and bool(library.loaded)


def _runs_again(deadly: _DeadlyTrial) -> bool:
    """Return whether a trial's child may have been killed from outside."""
    return deadly.kills > 0 and not kills_itself(deadly.kills, deadly.control_kills)


def _next_part(left: list[int], deadly: dict[int, _DeadlyTrial]) -> list[int]:
    """Return what a child is to run next: one deadly trial alone, or all until the next."""
    if left[0] in deadly:
        return left[:1]
    return list(itertools.takewhile(lambda trial: trial not in deadly, left))


# Starting a host.


def main(fd: int, cell_file: int) -> None:
    """Read the setup from the connection, then serve; a fresh interpreter starts here."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.set_inheritable(fd, False)
    cell = cell_of_file(cell_file)
    os.close(cell_file)
    frames = wire.Frames(fd)
    first: list[Any] = []
    while not first and not frames.ended:
        first = frames.receive()
    if first:
        run_host(fd, cell, *first[0])


def run_host(
    fd: int,
    cell: memoryview,
    options: dict[str, Any] | Coverage | None,
    pickled: bytes | HostSetup,
    changes: Mapping[str, Any] | None = None,
) -> None:
    """Make the subject and serve; report to the campaign what goes wrong on the way.

    `changes`: fields of the setup that are different on this machine.

    Coverage begins before the setup is unpickled, because that may import the user's modules. In a
    fork of a process that records coverage already, it goes on.
    """
    tree.adopt_orphans()
    try:
        coverage = _install_coverage(options) if isinstance(options, dict) else options
        setup = pickle.loads(pickled) if isinstance(pickled, bytes) else pickled
        if changes:
            setup = replace(setup, **changes)
        host = Host(fd, cell, setup, coverage)
    except UserError as error:
        _complain(fd, str(error))
        return
    except Exception:
        _complain(fd, f"a worker could not start:\n{traceback.format_exc()}")
        return
    with contextlib.suppress(BrokenPipeError):
        host.serve()


def _install_coverage(options: dict[str, Any]) -> Coverage:
    """Record coverage of what is imported from now on."""
    from swarmtest.coverage.options import CoverageOptions
    from swarmtest.coverage.watch import Coverage

    return Coverage(CoverageOptions.from_plain(options)).install()


def _complain(fd: int, text: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # another worker may have said it first
        wire.send(fd, ("error", text))
