"""The chance that a swarm contains a combination of features, and how large it must be.

The formulas are exact for coin tosses, with a rate per feature. They account for the fact that a
configuration is never empty (with three fair coins, a given feature is in 4 of 7 configurations,
not in half of them).

A swarm is *k-way covering* if every k features show all their on/off combinations in it. The chance
of that has no simple formula, because the combinations overlap. The union bound, 1 minus the sum of
the chances that each one is missing, is always below it, and close to it where it matters: at 99%,
it asks for at most one configuration too many (fair coins, 9 to 37 features, 2 to 5 ways).

The swarm testing paper says that 120 fair-coin configurations are 99% likely 3-way covering and 750
5-way covering, for any number of features. The first holds for up to 41 features and fails from 43
on; the second holds for up to 62 and fails from 63 on. The tests check both bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from swarmtest.core.constraints import Clause, Constraint, conflict
from swarmtest.core.errors import UserError
from swarmtest.core.space import Space

_MOST_CLASSES = 500_000
_MOST_WAYS = 10**300
"""A larger number could not be multiplied with a chance."""
_NAMED = 10
"""How many features are named in a sentence; the rest are counted."""


@dataclass(frozen=True)
class Combination:
    """Features that are to be in a configuration together, and features that are to be left out.

    >>> print(Combination(("open", "write"), ("close",)))
    with open and write without close
    """

    on: tuple[str, ...]
    off: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (("with", self.on, " and "), ("without", self.off, " or "))
        return " ".join(f"{word} {_listed(names, by)}" for word, names, by in parts if names)

    def masks(self, space: Space) -> tuple[int, int]:
        """Return the bits of its features in a space: those on, and those off."""
        on, off = (
            sum(1 << space.feature_number[name] for name in names) for names in (self.on, self.off)
        )
        return on, off


def _listed(names: Sequence[str], between: str) -> str:
    if len(names) > _NAMED:
        names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1:,} more"]
    return between.join(names)


def forbidden_by(space: Space, combination: Combination) -> list[str]:
    """Return the constraints that make a combination impossible; empty if it is possible.

    >>> from swarmtest import Feature
    >>> space = Space([Feature("open"), Feature("close", requires=["open"])])
    >>> forbidden_by(space, Combination(("close",), ("open",)))
    ["'close' requires 'open'"]
    """
    request = Constraint((), (), "asked for")
    on, off = combination.masks(space)
    bits = [1 << i for i in range(len(space.features))]
    wishes = [Clause(bit & on, bit & off, request) for bit in bits if bit & (on | off)]
    # `conflict` drops the first clauses first: the wishes stay, together with few constraints.
    clash = conflict([space.never_empty, *space.clauses, *wishes])
    never_empty = space.never_empty.constraint
    return [
        "a configuration is never empty" if rule is never_empty else str(rule)
        for rule in clash
        if rule is not request
    ]


def coin_share(rates: Sequence[float], on: Sequence[int], off: Sequence[int] = ()) -> float:
    """Return the share of coin-toss configurations with the features `on` and without those `off`.

    `rates` has one number per feature; `on` and `off` number the features from 0.

    >>> coin_share([0.5, 0.5, 0.5], on=[0])  # 4 of the 7 that are not empty
    0.5714285714285714
    """
    empty = math.prod(1 - rate for rate in rates)
    share = math.prod(rates[i] for i in on) * math.prod(1 - rates[i] for i in off)
    return _given_not_empty(share, empty, bool(on))


def sized_share(features: int, on: int, off: int, low: int, high: int) -> float:
    """Return that share if the size is drawn from low to high, and then that many features.

    >>> sized_share(4, on=2, off=0, low=2, high=2) == 1 / 6
    True
    """
    ways = [
        math.comb(features - on - off, size - on) / math.comb(features, size) if size >= on else 0.0
        for size in range(low, high + 1)
    ]
    return sum(ways) / len(ways)


def chance_in(share: float, n: int) -> float:
    """Return the chance that at least one of n independent configurations has it.

    >>> round(chance_in(0.5**5, 100), 3)  # the paper: 95% for five features
    0.958
    """
    return -math.expm1(n * math.log1p(-share)) if share < 1 else float(n > 0)


def needed(share: float, chance: float) -> int:
    """Return the smallest n for which `chance_in` is at least this chance.

    >>> needed(0.5**5, 0.95)
    95
    """
    if share >= 1:
        return 1
    n = max(math.ceil(math.log1p(-chance) / math.log1p(-share)), 1)
    return n - 1 if n > 1 and chance_in(share, n - 1) >= chance else n


@dataclass(frozen=True)
class KWayCombinations:
    """All combinations of k features, each with its share of the configurations."""

    classes: tuple[tuple[int, float], ...]
    """Pairs of a number of combinations and the share that each of them has."""

    @property
    def count(self) -> int:
        """Return how many combinations there are."""
        return sum(count for count, _ in self.classes)

    @property
    def rarest(self) -> float:
        """Return the smallest share."""
        return min(share for _, share in self.classes)

    def chance_in(self, n: int) -> float:
        """Return a lower bound of the chance that n configurations have all of them (union bound).

        >>> round(coin_ways([0.5] * 41, 3).chance_in(120), 4)
        0.9906
        """
        missed = sum(count * (1 - chance_in(share, n)) for count, share in self.classes)
        return max(1 - missed, 0.0)

    def needed(self, chance: float) -> int:
        """Return a number of configurations that have all of them with this chance.

        >>> coin_ways([0.5] * 23, 5).needed(0.99)
        583
        """
        low, high = 0, needed(self.rarest, chance)
        while self.chance_in(high) < chance:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.chance_in(middle) >= chance else (middle, high)
        return high


def coin_ways(rates: Sequence[float], k: int, on_only: bool = False) -> KWayCombinations:
    """Return all on/off combinations of k features under coin tosses; with `on_only`, all k on.

    If there are only k features, "all off" is not one of them: a configuration is never empty.

    >>> coin_ways([0.5] * 23, 5).count  # 33,649 sets of five, 32 combinations each
    1076768
    """
    if not 1 <= k <= len(rates):
        raise UserError(f"combinations are of 1 to {len(rates)} features, not {k}")
    if math.comb(len(rates), k) << k > _MOST_WAYS:
        raise UserError(f"{k}-way combinations of {len(rates)} features are too many to add up")
    groups = sorted(Counter(rates).items())
    kinds = len(groups) * (1 if on_only else 2)
    if math.comb(kinds + k - 1, k) > _MOST_CLASSES:
        raise UserError(
            f"{len(groups)} different rates make too many different {k}-way combinations to add up"
        )
    empty = math.prod(1 - rate for rate in rates)
    counts: Counter[float] = Counter()
    for count, share, some_on in _classes(groups, k, on_only):
        if some_on or k < len(rates):
            counts[_given_not_empty(share, empty, some_on)] += count
    return KWayCombinations(tuple((count, share) for share, count in counts.items()))


def _classes(
    groups: Sequence[tuple[float, int]], k: int, on_only: bool
) -> Iterator[tuple[int, float, bool]]:
    """Yield combinations of k features, grouped by their numbers of on and off per rate."""
    if not groups:
        if k == 0:
            yield 1, 1.0, False
        return
    (rate, members), *rest = groups
    for on in range(min(k, members) + 1):
        for off in range(1 if on_only else min(k - on, members - on) + 1):
            own = math.comb(members, on) * math.comb(members - on, off)
            share = rate**on * (1 - rate) ** off
            for count, other, some_on in _classes(rest, k - on - off, on_only):
                yield own * count, share * other, some_on or on > 0


def _given_not_empty(share: float, empty: float, some_on: bool) -> float:
    if empty >= 1:
        raise UserError("all inclusion rates are 0, and a configuration is never empty")
    return max(share if some_on else share - empty, 0.0) / (1 - empty)
