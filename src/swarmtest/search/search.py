"""The search itself: ask for a point, run its test, keep what came of it, tell the engine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from swarmtest.campaign.worker import tell
from swarmtest.errors import UserError
from swarmtest.loading import refuse_during_import
from swarmtest.result import Result, Verdict
from swarmtest.search.engines.engine import SpaceExhausted
from swarmtest.search.engines.naming import parse_engine
from swarmtest.search.executors.tasks import TaskLike, task_of
from swarmtest.search.fitness import Fitness
from swarmtest.search.points import is_allowed, number_of
from swarmtest.search.recording import Recording
from swarmtest.search.results import Combine, combination_of, combined, status_of
from swarmtest.search.resuming import Visit, earlier_visits
from swarmtest.search.space import SearchSpace
from swarmtest.search.stopping import SearchProgress, Stopping
from swarmtest.space import Proposal
from swarmtest.store import CampaignRecord, FaultRecord, Store, open_store
from swarmtest.strategies import LearningStrategy, Strategy, strategy_text

_FORBIDDEN = 10_000
"""Forbidden proposals in a row after which an engine is not asked any more."""
_SHOW_SECONDS = 0.1

Show: TypeAlias = Callable[[SearchProgress, list[FaultRecord]], None]


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


class Search:
    """One space, one engine, one campaign of a store whose configurations are points.

    `engine` is a name (``random``, ``sequential``, ``climb``, ``optuna:sampler=tpe``) or a
    strategy. `fitness` says what is good (`Fitness`). A search ends after `points`, `seconds`, at a
    fitness of `reach`, at a number of `faults`, when the function `when` says so, on Ctrl-C, or
    when the engine has nothing left. `before` and `after` are tasks around the whole search.

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
        store: str | Store | None = None,
        on_progress: Show | None = None,
    ) -> None:
        self.space = space
        self.engine = parse_engine(engine) if isinstance(engine, str) else engine
        self.fitness = fitness if isinstance(fitness, Fitness) else Fitness(fitness)
        self.stopping = Stopping(points, seconds, reach, faults, when)
        self._before = task_of(before) if before is not None else None
        self._after = task_of(after) if after is not None else None
        self._combine = combination_of(combine, self.fitness)
        if keep not in ("all", "combined"):
            raise UserError(f"keep is all or combined, not {keep!r}")
        self._keep = keep
        self.seed = seed
        self._store = store
        self._show = on_progress or (lambda progress, faults: None)
        self.progress = SearchProgress()
        self._seen: set[int] = set()
        self._asked = 0

    def run(self, resume: int | None = None) -> SearchOutcome:
        """Search until a limit is reached, the engine has nothing left, or Ctrl-C.

        `resume` is the number of a campaign of the same search that goes on where it stopped.
        """
        refuse_during_import()
        self.progress, self._seen, self._asked = SearchProgress(), set(), 0
        self._prepare()
        if self._before is not None:
            self._before.perform(None)
        try:
            with self._opened() as store:
                visits = [] if resume is None else earlier_visits(store, resume, self.record())
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

    def _run(self, store: Store, campaign: int, earlier: list[Visit]) -> SearchOutcome:
        recording = Recording(store, campaign, self.space, self.engine, self.seed)
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
        begun, shown = time.monotonic() - self.progress.seconds, 0.0
        reason = self.stopping.reached(self.progress)
        try:
            while not reason:
                proposal = self._ask(recording)
                result, new = self._visit(recording, proposal)
                self.progress.seconds = time.monotonic() - begun
                if isinstance(self.engine, LearningStrategy):
                    tell(self.engine, [result])
                said = self.stopping.when is not None and self.stopping.when(result)
                reason = "the user's function says so" if said else ""
                reason = self.stopping.reached(self.progress) or reason
                if new or time.monotonic() - shown > _SHOW_SECONDS:
                    self._show(self.progress, new)
                    shown = time.monotonic()
        except SpaceExhausted as end:
            reason = str(end)
        except KeyboardInterrupt:
            reason = "interrupted"
        self._show(self.progress, [])
        return reason

    def _relive(self, recording: Recording, earlier: list[Visit]) -> None:
        """Ask the engine again, and tell it what came of it then."""
        for visit in earlier:
            point = self._ask(recording).configuration
            if point != visit.point:
                raise UserError(
                    f"the search cannot go on: at visit {self.progress.visits} the engine now "
                    f"proposes '{point}', and then proposed '{visit.point}'"
                )
            result = combined(visit.results, self._combine)._replace(configuration=point)
            recording.next_trial += len(visit.results)
            self._count(visit.results, result, recording)
            if isinstance(self.engine, LearningStrategy):
                tell(self.engine, [result])

    def _ask(self, recording: Recording) -> Proposal:
        """What the engine proposes next; what is forbidden is not run."""
        for _ in range(_FORBIDDEN):
            proposal = recording.worker.propose(self._asked)
            self._asked += 1
            if is_allowed(self.space, proposal.configuration):
                return proposal
        raise SpaceExhausted(f"{_FORBIDDEN:,} forbidden points in a row were proposed")

    def _visit(self, recording: Recording, proposal: Proposal) -> tuple[Result, list[FaultRecord]]:
        point = proposal.configuration
        results = self.space.executor(point).run(point, recording.seeds(self._keep == "combined"))
        result = combined(results, self._combine)._replace(
            trial=recording.next_trial, configuration=point
        )
        kept = results if self._keep == "all" else [result]
        new = recording.add(proposal, self.progress.visits, kept)
        self._count(results, result, recording)
        return result, [recording.recorder.faults[fault] for fault in new]

    def _count(self, results: list[Result], result: Result, recording: Recording) -> None:
        progress, point = self.progress, result.configuration
        assert point is not None
        self._seen.add(number_of(point))
        score = self.fitness(result)
        invalid = result.verdict == Verdict.INVALID
        if not invalid and (not progress.best_score or score > progress.best_score):
            progress.best, progress.best_score = point.to_json(), score
            progress.best_visit = progress.visits
        progress.visits += 1
        progress.points = len(self._seen)
        progress.runs += len(results)
        statuses = [status_of(one) for one in results]
        progress.failed += statuses.count("failed")
        progress.interrupted += statuses.count("interrupted")
        progress.targets = recording.recorder.progress.targets
        progress.faults = recording.recorder.progress.faults
