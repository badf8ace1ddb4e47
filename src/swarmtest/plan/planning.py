"""Before the first test: how likely will a strategy bring certain features together?

`CombinationPlanner` uses a formula where there is one (coin tosses, sizes), and otherwise simulates
the strategy: it asks for configurations as a campaign would, and counts. Asking costs microseconds,
so thousands of configurations can be drawn before the first test runs. The seeds are fixed, so the
same question has the same answer. For the same reason, simulation is limited by counted work, not
by time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.intervals import wilson_interval
from swarmtest.core.configuration import Configuration
from swarmtest.core.constraints import solve
from swarmtest.core.errors import UserError
from swarmtest.core.sampling import rates_for
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.plan.combinations import (
    Combination,
    KWayCombinations,
    chance_in,
    coin_share,
    coin_ways,
    forbidden_by,
    needed,
    sized_share,
)
from swarmtest.strategies.simple import AllOn, Coin, Sized
from swarmtest.strategies.strategy import LearningStrategy, Strategy, strategy_text

Ask = Callable[[int, Stream], int]
"""From a trial and its stream to the bits of the included features."""

EXACT = "exact"
BOUND = "union bound"
_GOOD_BOUND = 0.9
"""Above this chance, the union bound is as good as the truth; below it, simulation says more."""
_NEVER = 1e-300
"""Smaller shares are no longer exact, and nobody has the time for that many tests anyway."""
_NEVER_TEXT = "fewer than 1 test in 10^300"

SAMPLES = 10_000
"""How many configurations are drawn to find out how often something is in one."""
_CAMPAIGNS = 400
"""How many campaigns are simulated to find out when something first appears in one."""
_FEWEST = 50
"""With fewer campaigns, an interval says next to nothing."""
_ASKS = 100_000
"""The number of configurations of all simulated campaigns together."""
_LOOKS = 300_000_000
"""How often k features of a configuration are looked at, in all simulated campaigns together."""
_MOST_SOLVED = 50_000
"""For how many combinations the solver checks whether constraints allow them."""


@dataclass(frozen=True)
class Range:
    """A number that is known exactly (low = high) or within an interval; None if an end is unknown.

    >>> Range(23, 23).is_exact
    True
    """

    low: float | None
    high: float | None

    @property
    def is_exact(self) -> bool:
        """Return whether it is one number."""
        return self.low == self.high

    def to_json(self) -> list[float | None]:
        """Return the two ends as plain data."""
        return [self.low, self.high]


@dataclass(frozen=True)
class PlanQuestion:
    """A question: how likely within `tests` tests; or, without them, how many tests for a chance?

    >>> PlanQuestion(tests=100).wished
    0.95
    """

    tests: int | None = None
    wished: float = 0.95


@dataclass(frozen=True)
class PlanAnswer:
    """The chance within n tests, or the number of tests for a chance."""

    method: str
    """``exact``, ``union bound``, or what was simulated."""
    needed: Range | None = None
    """The number of tests for the wished chance, if that was the question."""
    tests: int | None = None
    chance: Range | None = None
    """The chance within `tests` tests: those asked for, or all that were simulated without
    success."""
    share: Range | None = None
    """The share of configurations that have it, if that is the same for all tests."""

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain data."""
        return {name: v.to_json() if isinstance(v, Range) else v for name, v in vars(self).items()}


@dataclass(frozen=True)
class CombinationPlanner:
    """A planner that answers questions about the configurations that a strategy will create.

    >>> planner = CombinationPlanner(Space(["push", "pop", "add"]), Coin())
    >>> planner.together(Combination(("push", "pop")), PlanQuestion(wished=0.95)).needed
    Range(low=9, high=9)
    """

    space: Space
    strategy: Strategy

    def together(self, combination: Combination, question: PlanQuestion) -> PlanAnswer:
        """Answer when one test has all of these features and none of those."""
        rules = forbidden_by(self.space, combination)
        if rules:
            raise UserError(f"there is no test {combination}: {'; '.join(rules)}")
        share = self._share(combination)
        if share is None:
            return self._simulated(combination, question)
        if share < _NEVER:
            raise UserError(
                f"strategy {strategy_text(self.strategy)} never makes a test {combination}"
                + (f" (in theory, in {_NEVER_TEXT})" if share else "")
            )
        return from_share(share, share, EXACT, question)

    def ways(self, k: int, question: PlanQuestion, *, on_only: bool = False) -> list[PlanAnswer]:
        """Answer when tests have all combinations of k features that the constraints allow."""
        count = len(self.space.features)
        if not 1 <= k <= count:
            raise UserError(f"combinations are of 1 to {count} features here, not of {k}")
        answers = []
        rates = self._rates()
        if rates is not None:
            answers.append(self._bound(rates, k, question, on_only))
        chance = answers[0].chance if answers else None
        bound = question.wished if chance is None or chance.low is None else chance.low
        if not answers or bound < _GOOD_BOUND:
            ask = self._ask()
            self._refuse_constant(ask, "it never makes all of these combinations")
            first = first_covering(ask, self.space, k, on_only, question.tests)
            answers += [from_times(first, question)] if first else []
        if not answers:
            raise UserError(
                f"{k}-way combinations of {count} features are too many to simulate for "
                f"{strategy_text(self.strategy)}: take smaller ones, or coin, which has a formula"
            )
        return answers

    def _bound(
        self, rates: tuple[float, ...], k: int, question: PlanQuestion, on_only: bool
    ) -> PlanAnswer:
        ways = coin_ways(rates, k, on_only)
        if ways.rarest < _NEVER:
            name, certain = strategy_text(self.strategy), {0, 1} & {*rates}
            why = "some rate is 0 or 1" if certain else f"the rarest is in {_NEVER_TEXT}"
            raise UserError(f"strategy {name} never makes all of these combinations: {why}")
        return from_ways(ways, question)

    def _rates(self) -> tuple[float, ...] | None:
        """Return each feature's rate if independent coins are tossed for every test, or None."""
        strategy = self.strategy
        if type(strategy) is not Coin or strategy.n or self.space.clauses:
            return None
        return None if isinstance(strategy.p, str) else rates_for(self.space, strategy.p)

    def _share(self, combination: Combination) -> float | None:
        """Return the exact share of tests with a combination, or None without a formula."""
        rates, count = self._rates(), len(self.space.features)
        if rates is not None:
            numbers = self.space.feature_number
            on = [numbers[name] for name in combination.on]
            return coin_share(rates, on, [numbers[name] for name in combination.off])
        if isinstance(self.strategy, Sized) and not self.space.clauses:
            self.strategy.ask(self.space, 0, Stream())  # raises the errors of this space
            sizes = self.strategy.low, min(self.strategy.high or count, count)
            return sized_share(count, len(combination.on), len(combination.off), *sizes)
        if isinstance(self.strategy, AllOn):
            on_bits, off_bits = combination.masks(self.space)
            bits = self.space.default().bits
            if _has(bits, on_bits, off_bits):
                return 1.0
        return None

    def _simulated(self, combination: Combination, question: PlanQuestion) -> PlanAnswer:
        ask = self._ask()
        on, off = combination.masks(self.space)
        if not is_fresh(ask):
            return from_times(first_with(ask, on, off, question.tests), question)
        drawn = sampled(ask)
        hits = sum(_has(bits, on, off) for bits in drawn)
        if not hits:
            self._refuse_constant(ask, f"none is {combination}")
        low, high = wilson_interval(hits, len(drawn))
        return from_share(low, high, f"{len(drawn):,} simulated configurations", question)

    def _refuse_constant(self, ask: Ask, what: str) -> None:
        if len({*sampled(ask, 500)}) == 1:
            name = strategy_text(self.strategy)
            raise UserError(f"strategy {name} has the same features in every test: {what}")

    def _ask(self) -> Ask:
        strategy = self.strategy
        if isinstance(strategy, LearningStrategy):
            raise UserError(
                f"strategy {strategy_text(strategy)} learns from results: what it will choose "
                "cannot be planned"
            )
        if hasattr(strategy, "prepare"):
            strategy.prepare(self.space)

        def ask(trial: int, rng: Stream) -> int:
            answer = strategy.ask(self.space, trial, rng)
            return (answer if isinstance(answer, Configuration) else answer.configuration).bits

        return ask


def from_share(low: float, high: float, method: str, question: PlanQuestion) -> PlanAnswer:
    """Answer if each test has it with the same chance, independently of the others.

    >>> from_share(0.5, 0.5, EXACT, PlanQuestion(wished=0.95)).needed
    Range(low=5, high=5)
    """
    share = Range(low, high)
    if question.tests is not None:
        chance = Range(chance_in(low, question.tests), chance_in(high, question.tests))
        return PlanAnswer(method, None, question.tests, chance, share)
    least, most = (needed(end, question.wished) if end else None for end in (high, low))
    return PlanAnswer(method, Range(least, most), share=share)


def from_ways(ways: KWayCombinations, question: PlanQuestion) -> PlanAnswer:
    """Answer for all of many combinations, by the union bound.

    The chance is at least the one given, and the number of tests is enough.
    """
    share = Range(ways.rarest, ways.rarest)
    if question.tests is not None:
        chance = Range(ways.chance_in(question.tests), chance_in(ways.rarest, question.tests))
        return PlanAnswer(BOUND, None, question.tests, chance, share)
    wished = question.wished
    return PlanAnswer(BOUND, Range(needed(ways.rarest, wished), ways.needed(wished)), share=share)


def from_times(first: FirstTimes, question: PlanQuestion) -> PlanAnswer:
    """Answer from simulated campaigns.

    >>> times = FirstTimes((1,) * 94 + (7,) * 6, campaigns=100, limit=20)
    >>> from_times(times, PlanQuestion(wished=0.95)).needed
    Range(low=1, high=7)
    """
    method = f"{first.campaigns} simulated campaigns"
    n = question.tests if question.tests is not None else first.limit
    chance = Range(*wilson_interval(first.within(n), first.campaigns))
    if question.tests is not None:
        return PlanAnswer(method, None, n, chance)
    least, most = (_time_at(first, question.wished, end) for end in (1, 0))
    return PlanAnswer(method, Range(least, most), *((n, chance) if most is None else ()))


def _time_at(first: FirstTimes, wished: float, end: int) -> int | None:
    """Return the first time at which this end of the interval reaches the wished chance."""
    for time in sorted({*first.times}):
        if wilson_interval(first.within(time), first.campaigns)[end] >= wished:
            return time
    return None


# Simulation.


@dataclass(frozen=True)
class FirstTimes:
    """After how many tests simulated campaigns had it; those that never did are left out."""

    times: tuple[int, ...]
    """In ascending order."""
    campaigns: int
    limit: int
    """How many tests each campaign has."""

    def within(self, n: int) -> int:
        """Return how many campaigns had it within n tests.

        >>> FirstTimes((3, 8, 8), campaigns=4, limit=10).within(8)
        3
        """
        return int(np.searchsorted(self.times, n, side="right"))


def is_fresh(ask: Ask) -> bool:
    """Return whether every configuration is drawn independently of the trial number.

    >>> is_fresh(lambda trial, rng: 1 + int(rng.named("coin") < 0.5))
    True
    >>> is_fresh(lambda trial, rng: 1 + trial % 2)
    False
    """
    return all(ask(0, Stream(0, trial)) == ask(trial, Stream(0, trial)) for trial in range(1, 65))


def sampled(ask: Ask, samples: int = SAMPLES) -> list[int]:
    """Return the configurations of one long campaign, as bits."""
    return [ask(trial, Stream(0, trial)) for trial in range(samples)]


def first_with(ask: Ask, on: int, off: int, n: int | None = None) -> FirstTimes:
    """Return when campaigns first have all features of one mask on and all of another off."""
    limit = _limit(n)
    campaigns = min(_CAMPAIGNS, _ASKS // limit)
    times = (
        next((t + 1 for t in range(limit) if _has(ask(t, Stream(seed, t)), on, off)), None)
        for seed in range(campaigns)
    )
    return FirstTimes(tuple(sorted(t for t in times if t is not None)), campaigns, limit)


def _limit(n: int | None) -> int:
    longest = _ASKS // _FEWEST
    if n is not None and n > longest:
        raise UserError(f"simulated campaigns have at most {longest:,} tests, not {n:,}")
    return n or longest // 2


def _has(bits: int, on: int, off: int) -> bool:
    return bits & on == on and not bits & off


def first_covering(
    ask: Ask, space: Space, k: int, on_only: bool, n: int | None = None
) -> FirstTimes | None:
    """Return when campaigns first have all k-way combinations that the constraints allow.

    Return None if that is too much to simulate.
    """
    count, limit = len(space.features), _limit(n)
    subsets = math.comb(count, k)
    # Fair coins need about this many tests; other strategies need more.
    least = min(limit, 2**k * math.log(subsets * 2**k))
    if subsets * k * least * _FEWEST > _LOOKS:
        return None
    sets = np.array(list(itertools.combinations(range(count), k)), np.int64)
    wanted = _wanted(space, sets, on_only)
    asks, looks = 0, 0
    times: list[int | None] = []
    while len(times) < _CAMPAIGNS and asks < _ASKS and looks < _LOOKS:
        time = _time_to_cover(ask, len(times), sets, wanted, count, limit)
        asks += time or limit
        looks = asks * subsets * k
        times.append(time)
    if len(times) < _FEWEST:
        return None
    return FirstTimes(tuple(sorted(t for t in times if t is not None)), len(times), limit)


def _wanted(space: Space, sets: npt.NDArray[np.int64], on_only: bool) -> npt.NDArray[np.bool_]:
    """Return, for each set of k features and its 2^k patterns, whether it is to be covered."""
    k = sets.shape[1]
    wanted = np.full((len(sets), 2**k), not on_only)
    wanted[:, -1] = True
    if k == len(space.features):
        wanted[:, 0] = False
    if space.clauses:
        if wanted.sum() > _MOST_SOLVED:
            raise UserError(
                f"under constraints, at most {_MOST_SOLVED:,} combinations can be looked at, and "
                f"{k}-way there are {wanted.sum():,}: take fewer --ways"
            )
        for row, pattern in np.argwhere(wanted).tolist():
            wanted[row, pattern] = _is_allowed(space, sets[row].tolist(), pattern)
    return wanted


def _is_allowed(space: Space, features: Sequence[int], pattern: int) -> bool:
    on = sum(1 << f for i, f in enumerate(features) if pattern >> i & 1)
    off = sum(1 << f for i, f in enumerate(features) if not pattern >> i & 1)
    return solve([space.never_empty, *space.clauses], on, off) is not None


def _time_to_cover(
    ask: Ask,
    seed: int,
    sets: npt.NDArray[np.int64],
    wanted: npt.NDArray[np.bool_],
    count: int,
    limit: int,
) -> int | None:
    """Return after how many tests of a campaign all is covered; None if not within the limit."""
    left, total = wanted.ravel().copy(), int(wanted.sum())
    places = np.arange(len(sets)) * wanted.shape[1]
    columns = [(column.copy(), 1 << i) for i, column in enumerate(sets.T)]
    for trial in range(limit):
        bits = ask(trial, Stream(seed, trial))
        on = np.array([bits >> i & 1 for i in range(count)], np.int64)
        cells = sum((on[column] * weight for column, weight in columns), places)
        total -= int(np.count_nonzero(left[cells]))
        left[cells] = False
        if not total:
            return trial + 1
    return None
