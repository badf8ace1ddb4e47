"""Find out which tests kill which mutants.

A test kills a mutant if it ends differently than without it: it passed and now fails, it fails in
another way, it ends its process, or it takes many times the steps or far too much time. It can do
so only if it executes the changed statement, so no other tests are run.

First every test is run once without a mutant, with all statements counted: that shows how it ends,
what it reaches, how many steps it takes and how long. A test that ends differently in a second run
without a mutant is flaky, and is left out.

Then forks run a few mutants each, one after the other. What one mutant leaves behind in the process
must not be attributed to the next: after a kill, the test that killed is run again without the
mutant, and if it does not end as it should, the next mutant gets a new fork. If that is not safe
enough, each mutant can have its own fork (`KillLimits.mutants_per_fork`).

Code that runs when the program is imported has already run by then. For mutants of such code the
program is imported again (`import_mutants`), after all other mutants; the same is done for tests
that import the program themselves.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from swarmtest.mutate.baseline import Baseline, KillLimits
from swarmtest.mutate.import_mutants import IMPORT, ImportMutantRunner
from swarmtest.mutate.kill_matrix import CRASHED, ENDLESS, NOT_RUN, PASSED, SLOW, KillMatrix
from swarmtest.mutate.loaded_files import Order, OriginalOutcome, Tests, in_turn
from swarmtest.mutate.mutant import Mutant
from swarmtest.mutate.switching import LiveFile, NotSwitchable
from swarmtest.processes.fork_tasks import Forks, ForkTask, Replace, Tell


class MutantBatch:
    """What one fork does: run a few mutants, one after the other, each with its tests.

    With `first_kill` a mutant is done after the first test that kills it.
    """

    def __init__(self, runner: Runner, mutants: Sequence[Mutant], first_kill: bool) -> None:
        self._runner = runner
        self._mutants = mutants
        self._first_kill = first_kill

    def run(self, pairs: list[tuple[int, int]], tell: Tell) -> None:
        """Run pairs of a mutant's number and a test; `tell` each outcome."""
        groups = [
            (number, [test for _, test in group])
            for number, group in itertools.groupby(pairs, key=lambda pair: pair[0])
        ]
        for number, tests in groups:
            mutant = self._mutants[number]
            file = self._runner.file_of(mutant)
            before = file.changes
            try:
                file.switch_on(mutant)
            except NotSwitchable as error:
                tell(str(error), len(tests))
                continue
            suspects = self._run_mutant(tests, tell)
            file.restore(before)
            if number != groups[-1][0]:
                self._replace_fork_if_spoilt(suspects)

    def _run_mutant(self, tests: list[int], tell: Tell) -> set[int]:
        """Run tests on the current mutant; return those that may have spoilt the process.

        They are the last test that was stopped for its steps and the last other test that killed.
        """
        suspects: dict[bool, int] = {}
        for i, (test, following) in enumerate(in_turn(tests)):
            outcome = self._runner.baseline.outcome(test, following)
            settled = self._first_kill and outcome > PASSED
            tell(outcome, len(tests) - i if settled else 1)
            if outcome > PASSED:
                suspects[outcome == ENDLESS] = test
            if settled:
                break
        with _replaced_on_failure():
            self._runner.baseline.tests.finish()
        return set(suspects.values())

    def _replace_fork_if_spoilt(self, killers: set[int]) -> None:
        """Check that tests that killed the mutant end as they should without it."""
        if any(self._runner.baseline.outcome(killer) != PASSED for killer in killers):
            raise Replace


@contextlib.contextmanager
def _replaced_on_failure() -> Iterator[None]:
    try:
        yield
    except BaseException:
        raise Replace from None


Show = Callable[[int, int], None]
"""Called with the number of mutants that are done and the number of all mutants."""


class Runner:
    """Runs tests against mutants of loaded files and compares them with the baseline.

    `baseline.run()` must be called before `matrix()`.
    """

    def __init__(
        self,
        tests: Tests,
        files: Sequence[LiveFile],
        limits: KillLimits | None = None,
        workers: int = 2,
        importing: ImportMutantRunner | None = None,
    ) -> None:
        self.baseline = Baseline(tests, files, limits or KillLimits(), workers)
        self._tests = tests
        self._by_path = {file.source.path: i for i, file in enumerate(self.baseline.files)}
        self._limits = self.baseline.limits
        self._workers = workers
        self._importing = importing

    @property
    def originals(self) -> dict[int, OriginalOutcome]:
        """How each test ends without a mutant; tests that are left out are missing."""
        return self.baseline.originals

    def matrix(
        self,
        mutants: Sequence[Mutant],
        *,
        first_kill: bool = False,
        on_progress: Show | None = None,
    ) -> KillMatrix:
        """Run on each mutant the tests that reach it, with `first_kill` up to the first kill."""
        outcomes = np.zeros((len(mutants), len(self._tests.names)), np.uint8)
        at_import = self._run_at_import(mutants)
        reached = self._reached(mutants)
        refused: dict[int, str] = {}
        order = Order(self.originals, [_group_of(mutant) for mutant in mutants])
        batch = MutantBatch(self, mutants, first_kill)
        forks = Forks(batch.run, self._workers, self._limits.memory)
        started: set[int] = set()
        for answer in forks.answers(self._tasks(mutants, at_import, reached, order, first_kill)):
            number, test = answer.item
            if isinstance(answer.value, str):
                refused[number] = answer.value
                continue
            value = answer.value or (SLOW if answer.silent else CRASHED)
            outcomes[number, test] = value
            order.learn(number, test, value > PASSED)
            if number not in started and on_progress is not None:
                started.add(number)
                on_progress(len(started), len(mutants))
        # A mutant that could not be switched on may still work if it is there from the import on.
        at_import |= {number for number in refused if self._can_be_imported(mutants[number])}
        refused = {number: why for number, why in refused.items() if number not in at_import}
        settled = (outcomes > PASSED).any(1) if first_kill else np.zeros(len(mutants), bool)
        plan = self._import_plan(mutants, at_import, reached, settled)
        for number in self._run_imported(mutants, plan, reached, outcomes, first_kill):
            if number not in started and on_progress is not None:
                started.add(number)
                on_progress(len(started), len(mutants))
        if on_progress is not None:
            on_progress(len(mutants), len(mutants))
        if self._importing is not None:
            refused |= {i: why for i, why in self._importing.refused.items() if i in at_import}
        switchable = [
            i not in refused and (i in at_import or self.file_of(mutant).switchable(mutant))
            for i, mutant in enumerate(mutants)
        ]
        return self._kill_matrix(mutants, reached, outcomes, switchable, first_kill)

    def _can_be_imported(self, mutant: Mutant) -> bool:
        return self._importing is not None and self._importing.serves(mutant.path)

    def _run_at_import(self, mutants: Sequence[Mutant]) -> set[int]:
        """Return the numbers of the mutants for which the program must be imported again."""
        if self._importing is None:
            return set()
        executed = self._importing.at_import(self._limits.with_mutant, self._limits.memory)
        return {
            number
            for number, mutant in enumerate(mutants)
            if self._importing.serves(mutant.path)
            and (
                not self.file_of(mutant).switchable(mutant)
                or self.file_of(mutant).statement(mutant) in executed.get(mutant.path, ())
            )
        }

    def _import_plan(
        self, mutants: Sequence[Mutant], at_import: set[int], reached: Any, settled: Any
    ) -> dict[int, list[int]]:
        """Return the tests for which the program is imported as a mutant, by mutant.

        For a mutant of code that runs at import these are all tests, for any other those that
        import the program themselves.
        """
        used = sorted(self.originals)
        importers = [test for test in used if self.originals[test].imports]
        plan = dict.fromkeys(sorted(at_import), used)
        if importers and self._importing is None:
            why = "imports the program itself, which is loaded already: not used on mutants"
            self.baseline.leave_out(importers, why)
            reached[:, importers] = False
        elif importers:
            for number in set(range(len(mutants))) - at_import - {*np.flatnonzero(settled)}:
                tests = [test for test in importers if reached[number, test]]
                if tests and self._can_be_imported(mutants[number]):
                    plan[number] = tests
        return plan

    def _run_imported(
        self,
        mutants: Sequence[Mutant],
        plan: dict[int, list[int]],
        reached: Any,
        outcomes: Any,
        first_kill: bool,
    ) -> Iterator[int]:
        """Run mutants in a program that is imported again; yield each one's number.

        Any test may notice what runs at import, so all tests of the plan count as reaching it.
        """
        if not plan or self._importing is None:
            return
        results = self._importing.outcomes(
            {number: mutants[number] for number in plan},
            plan,
            self._tests.names,
            self.originals,
            [_group_of(mutant) for mutant in mutants],
            time_for=self._limits.with_mutant,
            first_kill=first_kill,
            memory=self._limits.memory,
            workers=self._workers,
        )
        for number, test, value in results:
            outcomes[number, plan[number] if test == IMPORT else test] = value
            yield number
        unsteady = self._importing.unsteady
        for number, tests in plan.items():
            reached[number, tests] = number not in self._importing.refused
            reached[number, unsteady] = False
            outcomes[number, unsteady] = NOT_RUN
        if unsteady:
            why = "ends otherwise in a program that is imported again: not used on what runs there"
            self.baseline.leave_out(unsteady, why)

    def _reached(self, mutants: Sequence[Mutant]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        reached = np.zeros((len(mutants), len(self._tests.names)), bool)
        for i, mutant in enumerate(mutants):
            file = self._by_path[mutant.path]
            statement = self.baseline.files[file].statement(mutant)
            for test, original in self.originals.items():
                reached[i, test] = statement in original.reached[file]
        return reached

    def _tasks(
        self,
        mutants: Sequence[Mutant],
        at_import: set[int],
        reached: Any,
        order: Order,
        first_kill: bool,
    ) -> Iterator[ForkTask]:
        """Yield tasks of a few mutants each, with the tests that reach them."""
        pairs: list[tuple[int, int]] = []
        count = 0
        for number, mutant in enumerate(mutants):
            if number not in at_import and self.file_of(mutant).switchable(mutant):
                usable = [
                    test
                    for test in np.flatnonzero(reached[number]).tolist()
                    if not self.originals[test].imports
                ]
                tests = order.of(number, usable)
                pairs += [(number, test) for test in tests]
                count += bool(tests)
            if count == self._limits.mutants_per_fork or mutant is mutants[-1]:
                seconds = [self.baseline.seconds_for(test) for _, test in pairs]
                yield ForkTask(pairs, seconds, _same_mutant if first_kill else _never)
                pairs, count = [], 0

    def file_of(self, mutant: Mutant) -> LiveFile:
        """Return the file that a mutant changes."""
        return self.baseline.files[self._by_path[mutant.path]]

    def _kill_matrix(
        self,
        mutants: Sequence[Mutant],
        reached: Any,
        outcomes: Any,
        switchable: list[bool],
        first_kill: bool,
    ) -> KillMatrix:
        used = sorted(self.originals)
        rows = [i for i, can in enumerate(switchable) if can]
        return KillMatrix(
            mutants=tuple(mutants[i] for i in rows),
            tests=tuple(self._tests.names[t] for t in used),
            outcomes=outcomes[np.ix_(rows, used)],
            reached=reached[np.ix_(rows, used)],
            seconds=tuple(self.originals[t].seconds for t in used),
            complete=not first_kill,
            not_switchable=tuple(m for m, can in zip(mutants, switchable, strict=True) if not can),
            left_out={why: tuple(names) for why, names in self.baseline.left_out.items()},
        )


def _group_of(mutant: Mutant) -> str:
    """Return the mutant's function: tests that killed one mutant of it are tried first."""
    return f"{mutant.path} {mutant.function}"


# Which other pairs of a task are settled when the process ends in one pair.


def _same_mutant(pair: tuple[int, int], other: tuple[int, int]) -> bool:
    return pair[0] == other[0]


def _never(pair: tuple[int, int], other: tuple[int, int]) -> bool:
    return False
