"""What every way of collecting coverage offers: an environment to run in, and hits afterwards."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from swarmtest.instrument.native.process import Ended
from swarmtest.targets import Hits


class Collected(NamedTuple):
    """The hits of one test; or why there are none.

    >>> Collected(None, "the program was killed").missing
    'the program was killed'
    """

    hits: Hits | None
    missing: str = ""
    """Why coverage is missing or, beside hits, why it is not all; empty when it is all there."""


class Collector(Protocol):
    """Collects coverage test by test, for the process that made it."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the program has to see."""

    @property
    def extra_memory(self) -> int:
        """Address space that the program needs for its coverage."""

    def collect(self, ended: Ended) -> Collected:
        """What the program which has just ended reached; the next test starts from nothing."""

    def close(self) -> None:
        """Remove what was made."""


class NoCoverage:
    """Runs are run, nothing is collected.

    >>> NoCoverage().collect(Ended(0, False))
    Collected(hits=None, missing='coverage is off')
    """

    environment: dict[str, str] = {}
    extra_memory = 0

    def collect(self, ended: Ended) -> Collected:
        """Nothing, and why."""
        return Collected(None, "coverage is off")

    def close(self) -> None:
        """Nothing was made."""
