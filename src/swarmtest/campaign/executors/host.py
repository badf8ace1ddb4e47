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

import builtins
import contextlib
import itertools
import json
import os
import pickle
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from swarmtest.campaign.executors.worker import (
    IDLE,
    LAST,
    PIPE_GONE,
    SENDING,
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
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import FEW, seed_of_test
from swarmtest.processes import frames as wire
from swarmtest.processes import limits, tree
from swarmtest.processes.fork import MOST_KILLS, Death, Fork

if TYPE_CHECKING:
    from swarmtest.coverage.watch import Coverage

_LONGEST_DUMP = 20_000
_IDLE_DEATHS = 3
"""How often a child may die outside a test (a strategy ends the process?) before we give up."""
_BROKEN = 2
"""In the place of `PIPE_GONE`: our own code failed, after what the test at hand has changed."""
_GRACE = 0.4
"""Seconds that a stopped child has to finish its test before it is killed."""


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


_KILLED_HOST = Fault("signal", "the program killed the process that had started it")


@dataclass
class _DeadlyTrial:
    """A trial in which a child died."""

    death: Death
    fault: Fault
    wall_ns: int
    kills: int = 0
    """How often its child was killed, perhaps from outside."""


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
        self._out_of_memory = limits.OutOfMemoryRecord()
        self._runs_again = IDLE
        """The trial that runs again, until its row comes."""

    def serve(self) -> None:
        """Run batches until the campaign closes the connection."""
        self._send("ready", self._worker.introduction().packed()[2])
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
    ) -> None:
        """Run a batch.

        `one_by_one`: pass each result on before the next trial begins. `deaths`: how many hosts
        were killed while they ran a trial. `to_follow`: how many trials will come soon, in other
        batches.
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
            trial: _DeadlyTrial(no_death, _KILLED_HOST, 0, kills)
            for trial, kills in (deaths or {}).items()
        }
        careful = False
        idle_deaths = 0
        while left and not self._stopped:
            first = deadly.get(left[0])
            if first is not None and not _runs_again(first):
                proposal = proposals.get(left[0]) or self._worker.propose(left[0])
                if self._report_death(left[0], proposal, first):
                    left.pop(0)
                else:
                    deadly[left[0]] = replace(first, kills=1)
                continue
            part = left[:1] if one_by_one else _next_part(left, deadly)
            before = len(part)
            child = self._ready_child(new=first is not None)
            still = [pack_proposal(proposals[t]) for t in part] if proposals else None
            child.send(part, still, careful=careful)
            self._runs_again = part[0] if first is not None else IDLE
            finished = self._finishes(child, part)
            if len(part) < before:
                del left[: before - len(part)]
                idle_deaths = 0
            if finished:
                continue
            death = self._reap(child)
            victim = self._cell[TRIAL]
            if death.stopped or (death.timed_out and victim != child.overdue):
                continue  # told to stop; or the slow test ended after all, in its last moment
            if self._results_are_lost(death, part):
                # Some test since the last result did that; sent one by one, we see which.
                if not careful:
                    careful = True
                    continue
                death = replace(death, pipe_gone=not death.broken)
                victim = part[0]
            if victim not in part:
                idle_deaths += 1
                if idle_deaths > _IDLE_DEATHS:
                    status = death.fault("", self._setup.timeout).signature
                    self._relay("error", f"workers keep dying between tests: {status}", part)
                continue
            deadly[victim] = self._deadly_trial(death, deadly.get(victim))

    def _results_are_lost(self, death: Death, part: list[int]) -> bool:
        """Return whether a child could not send what it had: a test had closed its pipe, or so."""
        if death.pipe_gone or death.broken or self._cell[SENDING]:
            return not death.perhaps_from_outside
        return self._cell[LAST] in part and os.WIFEXITED(death.status)

    def _ready_child(self, *, new: bool) -> WorkerChild:
        """Return a child that waits for trials; `new`: one that has run none."""
        if new:
            self._end_child()
        for index in (STOP, SENDING, PIPE_GONE):
            self._cell[index] = 0
        self._cell[TRIAL] = self._cell[LAST] = IDLE
        return self._child or self._new_child()

    def _deadly_trial(self, death: Death, before: _DeadlyTrial | None) -> _DeadlyTrial:
        """Describe the trial at hand, whose child has died."""
        fault = death.fault(self._dump(), self._setup.timeout)
        wall_ns = time.monotonic_ns() - self._cell[STARTED]
        killed = death.perhaps_from_outside and not self._out_of_memory.happened_again()
        kills = (before.kills if before is not None else 0) + 1 if killed else 0
        return _DeadlyTrial(death, fault, wall_ns, kills)

    def _report_kill(self, trial: int) -> None:
        """Say that a trial was killed from outside: its row is that of another run."""
        batch = RowBatch()
        batch.killed.append(trial)
        self._send("rows", batch.packed())

    def _finishes(self, child: WorkerChild, left: list[int]) -> bool:
        """Pass on a child's rows; return whether it finished its batch before it fell silent."""
        while not child.silent:
            for kind, body in self._receive(child):
                if kind != "done":
                    self._relay(kind, body, left)
                elif self._stopped or not left:  # a copy that the program forked may say it early
                    return True
            if self._stopped and time.monotonic() - self._stopped > _GRACE:
                child.kill(stopped=True)
            elif self._overdue():
                child.kill_with_stack()
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

    def _overdue(self) -> bool:
        running = self._cell[TRIAL] != IDLE and not self._cell[SENDING]
        age = (time.monotonic_ns() - self._cell[STARTED]) / 1e9
        return running and age > self._setup.timeout

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
            if self._stopped or self._frames.ended:
                child.kill(stopped=True)
            elif self._overdue():
                child.kill_with_stack()
            time.sleep(0.002)

    def _report_death(self, trial: int, proposal: Proposal, deadly: _DeadlyTrial) -> bool:
        """Send the row of a test that killed its process, with the steps until then.

        Return False, and send nothing, if its process was killed so far, but not this time.
        """
        steps: list[Any] = []
        if deadly.fault is not _KILLED_HOST:
            steps, survived = self._journal(trial, proposal, deadly.death)
            if survived and deadly.kills:
                return False
        result = self._job.subject.result_of_journal(steps, proposal.configuration, deadly.fault)
        if self._job.coverage is not None:
            result = result._replace(missing="its process died before it could tell")
        batch = RowBatch()
        seed = seed_of_test(self._job.seed, trial)
        cpu_ns = min(deadly.death.cpu_ns, deadly.wall_ns)
        self._worker.note(batch, trial, proposal, seed, result, cpu_ns, deadly.wall_ns)
        self._send("rows", batch.packed())
        return True

    def _journal(self, trial: int, proposal: Proposal, known: Death) -> tuple[list[Any], bool]:
        """Run such a test again, in a child that sends each step before it takes it.

        Return its steps, and whether it ended without the death of its process.
        """
        steps: list[Any] = []
        survived = False
        for _ in range(MOST_KILLS):
            steps, death, survived = self._run_with_journal(trial, proposal)
            if death.stopped or known.perhaps_from_outside or not death.perhaps_from_outside:
                break  # otherwise it was killed from outside, and there may be more steps
        return steps, survived

    def _run_with_journal(self, trial: int, proposal: Proposal) -> tuple[list[Any], Death, bool]:
        child = self._ready_child(new=True)
        child.send([trial], [pack_proposal(proposal)], journal=True)
        messages: list[Any] = []
        while not child.silent and ("done", None) not in messages[-1:]:
            messages += self._receive(child)
            if self._overdue() or self._stopped:
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
        memory = self._setup.memory
        self._child = WorkerChild(self._worker, self._cell, self._stderr, memory, self._up)
        return self._child

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.kill(stopped=True)
            self._reap(self._child)


def _runs_again(deadly: _DeadlyTrial) -> bool:
    """Return whether a trial's child may have been killed from outside."""
    return 0 < deadly.kills < MOST_KILLS


def _next_part(left: list[int], deadly: dict[int, _DeadlyTrial]) -> list[int]:
    """Return what a child is to run next: one deadly trial alone, or all until the next."""
    if left[0] in deadly:
        return left[:1]
    return list(itertools.takewhile(lambda trial: trial not in deadly, left))


# The child: the process that runs the tests, forked from the host and free to die.


class WorkerChild:
    """A forked process that runs trials, and the host's end of its two pipes."""

    def __init__(
        self, worker: TrialRunner, cell: memoryview, stderr: IO[bytes], memory: int, private: int
    ) -> None:
        """Fork; the child closes `private`, the host's connection to the campaign."""
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

    def death(self) -> Death | None:
        """Return how it ended; None if it has not."""
        if self._death is None and self._fork.has_ended:
            # What the program had started and left behind ends with it.
            status, cpu_seconds = self._fork.reap(kill=False)
            gone, broken = self._cell[PIPE_GONE] == 1, self._cell[PIPE_GONE] == _BROKEN
            cpu_ns = int(cpu_seconds * 1e9)
            self._death = Death(
                status, cpu_ns, self._timed_out, self._stopped_by_host, gone, broken
            )
        return self._death

    def close(self) -> None:
        """Close the pipes."""
        for fd in (self._down, self.frames.fd, *self.death_notice):
            os.close(fd)


def _live(worker: TrialRunner, cell: memoryview, down: int, up: int) -> None:
    """Run the batches that the host sends, until it closes the pipe."""
    try:
        worker.job.subject.interruptible = False
        builtin = _builtins()
        frames = wire.Frames(down)
        while not frames.ended:
            for trials, proposals, careful, journal in frames.receive():
                _serve(worker, cell, up, trials, proposals, careful, journal, builtin)
    except _Tainted:
        pass
    except _PipeGone:
        cell[PIPE_GONE] = 1
    except UserError as error:
        wire.send(up, ("error", str(error)))
    except MemoryError:
        wire.send(up, ("error", "a worker has no memory left between tests: raise --memory"))
    except BaseException:
        if cell[TRIAL] != IDLE:
            cell[PIPE_GONE] = _BROKEN
            traceback.print_exc()
        else:
            message = f"a bug in swarmtest, please report it:\n{traceback.format_exc()}"
            wire.send(up, ("error", message))


class _Tainted(Exception):
    """A test replaced a built-in function: the next test needs another process."""


def _builtins() -> dict[str, Any]:
    """Return what all code finds without an import, as it is now."""
    return {
        name: value
        for name, value in vars(builtins).items()
        if name[0] != "_" or name in ("__import__", "__build_class__")
    }


def _is_replaced(before: Mapping[str, Any]) -> bool:
    now = vars(builtins)
    return any(now.get(name) is not value for name, value in before.items())


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
    builtin: Mapping[str, Any],
) -> None:
    subject = worker.job.subject
    proposals = (
        worker.proposals(trials)
        if described is None
        else unpack_proposals(subject.space, described)
    )
    flush: Callable[[RowBatch], None]
    if journal:
        subject.journal = lambda step: _tell(up, ("step", json.dumps(step)))

        def flush(batch: RowBatch) -> None:
            pass
    else:

        def flush(batch: RowBatch) -> None:
            if not batch.rows:
                return
            tainted = _is_replaced(builtin)
            if tainted and not careful:
                cell[PIPE_GONE] = _BROKEN  # some of these tests ran with what another had replaced
                raise _Tainted
            cell[SENDING] = 1
            _tell(up, ("rows", batch.packed()))
            cell[SENDING] = 0
            if tainted:
                raise _Tainted

    worker.run(trials, proposals, cell, flush, careful)
    _tell(up, ("done", None))


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
