"""Caches on disk: where they are, and whether only the user can have written them.

What a cache holds is executed, so a cache that somebody else can write is not used. What counts is
who owns the directory and who may write it: a checksum in the same directory could be replaced
together with the file. The checksum of a built file is against truncation and decay.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_directory(*parts: str) -> Path:
    """Return the path of a cache of swarmtest; it need not exist.

    >>> cache_directory("symbols").parts[-2:]
    ('swarmtest', 'symbols')
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "swarmtest", *parts)


def why_unsafe(path: Path) -> str:
    """Return who else could have written a file or directory; empty if only the user and root.

    Directories above it count too: who can write them can replace what is in them. A directory
    like ``/tmp``, where users cannot remove the files of others, may be above, but not right above.

    >>> why_unsafe(Path("/"))
    ''
    """
    path = Path(os.path.realpath(path))
    trusted = (os.geteuid(), 0, os.stat("/").st_uid)
    for place in (path, *path.parents):
        try:
            known = os.stat(place)
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"{place}: {error.strerror}"
        if known.st_uid not in trusted:
            return f"{place} belongs to another user"
        keeps_files = known.st_mode & stat.S_ISVTX and place not in (path, path.parent)
        if _others_write(known) and not keeps_files:
            return f"others can write {place}"
    return ""


def _others_write(known: os.stat_result) -> bool:
    if known.st_mode & stat.S_IWOTH:
        return True
    return bool(known.st_mode & stat.S_IWGRP) and not _is_own_group(known.st_gid)


@functools.cache
def _is_own_group(group: int) -> bool:
    """Return whether a group has one member, the user, as many systems give each user one."""
    import grp
    import pwd

    if group == 0:
        return True  # root's
    try:
        user, known = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    own = user.pw_gid == group and user.pw_name == known.gr_name
    return own and set(known.gr_mem) <= {user.pw_name}


def make_private(directory: Path) -> str:
    """Make a directory of the cache that only the user can enter; return why it is not safe.

    Raise `OSError` if it cannot be made.
    """
    top = cache_directory()
    unsafe = why_unsafe(directory)
    if unsafe:
        return unsafe
    if os.path.exists(top.parent) and os.stat(top.parent).st_mode & stat.S_IWOTH:
        return f"others can write {top.parent}"
    os.makedirs(directory, exist_ok=True)
    for place in (directory, *directory.parents):
        if place != top and top not in place.parents:
            break
        if os.stat(place).st_uid == os.geteuid():
            os.chmod(place, 0o700)
    return why_unsafe(directory)


def is_usable(file: Path) -> bool:
    """Return whether a file of the cache may be read; say once if others could have written it."""
    unsafe = why_unsafe(file)
    if unsafe:
        _say_unused(unsafe)
    return not unsafe


def write(file: Path, text: str) -> None:
    """Write a text to the cache, unless others could write there. Raise `OSError` if it fails."""
    unsafe = make_private(file.parent)
    if unsafe:
        _say_unused(unsafe)
        return
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "w") as out:
            out.write(text)
        os.replace(temporary, file)
    except OSError:
        os.unlink(temporary)
        raise


def built_file(file: Path, build: Callable[[str], None]) -> Path:
    """Return a file of the cache that `build` makes at a path, if it is not there and whole.

    If others could write the cache, the file is built in a directory for this process only.
    Raise `OSError` if there is no place for it.
    """
    unsafe = make_private(file.parent) or (why_unsafe(file) if file.exists() else "")
    if unsafe:
        _say_unused(unsafe)
        file = _own_directory() / file.parent.name / file.name
        file.parent.mkdir(mode=0o700, exist_ok=True)
    checksum = file.with_name(f"{file.name}.sum")
    with contextlib.suppress(OSError):
        if checksum.read_text() == _hash(file):
            return file
    with tempfile.TemporaryDirectory(dir=file.parent) as directory:
        fresh = os.path.join(directory, file.name)
        build(fresh)
        sum_file = Path(directory, checksum.name)
        sum_file.write_text(_hash(Path(fresh)))
        os.replace(fresh, file)
        os.replace(sum_file, checksum)
    return file


def _hash(file: Path) -> str:
    return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()


@functools.cache
def _own_directory() -> Path:
    directory = tempfile.mkdtemp(prefix="swarmtest-")
    made_by = os.getpid()

    def remove() -> None:
        if os.getpid() == made_by:
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)
    return Path(directory)


@functools.cache
def _say_unused(why: str) -> None:
    print(
        f"swarmtest: the cache is not used: {why}; set XDG_CACHE_HOME to a directory of your own",
        file=sys.stderr,
    )
