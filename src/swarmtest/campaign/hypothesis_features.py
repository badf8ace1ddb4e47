"""`features()`: a swarm configuration for each test of a plain `@given` test of Hypothesis.

    @given(swarm=features("push", "pop", "clear"), data=st.data())
    def test_stack(swarm, data):
        for _ in range(50):
            match swarm.choose(data): ...

Hypothesis has swarm testing for state machines only, and does not report it: its flags shrink
towards "everything on", so a failing example never shows which features were off. The features here
shrink towards *off*: a feature that is still on was needed for the failure.

This module does not import Hypothesis, so that `features` can say how to install it; the strategy
that draws is in `hypothesis_campaign`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.dimensions import Dimension
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.space import Space
from swarmtest.store.interface import Store
from swarmtest.strategies.strategy import LearningStrategy, Strategy, parse_strategy

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class DrawnFeatures:
    """The features that one test may use.

    >>> from swarmtest import Space
    >>> swarm = DrawnFeatures(Space(["push", "pop", "clear"]).configuration(["push", "clear"]))
    >>> swarm.enabled, "pop" in swarm, swarm.push
    (('push', 'clear'), False, True)
    >>> swarm
    <push clear, without pop>
    """

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.enabled: tuple[str, ...] = configuration.included
        """The names of the features that are on, in the order of their declaration."""
        self.used: dict[str, int] = {}
        self.events: set[str] = set()

    def __contains__(self, name: str) -> bool:
        if name not in self.configuration.space.feature_names:
            raise self._unknown(name)
        return name in self.enabled

    def __getattr__(self, name: str) -> bool:
        if name.startswith("_") or name not in self.configuration.space.feature_names:
            raise AttributeError(str(self._unknown(name)))
        return name in self.enabled

    def weight(self, name: str) -> float:
        """Return a feature's weight, from 0 to 1."""
        if name not in self.configuration.space.feature_names:
            raise self._unknown(name)
        weight: float = self.configuration[name]
        return weight

    def choose(self, source: Any) -> str:
        """Return one of the enabled features at random, in proportion to their weights.

        `source` is the value of `st.data()`, or a `random.Random`.
        """
        weights = [self.weight(name) for name in self.enabled]
        if isinstance(source, random.Random):
            (name,) = source.choices(self.enabled, weights)
        else:
            name = source.draw(self._sampled(weights))
        self.used[name] = self.used.get(name, 0) + 1
        return name

    def event(self, name: str) -> None:
        """Note that something happened in this test: a target for `swarmtest roles`."""
        self.events.add(name)

    def one_of(self, **strategies: Any) -> Any:
        """Return `st.one_of` of the given strategies whose feature is on."""
        from hypothesis import strategies as st

        for name in strategies:
            if name not in self.configuration.space.feature_names:
                raise self._unknown(name)
        enabled = [strategy for name, strategy in strategies.items() if name in self.enabled]
        return st.one_of(enabled) if enabled else st.nothing()

    def _sampled(self, weights: list[float]) -> Any:
        from hypothesis import strategies as st

        if len(set(weights)) == 1:
            return st.sampled_from(self.enabled)
        # Hypothesis samples with equal odds, so each name is repeated in proportion to its weight.
        least = min(weights)
        copies = [max(1, min(16, round(weight / least))) for weight in weights]
        return st.sampled_from(
            [name for name, count in zip(self.enabled, copies, strict=True) for _ in range(count)]
        )

    def _unknown(self, name: str) -> UserError:
        known = self.configuration.space.feature_names
        return UserError(f"there is no feature {name!r}{did_you_mean(name, known)}")

    def __repr__(self) -> str:
        names = self.configuration.space.feature_names
        off = [name for name in names if name not in self.enabled]
        without = f", without {' '.join(off)}" if off else ""
        return f"<{' '.join(self.enabled)}{without}>"


def features(
    *dimensions: Dimension | str | Iterable[Dimension | str] | Space,
    strategy: str | Strategy = "coin",
    record: bool | str | Store | None = None,
) -> SearchStrategy[DrawnFeatures]:
    """Return a Hypothesis strategy that gives each test a swarm configuration.

    `record` names a store (a path, or True for the default one) in which configurations and
    verdicts are kept as a campaign, so that `swarmtest roles` can find triggers and suppressors.
    Without it, the environment variable SWARMTEST_RECORD names the store, if it is set. Only tests
    that Hypothesis *generates* are recorded, not those that it replays, mutates or shrinks.

    >>> from hypothesis import given, settings
    >>> @given(swarm=features("push", "pop"))
    ... @settings(max_examples=5, database=None)
    ... def test(swarm): assert swarm.push or swarm.pop
    >>> test()
    """
    chosen = parse_strategy(strategy) if isinstance(strategy, str) else strategy
    if isinstance(chosen, LearningStrategy):
        raise UserError(
            f"features(): strategy {strategy!r} learns from results, and Hypothesis needs the same "
            "draws to give the same test: use a strategy like coin, layered or covering"
        )
    space = _space(dimensions)
    if space.settings:
        raise UserError(
            "features() takes only features: draw other settings with Hypothesis itself"
        )
    try:
        from swarmtest.campaign.hypothesis_campaign import FeaturesStrategy
    except ImportError:
        raise UserError(
            "features() needs Hypothesis: pip install 'swarmtest[hypothesis]'"
        ) from None

    return FeaturesStrategy(space, chosen, record)


def _space(dimensions: tuple[Any, ...]) -> Space:
    if len(dimensions) == 1 and isinstance(dimensions[0], Space):
        return dimensions[0]
    if len(dimensions) == 1 and not isinstance(dimensions[0], str | Dimension):
        dimensions = tuple(dimensions[0])
    if not dimensions:
        raise UserError('features(): name at least one feature, like features("push", "pop")')
    return Space(dimensions)
