"""The public names of `swarmtest.plan`, each with the module that defines it."""

from swarmtest.plan.planning import Planner as Planner
from swarmtest.plan.planning import Question as Question
from swarmtest.plan.planning import Range as Range
