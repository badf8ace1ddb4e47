"""What threads did to each other, as targets; the same under control and free."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from threaded_programs import AB_BA, AIRLINES, MISSED_NOTIFY

from swarmtest.core.errors import UserError
from swarmtest.race.accelerator import OFF, accelerator_status
from swarmtest.race.control.runner import controlled_run
from swarmtest.race.control.schedulers import RandomWalk, Schedule, ScheduleReplay
from swarmtest.race.coverage.coverage import ConcurrencyCoverage
from swarmtest.race.free.runner import free_run

Load = Callable[[str], ModuleType]

TWO_STEPS = """
    import threading

    class Light:
        def __init__(self):
            self.colour = "red"

        def change(self):
            self.colour = "green"

    def test():
        light = Light()
        thread = threading.Thread(target=light.change)
        thread.start()
        seen = light.colour
        thread.join()
"""


def names(hits: object, kind: str) -> list[str]:
    """The targets of a kind, without the path."""
    return sorted(
        target.name.partition(":")[2]
        for target in hits.targets()  # type: ignore[attr-defined]
        if target.kind == kind
    )


def serial() -> ScheduleReplay:
    return ScheduleReplay(Schedule(()))


def test_pairs_tell_whether_the_thread_changed(load: Load) -> None:
    program = load(TWO_STEPS)
    coverage = ConcurrencyCoverage(["pair"])
    reached: set[str] = set()
    for seed in range(30):
        run = controlled_run(program.test, RandomWalk(seed), coverage=coverage)
        reached.update(names(run.hits, "pair"))
    path = program.__name__ + ".py"
    assert f"14 thread.start then {path}:15 read light.colour" in reached
    assert f"14 thread.start then another thread: {path}:9 write self.colour" in reached
    assert f"9 write self.colour then another thread: {path}:15 read light.colour" in reached


def test_a_variable_is_covered_when_two_threads_touch_it(load: Load) -> None:
    program = load(TWO_STEPS)
    run = controlled_run(program.test, serial(), coverage=ConcurrencyCoverage(["shared"]))
    assert names(run.hits, "shared") == ["Light.colour"]
    (target,) = run.hits.targets()  # type: ignore[union-attr]
    assert (target.line, target.function) == (9, "Light.change")


def test_locks_are_visited_blocked_and_blocking(load: Load) -> None:
    program = load(AB_BA)
    coverage = ConcurrencyCoverage(["sync"])
    runs = [controlled_run(program.test, RandomWalk(seed), coverage=coverage) for seed in range(40)]
    stuck = next(run for run in runs if run.fault)
    states = names(stuck.hits, "sync")
    assert {"9 lock.acquire blocking", "14 lock.acquire blocking"} <= set(states)
    assert {"10 lock.acquire blocked", "15 lock.acquire blocked"} <= set(states)
    alone = names(controlled_run(program.test, serial(), coverage=coverage).hits, "sync")
    assert "9 lock.acquire visited" in alone
    assert not any(name.startswith("9 ") and "block" in name for name in alone)


def test_conditions_are_covered_as_well(load: Load) -> None:
    program = load(MISSED_NOTIFY)
    coverage = ConcurrencyCoverage(["sync"])
    reached: set[str] = set()
    for seed in range(40):
        run = controlled_run(program.test, RandomWalk(seed), coverage=coverage)
        reached.update(names(run.hits, "sync"))
    assert {"17 condition.wait blocked", "12 condition.notify visited"} <= reached


def test_coverage_changes_nothing_about_a_run(load: Load) -> None:
    test = load(AIRLINES).test
    coverage = ConcurrencyCoverage()
    for seed in range(5):
        plain = controlled_run(test, RandomWalk(seed))
        covered = controlled_run(test, RandomWalk(seed), coverage=coverage)
        assert covered.fault == plain.fault
        assert covered.schedule == plain.schedule
        assert covered.steps == plain.steps


def test_python_and_c_see_the_same_pairs(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    if not accelerator_status().startswith("C"):
        pytest.skip(f"needs the C probe: {accelerator_status()}")
    test = load(AIRLINES).test
    in_c = ConcurrencyCoverage(["pair"])
    monkeypatch.setenv(OFF, "1")
    assert accelerator_status() == f"Python: {OFF} is set"
    in_python = ConcurrencyCoverage(["pair"])
    for seed in range(10):
        one = controlled_run(test, RandomWalk(seed), coverage=in_c).hits
        other = controlled_run(test, RandomWalk(seed), coverage=in_python).hits
        assert names(one, "pair") == names(other, "pair")
        assert len(names(one, "pair")) > 10


def test_locks_in_c_are_covered_as_those_in_python(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = load(
        """
        import queue
        import threading

        class Counter:
            def __init__(self):
                self.lock = threading.RLock()
                self.count = 0

            def add(self):
                with self.lock:
                    with self.lock:
                        self.count += 1

        def test():
            counter, done = Counter(), queue.Queue()
            plain = threading.Lock()
            for _ in range(3):
                thread = threading.Thread(target=counter.add)
                thread.start()
                thread.join()
                if plain.acquire(timeout=1):
                    plain.release()
                done.put(counter.count)
            assert [done.get() for _ in range(3)] == [1, 2, 3]
            assert not plain.locked() and counter.lock.acquire(False)
            counter.lock.release()
        """
    )
    runs = [free_run(program.test, coverage=ConcurrencyCoverage(["pair"]))]
    monkeypatch.setenv(OFF, "1")
    runs.append(free_run(program.test, coverage=ConcurrencyCoverage(["pair"])))
    assert [(run.fault, run.problem) for run in runs] == [(None, ""), (None, "")]
    assert names(runs[0].hits, "pair") == names(runs[1].hits, "pair")
    assert any("lock.acquire" in name for name in names(runs[0].hits, "pair"))


@pytest.mark.parametrize("kinds", [["pair"], ["pair", "sync"]])
def test_with_statements_in_c_are_covered_as_those_in_python(
    load: Load, monkeypatch: pytest.MonkeyPatch, kinds: list[str]
) -> None:
    program = load(
        """
        import threading, time

        class Counter:
            def __init__(self):
                self.lock = threading.Lock()
                self.count = 0

            def add(self):
                for _ in range(3):  # known from the second time on
                    with self.lock:
                        self.count += 1
                try:
                    with self.lock:
                        raise KeyError(self.count)
                except KeyError:
                    assert not self.lock.locked()

        def test():
            counter = Counter()
            for _ in range(2):
                thread = threading.Thread(target=counter.add)
                thread.start()
                thread.join()
            with counter.lock:  # the last thread has to wait for it
                thread = threading.Thread(target=counter.add)
                thread.start()
                time.sleep(0.3)
            thread.join()
            assert counter.count == 9
        """
    )
    runs = [free_run(program.test, coverage=ConcurrencyCoverage(kinds))]
    monkeypatch.setenv(OFF, "1")
    runs.append(free_run(program.test, coverage=ConcurrencyCoverage(kinds)))
    assert [(run.fault, run.problem) for run in runs] == [(None, ""), (None, "")]
    for kind in kinds:
        assert names(runs[0].hits, kind) == names(runs[1].hits, kind)
    assert any("lock.acquire then" in name for name in names(runs[0].hits, "pair"))


def test_a_deadlock_of_with_statements_in_c_is_found(load: Load) -> None:
    program = load(
        """
        import threading

        def test():
            lock = threading.Lock()
            for _ in range(2):
                with lock:
                    pass
            for _ in range(2):
                with lock:
                    lock.acquire()
        """
    )
    fault = free_run(program.test, coverage=ConcurrencyCoverage(["pair"])).fault
    assert fault is not None
    assert fault.kind == "deadlock"


def test_threads_that_run_freely_are_covered_too(load: Load) -> None:
    program = load(TWO_STEPS)
    coverage = ConcurrencyCoverage()
    hits = free_run(program.test, coverage=coverage).hits
    assert names(hits, "shared") == ["Light.colour"]
    assert "14 thread.start visited" in names(hits, "sync")
    assert names(hits, "pair")


def test_a_target_lies_in_its_file(load: Load) -> None:
    program = load(TWO_STEPS)
    coverage = ConcurrencyCoverage(["sync"])
    hits = free_run(program.test, coverage=coverage).hits
    assert hits is not None
    target = hits.targets()[0]
    source = coverage.catalogue.sources[target.source]
    assert source.place == program.__file__
    assert "class Light" in source.text


def test_each_run_starts_from_nothing(load: Load) -> None:
    program = load(TWO_STEPS)
    coverage = ConcurrencyCoverage()
    assert free_run(program.test, coverage=coverage).hits
    assert free_run(lambda: None, coverage=coverage).hits.targets() == []  # type: ignore[union-attr]


def test_a_kind_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UserError, match="no kind 'pairs'; did you mean 'pair'"):
        ConcurrencyCoverage(["pairs"])
