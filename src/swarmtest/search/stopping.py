"""When a search ends: after so many points, so long, at a fitness, when the user says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from swarmtest.errors import UserError
from swarmtest.result import Result


@dataclass(frozen=True)
class Stopping:
    """The limits of a search: whichever comes first. Without any, the engine decides.

    >>> Stopping(points=100, reach=20).describe()
    '100 points or fitness 20'
    """

    points: int | None = None
    seconds: float | None = None
    reach: float | None = None
    """A fitness that is good enough (of several objectives, the first)."""
    faults: int | None = None
    """Stop when this many distinct faults are known."""
    when: Callable[[Result], bool] | None = None
    """Told each point's result; the search ends when it says so."""

    def __post_init__(self) -> None:
        for name in ("points", "seconds", "faults"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UserError(f"a search's {name} are above 0, not {value:g}")

    def describe(self) -> str:
        """The limits in words."""
        words = [] if self.points is None else [f"{self.points:,} point{'s' * (self.points > 1)}"]
        words += [] if self.seconds is None else [f"{self.seconds:g} s"]
        words += [] if self.reach is None else [f"fitness {self.reach:g}"]
        words += [] if self.faults is None else [f"{self.faults} fault{'s' * (self.faults > 1)}"]
        words += ["the user says so"] if self.when is not None else []
        return " or ".join(words) or "the engine has nothing left"

    def reached(self, progress: SearchProgress) -> str:
        """The limit that is reached, in words; empty if there is more to do."""
        best = progress.best_score[0] if progress.best_score else None
        limits = (
            (self.points, progress.visits, "all points explored"),
            (self.seconds, progress.seconds, "time is up"),
            (self.reach, best, "fitness reached"),
            (self.faults, progress.faults, "enough faults"),
        )
        for limit, now, text in limits:
            if limit is not None and now is not None and now >= limit:
                return text
        return ""

    def to_json(self) -> dict[str, Any]:
        """The limits that are set, but for the user's function."""
        named = ("points", "seconds", "reach", "faults")
        return {name: getattr(self, name) for name in named if getattr(self, name) is not None}


@dataclass
class SearchProgress:
    """How far a search is.

    >>> SearchProgress(visits=3).best_score
    ()
    """

    visits: int = 0
    """Points that were proposed and run, the same one again counted again."""
    points: int = 0
    """Distinct points."""
    runs: int = 0
    failed: int = 0
    interrupted: int = 0
    targets: int = 0
    faults: int = 0
    seconds: float = 0.0
    best: dict[str, Any] | None = None
    best_score: tuple[float, ...] = ()
    best_visit: int = -1
