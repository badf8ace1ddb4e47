"""A list of jobs: a worker looks whether there are any, and then takes one."""

from __future__ import annotations

from threaded import run_threads


class Jobs:
    """What is to do, and what was done."""

    def __init__(self) -> None:
        self.waiting = ["job " + str(number) for number in range(7)]
        self.done: list[str] = []

    def has_more(self) -> bool:
        return len(self.waiting) > 0

    def work(self, job: str) -> str:
        return "".join(sorted(job)).strip()


def works(jobs: Jobs) -> None:
    while jobs.has_more():
        job = jobs.waiting.pop()
        jobs.done.append(jobs.work(job))


WORKERS = [works, works, works]


def setup() -> Jobs:
    return Jobs()


def holds(jobs: Jobs) -> bool:
    return len(jobs.done) == 7


def program() -> None:
    """The whole program; it raises if something went wrong."""
    state = setup()
    run_threads(state, WORKERS)
    assert holds(state)
