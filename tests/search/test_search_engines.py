"""Who proposes the next point: all points once, uphill, and the field's library."""

import itertools
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from installed_packages import install

from swarmtest import Choice, Feature, Flag, Integer, Strategy, Test, UserError
from swarmtest.search import (
    Fitness,
    HillClimbing,
    OptunaEngine,
    RandomOrder,
    Search,
    SearchSpace,
    Sequential,
    SpaceExhausted,
    parse_engine,
)
from swarmtest.search.engines.engine import Permutation
from swarmtest.search.engines.optuna_engine import SAMPLERS
from swarmtest.strategies import LearningStrategy, Stream, strategy_text


def hills(x, y, kind):
    """Two hills; the higher one is at (70, 30) of kind b."""
    low = 50 - abs(x - 20) - abs(y - 80)
    high = 100 - abs(x - 70) - abs(y - 30)
    return {"height": max(low, high - (0 if kind == "b" else 30))}


def space_of_hills(forbid=()):
    return SearchSpace(
        [
            Integer("x", 0, 100, 5),
            Integer("y", 0, 100, 5),
            Choice("kind", ["a", "b", "c"]),
            Test("test", ["hills"]),
        ],
        {"hills": hills},
        forbid,
    )


def asked(engine, space, count, seed=0):
    return [engine.ask(space, trial, Stream(seed, trial)).configuration for trial in range(count)]


@pytest.mark.parametrize("engine", [Sequential, RandomOrder])
def test_every_allowed_point_comes_once_and_then_there_is_nothing_left(engine):
    space = space_of_hills(forbid=["x > 10", "kind == 'c' and y > 50"])
    count = 3 * (2 * 21 + 11)
    made = engine()
    points = asked(made, space, count)
    assert len(set(points)) == count
    assert all(space.allows(point) for point in points)
    with pytest.raises(SpaceExhausted, match="all points that are allowed are explored"):
        made.ask(space, count, Stream(0, count))


def test_any_trial_can_be_asked_for_again():
    space = space_of_hills(forbid=["x > 10"])
    engine = RandomOrder()
    points = asked(engine, space, 20)
    assert engine.ask(space, 7, Stream(0, 7)).configuration == points[7]
    assert asked(RandomOrder(), space, 20) == points
    assert asked(RandomOrder(), space, 20, seed=1) != points


def test_a_space_where_nearly_everything_is_forbidden_is_refused():
    space = SearchSpace(
        [Integer("n", 0, 10**9), Test("test", ["t"])], {"t": lambda n: None}, ["n > 2"]
    )
    assert len(asked(Sequential(), space, 3)) == 3
    with pytest.raises(UserError, match="points in a row are forbidden"):
        asked(Sequential(), space, 4)


def test_random_order_tells_the_odds_of_features():
    space = SearchSpace(
        [Feature("push"), Feature("pop", requires=["push"]), Test("test", ["t"])],
        {"t": lambda push, pop: None},
    )
    proposals = [RandomOrder().ask(space, trial, Stream(1, trial)) for trial in range(2)]
    odds = {str(p.configuration): p.propensities for p in proposals}
    assert odds == {"push pop test=t": (1.0, 0.5), "push -pop test=t": (0.5, 0.5)}


def test_climbing_finds_the_top_of_its_hill():
    space = space_of_hills()
    outcome = Search(
        space, HillClimbing(restarts=0), fitness="height", seed=2, store=":memory:"
    ).run()
    assert outcome.reason == "1 top reached"
    assert outcome.progress.best_score[0] in (50.0, 100.0)
    assert outcome.progress.points == outcome.progress.visits < space.size / 2


def test_climbing_with_restarts_finds_the_highest_hill_and_ends_when_all_is_explored():
    space = space_of_hills()
    outcome = Search(space, "climb", fitness="height", reach=100, store=":memory:").run()
    assert outcome.best == {"x": 70, "y": 30, "kind": "b", "test": "hills"}
    assert outcome.progress.points < space.size / 2
    everything = Search(space, "climb", fitness="height", store=":memory:").run()
    assert everything.progress.points == everything.progress.visits == space.size


def test_climbing_in_one_dimension_stays_in_it():
    outcome = Search(
        space_of_hills(), HillClimbing(by="x", restarts=0), fitness="height", store=":memory:"
    ).run()
    assert outcome.progress.points <= 21


def test_climbing_in_a_dimension_that_is_not_there_is_refused():
    with pytest.raises(UserError, match="climb: no dimension 'z'; known: kind, test, x, y"):
        Search(space_of_hills(), "climb:by=z", store=":memory:").run()


def test_climbing_does_not_step_on_forbidden_points():
    space = space_of_hills(forbid=["(x + y) % 3 == 0"])
    outcome = Search(space, "climb", fitness="height", points=300, store=":memory:").run()
    assert outcome.progress.points == 300


def test_climbing_may_be_asked_several_times_before_it_is_told():
    engine = HillClimbing()
    points = asked(engine, space_of_hills(), 10)
    assert len(set(points)) == 10


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_samplers_of_optuna_are_engines(sampler):
    pytest.importorskip("optuna", reason="pip install 'swarmtest[optuna]'")
    space = space_of_hills(forbid=["kind == 'c'"])
    if sampler == "gp":
        pytest.importorskip("torch", reason="optuna's gp needs torch")
    outcome = Search(
        space, OptunaEngine(sampler), fitness="height", points=40, seed=1, store=":memory:"
    ).run()
    assert outcome.progress.points == 40
    assert outcome.progress.best_score[0] > 40
    assert outcome.best
    assert outcome.best["kind"] != "c"


def test_a_sampler_that_learns_beats_chance():
    pytest.importorskip("optuna", reason="pip install 'swarmtest[optuna]'")

    def best(engine, seed):
        search = Search(
            space_of_hills(), engine, fitness="height", points=60, seed=seed, store=":memory:"
        )
        return search.run().progress.best_score[0]

    learned = sum(best("optuna", seed) for seed in range(5))
    assert learned > sum(best("random", seed) for seed in range(5))


def test_optuna_takes_several_objectives():
    pytest.importorskip("optuna", reason="pip install 'swarmtest[optuna]'")

    def high_and_left(result):
        return result.measures["height"], -result.configuration["x"]

    for fitness in (Fitness(high_and_left, objectives=2), "height,-seconds"):
        search = Search(
            space_of_hills(), "optuna:sampler=nsga2", fitness=fitness, points=10, store=":memory:"
        )
        assert len(search.run().progress.best_score) == 2
    with pytest.raises(UserError, match=r"write Fitness\(high_and_left, objectives=2\)"):
        Search(space_of_hills(), "optuna", fitness=high_and_left, store=":memory:").run()


def test_optuna_ends_when_everything_is_explored():
    pytest.importorskip("optuna", reason="pip install 'swarmtest[optuna]'")
    space = SearchSpace([Flag("a"), Flag("b"), Test("test", ["t"])], {"t": lambda a, b: {"s": a}})
    outcome = Search(space, "optuna", fitness="s", store=":memory:").run()
    assert (outcome.progress.points, outcome.reason) == (4, "all 4 points are explored")


def test_engines_are_strategies():
    assert isinstance(RandomOrder(), Strategy)
    assert not isinstance(RandomOrder(), LearningStrategy)
    assert isinstance(HillClimbing(), LearningStrategy)
    assert isinstance(OptunaEngine(), LearningStrategy)


def test_any_strategy_is_an_engine():
    space = SearchSpace(
        [Feature("push"), Feature("pop"), Test("test", ["t"])],
        {"t": lambda push, pop: None},
        forbid=["push and not pop"],
    )
    outcome = Search(space, "coin", points=30, store=":memory:").run()
    assert (outcome.progress.visits, outcome.progress.points) == (30, 2)


@pytest.mark.parametrize("text", ["random", "climb:restarts=0", "climb:by=x", "optuna:sampler=cma"])
def test_an_engine_is_named_by_a_text(text):
    assert strategy_text(parse_engine(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clim", "unknown engine 'clim'; did you mean 'climb'"),
        ("dask://host:8786", "where the trials of a campaign run is its executor"),
        ("climb:restart=1", "has no parameter 'restart'; did you mean 'restarts'"),
        ("optuna:sampler=tpa", "no sampler 'tpa' here; did you mean 'tpe'"),
    ],
)
def test_a_mistake_in_an_engines_name_is_said(text, message):
    with pytest.raises(UserError, match=message):
        parse_engine(text)


TOWARDS = """
    class Towards:
        fitness, best = None, None

        def __init__(self, start=1):
            self.start = start

        def ask(self, space, trial, rng):
            return space.configuration({"x": self.start if self.best is None else self.best + 1})

        def tell(self, result):
            self.heights = [*getattr(self, "heights", []), self.fitness(result)]
            self.best = result.configuration["x"]
    """


@pytest.mark.parametrize("name", ["towards_engine:Towards:start=3", "towards:start=3"])
def test_an_engine_of_ones_own_is_named_by_its_class_or_an_entry_point(name, tmp_path, monkeypatch):
    entry = "towards = towards_engine:Towards"
    install(tmp_path, "swarmtest.strategies", entry, towards_engine=TOWARDS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "towards_engine", raising=False)
    space = SearchSpace([Integer("x", 0, 9), Test("test", ["t"])], {"t": lambda x: {"s": x}})
    search = Search(space, name, fitness="s", points=4, store=":memory:")
    outcome = search.run()
    assert outcome.best
    assert outcome.best["x"] == 6
    towards: Any = search.engine
    assert towards.heights == [(3.0,), (4.0,), (5.0,), (6.0,)]


def test_an_engine_without_ask_is_refused_in_one_line():
    class Mute:
        def tell(self, result):
            pass

    space = SearchSpace([Integer("x", 0, 9), Test("test", ["t"])], {"t": lambda x: None})
    with pytest.raises(
        UserError, match=r"Mute: an incomplete strategy, it has no method ask: write"
    ):
        Search(space, Mute(), store=":memory:")  # type: ignore[arg-type]


# A random order of all points, which takes no memory.


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 1000), st.integers(0, 2**64 - 1))
def test_every_number_comes_once(size, key):
    order = Permutation(size, key)
    assert sorted(order.at(place) for place in range(size)) == list(range(size))


@settings(max_examples=50, deadline=None)
@given(st.integers(2**64, 2**200), st.integers(0, 2**64 - 1), st.data())
def test_places_of_a_space_beyond_any_memory_do_not_meet(size, key, data):
    order = Permutation(size, key)
    places = data.draw(st.lists(st.integers(0, size - 1), unique=True, max_size=50))
    found = [order.at(place) for place in places]
    assert len(set(found)) == len(found)
    assert all(0 <= number < size for number in found)


def test_the_first_numbers_are_spread_evenly_over_the_space():
    order = Permutation(10**9, key=7)
    tenths = [0] * 10
    for place in range(10_000):
        tenths[order.at(place) * 10 // 10**9] += 1
    # 1,000 each, with a standard deviation of 30.
    assert all(850 < count < 1150 for count in tenths), tenths


def test_neighbours_do_not_stay_neighbours():
    order = Permutation(10_000, key=1)
    pairs = itertools.pairwise(order.at(place) for place in range(2000))
    near = sum(abs(a - b) == 1 for a, b in pairs)
    assert near < 10  # 0.4 are expected


def test_another_key_is_another_order():
    first, second = Permutation(1000, 1), Permutation(1000, 2)
    assert sum(first.at(place) == second.at(place) for place in range(1000)) < 20


def test_a_place_outside_is_refused():
    with pytest.raises(IndexError, match="from 0 to 9"):
        Permutation(10, 1).at(10)
