"""Greedy covering arrays, one row at a time, under any constraints.

`greedy_rows` follows Bryce, Colbourn: A density-based greedy algorithm for higher strength covering
arrays (2009): fix feature after feature to the value that leaves the larger expected number of new
combinations if all others were drawn by coin flips. `constrained_array` uses it for arrays whose
rows all satisfy clauses, and that cover everything the clauses allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

from swarmtest.core.constraints import Decisions, Solver

Array = NDArray[np.int8]
# For each feature, the sets it is in and its positions there.
Occurrences = list[tuple[NDArray[np.int64], NDArray[np.int64]]]


class OpenCombinations:
    """The t-way combinations that no row covers yet.

    For each set of t features, bit p of ``open`` is 1 if pattern p is missing; bit j of the pattern
    is the value of the j-th feature of the set.
    """

    def __init__(self, features: int, t: int) -> None:
        self.features, self.t = features, t
        self.sets = feature_sets(features, t)
        everything = (1 << 2**t) - 1
        self.open = np.full(len(self.sets), everything, dtype=np.uint64)
        self._with_value = _pattern_masks(t)
        self._occurrences: Occurrences = []

    def __bool__(self) -> bool:
        """Return whether anything is left to cover."""
        return bool(self.open.any())

    def _indexed(self) -> Occurrences:
        """Return where each feature occurs; computed late, when many sets may be covered."""
        if not self._occurrences:
            entries = np.argsort(self.sets, axis=None, kind="stable")
            ends = np.searchsorted(self.sets.ravel()[entries], np.arange(1, self.features))
            self._occurrences = [
                (part // self.t, part % self.t) for part in np.split(entries, ends)
            ]
        return self._occurrences

    def cover(self, row: Array) -> None:
        """Remove the combinations that a row contains."""
        self.open &= ~self._bits(row)
        left = np.flatnonzero(self.open)
        if len(left) < 0.7 * len(self.open):
            self.sets, self.open = self.sets[left], self.open[left]
            self._occurrences = []

    def gain(self, row: Array) -> int:
        """Return how many open combinations a row would cover."""
        return int(np.count_nonzero(self.open & self._bits(row)))

    def _bits(self, row: Array) -> NDArray[np.uint64]:
        pattern = np.zeros(len(self.sets), dtype=np.uint64)
        for position in range(self.t):
            values = row[self.sets[:, position]].astype(np.uint64)
            pattern |= values << np.uint64(position)
        return np.uint64(1) << pattern

    def pick(self, random: np.random.Generator) -> tuple[int, ...]:
        """Return an open combination as literals, from a set of features with the most of them."""
        counts = np.bitwise_count(self.open)
        index = int(random.choice(np.flatnonzero(counts == counts.max())))
        mask = int(self.open[index])
        pattern = int(random.choice([p for p in range(2**self.t) if mask >> p & 1]))
        return tuple(
            (int(feature) + 1) * (1 if pattern >> position & 1 else -1)
            for position, feature in enumerate(self.sets[index])
        )

    def discard(self, literals: Sequence[int]) -> None:
        """Remove all combinations that contain these (at most t) literals."""
        hit = np.ones(len(self.sets), dtype=bool)
        masks = np.full(len(self.sets), ~np.uint64(0))
        for literal in literals:
            at = self.sets == abs(literal) - 1
            hit &= at.any(axis=1)
            masks &= self._with_value[int(literal > 0)][at.argmax(axis=1)]
        self.open[hit] &= ~masks[hit]

    def densities(self) -> _Densities:
        """Return the densities for a new row."""
        return _Densities(self.open.copy(), self.t, self._with_value, self._indexed())


class _Densities:
    """The combinations that a row under construction can still cover."""

    def __init__(
        self,
        alive: NDArray[np.uint64],
        t: int,
        with_value: NDArray[np.uint64],
        occurrences: Occurrences,
    ) -> None:
        self._alive, self._with_value, self._occurrences = alive, with_value, occurrences
        self._fixed = np.zeros(len(alive), dtype=np.int64)
        self._t = t

    def better_value(self, feature: int, tie: int) -> int:
        off, on = (self._weight(feature, value) for value in (0, 1))
        return tie if on == off else int(on > off)

    def _weight(self, feature: int, value: int) -> int:
        sets, positions = self._occurrences[feature]
        counts = np.bitwise_count(self._alive[sets] & self._with_value[value][positions])
        return int((counts.astype(np.int64) << self._fixed[sets]).sum())

    def fix(self, feature: int, value: int) -> None:
        sets, positions = self._occurrences[feature]
        self._alive[sets] &= self._with_value[value][positions]
        self._fixed[sets] += 1


def greedy_rows(
    missing: OpenCombinations, solver: Solver, *, seed: int = 0, candidates: int = 1
) -> list[Array]:
    """Return rows that cover everything missing and possible; each is the best of `candidates`."""
    random = np.random.default_rng(seed)
    rows: list[Array] = []
    while missing:
        start = missing.pick(random)
        decisions = _decide_all(solver, start)
        if decisions is None:
            missing.discard(start)
            continue
        drafts = (_draft(missing, solver, start, decisions, random) for _ in range(candidates))
        best = max(drafts, key=missing.gain)
        missing.cover(best)
        rows.append(best)
    return rows


def _decide_all(solver: Solver, literals: Sequence[int]) -> Decisions | None:
    """Return what follows from literals; None if no row has all of them."""
    decisions: Decisions | None = solver.start
    for literal in literals:
        if decisions is not None:
            decisions = solver.decide(decisions, 1 << abs(literal) - 1, literal > 0)
    return decisions


def _draft(
    missing: OpenCombinations,
    solver: Solver,
    start: tuple[int, ...],
    decisions: Decisions,
    random: np.random.Generator,
) -> Array:
    """Return a row with ``start``, then the other features fixed greedily in random order.

    ``decisions`` are what ``start`` decides.
    """
    densities = missing.densities()
    for literal in start:
        densities.fix(abs(literal) - 1, int(literal > 0))
    started = {abs(literal) - 1 for literal in start}
    for feature in random.permutation(missing.features).tolist():
        if feature in started:
            continue
        value = densities.better_value(feature, tie=int(random.integers(2)))
        more = solver.decide(decisions, 1 << feature, value == 1)
        if more is None:
            value = 1 - value
            more = solver.decide(decisions, 1 << feature, value == 1)
        assert more is not None, "on or off is always possible"
        decisions = more
        densities.fix(feature, value)
    return _row(decisions.true, missing.features)


def _row(bits: int, features: int) -> Array:
    return np.array([bits >> feature & 1 for feature in range(features)], dtype=np.int8)


def feature_sets(features: int, t: int) -> NDArray[np.int16]:
    """Return all t-subsets of the features in lexicographic order, without a loop over them."""
    sets = np.arange(features, dtype=np.int16)[:, None]
    for _ in range(t - 1):
        last = sets[:, -1].astype(np.int64)
        repeats = features - 1 - last
        starts = np.repeat(np.cumsum(repeats) - repeats, repeats)
        added = np.repeat(last + 1, repeats) + np.arange(len(starts)) - starts
        sets = np.hstack([np.repeat(sets, repeats, axis=0), added[:, None].astype(np.int16)])
    return sets


def _pattern_masks(t: int) -> NDArray[np.uint64]:
    """Return a matrix whose entry [value, j] is the set of patterns whose bit j has that value."""
    masks = np.zeros((2, t), dtype=np.uint64)
    for position in range(t):
        for pattern in range(2**t):
            masks[pattern >> position & 1, position] |= np.uint64(1 << pattern)
    return masks


# Covering arrays under constraints.

# Above this many sets of t features, the greedy algorithm only fills the gaps of a repaired array.
_GREEDY_FROM_SCRATCH = 200_000
# With more sets, the table of open combinations would not fit into memory.
_SETS_AT_MOST = 50_000_000
_COUNTABLE_COMBINATIONS = 20_000_000


def constrained_array(
    unconstrained: Array, t: int, solver: Solver, *, seed: int, candidates: int
) -> Array:
    """Return the smaller of two arrays: a repaired unconstrained one, and one built from scratch.

    The second is built only if it is small enough.
    """
    features = unconstrained.shape[1]
    if comb(features, t) > _SETS_AT_MOST:
        raise ValueError(f"strength {t} for {features} features with constraints is too large")
    if solver.solve() is None:
        return np.empty((0, features), dtype=np.int8)
    allowed = _repaired(unconstrained, solver)
    starts = [allowed]
    if comb(features, t) <= _GREEDY_FROM_SCRATCH:
        starts.append(allowed[:0])
    impossible = list(_impossible(allowed, t, solver))
    arrays = [_completed(start, t, solver, impossible, seed, candidates) for start in starts]
    return min(arrays, key=len)


def _repaired(array: Array, solver: Solver) -> Array:
    """Return an allowed row near each row, without repetitions."""
    features = array.shape[1]
    wishes = [sum(1 << i for i, value in enumerate(row) if value == 1) for row in array.tolist()]
    nearest = [solver.solve(preferred=wish) for wish in wishes]
    rows = [_row(bits, features) for bits in dict.fromkeys(nearest) if bits is not None]
    return np.array(rows, dtype=np.int8).reshape(len(rows), features)


def _completed(
    start: Array,
    t: int,
    solver: Solver,
    impossible: Sequence[tuple[int, ...]],
    seed: int,
    candidates: int,
) -> Array:
    missing = OpenCombinations(start.shape[1], t)
    for row in start:
        missing.cover(row)
    for literals in impossible:
        missing.discard(literals)
    added = greedy_rows(missing, solver, seed=seed, candidates=candidates)
    return _without_redundant_rows(np.array([*start, *added], dtype=np.int8), t)


def _impossible(witnesses: Array, t: int, solver: Solver) -> Iterator[tuple[int, ...]]:
    """Yield short combinations that no row can contain.

    Knowing these in advance keeps the greedy choice from pursuing them; longer ones are found when
    they come up. Most pairs are known to be possible because a row of `witnesses` contains them.
    """
    present = np.hstack([witnesses, 1 - witnesses]).astype(np.float32)
    absent = np.argwhere(np.triu(present.T @ present == 0))
    features = witnesses.shape[1]
    for a, b in absent.tolist():
        pair = tuple(x + 1 if x < features else features - x - 1 for x in (a, b))
        literals = pair[:1] if a == b else pair
        if len(literals) <= t and pair[0] != -pair[1] and _decide_all(solver, literals) is None:
            yield literals
    for on, off in solver.clauses:
        if 2 < (on | off).bit_count() <= t:
            yield (
                *(-(i + 1) for i in range(features) if on >> i & 1),
                *(i + 1 for i in range(features) if off >> i & 1),
            )


def _without_redundant_rows(array: Array, t: int) -> Array:
    """Remove rows all of whose combinations occur in other rows too, oldest first."""
    if comb(array.shape[1], t) << t > _COUNTABLE_COMBINATIONS:
        return array
    sets = feature_sets(array.shape[1], t).astype(np.int64)
    counts = np.zeros(len(sets) << t, dtype=np.int32)
    codes = np.tile(np.arange(len(sets)) << t, (len(array), 1))
    for position in range(t):
        codes |= array[:, sets[:, position]].astype(np.int64) << position
    for code in codes:
        counts[code] += 1
    needed = []
    for row, code in zip(array, codes, strict=True):
        if (counts[code] > 1).all():
            counts[code] -= 1
        else:
            needed.append(row)
    return np.array(needed, dtype=np.int8)
