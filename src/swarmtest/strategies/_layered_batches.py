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

from swarmtest.core.batches import parts_of, rows_of_masks, weigh_many
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
    members = _members(draws)
    keys = np.where(members, draws.features(), 2.0)
    order = keys.argsort(axis=1)
    ranked = np.take_along_axis(keys, order, axis=1)
    # This sort need not keep the order of equal draws, as the one of `layered.power_law` does.
    doubtful = ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] < 2.0)).any(axis=1)
    exponents = STEEPEST * draws.single("*exponent")
    sizes = members.sum(axis=1).tolist()
    ranks = np.arange(1.0, draws.count + 1)
    weights = np.zeros_like(keys)
    for row, exponent in enumerate(exponents.tolist()):
        # The largest weight is 1, so weights of later ranks are below the floor.
        last = FLOOR ** (-1 / exponent) + 1 if exponent > 0.1 else math.inf
        kept = int(min(sizes[row], last))
        weights[row, order[row, :kept]] = ranks[:kept] ** -exponent
    return weights, doubtful


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
    a, b = (
        np.array([beta_shape(draw) for draw in draws.single(name).tolist()])
        for name in ("*a", "*b")
    )
    streams = _Streams(draws.splits())
    first = streams.gamma(a)
    # After a first number of 0 no second one is drawn; then it does not matter here.
    sums = first + streams.gamma(b)
    weights = np.divide(first, sums, out=np.zeros_like(first), where=first > 0.0)
    return np.maximum(weights, 1e-300), np.any(streams.doubtful, axis=1)


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
    strategy: Layered, space: Space, trials: Sequence[int], campaign_seed: int
) -> list[Proposal]:
    """Return the proposals of some trials, in their order."""
    numbers = np.asarray(trials, dtype=np.int64)
    families = np.searchsorted(
        BOUNDS, TrialDraws(space, numbers, campaign_seed).single("*family"), side="right"
    )
    proposals: list[Proposal] = [None] * len(trials)  # type: ignore[list-item]  # filled below
    for family in sorted(set(families.tolist())):
        for rows in parts_of(np.flatnonzero(families == family), space):
            drawn = _propose_alike(strategy, space, family, numbers[rows], campaign_seed)
            for row, proposal in zip(rows.tolist(), drawn, strict=True):
                proposals[row] = proposal
    return proposals


def _propose_alike(
    strategy: Layered, space: Space, number: int, trials: Rows, campaign_seed: int
) -> list[Proposal]:
    """Return the proposals of trials of one family."""
    family, count = FAMILIES[number][0], len(space.features)
    weights, doubtful = settle(DRAWING[family](TrialDraws(space, trials, campaign_seed)))
    configurations = weigh_many(space, weights, trials, campaign_seed, strategy.renormalise)
    proposals = []
    made: dict[int, Proposal] = {}  # by the configuration's identity: equal ones are the same
    for configuration in configurations:
        proposal = made.get(id(configuration))
        if proposal is None:
            # Constraints may keep a feature out; how often has no known formula.
            chances = () if space.clauses else _chances(family, count, configuration.bits)
            proposal = made[id(configuration)] = Proposal(configuration, chances, family)
        proposals.append(proposal)
    if doubtful is not None:
        for row in np.flatnonzero(doubtful).tolist():
            trial = int(trials[row])
            proposals[row] = strategy.ask(space, trial, Stream(campaign_seed, trial))
    return proposals


def _chances(family: str, count: int, bits: int) -> tuple[float, ...]:
    """Return the propensities of the features in a configuration: `chances_of`, faster."""
    odds = chances_by_size(family, count, bits.bit_count())
    return (
        odds if len(odds) < 2 else tuple(np.where(rows_of_masks([bits], count)[0], *odds).tolist())
    )


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


# Gamma variates: `random.gammavariate` for matrices. A round of its loop is made for all numbers
# that are not accepted yet, and the last few are left to `random` itself.

_LOG4 = math.log(4.0)
_SG_MAGIC = 1.0 + math.log(4.5)
_FEW_LEFT = 24
"""A round takes as long as it takes to draw this many numbers one by one."""


class _Streams:
    """The streams of the features of some trials, a row for each trial."""

    def __init__(self, keys: Rows) -> None:
        self._counters = keys
        self.doubtful = np.zeros(keys.shape, bool)

    def gamma(self, shapes: Matrix) -> Matrix:
        """Return the next number of each stream, given the shape of each row."""
        numbers = np.empty(self._counters.shape)
        for draw, rows in (
            (_cheng, shapes > 1.0),
            (_exponential, shapes == 1.0),
            (_ahrens_dieter, shapes < 1.0),
        ):
            if rows.any():
                self._draw(draw, np.flatnonzero(rows), shapes, numbers)
        return numbers

    def _draw(self, draw: _Round, rows: Rows, shapes: Matrix, numbers: Matrix) -> None:
        width = numbers.shape[1]
        places = (rows[:, None] * width + np.arange(width)).ravel()
        shape = np.repeat(shapes[rows], width)
        counters = self._counters.reshape(-1)[places]
        while len(places) > _FEW_LEFT:
            values, accepted, doubtful = draw(shape, counters)
            numbers.reshape(-1)[places[accepted]] = values[accepted]
            self._counters.reshape(-1)[places[accepted]] = counters[accepted]
            self.doubtful.reshape(-1)[places[doubtful]] = True
            left = ~accepted
            places, shape, counters = places[left], shape[left], counters[left]
        stream = Stream()
        for place, alpha, counter in zip(
            places.tolist(), shape.tolist(), counters.tolist(), strict=True
        ):
            stream.rekey(counter)
            numbers.reshape(-1)[place] = stream.gammavariate(alpha, 1.0)
            self._counters.reshape(-1)[place] = stream.getstate()[2]


_Round: TypeAlias = Callable[[Matrix, Rows], tuple[Matrix, Rows, Rows]]
"""Shapes and counters, which are advanced; returns numbers, which are accepted, and doubtful."""


def _next(counters: Rows) -> Matrix:
    """Return the next uniform number of streams."""
    counters += GOLDEN
    return uniforms(counters)


def _cheng(shape: Matrix, counters: Rows) -> tuple[Matrix, Rows, Rows]:
    before = counters.copy()
    first = _next(counters)
    skipped = ~((first > 1e-7) & (first < 0.9999999))
    second = 1.0 - _next(counters)
    if skipped.any():  # then no second number is drawn
        counters[skipped] = before[skipped] + GOLDEN
        first[skipped] = 0.5
    root = np.sqrt(2.0 * shape - 1.0)
    v = np.log(first / (1.0 - first)) / root
    values = shape * np.exp(v)
    z = first * first * second
    r = (shape - _LOG4) + (shape + root) * v - values
    excess = np.maximum(r + _SG_MAGIC - 4.5 * z, r - np.log(z))
    return values, (excess >= 0.0) & ~skipped, (np.abs(excess) < _DOUBT) & ~skipped


def _exponential(shape: Matrix, counters: Rows) -> tuple[Matrix, Rows, Rows]:
    values = -np.log(1.0 - _next(counters))
    return values, np.ones(len(shape), bool), np.zeros(len(shape), bool)


def _ahrens_dieter(shape: Matrix, counters: Rows) -> tuple[Matrix, Rows, Rows]:
    b = (math.e + shape) / math.e
    p = b * _next(counters)
    small = p <= 1.0
    power = np.where(small, p, 1.0) ** (1.0 / shape)
    log = -np.log(np.where(small, 1.0, (b - p) / shape))
    values = np.where(small, power, log)
    with np.errstate(divide="ignore"):
        limit = np.where(small, np.exp(-values), values ** (shape - 1.0))
    second = _next(counters)
    return values, second <= limit, np.abs(second - limit) < _DOUBT
