"""Threads of native programs: noise that brings races out, and coverage of what threads do.

`NativeThreads` runs a pthread program with a library of ours loaded before the C library's; of a
program built with ``-fsanitize=thread`` it sees every access to memory too.
"""

from swarmtest.instrument.native_threads.noise import HEURISTICS, KINDS, NoiseSettings
from swarmtest.instrument.native_threads.running import NativeRun, NativeThreads, run_native

__all__ = ["HEURISTICS", "KINDS", "NativeRun", "NativeThreads", "NoiseSettings", "run_native"]
