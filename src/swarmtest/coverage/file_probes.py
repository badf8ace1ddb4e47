"""One instrumented file at run time: from what its probes write to the targets that were hit.

`ProbeCells` is where the probes of a file write. `WovenFile` reads and empties them: lines, blocks
and branches follow from which probes were hit; `Traces` reads paths and states of predicates, whose
targets are not known beforehand. Reading is part of every test, so results are cached: a path or
a state is interpreted only when it is first seen. A set of hits that is new (most tests of a
campaign have one) costs a few operations on whole sets.
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
from swarmtest.coverage.weaving.implications import ProbedFunction, ProbePlan
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

# Where probes write.


@dataclass
class ProbeCells:
    """What the probes of one file write to, for the life of the process.

    The contents change, the objects stay the same, because instrumented code refers to them.
    """

    hits: list[int]
    """For each probe whether it was hit. A list, because CPython stores into lists fastest."""
    zeros: list[int]
    """`hits` when no probe was hit."""
    raised: dict[tuple[int, int], int] = field(default_factory=dict)
    """(function, line) of exceptions; the dictionaries serve as sets."""
    states: dict[tuple[int, int], int] = field(default_factory=dict)
    """(fact, state) of predicates."""
    paths: dict[str, int] = field(default_factory=dict)
    """Paths as strings of symbols."""
    ways: list[int] = field(default_factory=list)
    """For each numbered path (see `weaving.blocks`) whether it was taken."""
    no_ways: list[int] = field(default_factory=list)
    """`ways` when no numbered path was taken."""


def cells_key(source: Source, kinds: tuple[str, ...]) -> str:
    """Return the key of a file's cells, which differs between versions and kinds of coverage."""
    return f"{source.id} {' '.join(kinds)}"


_cells: dict[str, ProbeCells] = {}


def cells_of(file: str, probes: int, ways: int) -> ProbeCells:
    """Return the cells with a key, which are created at the first call."""
    file_cells = _cells.get(file)
    if file_cells is None:
        file_cells = _cells[file] = ProbeCells([0] * probes, [0] * probes)
        file_cells.ways, file_cells.no_ways = [0] * ways, [0] * ways
    return file_cells


def cells(file: str) -> tuple[Any, ...]:
    """Return what instrumented code imports when it is executed, as `snippets.CELLS` orders it."""
    own = _cells[file]
    written = own.hits, own.raised, own.states, own.paths, own.ways
    # The class is in a tuple so that programs which collect the callables of a module miss it.
    return *written, (BaseException,)


# Paths and predicates.

_RAISED = re.compile(f"{RAISED_MARK}(\\d+){RAISED_MARK}")
_MAX_SHOWN = 2000
"""Decisions of a path that its description spells out."""


class _Cache(dict[Any, Any]):
    """A dictionary that computes missing values, so that looking up a known key stays in C."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: Any) -> Any:
        value = self[key] = self._compute(key)
        return value


class Traces:
    """Interprets the paths and predicate states of one file."""

    def __init__(self, source: Source, plan: ProbePlan, problems: list[str]) -> None:
        self.catalogue = Catalogue()
        self._problems = problems
        self._source = source
        self._plan = plan
        self._lines = source.text.split("\n")
        self._only_paths = not {"prime", "du"} & set(plan.kinds)
        self._path_cache = _Cache(self._path_number if self._only_paths else self._path_numbers)
        self._state_cache = _Cache(self._state_number)
        self._way_cache = _Cache(self._way_number)
        self._all_ways = range(plan.ways)
        self._additions: dict[int, dict[str, int]] = {}
        self._primes: dict[int, tuple[PathIndex, list[int]]] = {}
        self._described: dict[int, tuple[dict[str, str], str]] = {}
        self._spans: dict[int, tuple[int, ProbedFunction]] = {}

    def numbers(self, cells: ProbeCells) -> list[int]:
        """Return the numbers of the targets that were reached, in any order, maybe repeated."""
        numbers: list[int] = []
        if cells.paths:
            of_paths = map(self._path_cache.__getitem__, cells.paths)
            numbers += of_paths if self._only_paths else chain.from_iterable(of_paths)
        if cells.ways != cells.no_ways:
            cells.ways[0] = 0  # a numbered path that an exception ended is in `cells.paths`
            of_ways = map(self._way_cache.__getitem__, compress(self._all_ways, cells.ways))
            numbers += of_ways if self._only_paths else chain.from_iterable(of_ways)
        if cells.states:
            numbers += map(self._state_cache.__getitem__, cells.states)
        return numbers

    def _target(
        self,
        kind: str,
        name: str,
        line: int,
        function: ProbedFunction,
        content: str,
        detail: str = "",
    ) -> int:
        target = self._source.target(kind, name, line, function.name, content, detail)
        return self.catalogue.number(target)

    # Paths

    def _way_number(self, index: int) -> Any:
        return self._path_cache[self.spelt_way(index)]

    def spelt_way(self, index: int) -> str:
        """Return a numbered path, by its index in the list of ways, as a string of symbols."""
        firsts = [function.first_way for function in self._plan.functions]
        number = max(i for i, first in enumerate(firsts) if 0 < first <= index)
        return chr(number) + self._symbols(number, index)

    def _symbols(self, number: int, index: int, line: int = 0) -> str:
        function = self._plan.functions[number]
        if number not in self._additions:
            counted = number_ways(function.outline)
            assert counted is not None
            self._additions[number] = counted[1]
        way = index - function.first_way
        return symbols_of_way(function.outline, self._additions[number], way, line)

    def spelt_path(self, path: str) -> str:
        """Return a path as a string of symbols.

        For a numbered path that an exception ended, the probe wrote its sum and the line instead.
        """
        if not path.startswith(CUT_WAY, 1):
            return path
        number = ord(path[0])
        index, line = map(int, path[1 + len(CUT_WAY) : -1].split(RAISED_MARK))
        symbols = self._symbols(number, index, line)
        return f"{path[0]}{symbols}{RAISED_MARK}{line}{RAISED_MARK}"

    def _path_numbers(self, path: str) -> list[int]:
        """Return the targets of a path: the path, and the prime and du-paths that it contains."""
        path = self.spelt_path(path)
        number = ord(path[0])
        function = self._plan.functions[number]
        kinds = self._plan.kinds
        targets = [self._path_number(path)] if "path" in kinds else []
        blocks = blocks_of(function.outline, path[1:])
        if "prime" in kinds:
            primes, numbers = self._primes.get(number) or self._list_primes(number)
            targets += [numbers[i] for i in toured(blocks, primes)]
        if "du" in kinds:
            targets += self._du_numbers(function, blocks)
        return targets

    def _path_number(self, path: str) -> int:
        """Return a path's target.

        Its description lists only the blocks to which decisions lead; the others follow.
        """
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
        way, end = path[1 : _MAX_SHOWN + 1], "exit"
        more = f"... {len(path) - _MAX_SHOWN:,} more " if len(path) > _MAX_SHOWN else ""
        if RAISED_MARK in way:
            shown = _RAISED.sub(r"raised:\1 ", "".join(lines.get(c, c) for c in way))
            end = "exception" if path.endswith(RAISED_MARK) else end
        else:
            shown = "".join(map(lines.__getitem__, way))
        detail = f"{function.line} {shown}{more}{end}"
        name = f"{function.name}#{digest}"
        return self._target("path", name, function.line, function, content, detail)

    def _content(self, function: ProbedFunction, blocks: Any) -> str:
        """Return a hash of the text of the blocks, in order, each once."""
        spans = [function.outline[0][block][:2] for block in dict.fromkeys(blocks)]
        return content_hash("\n".join("\n".join(self._lines[a - 1 : b]) for a, b in spans))

    def _through(self, function: ProbedFunction, blocks: Any) -> str:
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
        self._primes[number] = index_and_numbers = (PathIndex(paths), numbers)
        return index_and_numbers

    def _du_numbers(self, function: ProbedFunction, blocks: list[int]) -> list[int]:
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
        line, function = self._span(fact)
        vector = "".join("-FT"[state >> 2 * i & 3] for i in range(len(function.predicates)))
        detail = ", ".join(
            f"{'not ' if value == 'F' else ''}({text})"
            for text, value in zip(function.predicates, vector, strict=True)
            if value != "-"
        )
        content = content_hash(f"{self._lines[line - 1]}\n{detail}")
        name = f"{line} {vector}".rstrip()
        return self._target("predicate", name, line, function, content, detail)

    def _span(self, fact: int) -> tuple[int, ProbedFunction]:
        """Return the first line and the function of a fact's statement."""
        if not self._spans:
            self._spans = {
                number: (first, function)
                for function in self._plan.functions
                for first, _, number in function.spans
            }
        return self._spans[fact]


# Lines, blocks and branches, and the file as a whole.

Numbers = NDArray[np.uint32]

_MAX_CACHED_STATES = 5000
"""Distinct states of one file in the cache; when it is full, it is emptied."""
_NONE: Numbers = np.zeros(0, np.uint32)


class ReachedTargets(NamedTuple):
    """The targets of a state, as ascending numbers in the catalogue."""

    inside: Numbers
    """Targets in functions, which tests reach."""
    outside: Numbers
    """Targets outside of functions, which imports reach."""


NOTHING = ReachedTargets(_NONE, _NONE)


class WrittenFile(NamedTuple):
    """What the probes of one file wrote, for another process."""

    source: Source
    path: str
    plan: ProbePlan | None
    """None if the other process knows it."""
    cells: ProbeCells


class WovenFile:
    """Reads and empties the cells of one file."""

    def __init__(
        self, source: Source, path: str, plan: ProbePlan, cells: ProbeCells, problems: list[str]
    ) -> None:
        """`problems` receives a line for everything that cannot be counted."""
        self.source = source
        self.path = path
        """Where the file is on this machine."""
        self._plan = plan
        self._cells = cells
        self._traces = Traces(source, plan, problems)
        self._numbers = _NONE
        self._masks: list[int] = []
        self._at_import = 0
        self._reached: dict[Any, ReachedTargets] = {None: NOTHING}
        self._raised_masks: dict[tuple[int, int], int] = {}

    def enrol(self, catalogue: Catalogue) -> None:
        """Give the file's targets numbers in a catalogue."""
        catalogue.add_source(self.source)
        self._traces.catalogue = catalogue
        plan = self._plan
        numbers = [catalogue.number(target) for target in plan.targets_in(self.source)]
        self._numbers = np.array(numbers, np.uint32)
        self._masks = [plan.mask(fact) for fact in plan.probes]
        for bit, target in enumerate(plan.targets):
            if target[3] == 0:
                self._at_import |= 1 << bit

    @property
    def has_code(self) -> bool:
        """Whether anything of the file can be reached."""
        return bool(self._plan.targets)

    def written(self, with_plan: bool) -> WrittenFile:
        """Return what the file's probes wrote."""
        return WrittenFile(self.source, self.path, self._plan if with_plan else None, self._cells)

    def overwrite(self, written: WrittenFile) -> None:
        """Replace the contents of the cells; the objects stay, because code refers to them."""
        own, new = self._cells, written.cells
        own.hits[:], own.ways[:] = new.hits, new.ways
        own.raised.clear()
        own.raised.update(new.raised)
        own.states.clear()
        own.states.update(new.states)
        own.paths.clear()
        own.paths.update(new.paths)

    def reset(self) -> None:
        """Forget what was executed."""
        cells = self._cells
        if cells.hits != cells.zeros:  # most tests do not touch most files of a large program
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
        """Return what was executed, as a key for `reached`; None if nothing was."""
        cells = self._cells
        if cells.raised:
            return bytes(cells.hits), *sorted(cells.raised)
        return bytes(cells.hits) if cells.hits != cells.zeros else None

    def reached(self, state: Any) -> ReachedTargets:
        """Return the targets of a state."""
        reached = self._reached.get(state)
        if reached is None:
            if len(self._reached) >= _MAX_CACHED_STATES:
                self._reached = {None: NOTHING}
            reached = self._reached[state] = self._read_hits(state)
        return reached

    def _read_hits(self, state: Any) -> ReachedTargets:
        hits, *raised = state if isinstance(state, tuple) else (state,)
        mask = reduce(or_, compress(self._masks, hits), 0)
        for key in raised:
            mask |= self._raised_mask(key)
        outside = mask & self._at_import
        return ReachedTargets(self._in_mask(mask ^ outside), self._in_mask(outside))

    def found(self) -> list[int]:
        """Return the targets of paths and predicates; sets of them repeat too rarely to cache."""
        return self._traces.numbers(self._cells)

    def _in_mask(self, mask: int) -> Numbers:
        if not mask:
            return _NONE
        packed = np.frombuffer(mask.to_bytes((len(self._numbers) + 7) // 8, "little"), np.uint8)
        bits = np.unpackbits(packed, bitorder="little")
        return self._numbers[bits.nonzero()[0]]

    def _raised_mask(self, key: tuple[int, int]) -> int:
        mask = self._raised_masks.get(key)
        if mask is None:
            function, line = key
            fact = self._plan.functions[function].fact_at(line)
            mask = self._raised_masks[key] = self._plan.mask(fact)
        return mask
