"""The public names of `swarmtest.compare`, each with the module that defines it."""

from swarmtest.compare.comparison import Comparison as Comparison
from swarmtest.compare.comparison import compare_campaigns as compare_campaigns
