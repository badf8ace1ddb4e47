"""What is to be aimed at, as plain values: what planning makes and running reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from swarmtest.strategies.directed.aim import Aim, Goal

Cause = Literal["", "hot", "at import", "unseen", "no data"]
"""Why a target is not aimed at."""


@dataclass(frozen=True)
class PlannedTarget:
    """A target, and how it is aimed at."""

    name: str
    place: str = ""
    line: int = 0
    function: str = ""
    through: tuple[str, ...] = ()
    """The names of what stands in for it, in today's code."""
    stand_in: str = ""
    mapped: str = ""
    dropped: str = ""
    """In words, why it is not aimed at; empty if it is."""
    cause: Cause = ""
    aimed: bool = False
    triggers: tuple[str, ...] = ()
    suppressors: tuple[str, ...] = ()
    certain: tuple[str, ...] = ()
    """The triggers that are beyond doubt."""

    @property
    def goal(self) -> Goal:
        """What a strategy is told of it."""
        return Goal(self.name, self.through)


@dataclass(frozen=True)
class FocusPlan:
    """All targets of a focus."""

    targets: tuple[PlannedTarget, ...]

    @property
    def aims(self) -> tuple[Aim, ...]:
        """What is aimed at: targets with the same triggers and suppressors are one aim."""
        by_roles: dict[tuple[tuple[str, ...], tuple[str, ...]], list[PlannedTarget]] = {}
        for target in self.targets:
            if target.aimed:
                by_roles.setdefault((target.triggers, target.suppressors), []).append(target)
        return tuple(
            Aim(
                tuple(t.goal for t in some),
                frozenset(triggers),
                frozenset(suppressors),
                frozenset(name for t in some for name in t.certain),
            )
            for (triggers, suppressors), some in by_roles.items()
        )
