"""Reduction: shrink a test while it still fails, or still covers what it has to cover."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
