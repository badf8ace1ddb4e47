"""Strategies, which choose the next configuration."""

from swarmtest._exports import exports_of

# Each of these modules registers the names by which users choose its strategies.
from swarmtest.strategies import bandit as bandit
from swarmtest.strategies import covering as covering
from swarmtest.strategies import hedged as hedged
from swarmtest.strategies import layered as layered
from swarmtest.strategies import mixture as mixture
from swarmtest.strategies import repeat as repeat
from swarmtest.strategies import simple as simple

__getattr__, __dir__ = exports_of(__name__)
