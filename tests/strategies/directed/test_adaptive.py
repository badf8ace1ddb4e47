"""The adaptive strategy: it finds what the roles do not say, and keeps its promises meanwhile."""

from __future__ import annotations

import copy
import pickle
import random
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtest import Feature, Space, UserError
from swarmtest.core.configuration import Configuration
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.strategies import Stream
from swarmtest.strategies.directed.adaptive import Adaptive
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.strategies.directed.directed import Directed

LETTERS = [f"f{number}" for number in range(20)]
SPACE = Space(LETTERS)
AIM = Aim((Goal("event:x"),), triggers={"f0"}, suppressors={"f1", "f2"})

Test = Callable[[Configuration, random.Random], Result]


def run(strategy: Adaptive | Directed, test: Test, tests: int, seed: int = 1) -> list[Result]:
    """Asks in small batches, as a campaign does, and tells afterwards."""
    results: list[Result] = []
    rng = random.Random(seed)
    for start in range(0, tests, 10):
        trials = range(start, min(start + 10, tests))
        proposals = [strategy.ask(SPACE, trial, Stream(seed, trial)) for trial in trials]
        batch = [
            test(proposal.configuration, rng)._replace(
                trial=trial, configuration=proposal.configuration
            )
            for trial, proposal in zip(trials, proposals, strict=True)
        ]
        for result in batch:
            strategy.tell(result)
        results += batch
    return results


def hits(*names: str, seconds: float = 0.001) -> Result:
    return Result(Verdict.PASSED, hits=names, cpu_seconds=seconds)


def share_of_hits(results: list[Result]) -> float:
    return sum(bool(result.hits) for result in results) / len(results)


def calls_in(work: Callable[[int], None], trials: range) -> int:
    """Count the calls of functions: unlike time, they are the same on every machine."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        for trial in trials:
            work(trial)
    finally:
        sys.setprofile(before)
    return calls


def asked(strategy: Adaptive, tests: int, space: Space = SPACE) -> list[Proposal]:
    return [strategy.ask(space, trial, Stream(3, trial)) for trial in range(tests)]


def helped_by_f3(configuration: Configuration, rng: random.Random) -> Result:
    """The target needs f3, which no role told of, beside its known trigger."""
    hit = {"f0", "f3"} <= set(configuration.included) and rng.random() < 0.8
    return hits("event:x") if hit else hits()


def test_where_triggers_alone_do_not_hit_it_turns_to_other_ways() -> None:
    adaptive = share_of_hits(run(Adaptive([AIM]), helped_by_f3, 400))
    lean = share_of_hits(run(Directed([AIM], "triggers-only"), helped_by_f3, 400))
    half = share_of_hits(run(Directed([AIM]), helped_by_f3, 400))
    assert lean == 0
    # Half-swarm has f3 every other time: 40%, give or take 2.5%; no-suppressors always has it.
    assert adaptive > 1.25 * half


def test_triggers_that_are_only_perhaps_ones_are_dropped_where_that_helps() -> None:
    def diluted(configuration: Configuration, rng: random.Random) -> Result:
        chance = 1 / len(configuration.included) if "f0" in configuration else 0
        return hits("event:x") if rng.random() < chance else hits()

    doubtful = Aim((Goal("event:x"),), {"f0", "f5", "f6", "f7"}, certain={"f0"})
    adaptive = share_of_hits(run(Adaptive([doubtful], weighted=False), diluted, 400))
    # All four triggers hit in a quarter of the tests; the certain one alone always does.
    assert adaptive > 0.7


def test_it_prefers_what_hits_as_well_and_takes_less_time() -> None:
    def slow_with_many(configuration: Configuration, rng: random.Random) -> Result:
        return hits("event:x", seconds=0.001 * len(configuration.included))

    results = run(Adaptive([AIM], weighted=False), slow_with_many, 400)
    spent = sum(result.cpu_seconds for result in results[100:]) / 300
    # Triggers-only takes 1 ms; the floor's tenth takes about 9, so the best mean is 1.8.
    assert spent < 0.003


def test_short_tests_come_where_they_hit_as_well() -> None:
    def any_step_will_do(configuration: Configuration, rng: random.Random) -> Result:
        return hits("event:x", seconds=0.001 * max(configuration.weights))

    results = run(Adaptive([AIM]), any_step_will_do, 400)
    short = [max(r.configuration.weights) < 0.4 for r in results if r.configuration]
    assert sum(short[200:]) / 200 > 0.75


def test_aims_that_conflict_only_a_little_are_hit_together() -> None:
    def both_in_one_test(configuration: Configuration, rng: random.Random) -> Result:
        on = set(configuration.included)
        names = {"event:x": "f0", "event:y": "f1"}
        return hits(*(name for name, needed in names.items() if needed in on))

    x = Aim((Goal("event:x"),), triggers={"f0"}, suppressors={"f1"})
    y = Aim((Goal("event:y"),), triggers={"f1"}, suppressors={"f0"})
    results = run(Adaptive([x, y], weighted=False), both_in_one_test, 400)
    # One at a time hits one of the two; f0 and f1 suppress each other only by hearsay.
    assert sum(len(result.hits) == 2 for result in results[200:]) / 200 > 0.7


@pytest.mark.parametrize("floor", [0.0, 0.2, 0.5, 1.0])
def test_the_floor_is_kept(floor: float) -> None:
    origins = [proposal.origin for proposal in asked(Adaptive([AIM], floor=floor), 160)]
    for end in range(20, 161, 20):
        fresh = sum(origin.startswith("floor") for origin in origins[:end])
        assert fresh == int(floor * end)


@given(
    st.lists(
        st.tuples(
            st.frozensets(st.sampled_from(LETTERS), max_size=6),
            st.frozensets(st.sampled_from(LETTERS), max_size=6),
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(0, 1000),
)
def test_no_configuration_has_a_suppressor_that_its_aims_do_not_need(
    roles: list[tuple[frozenset[str], frozenset[str]]], seed: int
) -> None:
    aims = [
        Aim((Goal(f"event:{number}"),), triggers, suppressors - triggers)
        for number, (triggers, suppressors) in enumerate(roles)
    ]
    strategy = Adaptive(aims)
    for trial in range(32):
        proposal = strategy.ask(SPACE, trial, Stream(seed, trial))
        name, _, number = proposal.origin.rpartition(" ")
        on = set(proposal.configuration.included)
        if name.endswith("all"):  # for all aims at once: what one needs is on, whatever it does
            needed = set().union(*(aim.triggers for aim in aims))
            assert not (set().union(*(aim.suppressors for aim in aims)) - needed) & on
        else:
            among = strategy.merging.aims if name.endswith("aggressive") else strategy.aims
            assert not among[int(number)].suppressors & on
        assert proposal.configuration.bits


def test_invalid_tests_lead_away_even_when_they_are_cheap() -> None:
    def lean_is_invalid(configuration: Configuration, rng: random.Random) -> Result:
        if len(configuration.included) < 6:
            return Result(Verdict.INVALID, cpu_seconds=0.00001)
        return hits("event:x") if rng.random() < 0.5 else hits()

    results = run(Adaptive([AIM], floor=0.0), lean_is_invalid, 500)
    invalid = [result.verdict is Verdict.INVALID for result in results]
    assert sum(invalid[:50]) >= 1
    assert sum(invalid[300:]) / 200 < 0.15


def test_a_goal_that_is_hard_to_hit_is_not_starved() -> None:
    def easy_or_hard(configuration: Configuration, rng: random.Random) -> Result:
        found = []
        if "f0" in configuration:
            found.append("event:easy")
        if "f1" in configuration and "f0" not in configuration and rng.random() < 0.3:
            found.append("event:hard")
        return hits(*found)

    easy = Aim((Goal("event:easy"),), triggers={"f0"}, suppressors={"f1"})
    hard = Aim((Goal("event:hard"),), triggers={"f1"}, suppressors={"f0"})
    results = run(Adaptive([easy, hard], floor=0.2), easy_or_hard, 400)
    # The floor alone gives it 80 tests, of which 24 hit, give or take 4.
    assert sum("event:hard" in result.hits for result in results) > 10


def test_hits_of_a_stand_in_guide_to_a_goal_that_was_never_hit() -> None:
    def behind_f7(configuration: Configuration, rng: random.Random) -> Result:
        return hits("line:before") if "f7" in configuration else hits()

    aim = Aim((Goal("line:new", through=("line:before",)),), triggers={"f0"})
    strategy = Adaptive([aim])
    assert strategy.wants == {"line:new", "line:before"}
    results = run(strategy, behind_f7, 400)
    # No-suppressors always has f7, half-swarm every other time, triggers-only never.
    assert share_of_hits(results[200:]) > 0.6


def test_a_fault_can_be_the_goal() -> None:
    fault = Fault("exception", "ValueError [f]")

    def fails_with_f6(configuration: Configuration, rng: random.Random) -> Result:
        shown = "f6" in configuration
        return Result(Verdict.FAILED if shown else Verdict.PASSED, fault if shown else None)

    results = run(Adaptive([Aim((Goal(f"fault:{fault.id}"),))]), fails_with_f6, 400)
    failed = [result.fault is not None for result in results]
    assert sum(failed[200:]) / 200 > 0.6


def test_without_weights_every_feature_is_on_or_off() -> None:
    assert not any(p.configuration.fractional for p in asked(Adaptive([AIM], weighted=False), 200))


def test_fresh_draws_of_the_floor_differ() -> None:
    fresh = [p.configuration for p in asked(Adaptive([AIM], floor=1.0), 160)]
    assert len({configuration.bits for configuration in fresh}) > 80


def test_constraints_are_kept() -> None:
    space = Space([Feature("f0", requires=["f3"]), *LETTERS[1:]])
    for proposal in asked(Adaptive([AIM]), 64, space):
        assert not space.violated(proposal.configuration.bits)
        assert not {"f1", "f2"} & set(proposal.configuration.included)


def test_the_same_seeds_and_results_give_the_same_proposals() -> None:
    one, other = (run(Adaptive([AIM]), helped_by_f3, 200) for _ in range(2))
    assert [r.configuration for r in one] == [r.configuration for r in other]


def test_copies_go_on_alike() -> None:
    strategy = Adaptive([AIM])
    run(strategy, helped_by_f3, 100)
    copies = [copy.deepcopy(strategy), pickle.loads(pickle.dumps(strategy))]
    answers = [asked(one, 40) for one in (strategy, *copies)]
    assert answers[0] == answers[1] == answers[2]


def test_a_plan_makes_the_same_strategy() -> None:
    strategy = Adaptive([AIM, Aim((Goal("event:y"),), {"f1"})], floor=0.3, weighted=False)
    again = Adaptive.from_plan(strategy.to_plan())
    assert again.to_plan() == strategy.to_plan()
    assert asked(again, 40) == asked(strategy, 40)


def test_asking_and_telling_stay_cheap() -> None:
    space = Space([f"f{number}" for number in range(80)])
    aims = [Aim((Goal(f"event:{n}"),), {f"f{n}", f"f{n + 20}"}, {f"f{n + 40}"}) for n in range(20)]
    strategy = Adaptive(aims)
    strategy.prepare(space)

    def ask_and_tell(trial: int) -> None:
        configuration = strategy.ask(space, trial, Stream(1, trial)).configuration
        strategy.tell(hits("event:3")._replace(trial=trial, configuration=configuration))

    # 370 calls for 80 features take less than 0.1 ms.
    assert calls_in(ask_and_tell, range(100)) < 500 * 100
    for trial in range(100, 1000):
        ask_and_tell(trial)
    assert calls_in(ask_and_tell, range(1000, 1100)) < 500 * 100


@pytest.mark.parametrize(
    ("aims", "floor", "message"),
    [([], 0.2, "no aim is given"), ([AIM], 1.5, "from 0 to 1, not 1.5")],
)
def test_bad_input_gets_one_line(aims: list[Aim], floor: float, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Adaptive(aims, floor=floor)


def test_a_trigger_that_the_space_does_not_have_is_named() -> None:
    with pytest.raises(UserError, match="'g0'"):
        Adaptive([Aim((Goal("event:x"),), {"g0"})]).prepare(SPACE)
