"""Statistics of explored values: correlations of dimensions with measures, and roles of values.

`correlations` computes for every dimension the share of a measure's variance that it explains (eta
squared, the same for ordered and unordered values), with a p-value from shuffling and its
correction for many comparisons (Benjamini-Hochberg); for ordered dimensions also Spearman's rank
correlation, which has a direction.

`value_roles` says which values trigger or suppress a fault or another target, as roles do for
features: of the points where the target showed, the share with the value, with its Wilson
interval, against the share that chance would give, which is what is allowed given the rest of
those points, or, if an engine preferred some points, the share of all visited points (`Odds`). The
unit is a point, not a run, because the runs of a point resemble each other. Many values are
compared, so p-values are corrected (Benjamini-Hochberg).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.intervals import (
    benjamini_hochberg,
    binomial_p_value,
    hits_needed,
    wilson_interval,
)
from swarmtest.analysis.rank_tests import midranks
from swarmtest.analysis.role_cells import INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER
from swarmtest.core.configuration import Configuration
from swarmtest.core.dimensions import Dimension
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.search.exploration import Exploration
from swarmtest.search.space import (
    Predicate,
    digits_of,
    is_ordered,
    point_of,
    predicate_of,
    values_of,
)

_MOST_VALUES = 32
_GROUPS = 8
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
    """Spearman's correlation, -1 to 1; None if the values are not ordered."""
    p_value: float
    """The p-value of `explained`, by shuffling."""
    adjusted: float
    """The p-value, corrected for all comparisons that were asked for together."""
    means: tuple[tuple[Any, float], ...]
    """The mean of the measure at each value."""
    points: int


def correlations(
    exploration: Exploration, measures: Sequence[str] = (), seed: int = 0
) -> list[Correlation]:
    """Return the correlation of each dimension with each measure, the strongest first per measure.

    >>> from swarmtest import Choice, Integer, Test, open_store
    >>> from swarmtest.search import Search, SearchSpace
    >>> def sell(n, kind): return {"sold": n}
    >>> dimensions = [Integer("n", 1, 9), Choice("kind", ["a", "b"]), Test("test", ["sell"])]
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(SearchSpace(dimensions, {"sell": sell}), store=store).run()
    ...     result = correlations(Exploration.load(store, outcome.campaign), ["sold"])
    >>> [(found.dimension, round(found.explained, 3), found.rank) for found in result]
    [('n', 1.0, 1.0), ('kind', 0.0, None)]
    """
    if len(exploration.points) < _LEAST_POINTS:
        raise UserError(
            f"too few points to correlate anything: {len(exploration.points)}, "
            f"{_LEAST_POINTS} needed"
        )
    digits = [digits_of(point) for point in exploration.points]
    columns = [
        groups_of(dimension, [row[number] for row in digits])
        for number, dimension in enumerate(exploration.space.dimensions)
    ]
    result: list[Correlation] = []
    for measure in measures or exploration.measures:
        values = np.array(exploration.values(measure))
        finite = np.isfinite(values)
        if finite.sum() >= _LEAST_POINTS:
            result += _with_measure(exploration, measure, columns, values, finite, seed)
    adjusted = (
        benjamini_hochberg([correlation.p_value for correlation in result]).tolist()
        if result
        else []
    )
    corrected = [
        Correlation(**{**vars(correlation), "adjusted": p})
        for correlation, p in zip(result, adjusted, strict=True)
    ]
    order = {
        name: number
        for number, name in enumerate(dict.fromkeys(correlation.measure for correlation in result))
    }
    return sorted(
        corrected, key=lambda correlation: (order[correlation.measure], -correlation.explained)
    )


def _with_measure(
    exploration: Exploration,
    measure: str,
    columns: Sequence[Groups],
    values: Floats,
    finite: npt.NDArray[np.bool_],
    seed: int,
) -> list[Correlation]:
    values = values[finite]
    rng = np.random.default_rng(seed)
    shuffled = np.stack([rng.permutation(values) for _ in range(_SHUFFLES)])
    result = []
    for column, dimension in zip(columns, exploration.space.dimensions, strict=True):
        groups = column.of_points[finite]
        present = np.unique(groups)
        if len(present) < 2:
            continue
        share = float(_explained(groups, values[None, :])[0])
        chance = _explained(groups, shuffled)
        p = (1 + int((chance >= share - 1e-12).sum())) / (1 + _SHUFFLES)
        rank = _spearman(column.places[finite], values) if is_ordered(dimension) else None
        labels = column.labels
        means = tuple((labels[group], float(values[groups == group].mean())) for group in present)
        result.append(Correlation(dimension.name, measure, share, rank, p, p, means, len(values)))
    return result


def _explained(groups: Ints, rows: Floats) -> Floats:
    """Return for each row of values the share of its variance that lies between the groups."""
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


_SURE = 0.05


@dataclass(frozen=True)
class ValueRole:
    """The role of one value of one dimension for one target."""

    target: str
    dimension: str
    value: Any
    role: str
    """``trigger``, ``suppressor``, ``irrelevant`` or ``insufficient data``."""
    hits: int
    """The points where the target showed."""
    share: float
    """The share of those points with the value."""
    low: float
    high: float
    base: float
    """The share that chance would give: of all allowed points, or of those that were visited."""
    adjusted: float
    """The p-value, corrected for all values of all targets."""


def value_roles(exploration: Exploration, targets: Sequence[str] = ()) -> list[ValueRole]:
    """Return the roles of all values for all faults, or for targets by name (``pair:read|write``).

    >>> from swarmtest import Choice, Integer, Test, open_store
    >>> from swarmtest.search import Search, SearchSpace
    >>> def sell(noise, n):
    ...     assert noise != "sleep", "oversold"
    >>> dimensions = [Choice("noise", ["none", "sleep"]), Integer("n", 1, 20), Test("test", ["t"])]
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(SearchSpace(dimensions, {"t": sell}), store=store).run()
    ...     roles = value_roles(Exploration.load(store, outcome.campaign))
    >>> [(role.value, role.role) for role in roles if role.dimension == "noise"]
    [('none', 'suppressor'), ('sleep', 'trigger')]
    """
    shown = _by_name(exploration, targets) if targets else _by_fault(exploration)
    roles = [role for name, points in shown.items() for role in _roles(exploration, name, points)]
    adjusted = benjamini_hochberg([role.adjusted for role in roles]).tolist() if roles else []
    return [
        ValueRole(**{**vars(role), "adjusted": p, "role": _sure(role.role, p)})
        for role, p in zip(roles, adjusted, strict=True)
    ]


def _sure(role: str, p: float) -> str:
    """Return the role if it survives the correction."""
    return role if role == INSUFFICIENT or p < _SURE else IRRELEVANT


def _by_fault(exploration: Exploration) -> dict[str, list[Configuration]]:
    shown: dict[str, list[Configuration]] = {}
    for point, runs in exploration.runs.items():
        for fault in dict.fromkeys(run.fault for run in runs if run.fault is not None):
            shown.setdefault(f"fault {fault.id}: {fault.signature}", []).append(point)
    return shown


def _by_name(exploration: Exploration, names: Sequence[str]) -> dict[str, list[Configuration]]:
    numbers = {str(target): number for number, target in exploration.targets.items()}
    for name in names:
        if name not in numbers:
            raise UserError(f"no run reached {name!r}{did_you_mean(name, numbers)[:200]}")
    return {
        name: [point for point in exploration.points if numbers[name] in exploration.hits(point)]
        for name in names
    }


def _roles(
    exploration: Exploration, target: str, points: Sequence[Configuration]
) -> list[ValueRole]:
    odds = Odds(exploration)
    digits = [digits_of(point) for point in exploration.points]
    showing = set(points)
    shows = np.array([point in showing for point in exploration.points])
    roles = []
    for position, dimension in enumerate(exploration.space.dimensions):
        groups = groups_of(dimension, [row[position] for row in digits])
        chances = odds.given_the_rest(position, points, groups)
        for number, label in enumerate(groups.labels):
            inside = groups.of_points == number
            if 0 < chances[number] < 1:
                counts = int((inside & shows).sum()), int(shows.sum())
                roles.append(_role(target, dimension.name, label, counts, chances[number]))
    return roles


def _role(target: str, name: str, value: Any, counts: tuple[int, int], base: float) -> ValueRole:
    with_it, hits = counts
    low, high = wilson_interval(with_it, hits)
    p = float(binomial_p_value(with_it, hits, base))
    if hits < hits_needed(base):
        role = INSUFFICIENT
    else:
        role = TRIGGER if low > base else SUPPRESSOR if high < base else IRRELEVANT
    return ValueRole(target, name, value, role, hits, with_it / hits, low, high, base, p)


# Groups of values.
#
# Up to 32 values that occur are a group each. If there are more and they are ordered, they are
# divided into eight groups with about equally many values.


@dataclass(frozen=True)
class Groups:
    """The group of each point, and the labels of the groups."""

    of_points: npt.NDArray[np.int64]
    labels: tuple[Any, ...]
    places: npt.NDArray[np.int64]
    """The rank of each point's value among all values that occur."""


def groups_of(dimension: Dimension, digits: Sequence[int]) -> Groups:
    """Return the groups of a dimension's values; `digits` has the position of each point's value.

    >>> from swarmtest import Integer
    >>> groups_of(Integer("n", 1, 100), [0, 4, 4]).labels
    (1, 5)
    >>> groups_of(Integer("n", 1, 800), range(800)).labels[:2]
    ('1 to 100', '101 to 200')
    """
    values = values_of(dimension)
    present = sorted(set(digits))
    place = {digit: position for position, digit in enumerate(present)}
    places = np.array([place[digit] for digit in digits], np.int64)
    if len(present) <= _MOST_VALUES or not is_ordered(dimension):
        return Groups(places, tuple(values[digit] for digit in present), places)
    bins = places * _GROUPS // len(present)
    labels = []
    for group in range(_GROUPS):
        inside = [
            digit
            for digit, position in place.items()
            if position * _GROUPS // len(present) == group
        ]
        labels.append(f"{values[inside[0]]} to {values[inside[-1]]}")
    return Groups(bins, tuple(labels), places)


# Propensities of values, given the rest of a point.
#
# If points are forbidden, the dimensions are not independent: a value may be rare overall and yet
# the only one that is allowed beside the others. So the chances are computed point by point.
#
# An engine that prefers some points (climbing, or an optimiser) visits the values near its tops
# more often than others, whether or not a target shows there. Then the shares of the visited points
# are the chances.

UNIFORM_ENGINES = ("random", "sequential")
"""The engines that treat all allowed points alike."""
_MOST_EXACT_VALUES = 64
"""For a dimension with more values, the explored shares are used as chances."""


class Odds:
    """What was allowed in an exploration.

    An empty set of features counts as allowed, as everywhere: it is known what an empty test does.
    What a user's function forbade cannot be recovered from a store, so it is taken as allowed.
    """

    def __init__(self, exploration: Exploration) -> None:
        self._space = exploration.space
        names = [dimension.name for dimension in self._space.dimensions]
        self._predicates: list[Predicate] = []
        for text in exploration.forbid:
            try:
                self._predicates.append(predicate_of(text, names))
            except UserError:  # the name of a function: a store keeps no code
                continue
        self._points = len(exploration.points)
        self._is_visited_base = any(name not in UNIFORM_ENGINES for name in exploration.engines)

    def given_the_rest(
        self, place: int, points: Sequence[Configuration], groups: Groups
    ) -> list[float]:
        """Return for each group of a dimension's values its mean chance at these points."""
        dimension = self._space.dimensions[place]
        count = len(values_of(dimension))
        if (
            self._is_visited_base
            or count > _MOST_EXACT_VALUES
            or len(groups.labels) != count
            or not points
        ):
            inside = [int((groups.of_points == n).sum()) for n in range(len(groups.labels))]
            return [number / self._points for number in inside]
        totals = [0.0] * count
        for point in points:
            digits = digits_of(point)
            allowed = [n for n in range(count) if self._allows(digits, place, n)]
            for n in allowed:
                totals[n] += 1 / len(allowed)
        return [total / len(points) for total in totals]

    def _allows(self, digits: Sequence[int], place: int, digit: int) -> bool:
        if digits[place] == digit:
            return True
        point = point_of(self._space, [*digits[:place], digit, *digits[place + 1 :]])
        if point.bits and self._space.violated(point.bits):
            return False
        return not any(predicate.forbids(point) for predicate in self._predicates)
