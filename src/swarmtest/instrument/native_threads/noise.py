"""What noise may be made: how often, of which kinds, how strong, and where (after ConTest)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.errors import UserError, did_you_mean

KINDS: Mapping[str, str] = {
    "yield": "give the processor away, up to `strength` times",
    "sleep": "sleep for up to `strength` tenths of a millisecond",
    "wait": "the same, unless the next thread that comes to wait ends it",
    "synchronised-yield": "yield inside a lock that all threads share",
    "busy-wait": "keep the processor busy for up to `strength` tenths of a millisecond",
    "inverse": "go on for up to `strength` probes, while all other threads are held",
}
"""The kinds of noise, and what a thread does that makes it; several together are mixed."""

HEURISTICS: Mapping[str, str] = {
    "halt-one-thread": "now and then, hold one thread until the others get no further",
    "tamper-timeouts": "shorten sleeps and time limits of waits",
    "shared-only": "noise only where variables are touched that threads share",
    "one-variable": "noise only where one of those, drawn by the seed, is touched",
    "predecessors": "noise only at sites after which another thread went on",
}
"""Where noise is made, and what else is done."""

MIXED = "mixed"
MOST = 1000


@dataclass(frozen=True)
class NoiseSettings:
    """The noise of one run.

    >>> NoiseSettings(frequency=500, kinds=["sleep"], strength=20).kinds
    ('sleep',)
    >>> NoiseSettings(100, ["mixed"]).kinds == tuple(KINDS)
    True
    >>> NoiseSettings(2000)
    Traceback (most recent call last):
    ...
    swarmtest.errors.UserError: noise: frequency is from 0 (never) to 1000 (always), not 2000
    """

    frequency: int = 0
    """At how many of 1,000 probes there is noise: 0 never, 1000 always."""
    kinds: Sequence[str] = (MIXED,)
    """One is drawn each time; ``mixed``: all."""
    strength: int = 10
    """Yields, or tenths of a millisecond, at most."""
    heuristics: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not _is_count(self.frequency) or self.frequency > MOST:
            raise UserError(
                f"noise: frequency is from 0 (never) to {MOST} (always), not {self.frequency!r}"
            )
        if not _is_count(self.strength) or not 1 <= self.strength <= MOST:
            raise UserError(f"noise: strength is from 1 to {MOST}, not {self.strength!r}")
        kinds = list(KINDS) if MIXED in self.kinds else self.kinds
        object.__setattr__(self, "kinds", _known("kind", kinds, [*KINDS, MIXED]))
        object.__setattr__(self, "heuristics", _known("heuristic", self.heuristics, [*HEURISTICS]))

    def environment(self, seed: int) -> str:
        """What the preloaded library reads: seed, frequency, strength, kinds and heuristics.

        >>> NoiseSettings(500, ["sleep"], 20).environment(seed=7)
        '7 500 20 2 0'
        """
        kinds = _bits(self.kinds, KINDS)
        return (
            f"{seed % 2**64} {self.frequency} {self.strength} {kinds} "
            f"{_bits(self.heuristics, HEURISTICS)}"
        )

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON data."""
        return {
            "frequency": self.frequency,
            "kinds": list(self.kinds),
            "strength": self.strength,
            "heuristics": list(self.heuristics),
        }

    def __str__(self) -> str:
        kinds = MIXED if len(self.kinds) == len(KINDS) else "+".join(self.kinds) or "none"
        words = [f"frequency {self.frequency}", f"kind {kinds}", f"strength {self.strength}"]
        return ", ".join([*words, *self.heuristics])


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _known(what: str, names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The names in the order in which they are known, none twice."""
    if isinstance(names, str):
        raise UserError(f"noise: {what}s are a list of names: write [{names!r}]")
    for name in names:
        if name not in known:
            raise UserError(f"noise: no {what} {name!r}{did_you_mean(name, known)}")
    return tuple(name for name in known if name in names)


def _bits(names: Sequence[str], known: Mapping[str, str]) -> int:
    return sum(1 << number for number, name in enumerate(known) if name in names)
