"""The local executor: worker processes on this machine, which get batches of trials.

Which worker runs a trial, and when, never changes its result.
"""

from __future__ import annotations

import contextlib
import os
import platform
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from swarmtest.campaign.executors.executor import BatchShape, Executor
from swarmtest.campaign.executors.host import HostSetup, run_host
from swarmtest.campaign.executors.host_start import Interpreter, end, spawn, trial_at_hand
from swarmtest.campaign.executors.worker import BatchMessage, private_cell
from swarmtest.core.errors import UserError
from swarmtest.processes import frames as wire
from swarmtest.processes import tree
from swarmtest.processes.fork import Fork
from swarmtest.processes.kills import FEWEST_KILLS
from swarmtest.processes.tree import Supervision
from swarmtest.store.records import WorkerRecord

if TYPE_CHECKING:
    from swarmtest.coverage.watch import Coverage

_AHEAD = 2
"""Batches that a worker holds: one runs and one waits, so that it is never idle."""

_LOOK_SECONDS = 0.5
"""How often to look whether a host was stopped."""
_MOST_DEATHS = 15
"""Times in a row, for each worker, that hosts may die without a result before we give up."""


@dataclass
class _HeldBatch:
    """Trials that a worker has, with the proposals of a learning strategy and the start time."""

    trials: list[int]
    proposals: list[Any] | None
    since: float
    done: int = 0
    """How many have come back: a host runs them in order."""
    one_by_one: bool = False
    """Whether a host was killed that had it: then it is run with care."""
    deaths: dict[int, int] = field(default_factory=dict)
    """How many hosts were killed while they ran a trial."""

    def note_death(self, cell: memoryview) -> None:
        """Remember that its host died, and in which trial."""
        trial = trial_at_hand(cell, self.trials[self.done :], self.one_by_one)
        if trial is not None:
            self.deaths[trial] = self.deaths.get(trial, 0) + 1
        self.one_by_one = True

    def left(self) -> _HeldBatch:
        """Return what has not come back, as a batch that begins now."""
        proposals = self.proposals[self.done :] if self.proposals is not None else None
        return replace(
            self,
            trials=self.trials[self.done :],
            proposals=proposals,
            since=time.monotonic(),
            done=0,
        )


@dataclass
class _Slot:
    """A host process, seen from the campaign."""

    socket: socket.socket
    frames: wire.Frames
    pid: int
    process: subprocess.Popen[bytes] | Fork
    cell: memoryview
    batches: deque[_HeldBatch] = field(default_factory=deque)
    started: float = field(default_factory=time.time)
    tests: int = 0

    def record(self, state: str) -> WorkerRecord:
        """Return its state, for the list of workers."""
        host = platform.node()
        name = f"{host}-{self.pid}"
        return WorkerRecord(name, host, self.pid, self.started, time.time(), self.tests, state)


class LocalExecutor(Executor):
    """Worker processes on this machine."""

    shape = BatchShape(shortest_seconds=0.01, grace=3.0)
    defers_interrupts = True

    def __init__(
        self,
        setup: HostSetup,
        workers: int,
        importable: bool,
        coverage: dict[str, Any] | Coverage | None = None,
    ) -> None:
        """`coverage`: what workers are to watch, or, for forks, what watches already."""
        self._setup = replace(setup, packs_blocks=True)
        self._coverage = coverage
        self._introductions: list[Any] = []
        self._importable = importable
        self._selector = selectors.DefaultSelector()
        self._slots: list[_Slot] = []
        self._deaths = 0
        self._outside_kills = 0
        """How many hosts were killed at trials that another host survived."""
        self._looked = 0.0
        self._lost: list[WorkerRecord] = []
        self._orphans = Supervision()
        """What a host left behind that was killed; otherwise hosts kill what tests leave behind."""
        try:
            for _ in range(workers):
                self._start()
            for slot in list(self._slots):
                if not self._becomes_ready(slot):
                    self._replace(slot)
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> int:
        """The number of tests that run at the same time."""
        return len(self._slots)

    @property
    def capacity(self) -> int:
        """The number of batches that can be submitted now."""
        return sum(_AHEAD - len(slot.batches) for slot in self._slots)

    @property
    def busy(self) -> bool:
        """Whether any batch is out."""
        return any(slot.batches for slot in self._slots)

    def workers(self) -> list[WorkerRecord]:
        """Return the hosts, and those that were killed."""
        states = ((slot, "working" if slot.batches else "idle") for slot in self._slots)
        return [*self._lost, *(slot.record(state) for slot, state in states)]

    def submit(self, trials: list[int], proposals: list[Any] | None) -> None:
        """Hand a batch to the worker that holds the fewest."""
        batch = _HeldBatch(trials, proposals, time.monotonic())
        slot = min(self._slots, key=lambda slot: len(slot.batches))
        _hand_over(slot, batch, self._outside_kills)

    def collect(self, timeout: float) -> list[Any]:
        """Return the batches of rows that arrive within `timeout` seconds; perhaps none."""
        messages, self._introductions = self._introductions, []
        self._resume_stopped()
        for key, _ in self._selector.select(timeout):
            slot: _Slot = key.data
            for kind, body in slot.frames.receive():
                if kind == "rows":
                    count, _ranks, packed = body
                    messages.append(BatchMessage.unpack(packed))
                    slot.batches[0].done += count
                    slot.tests += count
                    if count:
                        self._deaths = 0
                elif kind == "error":
                    raise UserError(body)
                elif kind == "done" and slot.batches:
                    self._finish(slot)
            if slot.frames.ended:
                self._replace(slot)
        return messages

    def _resume_stopped(self) -> None:
        """Let hosts go on that a test, or somebody else, has stopped."""
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._looked = time.monotonic()
            for slot in self._slots:
                tree.resume_if_stopped(slot.pid)

    def _finish(self, slot: _Slot) -> None:
        batch = slot.batches.popleft()
        self._outside_kills += sum(
            deaths for deaths in batch.deaths.values() if deaths < FEWEST_KILLS
        )
        now = time.monotonic()
        rate = len(batch.trials) / max(now - batch.since, 1e-6)
        self.rate = rate if not self.rate else 0.5 * self.rate + 0.5 * rate
        if slot.batches:
            slot.batches[0].since = now

    def _start(self) -> _Slot:
        coverage = self._coverage
        if self._importable and (coverage is None or isinstance(coverage, dict)):
            slot = _spawn(self._setup, coverage)
        else:
            slot = _fork(self._setup, self._slots, coverage)
        self._slots.append(slot)
        self._selector.register(slot.socket, selectors.EVENT_READ, slot)
        return slot

    def _replace(self, dead: _Slot) -> None:
        """Replace a host that was killed from outside, and run again what it had."""
        batches = dead.batches
        slot = self._start_instead_of(dead)
        if batches:
            batches[0].note_death(dead.cell)
        while not self._becomes_ready(slot):
            slot = self._start_instead_of(slot)
        for batch in batches:
            _hand_over(slot, batch.left(), self._outside_kills)

    def _start_instead_of(self, dead: _Slot) -> _Slot:
        """Start a host in the place of one that has ended, and return it."""
        self._deaths += 1
        if self._deaths > _MOST_DEATHS * max(1, len(self._slots)):
            raise UserError(
                f"worker processes were killed {self._deaths} times in a row from outside "
                "(out of memory?); finished tests are kept, and `swarmtest resume` continues"
            )
        self._lost.append(dead.record("lost"))
        self._selector.unregister(dead.socket)
        self._slots.remove(dead)
        dead.socket.close()
        _wait(dead)
        self._orphans.kill_strays()
        return self._start()

    def _becomes_ready(self, slot: _Slot) -> bool:
        """Wait for a host; return False if it was killed before it had loaded the subject."""
        while not slot.frames.ended:
            for kind, body in slot.frames.receive():
                if kind == "error":
                    raise UserError(body)
                if kind == "ready":
                    self._introductions.append(BatchMessage.unpack(body))
                    return True
        _wait(slot)
        end = _end_of(slot)
        if -end in (signal.SIGKILL, signal.SIGTERM):
            return False
        how = f"by {signal.Signals(-end).name}" if end < 0 else f"with exit status {end}"
        raise UserError(f"a worker process ended {how} before it had loaded the subject")

    def stop(self) -> None:
        """Tell the workers to finish the test at hand and drop the rest."""
        for slot in self._slots:
            with contextlib.suppress(OSError):
                wire.send(slot.socket.fileno(), ("stop", None))

    def close(self) -> None:
        """End the worker processes; each host ends its own child."""
        for slot in self._slots:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(slot.socket)
            slot.socket.close()
        ended_in_time = [_wait(slot) for slot in self._slots]
        if not all(ended_in_time):
            self._orphans.kill_strays()
        self._orphans.end(kill=False)
        self._slots.clear()
        self._selector.close()


def _hand_over(slot: _Slot, batch: _HeldBatch, outside_kills: int) -> None:
    """Hand a batch to a host."""
    slot.batches.append(batch)
    with contextlib.suppress(BrokenPipeError):  # a dead host is noticed by `collect`
        care = (batch.one_by_one, batch.deaths)
        order = (batch.trials, batch.proposals, *care, 0, outside_kills)
        wire.send(slot.socket.fileno(), ("batch", order))


def _spawn(setup: HostSetup, coverage: dict[str, Any] | None) -> _Slot:
    """Start a fresh interpreter that imports the subject by its name."""
    spawned = spawn(Interpreter.like_this_one(), setup, coverage)
    line, process = spawned.line, spawned.process
    return _Slot(line, wire.Frames(line.fileno()), process.pid, process, spawned.cell)


def _fork(
    setup: HostSetup, others: list[_Slot], coverage: dict[str, Any] | Coverage | None
) -> _Slot:
    """Fork this process, for subjects that no other process can import (notebooks)."""
    ours, theirs = socket.socketpair()
    cell = private_cell()

    def live() -> None:
        os.setsid()
        ours.close()
        for slot in others:
            slot.socket.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the campaign may have its own way
        # A test finds what a fresh interpreter has, not how the campaign prints.
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        run_host(theirs.fileno(), cell, coverage, setup)

    fork = Fork(live)
    theirs.close()
    return _Slot(ours, wire.Frames(ours.fileno()), fork.pid, fork, cell)


def _end_of(slot: _Slot) -> int:
    """Return the exit status of a host that has ended; below 0: the signal."""
    if isinstance(slot.process, Fork):
        return os.waitstatus_to_exitcode(slot.process.reap(kill=False)[0])
    return slot.process.wait()


def _wait(slot: _Slot, patience: float = 2.0) -> bool:
    """Wait for a host whose line is closed; return False if it did not end and was killed."""
    if not isinstance(slot.process, Fork):
        return end(slot.process, patience)
    deadline = time.monotonic() + patience
    while not (in_time := slot.process.has_ended) and time.monotonic() < deadline:
        time.sleep(0.005)
    # One that ended in time has killed what its tests left behind.
    slot.process.reap(kill=True, kill_strays=not in_time)
    return in_time
