"""The public names of `swarmtest.mutate`, each with the module that defines it."""

from swarmtest.mutate.generation import mutants_of as mutants_of
from swarmtest.mutate.kill_matrix import KillMatrix as KillMatrix
from swarmtest.mutate.mutant import Mutant as Mutant
from swarmtest.mutate.mutation import compute_kill_matrix as compute_kill_matrix
from swarmtest.mutate.mutation import mutate_campaign as mutate_campaign
from swarmtest.mutate.operators import OPERATORS as OPERATORS
from swarmtest.mutate.pytest_suites import mutate_pytest as mutate_pytest
