"""The draws of `layered` for a batch of trials, as matrices: a row per trial, a column per feature.

`draw_weights` returns exactly the weights that the families in `layered.py` return trial by trial.
Drawing a weight in Python takes half a microsecond, which for a thousand features is more than the
test itself; here it takes a few nanoseconds.

Exactly: numpy's logarithms and powers may differ from those of `math` in the last bit, and from one
processor to another. So what a single number per trial decides is computed with `math`. Only `beta`
needs logarithms for each feature. A trial in which such a bit could matter, because a number is
very near a limit that it is compared with, is given back as *doubtful*, and is drawn by `ask`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from swarmtest.core.batches import rows_of_masks, weigh_many
from swarmtest.core.configuration import FULL
from swarmtest.core.sampling import Proposal, space_keys
from swarmtest.core.seeds import (
    GOLDEN,
    Stream,
    key_of,
    keys_of_splits,
    named_of_trials,
    numbers_of_streams,
    uniforms,
)
from swarmtest.core.space import Space
from swarmtest.strategies.layered import (
    BOUNDS,
    FAMILIES,
    FLOOR,
    STEEPEST,
    Layered,
    beta_shape,
    chances_by_size,
    low_weight,
)

Matrix: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[Any]

_DOUBT = 1e-9
"""Comparisons that are closer than this are left to `ask`; numpy's errors are below 1e-14."""
_STEP_DOUBT = 1e-6
"""The same where a weight is rounded to one of 65,535 steps."""


class TrialDraws:
    """The named draws of some trials over one space."""

    def __init__(self, space: Space, trials: Rows, campaign_seed: int) -> None:
        self.space = space
        self.trials = trials
        self.seed = campaign_seed
        self.count = len(space.features)
        self._keys = space_keys(space).keys

    def of(self, rows: Rows) -> TrialDraws:
        """Return the draws of some of the trials."""
        return TrialDraws(self.space, self.trials[rows], self.seed)

    def features(self, attempt: int = 0) -> Matrix:
        """Return the draw of each feature."""
        return named_of_trials(self.seed, self.trials, self._keys, attempt)

    def groups(self) -> Matrix:
        """Return the draw of each feature's group."""
        return named_of_trials(self.seed, self.trials, _group_keys(self.space))

    def single(self, name: str) -> Matrix:
        """Return the draw of one name in each trial."""
        return named_of_trials(self.seed, self.trials, (key_of(name),))[:, 0]

    def splits(self) -> Rows:
        """Return the key of the stream that splitting by each feature's name gives."""
        return keys_of_splits(self.seed, self.trials, self._keys)

    def split(self, name: str) -> Rows:
        """Return the key of the stream that splitting by one name gives."""
        return keys_of_splits(self.seed, self.trials, (key_of(name),))[:, 0]


@functools.lru_cache(maxsize=64)
def _group_keys(space: Space) -> tuple[int, ...]:
    return tuple(key_of(feature.group or feature.name) for feature in space.features)


Drawn: TypeAlias = tuple[Rows, Rows | None]
"""Weights, 0 for features that are left out, or Booleans if all weights are 0 or 1; and which
trials are doubtful, if any can be."""


def equal(draws: TrialDraws) -> Drawn:
    """Give all features the same weight."""
    return np.ones((len(draws.trials), draws.count), bool), None


def fair_coin(draws: TrialDraws) -> Drawn:
    """Draw half of the features."""
    return _some(draws, 0.5), None


def biased_coin(draws: TrialDraws) -> Drawn:
    """Draw a random share of the features."""
    return _some(draws, draws.single("*share")[:, None]), None


def uniform(draws: TrialDraws) -> Drawn:
    """Draw each weight uniformly."""
    return 1.0 - draws.features(), None


def power_law(draws: TrialDraws) -> Drawn:
    """Draw a ranking with a power law."""
    keys = np.where(_members(draws), draws.features(), 2.0)
    weights = np.zeros_like(keys)
    exponents = (STEEPEST * draws.single("*exponent")).tolist()
    sizes = (keys < 2.0).sum(axis=1).tolist()
    order = np.argsort(keys, axis=1, kind="stable")
    for row, (exponent, size) in enumerate(zip(exponents, sizes, strict=True)):
        powers = []
        for rank in range(1, size + 1):
            power = rank**-exponent
            if power < FLOOR:
                break  # the first weight is 1, so all further ones are below the floor
            powers.append(power)
        weights[row, order[row, : len(powers)]] = powers
    return weights, None


def groups(draws: TrialDraws) -> Drawn:
    """Draw two or three groups with a whole ratio."""
    counts = np.where(draws.single("*count") < 0.75, 2, 3)
    levels = _samples_of_five(draws.split("*levels"), counts.tolist())
    index = (draws.groups() * counts[:, None]).astype(np.intp)
    weights = np.take_along_axis(levels, index, axis=1)
    weights[~_members(draws)] = 0.0
    return weights, None


def dominant(draws: TrialDraws) -> Drawn:
    """Make one feature more likely than each of the others."""
    members = _members(draws)
    lows = [low_weight(draw) for draw in draws.single("*low").tolist()]
    weights = np.where(members, np.array(lows)[:, None], 0.0)
    tops = np.where(members, draws.features(), 2.0).argmin(axis=1)
    weights[np.arange(len(tops)), tops] = 1.0
    return weights, None


def beta(draws: TrialDraws) -> Drawn:
    """Draw weights from a beta distribution with random shapes, as `random.betavariate` does."""
    counters = draws.splits().ravel()
    rows = np.repeat(np.arange(len(draws.trials)), draws.count)
    shapes = [
        np.array([beta_shape(draw) for draw in draws.single(name).tolist()])[rows]
        for name in ("*a", "*b")
    ]
    doubtful = np.zeros(len(counters), bool)
    first = _gamma(shapes[0], counters, np.arange(len(counters)), doubtful)
    # After a first number of 0, no second is drawn; it would not change the result.
    second = _gamma(shapes[1], counters, np.flatnonzero(first), doubtful)
    sums = np.where(first > 0.0, first + second, 1.0)
    weights = np.maximum(first / sums, 1e-300).reshape(-1, draws.count)
    return weights, doubtful.reshape(weights.shape).any(axis=1)


def settle(drawn: Drawn) -> Drawn:
    """Scale weights so that the largest is 1, with 0 for those below the floor."""
    weights, doubtful = drawn
    if weights.dtype == bool:
        return drawn
    top = weights.max(axis=1, keepdims=True)
    least = FLOOR * top
    if doubtful is not None:
        doubtful = doubtful | (np.abs(weights - least) < _DOUBT * top).any(axis=1)
    weights = np.where(weights >= least, weights / top, 0.0)
    if doubtful is not None:
        halves = np.abs(weights * FULL % 1.0 - 0.5) < _STEP_DOUBT
        doubtful = doubtful | halves.any(axis=1)
    return weights, doubtful


DRAWING: Mapping[str, Callable[[TrialDraws], Drawn]] = {
    "coin": fair_coin,
    "groups": groups,
    "power": power_law,
    "uniform": uniform,
    "dominant": dominant,
    "biased-coin": biased_coin,
    "beta": beta,
    "equal": equal,
}
"""How each family draws, by its name in `layered.FAMILIES`."""


def propose(
    strategy: Layered, space: Space, trials: Rows, campaign_seed: int
) -> list[Proposal]:
    """Return the proposals of some trials, in their order."""
    draws = TrialDraws(space, trials, campaign_seed)
    numbers = np.searchsorted(BOUNDS, draws.single("*family"), side="right")
    proposals: list[Proposal] = [None] * len(trials)  # type: ignore[list-item]  # filled below
    for number in np.unique(numbers).tolist():
        family = FAMILIES[number][0]
        rows = np.flatnonzero(numbers == number)
        weights, doubtful = settle(DRAWING[family](draws.of(rows)))
        configurations = weigh_many(
            space, weights, trials[rows], campaign_seed, strategy.renormalise
        )
        made: dict[int, Proposal] = {}  # by the configuration's identity: equal ones are the same
        for row, configuration in zip(rows.tolist(), configurations, strict=True):
            proposal = made.get(id(configuration))
            if proposal is None:
                # Constraints may keep a feature out; how often has no known formula.
                chances = () if space.clauses else _chances(family, draws.count, configuration.bits)
                proposal = made[id(configuration)] = Proposal(configuration, chances, family)
            proposals[row] = proposal
        if doubtful is not None:
            for row in rows[doubtful].tolist():
                trial = int(trials[row])
                proposals[row] = strategy.ask(space, trial, Stream(campaign_seed, trial))
    return proposals


def _chances(family: str, count: int, bits: int) -> tuple[float, ...]:
    """Return the propensities of the features in a configuration: `chances_of`, faster."""
    odds = chances_by_size(family, count, bits.bit_count())
    return odds if len(odds) < 2 else tuple(np.where(rows_of_masks([bits], count)[0], *odds).tolist())


def _some(draws: TrialDraws, share: float | Matrix) -> Rows:
    """Return which features are below the share; where that is none, the one with the least."""
    values = draws.features(attempt=1)
    chosen = values < share
    empty = np.flatnonzero(~chosen.any(axis=1))
    if len(empty):
        chosen[empty, values[empty].argmin(axis=1)] = True
    return chosen


def _members(draws: TrialDraws) -> Rows:
    """Return the features that a family includes: usually all, sometimes a random share."""
    members = np.ones((len(draws.trials), draws.count), bool)
    some = np.flatnonzero(draws.single("*members") >= 0.75)
    if len(some):
        draws = draws.of(some)
        members[some] = _some(draws, draws.single("*share")[:, None])
    return members


_DRAWS = 8
"""Random numbers to prepare for drawing two or three of five; more are hardly ever needed."""


def _samples_of_five(streams: Rows, counts: Sequence[int]) -> Matrix:
    """Return what ``sample(range(1, 6), count)`` returns for each stream, padded with 0.

    It draws three bits for one of five and for one of four, and two bits for one of three, again
    if they are too large.
    """
    levels = np.zeros((len(counts), 3))
    words = _three_bits(streams, _DRAWS)
    for row, (three_bits, count) in enumerate(zip(words, counts, strict=True)):
        pool, position = [1, 2, 3, 4, 5], 0
        for drawn in range(count):
            left = 5 - drawn
            number = left
            while number >= left:
                if position == len(three_bits):
                    three_bits = _three_bits(streams[row : row + 1], 2 * position)[0]
                number = three_bits[position] if left > 3 else three_bits[position] >> 1
                position += 1
            levels[row, drawn] = pool[number]
            pool[number] = pool[left - 1]
    return levels


def _three_bits(streams: Rows, count: int) -> list[list[int]]:
    """Return the first three bits of the next numbers of each stream."""
    numbers: list[list[int]] = (numbers_of_streams(streams, count) >> 61).tolist()
    return numbers


# Gamma variates: `random.gammavariate` for arrays. A pass of its loop is made for all numbers that
# are not accepted yet.

_LOG4 = math.log(4.0)
_SG_MAGIC = 1.0 + math.log(4.5)


def _gamma(shapes: Matrix, counters: Rows, wanted: Rows, doubtful: Rows) -> Matrix:
    """Return a number for each of the wanted streams, 0 for others; advance their counters."""
    numbers = np.zeros(len(counters))
    for pass_, chosen in (
        (_cheng, wanted[shapes[wanted] > 1.0]),
        (_exponential, wanted[shapes[wanted] == 1.0]),
        (_ahrens_dieter, wanted[shapes[wanted] < 1.0]),
    ):
        while len(chosen):
            values, accepted = pass_(shapes, counters, chosen, doubtful)
            numbers[chosen[accepted]] = values[accepted]
            chosen = chosen[~accepted]
    return numbers


def _next(counters: Rows, chosen: Rows) -> Matrix:
    """Return the next uniform number of the chosen streams."""
    counters[chosen] += GOLDEN
    return uniforms(counters[chosen])


def _cheng(
    shapes: Matrix, counters: Rows, chosen: Rows, doubtful: Rows
) -> tuple[Matrix, Rows]:
    first = _next(counters, chosen)
    usable = (first > 1e-7) & (first < 0.9999999)
    second = np.ones(len(chosen))
    second[usable] = 1.0 - _next(counters, chosen[usable])
    first = np.where(usable, first, 0.5)
    shape = shapes[chosen]
    root = np.sqrt(2.0 * shape - 1.0)
    v = np.log(first / (1.0 - first)) / root
    values = shape * np.exp(v)
    z = first * first * second
    r = (shape - _LOG4) + (shape + root) * v - values
    excess = np.maximum(r + _SG_MAGIC - 4.5 * z, r - np.log(z))
    doubtful[chosen[usable & (np.abs(excess) < _DOUBT)]] = True
    return values, usable & (excess >= 0.0)


def _exponential(
    shapes: Matrix, counters: Rows, chosen: Rows, doubtful: Rows
) -> tuple[Matrix, Rows]:
    values = -np.log(1.0 - _next(counters, chosen))
    return values, np.ones(len(chosen), bool)


def _ahrens_dieter(
    shapes: Matrix, counters: Rows, chosen: Rows, doubtful: Rows
) -> tuple[Matrix, Rows]:
    shape = shapes[chosen]
    b = (math.e + shape) / math.e
    p = b * _next(counters, chosen)
    small = p <= 1.0
    values = np.where(
        small,
        np.where(small, p, 0.0) ** (1.0 / shape),
        -np.log(np.where(small, 1.0, (b - p) / shape)),
    )
    with np.errstate(divide="ignore"):
        limit = np.where(small, np.exp(-values), values ** (shape - 1.0))
    second = _next(counters, chosen)
    doubtful[chosen[np.abs(second - limit) < _DOUBT]] = True
    return values, second <= limit
