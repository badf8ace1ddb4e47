"""The settings of a race campaign as a space, and the tests it saves.

Each scheduling policy and each kind of noise is a feature, so that a swarm leaves some of them out
of each run. Among those that a configuration includes, one is drawn for the run. The other included
features restrict where it may act.

A `RaceTest` repeats a run: by a schedule, or by the settings and the seed of the run.
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
from swarmtest.race.noise_settings import KIND_NAMES, STRENGTHS, NoiseSettings
from swarmtest.race.timeline import Explanation

POLICIES = ("random-walk", "pct", "pos")
"""The policies that decide which thread runs next in a controlled run."""
HEURISTICS = ("halt-one-thread", "tamper-timeouts", "one-variable", "predecessors")
"""The heuristics that choose where and how noise is made."""
LIBRARY = "library-lines"
"""The feature that also switches threads at the lines of code without probes."""
SHARED = "shared-only"
"""The feature that switches or disturbs threads only before accesses to shared variables."""
_CONTROLLED_SHARE = 0.99
"""The share of controlled runs if a configuration allows both modes: a run with noise takes a
hundred times as long."""
_POLICY_WEIGHTS = {"random-walk": 16, "pct": 1, "pos": 1}
"""The weights by which allowed policies are drawn. Random walks with few switches find most
faults per second."""
_POLICY_RATE = 0.9
"""The inclusion rate of a policy. Runs of a configuration that includes none use noise only."""
_SWITCHES = (16, 32, 64)
_FREQUENCIES = (10, 30, 100, 300)
_LIBRARY_RATE = 0.1
"""The inclusion rate of switches in code without probes, which make a run slow."""
_RESTRICTION_RATE = 0.25
"""The inclusion rate of features that keep switches or noise away from most places."""


@dataclass(frozen=True)
class ControlSettings:
    """The settings of one controlled run.

    >>> print(ControlSettings("pct", depth=2, shared=True))
    control: pct of depth 2, switching before shared variables only
    """

    policy: str
    depth: int = 3
    shared: bool = False
    switches: int = 0
    """About how many times a random walk chooses a thread in a run; 0 means at each probe."""
    library: bool = False
    """Whether threads are also switched at the lines of code without probes."""

    def __str__(self) -> str:
        depth = f" of depth {self.depth}" if self.policy == "pct" else ""
        if self.policy == "random-walk" and self.switches:
            depth = f" of some {self.switches} choices"
        where = ", switching before shared variables only" if self.shared else ""
        if self.library:
            where = ", switching at lines of code without probes, too"
        return f"control: {self.policy}{depth}{where}"


RunSettings: TypeAlias = ControlSettings | NoiseSettings


def race_space(modes: Sequence[str] = ("control", "noise")) -> Space:
    """Return the space of all settings of the given modes of running threads.

    >>> race_space(["control"]).feature_names
    ('random-walk', 'pct', 'pos', 'library-lines', 'shared-only')
    """
    dimensions: list[Dimension] = []
    mode_features: list[str] = []
    if "control" in modes:
        mode_features += POLICIES
        rate = _POLICY_RATE if "noise" in modes else None
        dimensions += [
            *(Feature(name, rate=rate) for name in POLICIES),
            Integer("depth", 1, 5, default=3),
            Choice("switches", _SWITCHES, ordered=True, default=32),
            Feature(LIBRARY, rate=_LIBRARY_RATE),
        ]
    if "noise" in modes:
        mode_features += KIND_NAMES
        dimensions += [
            *map(Feature, KIND_NAMES),
            *(
                Feature(n, rate=None if n.startswith("halt") else _RESTRICTION_RATE)
                for n in HEURISTICS
            ),
            Choice("frequency", _FREQUENCIES, ordered=True, default=100),
            Choice("strength", STRENGTHS, ordered=True, default=10),
        ]
    return Space(
        [*dimensions, Feature(SHARED, rate=_RESTRICTION_RATE)], [at_least_one_of(*mode_features)]
    )


def settings_of(configuration: Configuration, seed: int) -> RunSettings:
    """Return the settings of one run: the configuration says what is allowed, the seed chooses."""
    included = configuration.included
    policies = [name for name in POLICIES if name in included]
    noises = [name for name in KIND_NAMES if name in included]
    rng = random.Random(seed)
    controlled = bool(policies) and (not noises or rng.random() < _CONTROLLED_SHARE)
    if controlled:
        (policy,) = rng.choices(policies, [_POLICY_WEIGHTS[name] for name in policies])
        depth, switches = (int(configuration.settings[name]) for name in ("depth", "switches"))
        return ControlSettings(policy, depth, SHARED in included, switches, LIBRARY in included)
    return NoiseSettings.of_names(
        int(configuration.settings["frequency"]),
        [rng.choice(noises)],
        int(configuration.settings["strength"]),
        [name for name in (*HEURISTICS, SHARED) if name in included],
    )


def features_of(settings: RunSettings) -> set[str]:
    """Return the features that a run with these settings contains.

    >>> sorted(features_of(ControlSettings("pos", shared=True)))
    ['pos', 'shared-only']
    """
    if isinstance(settings, ControlSettings):
        where = {SHARED: settings.shared, LIBRARY: settings.library}
        return {settings.policy, *(name for name, used in where.items() if used)}
    return {str(settings.kind), *settings.heuristics}


# Saved tests.

FORMAT = "swarmtest threads test 1"
NO_SCHEDULE = 9_999
"""The size of a test without a schedule. Any test with a schedule is smaller."""


@dataclass(frozen=True)
class RaceTest:
    """A saved test that repeats a run of a program.

    >>> test = RaceTest("race shop.py::sell", ControlSettings("pos", 3, False), 7)
    >>> RaceTest.from_json(test.to_json()) == test
    True
    """

    subject: str
    settings: RunSettings
    seed: int
    schedule: Schedule | None = None
    """Where threads were switched; None if the settings and the seed decide."""
    explanation: Explanation | None = None
    fault: str = ""
    """The id of the fault that the run showed. A run with noise may show another one next time."""
    seen: tuple[tuple[str, int], ...] = ()
    """For a run with noise: the disturbed threads in order, each with the number of its probe."""

    def to_json(self) -> dict[str, Any]:
        """Return the test as JSON data."""
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
        """Return the test that `to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise UserError(f"not a saved test of threads (its format should be {FORMAT!r})")
        try:
            explanation = data.get("explanation")
            schedule = data.get("schedule")
            return cls(
                data["subject"],
                _settings_from_json(data),
                int(data["seed"]),
                None if schedule is None else Schedule.from_plain(schedule),
                None if explanation is None else Explanation.from_json(explanation),
                data.get("fault", ""),
                tuple((str(thread), int(at)) for thread, at in data.get("seen", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"a saved test of threads is broken: {error!r}") from None

    @property
    def size(self) -> int:
        """The number of switches."""
        return len(self.schedule) if self.schedule is not None else NO_SCHEDULE


def _settings_from_json(data: Mapping[str, Any]) -> RunSettings:
    return NoiseSettings(**data["noise"]) if "noise" in data else ControlSettings(**data["control"])
