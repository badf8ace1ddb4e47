"""After a failure under noise: a controlled run near what was seen shows it, and replays."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from raced_programs import LOST_UPDATE

from swarmtest import UserError
from swarmtest.race.explanation import NearNoise, find_schedule
from swarmtest.race.free.noise import Noise
from swarmtest.race.free.runner import free_run
from swarmtest.race.noise_settings import NoiseSettings
from swarmtest.race.race_test import RaceTest
from swarmtest.race.raced_program import RacedProgram
from swarmtest.race.racer import Racer

NOISE = NoiseSettings(frequency=1000, kind="sleep", strength=3)
LONG = LOST_UPDATE.replace(
    "    def add(self):\n", "    def add(self):\n" + "        self.mark = 1\n" * 9
)


@pytest.fixture
def racer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Racer]:
    monkeypatch.chdir(tmp_path)

    def made(program: str) -> Racer:
        (tmp_path / "counter.py").write_text(program)
        return Racer(RacedProgram.of("counter.py::count_to_two"))

    return made


def failure(racer: Racer) -> RaceTest:
    """A run with noise that failed, as a campaign keeps it; a busy machine may need many runs."""
    for seed in range(10_000):
        ran = racer.run(NOISE, seed)
        if ran.fault is not None:
            return RaceTest("counter", NOISE, seed, fault=ran.fault.id, seen=ran.seen)
    raise AssertionError("noise showed nothing")


def test_a_run_with_noise_knows_where_it_disturbed_whom(racer: Callable[[str], Racer]) -> None:
    one = racer(LOST_UPDATE)
    noise = Noise(NOISE, seed=1)
    free_run(one.program, noise)
    threads = {thread for thread, _ in noise.places}
    assert threads == {"main", "main.1", "main.2"}
    of_one = [at for thread, at in noise.places if thread == "main.1"]
    assert of_one == [1, 2]  # at each of its probes: it reads, and it writes


def test_a_fault_that_noise_has_shown_is_found_under_control(racer: Callable[[str], Racer]) -> None:
    one = racer(LOST_UPDATE)
    test = failure(one)
    assert RaceTest.from_json(test.to_json()) == test
    ran = find_schedule(one, test)
    assert ran.fault is not None
    assert one.follow(ran.schedule).fault == ran.fault


def test_threads_stop_about_where_noise_held_them(racer: Callable[[str], Racer]) -> None:
    one = racer(LONG)
    wanted = ("main.1", 11)  # between its read and its write
    shown = sum(
        one.scheduled(NearNoise([wanted], None, (), random.Random(seed))).fault is not None
        for seed in range(40)
    )
    nowhere = sum(
        one.scheduled(NearNoise([], None, (), random.Random(seed))).fault is not None
        for seed in range(40)
    )
    assert shown > 2 * nowhere + 5


def test_a_fault_that_only_noise_can_show_is_said(racer: Callable[[str], Racer]) -> None:
    test = RaceTest("counter", NOISE, 1, fault="00000000", seen=(("main.1", 1),))
    with pytest.raises(UserError, match="seen with noise, but in none of 20 controlled schedules"):
        find_schedule(racer(LOST_UPDATE), test, runs=20)
