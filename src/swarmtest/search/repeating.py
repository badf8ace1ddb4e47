"""The same search several times with other seeds, and what that amounts to."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.analysis.intervals import student_quantile
from swarmtest.errors import UserError
from swarmtest.search.outcome import SearchOutcome
from swarmtest.search.search import Search


@dataclass(frozen=True)
class Summary:
    """A number over several searches: its mean, with a 95% interval, and its range."""

    name: str
    mean: float
    low: float
    high: float
    least: float
    most: float

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))


def repeat_search(
    make: Callable[[int], Search], repeats: int, seed: int = 0
) -> list[SearchOutcome]:
    """Run a search for each of `repeats` seeds; `make` makes the search of a seed.

    >>> from swarmtest import Integer, SearchSpace, Test
    >>> space = SearchSpace([Integer("n", 1, 99), Test("test", ["f"])], {"f": lambda n: {"x": n}})
    >>> def make(seed): return Search(space, points=9, fitness="x", seed=seed, store=":memory:")
    >>> outcomes = repeat_search(make, 3)
    >>> [(one.name, one.mean) for one in summaries(outcomes)][:2]
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


def summaries(outcomes: Sequence[SearchOutcome]) -> list[Summary]:
    """What the searches took and found, on average."""
    found = {
        "points": [float(one.progress.points) for one in outcomes],
        "runs": [float(one.progress.runs) for one in outcomes],
        "best fitness": [one.progress.best_score[0] for one in outcomes if one.best],
        "best found at visit": [one.progress.best_visit + 1.0 for one in outcomes if one.best],
        "targets": [float(one.progress.targets) for one in outcomes],
        "faults": [float(one.progress.faults) for one in outcomes],
        "seconds": [one.progress.seconds for one in outcomes],
    }
    return [_summary(name, values) for name, values in found.items() if values]


def _summary(name: str, values: list[float]) -> Summary:
    mean = statistics.fmean(values)
    reach = math.inf
    if len(values) > 1:
        error = statistics.stdev(values) / math.sqrt(len(values))
        reach = student_quantile(0.95, len(values) - 1) * error
    return Summary(name, mean, mean - reach, mean + reach, min(values), max(values))
