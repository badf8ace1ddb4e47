"""The settings of noise (after ConTest), for Python and for native programs.

Noise is made at some of the probes that a thread passes, so that threads meet in ways that are
otherwise rare. A setting says how often, of which kinds, how strong, and where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.dimensions import Choice, Dimension, Flag, Integer
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.space import Space

KINDS: Mapping[str, str] = {
    "yield": "let other threads run, up to `strength` times",
    "sleep": "sleep for up to `strength` tenths of a millisecond",
    "wait": "the same, unless the next thread that comes to wait ends it",
    "synchronised-yield": "yield inside a lock that all threads share",
    "busy-wait": "stay busy for up to `strength` tenths of a millisecond",
    "inverse": "one thread goes on for up to `strength` probes, while all others are held",
}
"""The kinds of noise, and what a thread does to make it. The native library knows their order."""

HEURISTICS: Mapping[str, str] = {
    "halt-one-thread": "now and then, hold one thread until the others make no more progress",
    "tamper-timeouts": "shorten sleeps and the time limits of waits",
    "shared-only": "make noise only at accesses to shared variables",
    "one-variable": "make noise only at accesses to one shared variable, drawn by the seed",
    "predecessors": "make noise only at sites after which another thread has been seen to continue",
}
"""What restricts noise, or is done beside it. The native library knows their order."""

MIXED = "mixed"
"""The name of all kinds together: one is drawn each time."""
KIND_NAMES = (*KINDS, MIXED)
MOST = 1000
STRENGTHS = (1, 3, 10, 30, 100)


@dataclass(frozen=True)
class NoiseSettings:
    """The noise of one run.

    `kind` is the name of a kind or ``mixed``, or a list of names: one of them is drawn each time.

    >>> NoiseSettings(frequency=500, kind="sleep", strength=20).strength
    20
    >>> print(NoiseSettings(kind=["sleep", "yield"], shared_only=True))
    frequency 100, kind yield+sleep, strength 10, shared-only
    >>> NoiseSettings(2000)
    Traceback (most recent call last):
    ...
    swarmtest.UserError: noise: frequency is from 0 (never) to 1000 (always), not 2000
    """

    frequency: int = 100
    """The number of probes in 1,000 at which noise is made: 0 never, 1000 always."""
    kind: str | Sequence[str] = MIXED
    """A name of `KINDS`, several joined by ``+``, ``mixed`` for all, or ``none``."""
    strength: int = 10
    """The maximum number of yields, tenths of a millisecond, or probes."""
    halt_one_thread: bool = False
    """Now and then, hold one thread until the others make no more progress."""
    tamper_timeouts: bool = False
    """Shorten sleeps and the time limits of waits."""
    shared_only: bool = False
    """Make noise only at accesses to shared variables."""
    one_variable: bool = False
    """Make noise only at accesses to one variable, drawn by the seed."""
    predecessors: bool = False
    """Make noise only at sites after which another thread has been seen to continue."""

    def __post_init__(self) -> None:
        if not _is_count(self.frequency) or self.frequency > MOST:
            raise UserError(
                f"noise: frequency is from 0 (never) to {MOST} (always), not {self.frequency!r}"
            )
        if not _is_count(self.strength) or not 1 <= self.strength <= MOST:
            raise UserError(f"noise: strength is from 1 to {MOST}, not {self.strength!r}")
        for field in map(_field_name, HEURISTICS):
            if not isinstance(getattr(self, field), bool):
                raise UserError(f"noise: {field} is True or False, not {getattr(self, field)!r}")
        object.__setattr__(self, "kind", _kind_name(self.kind))

    @classmethod
    def of(cls, values: Configuration | Mapping[str, Any], prefix: str = "") -> NoiseSettings:
        """Return the settings of a point in a space with `noise_dimensions`.

        >>> NoiseSettings.of(noise_space().configuration({"kind": "sleep"})).kind
        'sleep'
        """
        return cls(**{field.name: values[prefix + field.name] for field in fields(cls)})

    @classmethod
    def of_names(
        cls, frequency: int, kinds: Sequence[str], strength: int, heuristics: Sequence[str]
    ) -> NoiseSettings:
        """Return the settings with the named kinds and heuristics.

        >>> NoiseSettings.of_names(500, ["sleep"], 10, ["shared-only"]).shared_only
        True
        """
        for name in heuristics:
            if name not in HEURISTICS:
                raise UserError(f"noise: no heuristic {name!r}{did_you_mean(name, HEURISTICS)}")
        return cls(frequency, kinds, strength, **{_field_name(n): True for n in heuristics})

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of which one is drawn each time.

        >>> NoiseSettings().kinds == tuple(KINDS)
        True
        """
        return tuple(KINDS) if self.kind == MIXED else _split(self.kind)

    @property
    def heuristics(self) -> tuple[str, ...]:
        """The names of the heuristics that are on.

        >>> NoiseSettings(shared_only=True).heuristics
        ('shared-only',)
        """
        return tuple(name for name in HEURISTICS if getattr(self, _field_name(name)))

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON data; ``NoiseSettings(**data)`` restores them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        words = [f"frequency {self.frequency}", f"kind {self.kind}", f"strength {self.strength}"]
        return ", ".join([*words, *self.heuristics])


def noise_dimensions(prefix: str = "") -> list[Dimension]:
    """Return one dimension for each setting; `prefix` (such as ``noise_``) precedes the names.

    >>> [dimension.name for dimension in noise_dimensions()][:3]
    ['frequency', 'kind', 'strength']
    """
    default = NoiseSettings()
    return [
        Integer(f"{prefix}frequency", 0, MOST, step=100, default=default.frequency),
        Choice(f"{prefix}kind", KIND_NAMES, default=MIXED),
        Choice(f"{prefix}strength", STRENGTHS, ordered=True, default=default.strength),
        *(Flag(prefix + _field_name(name)) for name in HEURISTICS),
    ]


def noise_space() -> Space:
    """Return the space of all noise settings: 11 frequencies, 7 kinds, 5 strengths, 5 heuristics.

    >>> NoiseSettings.of(noise_space().default()) == NoiseSettings()
    True
    """
    return Space(noise_dimensions())


_NO_KIND = "none"


def _kind_name(kind: str | Sequence[str]) -> str:
    """Return the name of one or several kinds, which are joined in the order of `KINDS`."""
    names = _split(kind)
    for name in names:
        if name not in KIND_NAMES:
            raise UserError(f"noise: no kind {name!r}{did_you_mean(name, KIND_NAMES)}")
    ordered = [name for name in KINDS if name in names]
    is_mixed = MIXED in names or len(ordered) == len(KINDS)
    return MIXED if is_mixed else "+".join(ordered) or _NO_KIND


def _split(kind: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(kind, str):
        return tuple(kind)
    return () if kind == _NO_KIND else tuple(kind.split("+"))


def _field_name(heuristic: str) -> str:
    return heuristic.replace("-", "_")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
