"""One instrumented file at run time: from the state of its cells to the targets that were hit.

This is on the way of every test, so what is not new is looked up, and what is new (for most tests
of a campaign, something is) costs a few operations on whole sets.
"""

from __future__ import annotations

from functools import reduce
from itertools import compress
from operator import or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swarmtest.instrument.facts import Plan
from swarmtest.instrument.live import Cells
from swarmtest.instrument.traces import Traces
from swarmtest.targets import Catalogue, Source

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
