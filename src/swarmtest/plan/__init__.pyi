"""The public names of `swarmtest.plan`, each with the module that defines it."""

from swarmtest.plan.planning import CombinationPlanner as CombinationPlanner
from swarmtest.plan.planning import PlanQuestion as PlanQuestion
from swarmtest.plan.planning import Range as Range
