"""Campaigns whose truth is known: real strategies draw the configurations, a formula the hits.

Nothing is run, so thousands of tests take milliseconds; they are written to a real store and read
back like those of any campaign.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from swarmtest import Space, open_store
from swarmtest.analysis.intervals import wilson_interval
from swarmtest.analysis.role_cells import RoleCells
from swarmtest.core.configuration import unpack_weights
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import trial_key
from swarmtest.core.targets import Target, pack_hits
from swarmtest.roles.roles import RoleTable
from swarmtest.roles.study import Study
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, TrialRecord, pack_counts, pack_floats
from swarmtest.strategies import Stream, parse_strategy

Array = np.ndarray[Any, Any]
Truth = Callable[[Array], Array]
"""From the weights of tests (by features) to the chance that each hits."""

SIGMAS = 5
"""Margins of all simulations: a correct program fails one in two million of them."""


def space_of(count: int) -> Space:
    return Space([f"f{i}" for i in range(count)])


@functools.cache
def prepared(strategy: str, space: Space) -> Any:
    """None of the strategies here learns, so that one will do for all campaigns."""
    chosen = parse_strategy(strategy)
    if hasattr(chosen, "prepare"):
        chosen.prepare(space)
    return chosen


@functools.cache
def propose(strategy: Any, space: Space, tests: int, seed: int) -> list[Proposal]:
    """What a strategy answers in a campaign with this seed."""
    chosen = prepared(strategy, space) if isinstance(strategy, str) else strategy
    many = chosen.ask_many(space, range(tests), seed) if hasattr(chosen, "ask_many") else None
    if many is not None:
        return list(many)
    stream, proposals = Stream(seed), []
    for trial in range(tests):
        stream.rekey(trial_key(seed, trial))
        proposals.append(chosen.ask(space, trial, stream))
    return proposals


def weights_of(proposals: Sequence[Proposal], space: Space) -> Array:
    return unpack_weights([p.configuration.to_bytes() for p in proposals], len(space.features))


def record(
    store: Store,
    space: Space,
    strategy: Any,
    tests: int,
    seed: int,
    truths: Sequence[Truth] = (),
    used: Array | None = None,
    **columns: Sequence[Any],
) -> int:
    """Keep a campaign whose targets ``event:0``, ``event:1``, ... are hit as the truths say."""
    proposals = propose(strategy, space, tests, seed)
    weights = weights_of(proposals, space)
    random = np.random.default_rng(seed + 1)
    hit = np.zeros((tests, len(truths)), bool)
    for number, truth in enumerate(truths):
        hit[:, number] = random.random(tests) < truth(weights)
    ids = np.array(store.target_ids([Target("event", str(i)) for i in range(len(truths))]), int)
    trials = [
        TrialRecord(
            number,
            proposal.configuration.to_bytes(),
            pack_floats(proposal.propensities),
            proposal.origin,
            hits=pack_hits(ids[hit[number]].tolist()) if hit[number].any() else None,
            used=b"" if used is None else pack_counts(used[number].tolist()),
            steps=1,
        )._replace(**{name: values[number] for name, values in columns.items()})
        for number, proposal in enumerate(proposals)
    ]
    name = strategy if isinstance(strategy, str) else type(strategy).__name__
    campaign = store.add_campaign(CampaignRecord("simulated", name, seed, space.to_json()))
    store.record(campaign, trials)
    return campaign


def study_of(
    strategies: Sequence[Any], truths: Sequence[Truth], tests: int, seed: int, space: Space
) -> Study:
    """A study of one campaign per strategy, each with a seed of its own."""
    store = open_store(":memory:")
    campaigns = [
        record(store, space, strategy, tests, seed + 10_000 * number, truths)
        for number, strategy in enumerate(strategies)
    ]
    return Study(store, campaigns)


def naive_table(study: Study, kind: str = "event") -> RoleTable:
    """What an analysis without odds would say: shares among hits against shares among all tests."""
    evidence, targets = study.evidence, [t for t in study.targets.values() if t.kind == kind]
    hit = np.stack([study.hit(target) for target in targets], axis=1).astype(float)
    enabled = evidence.enabled[:].astype(float)
    hits = hit.sum(axis=0)
    base = np.clip(enabled.mean(axis=0), 1e-9, 1 - 1e-9)
    informative = np.repeat(hits[:, None], enabled.shape[1], axis=1)
    bases = np.repeat(base[None, :], len(targets), axis=0)
    return RoleTable(
        tuple(targets),
        evidence.features,
        hits.astype(int),
        RoleCells(informative, hit.T @ enabled, bases, np.ones(bases.shape, bool)),
    )


@functools.cache
def claim_level(hits: float, base: float, confidence: float = 0.95) -> float:
    """How often Wilson's interval of so many hits misses the base rate by chance alone."""
    n = round(hits)
    counts = np.arange(n + 1)
    low, high = wilson_interval(counts, np.full(n + 1, n), confidence)
    outside = (low > base) | (high < base)
    return float(scipy.stats.binom.pmf(counts, n, base)[outside].sum())


@dataclass(frozen=True)
class Rates:
    """What was claimed about features, one entry per seed."""

    claimed: Array
    """Share of the irrelevant features' cells with a role."""
    nominal: Array
    """The share that Wilson's interval allows, given the numbers of hits and the base rates."""
    false_listed: Array
    """Share of false ones among the roles that survive the correction."""
    found: Array
    """Share of the true roles that survive it."""

    def excess(self) -> float:
        """By how many standard errors there are more wrong roles than the confidence allows."""
        return _above(self.claimed - np.maximum(self.nominal, 0.05), len(self.claimed))

    def excess_listed(self) -> float:
        """The same for the share of false ones among those that survive the correction."""
        return _above(self.false_listed - 0.05, len(self.claimed))


def _above(differences: Array, count: int) -> float:
    error = max(float(differences.std(ddof=1)) / math.sqrt(count), 1e-3)
    return float(differences.mean()) / error


def measured(
    studies: Sequence[Study],
    irrelevant: Sequence[int],
    true: Sequence[dict[int, int]] = (),
    tables: Sequence[RoleTable] | None = None,
) -> Rates:
    """`true`: for each target, features and codes of their roles (1: trigger, 2: suppressor)."""
    rows = []
    for table in tables or [study.table("event") for study in studies]:
        codes, listed = table.codes, table.discoveries()
        wrong = (codes[:, irrelevant] == 1) | (codes[:, irrelevant] == 2)
        counted = table.counted
        cells = zip(
            counted.informative[:, irrelevant].ravel(),
            counted.base[:, irrelevant].ravel(),
            strict=True,
        )
        levels = [claim_level(float(n), round(float(b), 3)) for n, b in cells if n >= 1]
        false = int((listed[:, irrelevant] > 0).sum())
        every = int((listed > 0).sum())
        right = [
            listed[row, feature] == code
            for row, target in enumerate(table.targets)
            for feature, code in (true[int(target.name)] if true else {}).items()
        ]
        rows.append(
            (
                wrong.mean(),
                np.mean(levels) if levels else 0.0,
                false / max(every, 1),
                np.mean(right) if right else np.nan,
            )
        )
    return Rates(*np.array(rows, float).T)
