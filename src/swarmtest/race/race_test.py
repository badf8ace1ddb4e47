"""The settings of a search for races, as a space: a swarm leaves some out of each run.

Who moves the threads of a run is a feature each: policies of control, and kinds of noise. One that
is allowed is drawn for each run, and the other features that are on say where it may act.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from swarmtest.core.configuration import Configuration
from swarmtest.core.constraints import at_least_one_of
from swarmtest.core.dimensions import Choice, Dimension, Feature, Integer
from swarmtest.core.errors import UserError
from swarmtest.core.space import Space
from swarmtest.race.control.schedulers import Schedule
from swarmtest.race.free.noise import KINDS, STRENGTHS, NoiseSettings
from swarmtest.race.timeline import Explanation

POLICIES = ("random-walk", "pct", "pos")
"""Who decides which thread goes on, one at a time."""
NOISES = tuple(KINDS)
HEURISTICS = ("halt-one-thread", "tamper-timeouts", "one-variable", "predecessors")
"""Where and how noise is made."""
SHARED = "shared-only"
"""Threads are switched, or disturbed, only before accesses to variables that they share."""
_CONTROLLED = 0.99
"""The share of controlled runs where both are allowed: noise takes a hundred times as long."""
_SHARES = {"random-walk": 16, "pct": 1, "pos": 1}
"""How often the policies that are allowed are drawn: walks of few switches find most per second."""
_USUALLY = 0.9
"""How often a policy is allowed: where none is, there is only noise."""
_SWITCHES = (16, 32, 64)
_FREQUENCIES = (10, 30, 100, 300)
_RARELY = 0.25
"""How often what keeps switches or noise away from most places is drawn."""


@dataclass(frozen=True)
class ControlSettings:
    """How one run is controlled.

    >>> print(ControlSettings("pct", depth=2, shared=True))
    control: pct of depth 2, switching before shared variables only
    """

    policy: str
    depth: int = 3
    shared: bool = False
    switches: int = 0
    """How often a random walk chooses in a run, about; 0: at each probe."""

    def __str__(self) -> str:
        depth = f" of depth {self.depth}" if self.policy == "pct" else ""
        if self.policy == "random-walk" and self.switches:
            depth = f" of some {self.switches} choices"
        where = ", switching before shared variables only" if self.shared else ""
        return f"control: {self.policy}{depth}{where}"


RunSettings: TypeAlias = ControlSettings | NoiseSettings


def race_space(engines: Sequence[str] = ("control", "noise")) -> Space:
    """The space of all settings of some engines.

    >>> race_space(["control"]).feature_names
    ('random-walk', 'pct', 'pos', 'shared-only')
    """
    dimensions: list[Dimension] = []
    movers: list[str] = []
    if "control" in engines:
        movers += POLICIES
        rate = _USUALLY if "noise" in engines else None
        dimensions += [
            *(Feature(name, rate=rate) for name in POLICIES),
            Integer("depth", 1, 5, default=3),
            Choice("switches", _SWITCHES, ordered=True, default=32),
        ]
    if "noise" in engines:
        movers += NOISES
        dimensions += [
            *map(Feature, NOISES),
            *(Feature(n, rate=None if n.startswith("halt") else _RARELY) for n in HEURISTICS),
            Choice("frequency", _FREQUENCIES, ordered=True, default=100),
            Choice("strength", STRENGTHS, ordered=True, default=10),
        ]
    return Space([*dimensions, Feature(SHARED, rate=_RARELY)], [at_least_one_of(*movers)])


def settings_of(configuration: Configuration, seed: int) -> RunSettings:
    """The settings of one run: a configuration says what is allowed, the seed chooses."""
    on = configuration.included
    policies = [name for name in POLICIES if name in on]
    noises = [name for name in NOISES if name in on]
    chance = random.Random(seed)
    controlled = bool(policies) and (not noises or chance.random() < _CONTROLLED)
    if controlled:
        (policy,) = chance.choices(policies, [_SHARES[name] for name in policies])
        depth, switches = (int(configuration.settings[name]) for name in ("depth", "switches"))
        return ControlSettings(policy, depth, SHARED in on, switches)
    return NoiseSettings(
        int(configuration.settings["frequency"]),
        chance.choice(noises),
        int(configuration.settings["strength"]),
        shared_only=SHARED in on,
        **{_field(name): name in on for name in HEURISTICS},
    )


def features_of(settings: RunSettings) -> set[str]:
    """The features that a run with these settings contains.

    >>> sorted(features_of(ControlSettings("pos", shared=True)))
    ['pos', 'shared-only']
    """
    if isinstance(settings, ControlSettings):
        return {settings.policy, *([SHARED] if settings.shared else [])}
    heuristics = {name for name in HEURISTICS if getattr(settings, _field(name))}
    return {settings.kind, *heuristics, *([SHARED] if settings.shared_only else [])}


def _field(name: str) -> str:
    return name.replace("-", "_")


# -------------------------------------------------------------------------------------------------
# A test of a program with threads: a schedule, or the settings and the seed of a run.

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
