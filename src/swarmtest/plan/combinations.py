"""What is the chance that a swarm contains a combination of features, and how large must it be?

Exact for coin tosses, with a rate per feature; a configuration is never empty, and that is counted
in (with three fair coins a given feature is in 4 of 7 configurations, not in half of them).

A swarm is *k-way covering* when every k features show all their on/off combinations in it. The
chance of that has no simple formula: the combinations overlap. The union bound, 1 minus the sum of
the chances that each one is missing, is always below it, and close to it where it matters: at 99%,
it asks for at most one configuration too many (fair coins, 9 to 37 features, 2 to 5 ways).

The swarm testing paper says that 120 fair-coin configurations are 99% likely 3-way covering and 750
5-way covering, for any number of features. The first holds up to 41 features and fails from 43 on,
the second holds up to 62 and fails from 63 on; the tests have both bounds.
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
"""More could not be multiplied with a chance."""
_NAMED = 10
"""So many features are named in a sentence; the rest is counted."""


@dataclass(frozen=True)
class Combination:
    """Features that are to be in a configuration together, and features that are to be out.

    >>> print(Combination(("open", "write"), ("close",)))
    with open and write without close
    """

    on: tuple[str, ...]
    off: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (("with", self.on, " and "), ("without", self.off, " or "))
        return " ".join(f"{word} {_listed(names, by)}" for word, names, by in parts if names)

    def masks(self, space: Space) -> tuple[int, int]:
        """The bits of its features in a space: those on, those off."""
        on, off = (
            sum(1 << space.feature_number[name] for name in names) for names in (self.on, self.off)
        )
        return on, off


def _listed(names: Sequence[str], between: str) -> str:
    if len(names) > _NAMED:
        names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1:,} more"]
    return between.join(names)


def forbidden_by(space: Space, combination: Combination) -> list[str]:
    """The constraints that make a combination impossible; empty where it is possible.

    >>> from swarmtest import Feature
    >>> space = Space([Feature("open"), Feature("close", requires=["open"])])
    >>> forbidden_by(space, Combination(("close",), ("open",)))
    ["'close' requires 'open'"]
    """
    asked = Constraint((), (), "asked for")
    on, off = combination.masks(space)
    bits = [1 << i for i in range(len(space.features))]
    wished = [Clause(bit & on, bit & off, asked) for bit in bits if bit & (on | off)]
    # The first are tried to do without first: what was asked for stays, and few rules.
    clash = conflict([space.never_empty, *space.clauses, *wished])
    never_empty = space.never_empty.constraint
    return [
        "a configuration is never empty" if rule is never_empty else str(rule)
        for rule in clash
        if rule is not asked
    ]


def coin_share(rates: Sequence[float], on: Sequence[int], off: Sequence[int] = ()) -> float:
    """The share of coin-toss configurations with these features in and those out.

    `rates` has one number per feature; `on` and `off` number the features from 0.

    >>> coin_share([0.5, 0.5, 0.5], on=[0])  # 4 of the 7 that are not empty
    0.5714285714285714
    """
    empty = math.prod(1 - rate for rate in rates)
    share = math.prod(rates[i] for i in on) * math.prod(1 - rates[i] for i in off)
    return _given_not_empty(share, empty, bool(on))


def sized_share(features: int, on: int, off: int, low: int, high: int) -> float:
    """The same where the size is drawn from low to high, and then that many features.

    >>> sized_share(4, on=2, off=0, low=2, high=2) == 1 / 6
    True
    """
    ways = [
        math.comb(features - on - off, size - on) / math.comb(features, size) if size >= on else 0.0
        for size in range(low, high + 1)
    ]
    return sum(ways) / len(ways)


def chance_in(share: float, n: int) -> float:
    """The chance that at least one of n independent configurations has it.

    >>> round(chance_in(0.5**5, 100), 3)  # the paper: 95% for five features
    0.958
    """
    return -math.expm1(n * math.log1p(-share)) if share < 1 else float(n > 0)


def needed(share: float, chance: float) -> int:
    """The smallest n for which `chance_in` is at least this chance.

    >>> needed(0.5**5, 0.95)
    95
    """
    if share >= 1:
        return 1
    n = max(math.ceil(math.log1p(-chance) / math.log1p(-share)), 1)
    return n - 1 if n > 1 and chance_in(share, n - 1) >= chance else n


@dataclass(frozen=True)
class Ways:
    """All combinations of k features, each with its share of the configurations."""

    classes: tuple[tuple[int, float], ...]
    """How many combinations there are of each share."""

    @property
    def count(self) -> int:
        """How many combinations there are."""
        return sum(count for count, _ in self.classes)

    @property
    def rarest(self) -> float:
        """The smallest share."""
        return min(share for _, share in self.classes)

    def chance_in(self, n: int) -> float:
        """At least so likely all of them are among n configurations (union bound).

        >>> round(coin_ways([0.5] * 41, 3).chance_in(120), 4)
        0.9906
        """
        missed = sum(count * (1 - chance_in(share, n)) for count, share in self.classes)
        return max(1 - missed, 0.0)

    def needed(self, chance: float) -> int:
        """So many configurations are enough to have all with this chance.

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


def coin_ways(rates: Sequence[float], k: int, on_only: bool = False) -> Ways:
    """All on/off combinations of k features under coin tosses; `on_only`: all k in.

    All off is none of them where there are only k features: a configuration is never empty.

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
    found: Counter[float] = Counter()
    for count, share, some_on in _classes(groups, k, on_only):
        if some_on or k < len(rates):
            found[_given_not_empty(share, empty, some_on)] += count
    return Ways(tuple((count, share) for share, count in found.items()))


def _classes(
    groups: Sequence[tuple[float, int]], k: int, on_only: bool
) -> Iterator[tuple[int, float, bool]]:
    """Combinations of k features, counted by what decides their share: on and off per rate."""
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
