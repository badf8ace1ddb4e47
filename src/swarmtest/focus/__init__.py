"""Directed swarm testing: random tests aimed at chosen code, changes or faults."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
