"""A test of a program with threads: a schedule, or the settings and the seed of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swarmtest.errors import UserError
from swarmtest.subjects.threads.settings import ControlSettings, RunSettings
from swarmtest.subjects.threads.timeline import Explanation
from swarmtest.threads import Schedule
from swarmtest.threads.noise import NoiseSettings

FORMAT = "swarmtest threads test 1"
NO_SCHEDULE = 9_999
"""The size of a test that may switch anywhere: any with a schedule is smaller."""


@dataclass(frozen=True)
class RaceTest:
    """How a run of a program is repeated.

    >>> test = RaceTest("race shop.py::sell", ControlSettings("pos", 3, False), 7)
    >>> RaceTest.from_json(test.to_json()) == test
    True
    """

    subject: str
    settings: RunSettings
    seed: int
    schedule: Schedule | None = None
    """Where threads were switched; None: what the settings and the seed give."""
    explanation: Explanation | None = None
    fault: str = ""
    """The id of the fault that it showed: a run with noise may show another one next time."""
    seen: tuple[tuple[str, int], ...] = ()
    """Of a run with noise: who was disturbed, before the how manieth of its probes, in order."""

    def to_json(self) -> dict[str, Any]:
        """The test as JSON data."""
        data: dict[str, Any] = {
            "format": FORMAT,
            "subject": self.subject,
            "seed": self.seed,
        }
        noise = isinstance(self.settings, NoiseSettings)
        data["noise" if noise else "control"] = dict(vars(self.settings))
        if self.fault:
            data["fault"] = self.fault
        if self.seen:
            data["seen"] = [list(place) for place in self.seen]
        if self.schedule is not None:
            data["schedule"] = self.schedule.to_plain()
        if self.explanation is not None:
            data["explanation"] = self.explanation.to_json()
        return data

    @classmethod
    def from_json(cls, data: Any) -> RaceTest:
        """The test that `to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise UserError(f"not a saved test of threads (its format should be {FORMAT!r})")
        try:
            explanation = data.get("explanation")
            schedule = data.get("schedule")
            return cls(
                data["subject"],
                _settings(data),
                int(data["seed"]),
                None if schedule is None else Schedule.from_plain(schedule),
                None if explanation is None else Explanation.from_json(explanation),
                data.get("fault", ""),
                tuple((str(thread), int(at)) for thread, at in data.get("seen", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"a saved test of threads is broken: {error!r}") from None

    @property
    def size(self) -> int:
        """How many switches it has."""
        return len(self.schedule) if self.schedule is not None else NO_SCHEDULE


def _settings(data: Mapping[str, Any]) -> RunSettings:
    return NoiseSettings(**data["noise"]) if "noise" in data else ControlSettings(**data["control"])
