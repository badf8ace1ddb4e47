"""Schedules outlive edits, and say when they did."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from swarmtest.core.errors import UserError
from swarmtest.race.control.runner import ControlledRun, controlled_run, minimised_schedule, replay
from swarmtest.race.control.schedulers import RandomWalk, Schedule, ScheduleReplay

Load = Callable[[str], ModuleType]

ACCOUNT = """
    import threading
    class Account:
        def __init__(self):
            self.balance = 0
            self.log = []
        def deposit(self, amount):
            {before}
            balance = self.balance
            {between}
            self.balance = balance + amount
    def test():
        account = Account()
        threads = [threading.Thread(target=account.deposit, args=(5,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert account.balance == 10
"""


def small_fault(test: Callable[[], object]) -> tuple[ControlledRun, Schedule]:
    run = next(r for seed in range(200) if (r := controlled_run(test, RandomWalk(seed))).fault)
    assert run.fault
    return run, minimised_schedule(test, run.schedule, run.fault)


def renamed(schedule: Schedule, old: str, new: str) -> Schedule:
    return Schedule.from_json(schedule.to_json().replace(old, new))


@pytest.mark.parametrize(
    ("before", "between"),
    [
        ("self.log.append(amount)", "pass"),
        ("for one in range(3): self.log.append(one)", "self.log.append(balance)"),
    ],
)
def test_a_schedule_is_found_again_in_changed_code(load: Load, before: str, between: str) -> None:
    old = load(ACCOUNT.format(before="pass", between="pass"))
    _, schedule = small_fault(old.test)
    new = load(ACCOUNT.format(before=before, between=between))
    run = replay(new.test, renamed(schedule, old.__name__, new.__name__))
    assert run.fault
    assert run.fault.signature.startswith("AssertionError [test: assert ")
    assert run.notes == (
        "the code has changed since the schedule was recorded: "
        f"{len(schedule)} of its {len(schedule)} switches were found again "
        "by what their threads do",
    )


def test_a_schedule_of_another_program_says_so(load: Load) -> None:
    _, schedule = small_fault(load(ACCOUNT.format(before="pass", between="pass")).test)
    other = load("""
        import threading
        def test():
            thread = threading.Thread(target=print)
            thread.start()
    """)
    run = replay(other.test, schedule)
    assert run.fault is None
    assert "0 of its" in run.notes[0]
    assert run.missed == len(schedule)


def test_an_empty_schedule_runs_one_thread_after_the_other(load: Load) -> None:
    test = load(ACCOUNT.format(before="pass", between="pass")).test
    run = controlled_run(test, ScheduleReplay(Schedule()))
    assert run.fault is None
    assert [(one.next, one.forced) for one in run.schedule.switches] == [
        ("main.1", True),  # main waits for it, and both threads are able to run
        ("main", True),  # main.1 has ended, and main was started before main.2
    ]


def test_a_run_with_a_pool_replays_as_it_was(load: Load) -> None:
    program = load("""
        from concurrent.futures import ThreadPoolExecutor, as_completed
        order = []
        def test():
            order.clear()
            with ThreadPoolExecutor(3) as pool:
                futures = {pool.submit(pow, n, 2) for n in range(5)}
                order.extend(future.result() for future in as_completed(futures))
    """)
    for seed in range(30):
        run = controlled_run(program.test, RandomWalk(seed))
        order = list(program.order)
        again = controlled_run(program.test, ScheduleReplay(run.schedule))
        assert (again.schedule, again.missed, program.order) == (run.schedule, 0, order)


def test_a_run_with_sleeps_replays_as_it_was(load: Load) -> None:
    test = load("""
        import threading, time
        def test():
            end = time.time() + 2
            def poll():
                while time.time() < end:
                    time.sleep(0.5)
            threads = [threading.Thread(target=poll) for _ in range(2)]
            [t.start() for t in threads]
            [t.join() for t in threads]
    """).test
    for seed in range(30):
        run = controlled_run(test, RandomWalk(seed))
        again = controlled_run(test, ScheduleReplay(run.schedule))
        assert (again.schedule, again.missed, again.clock) == (run.schedule, 0, run.clock)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense", "this is not a schedule: Expecting value"),
        ('{"version": 7, "switches": []}', "version 7; this swarmtest reads 1"),
        ('{"version": 1}', "this is not a schedule: KeyError"),
        ('{"version": 1, "switches": [{"at": 1}]}', "this is not a schedule: TypeError"),
        (
            '{"version": 1, "switches": [{"thread": 1, "at": "x", "next": "main"}]}',
            "this is not a schedule: ValueError",
        ),
    ],
)
def test_what_is_no_schedule_is_told_in_one_line(text: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        Schedule.from_json(text)


def test_the_trace_tells_values_and_locks(load: Load) -> None:
    program = load("""
        import threading
        class Shop:
            def __init__(self):
                self.left = 2
                self.lock = threading.Lock()
            def sell(self):
                with self.lock:
                    self.left -= 1
        def test():
            shop = Shop()
            thread = threading.Thread(target=shop.sell)
            thread.start()
            thread.join()
    """)
    trace = controlled_run(program.test, ScheduleReplay(Schedule()), traced=True).trace
    told = [(s.thread, s.kind, s.variable, s.before, s.after, s.held) for s in trace]
    assert ("main.1", "lock.acquire", "self.lock", "", "", ()) in told
    assert ("main.1", "write", "self.left", "2", "1", ("self.lock",)) in told
    assert ("main.1", "lock.release", "self.lock", "", "", ()) in told
    assert [s.kind for s in trace if s.thread == "main"][-1] == "thread.join"
    assert all(s.path == program.__file__ and s.line for s in trace)


def test_a_lock_in_a_list_is_named_by_its_place(load: Load) -> None:
    program = load("""
        import threading
        class Table:
            def __init__(self):
                self.forks = [threading.Lock(), threading.Lock()]
                self.meals = 0
            def eat(self):
                with self.forks[1]:
                    self.meals += 1
        def test():
            table = Table()
            thread = threading.Thread(target=table.eat)
            thread.start()
            thread.join()
    """)
    trace = controlled_run(program.test, ScheduleReplay(Schedule()), traced=True).trace
    (written,) = (s for s in trace if s.kind == "write" and s.thread == "main.1")
    assert written.held == ("self.forks[1]",)


def test_the_function_replay_is_not_hidden_by_a_module() -> None:
    words = "import swarmtest; swarmtest.replay_race; from swarmtest.race import replay"
    done = subprocess.run(
        [sys.executable, "-c", f"{words}; print(callable(replay))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"
