"""Engines propose the points of a search; one small module each."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
