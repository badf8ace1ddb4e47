"""The search itself: ask for a point, run its test, keep what came of it, tell the engine."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from swarmtest.campaign.executors.worker import tell
from swarmtest.core.errors import UserError
from swarmtest.core.result import Result, Verdict
from swarmtest.languages.user_objects import refuse_during_import
from swarmtest.search.engines.engine import SpaceExhausted
from swarmtest.search.engines.names import as_engine
from swarmtest.search.executors.command import TaskLike, task_of
from swarmtest.search.exploration import EarlierVisit, Recording, earlier_visits
from swarmtest.search.results import Combine, Fitness, combination_of, combined, status_of
from swarmtest.search.space import SearchSpace, number_of
from swarmtest.search.stopping import SearchProgress, Stopping
from swarmtest.search.visits import UnderWay, Visit, Visits
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord
from swarmtest.strategies.strategy import LearningStrategy, Strategy, strategy_text

# -------------------------------------------------------------------------------------------------
# What came of a search.


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


# -------------------------------------------------------------------------------------------------

_SHOW_SECONDS = 0.1

Show: TypeAlias = Callable[[SearchProgress, list[FaultRecord]], None]


class Search:
    """One space, one engine, one campaign of a store whose configurations are points.

    `engine` is a name (``random``, ``sequential``, ``climb``, ``optuna:sampler=tpe``) or a
    strategy. `fitness` says what is good (`Fitness`). A search ends after `points`, `seconds`, at a
    fitness of `reach`, at a number of `faults`, when the function `when` says so, on Ctrl-C, or
    when the engine has nothing left. `before` and `after` are tasks around the whole search.
    `workers`: so many points are visited at a time, each in a process of its own; the points and
    seeds are the same, unless the engine learns. `file`: where the space was read from.

    Where a test is repeated, all results are kept, unless `keep` is ``combined``; the engine is
    told one, combined as `combine` says: ``cumulated``, ``best``, ``worst`` or a function.

    >>> from swarmtest import Integer, SearchSpace, Test
    >>> def sell(threads): return {"sold": 150 + threads // 3}
    >>> space = SearchSpace([Integer("threads", 1, 4), Test("test", ["sell"])], {"sell": sell})
    >>> outcome = Search(space, "random", fitness="sold", store=":memory:").run()
    >>> outcome.progress.points, outcome.progress.best_score, outcome.reason
    (4, (151.0,), 'all 4 points are explored')
    """

    def __init__(
        self,
        space: SearchSpace,
        engine: str | Strategy = "random",
        *,
        fitness: str | Callable[[Result], Any] = "hits",
        points: int | None = None,
        seconds: float | None = None,
        reach: float | None = None,
        faults: int | None = None,
        when: Callable[[Result], bool] | None = None,
        before: TaskLike | None = None,
        after: TaskLike | None = None,
        combine: str | Combine = "cumulated",
        keep: str = "all",
        seed: int = 0,
        workers: int = 1,
        store: str | Store | None = None,
        file: str = "",
        on_progress: Show | None = None,
    ) -> None:
        self.space = space
        self.engine = as_engine(engine)
        self.fitness = fitness if isinstance(fitness, Fitness) else Fitness(fitness)
        self.stopping = Stopping(points, seconds, reach, faults, when)
        self._before = task_of(before) if before is not None else None
        self._after = task_of(after) if after is not None else None
        self._combine = combination_of(combine, self.fitness)
        if keep not in ("all", "combined"):
            raise UserError(f"keep is all or combined, not {keep!r}")
        self._keep = keep
        self._combine_name = combine if isinstance(combine, str) else ""
        self.seed = seed
        if workers < 1:
            raise UserError(f"a search has at least 1 worker, not {workers}")
        self.workers = workers
        self._store = store
        self._file = file
        self._show = on_progress or (lambda progress, faults: None)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.progress = SearchProgress()
        self._seen: set[int] = set()

    def run(self, resume: int | None = None) -> SearchOutcome:
        """Search until a limit is reached, the engine has nothing left, or Ctrl-C.

        `resume` is the number of a campaign of the same search that goes on where it stopped.
        """
        refuse_during_import()
        self._begin_anew()
        self._prepare()
        if self._before is not None:
            self._before.perform(None)
        try:
            with self._opened() as store:
                visits = {} if resume is None else earlier_visits(store, resume, self.record())
                campaign = store.add_campaign(self.record()) if resume is None else resume
                return self._run(store, campaign, visits)
        finally:
            if self._after is not None:
                self._after.perform(None)

    def record(self) -> CampaignRecord:
        """How a store keeps it, before it has run."""
        told = {
            "fitness": self.fitness.text,
            "keep": self._keep,
            "forbid": [predicate.text for predicate in self.space.forbidden],
            **self.stopping.to_json(),
        }
        told |= {"combine": self._combine_name} if self._combine_name else {}
        told |= {"file": self._file} if self._file else {}
        told |= {"workers": self.workers} if self.workers > 1 else {}
        return CampaignRecord(
            subject=self.space.name,
            strategy=strategy_text(self.engine),
            seed=self.seed,
            space=self.space.to_json(),
            options={"subject": None, "budget": {}, "coverage": None, "search": told},
            created=time.time(),
        )

    def _prepare(self) -> None:
        if hasattr(self.engine, "fitness"):
            self.engine.fitness = self.fitness
        if hasattr(self.engine, "prepare"):
            self.engine.prepare(self.space)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Store]:
        given = self._store
        store = open_store(given) if given is None or isinstance(given, str) else given
        try:
            yield store
        finally:
            if store is not given:
                store.close()

    def _run(self, store: Store, campaign: int, earlier: dict[int, EarlierVisit]) -> SearchOutcome:
        recording = Recording(store, campaign, self.space, self.engine, self.seed)
        self._visits = Visits(
            self.space, recording.worker.propose, self._keep == "combined", self.workers
        )
        reason, status = "", "interrupted"
        try:
            if earlier:
                recording.recorder.load()
                self._relive(recording, earlier)
                self.progress.seconds = store.campaign(campaign).wall_seconds
            reason = self._loop(recording)
            status = "interrupted" if reason == "interrupted" else "finished"
        finally:
            recorder = recording.recorder
            recorder.flush()
            recorder.progress.wall_seconds = self.progress.seconds
            recorder.keep_times(status=status)
        notes = [*recorder.notes, *getattr(self.engine, "notes", ())]
        interrupted = reason == "interrupted"
        faults = store.faults(campaign)
        return SearchOutcome(campaign, store.url, self.progress, faults, reason, interrupted, notes)

    def _loop(self, recording: Recording) -> str:
        self._shown = 0.0
        self._began = time.monotonic() - self.progress.seconds
        try:
            reason = self._alone(recording) if self.workers == 1 else self._together(recording)
        except SpaceExhausted as end:
            reason = str(end)
            if not self.progress.visits:
                raise UserError(f"nothing was run: {reason}; no point is allowed") from None
        except KeyboardInterrupt:
            reason = "interrupted"
        self._show(self.progress, [])
        return reason

    def _alone(self, recording: Recording) -> str:
        """One visit after the other, in this process."""
        reason = self.stopping.reached(self.progress)
        while not reason:
            visit = self._visits.next()
            reason = self._done(recording, visit, self._results(visit))
        return reason

    def _together(self, recording: Recording) -> str:
        """Several visits at a time, each in a process of its own."""
        reason = self.stopping.reached(self.progress)
        under_way = UnderWay(self.workers)
        try:
            while True:
                exhausted = "" if reason else self._begin_some(recording, under_way)
                if not under_way:
                    if reason:
                        return reason
                    raise SpaceExhausted(exhausted)
                for visit, results in under_way.finished():
                    reason = self._done(recording, visit, results) or reason
        finally:
            under_way.end()

    def _begin_some(self, recording: Recording, under_way: UnderWay) -> str:
        """As many visits as there is room for; why no more, if the engine has nothing left now."""
        while under_way.has_room and not self._visits.are_begun(self.stopping.points):
            try:
                visit = self._visits.next()
            except SpaceExhausted as end:
                return str(end)
            under_way.begin(visit, functools.partial(self._results, visit))
        return ""

    def _done(self, recording: Recording, visit: Visit, results: list[Result]) -> str:
        """Keep what came of a visit, and learn from it; why the search ends now, if it does."""
        result, new = self._kept(recording, visit, results)
        self.progress.seconds = time.monotonic() - self._began
        if isinstance(self.engine, LearningStrategy):
            tell(self.engine, [result])
        said = self.stopping.when is not None and self.stopping.when(result)
        if new or time.monotonic() - self._shown > _SHOW_SECONDS:
            self._show(self.progress, new)
            self._shown = time.monotonic()
        reason = "the user's function says so" if said else ""
        return self.stopping.reached(self.progress) or reason

    def _relive(self, recording: Recording, earlier: dict[int, EarlierVisit]) -> None:
        """Ask the engine again, and tell it what came of it then."""
        learns = isinstance(self.engine, LearningStrategy)
        for number in range(max(earlier) + 1):
            visit = self._visits.propose()
            point, then = visit.proposal.configuration, earlier.get(number)
            if then is None:
                self._visits.leave(visit)
                continue
            self._visits.have_given(visit, len(then.results))
            if point != then.point:
                why = ": it learned from several workers, as they came" if learns else ""
                raise UserError(
                    f"the search cannot go on: at visit {number} the engine now "
                    f"proposes '{point}', and then proposed '{then.point}'{why}"
                )
            result = combined(then.results, self._combine)._replace(configuration=point)
            self._count(visit, then.results, result, recording)
            if learns:
                tell(self.engine, [result])  # type: ignore[arg-type]

    def _results(self, visit: Visit) -> list[Result]:
        point = visit.proposal.configuration
        seeds = visit.seeds(self.seed, many_of_one=self._keep == "combined")
        return self.space.executor(point).run(point, seeds)

    def _kept(
        self, recording: Recording, visit: Visit, results: list[Result]
    ) -> tuple[Result, list[FaultRecord]]:
        """The results of a visit as one, and the faults that are new."""
        result = combined(results, self._combine)._replace(
            trial=visit.first_trial, configuration=visit.proposal.configuration
        )
        kept = results if self._keep == "all" else [result]
        self._visits.have_given(visit, len(kept))
        new = recording.add(visit, kept)
        self._count(visit, results, result, recording)
        return result, [recording.recorder.faults[fault] for fault in new]

    def _count(
        self, visit: Visit, results: list[Result], result: Result, recording: Recording
    ) -> None:
        progress, point = self.progress, result.configuration
        assert point is not None
        self._seen.add(number_of(point))
        score = self.fitness(result)
        invalid = result.verdict == Verdict.INVALID
        if not invalid and (not progress.best_score or score > progress.best_score):
            progress.best, progress.best_score = point.to_json(), score
            progress.best_visit = visit.number
        progress.visits += 1
        progress.points = len(self._seen)
        progress.runs += len(results)
        statuses = [status_of(one) for one in results]
        progress.failed += statuses.count("failed")
        progress.interrupted += statuses.count("interrupted")
        progress.targets = recording.recorder.progress.targets
        progress.faults = recording.recorder.progress.faults
