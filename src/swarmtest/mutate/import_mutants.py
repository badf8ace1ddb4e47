"""Mutants of code that runs at import: import the program again for each, then run the tests.

The processes that wait before the import (see `import_forks`) are given three jobs. The *survey*
counts the statements that run before the first test: mutants of these are run this way too, even if
their functions could be switched later. The *control* imports the program without a mutant and runs
every test; a test that does not end as it did before is not used here. Then each mutant is run in a
fork.

Any test may notice what ran at import, so every test counts as reaching it. A mutant that cannot be
imported is killed by every test that cannot run because of it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

from swarmtest.core.targets import Source
from swarmtest.mutate.generation import module_code, replacement
from swarmtest.mutate.import_forks import ImportChild, Imports, TestsOf
from swarmtest.mutate.kill_matrix import BROKEN, CRASHED, ENDLESS, PASSED, SLOW
from swarmtest.mutate.loaded_files import Order, OriginalOutcome, outcome_of
from swarmtest.mutate.mutant import Module, Mutant
from swarmtest.mutate.switching import Counts, Steps, counting, ticking, ticking_at_import
from swarmtest.processes.fork_tasks import ForkTask, TaskAnswer, Tell, leave

IMPORT = -1
"""Stands for a test in the first item of a mutant, whose outcome is that of the import."""
_CHUNK = 32

TimeFor = Callable[[float], float]
"""Returns the time limit with a mutant for the seconds that something takes without one."""


class ImportMutantRunner:
    """Runs mutants of code that is executed when the program is imported.

    `carried` is the data from which the callback of `Imports.arrived` makes the tests. `refused`
    has the mutants (by number) that could not be run after all, with the reason.
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
        """Tests that end differently in a program that was imported again; they are not used."""

    def serves(self, path: str) -> bool:
        """Return whether a file can be imported again."""
        return path in self._places

    def at_import(self, time_for: TimeFor, memory: int) -> dict[str, frozenset[int]]:
        """Return the statements of functions that are executed before the first test, by file."""
        if not self._files:
            return {}
        seconds = time_for(max(map(self._imports.seconds, self._files)))
        executed: dict[str, frozenset[int]] = {}
        for answer in self._imports.ask(Survey(self._files, seconds, memory)):
            executed = answer.value or {}
        return executed

    def outcomes(
        self,
        mutants: Mapping[int, Mutant],
        plan: Mapping[int, Sequence[int]],
        names: Sequence[str],
        originals: dict[int, OriginalOutcome],
        groups: Sequence[str],
        *,
        time_for: TimeFor,
        first_kill: bool,
        memory: int,
        workers: int,
    ) -> Iterator[tuple[int, int, int]]:
        """Yield the number of a mutant, a test (`IMPORT` stands for all tests), and the outcome.

        `plan` has the tests of each mutant.
        """
        longest = max(map(self._imports.seconds, self._files))
        seconds = {
            test: time_for(original.seconds + longest) for test, original in originals.items()
        }
        suite = ImportedSuite(self._files, names, originals, seconds, self._carried)
        tests, steps, imported = self._control(ControlJob(suite, memory, workers))
        order = Order(suite.originals, groups)
        plan = {
            number: [test for test in planned if test in tests] for number, planned in plan.items()
        }
        for path, of_file in _by_path(mutants).items():
            if path not in imported or not tests:
                why = "its tests end otherwise when it is imported again" if not tests else ""
                self.refused |= dict.fromkeys(of_file, why or f"{path} is not imported by any test")
                continue
            job = MutantJob(suite, of_file, plan, order, steps, first_kill, memory, workers)
            for answer in self._imports.ask(job, self._places[path]):
                value = answer.value or (SLOW if answer.silent else CRASHED)
                if answer.item[1] != IMPORT or value != PASSED:
                    yield *answer.item, value

    def _control(self, job: ControlJob) -> tuple[set[int], int, set[str]]:
        """Return the tests that can be used, the steps of the import, and the files it loads."""
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
    by_path: dict[str, dict[int, Mutant]] = defaultdict(dict)
    for number, mutant in mutants.items():
        by_path[mutant.path][number] = mutant
    return by_path


# The jobs, and what they share.


@dataclass
class ImportedSuite:
    """The files that may be mutated, and the tests with their names and normal endings."""

    files: Mapping[str, Source]
    """The files by their path on disk, without symbolic links."""
    names: Sequence[str] = ()
    originals: dict[int, OriginalOutcome] = field(default_factory=dict)
    seconds: Mapping[int, float] = field(default_factory=dict)
    """How long each test may take, together with the import before it."""
    carried: Any = None
    """What a fork needs to make the tests; for tests of a subject, their data."""

    def __post_init__(self) -> None:
        self.originals = {
            test: replace(original, reached=()) for test, original in self.originals.items()
        }
        self._parsed: dict[str, Module] = {}

    def parse(self) -> None:
        """Parse the files before forking, so that each fork has a copy that it may change."""
        self._parsed = {
            file: Module(source.text, source.place) for file, source in self.files.items()
        }

    def module(self, file: str, place: str) -> Module:
        """Return a parsed, unchanged file whose code objects will have the file name `place`."""
        module = self._parsed.pop(file, None)
        if module is None:  # imported twice, under two names
            return Module(self.files[file].text, place)
        module.filename = place
        return module


@dataclass
class Survey:
    """The job that finds the statements of functions that run before the first test."""

    files: Mapping[str, Source]
    seconds: float
    memory: int
    workers: int = 1

    def tasks(self) -> Iterator[ForkTask]:
        """Yield one task; its answer has the statements of each file, by `Source.path`."""
        yield ForkTask(["survey"], [self.seconds])

    def learn(self, answer: TaskAnswer) -> None:
        """Do nothing: there is one answer only."""

    def child(self, items: list[Any], tell: Tell) -> ImportChild:
        """Return a child that counts statements."""
        return _Counting(self.files, tell)


class _Counting:
    """Imports the program with code that counts statements, and reports those that ran."""

    def __init__(self, files: Mapping[str, Source], tell: Tell) -> None:
        self._files = files
        self._tell = tell
        self._counts: dict[str, Counts] = {}

    def code(self, file: str, place: str) -> CodeType | None:
        source = self._files.get(file)
        if source is None:
            return None
        module = Module(source.text, place)
        counts = self._counts.setdefault(source.path, Counts(module))
        return counts.bind(module_code(counting(module)))

    def arrive(self, tests_of: TestsOf) -> None:
        self._tell(
            {
                path: frozenset(i for i, count in enumerate(counts.of_statements) if count)
                for path, counts in self._counts.items()
            }
        )

    def fail(self) -> None:
        self._tell({})


@dataclass
class ControlJob:
    """The job that runs every test without a mutant in a program that is imported again.

    An answer has the outcome, the steps that the import took, and the files that were imported.
    """

    suite: ImportedSuite
    memory: int
    workers: int

    def tasks(self) -> Iterator[ForkTask]:
        """Yield the tests in chunks, so that several processes share the work."""
        self.suite.parse()
        tests = list(self.suite.originals)
        for i in range(0, len(tests), _CHUNK):
            chunk = tests[i : i + _CHUNK]
            yield ForkTask(chunk, [self.suite.seconds[test] for test in chunk])

    def learn(self, answer: TaskAnswer) -> None:
        """Do nothing: the order of the tests does not matter here."""

    def child(self, items: list[int], tell: Tell) -> ImportChild:
        """Return a child that runs tests."""
        return _Running(self.suite, items, tell)


@dataclass
class MutantJob:
    """The job that imports the program as each of some mutants and runs tests on it.

    Items are pairs of a mutant's number and a test; the first of each mutant has `IMPORT` as test.
    """

    suite: ImportedSuite
    mutants: Mapping[int, Mutant]
    tests: Mapping[int, Sequence[int]]
    order: Order
    import_steps: int
    first_kill: bool
    memory: int
    workers: int

    def tasks(self) -> Iterator[ForkTask]:
        """Yield one task for each mutant."""
        self.suite.parse()
        for number in self.mutants:
            tests = self.order.of(number, list(self.tests[number]))
            longest = max(self.suite.seconds.values())
            seconds = [longest, *(self.suite.seconds[test] for test in tests)]
            pairs = [(number, test) for test in (IMPORT, *tests)]
            yield ForkTask(pairs, seconds, _settles_all if self.first_kill else _settles)

    def learn(self, answer: TaskAnswer) -> None:
        """Update the order, in which tests that kill come first."""
        number, test = answer.item
        if test != IMPORT:
            self.order.learn(number, test, answer.value != PASSED)

    def child(self, items: list[tuple[int, int]], tell: Tell) -> ImportChild:
        """Return a child that imports a mutant and runs tests on it."""
        mutant = self.mutants[items[0][0]]
        tests = [test for _, test in items]
        return _Mutated(self.suite, tests, tell, mutant, self.import_steps, self.first_kill)


def _settles(pair: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether all items are settled: a process that ends in the import always will."""
    return pair[1] == IMPORT


def _settles_all(pair: tuple[int, int], other: tuple[int, int]) -> bool:
    return True


class _Running:
    """Imports the program without a mutant and runs tests."""

    def __init__(self, suite: ImportedSuite, tests: list[int], tell: Tell) -> None:
        self._suite = suite
        self._tests = tests
        self._tell = tell
        self._steps = Steps()
        self._steps.count()
        self._imported: set[str] = set()

    def code(self, file: str, place: str) -> CodeType | None:
        source = self._suite.files.get(file)
        if source is None:
            return None
        self._imported.add(source.path)
        tree = self._tree(source, self._suite.module(file, place))
        return self._steps.bind(module_code(ticking_at_import(tree)))

    def _tree(self, source: Source, module: Module) -> Module:
        return ticking(module)

    def arrive(self, tests_of: TestsOf) -> None:
        used = self._steps.counted()
        for value in self._values(tests_of):
            self._tell((value, used, frozenset(self._imported)))

    def fail(self) -> None:
        for _ in self._tests:
            self._tell((BROKEN, 0, frozenset()))

    def _values(self, tests_of: TestsOf) -> Iterator[int]:
        """Run the tests and yield the outcome of each.

        A test that does not exist in this import passes, unless some tests could not be imported.
        """
        tests, are_all = tests_of(self._suite.carried)
        number_of = {name: number for number, name in enumerate(tests.names)}
        numbers = [number_of.get(self._suite.names[test]) for test in self._tests]
        following: list[int | None] = [None]
        for number in reversed(numbers[1:]):
            following.append(following[-1] if number is None else number)
        for test, number, after in zip(self._tests, numbers, reversed(following), strict=True):
            if number is None:
                yield PASSED if are_all else BROKEN
            else:
                original = self._suite.originals[test]
                yield outcome_of(tests, number, after, original, self._steps)


class _Mutated(_Running):
    """Imports the program as a mutant and runs tests."""

    def __init__(
        self,
        suite: ImportedSuite,
        tests: list[int],
        tell: Tell,
        mutant: Mutant,
        import_steps: int,
        first_kill: bool,
    ) -> None:
        super().__init__(suite, tests, tell)
        self._steps.allow(import_steps)
        self._mutant = mutant
        self._first_kill = first_kill

    def _tree(self, source: Source, module: Module) -> Module:
        if source.path != self._mutant.path:
            return ticking(module, loops_only=True)
        spot = ticking(module).spots[self._mutant.place]
        spot.replace(replacement(spot, self._mutant.change))
        return module

    def arrive(self, tests_of: TestsOf) -> None:
        if self._steps.exceeded:
            self.fail()
            return
        if self._tests[0] == IMPORT:
            self._tell(PASSED)
            del self._tests[0]
        left = len(self._tests)
        for value in self._values(tests_of):
            settled = self._first_kill and value > PASSED
            self._tell(value, left if settled else 1)
            left -= 1
            if settled:
                return
            if value == ENDLESS:
                # A test that was stopped at an arbitrary point may have left any state behind.
                leave(replaced=True)

    def fail(self) -> None:
        self._tell(ENDLESS if self._steps.exceeded else BROKEN, len(self._tests))
