"""Threads that wait for each other, or for what will not come: the fault behind a run that hangs.

A cycle of locks and their holders is a deadlock. Threads that all wait, without such a cycle, wait
for a signal, a post or the end of another such thread: a wake-up was lost, or never sent.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from swarmtest.core.result import Fault
from swarmtest.core.targets import Hits, Target
from swarmtest.race.native.library import (
    ACCESSES,
    BLOCKED,
    BLOCKING,
    LOCKS,
    OPERATIONS,
    RUNS,
    SHARED,
    VISITED,
    Snapshot,
    Table,
    ThreadMemory,
)
from swarmtest.race.native.sites import Site, SiteNames

_LIBRARY_SIGNALS = 0b11 << 31
"""Signals 32 and 33, which the C library keeps for itself."""


@dataclass(frozen=True)
class Waiting:
    """A thread that waits."""

    thread: str
    slot: int
    operation: str
    site: int
    ends: bool
    """By itself, after a while."""
    holders: tuple[tuple[int, int], ...]
    """Of the lock that it waits for: each holder's slot, and the site where it took it."""


@dataclass(frozen=True)
class Stand:
    """How the threads that live stood at one moment."""

    waiting: tuple[Waiting, ...]
    running: int
    probes: int

    @property
    def all_wait(self) -> bool:
        """Nobody goes on by itself."""
        return bool(self.waiting) and not self.running and not any(w.ends for w in self.waiting)

    def cycle(self) -> tuple[Waiting, ...]:
        """Threads of which each waits for a lock that the next one holds."""
        by_slot = {one.slot: one for one in self.waiting}
        for start in self.waiting:
            path = [start]
            while True:
                held = [slot for slot, _ in path[-1].holders if slot in by_slot]
                if path[-1].ends or not held:
                    break
                following = by_slot[held[0]]
                if following in path:
                    return tuple(path[path.index(following) :])
                path.append(following)
        return ()


def stand_of(snapshot: Snapshot) -> Stand:
    """How the threads stand; those of processes that ended do not count."""
    threads = snapshot.threads
    living = [slot for slot, row in enumerate(threads) if row["state"] and _lives(row)]
    waiting = tuple(
        _waiting(threads, slot, living) for slot in living if threads[slot]["wait_operation"]
    )
    probes = sum(int(threads[slot]["probes"]) for slot in living)
    return Stand(waiting, len(living) - len(waiting), probes)


def _lives(row: Table) -> bool:
    state = int(row["state"])
    if state > RUNS:
        return False
    return state < RUNS or os.path.exists(f"/proc/{row['process']}/task/{row['number']}")


def _waiting(threads: Table, slot: int, living: Sequence[int]) -> Waiting:
    row = threads[slot]
    operation = OPERATIONS[int(row["wait_operation"])]
    holders = []
    if operation in LOCKS:
        for other in living:
            held = threads[other]["held"][: threads[other]["held_count"]]
            if threads[other]["process"] == row["process"]:
                sites = held["site"][held["object"] == row["wait_object"]]
                holders += [(other, int(site)) for site in sites[:1]]
    return Waiting(
        row["name"].decode(errors="replace"),
        slot,
        operation,
        int(row["wait_site"]),
        bool(row["wait_ends"]),
        tuple(holders),
    )


def is_asleep(process: int, threads: int) -> bool:
    """Whether a process has that many threads and the system lets every one of them sleep."""
    try:
        tasks = [
            task.joinpath("stat").read_text() for task in Path(f"/proc/{process}/task").iterdir()
        ]
    except OSError:
        return False  # it is about to end
    states = [text.rpartition(")")[2].split()[0] for text in tasks]
    return len(states) == threads and set(states) == {"S"}


def handles_signals(process: int) -> bool:
    """Whether a signal could run code of the program, which may wake a thread that waits."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return True
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) & ~_LIBRARY_SIGNALS)


def fault_of(stand: Stand, named: dict[int, Named], names: dict[int, str]) -> Fault:
    """What threads show that wait for each other, or that took too long.

    `names`: of the threads, by slot.
    """
    details = "\n".join(_told(one, named, names) for one in stand.waiting)
    cycle = stand.cycle()
    if cycle:
        places = ", ".join(sorted(_short(one, named) for one in cycle))
        threads = "a thread with itself" if len(cycle) == 1 else f"{len(cycle)} threads"
        return Fault("deadlock", f"deadlock of {threads}: {places}", details)
    if not stand.all_wait:
        return Fault("timeout", "timeout", details or "no thread waited: all were running")
    roots = [one for one in stand.waiting if one.operation != "join"] or list(stand.waiting)
    places = ", ".join(sorted({_short(one, named) for one in roots}))
    locks = [one for one in roots if one.operation in LOCKS]
    if len(locks) == len(roots):
        return Fault("deadlock", f"a lock that nobody gives back: {places}", details)
    return Fault("lost wake-up", f"lost wake-up: {places}", details)


def _short(one: Waiting, named: dict[int, Named]) -> str:
    return f"{one.operation} in {_site(one.site, named).inside}"


def _told(one: Waiting, named: dict[int, Named], names: dict[int, str]) -> str:
    text = f"{one.thread}: {one.operation} at {_site(one.site, named).place}"
    if one.ends:
        text += ", for a limited time"
    for slot, site in one.holders:
        text += f"; {names[slot]} holds it since {_site(site, named).place}"
    if one.operation in LOCKS and not one.holders:
        text += "; no thread that lives holds it"
    return text


def _site(number: int, named: dict[int, Named]) -> Site:
    return named[number].site if number in named else Site("", 0, "", "an unknown place")


# -------------------------------------------------------------------------------------------------
# What a run's threads did, as targets: synchronisation, concurrent pairs, shared variables.
#
# - ``sync``: a site of synchronisation was visited; it blocked its thread; or, of a lock, the
# thread
# that took it there made another one wait (blocking).
# - ``pair``: two sites one after the other, and whether the thread changed in between; of
# accesses,
# those to variables that several threads touch.
# - ``shared``: a site touched a variable that several threads touch, one of them writing.
#
# Pairs and shared variables count from when the program has two threads.

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
