"""One instrumented file at run time: from the state of its cells to the targets that were hit.

This is on the way of every test, so what is not new is looked up, and what is new (for most tests
of a campaign, something is) costs a few operations on whole sets.
"""

from __future__ import annotations

import hashlib
import re
from functools import reduce
from itertools import compress
from operator import or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from swarmtest.instrument.snippets import RAISED_MARK
from swarmtest.targets import Catalogue, Source, Target, content_hash

Numbers = NDArray[np.uint32]

_RAISED = re.compile(f"{RAISED_MARK}(\\d+){RAISED_MARK}")
_SHOWN = 2000
"""Decisions of one path that its description spells out."""
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


class WovenFile:
    """Reads and empties the cells of one file."""

    def __init__(self, source: Source, path: str, plan: Plan, cells: Cells) -> None:
        self.source = source
        self.path = path
        """Where the file is on this machine."""
        self.problems: list[str] = []
        self._plan = plan
        self._cells = cells
        self._lines = source.text.split("\n")
        self._catalogue = Catalogue()
        self._numbers = _NONE
        self._masks: list[int] = []
        self._at_import = 0
        self._reached: dict[Any, Reached] = {None: NOTHING}
        self._of_path: dict[str, tuple[int, ...]] = {}
        self._of_state: dict[tuple[int, int], int] = {}
        self._of_raised: dict[tuple[int, int], int] = {}
        self._primes: dict[int, tuple[PathIndex, list[int]]] = {}
        self._described: dict[int, tuple[dict[int, str], str]] = {}
        self._places: dict[int, tuple[int, Function]] = {}

    def enrol(self, catalogue: Catalogue) -> None:
        """Number the file's targets in a catalogue."""
        catalogue.add_source(self.source)
        self._catalogue = catalogue
        plan = self._plan
        numbers = [
            catalogue.number(self._target(kind, name, line, plan.functions[f], content))
            for kind, name, line, f, content in plan.targets
        ]
        self._numbers = np.array(numbers, np.uint32)
        self._masks = [plan.mask(fact) for fact in plan.probes]
        for bit, target in enumerate(plan.targets):
            if target[3] == 0:
                self._at_import |= 1 << bit

    def reset(self) -> None:
        """Forget what was executed."""
        cells = self._cells
        if cells.hits != cells.zeros:  # most files of a large program are untouched by most tests
            cells.hits[:] = cells.zeros
        if cells.raised:
            cells.raised.clear()
        if cells.paths:
            cells.paths.clear()
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
        cells = self._cells
        found: list[int] = []
        if cells.paths:
            known = self._of_path
            for path in cells.paths:
                found += known[path] if path in known else self._read_path(path)
        if cells.states:
            found += [self._read_state(key) for key in cells.states]
        return found

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

    def _target(
        self, kind: str, name: str, line: int, function: Function, content: str, detail: str = ""
    ) -> Target:
        path = self.source.path
        full = f"{path}:{name}"
        return Target(kind, full, path, line, function.name, content, self.source.id, detail)

    # Paths

    def _read_path(self, path: str) -> tuple[int, ...]:
        number = ord(path[0])
        function = self._plan.functions[number]
        kinds = self._plan.kinds
        found: list[int] = []
        if "path" in kinds:
            found.append(self._path_number(number, function, path))
        if "prime" in kinds or "du" in kinds:
            blocks = blocks_of(function.outline, path[1:])
            if "prime" in kinds:
                primes, numbers = self._primes.get(number) or self._list_primes(number)
                found += [numbers[i] for i in toured(blocks, primes)]
            if "du" in kinds:
                found += self._du_numbers(function, blocks)
        answer = self._of_path[path] = tuple(found)
        return answer

    def _path_number(self, number: int, function: Function, path: str) -> int:
        """A path's target. Told are the blocks that decisions lead to; the others follow."""
        if number not in self._described:
            blocks = function.outline[0]
            content = self._content(function, range(len(blocks)))
            self._described[number] = entered_lines(function.outline), content
        lines, content = self._described[number]
        digest = hashlib.blake2b(path.encode(), digest_size=6).hexdigest()
        shown = path[1 : _SHOWN + 1].translate(lines)
        more = f"... {len(path) - _SHOWN:,} more " if len(path) > _SHOWN else ""
        shown = _RAISED.sub(r"raised:\1 ", shown)
        end = "exception" if path.endswith(RAISED_MARK) else "exit"
        name = f"{function.name}#{digest}"
        detail = f"{function.line} {shown}{more}{end}"
        target = self._target("path", name, function.line, function, content, detail)
        return self._catalogue.number(target)

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
            self.problems.append(
                f"{self.source.path}:{function.line}: {function.name} has {error}: its prime paths "
                "are not counted"
            )
        numbers = []
        for path in paths:
            name = f"{function.name} {self._through(function, path)}"
            line = function.outline[0][path[0]][0]
            content = self._content(function, path)
            target = self._target("prime", name, line, function, content)
            numbers.append(self._catalogue.number(target))
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
            target = self._target("du", name, described[path[0]][0], function, content)
            numbers.append(self._catalogue.number(target))
        return numbers

    # Predicates

    def _read_state(self, key: tuple[int, int]) -> int:
        known = self._of_state.get(key)
        if known is not None:
            return known
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
        target = self._target("predicate", name, line, function, content, detail)
        number = self._of_state[key] = self._catalogue.number(target)
        return number

    def _place(self, fact: int) -> tuple[int, Function]:
        if not self._places:
            self._places = {
                one: (first, function)
                for function in self._plan.functions
                for first, _, one in function.spans
            }
        return self._places[fact]
