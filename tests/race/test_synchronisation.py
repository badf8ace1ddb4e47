"""What Python has for threads works under control as it does without."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType

import pytest

from swarmtest.race.control.runner import ControlledRun, controlled_run, minimised_schedule, replay
from swarmtest.race.control.schedulers import PCT, POS, RandomWalk
from swarmtest.race.primitives.patches import installed

Load = Callable[[str], ModuleType]


def runs_of(test: Callable[[], object], many: int = 60) -> list[ControlledRun]:
    """Runs under each scheduler; none of them has a problem."""
    makes = (RandomWalk, POS, lambda seed: PCT(seed, steps=50))
    runs = [controlled_run(test, make(seed)) for make in makes for seed in range(many)]
    assert {run.problem for run in runs} == {""}
    return runs


CORRECT = {
    "queue": """
        import queue, threading
        def test():
            line = queue.Queue(maxsize=1)
            got = []
            def produce():
                for i in range(3):
                    line.put(i)
                line.put(None)
            def consume():
                while (item := line.get()) is not None:
                    got.append(item)
                    line.task_done()
                line.task_done()
            threads = [threading.Thread(target=f) for f in (produce, consume)]
            [t.start() for t in threads]
            line.join()
            [t.join() for t in threads]
            assert got == [0, 1, 2]
    """,
    "simple queue": """
        from queue import SimpleQueue
        import threading
        def test():
            line = SimpleQueue()
            thread = threading.Thread(target=lambda: line.put("x"))
            thread.start()
            assert line.get(timeout=5) == "x"
            thread.join()
    """,
    "condition": """
        import threading
        def test():
            ready, changed = [], threading.Condition()
            def wait():
                with changed:
                    changed.wait_for(lambda: ready)
            def notify():
                with changed:
                    ready.append(1)
                    changed.notify_all()
            threads = [threading.Thread(target=f) for f in (wait, wait, notify)]
            [t.start() for t in threads]
            [t.join() for t in threads]
    """,
    "event": """
        import threading
        done = threading.Event()
        def test():
            done.clear()
            thread = threading.Thread(target=done.set)
            thread.start()
            assert done.wait()
            thread.join()
            assert not thread.is_alive()
    """,
    "semaphore": """
        import threading
        def test():
            inside, most = 0, 0
            gate = threading.BoundedSemaphore(2)
            guard = threading.Lock()
            def enter():
                nonlocal inside, most
                with gate:
                    with guard:
                        inside += 1
                        most = max(most, inside)
                    with guard:
                        inside -= 1
            threads = [threading.Thread(target=enter) for _ in range(4)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            assert most <= 2 and inside == 0
    """,
    "barrier": """
        import threading
        def test():
            barrier, passed = threading.Barrier(3), []
            def meet():
                barrier.wait()
                passed.append(barrier.n_waiting)
            threads = [threading.Thread(target=meet) for _ in range(3)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            assert len(passed) == 3
    """,
    "reentrant lock": """
        import threading
        lock = threading.RLock()
        count = 0
        def add(depth):
            global count
            with lock:
                count += 1
                if depth:
                    add(depth - 1)
        def test():
            global count
            count = 0
            threads = [threading.Thread(target=add, args=(2,)) for _ in range(2)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            assert count == 6
    """,
    "timer": """
        import threading, time
        def test():
            rung = []
            timer = threading.Timer(3600, lambda: rung.append(time.monotonic()))
            begun = time.monotonic()
            timer.start()
            timer.join()
            assert 3600 <= rung[0] - begun < 3700
    """,
    "pool": """
        from concurrent.futures import ThreadPoolExecutor, as_completed
        def square(n):
            return n * n
        def test():
            with ThreadPoolExecutor(2) as pool:
                futures = [pool.submit(square, n) for n in range(4)]
                assert sorted(f.result() for f in as_completed(futures)) == [0, 1, 4, 9]
                assert list(pool.map(square, range(3))) == [0, 1, 4]
    """,
    "pool that is left open": """
        from concurrent.futures import ThreadPoolExecutor
        def test():
            pool = ThreadPoolExecutor(2)
            assert pool.submit(lambda: 7).result() == 7
    """,
    "thread locals": """
        import threading
        own = threading.local()
        def test():
            seen = []
            def work(n):
                assert not hasattr(own, "n")
                own.n = n
                seen.append(own.n)
            threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            assert sorted(seen) == [0, 1, 2]
    """,
    "spinning": """
        import threading
        ready = False
        def test():
            global ready
            ready = False
            def set_ready():
                global ready
                ready = True
            thread = threading.Thread(target=set_ready)
            thread.start()
            while not ready:
                pass
            thread.join()
    """,
    "polling until a time": """
        import threading, time
        def test():
            end = time.time() + 5
            def poll():
                while time.time() < end:
                    time.sleep(0.5)
            threads = [threading.Thread(target=poll) for _ in range(2)]
            [t.start() for t in threads]
            [t.join() for t in threads]
    """,
    "subclass": """
        from threading import Thread
        class Worker(Thread):
            def __init__(self):
                super().__init__(daemon=True)
                self.answer = None
            def run(self):
                self.answer = 42
        def test():
            worker = Worker()
            worker.start()
            worker.join(timeout=1)
            assert worker.answer == 42 and not worker.is_alive()
    """,
    "logging": """
        import logging, threading
        log = logging.getLogger(__name__)
        log.addHandler(logging.StreamHandler(open("/dev/null", "w")))
        log.propagate = False
        class Shown:
            def __init__(self):
                self.n = 0
            def __str__(self):
                self.n += 1
                return str(self.n)
        def test():
            shown = Shown()
            threads = [
                threading.Thread(target=log.warning, args=("%s", shown)) for _ in range(2)
            ]
            [t.start() for t in threads]
            [t.join() for t in threads]
    """,
}


@pytest.mark.parametrize("name", CORRECT)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_correct_program_shows_no_fault(load: Load, name: str) -> None:
    runs = runs_of(load(CORRECT[name]).test)
    assert {run.fault for run in runs} == {None}


def test_a_year_of_sleep_takes_no_time(load: Load) -> None:
    program = load("""
        import threading, time
        from time import sleep
        order = []
        def late():
            sleep(365 * 86400)
            order.append("late")
        def soon():
            time.sleep(1)
            order.append("soon")
        def test():
            order.clear()
            threads = [threading.Thread(target=f) for f in (late, soon)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            assert order == ["soon", "late"]
    """)
    begun = time.monotonic()
    runs = runs_of(program.test, 5)
    assert {run.fault for run in runs} == {None}
    assert all(run.clock >= 365 * 86400 for run in runs)
    assert time.monotonic() - begun < 60


def test_timeouts_come_when_nothing_else_can(load: Load) -> None:
    program = load("""
        import queue, threading
        def test():
            line, lock = queue.Queue(), threading.Lock()
            try:
                line.get(timeout=30)
            except queue.Empty:
                pass
            with lock:
                assert not lock.acquire(timeout=2)
                assert not lock.acquire(blocking=False)
            event = threading.Event()
            assert not event.wait(0.5)
            thread = threading.Thread(target=event.wait)
            thread.start()
            thread.join(timeout=3)
            assert thread.is_alive()
            event.set()
            thread.join()
    """)
    assert {run.fault for run in runs_of(program.test, 5)} == {None}


def test_threads_that_outlive_the_function_run_to_their_end(load: Load) -> None:
    program = load("""
        import threading
        ended = []
        def test():
            ended.clear()
            threading.Thread(target=lambda: ended.append(1)).start()
    """)
    for seed in range(20):
        run = controlled_run(program.test, RandomWalk(seed))
        assert (run.fault, run.threads, program.ended) == (None, 2, [1])


def test_daemon_threads_may_wait_for_ever(load: Load) -> None:
    program = load("""
        import queue, threading
        def serve(line):
            while True:
                line.get()
        def test():
            line = queue.Queue()
            threading.Thread(target=serve, args=(line,), daemon=True).start()
            line.put(1)
    """)
    assert {run.fault for run in runs_of(program.test)} == {None}


def test_a_thread_that_nobody_wakes_outlives_the_function_for_ever(load: Load) -> None:
    program = load("""
        import threading
        def test():
            threading.Thread(target=threading.Event().wait).start()
    """)
    fault = controlled_run(program.test, RandomWalk(1)).fault
    assert fault
    assert fault.kind == "lost wake-up"


def test_a_lock_taken_twice_is_a_deadlock(load: Load) -> None:
    program = load("""
        import threading
        def test():
            lock = threading.Lock()
            with lock:
                with lock:
                    pass
    """)
    fault = controlled_run(program.test, RandomWalk(1)).fault
    assert fault
    assert fault.kind == "deadlock"
    assert "main waits for a lock that it holds itself" in fault.details


def test_a_lock_that_was_left_locked_is_free_in_the_next_run(load: Load) -> None:
    program = load("""
        import threading
        lock, again = threading.Lock(), threading.RLock()
        def hold():
            lock.acquire()
            again.acquire()
        def test():
            assert not lock.locked()
            thread = threading.Thread(target=hold)
            thread.start()
            thread.join()
            assert lock.locked()
    """)
    assert {run.fault for run in runs_of(program.test, 10)} == {None}


def test_a_condition_of_the_module_is_tidy_after_a_lost_wake_up(load: Load) -> None:
    program = load("""
        import threading
        changed = threading.Condition()
        def test():
            def wait():
                with changed:
                    changed.wait()
            thread = threading.Thread(target=wait)
            thread.start()
            thread.join()
    """)
    assert controlled_run(program.test, RandomWalk(1)).fault
    assert not program.changed._waiters
    assert program.changed.acquire(blocking=False)
    program.changed.release()


def test_an_exception_in_a_thread_is_a_fault(load: Load) -> None:
    program = load("""
        import threading
        def fails():
            raise KeyError("x")
        def test():
            thread = threading.Thread(target=fails)
            thread.start()
            thread.join()
    """)
    fault = controlled_run(program.test, RandomWalk(1)).fault
    assert fault
    assert fault.signature == "KeyError [fails: raise KeyError('x')]"


def test_primitives_are_plain_when_no_run_is_on(load: Load) -> None:
    program = load("""
        import threading
        from threading import Lock
        lock, again = Lock(), threading.RLock()
        total = 0
        def add():
            global total
            for _ in range(500):
                with lock, again:
                    total += 1
    """)
    threads = [threading.Thread(target=program.add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert program.total == 2000
    assert not program.lock.locked()


def test_pythons_own_are_back_afterwards() -> None:
    before = threading.Lock, threading.RLock, time.sleep, threading.Thread.start
    with installed():
        assert threading.Lock is not before[0]
    assert (threading.Lock, threading.RLock, time.sleep, threading.Thread.start) == before


def test_names_and_locks_that_a_module_had_before_are_controlled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = ModuleType("bound_before")
    monkeypatch.setitem(sys.modules, "bound_before", module)
    names = vars(module)
    names.update(Lock=threading.Lock, first=threading.Lock(), second=threading.Lock())

    def take(one: str, other: str) -> None:
        with names[one], names[other]:
            names["Lock"]().acquire()

    def test() -> None:
        threads = [
            threading.Thread(target=take, args=args)
            for args in (("first", "second"), ("second", "first"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    faults = {controlled_run(test, RandomWalk(seed)).fault for seed in range(30)}
    assert {fault.kind for fault in faults if fault} == {"deadlock"}
    assert not names["first"].locked()


def test_ten_thousand_runs_leave_no_thread_behind(load: Load) -> None:
    program = load("""
        import threading
        def test():
            thread = threading.Thread(target=lambda: None)
            thread.start()
    """)
    controlled_run(program.test, RandomWalk(0))
    before, of_the_system = threading.active_count(), _threads_of_the_system()
    for seed in range(10_000):
        controlled_run(program.test, RandomWalk(seed))
    assert threading.active_count() == before
    assert _threads_of_the_system() <= of_the_system + _SOME


_SOME = 50
"""Far fewer than runs; some workers may be kept for the next run."""


def _threads_of_the_system() -> int:
    return len(os.listdir("/proc/self/task"))


def test_a_replay_knows_the_clock(load: Load) -> None:
    program = load("""
        import threading, time
        def test():
            seen = []
            def note():
                seen.append(time.time())
                time.sleep(0.1)
            threads = [threading.Thread(target=note) for _ in range(3)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            raise ValueError(" ".join(map(str, seen)))
    """)
    run = controlled_run(program.test, RandomWalk(3))
    again = replay(program.test, run.schedule)
    assert run.fault
    assert again.fault
    assert (again.fault.details, again.clock) == (run.fault.details, run.clock)


def test_a_thread_that_sleeps_may_overtake_a_slow_one(load: Load) -> None:
    program = load("""
        import threading, time

        class Page:
            def __init__(self):
                self.text = ""

            def fetch(self):
                for letter in "slow":
                    self.text += letter

        def test():
            page = Page()
            thread = threading.Thread(target=page.fetch)
            thread.start()
            time.sleep(0.5)  # "that is long enough"
            seen = page.text
            thread.join()
            assert seen == "slow"
    """)
    runs = [controlled_run(program.test, RandomWalk(seed)) for seed in range(100)]
    failed = [run for run in runs if run.fault]
    assert 0 < len(failed) < 50
    for run in failed[:5]:
        again = replay(program.test, run.schedule)
        assert (again.fault, again.missed, again.clock) == (run.fault, 0, run.clock)
        assert run.fault
        assert len(minimised_schedule(program.test, run.schedule, run.fault)) <= 2


def test_a_thread_is_not_taken_to_be_slow_for_long(load: Load) -> None:
    program = load("""
        import threading, time

        def test():
            done = []
            thread = threading.Thread(target=lambda: done.append(1))
            thread.start()
            time.sleep(60)
            assert done
    """)
    runs = [controlled_run(program.test, RandomWalk(seed)) for seed in range(100)]
    assert {run.fault for run in runs} == {None}
