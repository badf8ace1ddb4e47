"""Merge aims, to aim at several targets with fewer kinds of configurations (section 4.2).

Invariant: whatever the mode, each goal of the aims is a goal of exactly one merged aim, whose
triggers and suppressors contain those of the goal's own aim.

*Why merging is colouring.* Two aims conflict when a feature triggers one and suppresses the other.
Let a, b, c be aims with no conflict between any two of them, and m the union of a and b. A conflict
of m with c would be a feature in T(m) & S(c) or S(m) & T(c); since T(m) = T(a) | T(b) and
S(m) = S(a) | S(b), that feature is already in T(a) & S(c), T(b) & S(c), S(a) & T(c) or S(b) & T(c):
a conflict of a or b with c. So by induction any set of aims without a conflict between two of them
merges into one, in any order. Conversely, a merged aim keeps all triggers and suppressors, so two
aims that conflict can never be in one. The sets that sequences of merges can make are thus exactly
the partitions of the aims into independent sets of the conflict graph, and the fewest merged aims
are its chromatic number.

Of the colourings with the same number of colours, `leaner` finds one whose merged aims fix few
features. A merged aim fixes the triggers and suppressors of all its members, and a fixed feature is
not varied. So each aim moves to the group where it adds the least, as long as the sum over all aims
of the features fixed in their groups falls. No aim ever gets a colour that was not used before.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.strategies.directed.aim import Aim, Conflicts, members
from swarmtest.strategies.directed.colouring import first_fit, minimum_colouring

ROUND_ROBIN = "round-robin"
SUBSUMPTION = "subsumption"
AGGRESSIVE = "aggressive"

MERGES = (ROUND_ROBIN, SUBSUMPTION, AGGRESSIVE)
"""The paper's ways to deal with several targets, from no merging to as much as possible."""


@dataclass(frozen=True)
class Merging:
    """Merged aims, and how far they are from the fewest possible."""

    aims: tuple[Aim, ...]
    lower_bound: int
    """No merging of this kind has fewer aims."""
    how: str
    """How the merged aims were found, and why there cannot be fewer."""

    @property
    def proven(self) -> bool:
        """Whether it is proven that there cannot be fewer aims."""
        return len(self.aims) == self.lower_bound

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        aims = [aim.to_json() for aim in self.aims]
        return {"aims": aims, "lower_bound": self.lower_bound, "how": self.how}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Merging:
        """Return the merging that `to_json` described."""
        return cls(tuple(map(Aim.from_json, data["aims"])), data["lower_bound"], data["how"])


def merged(aims: Iterable[Aim], merge: str, seconds: float = 5.0) -> Merging:
    """Merge the aims in the way `merge`, one of `MERGES`; `seconds` limits the exact search.

    >>> from swarmtest.strategies.directed.aim import Goal
    >>> full = Aim((Goal("event:full"),), triggers={"push"}, suppressors={"pop"})
    >>> empty = Aim((Goal("event:empty"),), triggers={"pop"})
    >>> other = Aim((Goal("event:sum"),), triggers={"add"})
    >>> len(merged([full, empty, other], "aggressive").aims)
    2
    """
    aims = tuple(aims)
    if merge == ROUND_ROBIN:
        return Merging(aims, len(aims), "one by one")
    if merge == SUBSUMPTION:
        remaining = without_subsumed(aims)
        return Merging(remaining, len(remaining), "subsumption")
    if merge == AGGRESSIVE:
        return merged_aggressively(aims, seconds)
    raise UserError(f"unknown way to merge {merge!r}{did_you_mean(merge, MERGES)}")


def without_subsumed(aims: Sequence[Aim]) -> tuple[Aim, ...]:
    """Remove the aims that require no more than another one does (algorithm 1).

    The goals of a removed aim go to the smallest remaining aim that requires everything it did. Of
    aims that require the same, the first remains: removing each because of the other would leave
    none.
    """
    remaining: list[int] = []
    for i, aim in enumerate(aims):
        rivals = (j for j in range(len(aims)) if j != i and _requires_all_of(aims[j], aim))
        if not any(not _requires_the_same(aims[j], aim) or j < i for j in rivals):
            remaining.append(i)
    goals = {i: list(aims[i].goals) for i in remaining}
    for i in sorted(set(range(len(aims))) - goals.keys()):
        above = [j for j in remaining if _requires_all_of(aims[j], aims[i])]
        goals[min(above, key=lambda j: _size(aims[j]))] += aims[i].goals
    return tuple(replace(aims[i], goals=tuple(goals[i])) for i in remaining)


def merged_aggressively(aims: Sequence[Aim], seconds: float = 5.0) -> Merging:
    """Merge into the fewest possible aims, or close to it (algorithm 2, made exact)."""
    remaining = without_subsumed(aims)
    colouring = minimum_colouring(Conflicts.between(remaining), seconds)
    classes: dict[int, list[Aim]] = {}
    for aim, colour in zip(remaining, leaner(remaining, colouring.colours), strict=True):
        classes.setdefault(colour, []).append(aim)
    united = tuple(reduce(Aim.merged_with, members) for members in classes.values())
    return Merging(united, colouring.lower_bound, colouring.how)


def merge_at_random(aims: Sequence[Aim], trials: int = 10_000, seed: int = 0) -> tuple[Aim, ...]:
    """Merge pairs at random until no pair is left, many times, and return the best (algorithm 2).

    The paper does not say how a pair is picked. Here it is the first pair that does not conflict,
    in a random order of the aims in which a merged aim takes the place of its first member. That
    leaves fewer aims than picking pairs uniformly (of 100 aims 5, not 8 or 9), in less time.

    >>> len(merge_at_random([Aim((), {"push"}), Aim((), {"pop"})], trials=1))
    1
    """
    remaining = without_subsumed(aims)
    neighbours = Conflicts.between(remaining).neighbours
    rng = random.Random(seed)
    order = list(range(len(remaining)))
    best = [1 << number for number in order]
    for _ in range(trials):
        rng.shuffle(order)
        groups = first_fit(neighbours, order)
        if len(groups) < len(best):
            best = groups
    return tuple(reduce(Aim.merged_with, (remaining[i] for i in members(group))) for group in best)


def _requires_all_of(aim: Aim, other: Aim) -> bool:
    return other.triggers <= aim.triggers and other.suppressors <= aim.suppressors


def _requires_the_same(aim: Aim, other: Aim) -> bool:
    return other.triggers == aim.triggers and other.suppressors == aim.suppressors


def _size(aim: Aim) -> int:
    return len(aim.triggers) + len(aim.suppressors)


# Merged aims that fix few features.

_ROUNDS = 3


def leaner(aims: Sequence[Aim], colours: Sequence[int]) -> list[int]:
    """Return the colours after moving aims, one by one, to groups that fix fewer features.

    >>> push, pop = Aim((), {"push"}), Aim((), {"pop"}, {"push"})
    >>> leaner([push, pop, Aim((), {"pop"})], [0, 1, 0])
    [0, 1, 1]
    """
    colour_of = list(colours)
    groups: dict[int, _Group] = {}
    for aim, colour in zip(aims, colour_of, strict=True):
        groups.setdefault(colour, _Group()).add(aim)
    for _ in range(_ROUNDS):
        moved = False
        for number, aim in enumerate(aims):
            home = groups[colour_of[number]]
            saved = home.cost - home.cost_without(aim)
            costs = {
                colour: group.cost_with(aim) - group.cost
                for colour, group in groups.items()
                if group is not home and group.has_room_for(aim)
            }
            best = min(costs, key=costs.__getitem__, default=None)
            if best is not None and costs[best] < saved:
                home.remove(aim)
                groups[best].add(aim)
                colour_of[number], moved = best, True
        if not moved:
            break
    return colour_of


class _Group:
    """The aims of one colour; its cost is the number of fixed features times that of its aims."""

    def __init__(self) -> None:
        self._size = 0
        self._triggered_by: dict[str, int] = {}
        self._suppressed_by: dict[str, int] = {}

    @property
    def cost(self) -> int:
        return self._size * (len(self._triggered_by) + len(self._suppressed_by))

    def cost_with(self, aim: Aim) -> int:
        new = len(aim.triggers - self._triggered_by.keys())
        new += len(aim.suppressors - self._suppressed_by.keys())
        return (self._size + 1) * (len(self._triggered_by) + len(self._suppressed_by) + new)

    def cost_without(self, aim: Aim) -> int:
        gone = sum(self._triggered_by[name] == 1 for name in aim.triggers)
        gone += sum(self._suppressed_by[name] == 1 for name in aim.suppressors)
        return (self._size - 1) * (len(self._triggered_by) + len(self._suppressed_by) - gone)

    def has_room_for(self, aim: Aim) -> bool:
        triggered, suppressed = self._triggered_by, self._suppressed_by
        return suppressed.keys().isdisjoint(aim.triggers) and triggered.keys().isdisjoint(
            aim.suppressors
        )

    def add(self, aim: Aim) -> None:
        self._size += 1
        for counts, names in self._counts(aim):
            for name in names:
                counts[name] = counts.get(name, 0) + 1

    def remove(self, aim: Aim) -> None:
        self._size -= 1
        for counts, names in self._counts(aim):
            for name in names:
                counts[name] -= 1
                if not counts[name]:
                    del counts[name]

    def _counts(self, aim: Aim) -> list[tuple[dict[str, int], frozenset[str]]]:
        return [(self._triggered_by, aim.triggers), (self._suppressed_by, aim.suppressors)]
