"""The memory that a program built with `swarmtest cc` shares with swarmtest: what a test has hit.

The layout must agree with runtime.c: a header with the table of modules, where a crash happened, a
map with a byte per slot, a list of the slots hit, the code offset of each of clang's guards; and,
if steps from block to block are wanted, a hash table of these with a list of its entries.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

_HEADER = 1 << 16
_SLOTS, _HITS, _ATTACHED, _NEXT, _NO_ROOM, _ROOM_FOR_STEPS, _STEPS = range(7)
ROOM_FOR_STEPS = 1 << 18
MODULES = 64
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

_STACK = 40960
_FRAME = np.dtype([("place", "<u8"), ("path", "S248")])
_FRAMES = 32
"""Where the stack of a crash is, after two words with the signal and the number of frames."""

Slots = npt.NDArray[np.uint32]
Steps = npt.NDArray[np.uint64]
"""Each from one slot (the upper half) to another."""


class SharedMap:
    """The shared memory, as this process sees it.

    >>> shared = SharedMap(slots=1 << 20)
    >>> shared.take().tolist()
    []
    >>> shared.close()
    """

    def __init__(
        self, slots: int, *, steps: bool = False, forget: Callable[[], object] | None = None
    ) -> None:
        """Allocate it, with room for `steps` if they are wanted.

        For a library in this process, `forget` is its function that clears the hits. A fork of this
        process then has a copy of its own.
        """
        room = ROOM_FOR_STEPS if steps else 0
        table = _HEADER + (slots * 9 + 7) // 8 * 8
        self.size = table + room * 12
        self._file = -1
        self._forget = forget
        if forget is not None:
            memory = mmap.mmap(-1, self.size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            self._file = os.memfd_create("swarmtest-hits")
            os.ftruncate(self._file, self.size)
            memory = mmap.mmap(self._file, self.size)
        self.memory = memory
        self._words = np.frombuffer(memory, "<u4", 16)
        self.modules = np.frombuffer(memory, _MODULE, MODULES, 64)
        self.states = self.modules["state"]
        """The states of the modules; to read one here takes less time."""
        self._crash = np.frombuffer(memory, "<u4", 2, _STACK)
        self._frames = np.frombuffer(memory, _FRAME, _FRAMES, _STACK + 8)
        self._map = np.frombuffer(memory, "u1", slots, _HEADER)
        self._list = np.frombuffer(memory, "<u4", slots, _HEADER + slots)
        self.offsets = np.frombuffer(memory, "<u4", slots, _HEADER + 5 * slots)
        self._steps = np.frombuffer(memory, "<u8", room, table)
        self._step_list = np.frombuffer(memory, "<u4", room, table + room * 8)
        self.steps: Steps = np.zeros(0, "<u8")
        """The steps up to the last `take`, ascending."""
        self._words[_ROOM_FOR_STEPS] = room
        self._words[_SLOTS] = slots
        self._words[_NEXT] = 1
        self._permanent = self._permanent_steps = 0

    @property
    def address(self) -> int:
        """The place of the memory in this process."""
        return int(self._words.ctypes.data)

    @property
    def path(self) -> str:
        """The path by which a program opens the memory, while this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    @property
    def slots(self) -> int:
        """The number of slots."""
        return int(self._words[_SLOTS])

    @property
    def no_room(self) -> bool:
        """Whether a module of the program found no free slots."""
        return bool(self._words[_NO_ROOM])

    def attached(self) -> bool:
        """Return whether a program has opened the memory since the last call."""
        attached = bool(self._words[_ATTACHED])
        self._words[_ATTACHED] = 0
        return attached

    def take_stack(self, signal: int) -> list[tuple[str, int]]:
        """Return where a program was when a signal ended it: libraries and addresses.

        Empty if it handled the signal itself; the path of the program itself is empty.
        """
        number, count = map(int, self._crash)
        self._crash[:] = 0
        frames = self._frames[: min(count, _FRAMES) if number == signal else 0]
        # Behind the end of a path is what is left of a longer one.
        paths = [os.fsdecode(bytes(frame["path"]).partition(b"\0")[0]) for frame in frames]
        return list(zip(paths, [int(frame["place"]) for frame in frames], strict=True))

    def take(self) -> Slots:
        """Return the slots hit since the last call, ascending, and clear them; note the steps."""
        count = min(int(self._words[_HITS]), self.slots)
        slots = np.sort(self._list[:count])
        steps = min(int(self._words[_STEPS]), len(self._steps))
        if steps:
            self.steps = np.sort(self._steps[self._step_list[:steps]])
        elif len(self.steps):
            self.steps = self.steps[:0]
        if self._forget is not None:
            self._forget()
        else:
            self._clear(self._permanent, count)
            if steps > self._permanent_steps:
                self._steps[self._step_list[self._permanent_steps : steps]] = 0
                self._words[_STEPS] = self._permanent_steps
        return slots

    def keep(self) -> None:
        """Count what was hit so far for every test from now on (until `forget`)."""
        self._permanent = min(int(self._words[_HITS]), self.slots)
        self._permanent_steps = min(int(self._words[_STEPS]), len(self._steps))

    def forget(self) -> None:
        """Clear everything, including what `keep` kept."""
        self._permanent = self._permanent_steps = 0
        self.take()

    def _clear(self, first: int, last: int) -> None:
        hit = self._list[first:last]
        self._map[hit] = 0
        hit[:] = 0
        self._words[_HITS] = first

    def close(self) -> None:
        """Release the memory; programs that still run keep theirs."""
        if self._file >= 0:
            os.close(self._file)  # the mapping is freed with the last array that uses it
