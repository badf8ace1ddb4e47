"""How far a campaign is, from totals of neighbouring trials: what is the same in any store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from swarmtest.store.records import ProgressPoint
from swarmtest.store.schema import BLOCK

TOTALS = ("trials", "passed", "failed", "invalid", "steps", "skipped", "cpu_ns", "wall_ns")
"""What a summary tells, and the columns of the table blocks."""


def bucket_width(last: int, buckets: int) -> int:
    """Trials per bucket, so that those up to `last` fill about `buckets`; whole blocks if it can.

    >>> bucket_width(149, 200), bucket_width(999_999, 200), bucket_width(1_000_001, 200)
    (1, 5000, 5100)
    """
    width = -(-(last + 1) // buckets)
    return width if width < BLOCK else -(-width // BLOCK) * BLOCK


def cumulated(
    buckets: Iterable[Sequence[Any]], last: int, width: int, found: Sequence[int]
) -> list[ProgressPoint]:
    """Points out of rows of bucket, tests, failed and cpu_ns, in order.

    `found`: the first trials of the faults, in order.

    >>> for point in cumulated([(0, 10, 1, 5), (2, 4, 2, 5)], last=23, width=10, found=[3, 21]):
    ...     print(*point)
    9 10 1 1 5
    23 14 3 2 10
    """
    points: list[ProgressPoint] = []
    rows = [tuple(map(int, row)) for row in buckets]
    sums = accumulate(
        (row[1:] for row in rows), lambda a, b: tuple(map(sum, zip(a, b, strict=True)))
    )
    faults = 0
    for (bucket, *_), (tests, failed, cpu_ns) in zip(rows, sums, strict=True):
        trial = min((bucket + 1) * width - 1, last)
        while faults < len(found) and found[faults] <= trial:
            faults += 1
        points.append(ProgressPoint(trial, tests, failed, faults, cpu_ns))
    return points
