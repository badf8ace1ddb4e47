"""Engines by name: ``climb``, ``climb:restarts=0``, ``optuna:sampler=cma``."""

from __future__ import annotations

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.search.engines.climbing import HillClimbing
from swarmtest.search.engines.optuna_engine import OptunaEngine
from swarmtest.search.engines.sequential import RandomOrder, Sequential
from swarmtest.strategies.strategy import Strategy, parse_strategy, strategy_names

ENGINES: dict[str, type[Strategy]] = {
    engine.strategy_name: engine for engine in (Sequential, RandomOrder, HillClimbing, OptunaEngine)
}
"""The engines by name."""


def parse_engine(text: str) -> Strategy:
    """Return the engine with this name, or any other strategy of swarmtest or of the user.

    >>> parse_engine("climb:restarts=3")
    HillClimbing(by='', restarts=3)
    """
    head, _, rest = text.strip().replace("(", ":", 1).removesuffix(")").partition(":")
    if head not in ENGINES and ":" not in text and head not in strategy_names():
        hint = did_you_mean(head, [*ENGINES, *strategy_names()])
        raise UserError(f"unknown engine {head!r}{hint} (one of your own is MODULE:CLASS)")
    if head not in ENGINES:
        return parse_strategy(text)
    cls = ENGINES[head]
    engine = parse_strategy(f"{cls.__module__}:{cls.__qualname__}" + (f":{rest}" if rest else ""))
    object.__setattr__(engine, "strategy_source", (head, rest))
    return engine
