"""Unpack a tar archive so that nothing is written outside of a directory.

`tarfile` refuses such archives itself from Python 3.11.4 on (``filter="data"``). For older ones the
same is checked here.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path


class UnsafeArchive(Exception):
    """A member of an archive would be, or point to, something outside of the directory."""


def unpack_tar(archive: Path, directory: Path) -> None:
    """Extract all members of an archive into a directory, which is made."""
    directory.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as opened:
        if not hasattr(tarfile, "data_filter"):
            extract_checked(opened, directory)
            return
        try:
            opened.extractall(directory, filter="data")
        except tarfile.FilterError as error:
            raise UnsafeArchive(str(error)) from None


def extract_checked(opened: tarfile.TarFile, directory: Path) -> None:
    """Extract member by member: a link that is extracted counts for those that come after it."""
    root = os.path.realpath(directory)
    for member in opened:
        member.name = member.name.lstrip("/")
        _check(member, root)
        member.mode = member.mode & 0o755 | 0o600 | (0o100 if member.isdir() else 0)
        member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        opened.extract(member, root)


def _check(member: tarfile.TarInfo, root: str) -> None:
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        raise UnsafeArchive(f"{member.name!r} is neither a file, a directory nor a link")
    places = [(member.name, "")]
    if member.issym():
        places.append((member.linkname, os.path.dirname(member.name)))
    elif member.islnk():
        places.append((member.linkname, ""))
    for name, beside in places:
        place = os.path.realpath(os.path.join(root, beside, name))
        if os.path.isabs(name) or os.path.commonpath([place, root]) != root:
            raise UnsafeArchive(f"{member.name!r} would be outside of the directory: {name!r}")
