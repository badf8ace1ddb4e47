"""The memory that a program's threads are described in: laid out in runtime/threads.h.

It has no name: a program opens it through this process's entry in /proc. It outlives the program,
so what a run that crashed or was killed did is all there.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

HEADER_SIZE = 4096
_HEADER = np.dtype(
    [
        ("layout", "<u4"),
        ("processes", "<u4"),
        ("threads", "<u4"),
        ("no_room", "<u4"),
        ("accesses", "<u4"),
        ("pairs", "<u4"),
    ]
)
_MODULE = np.dtype([("state", "<u4"), ("reserved", "<u4", 3), ("path", "S496")])
_HELD = np.dtype([("object", "<u8"), ("site", "<u4"), ("reserved", "<u4")])
_THREAD = np.dtype(
    [
        ("state", "<u4"),
        ("process", "<u4"),
        ("number", "<u4"),
        ("children", "<u4"),
        ("handle", "<u8"),
        ("random", "<u8"),
        ("probes", "<u8"),
        ("noises", "<u8"),
        ("digest", "<u8"),
        ("stack", "<u8", 2),
        ("wait_object", "<u8"),
        ("wait_operation", "<u4"),
        ("wait_site", "<u4"),
        ("wait_ends", "<u4"),
        ("wait_thread", "<u4"),
        ("held_count", "<u4"),
        ("joined", "<u4"),
        ("held", _HELD, 16),
        ("name", "S64"),
    ]
)
_SITE = np.dtype([("key", "<u8"), ("operation", "<u4"), ("flags", "<u4")])
_MODULES, _THREADS, _SITES, _PAIRS = 256, 4096, 1 << 16, 1 << 18
_MODULES_AT = HEADER_SIZE
_THREADS_AT = _MODULES_AT + _MODULES * _MODULE.itemsize
_SITES_AT = _THREADS_AT + _THREADS * _THREAD.itemsize
_PAIRS_AT = _SITES_AT + _SITES * _SITE.itemsize
_PAIR_LIST_AT = _PAIRS_AT + _PAIRS * 8
SIZE = _PAIR_LIST_AT + _PAIRS * 8

RUNS = 2
ENDED = 3
VISITED, BLOCKED, BLOCKING, SHARED, PREDECESSOR, KNOWN_SHARED, KNOWN_PREDECESSOR = (
    1 << bit for bit in range(7)
)
OPERATIONS = (
    "",
    *("lock", "trylock", "timed lock", "unlock"),
    *("read lock", "write lock", "read-write unlock"),
    *("spin lock", "spin unlock"),
    *("condition wait", "timed condition wait", "signal", "broadcast"),
    *("semaphore wait", "semaphore post"),
    *("barrier", "thread create", "join", "sleep", "thread start"),
    *("read", "write", "atomic"),
)
"""What a site does, in the order of the C source."""
LOCKS = frozenset({"lock", "timed lock", "read lock", "write lock", "spin lock"})
ACCESSES = frozenset({"read", "write", "atomic"})

_NO_ROOM = ("modules", "threads", "sites", "pairs of sites")

Table = npt.NDArray[np.void]


class Snapshot(NamedTuple):
    """What the memory said at one moment."""

    processes: int
    accesses: bool
    """Whether the program calls the hooks of ``-fsanitize=thread``."""
    no_room: tuple[str, ...]
    """What there were too many of, so that some are missing."""
    threads: Table


class Knowledge(NamedTuple):
    """Which sites earlier runs found shared, or followed by another thread: for the next runs."""

    modules: bytes
    sites: bytes


class ThreadMemory:
    """The memory of one run.

    >>> memory = ThreadMemory()
    >>> memory.snapshot().processes, len(memory.pairs())
    (0, 0)
    >>> memory.close()
    """

    def __init__(self, known: Knowledge | None = None) -> None:
        self._file = os.memfd_create("swarmtest-threads")
        os.ftruncate(self._file, SIZE)
        if known is not None:
            os.pwrite(self._file, known.modules, _MODULES_AT)
            os.pwrite(self._file, known.sites, _SITES_AT)

    @property
    def path(self) -> str:
        """Where a program finds it, while this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    def snapshot(self) -> Snapshot:
        """The threads, and what else there is to know at any time."""
        header = self._header()
        count = min(int(header["threads"]), _THREADS)
        threads = os.pread(self._file, count * _THREAD.itemsize, _THREADS_AT)
        missing = tuple(
            name for bit, name in enumerate(_NO_ROOM) if int(header["no_room"]) >> bit & 1
        )
        return Snapshot(
            int(header["processes"]),
            bool(header["accesses"]),
            missing,
            np.frombuffer(threads, _THREAD),
        )

    def modules(self) -> list[str]:
        """The paths of what was loaded, by number."""
        rows = np.frombuffer(self._modules(), _MODULE)
        return [row["path"].decode(errors="replace") for row in rows if row["state"]]

    def sites(self) -> Table:
        """All places for sites; those in use have a key."""
        return np.frombuffer(self._sites(), _SITE)

    def pairs(self) -> npt.NDArray[np.uint64]:
        """Pairs of sites: first, second (24 bits each), and whether the thread changed."""
        count = int(self._header()["pairs"])
        pairs = np.frombuffer(os.pread(self._file, count * 8, _PAIR_LIST_AT), "<u8")
        return pairs[pairs > 0]  # a thread that was killed may not have written the last

    def knowledge(self) -> Knowledge:
        """What the next runs may know from this one and those before it."""
        sites = self.sites().copy()
        flags = sites["flags"]
        shared = (flags & (SHARED | KNOWN_SHARED)) > 0
        followed = (flags & (PREDECESSOR | KNOWN_PREDECESSOR)) > 0
        sites["flags"] = shared * KNOWN_SHARED + followed * KNOWN_PREDECESSOR
        return Knowledge(self._modules(), sites.tobytes())

    def _header(self) -> np.void:
        header: np.void = np.frombuffer(os.pread(self._file, _HEADER.itemsize, 0), _HEADER)[0]
        return header

    def _modules(self) -> bytes:
        return os.pread(self._file, _MODULES * _MODULE.itemsize, _MODULES_AT)

    def _sites(self) -> bytes:
        return os.pread(self._file, _SITES * _SITE.itemsize, _SITES_AT)

    def close(self) -> None:
        """Give the memory back."""
        os.close(self._file)
