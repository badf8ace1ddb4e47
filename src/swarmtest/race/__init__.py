"""Concurrency testing: controlled schedules and noise for threaded programs.

A program is run many times. Either a scheduler decides which of its threads runs at each step
(`control`), or the threads run freely and are delayed at random places (`free`). Probes woven into
the program (`weaving`) and replacements for Python's locks, threads and clocks (`primitives`) make
both possible. Programs that are not written in Python are tested with noise only (`native`).
"""

from swarmtest.race.accelerator import accelerator_status
from swarmtest.race.control.runner import (
    ControlledRun,
    controlled_run,
    minimised_schedule,
    nothing_to_schedule,
    replay,
)
from swarmtest.race.control.schedulers import (
    PCT,
    POS,
    RandomWalk,
    Schedule,
    ScheduleReplay,
    Switch,
    ThreadScheduler,
)
from swarmtest.race.coverage.coverage import ConcurrencyCoverage
from swarmtest.race.coverage.shared_variables import AccessRecording, shared_sites
from swarmtest.race.coverage.trace import TraceStep
from swarmtest.race.free.noise import Noise
from swarmtest.race.free.policy import FreePolicy
from swarmtest.race.free.runner import FreeRun, free_run
from swarmtest.race.noise_settings import NoiseSettings, noise_dimensions, noise_space
from swarmtest.race.primitives.patches import installed
from swarmtest.race.primitives.policy import Policy, policy_on, prepare
from swarmtest.race.weaving.sites import SITES, Site
from swarmtest.race.weaving.weaver import weave, weave_tree, woven

Recording = AccessRecording
Replay = ScheduleReplay
Run = ControlledRun
Scheduler = ThreadScheduler
"""Earlier names of these classes."""

__all__ = [
    "PCT",
    "POS",
    "SITES",
    "AccessRecording",
    "ConcurrencyCoverage",
    "ControlledRun",
    "FreePolicy",
    "FreeRun",
    "Noise",
    "NoiseSettings",
    "Policy",
    "RandomWalk",
    "Recording",
    "Replay",
    "Run",
    "Schedule",
    "ScheduleReplay",
    "Scheduler",
    "Site",
    "Switch",
    "ThreadScheduler",
    "TraceStep",
    "accelerator_status",
    "controlled_run",
    "free_run",
    "installed",
    "minimised_schedule",
    "noise_dimensions",
    "noise_space",
    "nothing_to_schedule",
    "policy_on",
    "prepare",
    "replay",
    "shared_sites",
    "weave",
    "weave_tree",
    "woven",
]
