"""Draw configurations by coin tosses, under constraints, and record the odds.

Features that no constraint mentions are tossed independently, each with the draw of its own name.
Features under constraints are tossed one by one in a random order; what the constraints then leave
no choice about is set, not tossed. That needs no rejection, so it works for chains of `requires`
that independent coins would never satisfy.

No configuration is empty. Without constraints, an empty one is tossed once more, now with the odds
that redrawing until it is not empty would give ("a non-empty subset": swarm testing, section 1).
With constraints, "not empty" is one more constraint.

Analysis needs propensities to stay causal: the probability with which each feature was included.
Without constraints it is that of the whole draw. With constraints it is the probability at the
moment of the toss, given what had been decided before: 0 or 1 if nothing was left to toss. In both
cases its mean over many trials is the rate at which the feature is included.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swarmtest.core.configuration import Configuration, weighted
from swarmtest.core.constraints import Decisions, Masks, Solver
from swarmtest.core.dimensions import Scalar
from swarmtest.core.errors import UserError
from swarmtest.core.requirements import Requirements
from swarmtest.core.seeds import Stream, key_of
from swarmtest.core.space import Space

ORDER = 1000
"""The attempt whose draws give the order of tosses: far from the attempts used for the tosses."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A strategy's answer: a configuration, the odds it was drawn with, and where it came from.

    `propensities` holds one probability per feature, or a single one that all features share, or
    nothing if the strategy does not know them. It is the probability that the feature is included,
    *given which of the others are*. Only then does a feature that has nothing to do with a target
    appear in the tests that hit it exactly as often as its propensity says. (Take configurations of
    random size: those that contain what the target needs are larger than most, so every feature is
    in them more often than it is overall.) Where features are drawn independently, the two
    probabilities are the same. An empty configuration is never run, but the odds are those of a
    draw that may be empty, because it is known what an empty test does.

    An `origin` that ends in ``member 7`` or ``row 7`` names one of a fixed set of configurations,
    which many tests share.

    >>> space = Space(["push", "pop"])
    >>> Proposal(space.default(), propensities=(1.0,), origin="all-on").configuration["push"]
    1.0
    """

    configuration: Configuration
    propensities: tuple[float, ...] = ()
    origin: str = ""


def rates_for(space: Space, p: float | Mapping[str, float] | Sequence[float]) -> tuple[float, ...]:
    """Return one inclusion rate per feature; its own `rate` takes precedence over a common p.

    >>> from swarmtest import Feature
    >>> rates_for(Space([Feature("push", rate=0.9), Feature("pop")]), 0.5)
    (0.9, 0.5)
    """
    if isinstance(p, int | float):
        rates = [p if f.rate is None else f.rate for f in space.features]
    elif isinstance(p, Mapping):
        for name in p:
            if name not in space.feature_number:
                space.setting_number(name)
        rates = [p.get(f.name, 0.5 if f.rate is None else f.rate) for f in space.features]
    else:
        rates = list(p)
    if len(rates) != len(space.features) or not all(0 <= rate <= 1 for rate in rates):
        raise UserError(f"inclusion rates are numbers from 0 to 1, one per feature, not {p!r}")
    return tuple(rates)


def refuse_rates(space: Space, strategy: str, why: str) -> None:
    """Raise an error if a feature has a rate of its own, which a strategy cannot follow.

    >>> refuse_rates(Space(["push", "pop"]), "sized", "treats all features alike")
    """
    rated = [feature.name for feature in space.features if feature.rate is not None]
    if rated:
        raise UserError(
            f"strategy {strategy!r} {why}, so it cannot follow the rate of feature {rated[0]!r}: "
            "use coin, layered or activation, or leave the rate out"
        )


def toss(
    space: Space,
    rates: Sequence[float],
    rng: Stream,
    origin: str = "",
    after: Decisions | None = None,
) -> Proposal:
    """Return a configuration with each feature included at its rate.

    It respects the constraints and is never empty. With constraints, only features that `after`
    (see `settled`) leaves open are tossed; without constraints, rates of 0 and 1 have the same
    effect.

    >>> from swarmtest import Feature
    >>> space = Space([Feature("open"), Feature("close", requires=["open"])])
    >>> proposal = toss(space, [0.5, 0.5], Stream(0, 0))
    >>> "close" not in proposal.configuration or "open" in proposal.configuration
    True
    """
    settings = draw_settings(space, rng)
    if not space.features:
        return Proposal(Configuration(space, 0, None, settings), (), origin)
    if space.clauses:
        draws = rng.named_each(space_keys(space).keys)
        wished = [draw < rate for draw, rate in zip(draws, rates, strict=True)]
        bits, chances = toss_in_turn(space, _random_order(space, rng), wished, rates, after)
        return Proposal(Configuration(space, bits, None, settings), chances, origin)
    keys = space_keys(space).keys
    bits = _bits_below(rng.named_each(keys), rates) or some_below(
        rng.named_each(keys, attempt=1), rates
    )
    chances = one_if_alike(tuple(rates))
    return Proposal(Configuration(space, bits, None, settings), chances, origin)


def weigh(
    space: Space,
    weights: Sequence[float],
    rng: Stream,
    propensities: tuple[float, ...] = (),
    origin: str = "",
    renormalised: bool = False,
) -> Proposal:
    """Return a configuration with these weights; features that constraints forbid get weight 0.

    Constraints are about presence, so presence is settled first: every feature with a weight above
    0 is to be included. Mandatory or required features with weight 0 get weight 1.

    >>> print(weigh(Space(["push", "pop"]), [1, 0.25], Stream()).configuration)
    push pop=0.25
    """
    settings = draw_settings(space, rng)
    if not space.features:
        return Proposal(Configuration(space, 0, None, settings), (), origin)
    if space.clauses:
        weights = _allowed(space, weights, rng)
    configuration = weighted(space, weights, settings, renormalised)
    if not configuration.bits:
        raise UserError("a strategy proposed an empty configuration: all weights are 0")
    return Proposal(configuration, propensities, origin)


def draw_settings(space: Space, rng: Stream) -> tuple[Scalar, ...]:
    """Return a uniform value for each setting, from the draw of its own name."""
    if not space.settings:
        return ()
    draws = rng.named_each(space_keys(space).setting_keys)
    return tuple(
        s.values[int(draw * len(s.values))] for s, draw in zip(space.settings, draws, strict=True)
    )


def settled(space: Space, off: int, on: int) -> Decisions:
    """Return what holds once the features `off` are left out and then the features `on` included.

    Both are bit masks, and are followed as far as the constraints allow: a feature that cannot be
    left out is included, and one that cannot be included is left out.

    >>> from swarmtest import Feature
    >>> space = Space([Feature("open"), Feature("close", requires=["open"]), Feature("stat")])
    >>> decisions = settled(space, off=0b001, on=0b010)
    >>> f"{decisions.true:03b} {decisions.false:03b}"
    '100 011'
    """
    solver = _general_solver(space)
    decisions = solver.start
    for mask, wanted in ((off, False), (on, True)):
        for i in range(len(space.features)):
            bit = 1 << i
            if mask & bit and not (decisions.true | decisions.false) & bit:
                more = solver.decide(decisions, bit, wanted)
                decisions = more or solver.decide(decisions, bit, not wanted) or decisions
    return decisions


def alike_given_the_others(sizes: Sequence[float], bits: int) -> tuple[float, ...]:
    """Return each feature's probability of being included, given which others are.

    This is for strategies that treat all features alike. Then the odds of a configuration depend
    only on its size, and `sizes` has the probability of each size from 0 to the number of features.
    All configurations of a size are equally likely, so one with s features has the odds sizes[s] /
    C(n, s).

    >>> alike_given_the_others([0.1, 0.2, 0.4, 0.3], 0b011)
    (0.6666666666666666, 0.6666666666666666, 0.6923076923076923)
    """
    odds = odds_by_size(sizes, bits.bit_count())
    if len(odds) == 1:
        return odds
    return tuple(odds[not bits >> i & 1] for i in range(len(sizes) - 1))


def odds_by_size(sizes: Sequence[float], size: int) -> tuple[float, ...]:
    """Return the odds of `alike_given_the_others` for features that are in, and that are out.

    There is only one number if the two are the same.

    >>> odds_by_size([0.1, 0.2, 0.4, 0.3], 2)
    (0.6666666666666666, 0.6923076923076923)
    """
    count = len(sizes) - 1
    # Ratios of neighbouring sizes, because for a thousand features C(n, s) overflows a float.
    with_one_less = sizes[size - 1] / sizes[size] * (count - size + 1) / size
    if_in = 1 / (1 + with_one_less)
    if size == count:
        return (if_in,)
    with_one_more = sizes[size + 1] / sizes[size] * (size + 1) / (count - size)
    if_out = with_one_more / (1 + with_one_more)
    return (if_in,) if abs(if_in - if_out) < 1e-12 else (if_in, if_out)


# Tossing.


@dataclass(frozen=True)
class SpaceKeys:
    """What can be computed for a space before the first toss: the keys of its names."""

    keys: tuple[int, ...]
    setting_keys: tuple[int, ...]


@functools.lru_cache(maxsize=64)
def space_keys(space: Space) -> SpaceKeys:
    """Return the keys of a space's names."""
    return SpaceKeys(
        keys=tuple(key_of(name) for name in space.feature_names),
        setting_keys=tuple(key_of(name) for name in space.setting_names),
    )


def _bits_below(draws: Sequence[float], rates: Sequence[float]) -> int:
    """Return the bits of the features whose draw is below their rate."""
    bits, bit = 0, 1
    for draw, rate in zip(draws, rates, strict=True):
        if draw < rate:
            bits |= bit
        bit <<= 1
    return bits


def some_below(draws: Sequence[float], rates: Sequence[float]) -> int:
    """Return bits with the odds of independent tosses, given that not all of them are off.

    While nothing is included, feature i is included with probability p_i / (1 -
    (1-p_i)(1-p_i+1)...(1-p_n)), which is its probability given that it or a later feature is
    included; from then on tosses are independent.
    """
    bits, none_left = 0, _none_from(tuple(rates))
    for number, (draw, rate) in enumerate(zip(draws, rates, strict=True)):
        if draw < (rate if bits else rate / (1.0 - none_left[number])):
            bits |= 1 << number
    return bits


@functools.lru_cache(maxsize=1024)
def _none_from(rates: tuple[float, ...]) -> list[float]:
    """Return, for each feature, the probability that neither it nor a later one is included."""
    products = [1.0]
    for rate in reversed(rates):
        products.append(products[-1] * (1.0 - rate))
    if products[-1] == 1.0:
        raise UserError("all inclusion rates are 0, and a configuration is never empty")
    return products[:0:-1]


@functools.lru_cache(maxsize=1024)
def one_if_alike(rates: tuple[float, ...]) -> tuple[float, ...]:
    """Return a single rate if all rates are equal, as `Proposal.propensities` allows."""
    return rates if len(set(rates)) > 1 else rates[:1]


# Tossing under constraints.


@functools.lru_cache(maxsize=64)
def _solver(space: Space) -> Solver | Requirements:
    """Return what draws under a space's constraints: the fast way, if they allow it."""
    clauses = _clauses(space)
    if any(off & (off - 1) for _, off in clauses):
        return _general_solver(space)
    return Requirements(clauses, len(space.features))


@functools.lru_cache(maxsize=64)
def _general_solver(space: Space) -> Solver:
    return Solver(_clauses(space), len(space.features))


def _clauses(space: Space) -> list[Masks]:
    clauses = list(space.clauses)
    if all(clause.off for clause in clauses):  # otherwise a clause already demands some feature
        clauses.append(space.never_empty)
    return [clause.masks for clause in clauses]


def _random_order(space: Space, rng: Stream) -> list[int]:
    order = rng.named_each(space_keys(space).keys, ORDER)
    return sorted(range(len(order)), key=order.__getitem__)


def toss_in_turn(
    space: Space,
    order: Sequence[int],
    wished: Sequence[bool],
    rates: Sequence[float],
    after: Decisions | None = None,
) -> tuple[int, tuple[float, ...]]:
    """Decide the features one by one: as the toss was, or as it must be; return bits and odds."""
    solver = _solver(space)
    if isinstance(solver, Requirements):
        if after is None:
            return solver.toss_in_turn(order, wished, rates)
        solver = _general_solver(space)
    decide, is_possible, decisions = solver.decide, solver.is_possible, after or solver.start
    chances, bits = list(rates), 0
    is_free = False
    for i in order:
        bit = 1 << i
        if (decisions.true | decisions.false) & bit:
            chances[i] = 1.0 if decisions.true & bit else 0.0
            continue
        on = wished[i]
        is_free = is_free or solver.is_met(decisions)
        if is_free:
            bits |= bit if on else 0
            continue
        more = decide(decisions, bit, on)
        # With a rate of 0 or 1, the probability is the same whether or not there was a choice.
        forced = more is None or (0.0 < rates[i] < 1.0 and not is_possible(decisions, bit, not on))
        if more is None:
            on = not on
            more = decide(decisions, bit, on)
        assert more is not None, "on or off is always possible"
        if forced:
            chances[i] = float(on)
        decisions = more
    return decisions.true | bits, tuple(chances)


def _allowed(space: Space, weights: Sequence[float], rng: Stream) -> list[float]:
    """Return the weights with forbidden features at 0, and demanded ones at 1 if they were 0.

    The features with a weight above 0 come first, in a random order, so that only such a feature
    can keep another one out.
    """
    wanted = [1.0 if weight else 0.0 for weight in weights]
    order = sorted(_random_order(space, rng), key=wanted.__getitem__, reverse=True)
    bits, _ = toss_in_turn(space, order, [bool(weight) for weight in weights], wanted)
    return [(w or 1.0) if bits >> i & 1 else 0.0 for i, w in enumerate(weights)]
