"""What a run's threads did, as targets: synchronisation, concurrent pairs, shared variables.

- ``sync``: a site of synchronisation was visited; it blocked its thread; or, of a lock, the thread
  that took it there made another one wait (blocking).
- ``pair``: two sites one after the other, and whether the thread changed in between; of accesses,
  those to variables that several threads touch.
- ``shared``: a site touched a variable that several threads touch, one of them writing.

Pairs and shared variables count from when the program has two threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swarmtest.instrument.native_threads.memory import (
    ACCESSES,
    BLOCKED,
    BLOCKING,
    OPERATIONS,
    SHARED,
    VISITED,
    ThreadMemory,
)
from swarmtest.instrument.native_threads.sites import Site, SiteNames
from swarmtest.targets import Hits, Target

_STATES = {VISITED: "visited", BLOCKED: "blocked", BLOCKING: "blocking"}
_SITE_BITS = 24
_ADDRESS_BITS = 48


class Named(NamedTuple):
    """A site of this run."""

    site: Site
    operation: str
    flags: int


def named_sites(memory: ThreadMemory, names: SiteNames) -> dict[int, Named]:
    """The sites that the program came to, by their numbers in the memory."""
    modules = memory.modules()
    sites = memory.sites()
    used = [int(number) for number in np.flatnonzero(sites["flags"] & np.uint32(0b11111))]
    keys = {number: int(sites[number]["key"]) for number in used}
    places = {
        number: (modules[(key >> _ADDRESS_BITS) - 1], key & (1 << _ADDRESS_BITS) - 1)
        for number, key in keys.items()
    }
    names.learn(places.values())
    return {
        number: Named(
            names[places[number]],
            OPERATIONS[int(sites[number]["operation"])],
            int(sites[number]["flags"]),
        )
        for number in used
    }


def hits_of(memory: ThreadMemory, named: dict[int, Named], names: SiteNames) -> Hits:
    """Everything that the run reached."""
    targets: list[Target] = []
    for one in named.values():
        if one.operation in ACCESSES:
            if one.flags & SHARED:
                targets.append(names.target("shared", one.site, one.operation))
            continue
        targets += (
            names.target("sync", one.site, f"{one.operation} {state}")
            for flag, state in _STATES.items()
            if one.flags & flag
        )
    targets += _pairs(memory, named, names)
    number = names.catalogue.number
    return Hits.of(names.catalogue, map(number, targets))


def _pairs(memory: ThreadMemory, named: dict[int, Named], names: SiteNames) -> list[Target]:
    mask = (1 << _SITE_BITS) - 1
    found = []
    for pair in memory.pairs().tolist():
        first, second = named.get(pair & mask), named.get(pair >> _SITE_BITS & mask)
        if first and second:
            then = "then another thread:" if pair >> 2 * _SITE_BITS else "then"
            words = f"{first.operation} {then} {second.site.place} {second.operation}"
            found.append(names.target("pair", first.site, words))
    return found
