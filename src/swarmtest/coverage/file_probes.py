"""Targets that are found on the way: paths (and what follows from them), states of predicates.

A path or a state is read once, when it is first seen; from then on it is looked up.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, compress
from operator import or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swarmtest.core.targets import Catalogue, Source, content_hash
from swarmtest.coverage.weaving.blocks import number_ways, symbols_of_way
from swarmtest.coverage.weaving.implications import Function, Plan
from swarmtest.coverage.weaving.paths import (
    PathIndex,
    TooManyPaths,
    blocks_of,
    du_paths_of,
    entered_lines,
    prime_paths,
    successors,
    toured,
)
from swarmtest.coverage.weaving.snippets import CUT_WAY, RAISED_MARK

# -------------------------------------------------------------------------------------------------
# Where probes write: one set of cells per instrumented file, for the life of the process.
#
# Instrumented code finds its cells here when its module is executed; whoever watches the tests
# reads
# and empties them. The objects stay the same, only their contents change: code holds on to them.


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


# -------------------------------------------------------------------------------------------------

_RAISED = re.compile(f"{RAISED_MARK}(\\d+){RAISED_MARK}")
_SHOWN = 2000
"""Decisions of one path that its description spells out."""


class _Known(dict[Any, Any]):
    """A dictionary that reads what it does not know: the look-up itself stays in C."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, key: Any) -> Any:
        found = self[key] = self._read(key)
        return found


class Traces:
    """Reads the paths and states of one file."""

    def __init__(self, source: Source, plan: Plan, problems: list[str]) -> None:
        self.catalogue = Catalogue()
        self._problems = problems
        self._source = source
        self._plan = plan
        self._lines = source.text.split("\n")
        self._only_paths = not {"prime", "du"} & set(plan.kinds)
        self._of_path = _Known(self._path_number if self._only_paths else self._path_numbers)
        self._of_state = _Known(self._state_number)
        self._of_way = _Known(self._way_number)
        self._all_ways = range(plan.ways)
        self._added: dict[int, dict[str, int]] = {}
        self._primes: dict[int, tuple[PathIndex, list[int]]] = {}
        self._described: dict[int, tuple[dict[str, str], str]] = {}
        self._places: dict[int, tuple[int, Function]] = {}

    def numbers(self, cells: Cells) -> list[int]:
        """The numbers of what was executed, in any order, perhaps repeated."""
        found: list[int] = []
        if cells.paths:
            of_paths = map(self._of_path.__getitem__, cells.paths)
            found += of_paths if self._only_paths else chain.from_iterable(of_paths)
        if cells.ways != cells.no_ways:
            cells.ways[0] = 0  # ways that were cut short are among the paths
            of_ways = map(self._of_way.__getitem__, compress(self._all_ways, cells.ways))
            found += of_ways if self._only_paths else chain.from_iterable(of_ways)
        if cells.states:
            found += map(self._of_state.__getitem__, cells.states)
        return found

    def _target(
        self, kind: str, name: str, line: int, function: Function, content: str, detail: str = ""
    ) -> int:
        target = self._source.target(kind, name, line, function.name, content, detail)
        return self.catalogue.number(target)

    # Paths

    def _way_number(self, place: int) -> Any:
        return self._of_path[self.spelt_way(place)]

    def spelt_way(self, place: int) -> str:
        """The path of a counted way, by its place in the list of ways."""
        firsts = [function.first_way for function in self._plan.functions]
        number = max(i for i, first in enumerate(firsts) if 0 < first <= place)
        return chr(number) + self._symbols(number, place)

    def _symbols(self, number: int, place: int, line: int = 0) -> str:
        function = self._plan.functions[number]
        if number not in self._added:
            counted = number_ways(function.outline)
            assert counted is not None
            self._added[number] = counted[1]
        way = place - function.first_way
        return symbols_of_way(function.outline, self._added[number], way, line)

    def spelt_path(self, path: str) -> str:
        """A path with its symbols: a counted way that an exception cut short tells a number."""
        if not path.startswith(CUT_WAY, 1):
            return path
        number = ord(path[0])
        place, line = map(int, path[1 + len(CUT_WAY) : -1].split(RAISED_MARK))
        symbols = self._symbols(number, place, line)
        return f"{path[0]}{symbols}{RAISED_MARK}{line}{RAISED_MARK}"

    def _path_numbers(self, path: str) -> list[int]:
        """A path, and the prime and du-paths that it contains."""
        path = self.spelt_path(path)
        number = ord(path[0])
        function = self._plan.functions[number]
        kinds = self._plan.kinds
        found = [self._path_number(path)] if "path" in kinds else []
        blocks = blocks_of(function.outline, path[1:])
        if "prime" in kinds:
            primes, numbers = self._primes.get(number) or self._list_primes(number)
            found += [numbers[i] for i in toured(blocks, primes)]
        if "du" in kinds:
            found += self._du_numbers(function, blocks)
        return found

    def _path_number(self, path: str) -> int:
        """A path's target. Told are the blocks that decisions lead to; the others follow."""
        path = self.spelt_path(path)
        number = ord(path[0])
        function = self._plan.functions[number]
        if number not in self._described:
            blocks = range(len(function.outline[0]))
            self._described[number] = (
                entered_lines(function.outline),
                self._content(function, blocks),
            )
        lines, content = self._described[number]
        digest = hashlib.blake2b(path[1:].encode(), digest_size=6).hexdigest()
        way, end = path[1 : _SHOWN + 1], "exit"
        more = f"... {len(path) - _SHOWN:,} more " if len(path) > _SHOWN else ""
        if RAISED_MARK in way:
            shown = _RAISED.sub(r"raised:\1 ", "".join(lines.get(c, c) for c in way))
            end = "exception" if path.endswith(RAISED_MARK) else end
        else:
            shown = "".join(map(lines.__getitem__, way))
        detail = f"{function.line} {shown}{more}{end}"
        name = f"{function.name}#{digest}"
        return self._target("path", name, function.line, function, content, detail)

    def _content(self, function: Function, blocks: Any) -> str:
        """A hash of the text of blocks, in order, each once."""
        spans = [function.outline[0][block][:2] for block in dict.fromkeys(blocks)]
        return content_hash("\n".join("\n".join(self._lines[a - 1 : b]) for a, b in spans))

    def _through(self, function: Function, blocks: Any) -> str:
        return "-".join(str(function.outline[0][block][0]) for block in blocks)

    def _list_primes(self, number: int) -> tuple[PathIndex, list[int]]:
        function = self._plan.functions[number]
        graph = [[s for s in following if s >= 0] for following in successors(function.outline)]
        try:
            paths = prime_paths(graph)
        except TooManyPaths as error:
            paths = []
            self._problems.append(
                f"{self._source.path}:{function.line}: {function.name} has {error}: "
                "its prime paths are not counted"
            )
        numbers = []
        for path in paths:
            name = f"{function.name} {self._through(function, path)}"
            line = function.outline[0][path[0]][0]
            content = self._content(function, path)
            numbers.append(self._target("prime", name, line, function, content))
        self._primes[number] = found = (PathIndex(paths), numbers)
        return found

    def _du_numbers(self, function: Function, blocks: list[int]) -> list[int]:
        described = function.outline[0]
        defines = [frozenset(block[2]) for block in described]
        uses = [frozenset(block[3]) for block in described]
        numbers = []
        for variable, path in du_paths_of(blocks, defines, uses):
            name = f"{function.name} {variable} {self._through(function, path)}"
            content = self._content(function, path)
            numbers.append(self._target("du", name, described[path[0]][0], function, content))
        return numbers

    # Predicates

    def _state_number(self, key: tuple[int, int]) -> int:
        fact, state = key
        line, function = self._place(fact)
        vector = "".join("-FT"[state >> 2 * i & 3] for i in range(len(function.predicates)))
        detail = ", ".join(
            f"{'not ' if value == 'F' else ''}({text})"
            for text, value in zip(function.predicates, vector, strict=True)
            if value != "-"
        )
        content = content_hash(f"{self._lines[line - 1]}\n{detail}")
        name = f"{line} {vector}".rstrip()
        return self._target("predicate", name, line, function, content, detail)

    def _place(self, fact: int) -> tuple[int, Function]:
        if not self._places:
            self._places = {
                one: (first, function)
                for function in self._plan.functions
                for first, _, one in function.spans
            }
        return self._places[fact]


# -------------------------------------------------------------------------------------------------
# One instrumented file at run time: from the state of its cells to the targets that were hit.
#
# This is on the way of every test, so what is not new is looked up, and what is new (for most
# tests
# of a campaign, something is) costs a few operations on whole sets.

Numbers = NDArray[np.uint32]

_REMEMBERED = 5000
"""Distinct states of one file that are remembered before we start anew."""
_NONE: Numbers = np.zeros(0, np.uint32)


class Reached(NamedTuple):
    """The targets that a state stands for, by their numbers in the catalogue, ascending."""

    inside: Numbers
    """What tests reach."""
    outside: Numbers
    """What imports reach."""


NOTHING = Reached(_NONE, _NONE)


class Written(NamedTuple):
    """What the probes of one file wrote, for another process."""

    source: Source
    path: str
    plan: Plan | None
    """None: it is known there."""
    cells: Cells


class WovenFile:
    """Reads and empties the cells of one file."""

    def __init__(
        self, source: Source, path: str, plan: Plan, cells: Cells, problems: list[str]
    ) -> None:
        """`problems` is where to tell what cannot be counted, one line each."""
        self.source = source
        self.path = path
        """Where the file is on this machine."""
        self._plan = plan
        self._cells = cells
        self._traces = Traces(source, plan, problems)
        self._numbers = _NONE
        self._masks: list[int] = []
        self._at_import = 0
        self._reached: dict[Any, Reached] = {None: NOTHING}
        self._of_raised: dict[tuple[int, int], int] = {}

    def enrol(self, catalogue: Catalogue) -> None:
        """Number the file's targets in a catalogue."""
        catalogue.add_source(self.source)
        self._traces.catalogue = catalogue
        plan = self._plan
        numbers = [catalogue.number(target) for target in plan.targets_in(self.source)]
        self._numbers = np.array(numbers, np.uint32)
        self._masks = [plan.mask(fact) for fact in plan.probes]
        for bit, target in enumerate(plan.targets):
            if target[3] == 0:
                self._at_import |= 1 << bit

    def written(self, with_plan: bool) -> Written:
        """What its probes wrote."""
        return Written(self.source, self.path, self._plan if with_plan else None, self._cells)

    def overwrite(self, written: Written) -> None:
        """Let the probes have written something else; code holds on to the cells themselves."""
        mine, cells = self._cells, written.cells
        mine.hits[:], mine.ways[:] = cells.hits, cells.ways
        for own, other in (
            (mine.raised, cells.raised),
            (mine.states, cells.states),
        ):
            own.clear()
            own.update(other)
        mine.paths.clear()
        mine.paths.update(cells.paths)

    def reset(self) -> None:
        """Forget what was executed."""
        cells = self._cells
        if cells.hits != cells.zeros:  # most files of a large program are untouched by most tests
            cells.hits[:] = cells.zeros
        if cells.raised:
            cells.raised.clear()
        if cells.paths:
            cells.paths.clear()
        if cells.ways != cells.no_ways:
            cells.ways[:] = cells.no_ways
        if cells.states:
            cells.states.clear()

    def state(self) -> Any:
        """What was begun, as something that can be looked up; None if nothing was."""
        cells = self._cells
        if cells.raised:
            return bytes(cells.hits), *sorted(cells.raised)
        return bytes(cells.hits) if cells.hits != cells.zeros else None

    def reached(self, state: Any) -> Reached:
        """The targets of a state."""
        known = self._reached.get(state)
        if known is None:
            if len(self._reached) >= _REMEMBERED:
                self._reached = {None: NOTHING}
            known = self._reached[state] = self._read_hits(state)
        return known

    def _read_hits(self, state: Any) -> Reached:
        hits, *raised = state if isinstance(state, tuple) else (state,)
        mask = reduce(or_, compress(self._masks, hits), 0)
        for key in raised:
            mask |= self._raised_mask(key)
        outside = mask & self._at_import
        return Reached(self._in_mask(mask ^ outside), self._in_mask(outside))

    def found(self) -> list[int]:
        """The paths and predicates that were executed: they are new too often to remember sets."""
        return self._traces.numbers(self._cells)

    def _in_mask(self, mask: int) -> Numbers:
        if not mask:
            return _NONE
        packed = np.frombuffer(mask.to_bytes((len(self._numbers) + 7) // 8, "little"), np.uint8)
        bits = np.unpackbits(packed, bitorder="little")
        return self._numbers[bits.nonzero()[0]]

    def _raised_mask(self, key: tuple[int, int]) -> int:
        known = self._of_raised.get(key)
        if known is None:
            function, line = key
            fact = self._plan.functions[function].fact_at(line)
            known = self._of_raised[key] = self._plan.mask(fact)
        return known
