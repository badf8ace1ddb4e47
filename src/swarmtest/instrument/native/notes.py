"""The `.gcno` files that gcc writes beside its objects: where they are, and who wrote them."""

from __future__ import annotations

import itertools
from pathlib import Path

from swarmtest.errors import UserError


def locate_notes(counters: str, objects: Path | None) -> Path:
    """The `.gcno` file for a `.gcda` file, named as the program names it.

    `objects`: where to look when the build tree was moved since the program was built.
    """
    built = Path(counters).with_suffix(".gcno")
    if objects is None:
        if built.exists():
            return built
        raise UserError(
            f"{built} is missing: build with --coverage on this machine and keep the .gcno files; "
            "if the build tree was moved, say objects=DIRECTORY"
        )
    found = max(
        objects.rglob(built.name),
        key=lambda path: _common_tail(path, built),
        default=None,
    )
    if found is None:
        raise UserError(
            f"no {built.name} below {objects}, which the program's {counters} needs: objects= "
            "has to name the directory that holds the build's .gcno files"
        )
    return found.resolve()


def _common_tail(one: Path, other: Path) -> int:
    """How many of their last parts two paths share."""
    pairs = zip(reversed(one.parts), reversed(other.parts), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def version_text(notes: Path) -> str:
    """The version of gcc that wrote a `.gcno` file, as ``12.2``."""
    major, minor = _version(notes)
    return f"{major}.{minor}"


def major_version(notes: Path) -> int:
    """The main version of gcc that wrote a `.gcno` file."""
    return _version(notes)[0]


def _version(notes: Path) -> tuple[int, int]:
    head = notes.read_bytes()[:8]
    if head[:4] == b"oncg":  # written on a little-endian machine
        head = head[3::-1] + head[:3:-1]
    letter, tens, minor = (chr(byte) for byte in head[4:7].ljust(3))
    if head[:4] != b"gcno" or not (tens.isdigit() and minor.isdigit()):
        raise UserError(f"{notes} is not a .gcno file of gcc: rebuild with gcc --coverage")
    if letter.isdigit():
        raise UserError(
            f"{notes} was written by clang, whose coverage gcov cannot read: build with gcc "
            "--coverage, or for clang with `swarmtest cc clang`"
        )
    return (ord(letter) - ord("A")) * 10 + int(tens), int(minor)
