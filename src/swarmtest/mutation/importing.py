"""Mutants that need an import of their own: which they are, and what tests say of them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from swarmtest.mutation.anew import IMPORT, Control, MutantJob, Suite, Survey
from swarmtest.mutation.imports import Imports
from swarmtest.mutation.matrix import CRASHED, PASSED, SLOW
from swarmtest.mutation.mutant import Mutant
from swarmtest.mutation.ordering import Order
from swarmtest.mutation.originals import Original
from swarmtest.targets import Source

TimeFor = Callable[[float], float]
"""From what is taken without a mutant to what may be taken."""


class Importing:
    """Runs mutants that are executed when the program is imported.

    `carried`: what `Imports.arrived` needs to have the tests. `refused` are mutants (by number)
    that could not be run after all, and why.
    """

    def __init__(
        self,
        imports: Imports,
        sources: Sequence[Source],
        carried: Any = None,
    ) -> None:
        self._imports = imports
        self._carried = carried
        self._files = {
            os.path.realpath(source.place): source
            for source in sources
            if imports.serves(os.path.realpath(source.place))
        }
        self._places = {source.path: file for file, source in self._files.items()}
        self.refused: dict[int, str] = {}
        self.unsteady: list[int] = []
        """Tests that end otherwise in a program that was imported anew: not used here."""

    def serves(self, path: str) -> bool:
        """Whether a file can be imported anew."""
        return path in self._places

    def at_import(self, time_for: TimeFor, memory: int) -> dict[str, frozenset[int]]:
        """The statements of functions that are executed before the first test, by file."""
        if not self._files:
            return {}
        seconds = time_for(max(map(self._imports.seconds, self._files)))
        found: dict[str, frozenset[int]] = {}
        for answer in self._imports.ask(Survey(self._files, seconds, memory)):
            found = answer.value or {}
        return found

    def outcomes(
        self,
        mutants: Mapping[int, Mutant],
        plan: Mapping[int, Sequence[int]],
        names: Sequence[str],
        originals: dict[int, Original],
        groups: Sequence[str],
        *,
        time_for: TimeFor,
        first_kill: bool,
        memory: int,
        workers: int,
    ) -> Iterator[tuple[int, int, int]]:
        """A mutant's number, a test (`IMPORT` stands for all of them), and the outcome.

        `plan` has the tests of each mutant.
        """
        longest = max(map(self._imports.seconds, self._files))
        seconds = {test: time_for(one.seconds + longest) for test, one in originals.items()}
        suite = Suite(self._files, names, originals, seconds, self._carried)
        tests, steps, imported = self._control(Control(suite, memory, workers))
        order = Order(suite.originals, groups)
        plan = {number: [test for test in some if test in tests] for number, some in plan.items()}
        for path, some in _by_path(mutants).items():
            if path not in imported or not tests:
                why = "its tests end otherwise when it is imported anew" if not tests else ""
                self.refused |= dict.fromkeys(some, why or f"{path} is not imported by any test")
                continue
            job = MutantJob(suite, some, plan, order, steps, first_kill, memory, workers)
            for answer in self._imports.ask(job, self._places[path]):
                value = answer.value or (SLOW if answer.silent else CRASHED)
                if answer.item[1] != IMPORT or value != PASSED:
                    yield *answer.item, value

    def _control(self, job: Control) -> tuple[set[int], int, set[str]]:
        """The tests that can be used, the steps of the import, and the files that it loads."""
        tests: set[int] = set()
        steps, imported = 0, set[str]()
        for answer in self._imports.ask(job):
            value, used, files = answer.value or (None, 0, ())
            steps = max(steps, used)
            imported.update(files)
            if value == PASSED:
                tests.add(answer.item)
            else:
                self.unsteady.append(answer.item)
        return tests, steps, imported


def _by_path(mutants: Mapping[int, Mutant]) -> dict[str, dict[int, Mutant]]:
    found: dict[str, dict[int, Mutant]] = defaultdict(dict)
    for number, mutant in mutants.items():
        found[mutant.path][number] = mutant
    return found
