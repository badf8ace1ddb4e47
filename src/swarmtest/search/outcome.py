"""What came of a search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from swarmtest.search.stopping import SearchProgress
from swarmtest.store import FaultRecord


@dataclass(frozen=True)
class SearchOutcome:
    """What came of a search.

    >>> SearchOutcome(1, "store.db", SearchProgress(visits=8), [], "all points explored").best
    """

    campaign: int
    store: str
    progress: SearchProgress
    faults: list[FaultRecord]
    reason: str
    """Why it stopped."""
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def best(self) -> dict[str, Any] | None:
        """The best point's values by dimension; None if nothing was run."""
        return self.progress.best
