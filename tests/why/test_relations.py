"""The rule learner: what holds in failing vectors and not in passing ones."""

from __future__ import annotations

import random

import pytest

from swarmtest.analysis.intervals import wilson_interval
from swarmtest.core.result import Fault
from swarmtest.subjects.machine.repeats import with_part
from swarmtest.why.editing import telling_values
from swarmtest.why.explanation import share_interval
from swarmtest.why.relations import learn_rule
from swarmtest.why.variant_runs import is_kin


def learnt(holds, size=3, seed=1, start=None):
    """The rule from 400 random vectors, of which those that `holds` accepts fail."""
    rng = random.Random(seed)
    vectors = [tuple(rng.randint(0, 12) for _ in range(size)) for _ in range(400)]
    failing = [vector for vector in vectors if holds(*vector)]
    passing = [vector for vector in vectors if not holds(*vector)]
    names = ["a", "b", "c"][:size]
    return [relation.text for relation in learn_rule(start or failing[0], failing, passing, names)]


@pytest.mark.parametrize(
    ("holds", "rule"),
    [
        (lambda a, b, c: a == b, ["a = b"]),
        (lambda a, b, c: a < b, ["a < b"]),
        (lambda a, b, c: a == b + 2, ["a = b + 2"]),
        (lambda a, b, c: a + b == c, ["a + b = c"]),
        (lambda a, b, c: c >= 7, ["c ≥ 7"]),
        (lambda a, b, c: b % 2 == 1, ["b is odd"]),
    ],
)
def test_a_simple_relation_is_found_alone(holds, rule):
    assert learnt(holds) == rule


def test_two_relations_are_found_together():
    assert sorted(learnt(lambda a, b, c: a < b and c >= 6)) == ["a < b", "c ≥ 6"]


@pytest.mark.parametrize("seed", range(10))
def test_chance_gives_no_rule(seed):
    rng = random.Random(seed)
    assert learnt(lambda *vector: rng.random() < 0.5, seed=seed) == []


def test_a_few_exceptions_are_allowed():
    rng = random.Random(5)
    assert learnt(lambda a, b, c: a < b or rng.random() < 0.01) == ["a < b"]


def test_texts_are_compared_as_texts():
    failing = [("ab" * n, "x" + "ab" * n + "y") for n in range(1, 9)]
    passing = [("ab" * n, "xy" * n) for n in range(1, 9)]
    [relation] = learn_rule(failing[0], failing, passing, ["part", "whole"])
    assert relation.text == "part is part of whole"


def test_the_interval_of_a_share_is_that_of_the_analysis():
    for part, whole in [(0, 0), (0, 5), (1, 3), (7, 9), (20, 20), (3, 400)]:
        expected = wilson_interval(part, whole)
        assert share_interval(part, whole) == pytest.approx(expected, abs=1e-9)


def test_telling_values_are_bounds_neighbours_and_values_of_the_test():
    assert telling_values("abc", ["xy"], ["q"]) == ["", "ab", "abcc", "xy", "q"]
    assert telling_values(True, [], []) == [False]
    assert with_part([1, (2, [3])], (1, 1, 0), 9) == [1, (2, [9])]


def test_faults_at_a_check_of_the_harness_are_kin_only_with_the_same_caller():
    first = Fault("exception", "AssertionError [Desk.check: assert self.n] in add")
    second = Fault("exception", "AssertionError [Desk.check: assert self.n] in cut")
    assert is_kin(first, second)
    assert not is_kin(first, second, "Desk.")
