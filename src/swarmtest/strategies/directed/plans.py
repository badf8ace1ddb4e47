"""Directed strategies as plain data, so that a stored campaign can go on.

What a directed strategy aims at is too much for the text that names a strategy; a campaign keeps it
as its *plan*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from swarmtest.errors import UserError, did_you_mean
from swarmtest.strategies.directed.adaptive import Adaptive
from swarmtest.strategies.directed.aim import Aim
from swarmtest.strategies.directed.controlled import Controlled
from swarmtest.strategies.directed.directed import Directed
from swarmtest.strategies.directed.merging import MERGES
from swarmtest.strategies.directed.portfolio import Portfolio
from swarmtest.strategies.directed.single import SINGLES
from swarmtest.strategies.strategy import LearningStrategy, Strategy

STRATEGIES = ("adaptive", "portfolio", *SINGLES)
"""What can be asked for by name, the default first."""
_KINDS: dict[str, Any] = {"directed": Directed, "portfolio": Portfolio, "adaptive": Adaptive}


def directed_strategy(
    name: str, aims: Sequence[Aim], merge: str = "", weighted: bool = True
) -> LearningStrategy:
    """The directed strategy of this name for these aims.

    `merge` is for the strategies of the paper; aggressive unless given.
    """
    if name not in STRATEGIES:
        raise UserError(f"no directed strategy is called {name!r}{did_you_mean(name, STRATEGIES)}")
    if merge and merge not in MERGES:
        raise UserError(f"no way of merging is called {merge!r}{did_you_mean(merge, MERGES)}")
    if name in SINGLES:
        return Directed(aims, name, merge or "aggressive")
    if merge:
        raise UserError(f"strategy {name} decides itself what to merge: leave --merge out")
    return Portfolio(aims) if name == "portfolio" else Adaptive(aims, weighted=weighted)


def strategy_of_plan(plan: Mapping[str, Any]) -> Strategy:
    """The strategy that a campaign's plan describes."""
    kind = plan.get("strategy", "")
    if kind == "controlled":
        directed = strategy_of_plan(plan["directed"])
        assert isinstance(directed, LearningStrategy)
        return Controlled(directed, plan["undirected"], plan["share"])
    if kind not in _KINDS:
        raise UserError(f"the campaign's plan has a strategy {kind!r} that is not known here")
    made: Strategy = _KINDS[kind].from_plan(plan)
    return made
