"""Coverage in the formats of other tools: coverage.py's data, LCOV and Cobertura.

All readers and writers speak in the values of `summary`: what is covered in a file, and what one
test covered.
"""

from __future__ import annotations

from swarmtest.instrument.interchange.cobertura import read_cobertura, write_cobertura
from swarmtest.instrument.interchange.coveragepy import read_coverage_data, write_coverage_data
from swarmtest.instrument.interchange.lcov import read_lcov, read_lcov_tests, write_lcov
from swarmtest.instrument.interchange.summary import Arc, FileCoverage, TestCoverage

__all__ = [
    "Arc",
    "FileCoverage",
    "TestCoverage",
    "read_cobertura",
    "read_coverage_data",
    "read_lcov",
    "read_lcov_tests",
    "write_cobertura",
    "write_coverage_data",
    "write_lcov",
]
