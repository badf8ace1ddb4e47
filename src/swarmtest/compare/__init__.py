"""Compare strategies over repeated runs."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
