"""Hedged: layered swarms whose shares limit how far behind they are, whatever the bug is.

A mixture finds a bug as often as the mean of its families, by their shares. So no bug can be
further behind a strategy than one over the share of the family that draws as that strategy does:
`equal` as all-on, `coin` and `biased-coin` as coin, `spent` and `uniform` as activation. Their
shares limit the worst case, whatever the bug is. Groups have what the blog's example of three and
three features needs. The other families find kinds of bugs that no single strategy finds well;
their shares come from bugs for tuning, so that each kind came off well when the others alone had
chosen (``benchmarks/bug_families/choice.py``).

Most families are those of `layered`, but all features are in a test where `layered` sometimes
leaves some out. In `spent` and `short`, a weight below 1 skips the step of its feature, so tests
have fewer steps, and features that appear a few times only: the length of a test is drawn with its
weights. A `ladder` ranks some of the features, each less common than the one before by one factor.

All families but `uniform` have known propensities: a member of a ladder never has a weight that is
too small to count.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.strategies.layered import (
    FLOOR,
    Family,
    Layered,
    Weights,
    biased_coin,
    equal,
    fair_coin,
    some_of,
    uniform,
    whole_dominant,
    whole_groups,
)
from swarmtest.strategies.strategy import register

LEAST_SPENT = 1 / 128
"""The smallest weight in `spent`."""
_MOST_HALVINGS = 6.0
"""The smallest weight in `short` is one half to the power of this."""


def spent(space: Space, rng: Stream) -> Weights:
    """Draw activation probabilities that skip steps, for features that appear a few times.

    >>> 0 < spent(Space(["push", "pop"]), Stream())["push"] <= 1
    True
    """
    return {name: max(1.0 - rng.named(name), LEAST_SPENT) for name in space.feature_names}


def short(space: Space, rng: Stream) -> Weights:
    """Give all features the same small weight, which skips most steps: a short test."""
    return dict.fromkeys(space.feature_names, short_weight(rng.named("*length")))


def ladder(space: Space, rng: Stream) -> Weights:
    """Draw a ranking of some features, each less common than the one before by one factor."""
    members = some_of(space.feature_names, rng.named("*share"), rng)
    order, rungs = sorted(members, key=rng.named), rungs_of(rng.named("*rungs"))
    rungs += [FLOOR] * len(order)
    return dict(zip(order, rungs, strict=False))


def rungs_of(draw: float) -> list[float]:
    """Return the weights of a ladder above the floor; each is 0.35 to 0.87 of the one before.

    >>> rungs_of(0.9)[:3]
    [1.0, 0.38689124838559746, 0.14968483807736607]
    """
    factor, rungs = rung_factor(draw), [1.0]
    while rungs[-1] * factor > FLOOR:
        rungs.append(rungs[-1] * factor)
    return rungs


def rung_factor(draw: float) -> float:
    """Return the factor from one rung of a ladder to the next."""
    return float(2.0 ** -(0.2 + 1.3 * draw))


def short_weight(draw: float) -> float:
    """Return the weight of all features in a short test."""
    return float(2.0 ** (-_MOST_HALVINGS * draw))


HEDGED_FAMILIES: tuple[tuple[str, float, Family], ...] = (
    ("coin", 0.34, fair_coin),
    ("short", 0.05, short),
    ("spent", 0.09, spent),
    ("whole-groups", 0.13, whole_groups),
    ("ladder", 0.12, ladder),
    ("uniform", 0.04, uniform),
    ("whole-dominant", 0.06, whole_dominant),
    ("biased-coin", 0.06, biased_coin),
    ("equal", 0.11, equal),
)
"""Each family's name, its share of the tests, and how it draws weights."""


@register("hedged")
@dataclass(frozen=True)
class Hedged(Layered):
    """Draw families as `layered` does, with shares that limit how far behind it can be.

    >>> Hedged().ask(Space(["push", "pop"]), 0, Stream(campaign_seed=1)).origin
    'ladder'
    """

    renormalise: bool = True
    """Choose in proportion to the weights in most families; otherwise all of them spend steps."""

    families: ClassVar[Sequence[tuple[str, float, Family]]] = HEDGED_FAMILIES
    bounds: ClassVar[Sequence[float]] = list(
        itertools.accumulate(share for _, share, _ in HEDGED_FAMILIES)
    )[:-1]
    spending: ClassVar[frozenset[str]] = frozenset({"short", "spent"})

    def _batch_draws(self) -> Mapping[str, Any]:
        from swarmtest.strategies._hedged_batches import HEDGED_DRAWING

        return HEDGED_DRAWING
