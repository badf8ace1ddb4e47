"""The portfolio: all of the paper's strategies that differ and work, in turn."""

from __future__ import annotations

import copy
import pickle
from collections import Counter

import pytest

from swarmtest import Space, UserError
from swarmtest.core.result import Result, Verdict
from swarmtest.strategies import Stream
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.strategies.directed.portfolio import PATIENCE, Portfolio

SPACE = Space(["push", "pop", "add", "sub", "mul"])
FULL = Aim((Goal("event:full"),), {"push"}, {"pop"})
EMPTY = Aim((Goal("event:empty"),), {"pop"})
SUM = Aim((Goal("event:sum"),), {"add"})


def members(portfolio: Portfolio, start: int, stop: int) -> Counter[str]:
    asked = (portfolio.ask(SPACE, trial, Stream(1, trial)) for trial in range(start, stop))
    return Counter(proposal.origin.rpartition(" ")[0] for proposal in asked)


def test_for_one_aim_three_strategies_share_the_tests() -> None:
    assert members(Portfolio([FULL]), 0, 300) == {
        "half-swarm/round-robin": 100,
        "no-suppressors/round-robin": 100,
        "triggers-only/round-robin": 100,
    }


def test_strategies_that_would_propose_the_same_are_one() -> None:
    # Nothing subsumes anything here, so subsumption is round-robin; sum merges with either.
    found = members(Portfolio([FULL, EMPTY, SUM]), 0, 600)
    assert set(found.values()) == {100}
    assert {name.partition("/")[2] for name in found} == {"round-robin", "aggressive"}


def test_every_member_takes_its_aims_in_turn() -> None:
    portfolio = Portfolio([FULL, EMPTY, SUM])
    asked = [portfolio.ask(SPACE, trial, Stream(1, trial)).origin for trial in range(60)]
    of_one = [origin for origin in asked if origin.startswith("half-swarm/round-robin")]
    assert [origin[-1] for origin in of_one] == [str(number % 3) for number in range(10)]


def test_no_configuration_has_a_suppressor() -> None:
    portfolio = Portfolio([FULL])
    for trial in range(100):
        assert "pop" not in portfolio.ask(SPACE, trial, Stream(1, trial)).configuration


def test_a_member_whose_tests_are_all_invalid_retires() -> None:
    portfolio = Portfolio([FULL])
    for trial in range(6 * PATIENCE):
        configuration = portfolio.ask(SPACE, trial, Stream(1, trial)).configuration
        lean = configuration.included == ("push",)
        verdict = Verdict.INVALID if lean else Verdict.PASSED
        portfolio.tell(Result(verdict, trial=trial, configuration=configuration, missing="empty"))
    assert portfolio.notes == [
        "triggers-only/round-robin gave only invalid tests (empty); it is left out"
    ]
    left = members(portfolio, 1000, 1200)
    assert left == {"half-swarm/round-robin": 100, "no-suppressors/round-robin": 100}


def test_the_last_member_stays() -> None:
    portfolio = Portfolio([FULL])
    for trial in range(20 * PATIENCE):
        portfolio.ask(SPACE, trial, Stream(1, trial))
        portfolio.tell(Result(Verdict.INVALID, trial=trial))
    assert len(members(portfolio, 1000, 1010)) == 1


def test_copies_and_plans_go_on_alike() -> None:
    portfolio = Portfolio([FULL, SUM])
    again = Portfolio.from_plan(portfolio.to_plan())
    copies = [again, copy.deepcopy(portfolio), pickle.loads(pickle.dumps(portfolio))]
    wanted = [portfolio.ask(SPACE, trial, Stream(2, trial)) for trial in range(50)]
    for one in copies:
        assert [one.ask(SPACE, trial, Stream(2, trial)) for trial in range(50)] == wanted


def test_something_to_aim_at_is_needed() -> None:
    with pytest.raises(UserError, match="no aim is given"):
        Portfolio([])
