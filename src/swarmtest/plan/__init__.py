"""Before the first test: how many tests until certain features come together."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
