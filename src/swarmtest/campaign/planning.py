"""Before the first test: how likely will a strategy bring certain features together?

A formula where there is one (coin tosses, sizes), else a simulation of the strategy itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from swarmtest.analysis.combinations import (
    Combination,
    coin_share,
    coin_ways,
    forbidden_by,
    sized_share,
)
from swarmtest.analysis.intervals import wilson_interval
from swarmtest.analysis.plans import EXACT, Answer, Question, from_share, from_times, from_ways
from swarmtest.analysis.simulated_swarms import (
    Ask,
    first_covering,
    first_with,
    is_fresh,
    sampled,
)
from swarmtest.errors import UserError
from swarmtest.seeds import Stream
from swarmtest.space import Configuration, Space, rates_for
from swarmtest.strategies import Coin, Default, LearningStrategy, Strategy, strategy_text
from swarmtest.strategies.sized import Sized

_GOOD_BOUND = 0.9
"""Above this chance, the union bound is as good as the truth; below it, simulation tells more."""
_NEVER = 1e-300
"""Shares below this are no longer exact, and nobody has the time anyway."""
_NEVER_TEXT = "fewer than 1 test in 10^300"


@dataclass(frozen=True)
class Planner:
    """Answers questions about the configurations that a strategy will make.

    >>> planner = Planner(Space(["push", "pop", "add"]), Coin())
    >>> planner.together(Combination(("push", "pop")), Question(wished=0.95)).needed
    Range(low=9, high=9)
    """

    space: Space
    strategy: Strategy

    def together(self, combination: Combination, question: Question) -> Answer:
        """When one test has all of these features and none of those."""
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

    def ways(self, k: int, question: Question, *, on_only: bool = False) -> list[Answer]:
        """When tests have all combinations of k features that the constraints allow."""
        count = len(self.space.features)
        if not 1 <= k <= count:
            raise UserError(f"combinations are of 1 to {count} features here, not of {k}")
        answers = []
        rates = self._rates()
        if rates is not None:
            answers.append(self._bound(rates, k, question, on_only))
        chance = answers[0].chance if answers else None
        known = question.wished if chance is None or chance.low is None else chance.low
        if not answers or known < _GOOD_BOUND:
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

    def _bound(self, rates: tuple[float, ...], k: int, question: Question, on_only: bool) -> Answer:
        ways = coin_ways(rates, k, on_only)
        if ways.rarest < _NEVER:
            name, certain = strategy_text(self.strategy), {0, 1} & {*rates}
            why = "some rate is 0 or 1" if certain else f"the rarest is in {_NEVER_TEXT}"
            raise UserError(f"strategy {name} never makes all of these combinations: {why}")
        return from_ways(ways, question)

    def _rates(self) -> tuple[float, ...] | None:
        """Each feature's rate, where independent coins are tossed for every test."""
        strategy = self.strategy
        if type(strategy) is not Coin or strategy.n or self.space.clauses:
            return None
        return None if isinstance(strategy.p, str) else rates_for(self.space, strategy.p)

    def _share(self, combination: Combination) -> float | None:
        rates, count = self._rates(), len(self.space.features)
        if rates is not None:
            numbers = self.space.feature_number
            on = [numbers[name] for name in combination.on]
            return coin_share(rates, on, [numbers[name] for name in combination.off])
        if isinstance(self.strategy, Sized) and not self.space.clauses:
            sizes = self.strategy.low, min(self.strategy.high or count, count)
            return sized_share(count, len(combination.on), len(combination.off), *sizes)
        if isinstance(self.strategy, Default):
            on_bits, off_bits = combination.masks(self.space)
            bits = self.space.default().bits
            if bits & on_bits == on_bits and not bits & off_bits:
                return 1.0
        return None

    def _simulated(self, combination: Combination, question: Question) -> Answer:
        ask = self._ask()
        on, off = combination.masks(self.space)
        if not is_fresh(ask):
            return from_times(first_with(ask, on, off, question.tests), question)
        drawn = sampled(ask)
        hits = sum(bits & on == on and not bits & off for bits in drawn)
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
