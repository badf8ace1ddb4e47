"""Walks that choose at a share of the probes only, and sleeps that let others run."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from threaded_programs import AIRLINES

from swarmtest.race.control.runner import controlled_run
from swarmtest.race.control.schedulers import RandomWalk

Load = Callable[[str], ModuleType]

HASTY = """
    import threading
    import time

    class Page:
        def __init__(self):
            self.is_open = True

    def test():
        page = Page()

        def read():
            time.sleep(0)
            page.is_open = False

        reader = threading.Thread(target=read)
        reader.start()
        if page.is_open:
            length = len("a line for the log")
            assert page.is_open
        reader.join()
"""


@pytest.mark.parametrize("feasible", [False, True])
def test_a_walk_of_few_choices_makes_few_switches(load: Load, feasible: bool) -> None:
    test = load(AIRLINES).test
    all_of_them = controlled_run(test, RandomWalk(1), feasible=feasible)
    few = controlled_run(test, RandomWalk(1, rate=0.02), feasible=feasible)
    assert len(few.schedule) < len(all_of_them.schedule) / 3


def test_a_walk_of_few_choices_still_finds_lost_updates(load: Load) -> None:
    test = load(AIRLINES).test
    found = [controlled_run(test, RandomWalk(seed, rate=0.02)).fault for seed in range(20)]
    assert any(found)


def test_a_thread_that_sleeps_for_no_time_may_overtake_one_that_could_run(load: Load) -> None:
    test = load(HASTY).test
    assert any(controlled_run(test, RandomWalk(seed)).fault for seed in range(200))
