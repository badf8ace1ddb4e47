"""A native program with threads as a subject: its configurations are settings of noise.

Kinds of noise and heuristics are features, so that a swarm leaves some out of each run, and the
roles of the features show which ones bring out a fault. The frequency and the strength of noise are
settings.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.constraints import at_least_one_of
from swarmtest.core.dimensions import Choice, Feature, Integer
from swarmtest.core.errors import UserError
from swarmtest.core.result import Result
from swarmtest.core.space import Space
from swarmtest.race.native.runner import NO_THREAD, NativeRun, NativeThreads
from swarmtest.race.noise_settings import HEURISTICS, KINDS, NoiseSettings
from swarmtest.subjects.subject import Subject

FORMAT = "swarmtest native threads test 1"
REFERENCE = "race "
"""The prefix of a reference that names a native program: ``race -- ./program args``."""
_REPLAYS = 20
_RESTRICTION_RATE = 0.25
"""The inclusion rate of heuristics that keep noise away from most places."""
_STRENGTHS = (1, 3, 10, 30)


def noise_space() -> Space:
    """Return the space of noise settings: kinds and heuristics to leave out, frequency, strength.

    >>> noise_space().setting_names
    ('frequency', 'strength')
    """
    restricting = ("shared-only", "one-variable", "predecessors")
    return Space(
        [
            *(Feature(kind) for kind in KINDS),
            *(Feature(n, rate=_RESTRICTION_RATE if n in restricting else None) for n in HEURISTICS),
            Integer("frequency", 0, 1000, step=100, default=300),
            Choice("strength", _STRENGTHS, ordered=True, default=10),
        ],
        [at_least_one_of(*KINDS)],
    )


def noise_of(configuration: Configuration) -> NoiseSettings:
    """Return the noise settings that a configuration of `noise_space` stands for.

    >>> space = noise_space()
    >>> print(noise_of(space.configuration({"sleep": 1, "predecessors": 1, "frequency": 500})))
    frequency 500, kind sleep, strength 10, predecessors
    """
    included = configuration.included
    return NoiseSettings.of_names(
        int(configuration.settings["frequency"]),
        [name for name in KINDS if name in included],
        int(configuration.settings["strength"]),
        [name for name in HEURISTICS if name in included],
    )


@dataclass(frozen=True)
class NoiseTest:
    """A test: the noise settings of a run, and the seed that decides where noise is made.

    >>> test = NoiseTest(NoiseSettings(500, "sleep"), seed=7)
    >>> NoiseTest.from_json(test.to_json()) == test
    True
    """

    settings: NoiseSettings
    seed: int

    @property
    def parts(self) -> tuple[str, ...]:
        """The kinds and heuristics that could be left out."""
        return (*self.settings.kinds, *self.settings.heuristics)

    def without(self, part: str) -> NoiseTest:
        """Return the test without one kind or heuristic."""
        settings = self.settings
        kinds = [kind for kind in settings.kinds if kind != part]
        heuristics = [name for name in settings.heuristics if name != part]
        fewer = NoiseSettings.of_names(settings.frequency, kinds, settings.strength, heuristics)
        return replace(self, settings=fewer)

    def to_json(self) -> dict[str, Any]:
        """Return the test as JSON data."""
        noise = {
            "frequency": self.settings.frequency,
            "kinds": list(self.settings.kinds),
            "strength": self.settings.strength,
            "heuristics": list(self.settings.heuristics),
        }
        return {"format": FORMAT, "seed": self.seed, "noise": noise}

    @classmethod
    def from_json(cls, data: Any) -> NoiseTest:
        """Return the test that `to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise UserError(f"not a saved test of native threads (its format should be {FORMAT!r})")
        try:
            return cls(NoiseSettings.of_names(**data["noise"]), int(data["seed"]))
        except (KeyError, TypeError, ValueError):
            raise UserError("a saved test of native threads is broken: noise or seed") from None


class NativeThreadsSubject(Subject):
    """A native program that is run once per test, with the noise of the configuration.

    `seconds` is the time limit of a run. `expected` lists the exit statuses that are not failures.

    >>> subject = NativeThreadsSubject(["/bin/true"])
    >>> subject.check()
    ['/bin/true: the program started no thread: there is nothing to disturb']
    """

    part = "setting"
    suffix = ".sh"

    def __init__(
        self,
        command: Sequence[str | Path],
        name: str = "",
        *,
        seconds: float = 10.0,
        expected: Sequence[int] = (0,),
    ) -> None:
        self.program = NativeThreads(command, seconds=seconds, expected=expected)
        self.name = name or f"{REFERENCE}-- {shlex.join(map(str, command))}"
        self.space = noise_space()
        self.seconds = seconds * 3  # the first run may need two others before it

    def check(self, thorough: bool = False) -> list[str]:
        """Return why the program cannot be tested; one run without noise decides."""
        run = self.program.run(NoiseSettings(frequency=0), seed=0)
        if run.missing == NO_THREAD:
            shown = self.program.program
            return [f"{shown}: {NO_THREAD}: there is nothing to disturb"]
        return [run.missing] if run.hits is None else []

    def run(self, test: Any) -> Result:
        """Run the program once, with the noise of a test."""
        noise_test = NoiseTest.from_json(test)
        return self._result(noise_test, self._native_run(noise_test))

    def generate(self, configuration: Configuration, seed: int) -> Any:
        """Return the noise of a configuration and a seed, as JSON data."""
        return NoiseTest(noise_of(configuration), seed).to_json()

    def replay(self, test: Any) -> Result:
        """Run the program with the same noise until it fails, at most 20 times.

        The noise is the same in every run, but the operating system's schedule is not. The measure
        ``runs`` is the number of runs that were needed.
        """
        noise_test = NoiseTest.from_json(test)
        deadline = time.monotonic() + 2 * self.program.seconds
        runs = [self._native_run(noise_test)]
        while not runs[-1].fault and len(runs) < _REPLAYS and time.monotonic() < deadline:
            runs.append(self._native_run(noise_test))
        result = self._result(noise_test, runs[-1])
        cpu = sum(run.cpu_seconds for run in runs)
        return result._replace(cpu_seconds=cpu, measures={"runs": float(len(runs))})

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """Return the same noise without the kinds and heuristics that the fault does not need."""
        smallest = NoiseTest.from_json(test)
        for part in smallest.parts:
            fewer = smallest.without(part)
            if fewer.parts and interesting(fewer.to_json()):
                smallest = fewer
        return smallest.to_json()

    def size(self, test: Any) -> int:
        """Return the number of kinds and heuristics in a test."""
        return len(NoiseTest.from_json(test).parts)

    def code(self, test: Any) -> str:
        """Return a shell line that runs the program with this noise, without swarmtest."""
        noise_test = NoiseTest.from_json(test)
        settings = noise_test.settings
        return f"# {settings}\n{self.program.by_hand(settings, noise_test.seed)}\n"

    def _native_run(self, test: NoiseTest) -> NativeRun:
        return self.program.run(test.settings, test.seed)

    def _result(self, test: NoiseTest, run: NativeRun) -> Result:
        kept_test = test.to_json() if run.fault or self.keep_tests else None
        return Result(
            run.verdict,
            run.fault,
            tuple(int(name in test.parts) for name in self.space.feature_names),
            steps=len(test.parts),
            test=kept_test,
            cpu_seconds=run.cpu_seconds,
            covered=(run.hits,) if run.hits else (),
            missing=run.missing,
            measures={"noises": float(sum(thread.noises for thread in run.threads))},
        )


def load_native_threads(text: str) -> NativeThreadsSubject:
    """Return the subject of ``race [--seconds S] [--expect STATUS,...] -- PROGRAM ARGS``.

    >>> load_native_threads("race --seconds 2 -- /bin/true").program.seconds
    2.0
    """
    options, mark, command = text.partition(" -- ")
    words = options.split()[1:]
    if not mark or not command.strip() or len(words) % 2:
        raise UserError(f"{text!r}: a native program with threads is named race -- PROGRAM ARGS")
    seconds, expected = 10.0, [0]
    for name, value in zip(words[::2], words[1::2], strict=True):
        try:
            if name == "--seconds":
                seconds = float(value)
            elif name == "--expect":
                expected = [int(status) for status in value.split(",")]
            else:
                raise UserError(f"{text!r}: no option {name}: --seconds and --expect are known")
        except ValueError:
            raise UserError(f"{text!r}: {name} takes numbers, not {value!r}") from None
    return NativeThreadsSubject(shlex.split(command), text, seconds=seconds, expected=expected)
