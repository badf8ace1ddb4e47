"""What a single test may take."""

from __future__ import annotations

import os
from dataclasses import dataclass

from swarmtest.subjects.subject import Subject

_SECONDS = 10.0


@dataclass(frozen=True)
class Limits:
    """What a single test may take.

    >>> Limits(seconds=2.0).memory
    'auto'
    """

    seconds: float | None = None
    """Wall time of one test; one that takes longer is the fault "timeout". None: what the subject
    says, else ten seconds."""
    memory: int | str = "auto"
    """Bytes one worker may hold; 0: no limit; ``auto``: its share of the machine."""

    def seconds_of(self, subject: Subject) -> float:
        """What a test of this subject may take."""
        if self.seconds is None and subject.seconds is not None:
            # A subject that ends its tests in time needs us only where that fails.
            return subject.seconds * 1.25 + 5.0
        return self.seconds or _SECONDS

    def memory_bytes(self, workers: int) -> int:
        """The limit in bytes."""
        if isinstance(self.memory, int):
            return self.memory
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return max(2 << 30, int(machine * 0.8) // max(workers, 1))
