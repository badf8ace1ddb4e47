"""The public names of `swarmtest.search.engines`, each with the module that defines it."""

from swarmtest.search.engines.climbing import HillClimbing as HillClimbing
from swarmtest.search.engines.engine import SpaceExhausted as SpaceExhausted
from swarmtest.search.engines.names import ENGINES as ENGINES
from swarmtest.search.engines.names import parse_engine as parse_engine
from swarmtest.search.engines.optuna_engine import OptunaEngine as OptunaEngine
from swarmtest.search.engines.sequential import RandomOrder as RandomOrder
from swarmtest.search.engines.sequential import Sequential as Sequential
