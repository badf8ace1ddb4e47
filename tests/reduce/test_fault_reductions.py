"""The tests of a campaign's faults are made small at its end, within a time, and kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from swarmtest import Campaign, Machine, action, integers, open_store
from swarmtest.campaign.budget import Budget, Limits
from swarmtest.campaign.campaign import Outcome
from swarmtest.campaign.reduced_faults import FaultReductionProgress, ReductionTime, reductions_of
from swarmtest.core.result import Result, Verdict
from swarmtest.processes.fork_pool import IsolatedRun, run_isolated
from swarmtest.reduce import fault_reductions
from swarmtest.reduce.fault_reductions import FLAKY_AFTER, reduce_faults
from swarmtest.reduce.reduction import Reduced, reduce_test
from swarmtest.store.interface import Store
from swarmtest.store.records import ReductionRecord
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.machine.test import MachineTest


class Door(Machine):
    """Fails when it is locked while it is open."""

    steps = 40

    def start(self) -> None:
        self.open = False

    @action
    def push(self) -> None:
        self.open = True

    @action
    def lock(self) -> None:
        if self.open:
            self.fail()

    @action(number=integers(0, 99))
    def knock(self, number: int) -> None:
        pass

    def fail(self) -> None:
        raise RuntimeError("locked while open")


class ExitingDoor(Door):
    def fail(self) -> None:
        os._exit(3)


class CrashingDoor(Door):
    def fail(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class HangingDoor(Door):
    steps = 12

    def fail(self) -> None:
        time.sleep(1000)


class GreedyDoor(Door):
    def fail(self) -> None:
        bytearray(1 << 40)


class FlakyDoor(Door):
    """Shows its fault in the process where the campaign ran only."""

    home = 0

    def fail(self) -> None:
        if os.getpid() == FlakyDoor.home:
            raise RuntimeError("only here")


class Street(Machine):
    """Three faults, of which one is frequent."""

    steps = 30

    @action
    def often(self) -> None:
        raise KeyError("often")

    @action(number=integers(0, 20))
    def seldom(self, number: int) -> None:
        if number == 7:
            raise IndexError("seldom")
        if number == 9:
            raise OSError("seldom, too")

    @action
    def never(self) -> None:
        pass


FIRST = Budget(tests=60, faults=1)


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store(":memory:") as store:
        yield store


def ran(
    store: Store, machine: type[Machine], tests: int | Budget = 60, workers: int = 1, **options: Any
) -> tuple[MachineSubject, Outcome]:
    subject = MachineSubject(machine)
    campaign = Campaign(subject, "all-on", tests, 3, workers, store, **options)
    return subject, campaign.run()


def actions(reduction: ReductionRecord) -> list[str]:
    assert reduction.test is not None
    return [step.action for step in MachineTest.from_json(json.loads(reduction.test)).steps]


@pytest.mark.parametrize("machine", [Door, ExitingDoor, CrashingDoor])
def test_a_fault_is_left_with_the_steps_it_needs(store: Store, machine: type[Machine]) -> None:
    subject, outcome = ran(store, machine)
    found = reduce_faults(subject, store, outcome.campaign)
    (reduction,) = found.reductions.values()
    assert actions(reduction) == ["push", "lock"]
    assert reduction.complete
    assert found.untried == ()
    assert list(reductions_of(store, outcome.campaign).values()) == [reduction]


def test_the_test_that_was_recorded_stays_as_it_was(store: Store) -> None:
    subject, outcome = ran(store, Door)
    (before,) = store.faults(outcome.campaign)
    found = reduce_faults(subject, store, outcome.campaign)
    assert store.faults(outcome.campaign) == [before]
    reduction = found.reductions[before.id]
    assert (reduction.trial, reduction.before) == (
        before.trial,
        subject.size(json.loads(before.test or "")),
    )


def test_a_test_that_needs_too_much_memory_is_reduced_within_the_limit(store: Store) -> None:
    subject, outcome = ran(store, GreedyDoor, limits=Limits(memory=1 << 30))
    assert outcome.faults[0].kind == "memory"
    found = reduce_faults(subject, store, outcome.campaign)
    assert [actions(one) for one in found.reductions.values()] == [["push", "lock"]]


class Waits:
    """How long runs were allowed to take. What hangs is waited for a second all the same."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.of_the_test: list[float] = []
        self.of_candidates: list[float] = []
        monkeypatch.setattr(fault_reductions, "run_isolated", self._run_isolated)
        monkeypatch.setattr(fault_reductions, "reduce_test", self._reduce_test)

    def _run_isolated(self, run: Callable[[], Result], seconds: float, **options: Any) -> Result:
        self.of_the_test.append(seconds)
        return run_isolated(run, 1.0, **options)

    def _reduce_test(self, *what: Any, seconds: float, **options: Any) -> Reduced:
        self.of_candidates.append(seconds)
        return reduce_test(*what, seconds=1.0, **options)


def test_a_test_that_hangs_is_reduced_without_waiting_as_long_each_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, outcome = ran(store, HangingDoor, FIRST, limits=Limits(seconds=1.0))
    options = store.campaign(outcome.campaign).options
    store.update_campaign(outcome.campaign, options=options | {"seconds": 100.0})
    waits = Waits(monkeypatch)
    found = reduce_faults(subject, store, outcome.campaign, ReductionTime(total=1000.0))
    (reduction,) = found.reductions.values()
    assert actions(reduction) == ["push", "lock"]
    passed = [one.wall_ns / 1e9 for one in store.trials(outcome.campaign) if one.verdict == 0]
    usual = pytest.approx(0.5 + 10 * max(passed, default=0))
    assert waits.of_candidates == [usual]
    assert waits.of_the_test == [usual, 100.0]  # what is left is waited for as the campaign did


def test_a_test_that_hangs_does_not_take_more_than_the_time_it_has(store: Store) -> None:
    subject, outcome = ran(store, HangingDoor, FIRST, limits=Limits(seconds=1.0))
    begun = time.monotonic()
    found = reduce_faults(subject, store, outcome.campaign, ReductionTime(total=3.0))
    assert time.monotonic() - begun < 60
    assert not any(one.complete for one in found.reductions.values())


def test_what_a_run_takes_has_to_fit_into_the_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, outcome = ran(store, HangingDoor, FIRST, limits=Limits(seconds=1.0))
    waits = Waits(monkeypatch)
    found = reduce_faults(subject, store, outcome.campaign, ReductionTime(total=0.9))
    assert waits.of_the_test == waits.of_candidates == []
    assert found.untried == (outcome.faults[0].id,)
    assert found.reductions == {}


def test_a_fault_that_does_not_show_again_is_called_flaky_and_keeps_its_test(store: Store) -> None:
    FlakyDoor.home = os.getpid()
    subject, outcome = ran(store, FlakyDoor, workers=0)
    found = reduce_faults(subject, store, outcome.campaign)
    (reduction,) = found.reductions.values()
    assert (reduction.test, reduction.runs) == (None, FLAKY_AFTER)
    assert store.faults(outcome.campaign)[0].test is not None


def test_the_most_frequent_fault_comes_first(store: Store) -> None:
    subject, outcome = ran(store, Street, tests=400)
    assert len(outcome.faults) == 3
    order: list[str] = []
    reduce_faults(subject, store, outcome.campaign, on_fault=lambda one: order.append(one.fault))
    counts = {fault.id: fault.count for fault in outcome.faults}
    assert [counts[id] for id in order] == sorted(counts.values(), reverse=True)


def test_faults_for_which_there_is_no_time_are_named(store: Store) -> None:
    subject, outcome = ran(store, Street, tests=400)
    found = reduce_faults(subject, store, outcome.campaign, ReductionTime(total=0.0))
    assert set(found.untried) == {fault.id for fault in outcome.faults}


def test_some_faults_can_be_picked(store: Store) -> None:
    subject, outcome = ran(store, Street, tests=400)
    picked = outcome.faults[1].id
    found = reduce_faults(subject, store, outcome.campaign, faults=[picked])
    assert list(found.reductions) == [picked]
    assert found.untried == ()


def interrupting(after: int) -> Callable[[FaultReductionProgress], None]:
    """Ctrl-C after so many runs, all faults together."""
    runs = iter(range(1, 10**6))

    def press(progress: FaultReductionProgress) -> None:
        if next(runs) == after:
            raise KeyboardInterrupt

    return press


def test_ctrl_c_keeps_what_was_found_until_then(store: Store) -> None:
    subject, outcome = ran(store, Street, tests=400)
    done: list[str] = []

    def press(progress: FaultReductionProgress) -> None:
        if progress.number == 2:
            raise KeyboardInterrupt

    found = reduce_faults(
        subject, store, outcome.campaign, on_run=press, on_fault=lambda one: done.append(one.fault)
    )
    assert found.interrupted
    first = max(outcome.faults, key=lambda fault: fault.count)
    assert reductions_of(store, outcome.campaign)[first.id].complete
    assert found.untried
    assert first.id not in found.untried


def test_a_reduction_that_was_interrupted_goes_on_with_what_it_had(store: Store) -> None:
    subject, outcome = ran(store, Door)
    reduce_faults(subject, store, outcome.campaign, on_run=interrupting(after=4))
    (half,) = reductions_of(store, outcome.campaign).values()
    assert not half.complete
    sizes: list[int] = []
    found = reduce_faults(
        subject, store, outcome.campaign, on_run=lambda progress: sizes.append(progress.size)
    )
    (whole,) = found.reductions.values()
    assert actions(whole) == ["push", "lock"]
    assert max(sizes) <= half.size
    assert whole.before == half.before
    assert whole.runs > half.runs


def test_what_is_as_small_as_it_gets_is_not_reduced_again(store: Store) -> None:
    subject, outcome = ran(store, Door)
    reduce_faults(subject, store, outcome.campaign)
    runs: list[FaultReductionProgress] = []
    reduce_faults(subject, store, outcome.campaign, on_run=runs.append)
    assert runs == []


def children() -> set[str]:
    """The processes that this one began."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_nothing_is_left_running(store: Store) -> None:
    subject, outcome = ran(store, HangingDoor, FIRST, limits=Limits(seconds=1.0))
    before = children()
    reduce_faults(subject, store, outcome.campaign, on_run=interrupting(after=1))
    assert children() <= before


def test_a_run_that_is_ended_at_once_is_gone() -> None:
    before = children()
    for _ in range(20):
        run = IsolatedRun(lambda: time.sleep(1000), seconds=100)
        assert children() > before
        run.end()
    assert children() == before


def stop_itself() -> Result:
    os.kill(os.getpid(), signal.SIGSTOP)
    return Result(Verdict.PASSED)


def hear_late() -> Result:
    """Be as slow to answer a signal as a process that waits for a processor."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    time.sleep(1.2)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})
    time.sleep(1000)
    return Result(Verdict.PASSED)


@pytest.mark.parametrize("hang", [stop_itself, hear_late])
def test_where_a_run_hangs_is_told_even_if_its_process_answers_late(
    hang: Callable[[], Result],
) -> None:
    fault = run_isolated(hang, seconds=0.8).fault
    assert fault is not None
    assert fault.signature == f"timeout [{hang.__name__}]"


def test_ctrl_c_is_heard_while_a_process_is_begun() -> None:
    program = (
        "import os, signal, time\n"
        "from swarmtest.processes.fork_pool import IsolatedRun\n"
        "os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "try: IsolatedRun(lambda: time.sleep(1000), seconds=1000)\n"
        "except KeyboardInterrupt: print('heard')\n"
        "try: os.waitpid(-1, os.WNOHANG)\n"
        "except ChildProcessError: print('none left')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("heard\nnone left\n", "")


@pytest.mark.parametrize(("seconds", "within"), [(0.1, 20.0), (30.0, 30.0), (3600.0, 60.0)])
def test_reducing_takes_no_longer_than_the_campaign_within_bounds(
    seconds: float, within: float
) -> None:
    assert ReductionTime().within(seconds) == within


def test_what_one_fault_saves_the_others_get() -> None:
    allowed = ReductionTime()
    assert allowed.share(left=60.0, faults=1) == 20.0
    assert allowed.share(left=10.0, faults=5) == 2.0
    assert allowed.share(left=9.0, faults=3) == 3.0
    assert ReductionTime(total=90.0).share(left=90.0, faults=1) == 90.0
