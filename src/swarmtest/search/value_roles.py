"""Which values of which dimensions trigger or suppress a fault, or another target.

As for features: of the points where the target showed, the share that has the value, with its
Wilson interval, against the share that chance would give: what is allowed, given the rest of those
points (`Odds`). The unit is a point, not a run, because the runs of a point resemble each other.
Many values are looked at, so p-values are corrected (Benjamini-Hochberg).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from swarmtest.analysis.intervals import (
    benjamini_hochberg,
    binomial_p_value,
    hits_needed,
    wilson_interval,
)
from swarmtest.analysis.roles import INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER
from swarmtest.errors import UserError, did_you_mean
from swarmtest.search.exploration import Exploration
from swarmtest.search.grouping import groups_of
from swarmtest.search.odds import Odds
from swarmtest.search.points import digits_of
from swarmtest.space import Configuration

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
