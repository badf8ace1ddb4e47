"""The statistics that the capabilities share: evidence, propensities, counts and intervals."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
