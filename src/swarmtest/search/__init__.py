"""Search a space of test settings for those that reach or reveal most (SearchBestie)."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
