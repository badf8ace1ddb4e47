"""Copies of a program's directory, in which mutants are built: the program's own is never touched.

Times are kept, so that `make` makes anew only what depends on a file that was changed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from swarmtest.errors import UserError

_LEFT_OUT = ("__pycache__", "node_modules", "swarmtest.db", "swarmtest.db-shm", "swarmtest.db-wal")
_MOST = 1 << 30


def copied(directory: Path, to: Path) -> None:
    """Copy a directory without what is hidden, and without stores of campaigns."""
    size = sum(path.lstat().st_size for path in _files(directory))
    if size > _MOST:
        raise UserError(
            f"{directory} has {size >> 20:,} MiB: the program is built in copies of the directory "
            "of its TOML file, so that should hold the program alone"
        )
    shutil.copytree(directory, to, symlinks=True, ignore=lambda _, names: _ignored(names))


def _walk(directory: Path) -> list[tuple[str, list[str], list[str]]]:
    found = []
    for place, folders, names in os.walk(directory):
        folders[:] = sorted(set(folders) - _ignored(folders))
        found.append((place, folders, sorted(set(names) - _ignored(names))))
    return found


def _ignored(names: list[str]) -> set[str]:
    return {name for name in names if name.startswith(".") or name in _LEFT_OUT}


def written_since(directory: Path, moment: int) -> frozenset[Path]:
    """The files, seen from the directory, that were written since a moment (nanoseconds)."""
    return frozenset(
        path.relative_to(directory)
        for path in _files(directory)
        if path.lstat().st_mtime_ns >= moment
    )


def twin(directory: Path, to: Path, written: frozenset[Path]) -> None:
    """Copy a copy: only files that a build writes are made anew, the others are the same files."""
    shutil.copytree(
        directory,
        to,
        symlinks=True,
        copy_function=lambda old, new: (
            shutil.copy2(old, new)
            if Path(old).relative_to(directory) in written
            else os.link(old, new)
        ),
    )


def shared(directory: Path, other: Path, written: frozenset[Path]) -> None:
    """Let files that a build could have written in a twin, and did not, be one as well."""
    for name in written:
        path, same = directory / name, other / name
        if path.is_symlink() or not path.is_file() or not same.is_file():
            continue
        mine, its = path.stat(), same.stat()
        if (mine.st_size, mine.st_mtime_ns) == (its.st_size, its.st_mtime_ns):
            path.unlink()
            path.hardlink_to(same)


def _files(directory: Path) -> list[Path]:
    return [Path(place, name) for place, _, names in _walk(directory) for name in names]
