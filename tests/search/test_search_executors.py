"""What runs at a point, and how executors are put together."""

import itertools
import os
import sys
import time

import pytest

from swarmtest import (
    Choice,
    Fault,
    Feature,
    Flag,
    Integer,
    Machine,
    Result,
    Test,
    UserError,
    Verdict,
    action,
    integers,
)
from swarmtest.search import (
    AfterRuns,
    AfterSeconds,
    CommandExecutor,
    ComposedExecutor,
    FunctionExecutor,
    PytestExecutor,
    RepeatedExecutor,
    SearchSpace,
    SubjectExecutor,
    TimedExecutor,
    WhenFailed,
    WhenSaturated,
    collect_pytest,
)
from swarmtest.search.results import status_of


def run(test, seeds=None, **values):
    """Run a test at a point of a space with a dimension for each value."""
    dims = [Choice(name, [value]) for name, value in values.items()]
    space = SearchSpace([*dims, Test("test", ["t"])], {"t": test})
    return space.executors["t"].run(space.default(), iter(seeds or itertools.count()))


def test_a_function_gets_the_values_that_it_names_and_a_seed():
    def sell(threads, seed, point):
        return {"threads": threads, "seed": seed, "dimensions": len(point.to_json())}

    (result,) = run(sell, seeds=[17], threads=4, noise="sleep")
    assert result.measures == {"threads": 4, "seed": 17, "dimensions": 3}
    assert result.verdict == Verdict.PASSED


def test_what_a_function_raises_is_its_fault():
    def sell(**settings):
        assert settings["sold"] == 150, "oversold"

    (result,) = run(sell, sold=151)
    assert status_of(result) == "failed"
    assert "oversold" in result.fault.signature
    assert run(sell, sold=150)[0].verdict == Verdict.PASSED


def test_a_function_that_ends_the_program_is_a_failure_not_the_end():
    (result,) = run(lambda: sys.exit(3))
    assert status_of(result) == "failed"


def test_hits_without_a_kind_are_events():
    (result,) = run(lambda: {"hits": ["full", "pair:1>2", "full"]})
    assert result.hits == ("event:full", "pair:1>2")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (7, "a test returns nothing, its measures"),
        ({"size": "large"}, "measure 'size' is a number, not 'large'"),
        ({"hits": "full"}, "hits are a list of names"),
    ],
)
def test_an_answer_that_means_nothing_is_refused(answer, message):
    with pytest.raises(UserError, match=message):
        run(lambda: answer)


class Counter(Machine):
    steps = 50
    dimensions = [Integer("limit", 1, 100, default=100)]

    def start(self):
        self.n = 0

    @action(by=integers(1, 3))
    def up(self, by):
        self.n += by
        assert self.n < self.settings["limit"]

    @action
    def down(self):
        self.n -= 1


def test_a_machine_takes_its_features_settings_and_steps_from_the_point():
    space = SearchSpace(
        [Feature("down"), Integer("steps", 10, 90, 10), Integer("limit", 1, 100), Test("t", ["c"])],
        {"c": Counter},
    )
    counter = space.executors["c"]
    assert isinstance(counter, SubjectExecutor)
    point = space.configuration({"down": 1, "steps": 20, "limit": 100})
    assert counter.run(point, iter([1]))[0].steps == 20
    strict = space.configuration({"down": 1, "steps": 90, "limit": 2})
    assert status_of(counter.run(strict, iter([1]))[0]) == "failed"


class Ranged(Machine):
    steps = (3, 9)

    @action
    def up(self): ...

    @action
    def down(self): ...


def test_a_machine_with_a_range_of_lengths_takes_that_of_the_point_or_draws_it():
    space = SearchSpace(
        [Feature("down"), Integer("steps", 10, 90, 10), Test("t", ["c"])], {"c": Ranged}
    )
    point = space.configuration({"down": 1, "steps": 20})
    assert space.executors["c"].run(point, iter([1]))[0].steps == 20
    free = SearchSpace([Feature("down"), Test("t", ["c"])], {"c": Ranged})
    point = free.configuration({"down": 1})
    runs = [free.executors["c"].run(point, iter([seed]))[0].steps for seed in range(30)]
    assert set(runs) == set(range(3, 10))


def test_a_command_gets_its_point_and_tells_measures_and_hits():
    command = CommandExecutor(
        'echo "measure size=$POINT_SIZE"; echo hit kind:{kind}; echo "${HOME:+hit home}"; '
        'test {on} = 1 || { echo "it is off" >&2; exit 3; }'
    )
    space = SearchSpace(
        [Integer("size", 1, 9), Choice("kind", ["a b"]), Flag("on"), Test("test", ["t"])],
        {"t": command},
    )
    good = space.configuration({"size": 7, "on": True})
    (result,) = command.run(good, iter([1]))
    assert result.verdict == Verdict.PASSED
    assert result.measures == {"size": 7.0}
    assert "kind:a b" in result.hits
    (bad,) = command.run(space.configuration({"size": 7, "on": False}), iter([1]))
    assert bad.fault
    assert bad.fault.signature == "exit status 3: it is off"


def test_a_command_that_hangs_is_interrupted_with_all_that_it_started(tmp_path):
    mark = tmp_path / "alive"
    slow = CommandExecutor(f"(sleep 1; touch {mark}) & sleep 30", seconds=0.2)
    (result,) = run(slow)
    assert status_of(result) == "interrupted"
    time.sleep(1.2)
    assert not mark.exists()


def test_a_placeholder_that_is_no_dimension_is_refused():
    with pytest.raises(UserError, match=r"\{threds\} is not a dimension; did you mean 'threads'"):
        run(CommandExecutor("run {threds}"), threads=4)


def test_a_test_that_takes_too_long_is_interrupted():
    slow = TimedExecutor(FunctionExecutor(lambda: time.sleep(1000), "slow"), seconds=0.2)
    begun = time.monotonic()
    (result,) = run(slow)
    assert status_of(result) == "interrupted"
    assert time.monotonic() - begun < 60


def test_a_timed_test_that_kills_its_process_is_a_failure():
    (result,) = run(TimedExecutor(FunctionExecutor(lambda: os._exit(7), "dies"), seconds=60))
    assert status_of(result) == "failed"
    assert "exit status 7" in result.fault.signature


def test_repeating_inside_a_timed_test_takes_as_many_seeds_as_runs():
    seen = itertools.count()
    inside = RepeatedExecutor(FunctionExecutor(lambda seed: {"seed": seed}, "t"), AfterRuns(3))
    results = run(TimedExecutor(inside, seconds=60), seeds=seen)
    assert [result.measures["seed"] for result in results] == [0, 1, 2]
    assert next(seen) == 3


def test_tasks_stand_before_and_after_a_test():
    done = []
    test = FunctionExecutor(lambda size: done.append(f"test {size}"), "t")
    composed = ComposedExecutor(
        test, before=lambda size: done.append("before"), after=lambda: done.append("after")
    )
    run(composed, size=3)
    assert done == ["before", "test 3", "after"]


def test_a_test_whose_task_before_fails_does_not_run():
    done = []
    composed = ComposedExecutor(FunctionExecutor(lambda: done.append("test"), "t"), before="exit 2")
    (result,) = run(composed)
    assert result.verdict == Verdict.INVALID
    assert "exit status 2" in result.missing
    assert not done


def reached(*names):
    return Result(Verdict.PASSED, hits=names)


def told(checker, results):
    enough = checker.begin()
    return [enough(result) for result in results]


GROWTH = [
    reached("a:1"),
    reached("a:2"),
    reached(),
    reached(),
    reached("a:3"),
    reached(),
    reached(),
]
"""A shoulder of two runs, then something new, then nothing more."""


def test_saturation_within_a_shoulder_stops_too_early():
    assert told(WhenSaturated(last=2), GROWTH).index(True) == 3


def test_saturation_over_more_runs_than_a_shoulder_has_goes_over_it():
    assert True not in told(WhenSaturated(last=3), GROWTH)
    assert told(WhenSaturated(last=3), [*GROWTH, reached()]).index(True) == 7


def test_saturation_may_be_relative_to_what_was_reached():
    growing = [reached(*(f"a:{i}" for i in range(10 * n))) for n in range(1, 8)]
    # 10 more each run: a tenth of what there is from 100 on, over two runs 20.
    assert told(WhenSaturated(last=2, below=0.3, relative=True), growing).index(True) == 6
    assert True not in told(WhenSaturated(last=2, below=0.25, relative=True), growing)


def test_a_test_that_never_reaches_anything_is_saturated():
    assert told(WhenSaturated(last=2, below=0.1, relative=True), [reached()] * 3)[-1]


def test_repetition_ends_at_the_first_failure_but_not_at_a_timeout():
    timeout = Result(Verdict.FAILED, Fault("timeout", "timeout"))
    failure = Result(Verdict.FAILED, Fault("exception", "oh"))
    assert told(WhenFailed(), [reached(), timeout, failure]) == [False, False, True]


def test_repetition_ends_when_time_is_up():
    nap = FunctionExecutor(lambda: time.sleep(0.02), "t")
    assert len(run(RepeatedExecutor(nap, AfterSeconds(0)))) == 1
    assert 1 <= len(run(RepeatedExecutor(nap, AfterSeconds(0.1)))) <= 6
    assert len(run(RepeatedExecutor(nap, AfterSeconds(1000), most=4))) == 4


def test_repetition_is_always_bounded():
    often = RepeatedExecutor(FunctionExecutor(lambda: None, "t"), WhenFailed(), most=25)
    assert len(run(often)) == 25


SUITE = """
def test_small(point, record_property):
    record_property("size", point["size"])
    record_property("hit", "looked")
    assert point["size"] < 3

class TestOther:
    def test_nothing(self):
        pass
"""


def test_an_existing_suite_is_searched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_suite.py").write_text(SUITE)
    nodes = collect_pytest("test_suite.py")
    assert nodes == ["test_suite.py::test_small", "test_suite.py::TestOther::test_nothing"]
    space = SearchSpace(
        [Integer("size", 1, 5), Test("test", nodes)], {node: PytestExecutor(node) for node in nodes}
    )
    small = space.executors[nodes[0]]
    (good,) = small.run(space.configuration({"size": 2}), iter([1]))
    assert (good.verdict, good.measures) == (Verdict.PASSED, {"size": 2.0})
    assert good.hits == ("event:looked",)
    (bad,) = small.run(space.configuration({"size": 4}), iter([1]))
    assert status_of(bad) == "failed"
    assert bad.fault
    assert bad.fault.signature.startswith("assert # < #")


def test_a_suite_that_cannot_be_collected_is_said_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_broken.py").write_text("import nothing_like_it\n")
    with pytest.raises(UserError, match=r"cannot collect test_broken\.py: .*nothing_like_it"):
        collect_pytest("test_broken.py")
    (tmp_path / "test_none.py").write_text("")
    with pytest.raises(UserError, match=r"pytest collects no test in test_none\.py"):
        collect_pytest("test_none.py")
