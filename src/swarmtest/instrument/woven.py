"""One instrumented file at run time: from the state of its cells to the targets that were hit."""

from __future__ import annotations

import hashlib
from typing import Any

from swarmtest.instrument.facts import Function, Plan
from swarmtest.instrument.graph_paths import PathIndex, du_paths_of, prime_paths, toured
from swarmtest.instrument.live import Cells
from swarmtest.instrument.paths import blocks_of, successors
from swarmtest.instrument.snippets import ENDED_BY_EXCEPTION
from swarmtest.targets import Catalogue, Source, Target, content_hash

_SHOWN_BLOCKS = 2000
"""Blocks of one path that its description spells out."""


class WovenFile:
    """Reads and empties the cells of one file."""

    def __init__(self, source: Source, path: str, plan: Plan, cells: Cells) -> None:
        self.source = source
        self.path = path
        """Where the file is on this machine."""
        self._plan = plan
        self._cells = cells
        self._catalogue = Catalogue()
        self._numbers: list[int] = []
        self._at_import: set[int] = set()
        self._nothing = bytes(len(plan.probes))
        self._of_path: dict[str, frozenset[int]] = {}
        self._of_state: dict[tuple[int, int], int] = {}
        self._primes: dict[int, tuple[PathIndex, list[int]]] = {}

    def enrol(self, catalogue: Catalogue) -> None:
        """Number the file's targets in a catalogue."""
        catalogue.add_source(self.source)
        self._catalogue = catalogue
        self._numbers = [
            catalogue.number(self._target(kind, name, line, self._plan.functions[f], content))
            for kind, name, line, f, content in self._plan.targets
        ]
        self._at_import = {
            number
            for number, target in zip(self._numbers, self._plan.targets, strict=True)
            if target[3] == 0
        }

    def reset(self) -> None:
        """Forget what was executed."""
        cells = self._cells
        cells.hits[:] = cells.zeros
        if cells.raised:
            cells.raised.clear()
        if cells.paths:
            cells.paths.clear()
        if cells.states:
            cells.states.clear()

    def state(self) -> Any:
        """What was executed, as something that can be looked up."""
        cells = self._cells
        if cells.raised or cells.paths or cells.states:
            return (
                bytes(cells.hits),
                frozenset(cells.raised),
                frozenset(cells.paths),
                frozenset(cells.states),
            )
        return bytes(cells.hits)

    def numbers(self, state: Any) -> tuple[set[int], set[int]]:
        """The targets of a state: those that tests reach, and those that imports reach."""
        if state == self._nothing:
            return set(), set()
        hits, raised, paths, states = state if isinstance(state, tuple) else (state, (), (), ())
        facts = [fact for fact, hit in zip(self._plan.probes, hits, strict=True) if hit]
        for function, line in raised:
            fact = self._plan.functions[function].fact_at(line)
            if fact >= 0:
                facts.append(fact)
        found = {self._numbers[target] for target in self._plan.targets_of(facts)}
        for path in paths:
            found |= self._of_path.get(path) or self._read_path(path)
        for key in states:
            number = self._of_state.get(key)
            found.add(self._read_state(key) if number is None else number)
        outside = found & self._at_import
        return found - outside, outside

    def _target(
        self, kind: str, name: str, line: int, function: Function, content: str, detail: str = ""
    ) -> Target:
        path = self.source.path
        full = f"{path}:{name}"
        return Target(kind, full, path, line, function.name, content, self.source.id, detail)

    # Paths

    def _read_path(self, path: str) -> frozenset[int]:
        number, symbols = ord(path[0]), path[1:]
        function = self._plan.functions[number]
        blocks = blocks_of(function.outline, symbols)
        found = set()
        kinds = self._plan.kinds
        if "path" in kinds:
            found.add(self._path_number(function, symbols, blocks))
        if "prime" in kinds:
            primes, numbers = self._primes.get(number) or self._list_primes(number)
            found |= {numbers[i] for i in toured(blocks, primes)}
        if "du" in kinds:
            found |= set(self._du_numbers(function, blocks))
        answer = self._of_path[path] = frozenset(found)
        return answer

    def _path_number(self, function: Function, symbols: str, blocks: list[int]) -> int:
        digest = hashlib.blake2b(symbols.encode(), digest_size=6).hexdigest()
        end = "exception" if symbols.endswith(ENDED_BY_EXCEPTION) else "exit"
        shown = self._lines(function, blocks[:_SHOWN_BLOCKS])
        more = f" ... {len(blocks) - _SHOWN_BLOCKS} more" if len(blocks) > _SHOWN_BLOCKS else ""
        name = f"{function.name}#{digest}"
        detail = f"{shown}{more} {end}"
        content = self._content(function, blocks)
        return self._catalogue.number(
            self._target("path", name, function.line, function, content, detail)
        )

    def _lines(self, function: Function, blocks: Any) -> str:
        return " ".join(str(function.outline[0][block][0]) for block in blocks)

    def _content(self, function: Function, blocks: Any) -> str:
        """A hash of the text of the blocks that are passed, in order, each once."""
        lines = self.source.text.splitlines()
        once = dict.fromkeys(blocks)
        spans = [function.outline[0][block][:2] for block in once]
        return content_hash("\n".join("\n".join(lines[a - 1 : b]) for a, b in spans))

    def _list_primes(self, number: int) -> tuple[PathIndex, list[int]]:
        function = self._plan.functions[number]
        paths = prime_paths([[s for s in f if s >= 0] for f in successors(function.outline)])
        numbers = []
        for path in paths:
            name = f"{function.name} {self._lines(function, path).replace(' ', '-')}"
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
            shown = self._lines(function, path).replace(" ", "-")
            name = f"{function.name} {variable} {shown}"
            content = self._content(function, path)
            target = self._target("du", name, described[path[0]][0], function, content)
            numbers.append(self._catalogue.number(target))
        return numbers

    # Predicates

    def _read_state(self, key: tuple[int, int]) -> int:
        fact, state = key
        line, function = self._place(fact)
        vector = "".join("-FT"[state >> 2 * i & 3] for i in range(len(function.predicates)))
        detail = ", ".join(
            f"{'not ' if value == 'F' else ''}({text})"
            for text, value in zip(function.predicates, vector, strict=True)
            if value != "-"
        )
        content = content_hash(f"{self.source.text.splitlines()[line - 1]}\n{detail}")
        name = f"{line} {vector}".rstrip()
        number = self._catalogue.number(
            self._target("predicate", name, line, function, content, detail)
        )
        self._of_state[key] = number
        return number

    def _place(self, fact: int) -> tuple[int, Function]:
        for function in self._plan.functions:
            for first, _, one in function.spans:
                if one == fact:
                    return first, function
        raise LookupError(fact)
