"""The search itself: ask for a point, run its test, store the results, tell the engine."""

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
from swarmtest.processes.tree import Supervision
from swarmtest.search.engines import as_engine
from swarmtest.search.engines.engine import SpaceExhausted
from swarmtest.search.executors.command import TaskLike, task_of
from swarmtest.search.exploration import EarlierVisit, SearchRecording, earlier_visits
from swarmtest.search.results import Combine, Fitness, combination_of, combine_results, status_of
from swarmtest.search.space import SearchSpace, number_of
from swarmtest.search.stopping import SearchProgress, Stopping
from swarmtest.search.visits import RunningVisits, Visit, Visits
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord
from swarmtest.strategies.strategy import LearningStrategy, Strategy, strategy_text


@dataclass(frozen=True)
class SearchOutcome:
    """The outcome of a search.

    >>> SearchOutcome(1, "store.db", SearchProgress(visits=8), [], "time is up").best
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
        """Return the values of the best point by dimension; None if nothing was run."""
        return self.progress.best


_SHOW_SECONDS = 0.1
_SMALL_SPACE = 1_000_000
"""Up to so many points it is of interest how many of them were explored."""

Show: TypeAlias = Callable[[SearchProgress, list[FaultRecord]], None]


class Search:
    """A search of one space with one engine, stored as a campaign whose configurations are points.

    `engine` is a name (``random``, ``sequential``, ``climb``, ``optuna:sampler=tpe``) or a
    strategy. `fitness` says what is good (`Fitness`). A search ends after `points` or `seconds`, at
    a fitness of `reach`, after a number of `faults`, when the function `when` returns true, on
    Ctrl-C, or when the engine has nothing left to propose. `before` and `after` are tasks around
    the whole search. With several `workers`, as many points are visited at a time, each in a
    process of its own; points and seeds stay the same, unless the engine learns. With `isolated`,
    one worker uses processes of their own too, so that a test that ends its process has failed and
    does not end the search. `file` is where the space was read from.

    If a test is repeated, all results are stored, unless `keep` is ``combined``. The engine gets
    one result, combined as `combine` says: ``cumulated``, ``best``, ``worst`` or a function.

    >>> from swarmtest import Integer, Test
    >>> from swarmtest.search import SearchSpace
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
        isolated: bool = False,
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
        self._isolated = isolated or workers > 1
        self._store = store
        self._file = file
        self._show = on_progress or (lambda progress, faults: None)
        self._reset()

    def _reset(self) -> None:
        self.progress = SearchProgress()
        self._seen: set[int] = set()

    def run(self, resume: int | None = None) -> SearchOutcome:
        """Search until a limit is reached, the engine has nothing left, or Ctrl-C.

        `resume` is the number of a campaign of the same search, which continues where it stopped.
        """
        refuse_during_import()
        self._reset()
        self._prepare()
        if self._before is not None:
            self._before.perform(None)
        try:
            with self._open_store() as store:
                visits = {} if resume is None else earlier_visits(store, resume, self.record())
                campaign = store.add_campaign(self.record()) if resume is None else resume
                return self._run(store, campaign, visits)
        finally:
            if self._after is not None:
                self._after.perform(None)

    def record(self) -> CampaignRecord:
        """Return the record of the campaign for a store, before it has run."""
        options = {
            "fitness": self.fitness.text,
            "keep": self._keep,
            "forbid": [predicate.text for predicate in self.space.forbidden],
            **self.stopping.to_json(),
        }
        options |= {"combine": self._combine_name} if self._combine_name else {}
        options |= {"file": self._file} if self._file else {}
        options |= {"workers": self.workers} if self.workers > 1 else {}
        return CampaignRecord(
            subject=self.space.name,
            strategy=strategy_text(self.engine),
            seed=self.seed,
            space=self.space.to_json(),
            options={"subject": None, "budget": {}, "coverage": None, "search": options},
            created=time.time(),
        )

    def _prepare(self) -> None:
        if hasattr(self.engine, "fitness"):
            self.engine.fitness = self.fitness
        if hasattr(self.engine, "prepare"):
            self.engine.prepare(self.space)

    @contextlib.contextmanager
    def _open_store(self) -> Iterator[Store]:
        configured = self._store
        store = (
            open_store(configured)
            if configured is None or isinstance(configured, str)
            else configured
        )
        try:
            yield store
        finally:
            if store is not configured:
                store.close()

    def _run(self, store: Store, campaign: int, earlier: dict[int, EarlierVisit]) -> SearchOutcome:
        recording = SearchRecording(store, campaign, self.space, self.engine, self.seed)
        self._visits = Visits(
            self.space, recording.worker.propose, self._keep == "combined", self.workers
        )
        reason, status = "", "interrupted"
        try:
            if earlier:
                recording.recorder.load()
                self._replay_earlier(recording, earlier)
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

    def _loop(self, recording: SearchRecording) -> str:
        self._shown = 0.0
        self._began = time.monotonic() - self.progress.seconds
        try:
            reason = self._with_share(
                self._loop_in_processes(recording)
                if self._isolated
                else self._loop_in_process(recording)
            )
        except SpaceExhausted as end:
            reason = self._end_of_replay() or str(end)
            if not self.progress.visits:
                raise UserError(f"nothing was run: {reason}; no point is allowed") from None
        except KeyboardInterrupt:
            reason = "interrupted"
        self._show(self.progress, [])
        return reason

    def _end_of_replay(self) -> str:
        """Return that a replay has no more results, if so, and how many points have none."""
        recorded, size = self.space.recorded_points, self.space.size
        if recorded is None or self.progress.points < recorded:
            return ""
        return f"all {recorded:,} points that were recorded are explored, of {size:,}"

    def _with_share(self, reason: str) -> str:
        """Return the reason of an end, for a budget of points with how many were explored."""
        explored, size = self.progress.points, self.space.size
        by_points = (
            self.stopping.points is not None and self.progress.visits >= self.stopping.points
        )
        if not by_points or explored >= size or size > _SMALL_SPACE:
            return reason
        return f"{reason}: {explored:,} of {size:,} points explored"

    def _loop_in_process(self, recording: SearchRecording) -> str:
        """Run one visit after the other, in this process."""
        reason = self.stopping.reached(self.progress)
        while not reason:
            visit = self._visits.next()
            reason = self._finish_visit(recording, visit, self._results(visit))
        return reason

    def _loop_in_processes(self, recording: SearchRecording) -> str:
        """Run each visit in a process of its own, and as many at a time as there are workers."""
        reason = self.stopping.reached(self.progress)
        under_way = RunningVisits(self.workers)
        try:
            while True:
                exhausted = "" if reason else self._begin_some(recording, under_way)
                if not under_way:
                    if reason:
                        return reason
                    raise SpaceExhausted(exhausted)
                for visit, results in under_way.finished():
                    reason = self._finish_visit(recording, visit, results) or reason
        finally:
            under_way.end()

    def _begin_some(self, recording: SearchRecording, under_way: RunningVisits) -> str:
        """Begin as many visits as fit; return the reason if the engine has nothing left now."""
        while under_way.has_room and not self._visits.are_begun(self.stopping.points):
            try:
                visit = self._visits.next()
            except SpaceExhausted as end:
                return str(end)
            under_way.begin(visit, functools.partial(self._results, visit))
        return ""

    def _finish_visit(self, recording: SearchRecording, visit: Visit, results: list[Result]) -> str:
        """Store a visit's results and learn from them; return why the search ends, if it does."""
        result, new = self._store_results(recording, visit, results)
        self.progress.seconds = time.monotonic() - self._began
        if isinstance(self.engine, LearningStrategy):
            tell(self.engine, [result])
        user_stops = self.stopping.when is not None and self.stopping.when(result)
        if new or time.monotonic() - self._shown > _SHOW_SECONDS:
            self._show(self.progress, new)
            self._shown = time.monotonic()
        reason = "the user's function says so" if user_stops else ""
        return self.stopping.reached(self.progress) or reason

    def _replay_earlier(self, recording: SearchRecording, earlier: dict[int, EarlierVisit]) -> None:
        """Ask the engine again, and tell it the results of that time, to restore its state."""
        learns = isinstance(self.engine, LearningStrategy)
        for number in range(max(earlier) + 1):
            visit = self._visits.propose()
            point, earlier_visit = visit.proposal.configuration, earlier.get(number)
            if earlier_visit is None:
                self._visits.leave(visit)
                continue
            self._visits.have_given(visit, len(earlier_visit.results))
            if point != earlier_visit.point:
                why = ": it learned from several workers, as they came" if learns else ""
                raise UserError(
                    f"the search cannot continue: at visit {number} the engine now "
                    f"proposes '{point}', but it proposed '{earlier_visit.point}' before{why}"
                )
            result = combine_results(earlier_visit.results, self._combine)._replace(
                configuration=point
            )
            self._update_progress(visit, earlier_visit.results, result, recording)
            if learns:
                tell(self.engine, [result])  # type: ignore[arg-type]

    def _results(self, visit: Visit) -> list[Result]:
        point = visit.proposal.configuration
        seeds = visit.seeds(self.seed, many_of_one=self._keep == "combined")
        with Supervision():  # a task before a test may start what the test needs
            return self.space.executor(point).run(point, seeds)

    def _store_results(
        self, recording: SearchRecording, visit: Visit, results: list[Result]
    ) -> tuple[Result, list[FaultRecord]]:
        """Store the results of a visit; return them combined, and the faults that are new."""
        result = combine_results(results, self._combine)._replace(
            trial=visit.first_trial, configuration=visit.proposal.configuration
        )
        stored = results if self._keep == "all" else [result]
        self._visits.have_given(visit, len(stored))
        new = recording.add(visit, stored)
        self._update_progress(visit, results, result, recording)
        return result, [recording.recorder.faults[fault] for fault in new]

    def _update_progress(
        self, visit: Visit, results: list[Result], result: Result, recording: SearchRecording
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
        statuses = [status_of(run) for run in results]
        progress.failed += statuses.count("failed")
        progress.interrupted += statuses.count("interrupted")
        progress.targets = recording.recorder.progress.targets
        progress.faults = recording.recorder.progress.faults
