"""Faults of concurrency are found, replayed and made small."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from threaded_programs import AB_BA, AIRLINES, CRAWLER, FAULTY, LOST_UPDATE, MISSED_NOTIFY

from swarmtest.race.control.runner import ControlledRun, controlled_run, minimised_schedule, replay
from swarmtest.race.control.schedulers import (
    PCT,
    POS,
    RandomWalk,
    Schedule,
    ScheduleReplay,
    ThreadScheduler,
)
from swarmtest.race.weaving.sites import SITES

Load = Callable[[str], ModuleType]


def found(
    test: Callable[[], object], make: Callable[[int], ThreadScheduler] = RandomWalk
) -> ControlledRun:
    """The first of many runs that shows a fault."""
    for seed in range(500):
        run = controlled_run(test, make(seed))
        assert not run.problem
        if run.fault:
            return run
    raise AssertionError("no run shows the fault")


def small_steps(seed: int) -> PCT:
    return PCT(seed, depth=3, steps=30)


@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("make", [RandomWalk, POS, small_steps])
def test_each_scheduler_finds_each_fault(
    load: Load, name: str, make: Callable[[int], ThreadScheduler]
) -> None:
    assert found(load(FAULTY[name]).test, make).fault


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_replayed_ten_times_of_ten(load: Load, name: str) -> None:
    test = load(FAULTY[name]).test
    run = found(test)
    again = [replay(test, Schedule.from_json(run.schedule.to_json())) for _ in range(10)]
    assert [one.fault for one in again] == [run.fault] * 10
    assert all(one.schedule == run.schedule and not one.missed for one in again)


@pytest.mark.parametrize("name", FAULTY)
def test_few_switches_are_left_and_each_is_needed(load: Load, name: str) -> None:
    test = load(FAULTY[name]).test
    run = found(test)
    assert run.fault
    small = minimised_schedule(test, run.schedule, run.fault)
    assert 1 <= len(small) <= 4
    assert replay(test, small).fault == run.fault
    for i in range(len(small)):
        fewer = Schedule(small.switches[:i] + small.switches[i + 1 :])
        assert controlled_run(test, ScheduleReplay(fewer)).fault != run.fault


def test_a_lost_update_fails_the_assertion(load: Load) -> None:
    fault = found(load(LOST_UPDATE).test).fault
    assert fault
    assert fault.kind == "exception"
    assert fault.signature.startswith("AssertionError [test: assert ")


def test_a_deadlock_names_both_places(load: Load) -> None:
    fault = found(load(AB_BA).test).fault
    assert fault
    assert fault.kind == "deadlock"
    assert fault.signature == "deadlock: a_then_b: with b: | b_then_a: with a:"
    assert "main.1 waits for a lock that main.2 holds" in fault.details


def test_a_missed_notify_is_a_lost_wake_up(load: Load) -> None:
    fault = found(load(MISSED_NOTIFY).test).fault
    assert fault
    assert fault.kind == "lost wake-up"
    assert fault.signature == "lost wake-up: Box.take: self.changed.wait()"


_TWO_COPY = """
    import threading

    slots = threading.{kind}(2)

    def copy():
        with slots:
            with slots:
                pass

    def test():
        threads = [threading.Thread(target=copy) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
"""


@pytest.mark.parametrize("kind", ["Semaphore", "BoundedSemaphore"])
def test_threads_that_hold_all_a_pool_has_exhaust_it(load: Load, kind: str) -> None:
    fault = found(load(_TWO_COPY.format(kind=kind)).test).fault
    assert fault
    assert fault.signature == "pool exhaustion: copy: with slots:"
    assert fault.details.count("nothing is left: main.1 holds 1, main.2 holds 1") == 2


def test_a_semaphore_that_nobody_holds_is_no_pool(load: Load) -> None:
    program = """
        import threading

        def test():
            gate = threading.Semaphore(0)
            thread = threading.Thread(target=gate.acquire)
            thread.start()
            thread.join()
    """
    run = controlled_run(load(program).test, RandomWalk(0))
    assert run.fault
    assert run.fault.kind == "lost wake-up"


def test_readers_that_wait_for_each_other_are_deadlocked(load: Load) -> None:
    """Nobody has notified anyone, so no wake-up was lost."""
    program = """
        import threading

        class Lock:
            def __init__(self):
                self.readers = 0
                self.changed = threading.Condition()

            def read(self):
                with self.changed:
                    self.readers += 1

            def upgrade(self):
                with self.changed:
                    while self.readers > 1:
                        self.changed.wait()
                    self.readers = 0

        def test():
            lock = Lock()
            def change():
                lock.read()
                lock.upgrade()
            threads = [threading.Thread(target=change) for _ in range(2)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
    """
    fault = found(load(program).test).fault
    assert fault
    assert fault.signature == "deadlock: Lock.upgrade: self.changed.wait()"


def test_seats_are_sold_twice(load: Load) -> None:
    run = found(load(AIRLINES).test)
    assert run.fault
    assert run.fault.signature.startswith("AssertionError [test: assert ")
    assert run.threads == 4


def test_a_fault_in_a_thread_is_a_fault_of_the_run(load: Load) -> None:
    fault = found(load(CRAWLER).test).fault
    assert fault
    assert fault.signature.startswith("AssertionError [Crawler.work: assert ")


def test_the_same_seed_makes_the_same_run(load: Load) -> None:
    test = load(AIRLINES).test
    runs = [controlled_run(test, POS(7)) for _ in range(3)]
    assert len({(run.schedule, run.steps, run.fault) for run in runs}) == 1


def test_switches_may_be_restricted_to_some_sites(load: Load) -> None:
    test = load(LOST_UPDATE).test
    reads_only = {n for n in range(len(SITES)) if SITES[n].kind == "read"}
    all_sites = set(range(len(SITES)))
    assert not any(
        controlled_run(test, RandomWalk(seed), sites=reads_only).fault for seed in range(200)
    )
    run = next(
        run
        for seed in range(200)
        if (run := controlled_run(test, RandomWalk(seed), sites=all_sites)).fault
    )
    assert replay(test, run.schedule).fault == run.fault


def test_a_lock_mends_it(load: Load) -> None:
    program = load(
        LOST_UPDATE.replace("total += 1", "with lock:\n            total += 1").replace(
            "import Thread", "import Thread, Lock\n\n    lock = Lock()"
        )
    )
    for make in (RandomWalk, POS, small_steps):
        assert not any(controlled_run(program.test, make(seed)).fault for seed in range(200))


def test_two_locks_of_one_name_get_numbers(load: Load) -> None:
    test = load("""
        import threading

        class Account:
            def __init__(self):
                self.lock = threading.Lock()

        def transfer(source, target):
            with source.lock:
                with target.lock:
                    pass

        def test():
            a, b = Account(), Account()
            threads = [
                threading.Thread(target=transfer, args=pair) for pair in ((a, b), (b, a))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    """).test
    run = found(test)
    trace = controlled_run(test, ScheduleReplay(run.schedule), traced=True).trace
    taken = [(step.thread, step.variable) for step in trace if step.kind == "lock.acquire"]
    assert {name for _, name in taken} == {"Account#1.lock", "Account#2.lock"}
    assert {name for step in trace for name in step.held} <= {"Account#1.lock", "Account#2.lock"}
    assert len({name for thread, name in taken if thread == "main.1"}) == 2
