"""Whole searches: when they end, what they keep, tasks around them, going on after Ctrl-C."""

import pytest

from swarmtest import Choice, Feature, Integer, Result, Test, UserError, Verdict, open_store
from swarmtest.roles import Study
from swarmtest.search import (
    AfterRuns,
    Exploration,
    FunctionExecutor,
    RepeatedExecutor,
    Search,
    SearchSpace,
    TimedExecutor,
    repeat_search,
)
from swarmtest.search.engine_comparison import summaries


def sell(threads, noise):
    if threads == 7 and noise == "sleep":
        raise ValueError("oversold")
    return {"sold": 150 + threads, "hits": [f"threads {threads}", f"noise {noise}"]}


def space_of(test=sell, forbid=()):
    return SearchSpace(
        [
            Integer("threads", 1, 8),
            Choice("noise", ["none", "sleep", "yield"]),
            Test("test", ["t"]),
        ],
        {"t": test},
        forbid,
    )


def test_a_search_is_a_campaign_whose_configurations_are_points():
    with open_store(":memory:") as store:
        outcome = Search(space_of(), "sequential", fitness="sold", store=store).run()
        record = store.campaign(outcome.campaign)
        summary = store.summary(outcome.campaign)
    assert (record.strategy, record.status, record.subject) == ("sequential", "finished", "t")
    assert (summary["trials"], summary["failed"]) == (24, 1)
    assert [fault.signature for fault in outcome.faults] == ["ValueError: oversold [sell]"]
    assert outcome.best == {"threads": 8, "noise": "none", "test": "t"}
    assert outcome.progress.best_visit == 21
    assert outcome.progress.targets == 8 + 3


@pytest.mark.parametrize(
    ("limits", "visits", "reason"),
    [
        ({"points": 5}, 5, "the budget of 5 points is used up: 5 of 24 points explored"),
        ({"reach": 152}, 4, "fitness reached"),
        ({"faults": 1}, 20, "enough faults"),
        ({"when": lambda result: "event:noise yield" in result.hits}, 3, "the user's function"),
        ({}, 24, "all 24 points are explored"),
    ],
)
def test_a_search_ends(limits, visits, reason):
    search = Search(space_of(), "sequential", fitness="sold", store=":memory:", **limits)
    outcome = search.run()
    assert outcome.progress.visits == visits
    assert outcome.reason.startswith(reason)


def test_a_search_ends_when_time_is_up():
    endless = SearchSpace([Integer("n", 0, 10**12), Test("test", ["t"])], {"t": lambda n: {"n": n}})
    outcome = Search(endless, "random", fitness="n", seconds=0.5, store=":memory:").run()
    assert outcome.reason == "time is up"
    assert outcome.progress.points > 0


def test_tasks_stand_before_and_after_the_whole_search(tmp_path):
    done = []
    outcome = Search(
        space_of(lambda threads, noise: done.append("test")),
        points=2,
        before=lambda: done.append("build"),
        after=f"touch {tmp_path / 'cleaned'}",
        store=":memory:",
    ).run()
    assert outcome.progress.visits == 2
    assert done == ["build", "test", "test"]
    assert (tmp_path / "cleaned").exists()


def test_a_search_whose_first_task_fails_does_not_begin():
    with open_store(":memory:") as store:
        with pytest.raises(UserError, match="task 'exit 4' failed: exit status 4"):
            Search(space_of(), before="exit 4", store=store).run()
        assert store.campaigns() == []


def flaky():
    """Each run reaches one more target, and measures its number."""
    seen = []

    def test(threads, noise):
        seen.append(threads)
        return {"run": len(seen), "hits": [f"run {len(seen)}"]}

    return RepeatedExecutor(FunctionExecutor(test, "flaky"), AfterRuns(3))


def explored(**options):
    told = []

    def never_after_telling(result):
        told.append(result)
        return False

    with open_store(":memory:") as store:
        space = space_of(flaky())
        search = Search(
            space,
            "sequential",
            points=2,
            store=store,
            when=never_after_telling,
            **options,
        )
        outcome = search.run()
        return Exploration.load(store, outcome.campaign), told, outcome


def test_all_results_of_a_repeated_test_are_kept_and_the_engine_is_told_them_together():
    exploration, told, outcome = explored()
    assert [len(runs) for runs in exploration.runs.values()] == [3, 3]
    assert [run.measures["run"] for run in exploration.runs[exploration.points[1]]] == [4, 5, 6]
    assert [len(result.hits) for result in told] == [3, 3]
    assert (outcome.progress.points, outcome.progress.runs) == (2, 6)


def test_or_only_one_combined_result_is_kept():
    exploration, _, outcome = explored(keep="combined")
    assert [len(runs) for runs in exploration.runs.values()] == [1, 1]
    assert [len(exploration.hits(point)) for point in exploration.points] == [3, 3]
    assert outcome.progress.runs == 6


@pytest.mark.parametrize(
    ("combine", "run"),
    [("best", 3.0), ("worst", 1.0), (lambda a, b: a._replace(measures={"run": 99.0}), 99.0)],
)
def test_results_of_a_point_are_combined_as_asked(combine, run):
    _, told, _ = explored(combine=combine, fitness="run")
    assert told[0].measures["run"] == run


def test_a_fitness_is_any_function_of_a_result():
    def rare(result: Result) -> float:
        return float("event:noise yield" in result.hits) - result.measures["sold"] / 1000

    outcome = Search(space_of(), "sequential", fitness=rare, points=6, store=":memory:").run()
    assert outcome.best
    assert outcome.best["noise"] == "yield"


def test_a_measure_that_no_result_has_is_said():
    with pytest.raises(UserError, match="no result has a measure 'sould'; did you mean 'sold'"):
        Search(space_of(), fitness="sould", store=":memory:").run()


def test_a_failed_run_without_measures_is_no_best_point():
    def test(threads, noise):
        if threads < 8:
            raise ValueError
        return {"sold": -5}

    outcome = Search(space_of(test), "sequential", fitness="sold", store=":memory:").run()
    assert outcome.progress.best_score == (-5.0,)


def test_interrupted_runs_are_counted_apart():
    slow = TimedExecutor(
        FunctionExecutor(lambda threads, noise: [*iter(int, 1)], "slow"),
        seconds=0.2,
    )
    outcome = Search(space_of(slow), "sequential", points=1, store=":memory:").run()
    assert (outcome.progress.interrupted, outcome.progress.failed) == (1, 0)
    assert outcome.faults[0].kind == "timeout"


def test_ctrl_c_ends_a_search_and_keeps_what_it_has():
    def test(threads, noise):
        if threads == 2:
            raise KeyboardInterrupt

    with open_store(":memory:") as store:
        outcome = Search(space_of(test), "sequential", store=store).run()
        assert store.campaign(outcome.campaign).status == "interrupted"
        assert store.summary(outcome.campaign)["trials"] == 3
    assert outcome.interrupted


@pytest.mark.parametrize("engine", ["random", "climb", "optuna"])
def test_a_search_goes_on_where_it_stopped(engine):
    if engine == "optuna":
        pytest.importorskip("optuna", reason="pip install 'swarmtest[optuna]'")
    with open_store(":memory:") as store:
        whole = Search(space_of(), engine, fitness="sold", points=16, seed=3, store=store).run()
        first = Search(space_of(), engine, fitness="sold", points=9, seed=3, store=store).run()
        rest = Search(space_of(), engine, fitness="sold", points=16, seed=3, store=store).run(
            resume=first.campaign
        )
        assert rest.campaign == first.campaign
        both = [Exploration.load(store, one.campaign).points for one in (whole, rest)]
        seeds = [[t.seed for t in store.trials(one.campaign)] for one in (whole, rest)]
    assert both[0] == both[1]
    assert seeds[0] == seeds[1]
    assert rest.progress.best_score == whole.progress.best_score


def test_another_search_cannot_go_on_with_a_campaign():
    with open_store(":memory:") as store:
        first = Search(space_of(), "random", points=3, store=store).run()
        with pytest.raises(UserError, match="another engine: random then, climb now"):
            Search(space_of(), "climb", store=store).run(resume=first.campaign)
        other = SearchSpace([Test("test", ["t"])], {"t": lambda: None})
        with pytest.raises(UserError, match="another space"):
            Search(other, "random", store=store).run(resume=first.campaign)


def test_repeated_searches_are_summed_up():
    def make(seed):
        return Search(space_of(), "random", fitness="sold", points=6, seed=seed, store=":memory:")

    found = {one.name: one for one in summaries(repeat_search(make, 8))}
    assert found["points"].mean == 6
    best = found["best fitness"]
    assert best.least <= best.low < best.mean < best.high <= best.most + 1
    assert best.most == 158


def test_features_of_a_search_have_roles_like_those_of_any_campaign():
    def test(lock, halt, log, threads):
        assert lock or not halt, "raced"

    space = SearchSpace(
        [*map(Feature, ("lock", "halt", "log")), Integer("threads", 1, 99), Test("test", ["t"])],
        {"t": test},
    )
    with open_store(":memory:") as store:
        outcome = Search(space, "random", points=200, store=store).run()
        table = Study(store, [outcome.campaign]).table("fault")
        roles = {role.feature: role.role for role in table.of(0)}
    assert roles == {"lock": "suppressor", "halt": "trigger", "log": "irrelevant"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points": 0}, "a search's points are above 0"),
        ({"keep": "some"}, "keep is all or combined"),
        ({"combine": "bets"}, "combine is one of cumulated, best, worst"),
        ({"fitness": "hits,"}, "a fitness is a measure's name"),
    ],
)
def test_a_mistake_in_a_search_is_said_before_it_begins(options, message):
    with pytest.raises(UserError, match=message):
        Search(space_of(), store=":memory:", **options)


def test_a_result_may_be_made_by_the_test_itself():
    def test(threads, noise):
        return Result(Verdict.PASSED, hits=("kind:x",), steps=threads)

    with open_store(":memory:") as store:
        outcome = Search(space_of(test), "sequential", points=4, store=store).run()
        assert store.summary(outcome.campaign)["steps"] == 1 + 1 + 1 + 2
