"""Greedy covering arrays, one row at a time, under any constraints.

`greedy_rows` follows Bryce, Colbourn: A density-based greedy algorithm for higher strength covering
arrays (2009): fix feature after feature to the value that leaves the larger expected number of new
combinations if all others were drawn by coin flips. `constrained_array` uses it for arrays whose
rows all satisfy clauses, and that cover everything the clauses allow. `Clauses` is a small DPLL
solver, enough for feature constraints of a few hundred short clauses (Davis, Logemann, Loveland: A
machine program for theorem-proving, 1962).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

Clause = tuple[int, ...]


class Clauses:
    """Constraints on numbered features, as a conjunction of DIMACS clauses."""

    def __init__(self, clauses: Iterable[Sequence[int]], features: int) -> None:
        self.features = features
        self.all: list[Clause] = [tuple(dict.fromkeys(clause)) for clause in clauses]
        for literal in (literal for clause in self.all for literal in clause):
            if not 1 <= abs(literal) <= features:
                raise ValueError(f"literal {literal} names no feature out of 1..{features}")
        self._containing: dict[int, list[Clause]] = {}
        for clause in self.all:
            for literal in clause:
                self._containing.setdefault(literal, []).append(clause)
        self._units = [clause[0] for clause in self.all if len(clause) == 1]
        self._contradictory = () in self.all
        self._order = sorted(range(1, features + 1), key=self._occurrences, reverse=True)

    def solve(
        self, assumed: Iterable[int], preferred: Mapping[int, bool] | None = None
    ) -> dict[int, bool] | None:
        """Return a full assignment that contains ``assumed``, or None if there is none.

        It takes the values of ``preferred`` where it can.
        """
        values: dict[int, bool] = {}
        if self._contradictory or not self._propagate([*assumed, *self._units], values):
            return None
        preferred = preferred or {}
        # Each decision stores the trail length before it, so that undoing needs no copies.
        decisions: list[tuple[int, int, bool]] = []
        position = 0
        while position < len(self._order):
            feature = self._order[position]
            if feature in values:
                position += 1
                continue
            literal = feature if preferred.get(feature, False) else -feature
            decisions.append((literal, len(values), False))
            while not self._propagate([decisions[-1][0]], values):
                if not self._flip_last(decisions, values):
                    return None
                position = 0
        return values

    def allow_flip(self, model: Mapping[int, bool], feature: int) -> bool:
        """Return whether ``model`` still satisfies the clauses with one feature flipped."""
        lost = feature if model[feature] else -feature
        return all(
            any(model[abs(other)] == (other > 0) for other in clause if other != lost)
            for clause in self._containing.get(lost, ())
        )

    def _occurrences(self, feature: int) -> int:
        return len(self._containing.get(feature, ())) + len(self._containing.get(-feature, ()))

    @staticmethod
    def _flip_last(decisions: list[tuple[int, int, bool]], values: dict[int, bool]) -> bool:
        while decisions:
            literal, trail, flipped = decisions.pop()
            while len(values) > trail:
                values.popitem()
            if not flipped:
                decisions.append((-literal, trail, True))
                return True
        return False

    def _propagate(self, literals: Iterable[int], values: dict[int, bool]) -> bool:
        """Set literals and what follows by unit propagation; return False on a contradiction."""
        queue = list(literals)
        while queue:
            literal = queue.pop()
            value = values.get(abs(literal))
            if value is not None:
                if value != (literal > 0):
                    return False
                continue
            values[abs(literal)] = literal > 0
            for clause in self._containing.get(-literal, ()):
                implied = self._implied(clause, values)
                if implied == 0:
                    return False
                if implied is not None:
                    queue.append(implied)
        return True

    @staticmethod
    def _implied(clause: Clause, values: Mapping[int, bool]) -> int | None:
        """Return the implied literal; 0 if the clause is violated, None if nothing follows."""
        left = 0
        for literal in clause:
            value = values.get(abs(literal))
            if value is None:
                if left:
                    return None
                left = literal
            elif value == (literal > 0):
                return None
        return left


# The greedy algorithm.

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

    def some(self, random: np.random.Generator) -> tuple[int, ...]:
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
    missing: OpenCombinations, rules: Clauses, *, seed: int = 0, candidates: int = 1
) -> list[Array]:
    """Return rows that cover everything missing and possible; each is the best of `candidates`."""
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
    """Return a row with ``start``, then the other features fixed greedily in random order.

    ``model`` is an allowed assignment that is kept consistent with the row.
    """
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
    unconstrained: Array, t: int, rules: Clauses, *, seed: int, candidates: int
) -> Array:
    """Return the smaller of two arrays: a repaired unconstrained one, and one built from scratch.

    The second is built only if it is small enough.
    """
    features = unconstrained.shape[1]
    if comb(features, t) > _SETS_AT_MOST:
        raise ValueError(f"strength {t} for {features} features with constraints is too large")
    if rules.solve(()) is None:
        return np.empty((0, features), dtype=np.int8)
    allowed = _repaired(unconstrained, rules)
    starts = [allowed]
    if comb(features, t) <= _GREEDY_FROM_SCRATCH:
        starts.append(allowed[:0])
    impossible = list(_impossible(allowed, t, rules))
    arrays = [_completed(start, t, rules, impossible, seed, candidates) for start in starts]
    return min(arrays, key=len)


def _repaired(array: Array, rules: Clauses) -> Array:
    """Return an allowed row near each row, without repetitions."""
    rows: dict[tuple[int, ...], None] = {}
    for row in array.tolist():
        model = rules.solve((), preferred={i + 1: value == 1 for i, value in enumerate(row)})
        if model is not None:
            rows[tuple(int(model[i + 1]) for i in range(len(row)))] = None
    return np.array(list(rows), dtype=np.int8).reshape(len(rows), array.shape[1])


def _completed(
    start: Array,
    t: int,
    rules: Clauses,
    impossible: Sequence[tuple[int, ...]],
    seed: int,
    candidates: int,
) -> Array:
    missing = OpenCombinations(rules.features, t)
    for row in start:
        missing.cover(row)
    for literals in impossible:
        missing.discard(literals)
    added = greedy_rows(missing, rules, seed=seed, candidates=candidates)
    return _without_redundant_rows(np.array([*start, *added], dtype=np.int8), t)


def _impossible(witnesses: Array, t: int, rules: Clauses) -> Iterator[tuple[int, ...]]:
    """Yield short combinations that no row can contain.

    Knowing these in advance keeps the greedy choice from pursuing them; longer ones are found when
    they come up. Most pairs are known to be possible because a row of `witnesses` contains them.
    """
    present = np.hstack([witnesses, 1 - witnesses]).astype(np.float32)
    absent = np.argwhere(np.triu(present.T @ present == 0))
    features = rules.features
    for a, b in absent.tolist():
        pair = tuple(x + 1 if x < features else features - x - 1 for x in (a, b))
        literals = pair[:1] if a == b else pair
        if len(literals) <= t and pair[0] != -pair[1] and rules.solve(literals) is None:
            yield literals
    for clause in rules.all:
        if 2 < len(clause) <= t and not any(-literal in clause for literal in clause):
            yield tuple(-literal for literal in clause)


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
