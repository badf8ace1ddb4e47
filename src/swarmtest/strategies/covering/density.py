"""Greedy covering arrays, one row at a time, under any constraints.

Bryce, Colbourn: A density-based greedy algorithm for higher strength covering arrays (2009): fix
feature after feature to the value that leaves the larger expected number of new combinations if
all others were drawn by coin flips.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from swarmtest.strategies.covering.satisfiability import Clauses

Array = NDArray[np.int8]
# For each feature, the sets it is in and its positions there.
Occurrences = list[tuple[NDArray[np.int64], NDArray[np.int64]]]


class OpenCombinations:
    """The t-way combinations that still wait for a row.

    For each set of t features, bit p of ``open`` tells that pattern p is missing; bit j of the
    pattern is the value of the j-th feature of the set.
    """

    def __init__(self, features: int, t: int) -> None:
        self.features, self.t = features, t
        self.sets = feature_sets(features, t)
        everything = (1 << 2**t) - 1
        self.open = np.full(len(self.sets), everything, dtype=np.uint64)
        self._with_value = _pattern_masks(t)
        self._occurrences: Occurrences = []

    def __bool__(self) -> bool:
        """Whether anything is left to cover."""
        return bool(self.open.any())

    def _indexed(self) -> Occurrences:
        """Where each feature occurs; made late, when most sets may be done already."""
        if not self._occurrences:
            entries = np.argsort(self.sets, axis=None, kind="stable")
            ends = np.searchsorted(self.sets.ravel()[entries], np.arange(1, self.features))
            self._occurrences = [
                (part // self.t, part % self.t) for part in np.split(entries, ends)
            ]
        return self._occurrences

    def cover(self, row: Array) -> None:
        self.open &= ~self._bits(row)
        left = np.flatnonzero(self.open)
        if len(left) < 0.7 * len(self.open):
            self.sets, self.open = self.sets[left], self.open[left]
            self._occurrences = []

    def gain(self, row: Array) -> int:
        """How many open combinations the row would cover."""
        return int(np.count_nonzero(self.open & self._bits(row)))

    def _bits(self, row: Array) -> NDArray[np.uint64]:
        pattern = np.zeros(len(self.sets), dtype=np.uint64)
        for position in range(self.t):
            values = row[self.sets[:, position]].astype(np.uint64)
            pattern |= values << np.uint64(position)
        return np.uint64(1) << pattern

    def some(self, random: np.random.Generator) -> tuple[int, ...]:
        """An open combination, as literals, from the set of features with most of them open."""
        counts = np.bitwise_count(self.open)
        index = int(random.choice(np.flatnonzero(counts == counts.max())))
        mask = int(self.open[index])
        pattern = int(random.choice([p for p in range(2**self.t) if mask >> p & 1]))
        return tuple(
            (int(feature) + 1) * (1 if pattern >> position & 1 else -1)
            for position, feature in enumerate(self.sets[index])
        )

    def discard(self, literals: Sequence[int]) -> None:
        """Forget all combinations that contain these (at most t) literals."""
        hit = np.ones(len(self.sets), dtype=bool)
        masks = np.full(len(self.sets), ~np.uint64(0))
        for literal in literals:
            at = self.sets == abs(literal) - 1
            hit &= at.any(axis=1)
            masks &= self._with_value[int(literal > 0)][at.argmax(axis=1)]
        self.open[hit] &= ~masks[hit]

    def densities(self) -> "_Densities":
        return _Densities(self.open.copy(), self.t, self._with_value, self._indexed())


class _Densities:
    """What a row under construction can still cover."""

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
    missing: OpenCombinations, rules: Clauses, *, seed: int = 0, candidates: int = 1
) -> list[Array]:
    """Rows that cover all that is missing and possible; each the best of some candidates."""
    random = np.random.default_rng(seed)
    rows: list[Array] = []
    while missing:
        start = missing.some(random)
        model = rules.solve(start)
        if model is None:
            missing.discard(start)
            continue
        drafts = (_draft(missing, rules, start, model, random) for _ in range(candidates))
        best = max(drafts, key=missing.gain)
        missing.cover(best)
        rows.append(best)
    return rows


def _draft(
    missing: OpenCombinations,
    rules: Clauses,
    start: tuple[int, ...],
    model: dict[int, bool],
    random: np.random.Generator,
) -> Array:
    """One row: ``start``, then the other features in random order; ``model`` keeps it allowed."""
    densities = missing.densities()
    model = dict(model)
    chosen = list(start)
    for literal in start:
        densities.fix(abs(literal) - 1, int(literal > 0))
    started = {abs(literal) - 1 for literal in start}
    for feature in random.permutation(missing.features).tolist():
        if feature in started:
            continue
        value = densities.better_value(feature, tie=int(random.integers(2)))
        wanted = feature + 1 if value else -(feature + 1)
        if model[feature + 1] != bool(value):
            if rules.allow_flip(model, feature + 1):
                model[feature + 1] = bool(value)
            elif (changed := rules.solve([*chosen, wanted], preferred=model)) is not None:
                model = changed
            else:
                wanted, value = -wanted, 1 - value
        chosen.append(wanted)
        densities.fix(feature, value)
    row = np.zeros(missing.features, dtype=np.int8)
    row[[literal - 1 for literal in chosen if literal > 0]] = 1
    return row


def feature_sets(features: int, t: int) -> NDArray[np.int16]:
    """All t-subsets of the features, in lexicographic order, without a Python loop over them."""
    sets = np.arange(features, dtype=np.int16)[:, None]
    for _ in range(t - 1):
        last = sets[:, -1].astype(np.int64)
        repeats = features - 1 - last
        starts = np.repeat(np.cumsum(repeats) - repeats, repeats)
        added = np.repeat(last + 1, repeats) + np.arange(len(starts)) - starts
        sets = np.hstack([np.repeat(sets, repeats, axis=0), added[:, None].astype(np.int16)])
    return sets


def _pattern_masks(t: int) -> NDArray[np.uint64]:
    """Entry [value, j]: the patterns whose bit j has that value, as a bit set."""
    masks = np.zeros((2, t), dtype=np.uint64)
    for position in range(t):
        for pattern in range(2**t):
            masks[pattern >> position & 1, position] |= np.uint64(1 << pattern)
    return masks
