"""Schedules: where a run switched from one thread to another.

A thread goes on until the schedule says otherwise. When it cannot (it waits, or has ended) and the
schedule says nothing, the thread that was started first goes on. So a schedule is short, and
nothing in it depends on addresses, hashes, times or the Python version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from swarmtest.errors import UserError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Switch:
    """One hand-over: before a thread's own n-th probe, or because it could not go on.

    >>> print(Switch("main.1", 3, "main.2", site="shop.py sell write seats"))
    main.1 before 3 -> main.2 (shop.py sell write seats)
    """

    thread: str
    """Who stops: ``main``, ``main.1`` (the first thread that main started), ``main.1.2``."""
    at: int
    """Before which of its own probes..."""
    next: str
    """...and who goes on."""
    forced: bool = False
    """Whether it stopped because it could not go on: it waits (in its n-th probe) or has ended."""
    site: str = ""
    """What it was about to do, so that the place is found again when the code has changed..."""
    nth: int = 0
    """...and for the how manieth time; 0 if that is not known."""

    def __str__(self) -> str:
        when = f"cannot go on after {self.at}" if self.forced else f"before {self.at}"
        return f"{self.thread} {when} -> {self.next}" + (f" ({self.site})" if self.site else "")


@dataclass(frozen=True)
class Schedule:
    """The switches of a run, in their order.

    >>> schedule = Schedule((Switch("main.1", 3, "main.2", site="shop.py sell write seats"),))
    >>> Schedule.from_json(schedule.to_json()) == schedule
    True
    """

    switches: tuple[Switch, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """The schedule as plain data."""
        switches = [
            {  # asdict takes twenty times as long, and long runs have many switches
                "thread": switch.thread,
                "at": switch.at,
                "next": switch.next,
                "forced": switch.forced,
                "site": switch.site,
                "nth": switch.nth,
            }
            for switch in self.switches
        ]
        return {"version": _VERSION, "switches": switches}

    def to_json(self) -> str:
        """The schedule as text."""
        return json.dumps(self.to_plain())

    @classmethod
    def from_plain(cls, plain: Any) -> Schedule:
        """The schedule that `to_plain` gave."""
        try:
            if plain["version"] != _VERSION:
                raise UserError(
                    f"the schedule has version {plain['version']}; this swarmtest reads {_VERSION}"
                )
            return cls(tuple(_switch(one) for one in plain["switches"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"this is not a schedule: {error!r}") from None

    @classmethod
    def from_json(cls, text: str) -> Schedule:
        """The schedule that `to_json` gave.

        >>> Schedule.from_json("[]")
        Traceback (most recent call last):
        ...
        swarmtest.errors.UserError: this is not a schedule: a list where an object belongs
        """
        try:
            plain = json.loads(text)
        except ValueError as error:
            raise UserError(f"this is not a schedule: {error}") from None
        if not isinstance(plain, dict):
            raise UserError(
                f"this is not a schedule: a {type(plain).__name__} where an object belongs"
            )
        return cls.from_plain(plain)

    def __len__(self) -> int:
        return len(self.switches)

    def __str__(self) -> str:
        return "\n".join(map(str, self.switches))


def _switch(plain: Any) -> Switch:
    switch = Switch(**plain)
    texts = switch.thread, switch.next, switch.site
    numbers = switch.at, switch.nth, switch.forced
    if not all(isinstance(n, int) for n in numbers) or not all(isinstance(t, str) for t in texts):
        raise ValueError(f"a switch of {plain}")
    return switch
