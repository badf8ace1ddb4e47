"""The fast path: a program built with `swarmtest cc` writes its hits into memory shared with us.

The shared memory (laid out in runtime.c) holds a table of the modules that were loaded, a map with
a byte per slot, a list of the slots hit, and for clang's guards where in the code each lies. After
a test the list is read, and only what it names is cleared: both cost in proportion to the hits. The
memory outlives the program, so the hits of a test that crashed or was killed are all there.

The memory has no name: a program opens it through this process's entry in /proc, and it goes away
with the last process that holds it.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from swarmtest.errors import UserError
from swarmtest.instrument.native.collector import Collected
from swarmtest.instrument.native.places import Lines
from swarmtest.instrument.native.process import Ended
from swarmtest.instrument.native.symbols import blocks_of
from swarmtest.targets import Hits

_MARKER = b"swarmtest native runtime 1"
_HEADER = 1 << 16
_LEAST_SLOTS = 1 << 20
_REMEMBERED = 4096
_SLOTS, _HITS, _ATTACHED, _NEXT, _NO_ROOM = range(5)
_READY = 2
_GUARDS = 2
_MODULES = 64
_MODULE = np.dtype(
    [
        ("state", "<u4"),
        ("kind", "<u4"),
        ("first", "<u4"),
        ("count", "<u4"),
        ("text", "<u8"),
        ("reserved", "<u8"),
        ("path", "S480"),
    ]
)

Slots = npt.NDArray[np.uint32]


class SharedMap:
    """The shared memory, seen from this side.

    >>> shared = SharedMap(slots=1 << 20)
    >>> shared.take().tolist()
    []
    >>> shared.close()
    """

    def __init__(self, slots: int) -> None:
        self.size = _HEADER + slots * 9
        self._file = os.memfd_create("swarmtest-hits")
        os.ftruncate(self._file, self.size)
        memory = mmap.mmap(self._file, self.size)
        self._words = np.frombuffer(memory, "<u4", 16)
        self.modules = np.frombuffer(memory, _MODULE, _MODULES, 64)
        self._map = np.frombuffer(memory, "u1", slots, _HEADER)
        self._list = np.frombuffer(memory, "<u4", slots, _HEADER + slots)
        self.offsets = np.frombuffer(memory, "<u4", slots, _HEADER + 5 * slots)
        self._words[_SLOTS] = slots
        self._words[_NEXT] = 1
        self._kept = 0

    @property
    def path(self) -> str:
        """Where a program finds it, while this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    @property
    def slots(self) -> int:
        """How many there are."""
        return int(self._words[_SLOTS])

    @property
    def no_room(self) -> bool:
        """Whether a module of the program found no free slots."""
        return bool(self._words[_NO_ROOM])

    def attached(self) -> bool:
        """Whether a program has opened it since the last time this was asked."""
        attached = bool(self._words[_ATTACHED])
        self._words[_ATTACHED] = 0
        return attached

    def take(self) -> Slots:
        """The slots hit since the last time, ascending; and clear them."""
        count = min(int(self._words[_HITS]), self.slots)
        slots = np.sort(self._list[:count])
        self._clear(self._kept, count)
        return slots

    def keep(self) -> None:
        """Let what was hit so far count for every test from now on (until `forget`)."""
        self._kept = min(int(self._words[_HITS]), self.slots)

    def forget(self) -> None:
        """Clear everything, also what was kept."""
        self._kept = 0
        self.take()

    def _clear(self, first: int, last: int) -> None:
        fresh = self._list[first:last]
        self._map[fresh] = 0
        fresh[:] = 0
        self._words[_HITS] = first

    def close(self) -> None:
        """Give the memory back; programs that still run keep theirs."""
        os.close(self._file)  # the mapping goes with the last view of it


def has_runtime(program: str) -> bool:
    """Whether a program was built with `swarmtest cc`.

    >>> has_runtime("/bin/sh")
    False
    """
    return _MARKER in Path(program).read_bytes()


class FastCoverage:
    """Turns slots into lines: each module's blocks are looked up when it is first seen."""

    def __init__(self, program: str, lines: Lines) -> None:
        self._program = program
        self._lines = lines
        self._has_runtime = has_runtime(program)
        self.shared = SharedMap(max(_LEAST_SLOTS, os.path.getsize(program)))
        self._modules = 0
        self._files: set[str] = set()
        self._number_of = np.full(self.shared.slots, -1, np.int64)
        self._known: dict[bytes, Hits] = {}

    @property
    def environment(self) -> dict[str, str]:
        """What tells the program's runtime where to write."""
        return {"SWARMTEST_MAP": self.shared.path}

    @property
    def extra_memory(self) -> int:
        """Address space that a program needs for its coverage."""
        return self.shared.size

    def collect(self, ended: Ended) -> Collected:
        """The lines that the program which has just ended began a block on."""
        attached = self.shared.attached()
        self._learn_modules()
        slots = self.shared.take()
        if not len(slots) and not attached:
            return self._nothing(ended)
        raw = slots.tobytes()
        hits = self._known.get(raw)
        if hits is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            hits = self._known[raw] = self._hits(slots)
        return Collected(hits)

    def _nothing(self, ended: Ended) -> Collected:
        if not self._modules and not self._has_runtime:
            raise UserError(
                f"{self._program} wrote no coverage: build it, or what it starts, with `swarmtest "
                "cc` (or say coverage='none')"
            )
        how = f"signal {ended.signal}" if ended.signal else f"exit status {ended.status >> 8}"
        return Collected(None, f"the program ended ({how}) before its coverage began")

    def _hits(self, slots: Slots) -> Hits:
        # A slot without a number is code without a place in a source that matters.
        numbers = self._number_of[slots]
        packed = np.unique(numbers[numbers >= 0]).astype("<u4").tobytes()
        return Hits(self._lines.catalogue, packed)

    def _learn_modules(self) -> None:
        before = self._modules
        while self._modules < _MODULES and self.shared.modules[self._modules]["state"] == _READY:
            self._learn(self.shared.modules[self._modules])
            self._modules += 1
            self._known.clear()
        if self.shared.no_room:
            raise UserError(
                f"{self._program} loads more code than there is room for ({self.shared.slots:,} "
                "blocks): build only the parts that matter with `swarmtest cc`"
            )
        if self._modules > before and not self._lines.catalogue.targets:
            some = ", ".join(sorted(self._files)[:3])
            raise UserError(
                f"no source file of {self._program} matches sources={self._lines.wanted}; it has "
                f"{some}{', ...' if len(self._files) > 3 else ''}"
            )

    def _learn(self, module: np.void) -> None:
        path = os.fsdecode(bytes(module["path"]))
        if not path:
            raise UserError(f"a module of {self._program} has too long a path for coverage")
        first, count, text = int(module["first"]), int(module["count"]), int(module["text"])
        if module["kind"] == _GUARDS:
            addresses = (self.shared.offsets[first : first + count].astype("u8") + text).tolist()
            slot_of = {address: first + i for i, address in enumerate(addresses)}
            found = [(slot_of[block.address], block) for block in blocks_of(path, addresses)]
        else:
            blocks = blocks_of(path, None)
            found = [(first + (block.address - text >> 2), block) for block in blocks]
        for slot, block in found:
            self._files.add(block.path)
            number = self._lines.number(block.path, block.line, block.function)
            if number is not None:
                self._number_of[slot] = number

    def started_server(self) -> None:
        """What ran before the fork server's first test belongs to every test."""
        self.shared.keep()

    def starting_server(self) -> None:
        """A new fork server starts from nothing."""
        self.shared.forget()

    def close(self) -> None:
        """Give the shared memory back."""
        self.shared.close()
