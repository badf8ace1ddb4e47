"""Threads that run freely: faults are seen, hangs end, nothing is left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import ModuleType

import pytest
from threaded_programs import AB_BA

from swarmtest.core.errors import UserError
from swarmtest.race.control.runner import ControlledRun, controlled_run
from swarmtest.race.control.schedulers import RandomWalk
from swarmtest.race.coverage.shared_variables import AccessRecording
from swarmtest.race.free.noise import Noise
from swarmtest.race.free.runner import free_run
from swarmtest.race.noise_settings import NoiseSettings

Load = Callable[[str], ModuleType]

MEET_IN_THE_MIDDLE = """
    import threading

    def test():
        first, second = threading.Lock(), threading.Lock()
        both = threading.Barrier(2)

        def cross(a, b):
            with a:
                both.wait()
                with b:
                    pass

        threads = [
            threading.Thread(target=cross, args=pair)
            for pair in ((first, second), (second, first))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
"""


def names_of_threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate())


def test_a_deadlock_is_seen_at_once_and_its_threads_end(load: Load) -> None:
    before = names_of_threads()
    run = free_run(load(MEET_IN_THE_MIDDLE).test, seconds=600)
    assert run.fault is not None
    assert run.fault.kind == "deadlock"
    assert run.seconds < 60
    assert run.threads == 3
    assert names_of_threads() == before


def test_a_deadlock_has_the_signature_it_has_under_control(load: Load) -> None:
    test = load(MEET_IN_THE_MIDDLE).test
    run: ControlledRun = controlled_run(test, RandomWalk(1))
    assert run.fault == free_run(test).fault


def test_a_wake_up_that_nobody_sends_is_a_fault(load: Load) -> None:
    program = load(
        """
        import threading

        def test():
            threading.Thread(target=threading.Event().wait).start()
        """
    )
    run = free_run(program.test)
    assert run.fault is not None
    assert run.fault.kind == "lost wake-up"


def test_an_exception_in_a_thread_is_a_fault(load: Load) -> None:
    program = load(
        """
        import threading

        def fail():
            raise ValueError("seat 17 is taken")

        def test():
            thread = threading.Thread(target=fail)
            thread.start()
            thread.join()
        """
    )
    run = free_run(program.test)
    assert run.fault is not None
    assert run.fault.signature == "ValueError: seat 17 is taken [fail]"


def test_a_daemon_that_waits_for_ever_is_no_fault_and_ends_with_the_run(load: Load) -> None:
    program = load(
        """
        import queue, threading

        def test():
            threading.Thread(target=queue.Queue().get, daemon=True).start()
        """
    )
    before = names_of_threads()
    run = free_run(program.test)
    assert (run.fault, run.problem) == (None, "")
    assert names_of_threads() == before


def test_a_thread_that_never_ends_is_stopped_when_the_time_is_over(load: Load) -> None:
    program = load(
        """
        import threading

        running = True

        def spin():
            while running:
                pass

        def test():
            threading.Thread(target=spin).start()
        """
    )
    before = names_of_threads()
    run = free_run(program.test, seconds=0.5)
    assert run.fault is None
    assert "main.1 is in spin" in run.problem
    assert run.seconds < 60
    assert names_of_threads() == before


def test_a_loop_without_probes_in_the_main_thread_is_interrupted(load: Load) -> None:
    program = load(
        """
        def test():
            while True:
                pass
        """
    )
    run = free_run(program.test, seconds=0.5)
    assert "main is in test" in run.problem
    assert run.seconds < 60


def test_a_sleep_takes_its_time_and_ends_with_the_run(load: Load) -> None:
    program = load(
        """
        import threading, time

        def test():
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
            time.sleep(0.05)
        """
    )
    run = free_run(program.test)
    assert not run.problem
    assert 0.05 <= run.seconds < 60


def test_queues_pools_and_conditions_work_as_ever(load: Load) -> None:
    program = load(
        """
        import queue
        import threading
        from concurrent.futures import ThreadPoolExecutor

        def test():
            numbers = queue.Queue()
            with ThreadPoolExecutor(3) as pool:
                squares = list(pool.map(lambda n: n * n, range(20)))
                pool.submit(numbers.put, sum(squares)).result(timeout=60)
            assert numbers.get(timeout=60) == 2470
            gate = threading.Semaphore(0)
            thread = threading.Timer(0.001, gate.release)
            thread.start()
            assert gate.acquire(timeout=60)
            thread.join()
            assert not threading.Event().wait(0.001)
        """
    )
    for policy in (None, AccessRecording(), Noise(NoiseSettings(500, "sleep", 3), seed=1)):
        run = free_run(program.test, policy)
        assert (run.fault, run.problem) == (None, "")


def test_locks_are_free_again_after_a_run_that_was_stuck(load: Load) -> None:
    program = load(AB_BA)
    program.a.acquire()

    def test() -> None:
        program.a.release()
        program.a.acquire()
        program.a.acquire()

    run = free_run(test)
    assert run.fault is not None
    assert run.fault.kind == "deadlock"
    assert program.a.acquire(blocking=False)
    program.a.release()


def test_the_clock_is_the_real_one(load: Load) -> None:
    seen: list[float] = []
    free_run(lambda: seen.append(time.monotonic()))
    assert abs(time.monotonic() - seen[0]) < 60


def test_a_policy_is_good_for_one_run() -> None:
    recording = AccessRecording()
    free_run(lambda: None, recording)
    with pytest.raises(UserError, match="AccessRecording serves one run"):
        free_run(lambda: None, recording)
