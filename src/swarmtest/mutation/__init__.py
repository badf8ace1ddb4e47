"""Mutants of programs: small changes that good tests notice, switched on while they run."""

from swarmtest.mutation.generating import mutants_of
from swarmtest.mutation.matrix import KillMatrix
from swarmtest.mutation.mutant import Mutant
from swarmtest.mutation.mutating import kill_matrix, mutate_campaign
from swarmtest.mutation.operators import OPERATORS, parse_operators
from swarmtest.mutation.suites import mutate_pytest

__all__ = [
    "OPERATORS",
    "KillMatrix",
    "Mutant",
    "kill_matrix",
    "mutants_of",
    "mutate_campaign",
    "mutate_pytest",
    "parse_operators",
]
