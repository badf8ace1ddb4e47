"""The public names of `swarmtest.race.native`, each with the module that defines it."""

from swarmtest.race.native.runner import NativeRun as NativeRun
from swarmtest.race.native.runner import NativeThreads as NativeThreads
from swarmtest.race.native.runner import ThreadRun as ThreadRun
from swarmtest.race.native.runner import run_native as run_native
from swarmtest.race.native.subject import NativeThreadsSubject as NativeThreadsSubject
from swarmtest.race.native.subject import load_native_threads as load_native_threads
from swarmtest.race.noise_settings import NoiseSettings as NoiseSettings
