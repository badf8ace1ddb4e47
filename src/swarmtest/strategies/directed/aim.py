"""What directed tests are to hit, and which features help or hinder (directed swarm, section 4).

An aim is what the papers call a target once targets may be merged: one or more goals, with the
features that trigger and suppress them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Goal:
    """A target to hit.

    >>> Goal("line:cart.py:12", through=("line:cart.py:9",)).target
    'line:cart.py:12'
    """

    target: str
    """``kind:name``, as in `Result.hits`; a fault is ``fault:ID``."""
    through: tuple[str, ...] = ()
    """Targets whose statistics stand in for its own: whoever hits it hits one of them before."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"target": self.target, "through": list(self.through)}


@dataclass(frozen=True)
class Aim:
    """Goals that are aimed at together.

    >>> full = Aim((Goal("event:full"),), triggers={"push"}, suppressors={"pop"})
    >>> empty = Aim((Goal("event:empty"),), triggers={"pop"})
    >>> full.conflicts_with(empty)
    True
    """

    goals: tuple[Goal, ...]
    triggers: frozenset[str] = frozenset()
    suppressors: frozenset[str] = frozenset()
    certain: frozenset[str] = frozenset()
    """Those of the triggers that are beyond doubt: among dozens of features, one or two look like
    triggers by chance. Empty: that is not known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "triggers", frozenset(self.triggers))
        object.__setattr__(self, "suppressors", frozenset(self.suppressors))
        object.__setattr__(self, "certain", frozenset(self.certain))
        if not self.certain <= self.triggers:
            raise ValueError(f"certain triggers are triggers: {sorted(self.certain)}")
        both = self.triggers & self.suppressors
        if both:
            raise ValueError(f"a trigger is no suppressor of the same aim: {sorted(both)}")

    @property
    def surest(self) -> frozenset[str]:
        """The triggers that are certain; all of them if it is not known which are."""
        return self.certain or self.triggers

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets that it is about."""
        return tuple(goal.target for goal in self.goals)

    def conflicts_with(self, other: Aim) -> bool:
        """Whether a feature triggers one and suppresses the other."""
        return bool(self.triggers & other.suppressors or self.suppressors & other.triggers)

    def merged_with(self, other: Aim) -> Aim:
        """One aim for both; only for aims that do not conflict."""
        return Aim(
            self.goals + other.goals,
            self.triggers | other.triggers,
            self.suppressors | other.suppressors,
            self.surest | other.surest,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "goals": [goal.to_json() for goal in self.goals],
            "triggers": sorted(self.triggers),
            "suppressors": sorted(self.suppressors),
            "certain": sorted(self.certain),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Aim:
        """The aim that `to_json` described."""
        goals = tuple(Goal(one["target"], tuple(one["through"])) for one in data["goals"])
        roles = (frozenset(data[name]) for name in ("triggers", "suppressors", "certain"))
        return cls(goals, *roles)


# -------------------------------------------------------------------------------------------------
# Which aims conflict, as bit sets.
#
# A feature that triggers the aims A and suppresses the aims B makes every aim of A conflict with
# every aim of B, so the conflict graph is a union of complete bipartite graphs, one per feature.
# Kept that way it has far fewer parts than edges, which is what a SAT solver wants to be told.


@dataclass(frozen=True)
class Conflicts:
    """A graph whose vertices are aims, by number, and whose edges are conflicts.

    >>> Conflicts(3, ((0b001, 0b110),)).neighbours
    (6, 1, 1)
    """

    size: int
    sides: tuple[tuple[int, int], ...]
    """Pairs of disjoint sets of vertices; each of the one conflicts with each of the other."""

    @classmethod
    def between(cls, aims: Sequence[Aim]) -> Conflicts:
        """The conflicts between aims."""
        sides: dict[str, list[int]] = {}
        for number, aim in enumerate(aims):
            for side, names in enumerate((aim.triggers, aim.suppressors)):
                for name in names:
                    sides.setdefault(name, [0, 0])[side] |= 1 << number
        both = {(one, other) for one, other in sides.values() if one and other}
        return cls(len(aims), tuple(sorted(both)))

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """For each vertex the set of those that it conflicts with."""
        found = [0] * self.size
        for one, other in self.sides:
            for vertex in members(one):
                found[vertex] |= other
            for vertex in members(other):
                found[vertex] |= one
        return tuple(found)

    def within(self, vertices: int) -> tuple[tuple[int, int], ...]:
        """The sides of the conflicts between some of the vertices."""
        cut = ((one & vertices, other & vertices) for one, other in self.sides)
        return tuple(sorted({pair for pair in cut if pair[0] and pair[1]}))


def members(bits: int) -> Iterator[int]:
    """The numbers in a bit set, smallest first.

    >>> list(members(0b1010))
    [1, 3]
    """
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
