"""Mutants of C programs: source-level, built behind a selector, run by the steps of a TOML file."""

from swarmtest.mutation.native.built import BuiltMutants
from swarmtest.mutation.native.drawing import drawn_mutants
from swarmtest.mutation.native.generating import c_mutants_of
from swarmtest.mutation.native.kill_matrix import native_kill_matrix

__all__ = ["BuiltMutants", "c_mutants_of", "drawn_mutants", "native_kill_matrix"]
