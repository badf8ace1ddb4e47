"""How good a reduction is: the metrics of the dissertation's section 3.4, and chance to compare.

All are shares from 0 to 1; higher is better.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Part = TypeVar("Part")


def size_reduction_rate(before: int, after: int) -> float:
    """SRR: the share of the parts that are gone.

    >>> size_reduction_rate(200, 50)
    0.75
    """
    return (before - after) / before if before else 0.0


def preservation_rate(original: Collection[Hashable], reduced: Collection[Hashable]) -> float:
    """CPR and MPR: the share of what the original reached (or killed) that still is.

    >>> preservation_rate({1, 2, 3, 4}, {1, 2, 3, 9})
    0.75
    """
    whole = frozenset(original)
    return len(whole & frozenset(reduced)) / len(whole) if whole else 1.0


def randomly_reduced(parts: Sequence[Part], size: int, rng: random.Random) -> tuple[Part, ...]:
    """As many parts as asked for, any of them, in their order: what a reduction is compared with.

    >>> len(randomly_reduced(range(100), 10, random.Random(1)))
    10
    """
    kept = sorted(rng.sample(range(len(parts)), size))
    return tuple(parts[i] for i in kept)


@dataclass(frozen=True)
class Kendall:
    """How two rankings agree."""

    tau: float
    """From -1 to 1; 0 is no relation."""
    p: float
    """How likely as much is by chance, either way."""


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> Kendall:
    """Kendall's tau-b, which takes ties into account, with the normal approximation of its p-value.

    >>> round(kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]).tau, 3)
    0.667
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} numbers make no pairs")
    count = len(first)
    balance = sum(
        _sign(first[i] - first[j]) * _sign(second[i] - second[j])
        for i in range(count)
        for j in range(i)
    )
    pairs = count * (count - 1) // 2
    ties = [_tie_sizes(first), _tie_sizes(second)]
    untied = [pairs - sum(t * (t - 1) // 2 for t in sizes) for sizes in ties]
    if 0 in untied:
        return Kendall(math.nan, math.nan)
    tau = balance / math.sqrt(untied[0]) / math.sqrt(untied[1])
    return Kendall(tau, _p_value(balance, count, *ties))


def _p_value(balance: int, count: int, first: list[int], second: list[int]) -> float:
    def total(sizes: list[int], weight: int) -> float:
        return sum(t * (t - 1) * (2 * t + weight) for t in sizes)

    def pairs(sizes: list[int]) -> float:
        return sum(t * (t - 1) for t in sizes)

    def triples(sizes: list[int]) -> float:
        return sum(t * (t - 1) * (t - 2) for t in sizes)

    whole = count * (count - 1)
    variance = (whole * (2 * count + 5) - total(first, 5) - total(second, 5)) / 18
    variance += pairs(first) * pairs(second) / (2 * whole)
    if count > 2:
        variance += triples(first) * triples(second) / (9 * whole * (count - 2))
    return math.erfc(abs(balance) / math.sqrt(2 * variance))


def _tie_sizes(numbers: Sequence[float]) -> list[int]:
    counted: dict[float, int] = {}
    for number in numbers:
        counted[number] = counted.get(number, 0) + 1
    return list(counted.values())


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)
