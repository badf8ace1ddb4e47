"""Strategies, which choose the next configuration."""

from swarmtest.strategies.coin import Activation, Coin, CoinByTime, Sized
from swarmtest.strategies.covering import Covering
from swarmtest.strategies.enumeration import AllOn, Complete, Default
from swarmtest.strategies.layered import Layered
from swarmtest.strategies.mixture import Mixture
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
