"""Repeat: coin tosses, and more of those kinds of test that found faults in little time.

Before anything is found, it tosses coins. Afterwards it repeats, in a share of the tests, the
features and settings of tests that failed. Each fault that is known gets the same attention, so a
fault that every second test shows does not keep the others away. Which kind of test comes next is
drawn from what is known of each (Thompson sampling): how often it showed the fault, and in how much
time, since a kind that takes ten times as long has to find ten times as much.

It is for subjects whose features are ways to run one program, such as the schedulers of a race: a
kind of run that shows one fault of a program often shows the others, too.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from swarmtest.core.configuration import Configuration
from swarmtest.core.dimensions import Scalar
from swarmtest.core.errors import UserError
from swarmtest.core.result import Result, Verdict
from swarmtest.core.sampling import Proposal, rates_for, toss
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.strategies.strategy import register

_LEAST_SECONDS = 1e-6
_MOST_WAITING = 10.0
"""A test counts with its wall time, but at most with this multiple of its CPU time."""


@dataclass
class Tally:
    """What is known of some tests: the time they took, and how often they showed each fault."""

    seconds: float = 0.0
    found: Counter[str] = field(default_factory=Counter)

    def add(self, seconds: float, fault: str) -> None:
        """Count one test."""
        self.seconds += seconds
        if fault:
            self.found[fault] += 1

    def drawn_rate(self, fault: str, seconds_per_find: float, rng: random.Random) -> float:
        """Draw how often these tests show a fault in a second, from what is known.

        Before it is tried, one find is expected in `seconds_per_find`.
        """
        return rng.gammavariate(1 + self.found[fault], 1 / (seconds_per_find + self.seconds))


class _Kind(Tally):
    """Tests that used the same features, and the tallies of each setting among them."""

    def __init__(self) -> None:
        super().__init__()
        self.settings: defaultdict[str, dict[Scalar, Tally]] = defaultdict(dict)

    def add_with_settings(self, seconds: float, fault: str, settings: Mapping[str, Scalar]) -> None:
        """Count one test that had these settings."""
        self.add(seconds, fault)
        for name, value in settings.items():
            self.settings[name].setdefault(value, Tally()).add(seconds, fault)


@register("repeat")
class Repeat:
    """Toss coins, and repeat more often the features and settings that find faults in little time.

    It learns, so what a trial gets depends on what the tests before it found; the store keeps the
    choices.

    >>> strategy = Repeat(share=0.5)
    >>> strategy.ask(Space(["push", "pop"]), 0, Stream()).origin
    'coin'
    """

    wants: tuple[str, ...] = ()

    def __init__(self, share: float = 0.5) -> None:
        """Repeat what paid in this share of the tests, as soon as there is a fault."""
        if not 0 <= share < 1:
            raise UserError(f"strategy 'repeat': share is at least 0 and below 1, not {share!r}")
        self.share = share
        self._all = Tally()
        self._kinds: defaultdict[int, _Kind] = defaultdict(_Kind)
        """The tests by the features that they used, as bits."""

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose a toss, or a kind of test that pays."""
        if self._all.found and rng.named("*repeat") < self.share:
            configuration = self._paying(space, random.Random(rng.named("*kind")))
            return Proposal(configuration, (), "paying")
        return toss(space, rates_for(space, 0.5), rng, "coin")

    def _paying(self, space: Space, rng: random.Random) -> Configuration:
        """Draw a fault, a kind of test that shows it, and settings that pay in that kind."""
        fault = rng.choice(sorted(self._all.found))
        per_find = self._all.seconds / self._all.found[fault]
        bits, kind = max(
            self._kinds.items(), key=lambda kind: kind[1].drawn_rate(fault, per_find, rng)
        )
        per_find = kind.seconds / kind.found[fault] if kind.found[fault] else per_find
        settings = tuple(
            max(tallies, key=lambda value: tallies[value].drawn_rate(fault, per_find, rng))
            for tallies in (kind.settings[name] for name in space.setting_names)
        )
        return Configuration(space, bits, None, settings)

    def tell(self, result: Result) -> None:
        """Learn from a test which took its time, and may have failed."""
        configuration = result.configuration
        if configuration is None or result.verdict == Verdict.INVALID:
            return
        bits = sum(1 << i for i, count in enumerate(result.used) if count)
        if bits not in self._kinds and (not bits or configuration.space.violated(bits)):
            bits = configuration.bits
        # A test that sleeps takes a user's time; but a busy machine makes any test wait for long.
        cpu = max(result.cpu_seconds, _LEAST_SECONDS)
        seconds = max(cpu, min(result.wall_seconds, _MOST_WAITING * cpu))
        fault = result.fault.signature if result.fault is not None else ""
        self._all.add(seconds, fault)
        self._kinds[bits].add_with_settings(seconds, fault, configuration.settings)
