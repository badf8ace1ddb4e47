"""Triggers and suppressors: which features make a target more likely, and which less."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
