"""Simulate tests of a strategy, many at once, to see how often they find bugs.

The configurations are those of the shipped strategy: its own `ask` or `ask_many`. The steps follow
the rule of the generator of machines (`subjects/machine/compiled.py`): each step picks one of the
included features; where a configuration spends steps, a feature with weight w is then skipped with
probability 1 - w; in a renormalised configuration, features are picked in proportion to their
weights. `tests/benchmarks/test_bug_families.py` compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bug_families.kinds import Bug, Tests
from swarmtest import Space
from swarmtest.core.configuration import unpack_weights
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import trial_key
from swarmtest.strategies import Strategy, Stream

_CELLS = 1 << 20
"""Steps to simulate at once."""


@dataclass(frozen=True)
class Configurations:
    """The weights of some configurations, a row for each."""

    weights: npt.NDArray[np.float32]
    renormalised: npt.NDArray[np.bool_]
    origins: Sequence[str]


def space_of(features: int) -> Space:
    """Return a space of so many features."""
    return Space([f"f{number}" for number in range(features)])


def ask(strategy: Strategy, space: Space, trials: range, seed: int) -> Configurations:
    """Return what the strategy proposes for some trials of a campaign."""
    ask_many = getattr(strategy, "ask_many", None)
    proposals = ask_many(space, trials, seed) if ask_many else None
    if proposals is None:
        proposals, stream = [], Stream(seed)
        for trial in trials:
            stream.rekey(trial_key(seed, trial))
            proposal = strategy.ask(space, trial, stream)
            assert isinstance(proposal, Proposal)
            proposals.append(proposal)
    packed = [proposal.configuration.to_bytes() for proposal in proposals]
    renormalised = np.array([proposal.configuration.renormalised for proposal in proposals])
    weights = unpack_weights(packed, len(space.features))
    return Configurations(weights, renormalised, [proposal.origin for proposal in proposals])


def simulate(
    configurations: Configurations, steps: int, random: np.random.Generator
) -> Iterator[tuple[slice, Tests]]:
    """Yield tests of the configurations, some rows at a time."""
    rows, features = configurations.weights.shape
    size = max(1, _CELLS // steps)
    for start in range(0, rows, size):
        part = slice(start, min(start + size, rows))
        weights = configurations.weights[part].astype(np.float64)
        spends = ~configurations.renormalised[part] & ((weights > 0) & (weights < 1)).any(axis=1)
        # Where steps are spent, each included feature is picked equally often.
        picked = np.where(spends[:, None], (weights > 0).astype(np.float64), weights)
        chosen = _pick(picked, steps, random)
        skipping = np.flatnonzero(spends)
        if len(skipping):
            chosen[skipping] = _skip(chosen[skipping], weights[skipping], features, random)
        yield part, Tests(chosen, features)


def _pick(
    weights: npt.NDArray[np.float64], steps: int, random: np.random.Generator
) -> npt.NDArray[np.int16]:
    """Pick features in proportion to the weights of each row."""
    rows, features = weights.shape
    bounds = np.cumsum(weights, axis=1)
    bounds /= bounds[:, -1:]
    draws = random.random((rows, steps), dtype=np.float32).astype(np.float64)
    if features <= 24:
        chosen = np.zeros((rows, steps), np.int16)
        for bound in bounds.T[:-1]:
            chosen += draws >= bound[:, None]
        return chosen
    offsets = np.arange(rows)[:, None]
    places = np.searchsorted((bounds + offsets).ravel(), (draws + offsets).ravel(), side="right")
    within = places.reshape(rows, steps) - offsets * features
    picked: npt.NDArray[np.int16] = np.minimum(within, features - 1).astype(np.int16)
    return picked


def _skip(
    chosen: npt.NDArray[Any],
    weights: npt.NDArray[np.float64],
    features: int,
    random: np.random.Generator,
) -> npt.NDArray[np.int16]:
    """Leave out the steps that the weights skip; the others move up."""
    kept = random.random(chosen.shape, dtype=np.float32) < np.take_along_axis(
        weights, chosen.astype(np.intp), axis=1
    )
    moved = np.full(chosen.shape, features, np.int16)
    places = np.cumsum(kept, axis=1) - 1
    rows = np.nonzero(kept)[0]
    moved[rows, places[kept]] = chosen[kept]
    return moved


@dataclass(frozen=True)
class Odds:
    """How many of the simulated tests found each bug, by origin of the configuration."""

    tests: dict[str, int]
    found: dict[str, npt.NDArray[np.int64]]

    def rates(self, origin: str) -> npt.NDArray[np.float64]:
        """Return the share of an origin's tests that found each bug."""
        return self.found[origin] / max(1, self.tests[origin])

    @property
    def overall(self) -> npt.NDArray[np.float64]:
        """Return the share of all tests that found each bug."""
        found = np.sum([*self.found.values()], axis=0)
        return np.asarray(found / sum(self.tests.values()), np.float64)


def odds_of(
    strategy: Strategy,
    bugs: Sequence[Bug],
    tests: int,
    seed: int = 1,
    by_origin: bool = False,
    namings: int = 1,
) -> Odds:
    """Simulate tests of a strategy on bugs that share the numbers of features and of steps."""
    drawn = ask(strategy, space_of(bugs[0].features), range(tests), seed)
    return odds_of_configurations(drawn, bugs, seed, by_origin, namings)


def odds_of_configurations(
    drawn: Configurations,
    bugs: Sequence[Bug],
    seed: int = 1,
    by_origin: bool = False,
    namings: int = 1,
) -> Odds:
    """Simulate one test of each configuration.

    With more `namings`, each test is judged again with its features in another order, which is one
    more test that the strategy could have drawn: not as good as a new one, but cheaper.
    """
    features, steps = bugs[0].features, bugs[0].steps
    names = sorted(set(drawn.origins)) if by_origin else [""]
    numbers = {name: number for number, name in enumerate(names)}
    origins = np.array([numbers.get(origin, 0) for origin in drawn.origins])
    found = np.zeros((len(names), len(bugs)), np.int64)
    random = np.random.default_rng((seed, features, steps))
    for part, simulated in simulate(drawn, steps, random):
        for naming in range(namings):
            renamed = _renamed(simulated, random) if naming else simulated
            for number, bug in enumerate(bugs):
                hits = bug.found(renamed)
                found[:, number] += np.bincount(origins[part][hits], minlength=len(names))
    counted = np.bincount(origins, minlength=len(names)) * namings
    return Odds(
        {name: int(counted[number]) for name, number in numbers.items()},
        {name: found[number] for name, number in numbers.items()},
    )


def _renamed(tests: Tests, random: np.random.Generator) -> Tests:
    """Return the tests with their features in another order."""
    names = np.append(random.permutation(tests.features), tests.features).astype(np.int16)
    return Tests(names[tests.steps], tests.features)


def by_world(bugs: Sequence[Bug]) -> dict[tuple[int, int], list[Bug]]:
    """Return the bugs by their numbers of features and of steps."""
    worlds: dict[tuple[int, int], list[Bug]] = {}
    for bug in bugs:
        worlds.setdefault((bug.features, bug.steps), []).append(bug)
    return worlds


def number_of_tests(steps: int, tests: int) -> int:
    """Return more tests where they are short: about as many steps for every length."""
    return max(tests // 4, min(4 * tests, tests * 200 // steps))
