"""How often undirected and default tests hit a target, from all such tests in the data.

Directed tests are compared with a coin-toss swarm (HF_u of the directed swarm testing paper). Tests
of that strategy count as they are. Tests of other strategies were drawn in other ways, but many of
these ways treat features alike: given how many features a configuration has, all sets of features
are equally likely, as for the coin. The logged propensities tell which tests were drawn like that:
those of all features that are in are the same, and so are those of all that are out. Such tests
count with the weight that gives each number of features the share that it has among coin tosses.

Invariants: a test counts only if it ran the code that is there now, if its hits are known, and if
its features were on or off. Where tests have weights, the counts are those of as many equally
weighted tests as give the same precision (Kish's effective sample size), rounded.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from swarmtest.focus.outcome import Count

if TYPE_CHECKING:
    from swarmtest.analysis.bit_counts import Bools
    from swarmtest.focus.history import History
    from swarmtest.focus.planning import PlannedTarget

_ALIKE = 1e-6
"""Propensities that differ by no more than this are the same: they are stored with few digits."""


def earlier_count(history: History, planned: PlannedTarget, undirected: str) -> Count:
    """Return the hits of a target in earlier undirected tests of the same code, weighted."""
    hit, tests = _hits_of(history, planned)
    own = tests & _of_strategy(history, undirected)
    weights = _coin_weights(history, tests | own, own) if undirected == "coin" else None
    evidence = history.study.evidence
    plain = Count(int((hit & own).sum()), int(own.sum()), float(evidence.cpu_seconds[own].sum()))
    if weights is None:
        return plain
    size = float(weights.sum() ** 2 / (weights**2).sum())
    if size <= plain.tests:
        return plain
    shares = weights / weights.sum()
    number = round(size)
    return Count(
        round(float(shares[hit].sum()) * number),
        number,
        float((shares * evidence.cpu_seconds).sum()) * number,
    )


def earlier_default_count(history: History, planned: PlannedTarget) -> Count:
    """Return the hits of a target in earlier tests of the same code with all features on.

    A test counts whatever its strategy: once the configuration is given, a test is drawn in the
    same way. Where there are settings besides features, only tests of the strategy ``all-on`` do,
    which leaves them at their defaults.
    """
    evidence = history.study.evidence
    hit, tests = _hits_of(history, planned)
    if not len(evidence.features):
        return Count()
    default = tests
    if any(space.settings for space in evidence.spaces):
        default = default & _of_strategy(history, "all-on")
    chosen = np.flatnonzero(default)
    chosen = chosen[evidence.enabled[chosen].astype(bool).all(axis=1)]
    if evidence.fractions is not None and len(chosen):
        chosen = chosen[(evidence.weights(chosen) == 1).all(axis=1)]
    cpu = float(evidence.cpu_seconds[chosen].sum())
    return Count(int(hit[chosen].sum()), len(chosen), cpu)


def _hits_of(history: History, planned: PlannedTarget) -> tuple[Bools, Bools]:
    """Return which tests hit a target, and which ran the current code and would show that."""
    study = history.study
    evidence = study.evidence
    if planned.place and planned.name.startswith("line:"):
        tests = history.knowing(planned.place, planned.line) & history.unchanged(planned.place)
        return history.column([(planned.place, planned.line)]), tests
    tests = evidence.hits_known & _of_current_code(history)
    kind, _, name = planned.name.partition(":")
    if kind == "fault":
        ids = evidence.fault_ids
        return evidence.fault == (ids.index(name) if name in ids else -2), tests
    known = next((t for t in study.targets.values() if str(t) == planned.name), None)
    hit = np.zeros(evidence.n, bool) if known is None else study.hit(known)
    return hit, tests


def _of_current_code(history: History) -> Bools:
    """Return the tests of campaigns that watched some files, all of them as they are now."""
    current = [
        number
        for number, sources in history.watched.items()
        if sources
        and all(history.text(history.place_of(source)) == source.text for source in sources)
    ]
    same: Bools = np.isin(history.study.evidence.campaign, current)
    return same


def _of_strategy(history: History, name: str) -> Bools:
    study = history.study
    alike = [
        number
        for number, campaign in enumerate(study.evidence.campaigns)
        if study.store.campaign(campaign).strategy == name
    ]
    same: Bools = np.isin(study.evidence.campaign, alike)
    return same


def _coin_weights(history: History, tests: Bools, own: Bools) -> npt.NDArray[np.float64] | None:
    """Return the weight of each test that makes them a coin-toss swarm; None if none can."""
    evidence = history.study.evidence
    spaces = evidence.spaces
    if any(space.clauses or any(f.rate is not None for f in space.features) for space in spaces):
        return None  # then sets of the same size are not equally likely
    chosen = np.flatnonzero(tests)
    if not len(chosen) or not len(evidence.features):
        return None
    on = evidence.enabled[chosen].astype(bool)
    usable = own[chosen] | _are_exchangeable(evidence.odds[evidence.odds_row[chosen]], on)
    if evidence.fractions is not None:
        weights = evidence.weights(chosen)
        usable &= ~((weights > 0) & (weights < 1)).any(axis=1)
    chosen, sizes = chosen[usable], on[usable].sum(axis=1)
    if not len(chosen):
        return None
    features = len(evidence.features)
    coin = np.array([math.comb(features, size) / 2.0**features for size in range(features + 1)])
    coin[0] = 0.0  # no configuration is empty
    tests_of_size = np.bincount(sizes, minlength=features + 1)
    result = np.zeros(evidence.n)
    result[chosen] = coin[sizes] / tests_of_size[sizes]
    return result if result.any() else None


def _are_exchangeable(odds: npt.NDArray[np.float32], on: Bools) -> Bools:
    """Return for which tests all features that are in had the same odds, and all that are out."""
    alike: Bools = np.asarray(((odds > 0) & (odds < 1)).all(axis=1))  # False for NaN: not known
    for state in (on, ~on):
        low = np.where(state, odds, np.inf).min(axis=1)
        high = np.where(state, odds, -np.inf).max(axis=1)
        alike &= (high - low <= _ALIKE) | ~state.any(axis=1)
    return alike
