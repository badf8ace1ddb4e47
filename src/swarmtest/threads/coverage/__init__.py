"""Concurrency coverage: what threads did to each other, as targets like all others."""

from swarmtest.threads.coverage.coverage import ConcurrencyCoverage

__all__ = ["ConcurrencyCoverage"]
