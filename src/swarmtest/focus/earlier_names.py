"""What a file was called before, as far as git knows."""

from __future__ import annotations

import os
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.focus.changes import changed_files
from swarmtest.focus.git import GitError, ask, resolved, top

_SECONDS = 10.0
"""Following a file through a long history takes its time; without it, contents have to do."""


def earlier_names(place: str | Path) -> tuple[str, ...]:
    """The names that a file had, the latest first, from the repository's top with slashes.

    Renames that are not committed yet count. Empty when git is not there, knows no other name, or
    takes too long to tell.
    """
    path = Path(place).resolve()
    try:
        repository = top(path.parent)
        now = path.relative_to(repository).as_posix()
        committed = _name_in_head(now, repository)
        told = ask(
            repository,
            *("log", "--follow", "--name-status", "-z", "--format=", "-M", "--diff-filter=R"),
            *("--no-show-signature", "--no-color", "--no-ext-diff", "HEAD", "--", committed),
            seconds=_SECONDS,
        )
    except (GitError, UserError, ValueError):
        return ()
    names = [committed, *_old_names(os.fsdecode(told))]
    return tuple(name for name in dict.fromkeys(names) if name != now)


def _name_in_head(path: str, repository: Path) -> str:
    changed = changed_files(resolved("HEAD", repository), repository)
    renamed = {file.path: file.old_path for file in changed if file.status == "R"}
    return renamed.get(path, path)


def _old_names(told: str) -> list[str]:
    """Of entries ``R100\\0old\\0new\\0``, the old names."""
    fields = [field.strip("\n") for field in told.split("\0")]
    is_rename = (len(field) > 1 and field[0] == "R" and field[1:].isdigit() for field in fields)
    return [fields[i + 1] for i, found in enumerate(is_rename) if found and i + 2 < len(fields)]
