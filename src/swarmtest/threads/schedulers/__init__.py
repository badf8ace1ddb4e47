"""Schedulers: who goes on."""

from swarmtest.threads.schedulers.pct import PCT
from swarmtest.threads.schedulers.pos import POS
from swarmtest.threads.schedulers.replay import Replay
from swarmtest.threads.schedulers.scheduler import Scheduler
from swarmtest.threads.schedulers.walk import RandomWalk

__all__ = ["PCT", "POS", "RandomWalk", "Replay", "Scheduler"]
