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

from swarmtest.analysis.cells import INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER
from swarmtest.analysis.intervals import (
    benjamini_hochberg,
    binomial_p_value,
    hits_needed,
    wilson_interval,
)
from swarmtest.analysis.rank_tests import midranks
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

# -------------------------------------------------------------------------------------------------
# The values of a dimension as a few groups, so that each can be told something about.
#
# Up to 32 values that occur are a group each. Of more, where they have an order, eight groups with
# about as many points each stand for them.

_MOST_VALUES = 32
_GROUPS = 8


@dataclass(frozen=True)
class Groups:
    """Which group each point is in, and what the groups are called."""

    of_points: npt.NDArray[np.int64]
    labels: tuple[Any, ...]
    places: npt.NDArray[np.int64]
    """Where each point's value stands among all that occur."""


def groups_of(dimension: Dimension, digits: Sequence[int]) -> Groups:
    """The groups of a dimension's values, given where the value of each point stands.

    >>> from swarmtest import Integer
    >>> groups_of(Integer("n", 1, 100), [0, 4, 4]).labels
    (1, 5)
    >>> groups_of(Integer("n", 1, 800), range(800)).labels[:2]
    ('1 to 100', '101 to 200')
    """
    values = values_of(dimension)
    present = sorted(set(digits))
    place = {digit: at for at, digit in enumerate(present)}
    places = np.array([place[digit] for digit in digits], np.int64)
    if len(present) <= _MOST_VALUES or not is_ordered(dimension):
        return Groups(places, tuple(values[digit] for digit in present), places)
    bins = places * _GROUPS // len(present)
    labels = []
    for group in range(_GROUPS):
        inside = [digit for digit, at in place.items() if at * _GROUPS // len(present) == group]
        labels.append(f"{values[inside[0]]} to {values[inside[-1]]}")
    return Groups(bins, tuple(labels), places)


# -------------------------------------------------------------------------------------------------
# How likely each value of a dimension was, given the rest of a point.
#
# Where points are forbidden, the dimensions are not independent: a value may be rare overall and
# yet
# the only one that is allowed beside the others. So the odds are taken point by point.

_MOST_VALUES_ODDS = 64
"""A dimension with more values is taken as it was explored."""


class Odds:
    """What was allowed in an exploration.

    An empty set of features counts as allowed, as everywhere: everybody knows what it does. What a
    function of the user's forbade is known only where all that it allows was explored.
    """

    def __init__(self, exploration: Exploration) -> None:
        self._space = exploration.space
        names = [dimension.name for dimension in self._space.dimensions]
        self._predicates: list[Predicate] = []
        for text in exploration.forbid:
            try:
                self._predicates.append(predicate_of(text, names))
            except UserError:  # the name of a function, which no store keeps
                continue
        self._points = len(exploration.points)

    def given_the_rest(
        self, place: int, points: Sequence[Configuration], groups: Groups
    ) -> list[float]:
        """For each group of a dimension's values, its chance at these points, on average."""
        dimension = self._space.dimensions[place]
        count = len(values_of(dimension))
        if count > _MOST_VALUES_ODDS or len(groups.labels) != count or not points:
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


# -------------------------------------------------------------------------------------------------

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


# -------------------------------------------------------------------------------------------------
# Which values of which dimensions trigger or suppress a fault, or another target.
#
# As for features: of the points where the target showed, the share that has the value, with its
# Wilson interval, against the share that chance would give: what is allowed, given the rest of
# those
# points (`Odds`). The unit is a point, not a run, because the runs of a point resemble each other.
# Many values are looked at, so p-values are corrected (Benjamini-Hochberg).

_SURE = 0.05


@dataclass(frozen=True)
class ValueRole:
    """What one value of one dimension is to one target."""

    target: str
    dimension: str
    value: Any
    role: str
    """``trigger``, ``suppressor``, ``irrelevant`` or ``insufficient data``."""
    hits: int
    """Points where the target showed."""
    share: float
    """Of those, the share that has the value."""
    low: float
    high: float
    base: float
    """The share that chance would give, if every allowed point is as likely as any other."""
    adjusted: float
    """The p-value, corrected for all values of all targets."""


def value_roles(exploration: Exploration, targets: Sequence[str] = ()) -> list[ValueRole]:
    """The roles of all values for all faults, or for targets by name (``pair:read|write``).

    >>> from swarmtest import Choice, Integer, Search, SearchSpace, Test, open_store
    >>> def sell(noise, n):
    ...     assert noise != "sleep", "oversold"
    >>> dimensions = [Choice("noise", ["none", "sleep"]), Integer("n", 1, 20), Test("test", ["t"])]
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(SearchSpace(dimensions, {"t": sell}), store=store).run()
    ...     found = value_roles(Exploration.load(store, outcome.campaign))
    >>> [(one.value, one.role) for one in found if one.dimension == "noise"]
    [('none', 'suppressor'), ('sleep', 'trigger')]
    """
    shown = _by_name(exploration, targets) if targets else _by_fault(exploration)
    found = [role for name, points in shown.items() for role in _roles(exploration, name, points)]
    adjusted = benjamini_hochberg([role.adjusted for role in found]).tolist() if found else []
    return [
        ValueRole(**{**vars(role), "adjusted": p, "role": _sure(role.role, p)})
        for role, p in zip(found, adjusted, strict=True)
    ]


def _sure(role: str, p: float) -> str:
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
    found = []
    for at, dimension in enumerate(exploration.space.dimensions):
        groups = groups_of(dimension, [row[at] for row in digits])
        chances = odds.given_the_rest(at, points, groups)
        for number, label in enumerate(groups.labels):
            inside = groups.of_points == number
            if 0 < chances[number] < 1:
                counts = int((inside & shows).sum()), int(shows.sum())
                found.append(_role(target, dimension.name, label, counts, chances[number]))
    return found


def _role(target: str, name: str, value: Any, counts: tuple[int, int], base: float) -> ValueRole:
    with_it, hits = counts
    low, high = wilson_interval(with_it, hits)
    p = float(binomial_p_value(with_it, hits, base))
    if hits < hits_needed(base):
        role = INSUFFICIENT
    else:
        role = TRIGGER if low > base else SUPPRESSOR if high < base else IRRELEVANT
    return ValueRole(target, name, value, role, hits, with_it / hits, low, high, base, p)
