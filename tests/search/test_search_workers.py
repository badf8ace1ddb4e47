"""Searches with several workers: the same points and seeds, whoever comes first."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from swarmtest import Integer, Result, Test, UserError, Verdict, open_store
from swarmtest.search import (
    AfterRuns,
    Exploration,
    FunctionExecutor,
    RepeatedExecutor,
    Search,
    SearchSpace,
    TimedExecutor,
    WhenSaturated,
)


def hill(x, seed):
    return {"height": -abs(x - 5), "seed": seed % 1000, "hits": [f"level {(x + seed) % 4}"]}


def space_of(test, high=9, **options):
    return SearchSpace([Integer("x", 0, high), Test("test", ["t"])], {"t": test}, **options)


def runs_of(test, workers, engine="random", **options):
    """What each run was, by its number."""
    with open_store(":memory:") as store:
        search = Search(space_of(test), engine, workers=workers, store=store, **options)
        exploration = Exploration.load(store, search.run().campaign)
        return sorted(
            (run.trial, run.visit, point["x"], run.measures["seed"])
            for point, runs in exploration.runs.items()
            for run in runs
        )


def test_the_points_and_seeds_do_not_depend_on_the_number_of_workers():
    assert runs_of(hill, workers=3) == runs_of(hill, workers=1)


def test_nor_do_they_where_a_test_is_repeated_until_nothing_new_shows():
    often = RepeatedExecutor(FunctionExecutor(hill, "t"), AfterRuns(9), WhenSaturated(last=2))
    alone, together = (runs_of(often, workers=n, points=4) for n in (1, 2))
    assert alone == together
    assert len(alone) > 4


def test_an_engine_that_learns_is_told_what_workers_find():
    search = Search(
        space_of(hill), "climb:restarts=0", fitness="height", workers=2, store=":memory:"
    )
    outcome = search.run()
    assert outcome.best == {"x": 5, "test": "t"}
    assert outcome.reason == "1 top reached"


def test_a_limit_of_points_is_kept():
    outcome = Search(space_of(hill), points=4, workers=3, store=":memory:").run()
    assert outcome.progress.visits == 4


def test_a_test_that_ends_its_process_has_failed_and_the_search_goes_on():
    outcome = Search(
        space_of(lambda x: os._exit(3) if x == 2 else None), workers=2, store=":memory:"
    ).run()
    assert outcome.progress.visits == 10
    assert [fault.count for fault in outcome.faults] == [1]


def test_a_test_that_never_ends_is_a_timeout_and_the_search_goes_on():
    def loops(x):
        if x == 2:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGABRT):
                signal.signal(number, lambda *_: None)
            while True:
                pass

    often = RepeatedExecutor(FunctionExecutor(loops, "t", seconds=0.3), AfterRuns(2))
    with open_store(":memory:") as store:
        outcome = Search(space_of(often, high=3), isolated=True, store=store).run()
        exploration = Exploration.load(store, outcome.campaign)
    assert outcome.progress.visits == 4
    assert [(fault.kind, fault.count) for fault in outcome.faults] == [("timeout", 1)]
    seconds = {p["x"]: [run.seconds for run in runs] for p, runs in exploration.runs.items()}
    assert seconds[2] == [0.3]
    assert len(seconds[1]) == 2


def test_a_limit_of_its_own_is_the_only_one_of_a_test():
    sleeps = FunctionExecutor(lambda x: time.sleep(0.3), "t", seconds=0.1)
    for test, faults in ((sleeps, 1), (TimedExecutor(sleeps, seconds=60), 0)):
        outcome = Search(space_of(test, high=0), isolated=True, store=":memory:").run()
        assert len(outcome.faults) == faults


def test_what_was_under_way_at_ctrl_c_is_run_when_the_search_goes_on(tmp_path: Path):
    begun = tmp_path / "begun"
    search = os.getpid()

    def slow_at_first(x, seed):
        if not begun.exists():
            begun.touch()
            time.sleep(30)  # the first visit is still under way when the search is stopped
        if not (tmp_path / "stopped").exists() and len(list(tmp_path.glob("done*"))) == 3:
            (tmp_path / "stopped").touch()
            os.kill(search, signal.SIGINT)
            time.sleep(30)
        (tmp_path / f"done {x}").touch()
        return hill(x, seed)

    with open_store(":memory:") as store:
        options: dict[str, Any] = {"workers": 2, "store": store}
        stopped = Search(space_of(slow_at_first), "sequential", **options).run()
        assert (stopped.interrupted, stopped.progress.visits) == (True, 3)
        again = Search(space_of(slow_at_first), "sequential", **options).run(stopped.campaign)
        assert (again.progress.visits, again.progress.points) == (10, 10)
        exploration = Exploration.load(store, stopped.campaign)
    assert sorted(run.visit for runs in exploration.runs.values() for run in runs) == [*range(10)]


def test_a_test_that_does_not_say_how_many_results_it_gives_has_one_worker():
    class Several:
        name, uses = "several", None

        def run(self, point, seeds):
            return [Result(Verdict.PASSED) for _ in range(point["x"] + 1)]

    space = space_of(Several(), high=2)
    assert Search(space, store=":memory:").run().progress.runs == 6
    with pytest.raises(UserError, match="does not say how many results it gives"):
        Search(space, workers=2, store=":memory:").run()


def test_a_search_without_a_point_that_is_allowed_is_a_mistake():
    for workers in (1, 2):
        with pytest.raises(UserError, match=r"nothing was run: .* no point is allowed"):
            Search(space_of(hill, forbid=["x >= 0"]), workers=workers, store=":memory:").run()


def test_there_is_at_least_one_worker():
    with pytest.raises(UserError, match="a search has at least 1 worker, not 0"):
        Search(space_of(hill), workers=0, store=":memory:")
