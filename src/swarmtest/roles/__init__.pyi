"""The public names of `swarmtest.roles`, each with the module that defines it."""

from swarmtest.roles.amounts import Amount as Amount
from swarmtest.roles.roles import FeatureRole as FeatureRole
from swarmtest.roles.study import Study as Study
from swarmtest.roles.triage import CommonFeatures as CommonFeatures
from swarmtest.roles.triage import common_features as common_features
