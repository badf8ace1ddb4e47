"""Dimensions, spaces, constraints, configurations: the values that everything passes around."""

from swarmtest.space.configuration import Configuration
from swarmtest.space.constraints import (
    Constraint,
    at_least_one_of,
    excludes,
    mandatory,
    requires,
)
from swarmtest.space.dimensions import Choice, Dimension, Feature, Flag, Integer, Scalar, Test
from swarmtest.space.sampling import Proposal, rates_for, toss, toss_many, weigh
from swarmtest.space.space import Space

__all__ = [
    "Choice",
    "Configuration",
    "Constraint",
    "Dimension",
    "Feature",
    "Flag",
    "Integer",
    "Proposal",
    "Scalar",
    "Space",
    "Test",
    "at_least_one_of",
    "excludes",
    "mandatory",
    "rates_for",
    "requires",
    "toss",
    "toss_many",
    "weigh",
]
