"""What noise may be made: how often, of which kind, how strong, and where (after ConTest)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from swarmtest.errors import UserError, did_you_mean
from swarmtest.space import Choice, Configuration, Dimension, Flag, Integer, Space

KINDS: Mapping[str, str] = {
    "yield": "let other threads run, up to `strength` times",
    "sleep": "sleep for up to `strength` tenths of a millisecond",
    "wait": "the same, unless the next thread that comes to wait ends it",
    "synchronised-yield": "yield inside a lock that all threads share",
    "busy-wait": "ask for the time, for up to `strength` tenths of a millisecond",
    "inverse": "one thread goes on for up to `strength` probes, while all others are held",
    "mixed": "one of the others, drawn each time",
}
"""The kinds of noise, and what a thread does that makes it."""

MOST = 1000
STRENGTHS = (1, 3, 10, 30, 100)


@dataclass(frozen=True)
class NoiseSettings:
    """The noise of one run.

    >>> NoiseSettings(frequency=500, kind="sleep", strength=20).strength
    20
    >>> NoiseSettings(2000)
    Traceback (most recent call last):
    ...
    swarmtest.errors.UserError: noise: frequency is from 0 (never) to 1000 (always), not 2000
    """

    frequency: int = 100
    """At how many of 1,000 probes there is noise: 0 never, 1000 always."""
    kind: str = "mixed"
    strength: int = 10
    """Yields, tenths of a millisecond, or probes, at most."""
    halt_one_thread: bool = False
    """Now and then, hold one thread until the others get no further."""
    tamper_timeouts: bool = False
    """Shorten sleeps and time limits of waits."""
    shared_only: bool = False
    """Noise only where variables are touched that threads share."""
    one_variable: bool = False
    """Noise only where one variable is touched, drawn by the seed."""
    predecessors: bool = False
    """Noise only at sites after which another thread has been seen to go on."""

    def __post_init__(self) -> None:
        if not _is_count(self.frequency) or self.frequency > MOST:
            raise UserError(
                f"noise: frequency is from 0 (never) to {MOST} (always), not {self.frequency!r}"
            )
        if not _is_count(self.strength) or not 1 <= self.strength <= MOST:
            raise UserError(f"noise: strength is from 1 to {MOST}, not {self.strength!r}")
        if self.kind not in KINDS:
            raise UserError(f"noise: no kind {self.kind!r}{did_you_mean(str(self.kind), KINDS)}")

    @classmethod
    def of(cls, values: Configuration | Mapping[str, Any], prefix: str = "") -> NoiseSettings:
        """The settings that a point of a space with `noise_dimensions` has.

        >>> NoiseSettings.of(noise_space().configuration({"kind": "sleep"})).kind
        'sleep'
        """
        return cls(**{field.name: values[prefix + field.name] for field in fields(cls)})

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON data; ``NoiseSettings(**data)`` makes them again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        flags = [f.name.replace("_", " ") for f in fields(self) if getattr(self, f.name) is True]
        words = [f"frequency {self.frequency}", f"kind {self.kind}", f"strength {self.strength}"]
        return ", ".join([*words, *flags])


def noise_dimensions(prefix: str = "") -> list[Dimension]:
    """One dimension for each setting; `prefix` goes before the names, as ``noise_``.

    >>> [dimension.name for dimension in noise_dimensions()][:3]
    ['frequency', 'kind', 'strength']
    """
    default = NoiseSettings()
    flags = [field.name for field in fields(default) if isinstance(field.default, bool)]
    return [
        Integer(f"{prefix}frequency", 0, MOST, step=100, default=default.frequency),
        Choice(f"{prefix}kind", tuple(KINDS), default=default.kind),
        Choice(f"{prefix}strength", STRENGTHS, ordered=True, default=default.strength),
        *(Flag(prefix + name) for name in flags),
    ]


def noise_space() -> Space:
    """The space of all noise settings: 11 frequencies, 7 kinds, 5 strengths, 5 heuristics.

    >>> NoiseSettings.of(noise_space().default()) == NoiseSettings()
    True
    """
    return Space(noise_dimensions())


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
