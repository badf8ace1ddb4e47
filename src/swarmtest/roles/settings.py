"""Roles of settings: a target that only tests with some values of a setting hit.

A setting (an integer, a choice or a flag of the space) is drawn for each test, as a feature is. For
numbers and other ordered values the question is whether hits are on one side of a limit ("only with
`size` above 40"), for the others whether they have one value.

For each limit, the hits on one side are compared with the share of all tests that are there, as the
hits with a feature are compared with chance: Wilson's interval, and an exact binomial p-value. The
limit with the least p-value is shown. Of many limits one looks good by chance, so the p-value is
multiplied by how many were tried, and by how many settings and targets are looked at; settings that
remain above the level have no role. Tests that share one draw of a configuration count once.

A strategy that learns where to look may draw values because of earlier hits. Then hits and values
go together for that reason as well; searches have their own analysis (`swarmtest search roles`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.block_reading import counted_blocks
from swarmtest.analysis.intervals import binomial_p_value, wilson_interval
from swarmtest.analysis.role_cells import FIXED, INSUFFICIENT, IRRELEVANT, TRIGGER
from swarmtest.analysis.trial_columns import Evidence
from swarmtest.core.dimensions import Choice, Flag, Integer, Scalar

Numbers = npt.NDArray[np.intp]
Setting = Integer | Choice | Flag

_MOST_LIMITS = 32
"""How many limits of a setting are tried; the tests between two of them are about as many."""
_UNKNOWN = -1


@dataclass(frozen=True)
class SettingRole:
    """What the values of a setting do to a target.

    >>> SettingRole("size", "trigger", "above 40", 12, 1.0, 0.76, 1.0, 0.6, 0.002, 0.01, 240).role
    'trigger'
    """

    setting: str
    role: str
    values: str
    """The values that favour the target: ``above 40``, ``at most 3``, ``= fast``; may be empty."""
    hits: int
    """The hits whose values are known."""
    share: float
    low: float
    high: float
    """The share of the hits that have these values, with its interval."""
    base: float
    """The share of all tests that have these values."""
    p_value: float
    """For the limit that is shown; not corrected."""
    adjusted: float
    """Corrected for the limits, the settings and the targets that were looked at."""
    tests: int
    """The tests with these values."""

    def to_json(self) -> dict[str, Any]:
        """Return the role as plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class SettingValues:
    """The values of the settings in some tests, as indices into `values`; -1 where not known."""

    settings: tuple[Setting, ...]
    values: tuple[tuple[Scalar, ...], ...]
    """The values of each setting that occur; those of ordered settings in their order."""
    index: npt.NDArray[np.int32]
    """Settings by tests."""


def read_setting_values(evidence: Evidence) -> SettingValues:
    """Read the values of the settings that all campaigns have."""
    settings = tuple(
        setting
        for setting in evidence.spaces[0].settings
        if isinstance(setting, Integer | Choice | Flag)
        and all(setting in space.settings for space in evidence.spaces)
    )
    index = np.full((len(settings), evidence.n), _UNKNOWN, np.int32)
    numbers: list[dict[Scalar, int]] = [{} for _ in settings]
    if settings and evidence.store is not None:
        for at, block in counted_blocks(evidence, hits=False):
            space = evidence.spaces[evidence.campaign[at]]
            places = [space.settings.index(setting) for setting in settings]
            # The distinct ends of configurations have the values as JSON; index -1 has none.
            known = [json.loads(tail) if tail[:1] == b"[" else [] for tail in block.tails]
            for row, (place, number) in enumerate(zip(places, numbers, strict=True)):
                codes = [
                    number.setdefault(values[place], len(number)) if values else _UNKNOWN
                    for values in known
                ]
                lookup = np.array([*codes, _UNKNOWN], np.int32)
                index[row, at : at + block.size] = lookup[block.tail_index]
    ordered = [
        _in_order(setting, number) for setting, number in zip(settings, numbers, strict=True)
    ]
    for row, (values, number) in enumerate(zip(ordered, numbers, strict=True)):
        ranks = np.full(len(number) + 1, _UNKNOWN, np.int32)  # the last one is for -1
        for rank, value in enumerate(values):
            ranks[number[value]] = rank
        index[row] = ranks[index[row]]
    return SettingValues(settings, tuple(ordered), index)


def _in_order(setting: Setting, values: dict[Scalar, int]) -> tuple[Scalar, ...]:
    """Return the values that occur: numbers by size, others as the setting has them."""
    if isinstance(setting, Integer):
        return tuple(sorted(values))
    return tuple(value for value in setting.values if value in values)


def setting_roles(
    evidence: Evidence,
    values: SettingValues,
    hits: Numbers,
    known: npt.NDArray[np.bool_] | None = None,
    confidence: float = 0.95,
    targets: int = 1,
) -> list[SettingRole]:
    """Return the role of each setting for a target that the tests `hits` hit.

    `known` says of which tests it is known whether they hit; `targets` is how many targets are
    looked at beside each other.
    """
    hit = np.zeros(evidence.n, bool)
    hit[hits] = True
    counted = np.ones(evidence.n, bool) if known is None else known
    once = _first_of_clusters(evidence.clusters, hit)
    roles = []
    comparisons = targets * max(1, len(values.settings))
    for setting, names, index in zip(values.settings, values.values, values.index, strict=True):
        tests = np.flatnonzero(counted & once & (index >= 0))
        roles.append(_role(setting, names, index[tests], hit[tests], confidence, comparisons))
    return roles


def _first_of_clusters(clusters: npt.NDArray[np.int32], hit: npt.NDArray[np.bool_]) -> Any:
    """Return which tests count: one of each cluster, a hit if there is one."""
    chosen = clusters < 0
    order = np.lexsort((~hit, clusters))
    first = np.flatnonzero(np.diff(clusters[order], prepend=-2) != 0)
    chosen[order[first]] = True
    return chosen


def _role(
    setting: Setting,
    names: Sequence[Scalar],
    index: npt.NDArray[np.int32],
    hit: npt.NDArray[np.bool_],
    confidence: float,
    comparisons: int,
) -> SettingRole:
    """Return the role of one setting, given the value of each test as an index."""
    tests = np.bincount(index, minlength=len(names))
    of_hits = np.bincount(index[hit], minlength=len(names))
    n, hits = int(tests.sum()), int(of_hits.sum())
    if len(names) < 2:
        return SettingRole(setting.name, FIXED, "", hits, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, n)
    if isinstance(setting, Integer) or (isinstance(setting, Choice) and setting.ordered):
        found = _best_limit(names, tests, of_hits)
    else:
        found = _best_value(names, tests, of_hits)
    (words, inside, p_value), tried = found
    base, k = int(tests[inside].sum()) / n, int(of_hits[inside].sum())
    low, high = wilson_interval(k, hits, confidence) if hits else (0.0, 1.0)
    adjusted = min(1.0, p_value * tried * comparisons)
    level = 1 - confidence
    role = TRIGGER if adjusted <= level else IRRELEVANT if hits >= _FEWEST else INSUFFICIENT
    share = k / hits if hits else 0.0
    return SettingRole(
        setting.name,
        role,
        words if role == TRIGGER else "",
        hits,
        share,
        float(low),
        float(high),
        base,
        p_value,
        adjusted,
        int(tests[inside].sum()),
    )


_FEWEST = 6
"""With fewer hits, even if all of them are on one side of the middle, it may be chance."""
_Found = tuple[tuple[str, npt.NDArray[np.intp], float], int]
"""The values in words and as indices, with the p-value; and how many were tried."""


def _best_limit(names: Sequence[Scalar], tests: Numbers, of_hits: Numbers) -> _Found:
    """Return the side of a limit on which the hits are more frequent, for the best limit."""
    below, hits_below = np.cumsum(tests)[:-1], np.cumsum(of_hits)[:-1]
    n, hits = int(tests.sum()), int(of_hits.sum())
    limits = np.arange(len(below))
    if len(limits) > _MOST_LIMITS:
        # By the tests alone, not by the hits: which limits are tried must not depend on those.
        wanted = np.linspace(0, n, _MOST_LIMITS + 2)[1:-1]
        limits = np.unique(np.searchsorted(below, wanted).clip(0, len(below) - 1))
    p_values = binomial_p_value(hits_below[limits], np.full(len(limits), hits), below[limits] / n)
    best = int(limits[int(np.argmin(p_values))])
    p_value = float(np.min(p_values))
    hit_at = np.flatnonzero(of_hits)
    # What is shown goes as far as there are no hits: limits between others were not tried.
    if hits_below[best] <= hits * below[best] / n:
        first = best + 1 if hits_below[best] or not hits else int(hit_at[0])
        return (f"above {names[first - 1]}", np.arange(first, len(names)), p_value), len(limits)
    last = best if hits_below[best] < hits else int(hit_at[-1])
    return (f"at most {names[last]}", np.arange(last + 1), p_value), len(limits)


def _best_value(names: Sequence[Scalar], tests: Numbers, of_hits: Numbers) -> _Found:
    """Return the value, or all but one value, with which the hits are more frequent."""
    n, hits = int(tests.sum()), int(of_hits.sum())
    p_values = binomial_p_value(of_hits, np.full(len(names), hits), tests / n)
    best = int(np.argmin(p_values))
    p_value = float(np.min(p_values))
    tried = 1 if len(names) == 2 else len(names)
    if of_hits[best] >= hits * tests[best] / n:
        return (f"= {names[best]}", np.array([best]), p_value), tried
    if len(names) == 2:
        return (f"= {names[1 - best]}", np.array([1 - best]), p_value), tried
    others = np.delete(np.arange(len(names)), best)
    return (f"other than {names[best]}", others, p_value), tried
