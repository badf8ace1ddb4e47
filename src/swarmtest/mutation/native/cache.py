"""What mutants compile to, kept on disk between runs.

A cache that cannot be read or written is no error: the work is done again.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

MOST = 64 << 20
"""Bytes; beyond that, what was not used for longest is removed."""


def cache_directory() -> Path:
    """Where it is: below ``XDG_CACHE_HOME``, or ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "swarmtest", "c-mutants")


class Cache:
    """Texts by key, of one file of a program in one version."""

    def __init__(self, name: str) -> None:
        self._path = cache_directory() / f"{name}.json"
        self._found: dict[str, str] = {}
        self._new = False
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(self._path.read_text())
            if isinstance(found, dict):
                self._found = found
            os.utime(self._path)

    def get(self, key: str) -> str | None:
        """What was kept."""
        return self._found.get(key)

    def put(self, key: str, text: str) -> None:
        """Keep something, until `save` for this run only."""
        self._found[key] = text
        self._new = True

    def save(self) -> None:
        """Write it; another process never sees half of it."""
        if not self._new:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._path.parent)
            with os.fdopen(handle, "w") as file:
                json.dump(self._found, file)
            os.replace(temporary, self._path)
            self._new = False
            _bound(self._path.parent, MOST)


def _bound(directory: Path, most: int) -> None:
    newest_first = sorted(
        ((one.stat().st_mtime, one.stat().st_size, one.path) for one in os.scandir(directory)),
        reverse=True,
    )
    total = 0
    for _, size, path in newest_first:
        total += size
        if total > most:
            os.unlink(path)
