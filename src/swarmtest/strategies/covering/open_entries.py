"""Which entries of a covering array are open: whatever they are set to, everything stays covered.

An entry is open when every combination that it takes part in stands in another row too. Opening one
may close others, so entries are tried in turn, and counts are kept of how many rows hold each
combination.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

_MOST_WORK = 50_000_000
"""Combinations to look at before finding open entries is not worth its time (about a second)."""


def with_open_entries(
    rows: npt.NDArray[np.int8], t: int, fixed: frozenset[int] = frozenset()
) -> npt.NDArray[np.int8]:
    """The array with -1 in its open entries; `fixed` columns stay as they are.

    Arrays so large that this would take long are returned unchanged.

    >>> rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]], dtype=np.int8)
    >>> with_open_entries(rows, 2)[3].tolist()
    [-1, -1]
    """
    count, features = rows.shape
    if features < t or count * features * math.comb(features - 1, t - 1) > _MOST_WORK:
        return rows
    sets = np.array(list(itertools.combinations(range(features), t)))
    places = 1 << np.arange(t)
    patterns = np.stack([row[sets] @ places for row in rows.astype(np.int64)])
    held = np.zeros((len(sets), 1 << t), dtype=np.int32)
    for pattern in patterns:
        held[np.arange(len(sets)), pattern] += 1
    with_column = [np.flatnonzero((sets == column).any(axis=1)) for column in range(features)]
    opened = rows.copy()
    for row in range(count):
        whole = np.ones(len(sets), dtype=bool)
        for column in range(features):
            if column in fixed:
                continue
            touched = with_column[column][whole[with_column[column]]]
            pattern = patterns[row, touched]
            if (held[touched, pattern] >= 2).all():
                held[touched, pattern] -= 1
                whole[touched] = False
                opened[row, column] = -1
    return opened
