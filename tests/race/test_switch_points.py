"""Threads are switched where Python reads shared objects without saying so in the source."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from swarmtest.race.control.runner import ControlledRun, controlled_run, minimised_schedule, replay
from swarmtest.race.control.schedulers import RandomWalk

Load = Callable[[str], ModuleType]

TOGETHER = """
    import threading

    def together(*works):
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
"""
METRICS = (
    TOGETHER
    + """
    class Registry:
        def __init__(self):
            self.metrics = {{"a": 1, "b": 2}}
        def show(self, name, value):
            return f"{{name}}={{value}}"
        def report(self):
            {report}
        def add(self):
            self.metrics["c"] = 3

    def test():
        registry = Registry()
        together(registry.report, registry.add)
"""
)
LOOPS = {
    "a list comprehension": "return [self.show(n, v) for n, v in self.metrics.items()]",
    "a set comprehension": "return {n for n in self.metrics}",
    "a dict comprehension": "return {n: v for n, v in self.metrics.items() if v}",
    "a nested comprehension": "return [(n, k) for n in self.metrics for k in range(1)]",
    "a generator expression": "return sum(v for v in self.metrics.values())",
    "a loop": "\n            for n, v in self.metrics.items(): self.show(n, v)",
    "a loop over a parameter": "\n            for i, n in enumerate(self.metrics): str(n)",
}


def failing(test: Callable[[], object], runs: int = 100, **options: Any) -> list[ControlledRun]:
    walks = (RandomWalk(seed, 1.0 if seed % 2 else 0.1) for seed in range(runs))
    return [run for walk in walks if (run := controlled_run(test, walk, **options)).fault]


@pytest.mark.parametrize("report", LOOPS.values(), ids=LOOPS)
def test_a_container_may_change_between_the_steps_of_a_loop(load: Load, report: str) -> None:
    test = load(METRICS.format(report=report)).test
    run = failing(test)[0]
    assert run.fault
    assert run.fault.signature.startswith("RuntimeError: dictionary changed size during iteration")
    small = minimised_schedule(test, run.schedule, run.fault)
    assert len(small) == 1
    assert replay(test, small).fault == run.fault


CALLBACKS = {
    "a function": "return list(map(same, self.metrics))",
    "a lambda": "return max(self.metrics, key=lambda name: name)",
    "a constructor": "return list(map(Key, self.metrics))",
}
CALLED = """
    def same(name):
        return name

    class Key:
        def __new__(cls, name):
            return name
"""


@pytest.mark.parametrize("feasible", [False, True])
@pytest.mark.parametrize("report", CALLBACKS.values(), ids=CALLBACKS)
def test_a_function_that_c_code_calls_is_a_switch_point(
    load: Load, report: str, feasible: bool
) -> None:
    """Such functions touch nothing that threads share, but what calls them does."""
    assert failing(load(METRICS.format(report=report) + CALLED).test, feasible=feasible)


@pytest.mark.parametrize("report", LOOPS.values(), ids=LOOPS)
def test_the_interpreter_can_do_so_too(load: Load, report: str) -> None:
    assert failing(load(METRICS.format(report=report)).test, feasible=True)


@pytest.mark.parametrize("report", LOOPS.values(), ids=LOOPS)
def test_a_copy_does_not_change(load: Load, report: str) -> None:
    copied = report.replace("self.metrics", "dict(self.metrics)")
    assert not failing(load(METRICS.format(report=copied)).test)


@pytest.mark.parametrize(
    "source",
    ["numbers()", "(n for n in range(9))"],
    ids=["a generator", "a generator expression"],
)
def test_two_threads_may_run_one_generator_at_once(load: Load, source: str) -> None:
    test = load(
        TOGETHER
        + f"""
    def numbers():
        n = 0
        while n < 9:
            yield n
            n += 1

    def test():
        source = {source}
        def take():
            while next(source, None) is not None:
                pass
        together(take, take)
"""
    ).test
    run = failing(test, 20)[0]
    assert run.fault
    assert run.fault.signature.startswith("ValueError: generator already executing")
    assert failing(test, 20, feasible=True)


def test_generators_of_one_thread_each_are_left_alone(load: Load) -> None:
    test = load(
        TOGETHER
        + """
    def numbers():
        yield 1
        yield 2

    def test():
        def take():
            assert sum(numbers()) == 3
            assert [n for n in numbers()] == [1, 2]
        together(take, take)
"""
    ).test
    assert not failing(test)


def test_a_timer_may_be_due_while_the_main_thread_works(load: Load) -> None:
    test = load("""
    import threading

    def test():
        state = {"open": True}
        def expire():
            state["open"] = False
        timer = threading.Timer(0.1, expire)
        timer.start()
        seen = [state["open"], state["open"]]
        timer.cancel()
        assert all(seen)
    """).test
    run = failing(test)[0]
    assert replay(test, run.schedule).fault == run.fault
    assert failing(test, feasible=True)


def test_a_time_limit_is_no_timer(load: Load) -> None:
    """A wait with a time limit ends early only if nothing else can run."""
    test = load("""
    import threading

    def test():
        done = threading.Event()
        threading.Thread(target=done.set).start()
        assert done.wait(0.1)
    """).test
    assert not failing(test)


@pytest.mark.parametrize(
    "statement",
    ["setattr(box, 'n', getattr(box, 'n') + 1)", "os.chdir(place); assert os.getcwd() == place"],
)
def test_hidden_accesses_have_probes(
    load: Load, statement: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.chdir(str(tmp_path))  # the program changes it
    test = load(
        TOGETHER
        + f"""
    import os

    class Box:
        n = 0

    def test():
        box = Box()
        def work(place):
            {statement}
        together(lambda: work("/"), lambda: work("/dev"))
        assert box.n != 1
"""
    ).test
    assert failing(test)


COPIED = (
    TOGETHER
    + """
    import copy
    from dataclasses import dataclass

    @dataclass
    class Point:
        x: int = 0
        y: int = 0

    def test():
        table = {"a": [1], "b": [2]}
        def add():
            table["c"] = [3]
        together(lambda: copy.deepcopy(table), add)
"""
)


def test_code_without_probes_is_switched_at_its_lines(load: Load) -> None:
    test = load(COPIED).test
    assert not failing(test)
    run = failing(test, library=True)[0]
    assert run.fault
    assert run.library_lines
    small = minimised_schedule(test, run.schedule, run.fault)
    assert small.library
    assert "copy" in small.switches[-1].site
    assert replay(test, small).fault == run.fault
