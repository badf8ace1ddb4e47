"""Regression suites: few, short tests of a campaign that keep what the whole campaign reached."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
