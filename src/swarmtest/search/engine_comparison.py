"""Repeat searches with other seeds, and compare engines on a recorded exploration.

On a recorded exploration, all engines search the same space, at once and many times. That
comparison is fair where real runs are not: the results of a point are what was recorded, so
engines differ only in what they propose.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.analysis.intervals import student_quantile, wilson_interval
from swarmtest.core.configuration import Configuration
from swarmtest.core.dimensions import Test
from swarmtest.core.errors import UserError
from swarmtest.core.result import Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream, trial_key
from swarmtest.search.engines import parse_engine
from swarmtest.search.engines.engine import SpaceExhausted
from swarmtest.search.executors.pytest_node import ReplayedExecutor
from swarmtest.search.exploration import Exploration
from swarmtest.search.results import Fitness, Score
from swarmtest.search.search import Search, SearchOutcome
from swarmtest.search.space import SearchSpace, is_allowed
from swarmtest.strategies.strategy import LearningStrategy, Strategy, strategy_text

# Repeated searches.


@dataclass(frozen=True)
class SearchSummary:
    """A number over several searches: its mean, with a 95% interval, and its range."""

    name: str
    mean: float
    low: float
    high: float
    least: float
    most: float

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return dict(vars(self))


def repeat_search(
    make: Callable[[int], Search], repeats: int, seed: int = 0
) -> list[SearchOutcome]:
    """Run a search for each of `repeats` seeds; `make` returns the search of a seed.

    >>> from swarmtest import Integer, Test
    >>> from swarmtest.search import SearchSpace
    >>> space = SearchSpace([Integer("n", 1, 99), Test("test", ["f"])], {"f": lambda n: {"x": n}})
    >>> def make(seed): return Search(space, points=9, fitness="x", seed=seed, store=":memory:")
    >>> outcomes = repeat_search(make, 3)
    >>> [(summary.name, summary.mean) for summary in summaries(outcomes)][:2]
    [('points', 9.0), ('runs', 9.0)]
    """
    if repeats < 1:
        raise UserError(f"a search is repeated at least once, not {repeats} times")
    outcomes = []
    for number in range(repeats):
        outcomes.append(make(seed + number).run())
        if outcomes[-1].interrupted:
            break
    return outcomes


def summaries(outcomes: Sequence[SearchOutcome]) -> list[SearchSummary]:
    """Summarise what the searches took and found."""
    numbers = {
        "points": [float(outcome.progress.points) for outcome in outcomes],
        "runs": [float(outcome.progress.runs) for outcome in outcomes],
        "best fitness": [outcome.progress.best_score[0] for outcome in outcomes if outcome.best],
        "best found at visit": [
            outcome.progress.best_visit + 1.0 for outcome in outcomes if outcome.best
        ],
        "targets": [float(outcome.progress.targets) for outcome in outcomes],
        "faults": [float(outcome.progress.faults) for outcome in outcomes],
        "seconds": [outcome.progress.seconds for outcome in outcomes],
    }
    return [_summary(name, values) for name, values in numbers.items() if values]


def _summary(name: str, values: list[float]) -> SearchSummary:
    mean = statistics.fmean(values)
    reach = math.inf
    if len(values) > 1:
        error = statistics.stdev(values) / math.sqrt(len(values))
        reach = student_quantile(0.95, len(values) - 1) * error
    return SearchSummary(name, mean, mean - reach, mean + reach, min(values), max(values))


# Engines on a recorded exploration.

_FORBIDDEN = 10_000
"""A replayed search ends after this many forbidden proposals."""


def replay_space(exploration: Exploration) -> SearchSpace:
    """Return the space of an exploration, with tests that return what was recorded.

    Points that were not explored are forbidden.

    >>> from swarmtest import open_store
    >>> from swarmtest.search import Search
    >>> space = SearchSpace([Test("test", ["f"])], {"f": lambda: {"size": 3}})
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(space, "sequential", store=store).run()
    ...     replayed = replay_space(Exploration.load(store, outcome.campaign))
    ...     Search(replayed, "random", fitness="size", store=store).run().progress.best_score
    (3.0,)
    """
    executor = ReplayedExecutor(exploration)
    tests = [d for d in exploration.space.dimensions if isinstance(d, Test)]
    if not tests:
        raise UserError("this campaign is not a search: its space has no test dimension")
    explored = exploration.runs
    forbid: list[Callable[[Configuration], bool]] = []
    if not exploration.complete:
        forbid = [lambda point: point not in explored]
    space = SearchSpace(
        exploration.space.dimensions,
        {str(value): executor for value in tests[0].values},
        forbid,
        exploration.space.constraints,
        name=f"{exploration.name} (replayed)",
    )
    space.recorded_points = None if exploration.complete else len(explored)
    return space


@dataclass(frozen=True)
class EngineReplay:
    """One search of a recorded exploration."""

    points: int
    """How many distinct points it explored."""
    best: float
    found_after: int | None
    """How many points it explored up to the best of the whole exploration; None if it missed it."""


@dataclass(frozen=True)
class EngineSummary:
    """The results of many searches with one engine."""

    engine: str
    optimum: float
    """The best fitness of the whole exploration."""
    replays: tuple[EngineReplay, ...]

    @property
    def found(self) -> int:
        """Return how many of the searches found a best point."""
        return sum(replay.found_after is not None for replay in self.replays)

    @property
    def found_interval(self) -> tuple[float, float]:
        """Return the 95% (Wilson) interval of the chance to find it."""
        low, high = wilson_interval(self.found, len(self.replays))
        return float(low), float(high)

    @property
    def mean_points(self) -> float:
        """Return the mean number of points explored."""
        return statistics.fmean(replay.points for replay in self.replays)

    @property
    def mean_best(self) -> float:
        """Return the mean of the best fitness of each search."""
        return statistics.fmean(replay.best for replay in self.replays)

    @property
    def median_found_after(self) -> float | None:
        """Return the median number of points until a best one; None if most found none."""
        if 2 * self.found < len(self.replays):
            return None
        never = float("inf")
        median = statistics.median(
            never if replay.found_after is None else replay.found_after for replay in self.replays
        )
        return None if median == never else median

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        low, high = self.found_interval
        return {
            "engine": self.engine,
            "searches": len(self.replays),
            "found": self.found,
            "found_low": low,
            "found_high": high,
            "mean_points": self.mean_points,
            "mean_best": self.mean_best,
            "optimum": self.optimum,
            "median_found_after": self.median_found_after,
        }


def compare_engines(
    exploration: Exploration,
    engines: Sequence[str | Strategy],
    fitness: str | Fitness = "hits",
    *,
    points: int | None = None,
    repeats: int = 100,
    seed: int = 0,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> list[EngineSummary]:
    """Search a recorded exploration with each engine, `repeats` times with other seeds.

    A search ends after `points`, or when its engine has nothing left to propose.

    >>> from swarmtest import Integer, open_store
    >>> from swarmtest.search import Search
    >>> def hill(x): return {"height": -abs(x - 40)}
    >>> space = SearchSpace([Integer("x", 0, 99), Test("test", ["hill"])], {"hill": hill})
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(space, "sequential", store=store).run()
    ...     exploration = Exploration.load(store, outcome.campaign)
    >>> engines = ["climb:restarts=0", "random"]
    >>> climb, random = compare_engines(exploration, engines, "height", points=50)
    >>> climb.found > random.found
    True
    """
    if repeats < 1 or (points is not None and points < 1):
        raise UserError("compare at least one search of at least one point")
    judge = fitness if isinstance(fitness, Fitness) else Fitness(fitness)
    scores = exploration.scores(judge)
    space = replay_space(exploration)
    limit = len(exploration.points) if points is None else points
    results = []
    for entry in engines:
        engine = parse_engine(entry) if isinstance(entry, str) else entry
        replays = []
        for repeat in range(repeats):
            replays.append(_replay(space, copy.deepcopy(engine), scores, limit, seed + repeat))
            if on_progress is not None:
                on_progress(strategy_text(engine), repeat + 1, repeats)
        optimum = max(scores.values())[0]
        results.append(EngineSummary(strategy_text(engine), optimum, tuple(replays)))
    return results


def _replay(
    space: SearchSpace,
    engine: Any,
    scores: dict[Configuration, Score],
    limit: int,
    seed: int,
) -> EngineReplay:
    """Run one search in which results are looked up: only their fitness matters."""
    optimum = max(scores.values())
    seen: set[Configuration] = set()
    best: Score = ()
    found_after = None
    if hasattr(engine, "fitness"):
        engine.fitness = _RecordedFitness(scores, len(optimum))
    if hasattr(engine, "prepare"):
        engine.prepare(space)
    stream, visits, asked = Stream(seed), 0, 0
    while visits < limit and asked < limit + _FORBIDDEN:
        stream.rekey(trial_key(seed, asked))
        asked += 1
        try:
            proposal = engine.ask(space, asked - 1, stream)
        except SpaceExhausted:
            break
        point = proposal.configuration if isinstance(proposal, Proposal) else proposal
        if not is_allowed(space, point):
            continue
        visits += 1
        seen.add(point)
        best = max(best, scores[point])
        if found_after is None and best >= optimum:
            found_after = len(seen)
        if isinstance(engine, LearningStrategy):
            engine.tell(Result(Verdict.PASSED, configuration=point))
    return EngineReplay(len(seen), best[0] if best else float("nan"), found_after)


class _RecordedFitness:
    """Returns the recorded score of the point of a result."""

    def __init__(self, scores: dict[Configuration, Score], objectives: int) -> None:
        self._scores = scores
        self.objectives = objectives

    def __call__(self, result: Result) -> Score:
        assert result.configuration is not None
        return self._scores[result.configuration]
