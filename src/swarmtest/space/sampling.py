"""Tossing coins for features, with constraints, and keeping the odds.

Features that no constraint touches are tossed independently, each from the draw of its own name.
Features under constraints are tossed one by one in a random order; what the constraints then leave
no choice about is set, not tossed. That needs no rejection, so it works for chains of `requires`
that independent coins would never satisfy. An empty configuration is drawn anew, as in the paper
(section 1: "a non-empty subset").

Propensities are what analysis needs to stay causal: the probability with which each feature was
included. For a free feature it is exact, the redraw of empty configurations included. For a
feature under constraints it is the probability at the moment of its toss, given what had been
decided before: 0 or 1 when nothing was left to toss.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from swarmtest.errors import UserError
from swarmtest.seeds import Stream, key_of, named_of_trials
from swarmtest.space.configuration import Configuration, bits_of, steps_of, whole
from swarmtest.space.constraints import Clause, propagate, solve
from swarmtest.space.dimensions import Scalar
from swarmtest.space.space import Space

_REDRAWS = 10_000


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a strategy answers: a configuration, the odds it was drawn with, and where it came from.

    `propensities` holds one probability of inclusion per feature, or a single one that all
    features share, or nothing when the strategy cannot tell.
    """

    configuration: Configuration
    propensities: tuple[float, ...] = ()
    origin: str = ""


@dataclass(frozen=True)
class _Plan:
    """What can be worked out about a space before the first toss."""

    keys: tuple[int, ...]
    free: tuple[int, ...]
    bound: tuple[int, ...]
    clauses: tuple[Clause, ...]
    simple: bool
    """Clauses of at most two literals: propagation alone never runs into a dead end."""
    setting_keys: tuple[int, ...]


@functools.lru_cache(maxsize=64)
def _plan(space: Space) -> _Plan:
    touched = functools.reduce(lambda mask, c: mask | c.on | c.off, space.clauses, 0)
    numbers = range(len(space.features))
    return _Plan(
        keys=tuple(key_of(name) for name in space.feature_names),
        free=tuple(i for i in numbers if not touched >> i & 1),
        bound=tuple(i for i in numbers if touched >> i & 1),
        clauses=space.clauses,
        simple=all((c.on | c.off).bit_count() <= 2 for c in space.clauses),
        setting_keys=tuple(key_of(name) for name in space.setting_names),
    )


def rates_for(space: Space, p: float | Mapping[str, float] | Sequence[float]) -> tuple[float, ...]:
    """One inclusion rate per feature: a feature's own `rate` goes before a common p.

    >>> from swarmtest import Feature
    >>> rates_for(Space([Feature("push", rate=0.9), Feature("pop")]), 0.5)
    (0.9, 0.5)
    """
    if isinstance(p, int | float):
        return tuple(p if f.rate is None else f.rate for f in space.features)
    if isinstance(p, Mapping):
        for name in p:
            if name not in space.feature_number:
                space.setting_number(name)
        return tuple(p.get(f.name, 0.5 if f.rate is None else f.rate) for f in space.features)
    return tuple(p)


def toss(space: Space, rates: Sequence[float], rng: Stream, origin: str = "") -> Proposal:
    """A configuration with each feature on at its rate, constraints respected, never empty.

    >>> from swarmtest import Feature
    >>> space = Space([Feature("open"), Feature("close", requires=["open"])])
    >>> proposal = toss(space, [0.5, 0.5], Stream(0, 0))
    >>> "close" not in proposal.configuration or "open" in proposal.configuration
    True
    """
    plan = _plan(space)
    settings = draw_settings(space, rng)
    if not space.features:
        return Proposal(Configuration(space, 0, None, settings), (), origin)
    for attempt in range(_REDRAWS):
        draws = rng.named_each(plan.keys, attempt)
        if not plan.bound:
            bits = 0
            bit = 1
            for draw, rate in zip(draws, rates, strict=True):
                if draw < rate:
                    bits |= bit
                bit <<= 1
            if bits:
                break
            continue
        bits, chances = _toss_bound(plan, draws, rates, rng, attempt)
        for i in plan.free:
            if draws[i] < rates[i]:
                bits |= 1 << i
        if bits:
            return Proposal(Configuration(space, bits, None, settings), chances, origin)
    else:
        raise UserError(
            f"no configuration with a feature in it came up in {_REDRAWS} draws: "
            "the inclusion rates are too close to 0"
        )
    return Proposal(Configuration(space, bits, None, settings), _not_empty(rates), origin)


def toss_many(
    space: Space, rates: tuple[float, ...], trials: Sequence[int], campaign_seed: int
) -> list[Proposal] | None:
    """`toss` for many trials at once, the same answers; None where constraints need one by one.

    Drawing a batch as one matrix makes a configuration cost well under a microsecond for small
    spaces, and equal configurations of a batch are one object, packed once.
    """
    plan = _plan(space)
    if plan.bound or space.settings or not 0 < len(plan.keys) <= 63:
        return None
    included = named_of_trials(campaign_seed, trials, plan.keys) < np.array(rates)
    masks: list[int] = (included @ (1 << np.arange(len(rates), dtype=np.int64))).tolist()
    propensities = _not_empty(rates)
    known: dict[int, Proposal] = {}
    found = []
    for trial, bits in zip(trials, masks, strict=True):
        proposal = known.get(bits)
        if proposal is None:
            if bits:
                proposal = Proposal(Configuration(space, bits), propensities)
                known[bits] = proposal
            else:
                proposal = toss(space, rates, Stream(campaign_seed, trial))
        found.append(proposal)
    return found


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
    """
    plan = _plan(space)
    steps = [steps_of(w, n) for w, n in zip(weights, space.feature_names, strict=True)]
    if plan.bound:
        wanted = [1.0 if step else 0.0 for step in steps]
        bits, _ = _toss_bound(plan, [0.5] * len(steps), wanted, rng, 0)
        for i in plan.bound:
            steps[i] = (steps[i] or 65535) if bits >> i & 1 else 0
    settings = draw_settings(space, rng)
    frozen = tuple(steps)
    bits = bits_of(frozen)
    if not bits:
        raise UserError("a strategy proposed an empty configuration: all weights are 0")
    classic = whole(frozen)
    configuration = Configuration(
        space, bits, None if classic else frozen, settings, renormalised and not classic
    )
    return Proposal(configuration, propensities, origin)


def draw_settings(space: Space, rng: Stream) -> tuple[Scalar, ...]:
    """A uniform value for each dimension that is not a feature, from the draw of its own name."""
    if not space.settings:
        return ()
    draws = rng.named_each(_plan(space).setting_keys)
    return tuple(
        s.values[int(draw * len(s.values))] for s, draw in zip(space.settings, draws, strict=True)
    )


def _not_empty(rates: Sequence[float]) -> tuple[float, ...]:
    """Each feature's chance of inclusion given that some feature is included."""
    first = rates[0]
    if all(rate == first for rate in rates):
        return (first / (1.0 - (1.0 - first) ** len(rates)),)
    empty = 1.0
    for rate in rates:
        empty *= 1.0 - rate
    return tuple(rate / (1.0 - empty) for rate in rates)


def _toss_bound(
    plan: _Plan, draws: Sequence[float], rates: Sequence[float], rng: Stream, attempt: int
) -> tuple[int, tuple[float, ...]]:
    chances = list(rates)
    order_draws = rng.named_each(plan.keys, attempt + _REDRAWS)
    known = propagate(plan.clauses, 0, 0)
    assert known is not None, "an unsatisfiable space is refused when it is built"
    true, false = known
    for i in sorted(plan.bound, key=order_draws.__getitem__):
        bit = 1 << i
        if (true | false) & bit:
            chances[i] = 1.0 if true & bit else 0.0
            continue
        options = {on: _decide(plan, true, false, bit, on) for on in (True, False)}
        on = draws[i] < rates[i]
        taken = options[on]
        if taken is None:
            chances[i], taken = (0.0 if on else 1.0), options[not on]
        elif options[not on] is None:
            chances[i] = float(on)
        assert taken is not None, "one of on and off is always possible"
        true, false = taken
    return true, tuple(chances)


def _decide(plan: _Plan, true: int, false: int, bit: int, on: bool) -> tuple[int, int] | None:
    known = propagate(plan.clauses, true | bit if on else true, false if on else false | bit)
    if known is None or plan.simple or solve(plan.clauses, *known) is not None:
        return known
    return None
