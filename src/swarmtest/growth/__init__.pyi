"""The public names of `swarmtest.growth`, each with the module that defines it."""

from swarmtest.growth.growth import Growth as Growth
from swarmtest.growth.growth import measure_growth as measure_growth
from swarmtest.growth.richness import Forecast as Forecast
