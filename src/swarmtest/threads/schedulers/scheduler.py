"""What decides which thread goes on."""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.threads.tasks import Task

NEVER = 1 << 60
"""More probes than any run has."""


class Scheduler:
    """Chooses the thread that goes on; one object per run.

    It is asked when the running thread comes to a probe (`asks` probes after the last time, or
    earlier when others became able to run), and when the running thread cannot go on.
    """

    asks: int = 1
    """After how many probes it wants to be asked again."""

    is_replay: bool = False
    """Whether it has to be asked at every probe that it wants to be asked at."""

    wakes: bool = False
    """Whether it may choose a thread that sleeps: as if those that are able to run were slow."""

    def choose(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """One of those that are able to run, in the order in which they were started.

        `running` is before a probe. `step`: how many probes were passed.
        """
        raise NotImplementedError

    def choose_next(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """The same, when the thread that ran had to wait or has ended.

        It may be among the others: it waited for the clock, which has been set on.
        """
        return self.choose(running, able, step)

    def wakes_now(self) -> bool:
        """Whether those that sleep are among those it chooses from, this time."""
        return False

    def stops_again(self, task: Task) -> bool:
        """Whether a thread that goes on is to be stopped once more at the same place."""
        return False

    def gave_way(self, task: Task) -> None:
        """A thread ran for so long that another one had to have its turn."""

    def notes(self) -> tuple[str, ...]:
        """What a user should know of the run, one line each."""
        return ()

    @property
    def missed(self) -> int:
        """How many switches it wanted that could not be made."""
        return 0
