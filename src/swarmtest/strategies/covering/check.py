"""An independent check of covering arrays, which shares no code with the constructions.

A combination is a tuple of DIMACS literals on different features: feature ``i`` is the literal
``i + 1`` when on and ``-(i + 1)`` when off. An entry of -1 ("don't care") covers nothing, since its
value is not known yet.

Exact checking costs one small matrix product per choice of t-2 features and their values: 171
features take seconds at t = 4 and minutes at t = 5. ``sample`` trades certainty for time.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

Clause = tuple[int, ...]
Combination = tuple[int, ...]
Indicator = NDArray[np.float32]


def is_covering(
    rows: NDArray[np.int8],
    t: int,
    clauses: Sequence[Clause] = (),
    *,
    sample: int | None = None,
    seed: int = 0,
) -> bool:
    """Return whether all rows are allowed and every possible t-way combination is in some row.

    With ``sample``, only that many random sets of t features are checked.
    """
    if violating_rows(rows, clauses):
        return False
    return not uncovered(rows, t, clauses, limit=1, sample=sample, seed=seed)


def uncovered(
    rows: NDArray[np.int8],
    t: int,
    clauses: Sequence[Clause] = (),
    *,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> list[Combination]:
    """Return the possible t-way combinations (at most ``limit``) that no row contains."""
    matrix = np.asarray(rows)
    t = min(t, matrix.shape[1])
    missing = (
        _missing_everywhere(matrix, t) if sample is None else _missing_in(matrix, t, sample, seed)
    )
    if clauses:
        missing = (combination for combination in missing if _possible(combination, clauses))
    return list(islice(missing, limit))


def count_uncovered(rows: NDArray[np.int8], t: int, clauses: Sequence[Clause] = ()) -> int:
    """Return how many possible t-way combinations no row contains."""
    matrix = np.asarray(rows)
    t = min(t, matrix.shape[1])
    if clauses or t < 2:
        return len(uncovered(matrix, t, clauses))
    on, off = _indicators(matrix)
    return sum(_missing_pairs(on, off) for _, on, off in _prefixes(on, off, t - 2))


def violating_rows(rows: NDArray[np.int8], clauses: Sequence[Clause]) -> list[int]:
    """Return the indices of rows that violate the clauses whatever their don't-cares become."""
    return [
        index
        for index, row in enumerate(np.asarray(rows))
        if clauses and not _possible(_literals(row), clauses)
    ]


def _literals(row: NDArray[np.int8]) -> Combination:
    return tuple(i + 1 if value else -(i + 1) for i, value in enumerate(row) if value >= 0)


def _indicators(matrix: NDArray[np.int8]) -> tuple[Indicator, Indicator]:
    columns = np.ascontiguousarray(matrix.T)
    return (columns == 1).astype(np.float32), (columns == 0).astype(np.float32)


def _missing_everywhere(matrix: NDArray[np.int8], t: int) -> Iterator[Combination]:
    on, off = _indicators(matrix)
    if t == 0:
        return
    if t == 1:
        yield from _missing_singles(on, off)
        return
    for prefix, on_left, off_left in _prefixes(on, off, t - 2):
        if _missing_pairs(on_left, off_left):
            first = len(on) - len(on_left)
            for pair in _list_missing_pairs(on_left, off_left, first):
                yield prefix + pair


def _missing_singles(on: Indicator, off: Indicator) -> Iterator[Combination]:
    for sign, indicator in ((1, on), (-1, off)):
        for feature in np.flatnonzero(~indicator.any(axis=1)):
            yield (sign * (int(feature) + 1),)


def _prefixes(
    on: Indicator, off: Indicator, length: int, first: int = 0
) -> Iterator[tuple[Combination, Indicator, Indicator]]:
    """Yield every choice of ``length`` literals with the later columns of rows that contain it."""
    if length == 0:
        yield (), on, off
        return
    for column in range(len(on) - length - 1):
        for sign, indicator in ((1, on), (-1, off)):
            chosen = indicator[column] > 0
            literal = sign * (first + column + 1)
            deeper = _prefixes(
                on[column + 1 :, chosen], off[column + 1 :, chosen], length - 1, first + column + 1
            )
            for prefix, on_left, off_left in deeper:
                yield (literal, *prefix), on_left, off_left


def _pair_counts(on: Indicator, off: Indicator) -> Indicator:
    literals = np.concatenate([on, off])
    counts: Indicator = literals @ literals.T
    return counts


def _missing_pairs(on: Indicator, off: Indicator) -> int:
    columns = len(on)
    counts = _pair_counts(on, off)
    # A literal pairs with itself on the diagonal and never with its own negation.
    present = int(np.count_nonzero(counts)) - int(np.count_nonzero(counts.diagonal()))
    return 2 * columns * (columns - 1) - present // 2


def _list_missing_pairs(on: Indicator, off: Indicator, first: int) -> Iterator[Combination]:
    columns = len(on)
    for a, b in np.argwhere(_pair_counts(on, off) == 0):
        feature_a, feature_b = int(a) % columns, int(b) % columns
        if feature_a < feature_b:
            yield (
                (first + feature_a + 1) * (1 if a < columns else -1),
                (first + feature_b + 1) * (1 if b < columns else -1),
            )


def _missing_in(matrix: NDArray[np.int8], t: int, sample: int, seed: int) -> Iterator[Combination]:
    """Yield the missing combinations in ``sample`` random sets of t features."""
    random = np.random.default_rng(seed)
    packed = [np.packbits(value == matrix.T, axis=1) for value in (0, 1)]
    batch = 20_000
    for start in range(0, sample, batch):
        sets = _random_sets(random, min(batch, sample - start), matrix.shape[1], t)
        for pattern in range(2**t):
            present = packed[pattern & 1][sets[:, 0]]
            for position in range(1, t):
                present = present & packed[pattern >> position & 1][sets[:, position]]
            for chosen in sets[~present.any(axis=1)]:
                yield tuple(
                    (int(feature) + 1) * (1 if pattern >> position & 1 else -1)
                    for position, feature in enumerate(chosen)
                )


def _random_sets(
    random: np.random.Generator, size: int, features: int, t: int
) -> NDArray[np.int64]:
    keys = random.random((size, features))
    sets: NDArray[np.int64] = np.sort(np.argpartition(keys, t - 1, axis=1)[:, :t], axis=1)
    return sets


def _possible(literals: Combination, clauses: Sequence[Clause]) -> bool:
    """Return whether some full assignment contains ``literals`` and satisfies ``clauses``."""
    true = set(literals)
    left: list[Clause] = []
    for clause in clauses:
        if true.isdisjoint(clause):
            open_literals = tuple(literal for literal in clause if -literal not in true)
            if not open_literals:
                return False
            left.append(open_literals)
    if not left:
        return True
    shortest = min(left, key=len)
    ruled_out: list[int] = []
    for literal in shortest:
        if literal not in ruled_out and -literal not in ruled_out:
            if _possible((literal, *(-other for other in ruled_out)), left):
                return True
            ruled_out.append(literal)
    return False
