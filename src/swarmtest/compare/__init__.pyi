"""The public names of `swarmtest.compare`, each with the module that defines it."""

from swarmtest.compare.comparison import Comparison as Comparison
from swarmtest.compare.comparison import compare_campaigns as compare_campaigns
from swarmtest.compare.repeated_runs import run_comparison as run_comparison
