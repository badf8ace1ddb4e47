"""Mutation testing: change a program in small ways and see whether its tests notice."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
