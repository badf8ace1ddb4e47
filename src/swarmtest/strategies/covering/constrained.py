"""Covering arrays whose rows all satisfy clauses, and that cover whatever the clauses allow."""

from collections.abc import Iterator, Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

from swarmtest.strategies.covering.density import OpenCombinations, feature_sets, greedy_rows
from swarmtest.strategies.covering.satisfiability import Clauses

Array = NDArray[np.int8]

# Above this many sets of t features, the greedy algorithm only fills the gaps of a repaired array.
_GREEDY_FROM_SCRATCH = 200_000
# With more, the table of open combinations would not fit into memory.
_SETS_AT_MOST = 50_000_000
_COUNTABLE_COMBINATIONS = 20_000_000


def constrained_array(
    unconstrained: Array, t: int, rules: Clauses, *, seed: int, candidates: int
) -> Array:
    """The better of two ways: mend an unconstrained array, or start from nothing."""
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
    """For each row an allowed one near it, without repetitions."""
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
    """Short combinations that no row can contain.

    To know these in advance keeps the greedy choice from chasing what cannot be had; longer ones
    turn out as they come up. Most pairs are possible because a witness contains them.
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
    """Leave out rows all of whose combinations occur elsewhere too, oldest first."""
    if comb(array.shape[1], t) << t > _COUNTABLE_COMBINATIONS:
        return array
    sets = feature_sets(array.shape[1], t).astype(np.int64)
    counts = np.zeros(len(sets) << t, dtype=np.int32)
    codes = np.tile(np.arange(len(sets)) << t, (len(array), 1))
    for position in range(t):
        codes |= array[:, sets[:, position]].astype(np.int64) << position
    for code in codes:
        counts[code] += 1
    kept = []
    for row, code in zip(array, codes, strict=True):
        if (counts[code] > 1).all():
            counts[code] -= 1
        else:
            kept.append(row)
    return np.array(kept, dtype=np.int8)
