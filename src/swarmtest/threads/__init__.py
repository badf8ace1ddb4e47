"""Controlled concurrency testing of threaded Python."""

from swarmtest.threads.accelerator import accelerator_status
from swarmtest.threads.coverage import ConcurrencyCoverage
from swarmtest.threads.free_policy import FreePolicy
from swarmtest.threads.free_running import FreeRun, free_run
from swarmtest.threads.hook import woven
from swarmtest.threads.minimising import minimised_schedule
from swarmtest.threads.noise import Noise, NoiseSettings, noise_dimensions, noise_space
from swarmtest.threads.patches import installed
from swarmtest.threads.policy import Policy, policy_on, prepare
from swarmtest.threads.recording import Recording, shared_sites
from swarmtest.threads.replaying import replay
from swarmtest.threads.running import Run, controlled_run, nothing_to_schedule
from swarmtest.threads.schedule import Schedule, Switch
from swarmtest.threads.schedulers import PCT, POS, RandomWalk, Replay, Scheduler
from swarmtest.threads.sites import SITES, Site
from swarmtest.threads.trace import TraceStep
from swarmtest.threads.weaving import weave, weave_tree

__all__ = [
    "PCT",
    "POS",
    "SITES",
    "ConcurrencyCoverage",
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
    "Scheduler",
    "Site",
    "Switch",
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
