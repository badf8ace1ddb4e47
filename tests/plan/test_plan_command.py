"""`swarmtest plan`: how many tests until features meet, before the first one runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

FILES = """
from swarmtest import Machine, action

class Files(Machine):
    steps = 5
    @action
    def open(self): ...
    @action(requires=["open"])
    def write(self): ...
    @action(requires=["open"])
    def close(self): ...

class Stack(Machine):
    steps = 5
    @action
    def push(self): ...
    @action
    def pop(self): ...
    @action
    def add(self): ...
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("plan")
    (place / "fs.py").write_text(FILES)
    return place


@pytest.fixture
def plan(swarmtest: Run, place: Path) -> Callable[..., str]:
    def go(*arguments: object) -> str:
        done = swarmtest("plan", *arguments, cwd=place)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    return go


@pytest.fixture
def refuse(swarmtest: Run, place: Path, refused: Callable[..., str]) -> Callable[..., str]:
    return lambda *arguments, words: refused(swarmtest("plan", *arguments, cwd=place), *words)


# The three questions


def test_how_many_tests_until_these_features_meet(plan: Callable[..., str]) -> None:
    assert plan("fs.py::Stack", "--together", "push,add,-pop", "-s", "coin") == (
        "fs.py::Stack: 3 features, strategy coin\n"
        "tests with push and add without pop\n\n"
        "exact:\n"
        "  has it   1 test in 7 (14.3%)\n"
        "  for 95%  20 tests\n"
    )


def test_how_likely_they_meet_within_so_many_tests(plan: Callable[..., str]) -> None:
    assert plan("--features", 23, "--together", 5, "-n", 100).endswith(
        "exact:\n"
        "  has it      1 test in 32 (3.1%)\n"
        "  within 100  95.82% likely; 3.13 of them have it on average\n"
    )


def test_how_many_tests_until_all_combinations_of_three_were_there(
    plan: Callable[..., str],
) -> None:
    assert plan("--features", 23, "--ways", 3, "--chance", "99%").endswith(
        "by the union bound:\n"
        "  rarest of them  1 test in 8 (12.5%)\n"
        "  for 99%         107 tests are enough\n"
    )


# Where there is no formula


def test_a_simulation_says_that_it_is_one(plan: Callable[..., str]) -> None:
    text = plan("fs.py::Stack", "--together", "push,-pop")
    assert "strategy layered" in text
    assert "10,000 simulated configurations:" in text


def test_where_the_bound_says_nothing_simulation_does(plan: Callable[..., str]) -> None:
    text = plan("--features", 6, "--ways", 2, "-n", 10)
    assert "no bound: too few tests" in text
    assert "400 simulated campaigns:" in text


def test_a_fixed_swarm_may_never_have_it(plan: Callable[..., str]) -> None:
    text = plan("--features", 9, "--together", "3,-2", "-s", "coin:n=20")
    assert "more tests than could be simulated, if ever" in text
    assert "within 1,000" in text


def test_constraints_are_simulated(plan: Callable[..., str]) -> None:
    assert "simulated" in plan("fs.py::Files", "--together", "open,-close", "-s", "coin")


# Large, small and certain numbers


def test_what_is_certain_is_said_to_be(plan: Callable[..., str]) -> None:
    all_on = ("fs.py::Stack", "--together", "push,pop", "-s", "all-on")
    assert plan(*all_on).endswith("exact:\n  has it   every test\n  for 95%  1 test\n")
    assert plan(*all_on, "-n", 1).endswith("  has it    every test\n  within 1  certain\n")


def test_all_off_is_no_combination_where_all_features_are_asked_for(
    plan: Callable[..., str],
) -> None:
    text = plan("--features", 3, "--ways", 3)
    assert "1 test in 7 (14.3%)" in text
    assert "1 test is enough" in plan("--features", 1, "--ways", 1)


def test_many_features_and_large_numbers_stay_readable(plan: Callable[..., str]) -> None:
    text = plan("--features", 300, "--together", "200,-20")
    assert "with f1 and f2 and f3 and f4 and f5 and f6 and f7 and f8 and f9 and 191 more" in text
    assert "without f201 or f202 or" in text
    assert "1 test in about 10^66 (<0.0001%)\n  for 95%  about 10^67 tests" in text
    assert max(map(len, text.splitlines())) < 200


# For programs, and with what is kept


def test_the_answer_as_json(plan: Callable[..., str]) -> None:
    found = json.loads(plan("--features", 4, "--together", 2, "-n", 3, "--json"))
    assert found["question"]["tests"] == 3
    (answer,) = found["answers"]
    assert answer["method"] == "exact"
    assert answer["share"] == pytest.approx([4 / 15, 4 / 15])
    assert answer["chance"] == pytest.approx([1 - (11 / 15) ** 3] * 2)


def test_a_campaign_that_is_kept_tells_how_long_that_takes(
    swarmtest: Run, plan: Callable[..., str], place: Path
) -> None:
    swarmtest("run", "fs.py::Files", "-n", 50, "-j", 0, "-q", cwd=place)
    text = plan("fs.py::Files", "--together", "write", "-n", 50)
    assert "50 tests take " in text
    assert "tests/s of campaign 1" in text
    assert " take " not in plan("fs.py::Stack", "--together", "push", "-n", 50)


# Bad input


def test_an_unknown_feature_has_a_nearest_name(refuse: Callable[..., str]) -> None:
    refuse("fs.py::Files", "--together", "opn", words=["'opn'", "did you mean 'open'?"])


@pytest.mark.parametrize("chance", ["0", "1", "100%", "often", "nan"])
def test_a_chance_is_between_never_and_certain(refuse: Callable[..., str], chance: str) -> None:
    refuse("--features", 3, "--ways", 2, "--chance", chance, words=["--chance", chance])


def test_what_constraints_forbid_is_refused_with_the_constraint(
    refuse: Callable[..., str],
) -> None:
    words = ["there is no test with write without open", "'write' requires 'open'"]
    refuse("fs.py::Files", "--together", "write,-open", words=words)


def test_a_strategy_that_never_has_it_says_so(refuse: Callable[..., str]) -> None:
    words = ["all-on has the same features in every test: none is with push without pop"]
    refuse("fs.py::Stack", "--together", "push,-pop", "-s", "all-on", words=words)
    words = ["all-on has the same features in every test: it never makes all of these"]
    refuse("fs.py::Stack", "--ways", 2, "-s", "all-on", words=words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fs.py::Stack",), ["--together", "--ways"]),
        (("fs.py::Stack", "--together", "push", "--ways", 2), ["--together", "--ways"]),
        (("--together", "push"), ["--features N"]),
        (("fs.py::Stack", "--features", 3, "--ways", 2), ["PATH"]),
        (("--features", 0, "--ways", 2), ["--features", "not 0"]),
        (("--features", 3, "--ways", 4), ["1 to 3 features"]),
        (("--features", 3, "--ways", 2, "-n", 0), ["-n is at least 1"]),
        (("--features", 3, "--ways", 2, "-n", 9, "--chance", 0.9), ["give one of them"]),
        (("--features", 3, "--together", "push"), ["like 5 or 5,-2", "'push'"]),
        (("--features", 3, "--together", "3,-1"), ["at most 3"]),
        (("--features", 23, "--together", "3,5"), ["how many are on and -how many are off", "3,5"]),
        (("--features", 23, "--together", "-3,-5"), ["how many are on", "'-3,-5'"]),
        (
            ("--features", 3, "--together", "-3"),
            ["there is no test without f1 or f2 or f3: a conf"],
        ),
        (("--features", 9, "--together", 2, "-n", 10**16), ["-n is at least 1 test and at most"]),
        (
            ("--features", 9999, "--together", 9999),
            ["never makes a test with f1 and", "9,990 more"],
        ),
        (("--features", 1000, "--ways", 300, "-n", 9), ["too many to add up"]),
        (("--features", 3, "--together", 2, "--on-only"), ["--on-only goes with --ways"]),
        (("fs.py::Stack", "--together", "push,-push"), ["each feature once"]),
        (("fs.py::Stack", "--together", ","), ["each feature once"]),
        (("--features", 40, "--ways", 5, "-s", "layered"), ["too many to simulate"]),
        (("--features", 4, "--together", 2, "-s", "complete", "-n", 10**6), ["at most 2,000"]),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    refuse: Callable[..., str], arguments: tuple[object, ...], words: list[str]
) -> None:
    refuse(*arguments, words=words)
