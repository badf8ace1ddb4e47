"""Reduce the parts of anything: what is left is interesting and 1-minimal.

The plan (see `swarmtest.reducer.plan`) asks questions, and a criterion answers them. No question is
asked twice, also if the same parts are reached in different ways. With an executor, idle workers
run what is likely to be asked next. Answers are never lost: if the time is up or the user
interrupts, the smallest set so far is the result, and `state` says where to continue.
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
from swarmtest.reducer.plan import ReductionPlan
from swarmtest.reducer.walks import Indices

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future


Part = TypeVar("Part")


class NotInteresting(UserError):
    """The original does not meet the criterion, so there is nothing to keep."""

    def __init__(self, reason: str = "", met: int = 0, runs: int = 1) -> None:
        why = f": {reason}" if reason else ""
        super().__init__(f"the original does not meet its own criterion{why}")
        self.met = met
        """In how many runs it met the criterion."""
        self.runs = runs
        """How many runs were made."""


@dataclass(frozen=True)
class Reduction(Generic[Part]):
    """The result of a reduction, and what it cost.

    >>> Reducer("haystack", lambda kept: "y" in kept).run().kept
    (2,)
    """

    parts: tuple[Part, ...]
    kept: Indices
    """The indices of these parts in the original."""
    before: int
    """How many parts the original had."""
    calls: int
    """How often the criterion was called."""
    seconds: float
    complete: bool
    """Whether nothing more can be removed; False if the time was up or the user interrupted."""
    interrupted: bool
    state: dict[str, Any]
    """Where to continue, as JSON data for `Reducer(..., state=...)`."""


@dataclass(frozen=True)
class ReducerProgress:
    """The progress of a reduction."""

    size: int
    """How many parts the smallest set so far has."""
    calls: int
    stage: str


class _TimeIsUp(Exception):
    """The time is up; the smallest set so far is the result."""


class Reducer(Generic[Part]):
    """A reducer of parts while a criterion holds.

    - `needs` has, for each part, the indices of the earlier parts that it needs. A part is only
      removed together with those that need it, and what a needed part needs is not asked about.
    - `suggestions` are sets of indices that are likely to be interesting, the best first.
    - `executor` runs `probes` questions at a time; its workers then call the criterion.
    - `checked` says whether to ask about the original first; if that is not interesting, `run`
      raises NotInteresting.

    A criterion that runs tests by itself may have a method `ahead`. It receives an iterable of what
    is likely to be asked next, the likeliest first, and takes as many as it wants.

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
        on_progress: Callable[[ReducerProgress], None] | None = None,
        state: Mapping[str, Any] | None = None,
        checked: bool = True,
    ) -> None:
        self._parts = tuple(parts)
        self._criterion = criterion
        self._executor = executor
        self._probes = probes
        self._on_progress = on_progress
        self._content_numbers = _content_numbers(self._parts)
        self._answers: dict[bytes, bool] = {}
        self._running: dict[bytes, tuple[Indices, Future[bool]]] = {}
        self._checked = checked
        self._calls = 0
        _check_needs(needs, len(self._parts))
        if state is None:
            tried = tuple(tuple(sorted(set(suggestion))) for suggestion in suggestions)
            self._plan = ReductionPlan.begin(len(self._parts), tried, needs)
            self._best = self._plan.kept
        else:
            self._plan = ReductionPlan.from_json(state["plan"], needs)
            self._best = tuple(state["best"])
            self._calls = state["calls"]
            self._checked = False
            if self._plan.count != len(self._parts):
                raise UserError(
                    f"the saved state is of a reduction of {self._plan.count} parts, "
                    f"not of these {len(self._parts)}"
                )

    def run(self, seconds: float | None = None) -> Reduction[Part]:
        """Reduce until nothing more can be removed, or for `seconds`.

        It may be called again to continue.
        """
        begun = time.monotonic()
        self._deadline = None if seconds is None else begun + seconds
        interrupted = False
        try:
            if self._checked:
                self._check_original()
            while (candidate := self._plan.candidate()) is not None:
                self._plan = self._plan.after(self._answer(candidate))
                self._report_progress()
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
        while key not in self._answers:
            left = None if self._deadline is None else self._deadline - time.monotonic()
            if left is not None and left <= 0:
                raise _TimeIsUp
            if self._executor is None:
                self._announce_candidates()
                self._calls += 1
                self._record(key, candidate, bool(self._criterion(self._chosen(candidate))))
            else:
                self._ask_workers(self._executor, key, candidate, left)
        return self._answers[key]

    def _ask_workers(
        self, executor: Executor, key: bytes, candidate: Indices, left: float | None
    ) -> None:
        """Have this question answered, and as many likely next ones as there are workers."""
        from concurrent.futures import wait  # few reductions have an executor

        for ahead_key, ahead in itertools.chain([(key, candidate)], self._likely_questions()):
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
                self._record(done_key, done, bool(future.result()))

    def _announce_candidates(self) -> None:
        """Give the likely next questions to a criterion that wants to run them ahead."""
        ahead = getattr(self._criterion, "ahead", None)
        if ahead is not None:
            ahead(self._chosen(candidate) for _, candidate in self._likely_questions())

    def _likely_questions(self) -> Iterable[tuple[bytes, Indices]]:
        """Yield the questions that may come next, the likeliest first."""
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
            if key in self._answers:
                heapq.heappush(heap, (chance, next(order), plan.after(self._answers[key])))
                continue
            yield key, candidate
            for works, share in ((True, plan.odds), (False, 1 - plan.odds)):
                heapq.heappush(heap, (chance * share, next(order), plan.after(works)))

    def _record(self, key: bytes, candidate: Indices, works: bool) -> None:
        self._answers[key] = works
        if works and len(candidate) < len(self._best):
            self._best = candidate

    def _drop_running(self) -> None:
        for _, future in self._running.values():
            if future.cancel():  # it never ran, so it is not a call
                self._calls -= 1
        self._running.clear()

    def _key(self, candidate: Indices) -> bytes:
        """Return the same key for candidates with equal parts, whichever indices they have."""
        content = array.array("I", (self._content_numbers[i] for i in candidate))
        return hashlib.blake2b(content.tobytes(), digest_size=16).digest()

    def _report_progress(self) -> None:
        if self._on_progress is not None:
            self._on_progress(ReducerProgress(len(self._best), self._calls, self._plan.stage))


def _content_numbers(parts: Sequence[object]) -> list[int]:
    """Return a number for each part, equal for parts of equal value, type and text."""
    same_text: dict[tuple[type, str], list[int]] = {}
    numbers: list[int] = []
    for index, part in enumerate(parts):
        alike = same_text.setdefault((type(part), repr(part)), [])
        same = next((first for first in alike if parts[first] == part), index)
        if same == index:
            alike.append(index)
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
        return NotInteresting(criterion.why_not(met), met, criterion.n)
    explain = getattr(criterion, "reason", None)
    return NotInteresting(explain(parts) if explain is not None else "")


class ConvertedCriterion:
    """A criterion on what `make` builds from the parts.

    Parts from which nothing can be built (None) are not interesting.

    >>> still = ConvertedCriterion(lambda text: "x" in text, "".join)
    >>> still(["a", "x"])
    True
    """

    def __init__(self, interesting: Callable[[Any], bool], make: Callable[[Any], Any]) -> None:
        self._interesting = interesting
        self._make = make

    def __call__(self, parts: Any) -> bool:
        built = self._make(parts)
        return built is not None and self._interesting(built)

    def ahead(self, many: Iterable[Any]) -> None:
        """Pass on what is likely to be asked next, if the inner criterion wants to know."""
        ahead = getattr(self._interesting, "ahead", None)
        if ahead is not None:
            ahead(built for built in map(self._make, many) if built is not None)


def minimised(
    parts: Sequence[Part],
    interesting: Callable[[Sequence[Part]], bool],
    needs: Sequence[Collection[int]] = (),
) -> tuple[Part, ...]:
    """Minimise parts under a yes/no criterion; return the needed parts in their order.

    Without any one of them the rest is not interesting. `interesting` holds for `parts` themselves,
    which is not checked. For `needs`, see `Reducer`.

    >>> minimised(range(100), lambda kept: {7, 42} <= set(kept))
    (7, 42)
    """
    reduction = Reducer(parts, interesting, needs=needs, checked=False).run()
    if reduction.interrupted:
        raise KeyboardInterrupt
    return reduction.parts
