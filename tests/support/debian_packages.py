"""Skip a test where a Debian package is missing, and say which one to install."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

PACKAGES = {
    "addr2line": "binutils",
    "clang": "clang",
    "csmith": "csmith",
    "/usr/include/csmith/csmith.h": "libcsmith-dev",
    "dpkg-source": "dpkg-dev",
    "gcc": "gcc",
    "gcov": "gcc",
    "make": "make",
    "/usr/include/stdio.h": "libc6-dev",
}
"""The package of each program or file."""

CSMITH = ("csmith", "/usr/include/csmith/csmith.h", "gcc", "/usr/include/stdio.h")
"""What it takes to compile programs that csmith makes."""


def need(*things: str) -> None:
    """Skip the test unless all of these programs and files are there."""
    missing = [thing for thing in things if not is_there(thing)]
    if missing:
        packages = " ".join(dict.fromkeys(PACKAGES[thing] for thing in missing))
        pytest.skip(f"needs {', '.join(missing)}: apt-get install {packages}")


def is_there(thing: str) -> bool:
    """Whether a program is on the path, or a file is there."""
    return Path(thing).exists() if thing.startswith("/") else shutil.which(thing) is not None
