"""What every engine offers: where trials run. Which worker runs what never changes a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from swarmtest.store import WorkerRecord


@dataclass(frozen=True)
class BatchShape:
    """How much an engine wants at once, and how long it may take to end.

    >>> BatchShape().seconds
    0.2
    """

    seconds: float = 0.2
    """What a batch should take."""
    learning_seconds: float = 0.05
    """The same for a strategy that learns: what is out was asked for before it learnt more."""
    largest: int = 5000
    largest_told: int = 64
    """Proposals in a batch: they must fit a socket's buffer, or both ends might wait for each
    other."""
    grace: float = 0.8
    """Seconds for the last rows once it is told to stop."""


class Engine(Protocol):
    """Where trials run."""

    rate: float
    """Tests per second of one worker, lately; 0 while unknown."""
    deaf_to_interrupts: bool
    """Whether tests run elsewhere, so that Ctrl-C can wait for a good moment here."""
    shape: BatchShape

    @property
    def slots(self) -> int:
        """How many tests run at once."""

    @property
    def hungry(self) -> int:
        """How many batches could be handed over now."""

    @property
    def busy(self) -> bool:
        """Whether any batch is out."""

    @property
    def condition(self) -> str:
        """What somebody who waits should know; empty if all is well."""

    @property
    def notes(self) -> Sequence[str]:
        """What a user should know when it is over."""

    def workers(self) -> list[WorkerRecord]:
        """Who works, and how they do."""

    def feed(self, trials: list[int], told: list[Any] | None) -> None:
        """Hand over a batch; `told` are the proposals of a strategy that learns."""

    def collect(self, timeout: float) -> list[Any]:
        """The batches of rows that came back within `timeout` seconds; perhaps none."""

    def stop(self) -> None:
        """Finish the tests at hand and drop the rest."""

    def close(self) -> None:
        """End everything that the engine started."""
