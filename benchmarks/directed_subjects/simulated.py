"""Simulated subjects whose truth is known: what each target needs is written down here.

A simulated test is a sequence of steps, each of a feature that is drawn from those that are on; a
step of a feature with weight w is skipped with probability 1 - w, as in machines. A *target model*
says which sequences hit. A step has luck: a number from 0 to 1 that stands for its arguments, so
that a target may need a lucky step. A test costs an overhead and what its steps cost.

The kinds of models are split into those that a strategy may be tuned on and those by which it is
judged. The split was made before any tuning, and no kind is in both. Everything else (the number of
features, the costs, how rare targets are, how long tests are) varies in both halves.

Roles are computed as `swarmtest focus` does it, from tests with a coin for each feature, and the
protocol is that of real subjects: targets are chosen by one campaign, and how often undirected
tests hit them is known from another one.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from measuring import Factory, Measurement, StrategiesOf

from swarmtest.analysis.intervals import binomial_p_value, wilson_interval
from swarmtest.core.configuration import Configuration
from swarmtest.core.result import Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.strategies.strategy import Strategy

Steps = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]
HitBy = Callable[[Steps, Floats], bool]
"""Whether a sequence of features, with the luck of each step, hits a target."""
Draw = Callable[[random.Random, Sequence[int]], HitBy]
"""Draws a target model, given the features in the order of their popularity."""


def _feature(rng: random.Random, features: Sequence[int]) -> int:
    """Draw a feature; some matter to many targets, as in real programs."""
    return features[min(int(rng.expovariate(2.5) * len(features)), len(features) - 1)]


def _features(rng: random.Random, features: Sequence[int], count: int) -> list[int]:
    chosen: list[int] = []
    while len(chosen) < count:
        feature = _feature(rng, features)
        if feature not in chosen:
            chosen.append(feature)
    return chosen


def _luck(rng: random.Random) -> float:
    """Return the share of steps that are lucky enough for a target."""
    return 10 ** -rng.uniform(0, 2)


# Kinds of target models for tuning.


def single(rng: random.Random, features: Sequence[int]) -> HitBy:
    """A lucky step of one feature."""
    wanted, luck = _feature(rng, features), _luck(rng)
    return lambda steps, lucks: bool(((steps == wanted) & (lucks < luck)).any())


def pair(rng: random.Random, features: Sequence[int]) -> HitBy:
    """A lucky step of each of two features, in any order."""
    first, second = _features(rng, features, 2)
    luck, other = _luck(rng), _luck(rng)

    def hit(steps: Steps, lucks: Floats) -> bool:
        return bool(
            ((steps == first) & (lucks < luck)).any()
            and ((steps == second) & (lucks < other)).any()
        )

    return hit


def filled(rng: random.Random, features: Sequence[int]) -> HitBy:
    """So many steps of one feature, and none of another one between them."""
    fill, empty = _features(rng, features, 2)
    count = rng.randint(2, 6)

    def hit(steps: Steps, lucks: Floats) -> bool:
        level = 0
        for step in steps[(steps == fill) | (steps == empty)].tolist():
            level = level + 1 if step == fill else 0
            if level == count:
                return True
        return False

    return hit


def counted(rng: random.Random, features: Sequence[int]) -> HitBy:
    """At least so many steps of one feature."""
    wanted, count = _feature(rng, features), rng.randint(2, 8)
    return lambda steps, lucks: int((steps == wanted).sum()) >= count


def ordered(rng: random.Random, features: Sequence[int]) -> HitBy:
    """A lucky step of one feature, later one of another."""
    first, second = _features(rng, features, 2)
    luck = _luck(rng)

    def hit(steps: Steps, lucks: Floats) -> bool:
        begun = np.flatnonzero((steps == first) & (lucks < luck))
        return len(begun) > 0 and bool((steps[begun[0] :] == second).any())

    return hit


def helped(rng: random.Random, features: Sequence[int]) -> HitBy:
    """A lucky step of one feature; after a step of another one, less luck is needed."""
    wanted, helper = _features(rng, features, 2)
    luck, more = _luck(rng) / 4, rng.uniform(3, 10)

    def hit(steps: Steps, lucks: Floats) -> bool:
        after = np.logical_or.accumulate(steps == helper)
        return bool(((steps == wanted) & (lucks < luck * np.where(after, more, 1.0))).any())

    return hit


# Kinds of target models for judging.


def triple(rng: random.Random, features: Sequence[int]) -> HitBy:
    """A lucky step of one feature, and any step of two others."""
    first, second, third = _features(rng, features, 3)
    luck = _luck(rng) ** 0.5

    def hit(steps: Steps, lucks: Floats) -> bool:
        return bool(
            ((steps == first) & (lucks < luck)).any()
            and (steps == second).any()
            and (steps == third).any()
        )

    return hit


def either(rng: random.Random, features: Sequence[int]) -> HitBy:
    """A lucky step of one of two features, after one of a third."""
    first, second, before = _features(rng, features, 3)
    luck = _luck(rng)

    def hit(steps: Steps, lucks: Floats) -> bool:
        after = np.logical_or.accumulate(steps == before)
        either = (steps == first) | (steps == second)
        return bool((either & after & (lucks < luck)).any())

    return hit


def spoilt(rng: random.Random, features: Sequence[int]) -> HitBy:
    """A lucky step of one feature, as long as none of two others was seen."""
    wanted, *spoilers = _features(rng, features, 3)
    luck = _luck(rng) ** 0.5

    def hit(steps: Steps, lucks: Floats) -> bool:
        clean = ~np.logical_or.accumulate(np.isin(steps, spoilers))
        return bool(((steps == wanted) & clean & (lucks < luck)).any())

    return hit


def adjacent(rng: random.Random, features: Sequence[int]) -> HitBy:
    """A step of one feature directly after one of another."""
    first, second = _features(rng, features, 2)
    return lambda steps, lucks: bool(((steps[:-1] == first) & (steps[1:] == second)).any())


def balance(rng: random.Random, features: Sequence[int]) -> HitBy:
    """So many more steps of one feature than of another, as in a stack that overflows."""
    push, pop = _features(rng, features, 2)
    height = rng.randint(2, 8)

    def hit(steps: Steps, lucks: Floats) -> bool:
        level = 0
        for step in steps[(steps == push) | (steps == pop)].tolist():
            level = level + 1 if step == push else max(level - 1, 0)
            if level == height:
                return True
        return False

    return hit


def opened(rng: random.Random, features: Sequence[int]) -> HitBy:
    """A lucky step of one feature while something is open, which others open and close."""
    opens, closes, wanted = _features(rng, features, 3)
    luck = _luck(rng)

    def hit(steps: Steps, lucks: Floats) -> bool:
        is_open = False
        for step, drawn in zip(steps.tolist(), lucks.tolist(), strict=True):
            if step == opens:
                is_open = True
            elif step == closes:
                is_open = False
            elif step == wanted and is_open and drawn < luck:
                return True
        return False

    return hit


def close_by(rng: random.Random, features: Sequence[int]) -> HitBy:
    """So many steps of one feature within a few steps, after one of another."""
    wanted, before = _features(rng, features, 2)
    count, width = rng.randint(2, 3), rng.randint(3, 8)

    def hit(steps: Steps, lucks: Floats) -> bool:
        begun = np.flatnonzero(steps == before)
        if not len(begun):
            return False
        at = np.flatnonzero(steps == wanted)
        at = at[at > begun[0]]
        return bool((at[count - 1 :] - at[: len(at) - count + 1] < width).any())

    return hit


TUNING: tuple[Draw, ...] = (single, pair, filled, counted, ordered, helped)
JUDGING: tuple[Draw, ...] = (triple, either, spoilt, adjacent, balance, opened, close_by)


# Subjects.

FREQUENT, RARE = (0.1, 0.3), (0.005, 0.05)
"""How often undirected tests hit the targets of a subject; the first is the papers' choice."""
SEED_TESTS, CONTROL_TESTS, TESTS = 2000, 3000, 300
_MOST_TARGETS = 20
_TRIES = 3000


@dataclass(frozen=True)
class Variant:
    """What a subject is like, besides its targets."""

    features: int
    steps: int
    cost_spread: float
    """The standard deviation of the logarithm of the features' costs; 0: all cost the same."""
    overhead: float
    """What a test costs besides its steps, in steps."""
    weighted: bool
    share: tuple[float, float]


VARIANTS = (
    Variant(10, 20, 0.0, 5.0, True, FREQUENT),
    Variant(20, 60, 1.0, 20.0, True, FREQUENT),
    Variant(40, 40, 1.0, 10.0, False, FREQUENT),
    Variant(40, 50, 0.5, 5.0, True, RARE),
    Variant(100, 100, 1.5, 30.0, False, FREQUENT),
    Variant(100, 80, 0.0, 40.0, False, RARE),
)


@dataclass(frozen=True)
class Simulated:
    """A simulated subject: targets of one kind, in one variant."""

    kind: Draw
    variant: Variant
    number: int

    @property
    def name(self) -> str:
        return f"{self.kind.__name__} {self.number}"

    @property
    def title(self) -> str:
        return f"simulated: {self.name}"

    def repeated(self, repetition: int) -> SimulatedRun:
        """Return the subject with models and tests of its own for each repetition."""
        return SimulatedRun(self, repetition)


def simulated(kinds: Sequence[Draw], variants: Sequence[Variant] = VARIANTS) -> list[Simulated]:
    """Return the subjects of some kinds, each in all variants."""
    return [
        Simulated(kind, variant, number)
        for kind in kinds
        for number, variant in enumerate(variants, 1)
    ]


@dataclass
class Tests:
    """Simulated tests of one strategy: how many hit each target, and what they cost."""

    tests: int
    cost: float
    hits: Mapping[str, int]

    def of(self, targets: Sequence[str]) -> int:
        return sum(self.hits[name] for name in targets)


class SimulatedRun:
    """One repetition of a simulated subject; the same in every run of the benchmark."""

    def __init__(self, subject: Simulated, repetition: int) -> None:
        self.subject, self.repetition = subject, repetition
        self.variant = subject.variant
        key = zlib.crc32(f"{subject.name} {repetition}".encode())
        self._rng, self._draws = random.Random(key), np.random.default_rng(key)
        self.space = Space([f"f{number}" for number in range(self.variant.features)])
        spread = self._draws.normal(size=self.variant.features) * self.variant.cost_spread
        self._costs = np.exp(spread - self.variant.cost_spread**2 / 2) * 1e-4
        self.models: dict[str, HitBy] = {}
        self.aims: dict[str, Aim] = {}
        self._choose_targets()

    def _choose_targets(self) -> None:
        """Draw models until enough of them are as rare as the variant says."""
        popularity = self._rng.sample(range(self.variant.features), self.variant.features)
        seed = [self.steps_of(self._coin()) for _ in range(SEED_TESTS)]
        few = SEED_TESTS // 10
        low, high = self.variant.share
        for _ in range(_TRIES):
            model = self.subject.kind(self._rng, popularity)
            early = [model(steps, lucks) for _, steps, lucks, _ in seed[:few]]
            if not low / 4 <= sum(early) / few <= min(2 * high, 0.6):
                continue
            hit = np.array(early + [model(steps, lucks) for _, steps, lucks, _ in seed[few:]])
            if low <= hit.mean() <= high:
                name = f"event:{len(self.models)}"
                self.models[name] = model
                self.aims[name] = _aim(name, np.array([on for on, *_ in seed]), hit, self.space)
            if len(self.models) == _MOST_TARGETS:
                return

    def _coin(self) -> Configuration:
        bits = 0
        while not bits:
            bits = self._rng.getrandbits(self.variant.features)
        return Configuration(self.space, bits)

    def steps_of(
        self, configuration: Configuration
    ) -> tuple[npt.NDArray[np.bool_], Steps, Floats, float]:
        """Simulate a test: return what is on, the features of its steps, their luck, its cost."""
        weights = np.array(configuration.weights)
        on = np.flatnonzero(weights)
        steps = on[(self._draws.random(self.variant.steps) * len(on)).astype(np.intp)]
        if configuration.fractional:
            steps = steps[self._draws.random(len(steps)) < weights[steps]]
        cost = self.variant.overhead * 1e-4 + float(self._costs[steps].sum())
        noise = float(self._draws.gamma(20.0, 1 / 20.0))
        return weights > 0, steps, self._draws.random(len(steps)), cost * noise

    def sample(self, strategy: Strategy, tests: int, names: Sequence[str], seed: int = 0) -> Tests:
        """Run tests of a strategy, a few at a time, as a campaign does."""
        hits = dict.fromkeys(names, 0)
        total = 0.0
        batch = 10
        tell = getattr(strategy, "tell", None)
        if hasattr(strategy, "prepare"):
            strategy.prepare(self.space)
        for start in range(0, tests, batch):
            results = []
            for trial in range(start, min(start + batch, tests)):
                answer = strategy.ask(self.space, trial, Stream(seed, trial))
                configuration = answer.configuration if isinstance(answer, Proposal) else answer
                _, steps, lucks, cost = self.steps_of(configuration)
                hit = tuple(name for name in names if self.models[name](steps, lucks))
                for name in hit:
                    hits[name] += 1
                total += cost
                used = tuple(np.bincount(steps, minlength=self.variant.features).tolist())
                results.append(
                    Result(
                        Verdict.PASSED,
                        used=used,
                        hits=hit,
                        trial=trial,
                        configuration=configuration,
                        cpu_seconds=cost,
                    )
                )
            if tell:
                for result in results:
                    tell(result)
        return Tests(tests, total, hits)

    @cached_property
    def control(self) -> Tests:
        """Undirected tests, with which directed ones are compared."""
        hits = dict.fromkeys(self.models, 0)
        total = 0.0
        for _ in range(CONTROL_TESTS):
            _, steps, lucks, cost = self.steps_of(self._coin())
            total += cost
            for name, model in self.models.items():
                hits[name] += model(steps, lucks)
        return Tests(CONTROL_TESTS, total, hits)

    def measure(
        self, sets: Mapping[int, int], strategies: StrategiesOf, tests: int = TESTS
    ) -> list[Measurement]:
        """Run all strategies for random sets of targets, so many of each size."""
        found = []
        for size, count in sets.items():
            for number in range(count):
                if len(self.models) < size:
                    continue
                names = sorted(self._rng.sample(sorted(self.models), size))
                if not self.control.of(names):
                    continue
                for strategy, factory in strategies(size).items():
                    found.append(self._measured(names, number, strategy, factory, tests))
        return found

    def _measured(
        self, names: Sequence[str], number: int, name: str, factory: Factory, tests: int
    ) -> Measurement:
        size, control = len(names), self.control
        strategy = factory([self.aims[target] for target in names])
        if hasattr(strategy, "weighted"):
            strategy.weighted = self.variant.weighted
        sample = self.sample(strategy, tests, names, self.repetition)
        return Measurement(
            self.subject.name,
            self.repetition,
            size,
            number,
            name,
            sample.of(names) / sample.tests / size,
            control.of(names) / control.tests / size,
            sample.of(names) / sample.cost,
            control.of(names) / control.cost,
        )


def _aim(name: str, on: npt.NDArray[np.bool_], hit: npt.NDArray[np.bool_], space: Space) -> Aim:
    """Return an aim with the roles that these tests show, as `swarmtest.roles` computes them."""
    hits = int(hit.sum())
    containing = on[hit].sum(axis=0)
    low, high = (np.asarray(end) for end in wilson_interval(containing, hits, 0.95))
    p_values = np.asarray(binomial_p_value(containing, hits, 0.5))
    certain = (p_values <= 0.01 / len(p_values)) & (low > 0.5)
    names = np.array(space.feature_names)
    return Aim(
        (Goal(name),),
        frozenset(names[low > 0.5].tolist()),
        frozenset(names[high < 0.5].tolist()),
        frozenset(names[certain].tolist()),
    )
