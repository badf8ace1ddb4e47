"""Feasible mode: threads are switched only where this interpreter can."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from swarmtest.race.control.runner import controlled_run, minimised_schedule, replay
from swarmtest.race.control.schedulers import POS, RandomWalk

Load = Callable[[str], ModuleType]

COUNTER = """
    import threading
    total = 0
    lock = threading.Lock()
    def plus_one(n):
        return n + 1
    def add():
        global total
        {statement}
    def test():
        global total
        total = 0
        threads = [threading.Thread(target=add) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert total == 2
"""

IMPOSSIBLE = [
    "total += 1",
    "n = total; total = n + 1",
    "with lock: pass\n        total += 1",
    "for _ in range(1): total += 1",
    "n = plus_one(0); total += n",
]
POSSIBLE = [
    "total = plus_one(total)",
    "total = int(total) + 1",
    "total = total + len('x')",
    "n = total\n        for _ in range(1): pass\n        total = n + 1",
    "n = total\n        with lock: pass\n        total = n + 1",
    "total = (lambda n: n + 1)(total)",
    "total += max(1, 1)",
]


def faults(test: Callable[[], object], feasible: bool) -> int:
    makes = (RandomWalk, POS)
    return sum(
        controlled_run(test, make(seed), feasible=feasible).fault is not None
        for make in makes
        for seed in range(100)
    )


@pytest.mark.parametrize("statement", IMPOSSIBLE)
def test_an_update_without_a_call_is_not_lost_under_the_gil(load: Load, statement: str) -> None:
    test = load(COUNTER.format(statement=statement)).test
    assert faults(test, feasible=False)
    assert not faults(test, feasible=True)


@pytest.mark.parametrize("statement", POSSIBLE)
def test_an_update_with_a_call_is_lost(load: Load, statement: str) -> None:
    test = load(COUNTER.format(statement=statement)).test
    assert faults(test, feasible=True)


@pytest.mark.parametrize(
    ("statement", "happens"), [("total += 1", False), ("total = plus_one(total)", True)]
)
def test_a_schedule_is_judged_by_its_replay(load: Load, statement: str, happens: bool) -> None:
    test = load(COUNTER.format(statement=statement)).test
    run = next(run for seed in range(100) if (run := controlled_run(test, RandomWalk(seed))).fault)
    assert run.fault
    small = minimised_schedule(test, run.schedule, run.fault)
    judged = replay(test, small, feasible=True)
    assert (judged.fault == run.fault) is happens
    assert (judged.missed == 0) is happens
    assert replay(test, small).fault == run.fault


def test_a_schedule_of_the_feasible_mode_replays_in_both(load: Load) -> None:
    test = load(COUNTER.format(statement="total = plus_one(total)")).test
    run = next(
        run
        for seed in range(100)
        if (run := controlled_run(test, RandomWalk(seed), feasible=True)).fault
    )
    assert replay(test, run.schedule, feasible=True).fault == run.fault
    assert replay(test, run.schedule).fault == run.fault


def test_locks_in_opposite_order_deadlock_if_the_first_had_to_wait(load: Load) -> None:
    program = load("""
        import threading
        a, b = threading.Lock(), threading.Lock()
        def once(first, second):
            with first:
                with second:
                    pass
        def twice(first, second):
            for _ in range(2):
                with first:
                    with second:
                        str()
        def test(work):
            threads = [
                threading.Thread(target=work, args=args) for args in ((a, b), (b, a))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    """)
    assert faults(lambda: program.test(program.once), feasible=False)
    assert not faults(lambda: program.test(program.once), feasible=True)
    assert faults(lambda: program.test(program.twice), feasible=True)
