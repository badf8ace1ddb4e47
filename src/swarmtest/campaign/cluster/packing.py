"""Files on their way to workers: which of a directory travel, and how they are packed."""

from __future__ import annotations

import hashlib
import marshal
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from swarmtest.errors import UserError

_LARGEST = 64 << 20
_MOST_FILES = 5000
_LEFT_OUT = ("__pycache__", "node_modules", "site-packages", "dist-packages", "dask-scratch-space")
_LEFT_OUT_FILES = (".pyc", ".pyo", ".db", ".db-wal", ".db-shm", ".db-journal")
"""Bytecode, and stores: they are not the program, and they change."""


def packed(files: Iterable[str]) -> tuple[str, bytes]:
    """Files, by their absolute paths, as one piece, and the hash of what is in it."""
    entries = []
    size = 0
    for name in sorted(set(files)):
        content = Path(name).read_bytes()
        size += len(content)
        if size > _LARGEST:
            raise UserError(
                f"what travels to the workers is larger than {_LARGEST >> 20} MB (with {name}): "
                f"{_ADVICE}"
            )
        entries.append((name, stat.S_IMODE(os.stat(name).st_mode), content))
    plain = marshal.dumps(entries)
    return hashlib.sha256(plain).hexdigest()[:20], zlib.compress(plain, 1)


def unpacked(pack: bytes) -> list[tuple[str, int, bytes]]:
    """The path, mode and content of each file."""
    entries: list[tuple[str, int, bytes]] = marshal.loads(zlib.decompress(pack))
    return entries


def files_below(place: str) -> Iterator[str]:
    """A file, or the files of a directory without what is hidden, installed, compiled or a store.

    >>> any(name.endswith("packing.py") for name in files_below(os.path.dirname(__file__)))
    True
    """
    if os.path.isfile(place):
        yield place
        return
    count = 0
    for directory, folders, files in os.walk(place):
        folders[:] = [name for name in folders if not _is_left_out(directory, name)]
        for name in files:
            path = os.path.join(directory, name)
            hidden = name.startswith(".") or name.endswith(_LEFT_OUT_FILES)
            if not hidden and os.path.isfile(path) and os.access(path, os.R_OK):
                count += 1
                yield path
        if count > _MOST_FILES:
            raise UserError(
                f"{place} has more than {_MOST_FILES:,} files, and would travel to the workers: "
                f"{_ADVICE}"
            )


_ADVICE = (
    "put what is tested into a directory of its own, or install it as a package on the workers"
)


def _is_left_out(directory: str, name: str) -> bool:
    if name.startswith(".") or name in _LEFT_OUT:
        return True
    return os.path.exists(os.path.join(directory, name, "pyvenv.cfg"))
