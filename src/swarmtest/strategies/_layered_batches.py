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
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from swarmtest.core.batches import parts_of, weigh_many
from swarmtest.core.configuration import FULL
from swarmtest.core.sampling import Proposal, space_keys
from swarmtest.core.seeds import (
    GOLDEN,
    Stream,
    key_of,
    named_of_keys,
    numbers_of_streams,
    split_keys,
    trial_keys,
    uniforms,
)
from swarmtest.core.space import Space
from swarmtest.strategies.layered import (
    FLOOR,
    STEEPEST,
    Layered,
    beta_shape,
    chances_by_size,
    low_weight,
    sizes_of,
)

Matrix: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[Any]

_DOUBT = 1e-9
"""Comparisons that are closer than this are left to `ask`; numpy's errors are below 1e-14."""
_STEP_DOUBT = 1e-6
"""The same where a weight is rounded to one of 65,535 steps."""


_SINGLE = (
    "*family",
    "*members",
    "*share",
    "*count",
    "*exponent",
    "*low",
    "*a",
    "*b",
    "*rungs",
    "*length",
)
"""The names of the numbers that are drawn once for each trial."""


class TrialDraws:
    """The named draws of some trials over one space."""

    def __init__(self, space: Space, trials: Rows, keys: Rows, singles: Matrix) -> None:
        self.space = space
        self.trials = trials
        self.count = len(space.features)
        self._trial_keys = keys
        self._singles = singles

    @classmethod
    def of_trials(cls, space: Space, trials: Rows, campaign_seed: int) -> TrialDraws:
        """Return the draws of trials of a campaign."""
        keys = trial_keys(campaign_seed, trials)
        return cls(space, trials, keys, named_of_keys(keys, _single_keys()))

    def of(self, rows: Rows) -> TrialDraws:
        """Return the draws of some of the trials."""
        return TrialDraws(
            self.space, self.trials[rows], self._trial_keys[rows], self._singles[rows]
        )

    def features(self, attempt: int = 0) -> Matrix:
        """Return the draw of each feature."""
        return named_of_keys(self._trial_keys, space_keys(self.space).keys, attempt)

    def groups(self) -> Matrix:
        """Return the draw of each feature's group."""
        return named_of_keys(self._trial_keys, _group_keys(self.space))

    def single(self, name: str) -> Matrix:
        """Return the draw of one name in each trial."""
        return self._singles[:, _SINGLE.index(name)]

    def splits(self) -> Rows:
        """Return the key of the stream that splitting by each feature's name gives."""
        return split_keys(self._trial_keys, space_keys(self.space).keys)

    def split(self, name: str) -> Rows:
        """Return the key of the stream that splitting by one name gives."""
        return split_keys(self._trial_keys, (key_of(name),))[:, 0]


@functools.lru_cache(maxsize=1)
def _single_keys() -> tuple[int, ...]:
    return tuple(map(key_of, _SINGLE))


@functools.lru_cache(maxsize=64)
def _group_keys(space: Space) -> tuple[int, ...]:
    return tuple(key_of(feature.group or feature.name) for feature in space.features)


Drawn: TypeAlias = tuple[Rows, Rows | None]
"""Weights as 16-bit steps (`Configuration`), or Booleans if all weights are 0 or 1; and which
trials are doubtful, if any can be."""


def equal(draws: TrialDraws) -> Drawn:
    """Give all features the same weight."""
    return np.ones((len(draws.trials), draws.count), bool), None


def fair_coin(draws: TrialDraws) -> Drawn:
    """Draw half of the features."""
    return some_of(draws, 0.5), None


def biased_coin(draws: TrialDraws) -> Drawn:
    """Draw a random share of the features."""
    return some_of(draws, draws.single("*share")[:, None]), None


def uniform(draws: TrialDraws) -> Drawn:
    """Draw each weight uniformly."""
    return settle(1.0 - draws.features()), None


_FEW_RANKS = 33
"""Two thirds of all power laws give the features after the 33rd a weight below the floor."""


def power_law(draws: TrialDraws) -> Drawn:
    """Draw a ranking with a power law."""
    keys = draws.features()
    some, chosen = _members(draws)
    keys[some] = np.where(chosen, keys[some], 2.0)
    order = keys.argsort(axis=1)
    ranked = np.take_along_axis(keys, order, axis=1)
    # This sort need not keep the order of equal draws, as the one of `layered.power_law` does.
    doubtful = ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] < 2.0)).any(axis=1)
    exponents = STEEPEST * draws.single("*exponent")
    steps = np.zeros(keys.shape, np.uint16)
    # The weight of rank r is r ** -exponent: with an exponent above 1, later ones are below 1/32.
    steep = exponents > 1.0
    for rows, most in ((steep, min(_FEW_RANKS, draws.count)), (~steep, draws.count)):
        places = np.flatnonzero(rows)
        weights = np.arange(1.0, most + 1) ** -exponents[places, None]
        weights[ranked[places, :most] == 2.0] = 0.0  # left out
        doubtful[places] |= near_a_limit(weights, 1.0)
        weights[weights < FLOOR] = 0.0
        steps[places[:, None], order[places, :most]] = np.rint(weights * FULL)
    return steps, doubtful


def groups(draws: TrialDraws) -> Drawn:
    """Draw two or three groups with a whole ratio."""
    return _grouped(draws, *_members(draws))


def whole_groups(draws: TrialDraws) -> Drawn:
    """Draw two or three groups of all features."""
    return _grouped(draws, np.empty(0, np.intp), np.empty((0, draws.count), bool))


def _grouped(draws: TrialDraws, some: Rows, chosen: Rows) -> Drawn:
    """Draw groups; in `some` of the trials only of the chosen features."""
    counts = np.where(draws.single("*count") < 0.75, 2, 3)
    levels = samples_of_five(draws.split("*levels"), counts)
    position = draws.groups() * counts[:, None]
    three = np.flatnonzero(counts == 3)
    weights = _by_position(levels, position, three)
    weights[some] &= all_bits(chosen)
    # The largest weight is 1: that of the highest level that some feature has.
    steps = _by_position(_STEPS_OF_LEVELS[weights.max(axis=1)[:, None], levels], position, three)
    steps[some] &= all_bits(chosen)
    return steps, None


def _by_position(values: Rows, position: Matrix, three: Rows) -> Rows:
    """Return for each feature the one of two values that its position says, or of `three`."""
    chosen = _choose(position < 1.0, values[:, :1], values[:, 1:2])
    if len(three):
        chosen[three] = _choose(position[three] < 2.0, chosen[three], values[three, 2:])
    return chosen


def _choose(where: Rows, if_true: Rows, if_false: Rows) -> Rows:
    """Return `np.where` of 16-bit numbers in a tenth of its time."""
    chosen: Rows = all_bits(where) & (if_true ^ if_false)
    chosen ^= if_false
    return chosen


def all_bits(where: Rows) -> Rows:
    """Return 16 bits for each Boolean: all of them, or none."""
    bits: Rows = -where.view(np.uint8).astype(np.uint16)
    return bits


def _step(weight: float) -> int:
    """Return the 16-bit step of a weight: 0 below the floor."""
    return round(weight * FULL) if weight >= FLOOR else 0


_STEPS_OF_LEVELS = np.array(
    [[_step(level / top) if 0 < level <= top else 0 for level in range(6)] for top in range(6)],
    np.uint16,
)
"""The steps of the levels 0 to 5 (a column each) if a level is the highest (a row each)."""


def dominant(draws: TrialDraws) -> Drawn:
    """Make one feature more likely than each of the others."""
    return _dominated(draws, *_members(draws))


def whole_dominant(draws: TrialDraws) -> Drawn:
    """Make one of all features more likely than each of the others."""
    return _dominated(draws, np.empty(0, np.intp), np.empty((0, draws.count), bool))


def _dominated(draws: TrialDraws, some: Rows, chosen: Rows) -> Drawn:
    """Make one feature more likely; in `some` of the trials only of the chosen features."""
    keys = draws.features()
    keys[some] = np.where(chosen, keys[some], 2.0)
    lows = [_step(low_weight(draw)) for draw in draws.single("*low").tolist()]
    steps = np.empty(keys.shape, np.uint16)
    steps[:] = np.array(lows, np.uint16)[:, None]
    steps[some] &= all_bits(chosen)
    steps[np.arange(len(keys)), keys.argmin(axis=1)] = FULL
    return steps, None


def beta(draws: TrialDraws) -> Drawn:
    """Draw weights from a beta distribution with random shapes, as `random.betavariate` does."""
    a, b = (
        np.array([beta_shape(draw) for draw in draws.single(name).tolist()])
        for name in ("*a", "*b")
    )
    streams = GammaStreams(draws.splits())
    first = streams.gamma(a)
    # After a first number of 0 no second one is drawn; then it does not matter here.
    sums = first + streams.gamma(b)
    weights = np.divide(first, sums, out=np.zeros_like(first), where=first > 0.0)
    np.maximum(weights, 1e-300, out=weights)
    doubtful = streams.doubtful.any(axis=1) | near_a_limit(weights, weights.max(axis=1)[:, None])
    return settle(weights), doubtful


def settle(weights: Matrix) -> Rows:
    """Return weights as steps, scaled so that the largest is 1; 0 for those below the floor."""
    top = weights.max(axis=1, keepdims=True)
    at_least = weights >= FLOOR * top
    scaled = weights / top
    scaled *= FULL
    steps: Rows = np.rint(scaled, out=scaled).astype(np.uint16)
    steps &= all_bits(at_least)
    return steps


def near_a_limit(weights: Matrix, top: Matrix | float) -> Rows:
    """Return the rows with a weight that the last bits could put on either side of a limit.

    The limits are the floor, and the numbers half-way between two steps.
    """
    doubtful: Rows = np.abs(weights - FLOOR * top) < _DOUBT * top
    parts = weights / top
    parts *= FULL
    parts -= np.floor(parts)
    doubtful |= (np.abs(parts - 0.5) < _STEP_DOUBT) & (weights >= FLOOR * top)
    rows: Rows = np.any(doubtful, axis=1)
    return rows


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


Drawing: TypeAlias = Mapping[str, Callable[[TrialDraws], Drawn]]


def propose(
    strategy: Layered, space: Space, trials: Sequence[int], campaign_seed: int, drawing: Drawing
) -> list[Proposal]:
    """Return the proposals of some trials, in their order; `drawing` draws for each family."""
    draws = TrialDraws.of_trials(space, np.asarray(trials, dtype=np.int64), campaign_seed)
    families = np.searchsorted(strategy.bounds, draws.single("*family"), side="right")
    proposals: list[Proposal] = [None] * len(trials)  # type: ignore[list-item]  # filled below
    for family in sorted(set(families.tolist())):
        for rows in parts_of(np.flatnonzero(families == family), space):
            name = strategy.families[family][0]
            drawn = _propose_alike(strategy, name, draws.of(rows), campaign_seed, drawing[name])
            for row, proposal in zip(rows.tolist(), drawn, strict=True):
                proposals[row] = proposal
    return proposals


_FEW_FEATURES = 8
"""So few have few configurations, most of which occur several times in a batch."""


def _propose_alike(
    strategy: Layered,
    family: str,
    draws: TrialDraws,
    campaign_seed: int,
    draw: Callable[[TrialDraws], Drawn],
) -> list[Proposal]:
    """Return the proposals of trials of one family."""
    space, trials = draws.space, draws.trials
    weights, doubtful = draw(draws)
    renormalise = strategy.renormalises(family)
    configurations = weigh_many(space, weights, trials, campaign_seed, renormalise)
    if len(space.features) <= _FEW_FEATURES:
        distinct = {id(each): row for row, each in enumerate(configurations)}
        rows = list(distinct.values())
        chances = _chances(family, space, weights[rows])
        made = {
            id(configurations[row]): Proposal(configurations[row], chance, family)
            for row, chance in zip(rows, chances, strict=True)
        }
        proposals = [made[id(each)] for each in configurations]
    else:
        chances = _chances(family, space, weights)
        proposals = list(map(Proposal, configurations, chances, itertools.repeat(family)))
    if doubtful is not None:
        for row in np.flatnonzero(doubtful).tolist():
            trial = int(trials[row])
            proposals[row] = strategy.ask(space, trial, Stream(campaign_seed, trial))
    return proposals


def _chances(family: str, space: Space, weights: Rows) -> Iterable[tuple[float, ...]]:
    """Return the propensities of each row."""
    count = len(space.features)
    if space.clauses or not sizes_of(family, count):
        # Constraints may keep a feature out; how often has no known formula.
        return itertools.repeat((), len(weights))
    sizes = np.count_nonzero(weights, axis=1).tolist()
    chances = [chances_by_size(family, count, size) for size in sizes]
    two = [row for row, each in enumerate(chances) if len(each) > 1]
    if two:
        # References to two numbers: new ones would have to be created for each feature.
        numbers = np.array([chances[row] for row in two], object)
        left_out = weights[two] == 0
        matrix = np.where(left_out, numbers[:, 1:], numbers[:, :1])
        for row, each in zip(two, map(tuple, matrix.tolist()), strict=True):
            chances[row] = each
    return chances


def some_of(draws: TrialDraws, share: float | Matrix) -> Rows:
    """Return which features are below the share; where that is none, the one with the least."""
    values = draws.features(attempt=1)
    chosen = values < share
    empty = np.flatnonzero(~chosen.any(axis=1))
    if len(empty):
        chosen[empty, values[empty].argmin(axis=1)] = True
    return chosen


def _members(draws: TrialDraws) -> tuple[Rows, Rows]:
    """Return the trials in which a family includes a random share of the features, and which.

    In the others, which are most, it includes all.
    """
    some = np.flatnonzero(draws.single("*members") >= 0.75)
    draws = draws.of(some)
    return some, some_of(draws, draws.single("*share")[:, None])


_DRAWS = 8
"""Random numbers to prepare for drawing two or three of five; more are hardly ever needed."""


def samples_of_five(streams: Rows, counts: Rows) -> npt.NDArray[np.uint16]:
    """Return what ``sample(range(1, 6), count)`` returns for each stream, padded with 0.

    It draws three bits for one of five and for one of four, and two bits for one of three, again
    if they are too large.
    """
    rows, prepared = np.arange(len(counts)), _DRAWS
    while True:
        words = _three_bits(streams, prepared)
        columns, after = np.arange(prepared), np.full(len(counts), -1)
        numbers, missing = [], False
        for drawn, left in enumerate((5, 4, 3)):
            values = words if left > 3 else words >> 1
            usable = (values < left) & (columns > after[:, None])
            after = usable.argmax(axis=1)
            found = usable[rows, after]
            missing = missing or bool((~found & (counts > drawn)).any())
            numbers.append(np.where(found, values[rows, after], 0))
        if not missing:
            levels: npt.NDArray[np.uint16] = _SAMPLES[tuple(numbers)]
            levels[counts < 3, 2] = 0
            return levels
        prepared *= 2


def _sample(numbers: Sequence[int]) -> list[int]:
    """Return a sample of five, given which one of those that are left is drawn each time.

    The last of those that are left moves to the place of the one drawn.
    """
    pool, sample = [1, 2, 3, 4, 5], []
    for number in numbers:
        sample.append(pool[number])
        pool[number] = pool[-1]
        pool.pop()
    return sample


_SAMPLES = np.array(
    [[[_sample((a, b, c)) for c in range(3)] for b in range(4)] for a in range(5)], np.uint16
)
"""The samples by the numbers drawn."""


def _three_bits(streams: Rows, count: int) -> npt.NDArray[np.intp]:
    """Return the first three bits of the next numbers of each stream."""
    return (numbers_of_streams(streams, count) >> 61).astype(np.intp)


# Gamma variates: `random.gammavariate` for matrices. Each of its attempts draws two numbers. The
# first attempt is made for all, further ones for those that were rejected, several at once, and the
# last few are left to `random` itself.

_LOG4 = math.log(4.0)
_SG_MAGIC = 1.0 + math.log(4.5)
_FEW_LEFT = 8
"""Several attempts in numpy take as long as it takes to draw this many numbers one by one."""
_ATTEMPTS = 4
_STEPS = np.arange(1, 2 * _ATTEMPTS + 1, dtype=np.uint64) * np.uint64(GOLDEN)
"""What the counter of a stream is advanced by for each of the numbers of several attempts."""


class GammaStreams:
    """The streams of the features of some trials, a row for each trial."""

    def __init__(self, keys: Rows) -> None:
        self._counters = keys
        self.doubtful = np.zeros(keys.shape, bool)

    def gamma(self, shapes: Matrix) -> Matrix:
        """Return the next number of each stream, given the shape of each row."""
        numbers = np.ones(self._counters.shape)
        # With a shape of exactly 1, one number is drawn, not two.
        self.doubtful[shapes == 1.0] = True
        for draw, rows in ((_cheng, shapes > 1.0), (_ahrens_dieter, shapes < 1.0)):
            if rows.any():
                self._draw(draw, np.flatnonzero(rows), shapes, numbers)
        return numbers

    def _draw(self, draw: _Attempt, rows: Rows, shapes: Matrix, numbers: Matrix) -> None:
        # The first attempt is for whole rows, which need not be collected. Most are accepted.
        counters = self._counters[rows]
        pairs = uniforms(counters + _STEPS[:2, None, None])
        numbers[rows], accepted, doubtful = draw(shapes[rows, None], pairs[0], pairs[1])
        counters += _STEPS[1]
        self._counters[rows] = counters
        self.doubtful[rows] |= doubtful
        row_numbers, columns = np.nonzero(~accepted)
        places = rows[row_numbers] * numbers.shape[1] + columns
        self._draw_again(
            draw, places, shapes[rows[row_numbers]], counters[row_numbers, columns], numbers
        )

    def _draw_again(
        self, draw: _Attempt, places: Rows, shape: Matrix, counters: Rows, numbers: Matrix
    ) -> None:
        """Draw the numbers at some places, whose first attempts were rejected."""
        flat, all_counters = numbers.reshape(-1), self._counters.reshape(-1)
        while len(places) > _FEW_LEFT:
            drawn = uniforms(counters + _STEPS[:, None])
            values, accepted, doubtful = draw(shape, drawn[0::2], drawn[1::2])
            # The attempts after the first accepted one are not made.
            attempt, columns = accepted.argmax(axis=0), np.arange(len(places))
            done = accepted[attempt, columns]
            attempt[~done] = _ATTEMPTS - 1
            doubtful &= np.arange(_ATTEMPTS)[:, None] <= attempt
            self.doubtful.reshape(-1)[places[np.any(doubtful, axis=0)]] = True
            flat[places] = values[attempt, columns]  # those that are not done are drawn again
            counters += _STEPS[1::2][attempt]
            all_counters[places] = counters
            left = ~done
            places, shape, counters = places[left], shape[left], counters[left]
        stream = Stream()
        for place, alpha, counter in zip(
            places.tolist(), shape.tolist(), counters.tolist(), strict=True
        ):
            stream.rekey(counter)
            flat[place] = stream.gammavariate(alpha, 1.0)
            all_counters[place] = stream.getstate()[2]


_Attempt: TypeAlias = Callable[[Matrix, Matrix, Matrix], tuple[Matrix, Rows, Rows]]
"""Shapes and two uniform numbers; returns numbers, which are accepted, and doubtful."""


def _cheng(shape: Matrix, first: Matrix, second: Matrix) -> tuple[Matrix, Rows, Rows]:
    second = 1.0 - second
    # Of these, `random` draws another one at once.
    extreme = (first <= 1e-7) | (first >= 0.9999999)
    if extreme.any():
        first = np.where(extreme, 0.5, first)
    root = np.sqrt(2.0 * shape - 1.0)
    v = np.log(first / (1.0 - first)) / root
    values = shape * np.exp(v)
    z = first * first * second
    r = (shape - _LOG4) + (shape + root) * v - values
    excess = np.maximum(r + _SG_MAGIC - 4.5 * z, r - np.log(z))
    return values, excess >= 0.0, (np.abs(excess) < _DOUBT) | extreme


def _ahrens_dieter(shape: Matrix, first: Matrix, second: Matrix) -> tuple[Matrix, Rows, Rows]:
    b = (math.e + shape) / math.e
    p = b * first
    small = p <= 1.0
    # Both formulas for all numbers: numpy chooses between two arrays in the time of an addition.
    # Powers are written with logarithms, which numpy computes in a third of the time.
    with np.errstate(divide="ignore"):
        log = np.log(np.where(small, p, (b - p) / shape))
        values = np.where(small, np.exp(log / shape), -log)
        limit = np.exp(np.where(small, -values, (shape - 1.0) * np.log(values)))
    return values, second <= limit, np.abs(second - limit) < _DOUBT
