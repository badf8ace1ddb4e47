"""Native runs: names of sites, the fault of threads that are stuck, and what threads covered.

Sites are named from debug information and symbol tables.

A cycle of locks and their holders is a deadlock. If all threads wait without such a cycle, they
wait for a signal, a post or the end of another such thread: a wake-up was lost or never sent.

There are three kinds of coverage targets:

- ``sync``: a site of synchronisation was visited, blocked its thread, or (for a lock) made another
  thread wait for the lock that was acquired there (blocking);
- ``pair``: two sites were passed one after the other, and whether the thread changed in between;
  among accesses, only those to variables that several threads touch;
- ``shared``: a site touched a variable that several threads touch, one of them writing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.core.targets import Catalogue, Hits, Source, Target, content_hash
from swarmtest.race.native.library import (
    ACCESSES,
    BLOCKED,
    BLOCKING,
    LOCKS,
    OPERATIONS,
    RUNS,
    SHARED,
    VISITED,
    MemorySnapshot,
    Table,
    ThreadMemory,
)

# Names of sites.

_SYSTEM_FOLDERS = ("/usr/include/", "/usr/lib/", "/usr/lib64/", "/usr/local/include/")
_UNKNOWN = "??"


class NativeSite(NamedTuple):
    """The location of a call or an access.

    >>> NativeSite("bank.c", 12, "transfer").place
    'bank.c:12'
    >>> NativeSite("", 0, "", "libz.so+0x1234").inside
    'libz.so+0x1234'
    """

    path: str
    line: int
    function: str
    code: str = ""
    """The module and the address in it, for use if nothing else is known."""

    @property
    def place(self) -> str:
        """The file and line; without these the module with the function or address in it."""
        if self.line:
            return f"{self.path}:{self.line}"
        module = self.code.rpartition("+")[0]
        return f"{module}:{self.function}" if self.function else self.code

    @property
    def inside(self) -> str:
        """The function around the site, which stays the same when lines move."""
        return self.function or self.place


class SiteNames:
    """The names of sites, each looked up once, and the texts of the files that contain them."""

    def __init__(self, catalogue: Catalogue, root: str = "") -> None:
        self.catalogue = catalogue
        self._root = (root or os.getcwd()).rstrip("/") + "/"
        self._sites: dict[tuple[str, int], NativeSite] = {}
        self._sources: dict[str, tuple[Source, list[str]]] = {}
        self._targets: dict[tuple[str, NativeSite, str], Target] = {}
        self._symbols: dict[str, list[tuple[int, int, str]]] = {}

    def learn(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Look up all sites that are not known yet, with one process per module."""
        by_module: dict[str, list[int]] = {}
        for module, address in wanted:
            if (module, address) not in self._sites:
                by_module.setdefault(module, []).append(address)
        for module, addresses in by_module.items():
            for address, site in zip(addresses, self._look_up(module, addresses), strict=True):
                self._sites[module, address] = site

    def __getitem__(self, key: tuple[str, int]) -> NativeSite:
        return self._sites[key]

    def target(self, kind: str, site: NativeSite, words: str) -> Target:
        """Return a target at a site, with its file if that is known."""
        target = self._targets.get((kind, site, words))
        if target is None:
            target = self._targets[kind, site, words] = self._target(kind, site, words)
        return target

    def _target(self, kind: str, site: NativeSite, words: str) -> Target:
        if not site.line:
            return Target(kind, f"{site.place} {words}", function=site.function)
        source, texts = self._source(site.path)
        text = texts[site.line - 1] if site.line <= len(texts) else ""
        content = content_hash(text) if texts else ""
        return source.target(kind, f"{site.line} {words}", site.line, site.function, content)

    def _look_up(self, module: str, addresses: list[int]) -> Iterator[NativeSite]:
        name = os.path.basename(module)
        answers = _addr2line(module, addresses)
        for address in addresses:
            path, line, function = _best_frame(answers.get(address, []))
            if not line:
                function = self._enclosing_function(function, address, module)
            yield NativeSite(
                self._shown(path) if line else "", line, function, f"{name}+{address:#x}"
            )

    def _enclosing_function(self, function: str, address: int, module: str) -> str:
        """Return the function if it really contains the address, else an empty string.

        Without debug information, addr2line names the nearest symbol before the address, which in a
        stripped library can be any exported function.
        """
        if module not in self._symbols:
            self._symbols[module] = _symbols(module)
        for start, size, name in self._symbols[module]:
            if start <= address < start + size:
                return function or name
        return ""

    def _shown(self, path: str) -> str:
        path = os.path.normpath(path)
        return path[len(self._root) :] if path.startswith(self._root) else path

    def _source(self, shown: str) -> tuple[Source, list[str]]:
        if shown not in self._sources:
            path = os.path.join(self._root, shown)
            try:
                text = Path(path).read_text(errors="replace")
            except OSError:
                text = ""
            source = Source(shown, text, path)
            self.catalogue.add_source(source)
            self._sources[shown] = source, text.splitlines()
        return self._sources[shown]


_Frame = tuple[str, int, str]


def _best_frame(frames: list[_Frame]) -> _Frame:
    """Return the innermost frame of the user's own code, which excludes system headers."""
    placed = [frame for frame in frames if frame[1]]
    own = [frame for frame in placed if not frame[0].startswith(_SYSTEM_FOLDERS)]
    return (own or placed or frames or [("", 0, "")])[0]


def _symbols(module: str) -> list[tuple[int, int, str]]:
    """Return the start, size and name of functions: the program's own and those it exports."""
    symbols = []
    for option in ("--debug-syms", "--dynamic"):
        command = ["nm", "-S", "-C", "--defined-only", option, module]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        for line in done.stdout.splitlines():
            words = line.split(maxsplit=3)
            if len(words) == 4 and words[2] in "tTwWiu":
                symbols.append((int(words[0], 16), int(words[1], 16), words[3].partition("(")[0]))
    return symbols


def _addr2line(module: str, addresses: list[int]) -> dict[int, list[_Frame]]:
    """Return the frames at each address, innermost first."""
    for tool in ("addr2line", "nm"):
        if not shutil.which(tool):
            raise UserError(f"{tool} is not on the PATH: install binutils")
    if not os.path.isfile(module):
        return {}  # it belongs to the kernel, or has been deleted
    words = "\n".join(f"{address:#x}" for address in addresses)
    command = ["addr2line", "-a", "-f", "-C", "-i", "-e", module]
    done = subprocess.run(command, input=words, capture_output=True, text=True, errors="replace")
    frames_at: dict[int, list[_Frame]] = {}
    lines = iter(done.stdout.splitlines())
    frames: list[_Frame] = []
    for text in lines:
        if text.startswith("0x"):
            frames = frames_at.setdefault(int(text, 16), [])
            continue
        location = next(lines, "").partition(" (discriminator")[0]
        path, _, number = location.rpartition(":")
        line = int(number) if number.isdigit() and path != _UNKNOWN else 0
        function = "" if text == _UNKNOWN else text.partition("(")[0]
        frames.append((path if line else "", line, function))
    return frames_at


# Threads that are stuck.

_LIBRARY_SIGNALS = 0b11 << 31
"""Signals 32 and 33, which the C library keeps for itself."""


@dataclass(frozen=True)
class WaitingThread:
    """A thread that waits."""

    thread: str
    slot: int
    operation: str
    site: int
    ends: bool
    """Whether the wait ends by itself after a while."""
    holders: tuple[tuple[int, int], ...]
    """The holders of the lock that it waits for: each one's slot, and the site where it acquired
    it."""


@dataclass(frozen=True)
class ThreadStates:
    """The state of the live threads at one moment."""

    waiting: tuple[WaitingThread, ...]
    running: int
    probes: int

    @property
    def all_wait(self) -> bool:
        """Whether no thread will continue by itself."""
        return bool(self.waiting) and not self.running and not any(w.ends for w in self.waiting)

    def cycle(self) -> tuple[WaitingThread, ...]:
        """Return threads of which each waits for a lock that the next one holds."""
        by_slot = {waiting.slot: waiting for waiting in self.waiting}
        for start in self.waiting:
            chain = [start]
            while True:
                held = [slot for slot, _ in chain[-1].holders if slot in by_slot]
                if chain[-1].ends or not held:
                    break
                following = by_slot[held[0]]
                if following in chain:
                    return tuple(chain[chain.index(following) :])
                chain.append(following)
        return ()


def thread_states(snapshot: MemorySnapshot) -> ThreadStates:
    """Return the state of the threads, without those of processes that have ended."""
    threads = snapshot.threads
    living = [slot for slot, row in enumerate(threads) if row["state"] and _is_alive(row)]
    waiting = tuple(
        _waiting(threads, slot, living) for slot in living if threads[slot]["wait_operation"]
    )
    probes = sum(int(threads[slot]["probes"]) for slot in living)
    return ThreadStates(waiting, len(living) - len(waiting), probes)


def _is_alive(row: Table) -> bool:
    state = int(row["state"])
    if state > RUNS:
        return False
    return state < RUNS or os.path.exists(f"/proc/{row['process']}/task/{row['number']}")


def _waiting(threads: Table, slot: int, living: Sequence[int]) -> WaitingThread:
    row = threads[slot]
    operation = OPERATIONS[int(row["wait_operation"])]
    holders = []
    if operation in LOCKS:
        for other in living:
            held = threads[other]["held"][: threads[other]["held_count"]]
            if threads[other]["process"] == row["process"]:
                sites = held["site"][held["object"] == row["wait_object"]]
                holders += [(other, int(site)) for site in sites[:1]]
    return WaitingThread(
        row["name"].decode(errors="replace"),
        slot,
        operation,
        int(row["wait_site"]),
        bool(row["wait_ends"]),
        tuple(holders),
    )


def is_asleep(process: int, threads: int) -> bool:
    """Return whether a process has that many threads and all of them sleep in the system."""
    try:
        tasks = [
            task.joinpath("stat").read_text() for task in Path(f"/proc/{process}/task").iterdir()
        ]
    except OSError:
        return False  # the process is about to end
    states = [text.rpartition(")")[2].split()[0] for text in tasks]
    return len(states) == threads and set(states) == {"S"}


def handles_signals(process: int) -> bool:
    """Return whether a signal could run code of the program that wakes a waiting thread."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return True
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) & ~_LIBRARY_SIGNALS)


def fault_of(stand: ThreadStates, named: dict[int, NamedSite], names: dict[int, str]) -> Fault:
    """Return the fault of threads that wait for each other, or that took too long.

    `names` maps the slots of threads to their names.
    """
    details = "\n".join(_description(waiting, named, names) for waiting in stand.waiting)
    cycle = stand.cycle()
    if cycle:
        places = ", ".join(sorted(_summary(waiting, named) for waiting in cycle))
        threads = "a thread with itself" if len(cycle) == 1 else f"{len(cycle)} threads"
        return Fault("deadlock", f"deadlock of {threads}: {places}", details)
    if not stand.all_wait:
        return Fault("timeout", "timeout", details or "no thread waited: all were running")
    roots = [waiting for waiting in stand.waiting if waiting.operation != "join"]
    roots = roots or list(stand.waiting)
    places = ", ".join(sorted({_summary(waiting, named) for waiting in roots}))
    locks = [waiting for waiting in roots if waiting.operation in LOCKS]
    if len(locks) == len(roots):
        return Fault("deadlock", f"a lock that nobody gives back: {places}", details)
    return Fault("lost wake-up", f"lost wake-up: {places}", details)


def _summary(waiting: WaitingThread, named: dict[int, NamedSite]) -> str:
    return f"{waiting.operation} in {_site_of(waiting.site, named).inside}"


def _description(waiting: WaitingThread, named: dict[int, NamedSite], names: dict[int, str]) -> str:
    text = f"{waiting.thread}: {waiting.operation} at {_site_of(waiting.site, named).place}"
    if waiting.ends:
        text += ", for a limited time"
    for slot, site in waiting.holders:
        text += f"; {names[slot]} holds it since {_site_of(site, named).place}"
    if waiting.operation in LOCKS and not waiting.holders:
        text += "; no thread that lives holds it"
    return text


def _site_of(number: int, named: dict[int, NamedSite]) -> NativeSite:
    return named[number].site if number in named else NativeSite("", 0, "", "an unknown place")


# Coverage targets.
#
# Pairs and shared variables count from when the program has two threads.

_STATES = {VISITED: "visited", BLOCKED: "blocked", BLOCKING: "blocking"}
_SITE_BITS = 24
_ADDRESS_BITS = 48


class NamedSite(NamedTuple):
    """A site of this run."""

    site: NativeSite
    operation: str
    flags: int


def named_sites(memory: ThreadMemory, names: SiteNames) -> dict[int, NamedSite]:
    """Return the sites that the program reached, by their numbers in the memory."""
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
        number: NamedSite(
            names[places[number]],
            OPERATIONS[int(sites[number]["operation"])],
            int(sites[number]["flags"]),
        )
        for number in used
    }


def hits_of(memory: ThreadMemory, named: dict[int, NamedSite], names: SiteNames) -> Hits:
    """Return all targets that the run reached."""
    targets: list[Target] = []
    for named_site in named.values():
        if named_site.operation in ACCESSES:
            if named_site.flags & SHARED:
                targets.append(names.target("shared", named_site.site, named_site.operation))
            continue
        targets += (
            names.target("sync", named_site.site, f"{named_site.operation} {state}")
            for flag, state in _STATES.items()
            if named_site.flags & flag
        )
    targets += _pair_targets(memory, named, names)
    number = names.catalogue.number
    return Hits.of(names.catalogue, map(number, targets))


def _pair_targets(
    memory: ThreadMemory, named: dict[int, NamedSite], names: SiteNames
) -> list[Target]:
    mask = (1 << _SITE_BITS) - 1
    targets = []
    for pair in memory.pairs().tolist():
        first, second = named.get(pair & mask), named.get(pair >> _SITE_BITS & mask)
        if first and second:
            then = "then another thread:" if pair >> 2 * _SITE_BITS else "then"
            words = f"{first.operation} {then} {second.site.place} {second.operation}"
            targets.append(names.target("pair", first.site, words))
    return targets
