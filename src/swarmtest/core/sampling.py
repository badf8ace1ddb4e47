"""Tossing coins for features, with constraints, and keeping the odds.

Features that no constraint touches are tossed independently, each from the draw of its own name.
Features under constraints are tossed one by one in a random order; what the constraints then leave
no choice about is set, not tossed. That needs no rejection, so it works for chains of `requires`
that independent coins would never satisfy.

No configuration is empty. Without constraints, an empty one is tossed once more, this time so that
something comes in, with the odds that redrawing would give ("a non-empty subset": swarm testing,
section 1). With constraints, "not empty" is one constraint more.

Propensities are what analysis needs to stay causal: the probability with which each feature was
included. Without constraints it is that of the whole draw. With constraints it is the probability
at the moment of the toss, given what had been decided before: 0 or 1 when nothing was left to toss.
Either way its mean over many trials is the rate at which the feature is in.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swarmtest.core.configuration import Configuration, weighted
from swarmtest.core.constraints import Deduction, Known
from swarmtest.core.dimensions import Scalar
from swarmtest.core.errors import UserError
from swarmtest.core.seeds import FEW, Stream, key_of, named_of_trials
from swarmtest.core.space import Space

# -------------------------------------------------------------------------------------------------
# How likely a feature was, given the others, for ways of drawing that treat all features alike.


def alike_given_the_others(sizes: Sequence[float], bits: int) -> tuple[float, ...]:
    """Each feature's chance of being in, given the others, if all features are treated alike.

    Then a configuration's odds depend on its size only, and `sizes` has the probability of each
    size from 0 to the number of features. All configurations of a size being equally likely, one
    with s features has the odds sizes[s] / C(n, s).

    >>> alike_given_the_others([0.1, 0.2, 0.4, 0.3], 0b011)
    (0.6666666666666666, 0.6666666666666666, 0.6923076923076923)
    """
    count = len(sizes) - 1
    size = bits.bit_count()
    # As ratios of neighbours: C(n, s) itself is beyond a float for a thousand features.
    with_one_less = sizes[size - 1] / sizes[size] * (count - size + 1) / size
    if_in = 1 / (1 + with_one_less)
    if size == count:
        return (if_in,)
    with_one_more = sizes[size + 1] / sizes[size] * (size + 1) / (count - size)
    if_out = with_one_more / (1 + with_one_more)
    if abs(if_in - if_out) < 1e-12:
        return (if_in,)
    return tuple(if_in if bits >> i & 1 else if_out for i in range(count))


# -------------------------------------------------------------------------------------------------

_ORDER = 1000
"""The attempt whose draws give the order of tosses: far from those that are tossed."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a strategy answers: a configuration, the odds it was drawn with, and where it came from.

    `propensities` holds one probability per feature, or a single one that all features share, or
    nothing when the strategy cannot tell. It is the probability that the feature is in, *given
    which of the others are*: only then does a feature that has nothing to do with a target show up
    in the tests that hit it exactly as often as its propensity says. (Take configurations of
    random size: those that contain what the target needs are larger than most, so every feature
    is in them more often than it is overall.) Where features are drawn independently the two are
    the same. An empty configuration is never run, yet the odds are those as if it could have come
    up, for everybody knows what an empty test does.

    An `origin` that ends in ``member 7`` or ``row 7`` names one of a fixed set of configurations,
    which many tests share.

    >>> space = Space(["push", "pop"])
    >>> Proposal(space.default(), propensities=(1.0,), origin="default").configuration["push"]
    1.0
    """

    configuration: Configuration
    propensities: tuple[float, ...] = ()
    origin: str = ""


@dataclass(frozen=True)
class _Plan:
    """What can be worked out about a space before the first toss."""

    keys: tuple[int, ...]
    setting_keys: tuple[int, ...]


@functools.lru_cache(maxsize=64)
def _plan(space: Space) -> _Plan:
    return _Plan(
        keys=tuple(key_of(name) for name in space.feature_names),
        setting_keys=tuple(key_of(name) for name in space.setting_names),
    )


@functools.lru_cache(maxsize=64)
def _deduction(space: Space) -> Deduction:
    clauses = list(space.clauses)
    if all(clause.off for clause in clauses):  # otherwise one of them says as much
        clauses.append(space.never_empty)
    return Deduction(clauses, len(space.features))


def rates_for(space: Space, p: float | Mapping[str, float] | Sequence[float]) -> tuple[float, ...]:
    """One inclusion rate per feature: a feature's own `rate` goes before a common p.

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


def settled(space: Space, off: int, on: int) -> Known:
    """What holds once the features `off` are left out, and then the features `on` are taken in.

    Both are bit masks, and go as far as the constraints allow: a feature that cannot be left out
    is in, one that cannot be taken in is not.

    >>> from swarmtest import Feature
    >>> space = Space([Feature("open"), Feature("close", requires=["open"]), Feature("stat")])
    >>> known = settled(space, off=0b001, on=0b010)
    >>> f"{known.true:03b} {known.false:03b}"
    '100 011'
    """
    deduction = _deduction(space)
    known = deduction.start
    for mask, wanted in ((off, False), (on, True)):
        for i in range(len(space.features)):
            bit = 1 << i
            if mask & bit and not (known.true | known.false) & bit:
                taken = deduction.decided(known, bit, wanted)
                known = taken or deduction.decided(known, bit, not wanted) or known
    return known


def toss(
    space: Space,
    rates: Sequence[float],
    rng: Stream,
    origin: str = "",
    after: Known | None = None,
) -> Proposal:
    """A configuration with each feature on at its rate, constraints respected, never empty.

    With constraints, only what was not `settled` before (`after`) is tossed; without, rates of 0
    and 1 say as much.

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
        draws = rng.named_each(_plan(space).keys)
        bits, chances = _toss_in_turn(space, _random_order(space, rng), draws, rates, after)
        return Proposal(Configuration(space, bits, None, settings), chances, origin)
    keys = _plan(space).keys
    bits = _bits_below(rng.named_each(keys), rates) or _some_below(
        rng.named_each(keys, attempt=1), rates
    )
    chances = _one_if_alike(tuple(rates))
    return Proposal(Configuration(space, bits, None, settings), chances, origin)


def toss_many(
    space: Space, rates: tuple[float, ...], trials: Sequence[int], campaign_seed: int
) -> list[Proposal] | None:
    """`toss` for many trials at once, the same answers; None where constraints need one by one.

    Drawing a batch as one matrix makes a configuration cost well under a microsecond for small
    spaces, and equal configurations of a batch are one object, packed once.
    """
    keys = _plan(space).keys
    if space.clauses or space.settings or not 0 < len(keys) <= 63:
        return None
    if len(trials) <= FEW:
        return [toss(space, rates, Stream(campaign_seed, trial)) for trial in trials]
    places = [1 << i for i in range(len(rates))]
    draws = named_of_trials(campaign_seed, trials, keys)
    masks: list[int] = ((draws < rates) @ places).tolist()
    empty = [at for at, mask in enumerate(masks) if not mask]
    if empty:
        again = named_of_trials(campaign_seed, [trials[at] for at in empty], keys, attempt=1)
        for at, row in zip(empty, again.tolist(), strict=True):
            masks[at] = _some_below(row, rates)
    chances = _one_if_alike(rates)
    known = {mask: Proposal(Configuration(space, mask), chances) for mask in set(masks)}
    return [known[mask] for mask in masks]


def weigh(
    space: Space,
    weights: Sequence[float],
    rng: Stream,
    propensities: tuple[float, ...] = (),
    origin: str = "",
    renormalised: bool = False,
) -> Proposal:
    """A configuration with these weights; features that constraints forbid fall to 0.

    Constraints speak of presence, so presence is settled first: every feature with a weight above 0
    wants to be in. Mandatory or required features that have weight 0 come in at weight 1.

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


def _allowed(space: Space, weights: Sequence[float], rng: Stream) -> list[float]:
    """The weights with what the constraints forbid at 0, and what they demand at 1 or more.

    The features that are wanted come first, in a random order, so that only a wanted feature
    can keep another out.
    """
    wanted = [1.0 if weight else 0.0 for weight in weights]
    order = sorted(_random_order(space, rng), key=wanted.__getitem__, reverse=True)
    bits, _ = _toss_in_turn(space, order, [0.5] * len(wanted), wanted)
    return [(w or 1.0) if bits >> i & 1 else 0.0 for i, w in enumerate(weights)]


def draw_settings(space: Space, rng: Stream) -> tuple[Scalar, ...]:
    """A uniform value for each dimension that is not a feature, from the draw of its own name."""
    if not space.settings:
        return ()
    draws = rng.named_each(_plan(space).setting_keys)
    return tuple(
        s.values[int(draw * len(s.values))] for s, draw in zip(space.settings, draws, strict=True)
    )


def _bits_below(draws: Sequence[float], rates: Sequence[float]) -> int:
    bits, bit = 0, 1
    for draw, rate in zip(draws, rates, strict=True):
        if draw < rate:
            bits |= bit
        bit <<= 1
    return bits


def _some_below(draws: Sequence[float], rates: Sequence[float]) -> int:
    """Bits with the odds of independent tosses, given that they are not all off.

    While nothing is in, feature i comes in with p_i / (1 - (1-p_i)(1-p_i+1)...(1-p_n)), which is
    its probability given that it or a later one does; from then on tosses are independent.
    """
    bits, none_left = 0, _none_from(tuple(rates))
    for number, (draw, rate) in enumerate(zip(draws, rates, strict=True)):
        if draw < (rate if bits else rate / (1.0 - none_left[number])):
            bits |= 1 << number
    return bits


@functools.lru_cache(maxsize=1024)
def _none_from(rates: tuple[float, ...]) -> list[float]:
    """For each feature, the probability that neither it nor a later one comes in."""
    found = [1.0]
    for rate in reversed(rates):
        found.append(found[-1] * (1.0 - rate))
    if found[-1] == 1.0:
        raise UserError("all inclusion rates are 0, and a configuration is never empty")
    return found[:0:-1]


@functools.lru_cache(maxsize=1024)
def _one_if_alike(rates: tuple[float, ...]) -> tuple[float, ...]:
    return rates if len(set(rates)) > 1 else rates[:1]


def _random_order(space: Space, rng: Stream) -> list[int]:
    order = rng.named_each(_plan(space).keys, _ORDER)
    return sorted(range(len(order)), key=order.__getitem__)


def _toss_in_turn(
    space: Space,
    order: Sequence[int],
    draws: Sequence[float],
    rates: Sequence[float],
    after: Known | None = None,
) -> tuple[int, tuple[float, ...]]:
    """Toss the features one by one, and set what then follows."""
    deduction = _deduction(space)
    decided, possible, known = deduction.decided, deduction.possible, after or deduction.start
    chances, bits = list(rates), 0
    is_free = False
    for i in order:
        bit = 1 << i
        if (known.true | known.false) & bit:
            chances[i] = 1.0 if known.true & bit else 0.0
            continue
        on = draws[i] < rates[i]
        is_free = is_free or deduction.is_met(known)
        if is_free:
            bits |= bit if on else 0
            continue
        taken = decided(known, bit, on)
        # Where the odds are 0 or 1 anyway, it does not matter whether there was a choice.
        forced = taken is None or (0.0 < rates[i] < 1.0 and not possible(known, bit, not on))
        if taken is None:
            on = not on
            taken = decided(known, bit, on)
        assert taken is not None, "on or off is always possible"
        if forced:
            chances[i] = float(on)
        known = taken
    return known.true | bits, tuple(chances)
