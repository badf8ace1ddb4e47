"""Noise makes rare orders frequent; each setting does what it says."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest
from threaded_programs import AB_BA, CRAWLER, LOST_UPDATE, MISSED_NOTIFY

from swarmtest.core.errors import UserError
from swarmtest.core.space import Space
from swarmtest.race.coverage.shared_variables import AccessRecording, shared_sites
from swarmtest.race.free.noise import Noise
from swarmtest.race.free.runner import free_run
from swarmtest.race.native.subject import NoiseTest
from swarmtest.race.noise_settings import (
    KIND_NAMES,
    KINDS,
    NoiseSettings,
    noise_dimensions,
    noise_space,
)
from swarmtest.race.race_test import RaceTest
from swarmtest.race.weaving.sites import SITES

Load = Callable[[str], ModuleType]

SLOW_UPDATE = """
    from threading import Barrier, Thread

    total = 0

    def add(both):
        global total
        both.wait()
        for _ in range(50):
            total += 1

    def test():
        global total
        total = 0
        both = Barrier(2)
        threads = [Thread(target=add, args=(both,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert total == 100
"""


def faults(test: Callable[[], object], settings: NoiseSettings, runs: int) -> int:
    found = 0
    for seed in range(runs):
        run = free_run(test, Noise(settings, seed))
        assert not run.problem
        found += run.fault is not None
    return found


@contextmanager
def switching_after(seconds: float) -> Iterator[None]:
    """Let Python switch threads no sooner: after its 5 ms it may do so where a machine is busy."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_each_kind_loses_updates_that_are_not_lost_without(load: Load, kind: str) -> None:
    test = load(SLOW_UPDATE).test
    with switching_after(100):
        assert faults(test, NoiseSettings(0), 5) == 0
    assert faults(test, NoiseSettings(300, kind, 10), 20) > 0


@pytest.mark.parametrize("text", [LOST_UPDATE, AB_BA, MISSED_NOTIFY, CRAWLER])
def test_noise_finds_faults_of_each_sort(load: Load, text: str) -> None:
    """Some 1 of 10 runs shows them: that 200 do not happens less than once in a million."""
    test = load(text).test
    for seed in range(200):
        if free_run(test, Noise(NoiseSettings(300, "sleep", 5), seed)).fault:
            return
    raise AssertionError("noise does not find the fault")


def test_a_loop_that_only_noise_makes_endless_is_a_livelock(load: Load) -> None:
    program = load(
        """
        class Turns:
            def __init__(self):
                self.left = 1

        def test():
            turns = Turns()
            while turns.left:
                pass
        """
    )
    noise = Noise(NoiseSettings(10, "yield", 1), seed=1, most_probes=2_000)
    run = free_run(program.test, noise)
    assert run.fault is not None
    assert run.fault.signature == "livelock [test]"


def test_a_thread_that_was_disturbed_often_enough_is_left_alone_and_no_livelock(
    load: Load,
) -> None:
    program = load(
        """
        class Counter:
            def __init__(self):
                self.count = 0

        def test():
            counter = Counter()
            for _ in range(1_000):
                counter.count += 1
        """
    )
    noise = Noise(NoiseSettings(1000, "yield", 1), seed=1)
    assert free_run(program.test, noise).fault is None


def test_noise_is_made_at_the_same_probes_for_the_same_seed(load: Load) -> None:
    program = load(
        """
        class Counter:
            def __init__(self):
                self.count = 0

        def test():
            counter = Counter()
            for _ in range(300):
                counter.count += 1
        """
    )

    def left(seed: int) -> tuple[int, int]:
        noise = Noise(NoiseSettings(100, "yield", 1), seed)
        free_run(program.test, noise)
        (thread,) = noise._threads.values()
        return thread.left, thread.made

    made = left(1)[1]
    assert 30 < made < 90  # 601 probes at 1 in 10: 60, five standard deviations are 37
    assert left(1) == left(1)
    assert left(1) != left(2)


def test_timeouts_are_shortened(load: Load) -> None:
    program = load("import time\ndef test():\n    time.sleep(1)")
    settings = NoiseSettings(0, tamper_timeouts=True)
    assert any(free_run(program.test, Noise(settings, seed)).seconds < 1 for seed in range(20))


def test_with_shared_variables_only_private_ones_are_left_alone(load: Load) -> None:
    program = load(
        """
        import threading

        class Box:
            pass

        def work(shared):
            mine = Box()
            for number in range(100):
                mine.number = number
            shared.count += mine.number

        def test():
            shared = Box()
            shared.count = 0
            threads = [threading.Thread(target=work, args=(shared,)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        """
    )
    recording = AccessRecording()
    free_run(program.test, recording)
    shared = shared_sites([recording])
    settings = NoiseSettings(1000, "sleep", 100, shared_only=True)
    noise = Noise(settings, 1, shared)
    free_run(program.test, noise)
    made = Counter(thread for thread, _ in noise.places)
    assert (made["main.1"], made["main.2"]) == (2, 2)  # there are 200 accesses to what is private


def test_one_variable_is_drawn_by_the_seed(load: Load) -> None:
    load(CRAWLER)
    settings = NoiseSettings(500, one_variable=True)
    attributes = ("stopping", "connection", "queue")
    shared = frozenset(n for n in range(len(SITES)) if SITES[n].name in attributes)
    drawn = [Noise(settings, seed, shared).only for seed in range(20)]
    names = [{SITES[site].name for site in only or ()} for only in drawn]
    assert all(len(one) == 1 for one in names)
    assert len(set().union(*names)) == 3


def test_predecessors_are_learned_from_what_is_seen(load: Load) -> None:
    program = load(
        """
        import threading, time

        class Box:
            count = 0

        box = Box()

        def work():
            for _ in range(5):
                box.count += 1
                time.sleep(0.002)

        def test():
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        """
    )
    noise = Noise(NoiseSettings(1000, "yield", 1, predecessors=True), seed=1)
    free_run(program.test, noise)
    assert "write box.count" in {f"{SITES[n].kind} {SITES[n].variable}" for n in noise.switched}


def test_noise_at_predecessors_loses_updates(load: Load) -> None:
    test = load(SLOW_UPDATE).test
    path = f"{test.__module__}.py"
    writes = [n for n in range(len(SITES)) if SITES[n].path == path and SITES[n].kind == "write"]
    settings = NoiseSettings(1000, "sleep", 5, predecessors=True)
    assert any(free_run(test, Noise(settings, seed, None, writes)).fault for seed in range(5))


def test_one_thread_is_halted_while_the_others_go_on(load: Load) -> None:
    test = load(SLOW_UPDATE).test
    assert faults(test, NoiseSettings(100, "yield", 1, halt_one_thread=True), 10) > 0


def test_every_setting_is_a_dimension_of_a_space() -> None:
    space = noise_space()
    point = space.configuration({"kind": "inverse", "strength": 30, "shared_only": True})
    settings = NoiseSettings.of(point)
    assert settings == NoiseSettings(kind="inverse", strength=30, shared_only=True)
    assert NoiseSettings(**settings.to_json()) == settings
    assert str(settings) == "frequency 100, kind inverse, strength 30, shared-only"
    named = Space(noise_dimensions("noise_")).configuration({"noise_frequency": 700})
    assert NoiseSettings.of(named, "noise_").frequency == 700


def test_settings_that_make_no_sense_are_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="no kind 'yeild'; did you mean 'yield'"):
        NoiseSettings(kind="yeild")
    with pytest.raises(UserError, match="strength is from 1 to 1000, not 0"):
        NoiseSettings(strength=0)


def test_several_kinds_are_mixed_and_none_leaves_the_heuristics(load: Load) -> None:
    several = NoiseSettings(kind=["sleep", "yield"])
    assert several == NoiseSettings(kind="yield+sleep")
    assert several.kinds == ("yield", "sleep")
    assert NoiseSettings(kind=tuple(KINDS)) == NoiseSettings(kind="mixed")
    halts = Noise(NoiseSettings(1000, [], halt_one_thread=True), seed=1)
    assert halts.settings.kinds == ()
    assert not free_run(load(SLOW_UPDATE).test, halts).problem


def test_saved_tests_keep_the_keys_of_older_versions() -> None:
    heuristics = dict.fromkeys(("halt_one_thread", "tamper_timeouts", "one_variable"), False)
    python = {"frequency": 30, "kind": "sleep", "strength": 3, "shared_only": True}
    python |= heuristics | {"predecessors": False}
    data = {"format": "swarmtest threads test 1", "subject": "race a.py::f", "seed": 7}
    saved = RaceTest.from_json({**data, "noise": python})
    assert saved.settings == NoiseSettings(30, "sleep", 3, shared_only=True)
    assert saved.to_json()["noise"] == python
    native = {"frequency": 500, "kinds": ["yield", "sleep"], "strength": 1}
    native["heuristics"] = ["halt-one-thread"]
    test = {"format": "swarmtest native threads test 1", "seed": 7, "noise": native}
    settings = NoiseTest.from_json(test).settings
    assert settings == NoiseSettings(500, ["yield", "sleep"], 1, halt_one_thread=True)
    assert NoiseTest.from_json(test).to_json() == test
