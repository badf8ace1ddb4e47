"""One reducer over parts of anything: what is left is interesting, and 1-minimal.

The plan asks (see `plan`), a criterion answers. No question is asked twice, however the parts came
together. With an executor, workers that would be idle run what is likely to be asked next. What is
known stays known: when the time is up or the user interrupts, the smallest set so far is the
answer, and `state` says where to go on.
"""

from __future__ import annotations

import array
import hashlib
import heapq
import itertools
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from swarmtest.core.errors import UserError
from swarmtest.reducer.criteria import Repeated
from swarmtest.reducer.plan import Plan
from swarmtest.reducer.walks import Indices

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future


Part = TypeVar("Part")


class NotInteresting(UserError):
    """The original does not meet the criterion, so that there is nothing to keep."""

    def __init__(self, reason: str = "", met: int = 0, runs: int = 1) -> None:
        told = f": {reason}" if reason else ""
        super().__init__(f"the original does not meet its own criterion{told}")
        self.met = met
        """In how many runs it did..."""
        self.runs = runs
        """...of so many."""


@dataclass(frozen=True)
class Reduction(Generic[Part]):
    """What is left, and what it took.

    >>> Reducer("haystack", lambda kept: "y" in kept).run().kept
    (2,)
    """

    parts: tuple[Part, ...]
    kept: Indices
    """Where these parts were in the original."""
    before: int
    """How many parts the original had."""
    calls: int
    """How often the criterion was asked."""
    seconds: float
    complete: bool
    """Whether nothing more can go; False when the time was up, or the user interrupted."""
    interrupted: bool
    state: dict[str, Any]
    """Where to go on, as JSON data; for `Reducer(..., state=...)`."""


@dataclass(frozen=True)
class Progress:
    """How far a reduction is."""

    size: int
    """The parts of the smallest set so far."""
    calls: int
    stage: str


class _TimeIsUp(Exception):
    """The smallest set so far is the answer."""


class Reducer(Generic[Part]):
    """Reduces parts while a criterion holds.

    `needs`: for each part the earlier ones (as indices) that it cannot do without: a part never
    goes without those that need it, and what a needed part needs is not asked about.
    `suggestions`: sets of indices that may well be interesting, the best first.
    `executor`: runs `probes` questions at a time; then the criterion is called from its workers.
    A criterion that runs things by itself may have a method `ahead`: it is given what is likely to
    be asked next, the likeliest first, as far as it wants to know.
    `checked`: whether to ask about the original first; NotInteresting if it is not.

    >>> reducer = Reducer(range(100), lambda kept: {7, 42} <= set(kept))
    >>> reducer.run().parts
    (7, 42)
    """

    def __init__(
        self,
        parts: Iterable[Part],
        criterion: Callable[[tuple[Part, ...]], bool],
        *,
        needs: Sequence[Collection[int]] = (),
        suggestions: Iterable[Collection[int]] = (),
        executor: Executor | None = None,
        probes: int = 2,
        on_progress: Callable[[Progress], None] | None = None,
        state: Mapping[str, Any] | None = None,
        checked: bool = True,
    ) -> None:
        self._parts = tuple(parts)
        self._criterion = criterion
        self._executor = executor
        self._probes = probes
        self._on_progress = on_progress
        self._content = _content(self._parts)
        self._known: dict[bytes, bool] = {}
        self._running: dict[bytes, tuple[Indices, Future[bool]]] = {}
        self._checked = checked
        self._calls = 0
        _check_needs(needs, len(self._parts))
        if state is None:
            tried = tuple(tuple(sorted(set(some))) for some in suggestions)
            self._plan = Plan.begin(len(self._parts), tried, needs)
            self._best = self._plan.kept
        else:
            self._plan = Plan.from_json(state["plan"], needs)
            self._best = tuple(state["best"])
            self._calls = state["calls"]
            self._checked = False
            if self._plan.count != len(self._parts):
                raise UserError(
                    f"the saved state is of a reduction of {self._plan.count} parts, "
                    f"not of these {len(self._parts)}"
                )

    def run(self, seconds: float | None = None) -> Reduction[Part]:
        """Reduce until nothing more can go, or for so long; may be called again to go on."""
        begun = time.monotonic()
        self._deadline = None if seconds is None else begun + seconds
        interrupted = False
        try:
            if self._checked:
                self._check_original()
            while (candidate := self._plan.candidate()) is not None:
                self._plan = self._plan.after(self._answer(candidate))
                self._tell()
        except _TimeIsUp:
            pass
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._drop_running()
        complete = self._plan.candidate() is None and not self._checked
        kept = self._plan.kept if complete else self._best
        return Reduction(
            self._chosen(kept),
            kept,
            len(self._parts),
            self._calls,
            time.monotonic() - begun,
            complete,
            interrupted,
            {"plan": self._plan.to_json(), "best": list(self._best), "calls": self._calls},
        )

    def _check_original(self) -> None:
        if not self._answer(tuple(range(len(self._parts)))):
            raise _not_interesting(self._criterion, self._parts)
        self._checked = False

    def _chosen(self, kept: Indices) -> tuple[Part, ...]:
        return tuple(self._parts[i] for i in kept)

    def _answer(self, candidate: Indices) -> bool:
        key = self._key(candidate)
        while key not in self._known:
            left = None if self._deadline is None else self._deadline - time.monotonic()
            if left is not None and left <= 0:
                raise _TimeIsUp
            if self._executor is None:
                self._tell_ahead()
                self._calls += 1
                self._learn(key, candidate, bool(self._criterion(self._chosen(candidate))))
            else:
                self._ask_workers(self._executor, key, candidate, left)
        return self._known[key]

    def _ask_workers(
        self, executor: Executor, key: bytes, candidate: Indices, left: float | None
    ) -> None:
        """Have this question answered, and as many of those to come as there are workers."""
        from concurrent.futures import wait  # few reductions have an executor

        for ahead_key, ahead in itertools.chain([(key, candidate)], self._ahead()):
            if len(self._running) >= self._probes and ahead_key != key:
                break
            if ahead_key not in self._running:
                self._calls += 1
                future = executor.submit(self._criterion, self._chosen(ahead))
                self._running[ahead_key] = ahead, future
        wait([self._running[key][1]], timeout=left)
        for done_key, (done, future) in list(self._running.items()):
            if future.done():
                del self._running[done_key]
                self._learn(done_key, done, bool(future.result()))

    def _tell_ahead(self) -> None:
        """A criterion that runs things by itself is told what is likely to be asked next."""
        ahead = getattr(self._criterion, "ahead", None)
        if ahead is not None:
            ahead(self._chosen(candidate) for _, candidate in self._ahead())

    def _ahead(self) -> Iterable[tuple[bytes, Indices]]:
        """The questions that may come, the likeliest first."""
        order = itertools.count()
        heap = [(-1.0, next(order), self._plan)]
        for _ in range(8 * self._probes):
            if not heap:
                return
            chance, _, plan = heapq.heappop(heap)
            candidate = plan.candidate()
            if candidate is None:
                continue
            key = self._key(candidate)
            if key in self._known:
                heapq.heappush(heap, (chance, next(order), plan.after(self._known[key])))
                continue
            yield key, candidate
            for works, share in ((True, plan.odds), (False, 1 - plan.odds)):
                heapq.heappush(heap, (chance * share, next(order), plan.after(works)))

    def _learn(self, key: bytes, candidate: Indices, works: bool) -> None:
        self._known[key] = works
        if works and len(candidate) < len(self._best):
            self._best = candidate

    def _drop_running(self) -> None:
        for _, future in self._running.values():
            if future.cancel():
                self._calls -= 1
        self._running.clear()

    def _key(self, candidate: Indices) -> bytes:
        content = array.array("I", (self._content[i] for i in candidate))
        return hashlib.blake2b(content.tobytes(), digest_size=16).digest()

    def _tell(self) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(len(self._best), self._calls, self._plan.stage))


def _content(parts: Sequence[object]) -> list[int]:
    """A number for each part, the same for equal parts: of the same type and the same text."""
    known: dict[tuple[type, str], list[int]] = {}
    numbers: list[int] = []
    for at, part in enumerate(parts):
        alike = known.setdefault((type(part), repr(part)), [])
        same = next((first for first in alike if parts[first] == part), at)
        if same == at:
            alike.append(at)
        numbers.append(same)
    return numbers


def _check_needs(needs: Sequence[Collection[int]], count: int) -> None:
    if needs and len(needs) != count:
        raise ValueError(f"needs of {len(needs)} parts are given, but there are {count}")
    for part, needed in enumerate(needs):
        if any(not 0 <= other < part for other in needed):
            raise ValueError(f"part {part} can only need parts before it, not {sorted(needed)}")


def _not_interesting(criterion: object, parts: tuple[Any, ...]) -> NotInteresting:
    if isinstance(criterion, Repeated):
        met = criterion.count(parts)
        return NotInteresting(criterion.told(met), met, criterion.n)
    explain = getattr(criterion, "reason", None)
    return NotInteresting(explain(parts) if explain is not None else "")


# -------------------------------------------------------------------------------------------------
# The parts that are needed, for those who have a criterion and no other wishes.


class AskedAs:
    """A criterion on one thing, for whoever answers questions on what is made of it.

    If nothing (None) is made of it, it is not interesting.

    >>> still = AskedAs(lambda text: "x" in text, "".join)
    >>> still(["a", "x"])
    True
    """

    def __init__(self, interesting: Callable[[Any], bool], make: Callable[[Any], Any]) -> None:
        self._interesting = interesting
        self._make = make

    def __call__(self, parts: Any) -> bool:
        made = self._make(parts)
        return made is not None and self._interesting(made)

    def ahead(self, many: Iterable[Any]) -> None:
        """Pass on what is likely to be asked next, to those who want to know."""
        ahead = getattr(self._interesting, "ahead", None)
        if ahead is not None:
            ahead(made for made in map(self._make, many) if made is not None)


def minimised(
    parts: Sequence[Part],
    interesting: Callable[[Sequence[Part]], bool],
    needs: Sequence[Collection[int]] = (),
) -> tuple[Part, ...]:
    """The parts that are needed, in their order; without any one of them nothing is interesting.

    `interesting` holds for `parts` themselves; that is not checked. `needs`: see `Reducer`.

    >>> minimised(range(100), lambda kept: {7, 42} <= set(kept))
    (7, 42)
    """
    found = Reducer(parts, interesting, needs=needs, checked=False).run()
    if found.interrupted:
        raise KeyboardInterrupt
    return found.parts
