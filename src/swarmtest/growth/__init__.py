"""Whether a campaign still finds new things, and what more tests would find."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
