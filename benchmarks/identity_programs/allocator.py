"""An allocator of one block of memory that checks itself after every change."""

from __future__ import annotations

from switches import bug

from swarmtest import Machine, action, integers

BUGS = (
    "neighbours are not joined",
    "grow over the next block",
    "split of one cell",
    "compact moves the sizes only",
    "align up by one too many",
)
SIZE = 40


class Corrupt(Exception):
    """The lists of blocks do not fit together."""


class Allocator:
    def __init__(self) -> None:
        self.free: list[tuple[int, int]] = [(0, SIZE)]
        self.used: dict[int, int] = {}
        self.cells: list[int | None] = [None] * SIZE

    def verify(self) -> None:
        blocks = sorted([*self.free, *self.used.items()])
        end = 0
        for start, size in blocks:
            if start < end:
                raise Corrupt(f"blocks overlap at {start}: {blocks}")
            if start > end:
                raise Corrupt(f"nobody owns {end} to {start}")
            end = start + size
        if end != SIZE:
            raise Corrupt(f"{SIZE - end} cells at the end are lost")
        for (start, size), (following, _) in zip(self.free, self.free[1:], strict=False):
            if start + size == following:
                raise Corrupt(f"free blocks at {start} and {following} touch")

    def allocate(self, size: int, align: int, owner: int) -> int | None:
        for index, (start, length) in enumerate(self.free):
            gap = -start % align
            if bug("align up by one too many") and align > 2 and gap:
                gap += 1
            if length < size + gap:
                continue
            rest = length - size - gap
            pieces = [(start, gap)] if gap else []
            if rest > (1 if bug("split of one cell") else 0):
                pieces.append((start + gap + size, rest))
            self.free[index : index + 1] = pieces
            self.used[start + gap] = size
            self._fill(start + gap, size, owner)
            self.verify()
            if (start + gap) % align:
                raise Corrupt(f"{start + gap} is not a multiple of {align}")
            return start + gap
        return None

    def _fill(self, start: int, size: int, owner: int | None) -> None:
        self.cells[start : start + size] = [owner] * size

    def release(self, start: int) -> None:
        size = self.used.pop(start)
        self._fill(start, size, None)
        self._give_back(start, size)
        self.verify()

    def _give_back(self, start: int, size: int) -> None:
        self.free = sorted([*self.free, (start, size)])
        joined: list[tuple[int, int]] = []
        for begin, length in self.free:
            touches = bool(joined) and sum(joined[-1]) == begin
            if touches and not (bug("neighbours are not joined") and len(joined) > 1):
                joined[-1] = joined[-1][0], joined[-1][1] + length
            else:
                joined.append((begin, length))
        self.free = joined

    def grow(self, start: int, more: int) -> bool:
        end = start + self.used[start]
        for index, (begin, length) in enumerate(self.free):
            fits = length >= more or (bug("grow over the next block") and length == more - 1)
            if begin == end and fits:
                rest = (begin + more, length - more)
                self.free[index : index + 1] = [rest] if rest[1] > 0 else []
                self.used[start] += more
                self._fill(end, more, self.cells[start])
                self.verify()
                return True
        return False

    def shrink(self, start: int) -> None:
        size = self.used[start]
        if size > 1:
            self.used[start] = size - 1
            self._fill(start + size - 1, 1, None)
            self._give_back(start + size - 1, 1)
            self.verify()

    def compact(self) -> dict[int, int]:
        moved: dict[int, int] = {}
        cells: list[int | None] = []
        for start in sorted(self.used):
            moved[start] = len(cells)
            cells += self.cells[start : start + self.used[start]]
        self.used = {moved[start]: size for start, size in self.used.items()}
        if not bug("compact moves the sizes only") or len(moved) < 3:
            self.cells = cells + [None] * (SIZE - len(cells))
        self.free = [(len(cells), SIZE - len(cells))] if len(cells) < SIZE else []
        self.verify()
        return moved


class AllocatorMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.memory = Allocator()
        self.blocks: dict[int, tuple[int, int]] = {}
        self.owner = 0

    def _chosen(self, index: int) -> int:
        return sorted(self.blocks)[index % len(self.blocks)]

    @action(size=integers(1, 9), align=integers(1, 4))
    def allocate(self, size: int, align: int) -> None:
        self.owner += 1
        start = self.memory.allocate(size, align, self.owner)
        if start is not None:
            self.blocks[start] = self.owner, size

    @action(index=integers(0, 5), when=lambda self: self.blocks)
    def release(self, index: int) -> None:
        chosen = self._chosen(index)
        self.memory.release(chosen)
        del self.blocks[chosen]

    @action(index=integers(0, 5), more=integers(1, 4), when=lambda self: self.blocks)
    def grow(self, index: int, more: int) -> None:
        chosen = self._chosen(index)
        owner, size = self.blocks[chosen]
        if self.memory.grow(chosen, more):
            self.blocks[chosen] = owner, size + more

    @action(index=integers(0, 5), when=lambda self: self.blocks)
    def shrink(self, index: int) -> None:
        chosen = self._chosen(index)
        owner, size = self.blocks[chosen]
        self.memory.shrink(chosen)
        self.blocks[chosen] = owner, max(size - 1, 1)

    @action
    def compact(self) -> None:
        moved = self.memory.compact()
        self.blocks = {moved[start]: block for start, block in self.blocks.items()}

    @action(index=integers(0, 5), when=lambda self: self.blocks)
    def read(self, index: int) -> None:
        chosen = self._chosen(index)
        owner, size = self.blocks[chosen]
        found = self.memory.cells[chosen : chosen + size]
        assert found == [owner] * size, f"block {chosen} of {owner} has {found}"
