"""What is reduced in the benchmark, and when some of it is interesting: plain Python.

Peers run in environments of their own, so this module is all that they share with us.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from math import ceil
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import red_black

Parts = Sequence[bytes]
CSMITH_SEEDS = (3, 7, 9)
"""Not 8 and 12: our reducer was made while looking at those."""
CSMITH_HEADERS = "-I/usr/include/csmith"
WARNINGS = "-Waddress -Wbool-compare -Woverflow -Wsign-compare -Wtautological-compare -Wtype-limits"


@dataclass(frozen=True)
class Input:
    """Parts, and when some of them are interesting."""

    parts: tuple[bytes, ...]
    holds: Callable[[Parts], bool]
    needs: tuple[tuple[int, ...], ...] = field(default=())
    """For each part the earlier ones that it uses, where that is known."""


def needed(count: int, wanted: int, seed: int) -> Input:
    """Calls of which some are needed, wherever they are."""
    parts = _lines(count)
    chosen = set(random.Random(seed).sample(parts, wanted))
    return Input(parts, lambda kept: chosen <= set(kept))


def needed_bytes(count: int, wanted: int, seed: int) -> Input:
    """Bytes of a file of which some are needed, in their order, among others like them."""
    rng = random.Random(seed)
    parts = [bytes([rng.randrange(128)]) for _ in range(count)]
    places = sorted(rng.sample(range(count), wanted))
    for value, place in enumerate(places):
        parts[place] = bytes([128 + value])
    chosen = {parts[place] for place in places}
    return Input(tuple(parts), lambda kept: chosen <= set(kept))


def def_use(count: int, wanted: int, seed: int) -> Input:
    """Calls that use what earlier ones made: without those they are an error, not a test."""
    rng = random.Random(seed)
    parts = _lines(count)
    uses = tuple(
        tuple(rng.sample(range(max(0, i - 20), i), min(i, rng.randrange(3)))) for i in range(count)
    )
    at = {part: i for i, part in enumerate(parts)}
    chosen = set(rng.sample(parts, wanted))

    def holds(kept: Parts) -> bool:
        there = {at[part] for part in kept}
        return chosen <= set(kept) and all(there.issuperset(uses[i]) for i in there)

    return Input(parts, holds, uses)


def several_causes(count: int, causes: int, seed: int) -> Input:
    """Calls among which one of several causes is enough; they differ in size."""
    rng = random.Random(seed)
    parts = _lines(count)
    shuffled = rng.sample(parts, count)
    sets = []
    for _ in range(causes):
        size = rng.randint(3, 12)
        sets.append(frozenset(shuffled[:size]))
        del shuffled[:size]
    return Input(parts, lambda kept: any(cause <= set(kept) for cause in sets))


def covered(count: int, percent: int, seed: int) -> Input:
    """Calls of a red-black tree that together reach most of the lines that all of them reach."""
    rng = random.Random(seed)
    names = ("insert", "insert", "delete", "contains", "iterate", "check")
    parts = tuple(
        b"%s %d\n" % (rng.choice(names).encode(), rng.randrange(40)) for _ in range(count)
    )
    whole = lines_reached(parts)
    enough = ceil(round(percent / 100 * len(whole), 9))
    return Input(parts, lambda kept: len(whole & lines_reached(kept)) >= enough)


def lines_reached(calls: Parts) -> set[tuple[CodeType, int]]:
    """The lines of the tree's functions that calls go through."""
    with _traced() as lines:
        tree = red_black.RedBlackTree()
        for call in calls:
            name, key = call.split()
            if name == b"contains":
                _ = int(key) in tree
            elif name == b"iterate":
                list(tree)
            elif name == b"check":
                tree.check()
            else:
                getattr(tree, name.decode())(int(key))
    return lines


@contextmanager
def _traced() -> Iterator[set[tuple[CodeType, int]]]:
    lines: set[tuple[CodeType, int]] = set()

    def line(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            lines.add((frame.f_code, frame.f_lineno))
        return line

    def call(frame: FrameType, *_: object) -> Any:
        return line if frame.f_code.co_filename == red_black.__file__ else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield lines
    finally:
        sys.settrace(before)


def c_program(seed: int) -> Input:
    """The lines of a program by csmith that gcc takes, with six kinds of warnings."""
    command = ["csmith", "--seed", str(seed), "--no-checksum"]
    made = subprocess.run(command, capture_output=True, check=True)
    # The version in the first comment is the only part that differs between machines.
    parts = tuple(made.stdout.splitlines(keepends=True))
    return Input(parts, lambda kept: gcc_warns(b"".join(kept)))


@cache
def gcc_warns(text: bytes) -> bool:
    """Whether gcc takes a program and says all that it is to say about it."""
    options = ["-fsyntax-only", "-Wall", "-Wextra", "-fmax-errors=1", CSMITH_HEADERS]
    done = subprocess.run(["gcc", *options, "-xc", "-"], input=text, capture_output=True)
    told = set(re.findall(r"\[(-W[a-z-]+)", done.stderr.decode(errors="replace")))
    return done.returncode == 0 and told.issuperset(WARNINGS.split())


def missing_for_c() -> str:
    """What to install for the row of the C program; nothing if it is there."""
    absent = [tool for tool in ("csmith", "gcc") if shutil.which(tool) is None]
    if shutil.which("csmith") and not _has_header():
        absent.append("libcsmith-dev")
    return " ".join(absent)


def _has_header() -> bool:
    done = subprocess.run(
        ["gcc", "-fsyntax-only", CSMITH_HEADERS, "-xc", "-"],
        input=b'#include "csmith.h"\n',
        capture_output=True,
    )
    return done.returncode == 0


def _lines(count: int) -> tuple[bytes, ...]:
    return tuple(b"call%d()\n" % i for i in range(count))


ROWS: dict[str, Callable[[int], Input]] = {
    "200 calls, 5 needed": lambda seed: needed(200, 5, seed),
    "200 calls, 15 needed": lambda seed: needed(200, 15, seed),
    "3,500 bytes, 12 needed": lambda seed: needed_bytes(3_500, 12, seed),
    "200 calls, def-use": lambda seed: def_use(200, 2, seed),
    "200 calls, several causes": lambda seed: several_causes(200, 4, seed),
    "200 calls, 100% of coverage": lambda seed: covered(200, 100, seed),
    "200 calls, 90% of coverage": lambda seed: covered(200, 90, seed),
    "200 calls, 70% of coverage": lambda seed: covered(200, 70, seed),
    "C program, lines": lambda seed: c_program(CSMITH_SEEDS[seed]),
}
