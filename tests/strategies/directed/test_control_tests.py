"""Control tests among directed ones: an exact share, told apart by their origin."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from swarmtest import UserError, Verdict
from swarmtest.core.result import Result
from swarmtest.core.space import Space
from swarmtest.strategies import Stream
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.strategies.directed.directed import Controlled, Directed
from swarmtest.strategies.directed.portfolio import strategy_of_plan
from swarmtest.strategies.strategy import strategy_text

SPACE = Space(["push", "pop", "look", "swap"])
FULL = Aim((Goal("event:full"),), {"push"}, {"pop"})


def proposals(strategy: Controlled, trials: int) -> list[tuple[str, tuple[str, ...]]]:
    asked = (strategy.ask(SPACE, trial, Stream(1, trial)) for trial in range(trials))
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
