"""Recording: which variables the threads of a run share, and where they touch them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from swarmtest.threads.free_policy import FreePolicy
from swarmtest.threads.sharing import Sharing, Variable
from swarmtest.threads.sites import SITES
from swarmtest.threads.tasks import Task


class Recording(FreePolicy):
    """The policy of a profiling run: one to three of them tell where threads can meet at all.

    >>> from swarmtest.threads import free_run
    >>> recording = Recording()
    >>> _ = free_run(lambda: None, recording)
    >>> recording.shared()
    []
    """

    def __init__(self) -> None:
        super().__init__()
        self._sharing = Sharing()
        self.touches = self._sharing.touches

    def begins(self, task: Task) -> None:
        """A thread begins."""
        self._sharing.began(task.ident)

    def before(self, kind: str) -> None:
        """A thread synchronises: what it has made is known to others from now on."""
        self._sharing.synchronises()

    def access(self, site: int, obj: Any = None) -> Any:
        """A thread touches a variable."""
        self.touches(site, obj)
        return obj

    @property
    def passed(self) -> set[int]:
        """All sites that threads of the run came to."""
        return self._sharing.passed

    def shared(self) -> list[Variable]:
        """The variables that threads share."""
        return self._sharing.shared()


def shared_sites(recordings: Iterable[Recording]) -> frozenset[int]:
    """The sites at which variables are touched that threads share, by any of the recordings.

    A site that no recording came to counts if it touches a variable of the same name. Hand them to
    `Noise(shared=...)` or to `controlled_run(sites=...)`.
    """
    recordings = list(recordings)
    found = {site for each in recordings for one in each.shared() for site in one.sites}
    passed = set().union(*(each.passed for each in recordings))
    names = {_variable(site) for site in found}
    unknown = (site for site in range(len(SITES)) if site not in passed)
    return frozenset(found).union(site for site in unknown if _variable(site) in names)


def _variable(site: int) -> tuple[str, str, str]:
    place = SITES[site]
    name = place.name if place.kind != "call" else place.variable
    return place.path, place.what, name or place.variable
