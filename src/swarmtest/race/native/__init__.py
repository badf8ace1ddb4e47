"""Noise for native programs with POSIX or C11 threads, through a preloaded C library."""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
