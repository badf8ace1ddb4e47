"""The job of a campaign for a process that has to find the subject itself, by its name."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable

from swarmtest.campaign.worker import Job
from swarmtest.strategies import Strategy
from swarmtest.subjects.loading import SubjectReference


def travels(strategy: Strategy) -> bool:
    """Whether another process can have the strategy."""
    try:
        pickle.dumps(strategy)
    except Exception:
        return False
    return type(strategy).__module__ != "__main__"


def job_maker(
    reference: SubjectReference, name: str, strategy: Strategy, seed: int, keep_tests: bool
) -> Callable[[], Job]:
    """A function that makes the job there, and can be pickled.

    `name`: how the user names the subject; on another machine, the reference is another.
    """
    return functools.partial(_make, reference, name, strategy, seed, keep_tests)


def _make(
    reference: SubjectReference, name: str, strategy: Strategy, seed: int, keep_tests: bool
) -> Job:
    subject = reference.load()
    subject.name = name
    return Job(subject, strategy, seed, keep_tests)
