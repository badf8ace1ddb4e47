"""A schedule is made as small as brute force could make it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.race.control.minimal import Extent, minimal_switches
from swarmtest.race.control.runner import (
    ControlledRun,
    controlled_run,
    extent_of,
    minimised_schedule,
)
from swarmtest.race.control.schedulers import RandomWalk, Schedule, ScheduleReplay, Switch

Load = Callable[[str], ModuleType]

SWITCHES = [Switch("main", at, "main.1") for at in range(1, 8)]
subsets = st.frozensets(st.sampled_from(SWITCHES), min_size=1)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(subsets, min_size=1, max_size=3), st.frozensets(st.sampled_from(SWITCHES)))
def test_no_subset_of_the_result_is_enough(causes: list[frozenset[Switch]], spoils: object) -> None:
    """Any cause is enough alone, unless just the switches that spoil it are there."""

    def shows(switches: Sequence[Switch]) -> bool:
        return frozenset(switches) != spoils and any(cause <= set(switches) for cause in causes)

    everything = [switch for switch in SWITCHES if any(switch in cause for cause in causes)]
    if not shows(everything):
        return
    small = minimal_switches(everything, shows, lambda switches: Extent({}))
    assert shows(small)
    for count in range(len(small)):
        assert not any(shows(fewer) for fewer in itertools.combinations(small, count))


def test_two_switches_that_can_only_be_dropped_together_are_dropped() -> None:
    there, back, needed = SWITCHES[:3]

    def shows(switches: Sequence[Switch]) -> bool:
        return needed in switches and (there in switches) == (back in switches)

    assert minimal_switches([there, back, needed], shows, lambda _: Extent({})) == (needed,)


def test_late_switches_are_preferred() -> None:
    def shows(switches: Sequence[Switch]) -> bool:
        return any(2 <= switch.at <= 6 for switch in switches)

    (late,) = minimal_switches([SWITCHES[1]], shows, lambda _: Extent({"main": 9, "main.1": 9}))
    assert late.at == 6


PROGRAMS = {
    "check, then act": """
        def work():
            if box.n == 0:
                box.n += 1
        def holds(): return box.n == 1
    """,
    "lost update": """
        def work():
            box.n += 1
        def holds(): return box.n == 2
    """,
    "seen in between": """
        def work():
            box.n += 1
            seen.append(box.n)
            box.n -= 1
        def holds(): return max(seen) == 1
    """,
}
FRAME = """
        import threading
        class Box:
            n = 0
        box, seen = Box(), []
        {body}
        def test():
            box.n = 0
            seen.clear()
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert holds()
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_schedule_at_all_has_fewer_switches(load: Load, name: str) -> None:
    test = load(FRAME.format(body=PROGRAMS[name].strip())).test

    def run(switches: Sequence[Switch]) -> ControlledRun:
        return controlled_run(test, ScheduleReplay(Schedule(tuple(switches))), traced=True)

    failing = [r for seed in range(60) if (r := controlled_run(test, RandomWalk(seed))).fault][:6]
    assert failing
    for failed in failing:
        assert failed.fault
        small = minimised_schedule(test, failed.schedule, failed.fault)
        possible = list(extent_of(run(())).joined(extent_of(failed)).switches())
        for count in range(len(small)):
            for switches in itertools.combinations(possible, count):
                assert run(switches).fault != failed.fault
