"""Aims: what directed tests should hit, and which features help or hinder (section 4).

An aim is what the directed swarm paper calls a target once targets may be merged: one or more
goals, with the features that trigger and suppress them.

Two aims conflict if a feature triggers one and suppresses the other. A feature that triggers the
aims A and suppresses the aims B makes every aim of A conflict with every aim of B, so the conflict
graph is a union of complete bipartite graphs, one per feature. `Conflicts` keeps it in that form,
which has far fewer parts than edges and gives a SAT solver a small input.
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
    """Targets whose statistics are used in place of its own: every test that hits the goal hits
    one of them first."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
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
    """The triggers that are beyond doubt; empty if these are not known. Among dozens of features,
    one or two look like triggers by chance."""

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
        """The certain triggers, or all triggers if it is not known which are certain."""
        return self.certain or self.triggers

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets of its goals."""
        return tuple(goal.target for goal in self.goals)

    def conflicts_with(self, other: Aim) -> bool:
        """Return whether a feature triggers one aim and suppresses the other."""
        return bool(self.triggers & other.suppressors or self.suppressors & other.triggers)

    def merged_with(self, other: Aim) -> Aim:
        """Return one aim for both, which must not conflict."""
        return Aim(
            self.goals + other.goals,
            self.triggers | other.triggers,
            self.suppressors | other.suppressors,
            self.surest | other.surest,
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "goals": [goal.to_json() for goal in self.goals],
            "triggers": sorted(self.triggers),
            "suppressors": sorted(self.suppressors),
            "certain": sorted(self.certain),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Aim:
        """Return the aim that `to_json` described."""
        goals = tuple(Goal(goal["target"], tuple(goal["through"])) for goal in data["goals"])
        roles = (frozenset(data[name]) for name in ("triggers", "suppressors", "certain"))
        return cls(goals, *roles)


@dataclass(frozen=True)
class Conflicts:
    """A graph whose vertices are aims, by number, and whose edges are conflicts.

    A set of vertices is an integer used as a bit set.

    >>> Conflicts(3, ((0b001, 0b110),)).neighbours
    (6, 1, 1)
    """

    size: int
    sides: tuple[tuple[int, int], ...]
    """Pairs of disjoint sets; each vertex of one set conflicts with each vertex of the other."""

    @classmethod
    def between(cls, aims: Sequence[Aim]) -> Conflicts:
        """Return the conflicts between aims."""
        sides: dict[str, list[int]] = {}
        for number, aim in enumerate(aims):
            for side, names in enumerate((aim.triggers, aim.suppressors)):
                for name in names:
                    sides.setdefault(name, [0, 0])[side] |= 1 << number
        pairs = {(left, right) for left, right in sides.values() if left and right}
        return cls(len(aims), tuple(sorted(pairs)))

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """For each vertex, the set of vertices that it conflicts with."""
        neighbours = [0] * self.size
        for left, right in self.sides:
            for vertex in members(left):
                neighbours[vertex] |= right
            for vertex in members(right):
                neighbours[vertex] |= left
        return tuple(neighbours)

    def within(self, vertices: int) -> tuple[tuple[int, int], ...]:
        """Return the sides of the conflicts among some of the vertices."""
        cut = ((left & vertices, right & vertices) for left, right in self.sides)
        return tuple(sorted({pair for pair in cut if pair[0] and pair[1]}))


def members(bits: int) -> Iterator[int]:
    """Yield the numbers in a bit set, smallest first.

    >>> list(members(0b1010))
    [1, 3]
    """
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
