"""Concurrency coverage: what the threads of a run did to each other.

There are three kinds of targets: shared variables, pairs of sites passed one after the other, and
states of synchronisation places. `ConcurrencyCoverage` combines their recorders and names what they
saw as targets that lie in files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, Protocol

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.targets import Catalogue, Hits, Source, Target
from swarmtest.coverage.kinds import CONCURRENT_KINDS
from swarmtest.coverage.scope import shown_path
from swarmtest.race.accelerator import accelerator
from swarmtest.race.coverage.shared_variables import Sharing, Variable
from swarmtest.race.primitives.frames import user_frame
from swarmtest.race.primitives.policy import get_ident, woven_namespaces
from swarmtest.race.weaving.sites import SITES


class ConcurrencyCoverage:
    """A recorder of what the threads of a run do to each other; it serves many runs.

    - ``shared``: a variable that two threads touched, one of them writing;
    - ``pair``: two sites passed one after the other, and whether the thread changed in between;
    - ``sync``: a place of synchronisation was visited, was blocked (a thread had to wait there), or
      was blocking (a lock was acquired there that another thread had to wait for).

    Pass it to `controlled_run` or `free_run`. Recording only pairs is the cheapest.

    >>> from swarmtest.race.free.runner import free_run
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
        self._places = SyncPlaces()
        self._known_places = self._places.numbers
        self._naming = TargetNaming(self.catalogue, self._places)
        self._pairs = new_pairs() if "pair" in self.kinds else None
        self._sync = Synchronisation(self._places) if "sync" in self.kinds else None
        self.sees_locks = self._sync is not None
        self._sharing: Sharing | None = None
        self.reset()

    # What a run reports.

    def reset(self) -> None:
        """Prepare for a new run."""
        if self._pairs is not None:
            self._pairs.reset(None)
        if self._sync is not None:
            self._sync.reset()
        if "shared" in self.kinds:
            self._sharing = Sharing()
            self._sharing.began(get_ident())

    def watching(self, access: Callable[..., Any] | None) -> Callable[..., Any]:
        """Return a probe that calls the policy's own probe, if any, and records what is needed."""
        if self._sharing is not None:
            access = self._sharing.watching(access)
        if self._pairs is not None:
            self._pairs.reset(access)
            access = self._pairs.access
        return access or _plain_access

    def began(self, ident: int) -> None:
        """Note that a thread begins."""
        if self._pairs is not None:
            self._pairs.began(ident)
        if self._sharing is not None:
            self._sharing.began(ident)

    def visits(self, kind: str, frame: FrameType) -> None:
        """Note that this thread is about to synchronise."""
        key = id(frame.f_code), frame.f_lasti, kind
        place = self._known_places.get(key)  # saves a call in the most frequent case
        if place is None:
            place = self._places.number(kind, frame)
        if self._pairs is not None:
            self._pairs.passes(FIRST_PLACE + place)
        if self._sync is not None:
            self._sync.visits(place)
        if self._sharing is not None:
            self._sharing.synchronises()

    def pairs_alone(self) -> PairRecorder | None:
        """Return the recorder of pairs if no other kind is recorded, else None."""
        return self._pairs if self.kinds == ("pair",) else None

    def site_of(self, kind: str, frame: FrameType) -> int:
        """Return the number that a place of synchronisation has in pairs."""
        return FIRST_PLACE + self._places.number(kind, frame)

    def gives(self) -> None:
        """Note that this thread makes what it has built visible to others."""
        if self._sharing is not None:
            self._sharing.synchronises()

    def takes(self, lock: Any) -> None:
        """Note that this thread has acquired a lock."""
        if self._sync is not None:
            self._sync.takes(lock)

    def waits(self, kind: str, waiting: Any) -> None:
        """Note that this thread has to wait."""
        if self._sync is not None:
            self._sync.waits(kind, waiting)

    # The result of a run.

    def take(self) -> Hits:
        """Return the targets that the last run reached."""
        naming = self._naming
        numbers: list[int] = []
        if self._pairs is not None:
            numbers += map(naming.pair, self._pairs.pairs())
        if self._sync is not None:
            numbers += map(naming.state, self._sync.seen())
        if self._sharing is not None:
            numbers += map(naming.shared, self._sharing.shared())
        return Hits.of(self.catalogue, numbers)


def _plain_access(site: int, obj: Any = None) -> Any:
    return obj


# Pairs of sites.

SITE_BITS = 24
_MASK = (1 << SITE_BITS) - 1

Access = Callable[..., Any]


class PairRecorder(Protocol):
    """A recorder of pairs of sites, with one implementation in C and one in Python."""

    access: Access
    """The probe. It calls the inner probe if there is one, during which other threads may run,
    and then notes the site."""

    def reset(self, inner: Access | None) -> None:
        """Forget all pairs; call the inner probe before each site is noted."""

    def passes(self, site: int) -> None:
        """Note a site at which there is no probe."""

    def began(self, ident: int) -> None:
        """Note that a thread with this identity begins."""

    def pairs(self) -> list[int]:
        """Return the pairs that were passed, as numbers that `parts_of` takes apart."""


class PythonPairRecorder:
    """A recorder of pairs without the accelerator."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._last: list[int] = [-1, 0]
        """The last site and its thread; an identity may be given to another thread later."""
        self._note: Access
        self.access: Access = self._probe(None)

    def reset(self, inner: Access | None) -> None:
        """Forget all pairs; call the inner probe before each site is noted."""
        self._seen.clear()
        self._last[:] = [-1, 0]
        self.access = self._probe(inner)

    def began(self, ident: int) -> None:
        """Note that a thread with this identity begins."""
        if self._last[1] == ident:
            self._last[1] = 0

    def pairs(self) -> list[int]:
        """Return the pairs that were passed."""
        return list(self._seen)

    def passes(self, site: int) -> None:
        """Note a site at which there is no probe."""
        self._note(site)

    def _probe(self, inner: Access | None) -> Access:
        last, seen, ident = self._last, self._seen, get_ident

        def access(site: int, obj: Any = None) -> Any:
            if inner is not None:
                inner(site, obj)
            thread = ident()
            before, last_thread = last
            if before >= 0:
                # 25 is SITE_BITS + 1, as a literal because this is the fast path.
                seen.add(before << 25 | site << 1 | (thread != last_thread))
            last[0], last[1] = site, thread
            return obj

        if inner is None:
            self._note = access
        return access


def new_pairs() -> PairRecorder:
    """Return a recorder of pairs in the fastest implementation that is available."""
    module = accelerator()
    pairs: PairRecorder = PythonPairRecorder() if module is None else module.Pairs()
    return pairs


def parts_of(pair: int) -> tuple[int, int, bool]:
    """Return the first site, the second site, and whether the thread changed.

    >>> parts_of(3 << 25 | 5 << 1 | 1)
    (3, 5, True)
    """
    return pair >> (SITE_BITS + 1), pair >> 1 & _MASK, bool(pair & 1)


# Places of synchronisation.


class SyncPlace(NamedTuple):
    """An instruction that synchronises."""

    code: CodeType
    instruction: int
    kind: str
    """The operation: ``lock.acquire``, ``queue.get``."""

    @property
    def line(self) -> int:
        """The line that it is on."""
        for begin, end, line in self.code.co_lines():
            if begin <= self.instruction < end and line is not None:
                return line
        return self.code.co_firstlineno


class SyncPlaces:
    """All places seen so far, each with a small number.

    They are looked up at each synchronisation, so the key is made of what the caller has at hand.
    """

    def __init__(self) -> None:
        self._places: list[SyncPlace] = []
        self.numbers: dict[tuple[int, int, str], int] = {}
        """The numbers by the id of the code, the instruction, and the operation."""

    def number(self, kind: str, frame: FrameType) -> int:
        """Return the number of the place where a frame is."""
        code, instruction = frame.f_code, frame.f_lasti
        number = self.numbers.get((id(code), instruction, kind))
        if number is None:
            number = len(self._places)
            self._places.append(SyncPlace(code, instruction, kind))  # keeps the code's id in use
            self.numbers[id(code), instruction, kind] = number
        return number

    def __getitem__(self, number: int) -> SyncPlace:
        return self._places[number]


STATES = ("visited", "blocked", "blocking")
_BLOCKED, _BLOCKING = 1, 2


class Synchronisation:
    """A recorder of what happens at places of synchronisation during one run.

    A place is visited when a thread reaches it, blocked when a thread has to wait there, and
    blocking when a lock was acquired there that another thread has to wait for.
    """

    def __init__(self, places: SyncPlaces) -> None:
        self._places = places
        self._seen: set[int] = set()
        self._at: dict[int, int] = {}
        self._taken: dict[Any, int] = {}

    def reset(self) -> None:
        """Forget everything."""
        self._seen.clear()
        self._at.clear()
        self._taken.clear()

    def seen(self) -> set[int]:
        """Return what happened, as numbers: four times the place plus the index of the state."""
        return self._seen

    def visits(self, place: int) -> None:
        """Note that this thread is about to synchronise."""
        self._seen.add(place << 2)
        self._at[get_ident()] = place

    def takes(self, lock: Any) -> None:
        """Note that this thread has acquired a lock."""
        place = self._at.get(get_ident())
        if place is not None:
            self._taken[lock] = place

    def waits(self, kind: str, waiting: Any) -> None:
        """Note that this thread has to wait."""
        frame = user_frame(sys._getframe(1))
        if frame is None:
            return
        place = self._places.number(kind, frame)
        if place << 2 not in self._seen:
            return  # a library waits for its own purposes
        self._seen.add(place << 2 | _BLOCKED)
        taken = self._taken.get(waiting) if kind.endswith(".acquire") else None
        if taken is not None:
            self._seen.add(taken << 2 | _BLOCKING)


# Naming targets.

FIRST_PLACE = 1 << 23
"""Places of synchronisation are numbered from here on in pairs, after the sites of accesses."""


class TargetNaming:
    """The catalogue numbers of what was covered; each target is named once."""

    def __init__(self, catalogue: Catalogue, places: SyncPlaces) -> None:
        self._places = places
        self._catalogue = catalogue
        self._sources: dict[str, Source] = {}
        self._pairs: dict[int, int] = {}
        self._states: dict[int, int] = {}

    def pair(self, pair: int) -> int:
        """Return the catalogue's number of a pair."""
        number = self._pairs.get(pair)
        if number is None:
            first, second, changed = parts_of(pair)
            path, line, function, words = self._describe(first)
            other, other_line, _, other_words = self._describe(second)
            then = "then another thread:" if changed else "then"
            name = f"{line} {words} {then} {other}:{other_line} {other_words}"
            target = self._source(path).target("pair", name, line, function)
            number = self._pairs[pair] = self._catalogue.number(target)
        return number

    def state(self, seen: int) -> int:
        """Return the catalogue's number of what happened at a place of synchronisation."""
        number = self._states.get(seen)
        if number is None:
            path, line, function, words = self._describe(FIRST_PLACE + (seen >> 2))
            name = f"{line} {words} {STATES[seen & 3]}"
            target = self._source(path).target("sync", name, line, function)
            number = self._states[seen] = self._catalogue.number(target)
        return number

    def shared(self, variable: Variable) -> int:
        """Return the catalogue's number of a shared variable."""
        first = min((SITES[site] for site in variable.sites), key=lambda site: site.line)
        source = self._source(first.path)
        name = variable.label.removeprefix(f"{first.path}:")
        target: Target = source.target("shared", name, first.line, first.function)
        return self._catalogue.number(target)

    def _describe(self, number: int) -> tuple[str, int, str, str]:
        """Return a site's path, line, function, and what it does."""
        if number < FIRST_PLACE:
            site = SITES[number]
            return site.path, site.line, site.function, f"{site.kind} {site.variable}"
        place = self._places[number - FIRST_PLACE]
        code = place.code
        path = shown_path(code.co_filename)
        if path not in self._sources:
            self._read(path, code.co_filename)
        function = "" if code.co_name == "<module>" else code.co_qualname
        return path, place.line, function, place.kind

    def _source(self, path: str) -> Source:
        if path not in self._sources:
            for namespace in woven_namespaces():
                file = namespace.get("__file__")
                if file and shown_path(file) == path:
                    return self._read(path, file)
            return self._read(path, "")
        return self._sources[path]

    def _read(self, path: str, file: str) -> Source:
        source_path = Path(file)
        text = source_path.read_text(errors="replace") if file and source_path.is_file() else ""
        source = self._sources[path] = Source(path, text, file)
        self._catalogue.add_source(source)
        return source
