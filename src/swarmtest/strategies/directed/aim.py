"""What directed tests are to hit, and which features help or hinder (directed swarm, section 4).

An aim is what the papers call a target once targets may be merged: one or more goals, with the
features that trigger and suppress them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
