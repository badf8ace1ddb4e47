"""Control tests among directed ones, told apart by their origin; and the portfolio."""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter

import pytest

from swarmtest import Space, UserError, Verdict
from swarmtest.core.result import Result
from swarmtest.strategies import Stream
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.strategies.directed.directed import (
    PATIENCE,
    Controlled,
    Directed,
    Portfolio,
    strategy_of_plan,
)
from swarmtest.strategies.strategy import strategy_text

FOUR = Space(["push", "pop", "look", "swap"])
FULL = Aim((Goal("event:full"),), {"push"}, {"pop"})


def proposals(strategy: Controlled, trials: int) -> list[tuple[str, tuple[str, ...]]]:
    asked = (strategy.ask(FOUR, trial, Stream(1, trial)) for trial in range(trials))
    return [(proposal.origin, proposal.configuration.included) for proposal in asked]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_the_share_of_control_tests_is_exact(share: float) -> None:
    origins = Counter(
        origin for origin, _ in proposals(Controlled(Directed([FULL]), share=share), 400)
    )
    assert origins["undirected"] == origins["default"] == round(400 * share / 2)


def test_control_tests_may_contain_suppressors_and_directed_ones_never() -> None:
    asked = proposals(Controlled(Directed([FULL]), share=0.5), 400)
    directed = [names for origin, names in asked if origin not in ("undirected", "default")]
    assert all("pop" not in names and "push" in names for names in directed)
    # Each undirected test has it with probability 8/15: 100 of them without would be a miracle.
    assert any("pop" in names for origin, names in asked if origin == "undirected")
    assert all(len(names) == 4 for origin, names in asked if origin == "default")


def test_it_is_named_like_the_strategy_that_directs() -> None:
    directed = Directed([FULL], "no-suppressors", "subsumption")
    assert strategy_text(Controlled(directed)) == strategy_text(directed)


def test_the_directed_strategy_hears_of_its_own_tests_only_and_counts_them_itself() -> None:
    heard: list[int] = []

    class Listening(Directed):
        def tell(self, result: Result) -> None:
            heard.append(result.trial)

    strategy = Controlled(Listening([FULL]), share=0.1)
    for trial in range(400):
        strategy.tell(Result(Verdict.PASSED, trial=trial))
    assert heard == list(range(360))


def test_a_plan_gives_the_same_strategy_back() -> None:
    strategy = Controlled(Directed([FULL], "no-suppressors"), share=0.2)
    plan = json.loads(json.dumps(strategy.to_plan()))
    again = strategy_of_plan(plan)
    assert isinstance(again, Controlled)
    assert proposals(again, 100) == proposals(strategy, 100)


def test_a_share_that_leaves_nothing_to_direct_is_refused() -> None:
    with pytest.raises(UserError, match=r"from 0 to 0\.9, not 1"):
        Controlled(Directed([FULL]), share=1)


def test_a_plan_of_a_strategy_that_is_not_known_is_refused() -> None:
    with pytest.raises(UserError, match="'psychic' that is not known here"):
        strategy_of_plan({"strategy": "psychic"})


# The portfolio: all of the paper's strategies that differ and work, in turn.


FIVE = Space(["push", "pop", "add", "sub", "mul"])
PUSHED = Aim((Goal("event:full"),), {"push"}, {"pop"})
EMPTY = Aim((Goal("event:empty"),), {"pop"})
SUM = Aim((Goal("event:sum"),), {"add"})


def members(portfolio: Portfolio, start: int, stop: int) -> Counter[str]:
    asked = (portfolio.ask(FIVE, trial, Stream(1, trial)) for trial in range(start, stop))
    return Counter(proposal.origin.rpartition(" ")[0] for proposal in asked)


def test_for_one_aim_three_strategies_share_the_tests() -> None:
    assert members(Portfolio([PUSHED]), 0, 300) == {
        "half-swarm/round-robin": 100,
        "no-suppressors/round-robin": 100,
        "triggers-only/round-robin": 100,
    }


def test_strategies_that_would_propose_the_same_are_one() -> None:
    # Nothing subsumes anything here, so subsumption is round-robin; sum merges with either.
    found = members(Portfolio([PUSHED, EMPTY, SUM]), 0, 600)
    assert set(found.values()) == {100}
    assert {name.partition("/")[2] for name in found} == {"round-robin", "aggressive"}


def test_every_member_takes_its_aims_in_turn() -> None:
    portfolio = Portfolio([PUSHED, EMPTY, SUM])
    asked = [portfolio.ask(FIVE, trial, Stream(1, trial)).origin for trial in range(60)]
    of_one = [origin for origin in asked if origin.startswith("half-swarm/round-robin")]
    assert [origin[-1] for origin in of_one] == [str(number % 3) for number in range(10)]


def test_no_configuration_has_a_suppressor() -> None:
    portfolio = Portfolio([PUSHED])
    for trial in range(100):
        assert "pop" not in portfolio.ask(FIVE, trial, Stream(1, trial)).configuration


def test_a_member_whose_tests_are_all_invalid_retires() -> None:
    portfolio = Portfolio([PUSHED])
    for trial in range(6 * PATIENCE):
        configuration = portfolio.ask(FIVE, trial, Stream(1, trial)).configuration
        lean = configuration.included == ("push",)
        verdict = Verdict.INVALID if lean else Verdict.PASSED
        portfolio.tell(Result(verdict, trial=trial, configuration=configuration, missing="empty"))
    assert portfolio.notes == [
        "triggers-only/round-robin gave only invalid tests (empty); it is left out"
    ]
    left = members(portfolio, 1000, 1200)
    assert left == {"half-swarm/round-robin": 100, "no-suppressors/round-robin": 100}


def test_the_last_member_stays() -> None:
    portfolio = Portfolio([PUSHED])
    for trial in range(20 * PATIENCE):
        portfolio.ask(FIVE, trial, Stream(1, trial))
        portfolio.tell(Result(Verdict.INVALID, trial=trial))
    assert len(members(portfolio, 1000, 1010)) == 1


def test_copies_and_plans_go_on_alike() -> None:
    portfolio = Portfolio([PUSHED, SUM])
    again = Portfolio.from_plan(portfolio.to_plan())
    copies = [again, copy.deepcopy(portfolio), pickle.loads(pickle.dumps(portfolio))]
    wanted = [portfolio.ask(FIVE, trial, Stream(2, trial)) for trial in range(50)]
    for one in copies:
        assert [one.ask(FIVE, trial, Stream(2, trial)) for trial in range(50)] == wanted


def test_something_to_aim_at_is_needed() -> None:
    with pytest.raises(UserError, match="no aim is given"):
        Portfolio([])
