"""Read a store whose first page is damaged, from a copy with a sound one.

SQLite refuses a file whose first 100 bytes are wrong, although they hold little that cannot be
computed: the size of a page, the number of pages, and who wrote the file. Behind them, the first
page lists the tables, and without that list nothing is found. It is the same in every store that
this version created, so that of a new store is tried in its place.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from swarmtest.core.errors import UserError
from swarmtest.store.schema import VERSION
from swarmtest.store.sqlite.file import APPLICATION_ID, PAGE_SIZE, connect

_HEADER = struct.Struct(">16sH6B12I20sII")
"""The header of an SQLite file; https://www.sqlite.org/fileformat.html names the fields."""
_MAGIC = b"SQLite format 3\0"
_SIZES = (PAGE_SIZE, 4096, 512, 1024, 2048, 8192, 32768)
_LARGEST_LOSS = 1000
"""How many times as many pages a file may have had as are left."""
_LAST_VERSION = 1000
"""A version above this one is damage, and not that of a newer swarmtest."""


class MendedCopy(NamedTuple):
    """A copy of a store with a sound first page."""

    path: str
    problems: tuple[str, ...]
    """What was wrong with the first page."""


@contextmanager
def mended_copy(path: str) -> Iterator[MendedCopy | None]:
    """Give a copy of a store whose first page is damaged; None if that is not what is wrong.

    The copy is deleted at the end.
    """
    if not os.path.isfile(path) or os.path.getsize(path) <= _HEADER.size:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="swarmtest-") as directory:
        copy = Path(directory, "copy.db")
        problems = next(filter(None, _attempts(path, copy, Path(directory, "new.db"))), None)
        yield MendedCopy(str(copy), problems) if problems else None


def _attempts(path: str, copy: Path, new: Path) -> Iterator[tuple[str, ...]]:
    """Try headers, the most likely first; yield what was wrong, or nothing if it still is."""
    stated = struct.unpack(">H", _first_bytes(path)[16:18])[0]
    sizes = dict.fromkeys([stated, *_SIZES] if stated in _SIZES else _SIZES)
    for size in sizes:
        for version in _versions(path):
            _copy(path, copy)
            problems = _write_header(copy, size, version)
            if problems and _is_store(copy):
                yield problems
                return
    with closing(connect(str(new), read_only=False, timeout=1.0)) as created:
        created.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    _copy(path, copy)
    with open(copy, "r+b") as file:
        file.write(new.read_bytes()[:PAGE_SIZE])
    _write_header(copy, PAGE_SIZE, VERSION)
    if _is_store(copy):
        yield ("the first page cannot be read; that of a new store stands in for it",)


def _first_bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(_HEADER.size)


def _versions(path: str) -> list[int]:
    version = struct.unpack(">i", _first_bytes(path)[60:64])[0]
    return [version] if 0 < version <= _LAST_VERSION else [*range(VERSION, 0, -1)]


def _copy(path: str, copy: Path) -> None:
    shutil.copyfile(path, copy)
    log = copy.with_name(f"{copy.name}-wal")
    if os.path.isfile(f"{path}-wal"):
        shutil.copyfile(f"{path}-wal", log)


def _write_header(copy: Path, size: int, version: int) -> tuple[str, ...]:
    """Replace what cannot be in the header; return what that was."""
    problems: list[str] = []
    with open(copy, "r+b") as file:
        header = list(_HEADER.unpack(file.read(_HEADER.size)))
        pages = os.path.getsize(copy) // size
        if size == header[1] and pages < header[9] < pages * _LARGEST_LOSS:
            # Tables may begin in what was cut off. Pages of zeros cost only what was there.
            problems = [f"only {pages:,} of its {header[9]:,} pages are there"]
            pages = header[9]
            os.truncate(copy, pages * size)
        wanted: dict[int, tuple[str, object, bool]] = {
            0: ("it does not begin as an SQLite file", _MAGIC, header[0] == _MAGIC),
            1: (f"its size of a page is {header[1]}", size, header[1] == size),
            2: (f"its write format is {header[2]}", 2, header[2] in (1, 2)),
            3: (f"its read format is {header[3]}", 2, header[3] in (1, 2)),
            4: ("it reserves bytes in pages", 0, header[4] == 0),
            5: ("its payload fraction is wrong", 64, header[5] == 64),
            6: ("its payload fraction is wrong", 32, header[6] == 32),
            7: ("its payload fraction is wrong", 32, header[7] == 32),
            9: (f"it has {pages:,} pages, not {header[9]:,}", pages, header[9] == pages),
            10: ("its list of free pages is wrong", 0, header[10] <= pages),
            11: ("its list of free pages is wrong", 0, header[11] <= pages),
            13: (f"its schema format is {header[13]}", 4, header[13] in (1, 2, 3, 4)),
            15: ("its largest root page is wrong", 1, 0 < header[15] <= pages),
            16: (f"its text encoding is {header[16]}", 1, header[16] == 1),
            17: ("its schema version is wrong", version, header[17] == version),
            18: ("its vacuum mode is wrong", 1, header[18] in (0, 1)),
            19: ("it does not say that swarmtest wrote it", APPLICATION_ID,
                 header[19] == APPLICATION_ID),
        }  # fmt: skip
        problems += [text for text, _, is_sound in wanted.values() if not is_sound]
        for number, (_, value, is_sound) in wanted.items():
            header[number] = header[number] if is_sound else value
        header[20] = bytes(20)
        header[21] = header[8]  # the number of pages counts only if these two agree
        file.seek(0)
        file.write(_HEADER.pack(*header))
    return tuple(dict.fromkeys(problems))


def _is_store(copy: Path) -> bool:
    """Return whether a copy has the tables of a store, and its campaigns can be read."""
    try:
        with closing(connect(str(copy), read_only=False, timeout=1.0)) as connection:
            connection.execute("SELECT * FROM campaigns").fetchall()
            return True
    except (UserError, sqlite3.Error):
        return False
