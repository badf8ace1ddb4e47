"""Directories and files beside a mapping of paths. One walk checks everything after each call."""

from __future__ import annotations

from collections.abc import Iterator

from switches import bug

from swarmtest import Machine, action, integers

BUGS = (
    "move into itself",
    "size after truncation",
    "remove leaves the last entry",
    "copy shares the content",
    "rename over a file",
    "listing of a deep directory",
)
WHICH = integers(0, 7)
NAMES = ("a", "b", "c")


class Missing(LookupError):
    """There is no such entry."""


class Folder:
    def __init__(self) -> None:
        self.entries: dict[str, Folder | bytearray] = {}
        self.size = 0


class Files:
    def __init__(self) -> None:
        self.root = Folder()

    def _folder(self, path: tuple[str, ...]) -> Folder:
        here: Folder | bytearray = self.root
        for name in path:
            if not isinstance(here, Folder) or name not in here.entries:
                raise Missing(f"no folder {'/'.join(path)}")
            here = here.entries[name]
        if not isinstance(here, Folder):
            raise Missing(f"{'/'.join(path)} is a file")
        return here

    def make(self, path: tuple[str, ...]) -> None:
        self._folder(path[:-1]).entries.setdefault(path[-1], Folder())

    def write(self, path: tuple[str, ...], data: bytes) -> None:
        folder = self._folder(path[:-1])
        old = folder.entries.get(path[-1])
        if isinstance(old, Folder):
            raise Missing(f"{'/'.join(path)} is a folder")
        folder.size += len(data) - len(old or b"")
        folder.entries[path[-1]] = bytearray(data)

    def append(self, path: tuple[str, ...], data: bytes) -> None:
        content = self._folder(path[:-1]).entries[path[-1]]
        assert isinstance(content, bytearray)
        content += data
        self._folder(path[:-1]).size += len(data)

    def truncate(self, path: tuple[str, ...], length: int) -> None:
        folder = self._folder(path[:-1])
        content = folder.entries[path[-1]]
        assert isinstance(content, bytearray)
        if not (bug("size after truncation") and length == 0):
            folder.size -= max(len(content) - length, 0)
        del content[length:]

    def remove(self, path: tuple[str, ...]) -> None:
        folder = self._folder(path[:-1])
        gone = folder.entries[path[-1]]
        if isinstance(gone, bytearray):
            folder.size -= len(gone)
        if not (bug("remove leaves the last entry") and len(path) > 1 and len(folder.entries) == 1):
            del folder.entries[path[-1]]

    def move(self, path: tuple[str, ...], to: tuple[str, ...]) -> None:
        folder, target = self._folder(path[:-1]), self._folder(to[:-1])
        if not bug("move into itself") and to[: len(path)] == path:
            raise Missing("a folder cannot be moved into itself")
        if not bug("rename over a file") and to[-1] in target.entries:
            raise Missing(f"{to[-1]} exists")
        moved = folder.entries.pop(path[-1])
        if isinstance(moved, bytearray):
            folder.size -= len(moved)
            target.size += len(moved)
        target.entries[to[-1]] = moved

    def copy(self, path: tuple[str, ...], to: str) -> None:
        folder = self._folder(path[:-1])
        content = folder.entries[path[-1]]
        assert isinstance(content, bytearray)
        old = folder.entries.get(to)
        if isinstance(old, Folder):
            raise Missing(f"{to} is a folder")
        folder.size += len(content) - len(old or b"")
        folder.entries[to] = content if bug("copy shares the content") else bytearray(content)

    def walk(self, folder: Folder, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        for name, entry in folder.entries.items():
            yield (*path, name)
            if isinstance(entry, Folder):
                yield from self.walk(entry, (*path, name))

    def listing(self, path: tuple[str, ...]) -> list[str]:
        names = sorted(self._folder(path).entries)
        return names[: len(path)] if bug("listing of a deep directory") and path else names


class FilesMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.files = Files()
        self.model: dict[tuple[str, ...], bytes | None] = {}

    def _paths(self, files: bool) -> list[tuple[str, ...]]:
        return sorted(path for path, data in self.model.items() if (data is not None) == files)

    def _place(self, which: int) -> tuple[str, ...]:
        folders = [(), *self._paths(files=False)]
        return (*folders[which % len(folders)], NAMES[which % 3])

    def _check(self) -> None:
        walked = sorted(self.files.walk(self.files.root))
        assert walked == sorted(self.model), f"{walked} != {sorted(self.model)}"
        for path in [(), *self._paths(files=False)]:
            inside = [d for p, d in self.model.items() if p[:-1] == path and d is not None]
            size = self.files._folder(path).size
            assert size == sum(map(len, inside)), f"{'/'.join(path)} has {size} bytes"

    @action(which=WHICH)
    def make(self, which: int) -> None:
        path = self._place(which)
        self.files.make(path)
        self.model.setdefault(path, None)
        self._check()

    @action(which=WHICH, length=integers(0, 4), raises=Missing)
    def write(self, which: int, length: int) -> None:
        path = self._place(which)
        self.files.write(path, b"x" * length)
        self.model[path] = b"x" * length
        self._check()

    @action(which=WHICH, when=lambda self: self._paths(files=True))
    def append(self, which: int) -> None:
        paths = self._paths(files=True)
        path = paths[which % len(paths)]
        self.files.append(path, b"yy")
        self.model[path] = (self.model[path] or b"") + b"yy"
        self._check()

    @action(which=WHICH, length=integers(0, 2), when=lambda self: self._paths(files=True))
    def truncate(self, which: int, length: int) -> None:
        paths = self._paths(files=True)
        path = paths[which % len(paths)]
        self.files.truncate(path, length)
        self.model[path] = (self.model[path] or b"")[:length]
        self._check()

    @action(which=WHICH, when=lambda self: self.model)
    def remove(self, which: int) -> None:
        path = sorted(self.model)[which % len(self.model)]
        self.files.remove(path)
        self.model = {p: d for p, d in self.model.items() if p[: len(path)] != path}
        self._check()

    @action(which=WHICH, to=WHICH, raises=Missing, when=lambda self: self.model)
    def move(self, which: int, to: int) -> None:
        path, new = sorted(self.model)[which % len(self.model)], self._place(to)
        self.files.move(path, new)
        moved = {p: d for p, d in self.model.items() if p[: len(path)] == path}
        for old in moved:
            del self.model[old]
        self.model |= {(*new, *p[len(path) :]): d for p, d in moved.items()}
        self._check()

    @action(
        which=WHICH, to=integers(0, 2), raises=Missing, when=lambda self: self._paths(files=True)
    )
    def copy(self, which: int, to: int) -> None:
        paths = self._paths(files=True)
        path = paths[which % len(paths)]
        self.files.copy(path, NAMES[to])
        self.model[(*path[:-1], NAMES[to])] = self.model[path]
        self._check()

    @action(which=WHICH)
    def listing(self, which: int) -> None:
        folders = [(), *self._paths(files=False)]
        path = folders[which % len(folders)]
        names = sorted(p[-1] for p in self.model if p[:-1] == path)
        assert self.files.listing(path) == names

    @action(which=WHICH, when=lambda self: self._paths(files=True))
    def read(self, which: int) -> None:
        paths = self._paths(files=True)
        path = paths[which % len(paths)]
        assert self.files._folder(path[:-1]).entries[path[-1]] == self.model[path]
