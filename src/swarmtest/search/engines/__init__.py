"""Engines propose the points of a search; here they are found by name.

``climb``, ``climb:restarts=0`` and ``optuna:sampler=cma`` are names of engines. A user's own engine
is ``module:Class`` or ``path/to/file.py:Class``, with parameters after another colon, or a name
that an installed package offers in the entry points of strategies.
"""

from __future__ import annotations

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.strategy_names import current_strategy_text
from swarmtest.languages.user_objects import entry_point, entry_point_names
from swarmtest.search.engines.engine import HillClimbing, RandomOrder, Sequential, SpaceExhausted
from swarmtest.search.engines.optuna_engine import OptunaEngine
from swarmtest.strategies.strategy import (
    ENTRY_POINTS,
    Strategy,
    check_strategy,
    parse_strategy,
    strategy_names,
)

__all__ = [
    "ENGINES",
    "HillClimbing",
    "OptunaEngine",
    "RandomOrder",
    "Sequential",
    "SpaceExhausted",
    "as_engine",
    "parse_engine",
]

ENGINES: dict[str, type[Strategy]] = {
    engine.strategy_name: engine for engine in (Sequential, RandomOrder, HillClimbing, OptunaEngine)
}
"""The engines by name."""


def parse_engine(text: str) -> Strategy:
    """Return the engine with this name, or any other strategy of swarmtest or of the user.

    >>> parse_engine("climb:restarts=3")
    HillClimbing(by='', restarts=3)
    """
    if "://" in text:
        raise UserError(
            f"unknown engine {text!r}: an engine proposes the points of a search, like climb; "
            "where the trials of a campaign run is its executor (swarmtest run --executor)"
        )
    text = current_strategy_text(text.strip())
    head, _, rest = text.replace("(", ":", 1).removesuffix(")").partition(":")
    built_in = head in ENGINES or head in strategy_names()
    if not built_in and ":" not in text and entry_point(ENTRY_POINTS, head) is None:
        hint = did_you_mean(head, [*ENGINES, *strategy_names(), *entry_point_names(ENTRY_POINTS)])
        raise UserError(f"unknown engine {head!r}{hint} (one of your own is MODULE:CLASS)")
    if head not in ENGINES:
        return parse_strategy(text)
    cls = ENGINES[head]
    engine = parse_strategy(f"{cls.__module__}:{cls.__qualname__}" + (f":{rest}" if rest else ""))
    object.__setattr__(engine, "strategy_source", (head, rest))
    return engine


def as_engine(engine: str | Strategy) -> Strategy:
    """Return the engine with this name; return an engine unchanged.

    Raise `UserError` if it is neither.

    >>> as_engine("climb:restarts=3")
    HillClimbing(by='', restarts=3)
    """
    if isinstance(engine, str):
        return parse_engine(engine)
    check_strategy(engine)
    return engine
