"""Targets that are found on the way: paths (and what follows from them), states of predicates.

A path or a state is read once, when it is first seen; from then on it is looked up.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from itertools import chain, compress
from typing import Any

from swarmtest.instrument.facts import Function, Plan
from swarmtest.instrument.graph_paths import (
    PathIndex,
    TooManyPaths,
    du_paths_of,
    prime_paths,
    toured,
)
from swarmtest.instrument.live import Cells
from swarmtest.instrument.paths import blocks_of, entered_lines, successors
from swarmtest.instrument.snippets import CUT_WAY, RAISED_MARK
from swarmtest.instrument.ways import number_ways, symbols_of_way
from swarmtest.targets import Catalogue, Source, content_hash

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
