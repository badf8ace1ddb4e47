"""How much each dimension has to do with each measure.

For every dimension: the share of the measure's variance that it explains (eta squared, the same for
ordered values and others), with a p-value from shuffling and its correction for many comparisons
(Benjamini-Hochberg). For ordered ones also Spearman's rank correlation, which has a direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.intervals import benjamini_hochberg
from swarmtest.analysis.rank_tests import midranks
from swarmtest.errors import UserError
from swarmtest.search.exploration import Exploration
from swarmtest.search.grouping import Groups, groups_of
from swarmtest.search.points import digits_of, is_ordered

_SHUFFLES = 999
_LEAST_POINTS = 8

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Correlation:
    """What one dimension has to do with one measure."""

    dimension: str
    measure: str
    explained: float
    """The share of the measure's variance that lies between the dimension's values, 0 to 1."""
    rank: float | None
    """Spearman's correlation, -1 to 1; None where values have no order."""
    p_value: float
    """Of `explained`, by shuffling."""
    adjusted: float
    """The p-value corrected for all that were asked for at once."""
    means: tuple[tuple[Any, float], ...]
    """The measure's mean at each value."""
    points: int


def correlations(
    exploration: Exploration, measures: Sequence[str] = (), seed: int = 0
) -> list[Correlation]:
    """Each dimension with each measure, the strongest first within a measure.

    >>> from swarmtest import Choice, Integer, Search, SearchSpace, Test, open_store
    >>> def sell(n, kind): return {"sold": n}
    >>> dimensions = [Integer("n", 1, 9), Choice("kind", ["a", "b"]), Test("test", ["sell"])]
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(SearchSpace(dimensions, {"sell": sell}), store=store).run()
    ...     found = correlations(Exploration.load(store, outcome.campaign), ["sold"])
    >>> [(one.dimension, round(one.explained, 3), one.rank) for one in found]
    [('n', 1.0, 1.0), ('kind', 0.0, None)]
    """
    if len(exploration.points) < _LEAST_POINTS:
        raise UserError(
            f"too few points to correlate anything: {len(exploration.points)}, "
            f"{_LEAST_POINTS} needed"
        )
    digits = [digits_of(point) for point in exploration.points]
    columns = [
        groups_of(dimension, [row[at] for row in digits])
        for at, dimension in enumerate(exploration.space.dimensions)
    ]
    found: list[Correlation] = []
    for measure in measures or exploration.measures:
        values = np.array(exploration.values(measure))
        known = np.isfinite(values)
        if known.sum() >= _LEAST_POINTS:
            found += _with_measure(exploration, measure, columns, values, known, seed)
    adjusted = benjamini_hochberg([one.p_value for one in found]).tolist() if found else []
    corrected = [
        Correlation(**{**vars(one), "adjusted": p}) for one, p in zip(found, adjusted, strict=True)
    ]
    order = {name: at for at, name in enumerate(dict.fromkeys(one.measure for one in found))}
    return sorted(corrected, key=lambda one: (order[one.measure], -one.explained))


def _with_measure(
    exploration: Exploration,
    measure: str,
    columns: Sequence[Groups],
    values: Floats,
    known: npt.NDArray[np.bool_],
    seed: int,
) -> list[Correlation]:
    values = values[known]
    rng = np.random.default_rng(seed)
    shuffled = np.stack([rng.permutation(values) for _ in range(_SHUFFLES)])
    found = []
    for column, dimension in zip(columns, exploration.space.dimensions, strict=True):
        groups = column.of_points[known]
        present = np.unique(groups)
        if len(present) < 2:
            continue
        share = float(_explained(groups, values[None, :])[0])
        chance = _explained(groups, shuffled)
        p = (1 + int((chance >= share - 1e-12).sum())) / (1 + _SHUFFLES)
        rank = _spearman(column.places[known], values) if is_ordered(dimension) else None
        labels = column.labels
        means = tuple((labels[at], float(values[groups == at].mean())) for at in present)
        found.append(Correlation(dimension.name, measure, share, rank, p, p, means, len(values)))
    return found


def _explained(groups: Ints, rows: Floats) -> Floats:
    """For each row of values, the share of its variance that lies between the groups."""
    total = ((rows - rows.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    between = np.zeros(len(rows))
    for group in np.unique(groups):
        inside = rows[:, groups == group]
        between += inside.shape[1] * (inside.mean(axis=1) - rows.mean(axis=1)) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 1e-12, between / total, 0.0)


def _spearman(groups: Ints, values: Floats) -> float:
    first, second = midranks(groups.astype(float)), midranks(values)
    first, second = first - first.mean(), second - second.mean()
    spread = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return round(float((first * second).sum()) / spread, 12) if spread else 0.0
