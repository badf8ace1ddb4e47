"""Strategies, which choose the next configuration."""

from swarmtest.strategies.covering import Covering
from swarmtest.strategies.layered import Layered
from swarmtest.strategies.mixture import Mixture
from swarmtest.strategies.simple import (
    Activation,
    AllOn,
    Coin,
    CoinByTime,
    Complete,
    Default,
    Sized,
)
from swarmtest.strategies.strategy import (
    LearningStrategy,
    Strategy,
    parse_strategy,
    strategy_names,
    strategy_text,
)

__all__ = [
    "Activation",
    "AllOn",
    "Coin",
    "CoinByTime",
    "Complete",
    "Covering",
    "Default",
    "Layered",
    "LearningStrategy",
    "Mixture",
    "Sized",
    "Strategy",
    "parse_strategy",
    "strategy_names",
    "strategy_text",
]
