"""Engines propose the points of a search; one small module each."""

from swarmtest.search.engines.climbing import HillClimbing
from swarmtest.search.engines.engine import SpaceExhausted
from swarmtest.search.engines.names import ENGINES, parse_engine
from swarmtest.search.engines.optuna_engine import OptunaEngine
from swarmtest.search.engines.sequential import RandomOrder, Sequential

__all__ = [
    "ENGINES",
    "HillClimbing",
    "OptunaEngine",
    "RandomOrder",
    "Sequential",
    "SpaceExhausted",
    "parse_engine",
]
