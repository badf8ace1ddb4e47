"""What a run's threads did to each other: shared variables, concurrent pairs, synchronisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from swarmtest.errors import UserError, did_you_mean
from swarmtest.instrument.kinds import CONCURRENT_KINDS
from swarmtest.targets import Catalogue, Hits
from swarmtest.threads.coverage.naming import FIRST_PLACE, Naming
from swarmtest.threads.coverage.pairs import Pairs, new_pairs
from swarmtest.threads.coverage.places import Places
from swarmtest.threads.coverage.synchronisation import Synchronisation
from swarmtest.threads.raw import get_ident
from swarmtest.threads.sharing import Sharing


def _nothing(site: int, obj: Any = None) -> Any:
    return obj


class ConcurrencyCoverage:
    """Sees what the threads of a run do to each other; one object for many runs.

    - ``shared``: a variable that two threads touched, one of them writing;
    - ``pair``: two sites passed one after the other, and whether the thread changed in between;
    - ``sync``: a place of synchronisation was visited, was blocked (a thread had to wait there), or
      was blocking (a lock was taken there for which another thread had to wait).

    Hand it to `controlled_run` or `free_run`; pairs alone cost least.

    >>> from swarmtest.threads import free_run
    >>> coverage = ConcurrencyCoverage(["pair"])
    >>> free_run(lambda: None, coverage=coverage).hits.targets()
    []
    """

    def __init__(self, kinds: Iterable[str] = CONCURRENT_KINDS) -> None:
        self.kinds = tuple(kinds)
        for kind in self.kinds:
            if kind not in CONCURRENT_KINDS:
                raise UserError(
                    f"concurrency coverage: no kind {kind!r}{did_you_mean(kind, CONCURRENT_KINDS)}"
                )
        self.catalogue = Catalogue()
        self._places = Places()
        self._known_places = self._places.numbers
        self._naming = Naming(self.catalogue, self._places)
        self._pairs = new_pairs() if "pair" in self.kinds else None
        self._sync = Synchronisation(self._places) if "sync" in self.kinds else None
        self.sees_locks = self._sync is not None
        self._sharing: Sharing | None = None
        self.reset()

    # What a run tells.

    def reset(self) -> None:
        """A run begins."""
        if self._pairs is not None:
            self._pairs.reset(None)
        if self._sync is not None:
            self._sync.reset()
        if "shared" in self.kinds:
            self._sharing = Sharing()
            self._sharing.began(get_ident())

    def watching(self, access: Callable[..., Any] | None) -> Callable[..., Any]:
        """A probe that does what the policy's own does, if anything, and notes what is needed."""
        if self._sharing is not None:
            access = self._sharing.watching(access)
        if self._pairs is not None:
            self._pairs.reset(access)
            access = self._pairs.access
        return access or _nothing

    def began(self, ident: int) -> None:
        """A thread begins."""
        if self._pairs is not None:
            self._pairs.began(ident)
        if self._sharing is not None:
            self._sharing.began(ident)

    def visits(self, kind: str, frame: FrameType) -> None:
        """This thread is about to synchronise."""
        key = id(frame.f_code), frame.f_lasti, kind
        place = self._known_places.get(key)  # a call less for what happens most
        if place is None:
            place = self._places.number(kind, frame)
        if self._pairs is not None:
            self._pairs.passes(FIRST_PLACE + place)
        if self._sync is not None:
            self._sync.visits(place)
        if self._sharing is not None:
            self._sharing.synchronises()

    def pairs_alone(self) -> Pairs | None:
        """What notes pairs, if nothing else is asked for."""
        return self._pairs if self.kinds == ("pair",) else None

    def site_of(self, kind: str, frame: FrameType) -> int:
        """The number under which a place of synchronisation takes part in pairs."""
        return FIRST_PLACE + self._places.number(kind, frame)

    def gives(self) -> None:
        """This thread lets others know what it has made, and may be woken."""
        if self._sharing is not None:
            self._sharing.synchronises()

    def takes(self, lock: Any) -> None:
        """This thread has taken a lock."""
        if self._sync is not None:
            self._sync.takes(lock)

    def waits(self, kind: str, waiting: Any) -> None:
        """This thread has to wait."""
        if self._sync is not None:
            self._sync.waits(kind, waiting)

    # What it comes to.

    def take(self) -> Hits:
        """What the last run reached."""
        naming = self._naming
        numbers: list[int] = []
        if self._pairs is not None:
            numbers += map(naming.pair, self._pairs.pairs())
        if self._sync is not None:
            numbers += map(naming.state, self._sync.seen())
        if self._sharing is not None:
            numbers += map(naming.shared, self._sharing.shared())
        return Hits.of(self.catalogue, numbers)
