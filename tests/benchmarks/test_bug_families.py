"""The planted bugs that choose and judge strategies, and the simulation of tests."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from bug_families.fresh_kinds import FRESH
from bug_families.judgement import machine_of
from bug_families.kinds import JUDGING, KINDS, PAPER, TUNING, Bug, draw_bug, read_bugs
from bug_families.kinds import Tests as SimulatedTests
from bug_families.mixtures import MEAN, WORST, best_shares
from bug_families.simulation import odds_of

from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import seed_of_test
from swarmtest.strategies import Stream, parse_strategy
from swarmtest.subjects import MachineSubject


def test_no_kind_both_chooses_and_judges() -> None:
    assert not set(TUNING) & {*JUDGING, *FRESH}
    assert {*TUNING, *JUDGING, *FRESH, *PAPER} == set(KINDS)


def test_the_stored_bugs_are_those_that_the_generators_draw() -> None:
    for kind in TUNING + JUDGING + FRESH:
        drawn = {str(draw_bug(kind, seed)) for seed in range(360)}
        assert {str(bug) for bug in read_bugs((kind,))} <= drawn


# Four features a, b, c and d; a dot is a step that weights have used up.
EXAMPLES = [
    ("needed", {"needed": 2}, "ab", "acd"),
    ("absent", {"needed": 1, "absent": 2, "times": 2}, "aad", "aabd"),
    ("nearly_all", {"missing": 1}, "bcd", "bc"),
    ("few", {"most": 2, "times": 2}, "aabb", "aabbc"),
    ("frequent", {"needed": 2, "times": 2}, "aabbc", "aab"),
    ("exact", {"times": 2, "absent": 1}, "aab", "aabc"),
    ("balance", {"needed": 2, "factor": 20, "times": 1}, "aab", "aaab"),
    ("ratio", {"factor": 3, "times": 4}, "aaab", "aab"),
    ("half_as_common", {"needed": 1, "times": 1}, "abbc", "abc"),
    ("ranking", {"needed": 3, "factor": 20, "times": 1}, "aaaabbc", "aaabbc"),
    ("dominant", {"factor": 2, "others": 2}, "aabc", "abc"),
    ("parity", {"odd": 1, "even": 1}, "abb", "aab"),
    ("short", {"needed": 2, "most": 3}, "abc", "abcd"),
    ("depth", {"depth": 2, "down": 1}, "baa", "ababab"),
    ("run", {"length": 3, "members": 2}, "caba", "cbbcb"),
    ("window", {"width": 4, "times": 2, "absent": 1}, "bacac", "abab"),
    ("start_up", {"times": 2, "resets": 1, "needed": 1}, "aabd", "abad"),
    ("phases", {"phases": 2, "times": 2}, "aacbb", "abab"),
    ("sequence", {"pieces": 3}, "dabc", "abdc"),
    ("distance", {"gap": 3, "needed": 1}, "acba", "acacb"),
    ("alternation", {"turns": 3}, "cabab", "abcab"),
    ("boundary", {"level": 2, "sources": 1, "drains": 1}, "bbcba", "bbba"),
    ("idle", {"gap": 2, "busy": 1}, "bcca", "bca"),
    ("majority", {"members": 2, "percent": 60, "least": 3}, "aabc", "abcc"),
    ("between", {"others": 1, "absent": 1}, "abda", "abca"),
    ("rounds", {"pieces": 2, "times": 2}, "acbab", "aabb"),
    ("grown", {"number": 2, "absent": 1}, "adab", "caab"),
    ("seldom", {"most": 1, "few": 1, "others": 1, "times": 2}, "abb", "aabb"),
    ("equal_counts", {"pairs": 1, "times": 2}, "aabb", "aab"),
    ("churn", {"members": 1, "needed": 1, "times": 3}, "abab", "aabb"),
    ("after_close", {"objects": 1, "closing": 1, "times": 1}, "abca", "acb"),
    ("narrow", {"members": 1, "length": 3, "needed": 2}, "aaab", "aab"),
    ("ladder", {"rungs": 2, "low": 4, "high": 6}, "aab", "aaab"),
    ("early", {"members": 1, "most": 2, "times": 1}, "acb", "aca"),
    ("spread", {"sizes": 3, "percent": 40, "least": 3}, "abc", "aabc"),
    ("opens", {"times": 3}, "baaca", "aaba"),
    ("optimize", {"history": 3, "factor": 2}, "bbca", "bcca"),
]


def steps_of(text: str) -> SimulatedTests:
    numbers = ["abcd".index(letter) for letter in text]
    return SimulatedTests(np.array([numbers + [4] * (8 - len(numbers))], np.int16), 4)


@pytest.mark.parametrize(
    ("kind", "parameters", "found", "missed"), EXAMPLES, ids=[e[0] for e in EXAMPLES]
)
def test_each_kind_tells_a_test_that_finds_the_bug_from_one_that_does_not(
    kind: str, parameters: dict[str, int], found: str, missed: str
) -> None:
    bug = Bug(kind, 4, 8, parameters)
    assert bug.found(steps_of(found)).tolist() == [True]
    assert bug.found(steps_of(missed)).tolist() == [False]


def test_every_kind_has_an_example() -> None:
    assert sorted(kind for kind, *_ in EXAMPLES) == sorted(KINDS)


BUGS = [
    Bug("absent", 4, 20, {"needed": 2, "absent": 1, "times": 3}),
    Bug("ratio", 4, 20, {"factor": 3, "times": 6}),
    Bug("short", 4, 20, {"needed": 2, "most": 8}),
    Bug("run", 4, 20, {"length": 6, "members": 1}),
]


@pytest.mark.parametrize("strategy", ["coin", "activation", "layered"])
def test_simulated_tests_find_a_bug_as_often_as_tests_of_a_machine(strategy: str) -> None:
    tests = 3000
    simulated = odds_of(parse_strategy(strategy), BUGS, tests).overall
    chosen, subject = parse_strategy(strategy), MachineSubject(machine_of(BUGS[0]))
    proposals = [chosen.ask(subject.space, trial, Stream(2, trial)) for trial in range(tests)]
    for bug, share in zip(BUGS, simulated.tolist(), strict=True):
        subject = MachineSubject(machine_of(bug))
        failing = 0
        for trial, proposal in enumerate(proposals):
            assert isinstance(proposal, Proposal)
            found = subject.execute(proposal.configuration, seed_of_test(2, trial))
            failing += found.fault is not None
        margin = 5 * math.sqrt(2 * share * (1 - share) / tests) + 3 / tests
        assert abs(failing / tests - share) <= margin, bug


def test_no_shares_of_strategies_that_find_different_bugs_are_better_than_equal_ones() -> None:
    rates = np.array([[0.2, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.02]])
    shares = best_shares(rates, rates.max(axis=1), WORST)
    assert shares == pytest.approx([1 / 3] * 3, abs=0.01)


def test_shares_that_are_given_stay() -> None:
    rates = np.array([[0.2, 0.0], [0.1, 0.0]])
    least = np.array([0.0, 0.4])
    assert best_shares(rates, rates.max(axis=1), MEAN, least) == pytest.approx([0.6, 0.4])


@pytest.mark.parametrize(
    ("script", "keys"),
    [
        (
            "choice.py",
            {"shares", "tuning_mean_ratio, layered", "left_out_worst_ratio, 0% given, mean"},
        ),
        ("learning.py", {"judging_learner_vs_fixed", "wrong_role_rate"}),
    ],
)
def test_a_quick_run_prints_its_figures(script: str, keys: set[str]) -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "bug_families" / script
    command = [sys.executable, str(path), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert keys <= set(json.loads(done.stdout.splitlines()[-1]))
