"""Where probes write: one set of cells per instrumented file, for the life of the process.

Instrumented code finds its cells here when its module is executed; whoever watches the tests reads
and empties them. The objects stay the same, only their contents change: code holds on to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from swarmtest.targets import Source


@dataclass
class Cells:
    """What the probes of one file write to."""

    hits: list[int]
    """A list, not a bytearray: CPython has a fast path for storing into lists."""
    zeros: list[int]
    raised: dict[tuple[int, int], int] = field(default_factory=dict)
    states: dict[tuple[int, int], int] = field(default_factory=dict)
    paths: dict[str, int] = field(default_factory=dict)
    ways: list[int] = field(default_factory=list)
    no_ways: list[int] = field(default_factory=list)


def cells_key(source: Source, kinds: tuple[str, ...]) -> str:
    """What names the cells of a file: another version, or other probes, are other cells."""
    return f"{source.id} {' '.join(kinds)}"


_cells: dict[str, Cells] = {}


def cells_of(file: str, probes: int, ways: int) -> Cells:
    """The cells of a file, made when they are first asked for."""
    found = _cells.get(file)
    if found is None:
        found = _cells[file] = Cells([0] * probes, [0] * probes)
        found.ways, found.no_ways = [0] * ways, [0] * ways
    return found


def cells(file: str) -> tuple[Any, ...]:
    """What instrumented code asks for, in the order of `snippets.CELLS`."""
    found = _cells[file]
    written = found.hits, found.raised, found.states, found.paths, found.ways
    # In a tuple: programs that collect what can be called in a module must not find it.
    return *written, (BaseException,)
