"""Explored spaces: exported, replayed, and what they tell about their dimensions."""

import csv
import io
import math
import random

import pytest

from swarmtest import Choice, Flag, Integer, Test, UserError, open_store
from swarmtest.search import (
    Exploration,
    HillClimbing,
    Search,
    SearchSpace,
    best_sequence,
    collapsed,
    compare_engines,
    correlations,
    export_exploration,
    replay_space,
)
from swarmtest.search.exploration import random_sequence
from swarmtest.search.value_statistics import value_roles


def noisy(frequency, kind, halt, seed):
    """Frequency matters within a kind, the kind matters more, halt does not matter."""
    height = {"a": 0, "b": 20, "c": 40}[kind] + frequency
    rng = random.Random(seed)
    return {"height": height + rng.random(), "hits": [f"level {height}", f"kind {kind}"]}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("exploration") / "store.db")
    space = SearchSpace(
        [
            Integer("frequency", 0, 9),
            Choice("kind", ["a", "b", "c"]),
            Flag("halt"),
            Test("test", ["noisy"]),
        ],
        {"noisy": noisy},
        forbid=["frequency == 9 and halt"],
    )
    Search(space, "random", store=path).run()
    return path


@pytest.fixture(scope="module")
def exploration(kept):
    with open_store(kept, read_only=True) as store:
        return Exploration.load(store, 1)


def test_a_stored_search_is_read_as_an_exploration(exploration):
    assert len(exploration.points) == 57
    assert not exploration.complete
    assert exploration.measures == ["hits", "height", "failed", "seconds"]
    assert len(exploration.reached()) == 30 + 3
    assert exploration.growth(exploration.points)[-1] == 33


def test_the_strongest_dimension_comes_first(exploration):
    found = correlations(exploration, ["height"])
    assert [one.dimension for one in found] == ["kind", "frequency", "halt"]
    kind, frequency, halt = found
    assert kind.explained > 0.9
    assert kind.rank is None
    assert frequency.rank is not None
    assert 0.1 < frequency.rank < 0.5
    assert halt.explained < 0.01
    assert kind.adjusted < 0.05 < halt.adjusted
    assert [value for value, _ in kind.means] == ["a", "b", "c"]


def test_a_measure_that_is_not_there_is_said(exploration):
    with pytest.raises(UserError, match="no measure 'hight'; did you mean 'height'"):
        correlations(exploration, ["hight"])


def test_too_few_points_are_not_correlated():
    space = SearchSpace([Integer("n", 1, 5), Test("test", ["t"])], {"t": lambda n: {"n": n}})
    with open_store(":memory:") as store:
        Search(space, store=store).run()
        with pytest.raises(UserError, match="too few points to correlate anything: 5, 8 needed"):
            correlations(Exploration.load(store, 1))


def test_a_space_is_collapsed_by_what_matters_most(exploration):
    line = collapsed(exploration, "height")
    assert line.dimensions == ("kind", "frequency", "halt")
    assert [label for _, label in line.blocks()] == [("a",), ("b",), ("c",)]
    by_kind = [line.values[at] for at, _ in line.blocks()]
    assert by_kind == sorted(by_kind)
    other = collapsed(exploration, "height", by=["halt"])
    assert other.dimensions == ("halt", "kind", "frequency")


def test_a_sequence_reaches_everything_with_few_points(exploration):
    found = best_sequence(exploration)
    assert (found.steps[-1].reached, found.total) == (33, 33)
    assert len(found.steps) == 30  # every level is of one kind and one frequency
    assert [step.new for step in found.steps[:4]] == [2, 2, 2, 1]
    chance = [len(random_sequence(exploration, seed).steps) for seed in range(20)]
    assert min(chance) > 30


def test_a_sequence_can_be_cut_short(exploration):
    assert len(best_sequence(exploration, most=3).steps) == 3


def exported(exploration, kind, measure=""):
    out = io.BytesIO()
    count = export_exploration(exploration, kind, out, measure)
    return count, out.getvalue()


def test_an_exploration_is_exported_as_csv(exploration):
    count, data = exported(exploration, "csv")
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert count == len(rows) == 57
    assert [row["trial"] for row in rows] == [str(n) for n in range(57)]
    assert {row["status"] for row in rows} == {"passed"}
    assert all(row["hits"] == "2" for row in rows)


def test_an_exploration_is_exported_as_parquet(exploration):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pip install 'swarmtest[parquet]'")
    _, data = exported(exploration, "parquet")
    table = parquet.read_table(io.BytesIO(data)).to_pydict()
    assert len(table["height"]) == 57
    assert set(table["kind"]) == {"a", "b", "c"}


def test_an_exploration_is_exported_for_gnuplot(exploration):
    count, data = exported(exploration, "gnuplot", "height")
    text = data.decode()
    blocks = text.strip().split("\n\n")
    assert (count, len(blocks)) == (57, 3)  # an empty line where the first dimension changes
    rows = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert [row.split()[0] for row in rows] == [str(n) for n in range(57)]
    assert len({len(row.split()) for row in rows}) == 1


def test_a_search_of_a_recorded_exploration_gives_what_was_recorded(exploration):
    with open_store(":memory:") as store:
        space = replay_space(exploration)
        outcome = Search(space, "sequential", fitness="height", store=store).run()
        again = Exploration.load(store, outcome.campaign)
    assert set(again.points) == set(exploration.points)
    for point in again.points:
        assert again.results(point)[0].measures == exploration.results(point)[0].measures
        assert again.results(point)[0].hits == exploration.results(point)[0].hits


def test_engines_are_compared_on_the_same_exploration():
    def hill(x, y):
        return {"height": -abs(x - 12) - abs(y - 5)}

    space = SearchSpace(
        [Integer("x", 0, 19), Integer("y", 0, 19), Test("test", ["hill"])], {"hill": hill}
    )
    with open_store(":memory:") as store:
        Search(space, "sequential", store=store).run()
        exploration = Exploration.load(store, 1)
    climb, chance = compare_engines(
        exploration, ["climb:restarts=0", "random"], "height", points=100, repeats=50
    )
    # At most 26 steps with at most 3 new neighbours each: 100 points are enough for any hill.
    assert climb.found == 50
    assert climb.mean_points < 100
    # 100 of 400 points hold the best one with a chance of 1/4: 12.5 of 50, deviation 3.1.
    assert 0 < chance.found < 28
    low, high = chance.found_interval
    assert 0 < low < chance.found / 50 < high


def test_an_engine_that_explores_everything_always_finds_the_best(exploration):
    (found,) = compare_engines(exploration, [HillClimbing()], "height", repeats=5)
    assert found.found == 5
    assert found.mean_points == 57
    assert found.median_found_after is not None
    assert found.median_found_after <= 57


def test_comparing_is_fast_because_no_test_runs():
    ran = []

    def test(n):
        ran.append(n)
        return {"n": n}

    space = SearchSpace([Integer("n", 1, 200), Test("test", ["t"])], {"t": test})
    with open_store(":memory:") as store:
        Search(space, store=store).run()
        exploration = Exploration.load(store, 1)
    compare_engines(exploration, ["random"], "n", repeats=20)
    assert len(ran) == 200


def roles_of(space, targets=(), **options):
    with open_store(":memory:") as store:
        Search(space, "random", store=store, **options).run()
        found = value_roles(Exploration.load(store, 1), targets)
    return {(one.dimension, one.value): one.role for one in found}


def test_values_trigger_and_suppress_faults():
    def test(noise, halt, n):
        assert noise != "sleep" or halt, "raced"

    space = SearchSpace(
        [
            Choice("noise", ["none", "sleep", "yield"]),
            Flag("halt"),
            Integer("n", 1, 20),
            Test("test", ["t"]),
        ],
        {"t": test},
    )
    roles = roles_of(space)
    assert roles["noise", "sleep"] == roles["halt", False] == "trigger"
    assert roles["noise", "none"] == roles["noise", "yield"] == roles["halt", True] == "suppressor"
    assert {role for (name, _), role in roles.items() if name == "n"} <= {
        "irrelevant",
        "insufficient data",
    }


def roles_after_climbing(seed, chance, points):
    """Climb a hill that has nothing to do with the target, which shows with some chance."""
    luck = random.Random(seed)

    def test(a, b, c):
        height = -abs(a - 2) - abs(b - 5) - abs(c - 4)
        return {"height": height, "hits": ["lucky"] * (luck.random() < chance(a))}

    a, b, c = (Integer(name, 0, 7) for name in "abc")
    space = SearchSpace([a, b, c, Test("test", ["t"])], {"t": test})
    with open_store(":memory:") as store:
        Search(space, "climb", store=store, fitness="height", points=points, seed=seed).run()
        roles = value_roles(Exploration.load(store, 1), ["event:lucky"])
    return [role for role in roles if role.role in ("trigger", "suppressor")]


def test_hill_climbing_finds_no_roles_in_noise():
    """Values near the top are visited most. One search in twenty may list something; five sigma."""
    searches = 30
    wrong = sum(bool(roles_after_climbing(seed, lambda a: 0.3, 150)) for seed in range(searches))
    assert wrong / searches < 0.05 + 5 * math.sqrt(0.05 * 0.95 / searches)


def test_hill_climbing_finds_the_values_that_matter_and_no_others():
    found = [roles_after_climbing(seed, lambda a: 0.9 if a < 2 else 0.1, 250) for seed in range(12)]
    listed = [(role.dimension, role.value, role.role) for roles in found for role in roles]
    right = [one for one in listed if one in {("a", 0, "trigger"), ("a", 1, "trigger")}]
    others = [one for one in listed if one[0] != "a"]
    assert len(right) > 12
    assert len(others) <= 0.05 * len(listed) + 5 * math.sqrt(0.05 * 0.95 * len(listed))


def test_what_is_forbidden_makes_no_value_a_trigger():
    """Where `log` is off more often only because the rest demands it, it is no trigger."""

    def test(noise, log, n):
        return {"hits": ["slept"] * (noise == "sleep")}

    space = SearchSpace(
        [Choice("noise", ["none", "sleep"]), Flag("log"), Integer("n", 1, 60), Test("test", ["t"])],
        {"t": test},
        forbid=["noise == 'sleep' and log"],
    )
    roles = roles_of(space, ["event:slept"])
    assert roles["noise", "sleep"] == "trigger"
    assert ("log", False) not in roles  # it has no choice there, so there is nothing to tell


def test_many_values_are_told_about_in_groups():
    def test(n):
        return {"hits": ["low"] * (n < 10**8)}

    space = SearchSpace([Integer("n", 0, 10**9), Test("test", ["t"])], {"t": test})
    roles = roles_of(space, ["event:low"], points=300)
    assert len(roles) == 8
    assert [*roles.values()].count("trigger") == 1


def test_a_target_that_nothing_reached_has_no_roles(exploration):
    with pytest.raises(UserError, match="no run reached 'event:kind d'; did you mean"):
        value_roles(exploration, ["event:kind d"])


def test_an_exploration_of_several_campaigns_is_read_as_one(tmp_path):
    space = SearchSpace([Integer("n", 1, 50), Test("test", ["t"])], {"t": lambda n: {"n": n}})
    with open_store(str(tmp_path / "two.db")) as store:
        for seed in range(2):
            Search(space, points=20, seed=seed, store=store).run()
        both = Exploration.load(store, 1, 2)
        assert sum(map(len, both.runs.values())) == 40
        other = SearchSpace([Test("test", ["t"])], {"t": lambda: None})
        Search(other, store=store).run()
        with pytest.raises(UserError, match="campaigns 1 and 3 explored different spaces"):
            Exploration.load(store, 1, 3)


def test_targets_of_one_kind_can_be_looked_at_alone():
    def test(n):
        return {"hits": [f"line:{n}", "pair:1>2"]}

    space = SearchSpace([Integer("n", 1, 9), Test("test", ["t"])], {"t": test})
    with open_store(":memory:") as store:
        Search(space, store=store).run()
        exploration = Exploration.load(store, 1)
    assert exploration.kinds == ["line", "pair"]
    assert len(exploration.of_kind("line").reached()) == 9
    assert exploration.values("hits.pair") == [1.0] * 9
    assert len(best_sequence(exploration.of_kind("pair")).steps) == 1
    with pytest.raises(UserError, match="no target of kind 'lien' was reached; did you mean"):
        exploration.of_kind("lien")
