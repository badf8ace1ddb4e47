"""Controlled concurrency testing of threaded Python."""

from swarmtest.threads.hook import woven
from swarmtest.threads.minimising import minimised_schedule
from swarmtest.threads.patches import installed
from swarmtest.threads.policy import Policy, policy_on, prepare
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
    "Policy",
    "RandomWalk",
    "Replay",
    "Run",
    "Schedule",
    "Scheduler",
    "Site",
    "Switch",
    "TraceStep",
    "controlled_run",
    "installed",
    "minimised_schedule",
    "nothing_to_schedule",
    "policy_on",
    "prepare",
    "replay",
    "weave",
    "weave_tree",
    "woven",
]
