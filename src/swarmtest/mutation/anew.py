"""Mutants of what runs at import: for each, the program is imported anew, then tests are run.

Three jobs for the processes that stand before the import (see `imports`). The *survey* counts what
is executed up to the first test: mutants there are run this way, too, although functions could be
switched later. The *control* imports the program without a mutant and runs every test: one that
does not end as it did before is not used here. Then each mutant has its fork.

Every test may notice what was executed at import, so every test counts as reaching it. A mutant
that cannot be imported is killed by every test that cannot be run because of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

from swarmtest.mutation.compiling import module_code, replacement
from swarmtest.mutation.forks import Answer, Task, Tell, leave
from swarmtest.mutation.imports import Child, TestsOf
from swarmtest.mutation.matrix import BROKEN, ENDLESS, PASSED
from swarmtest.mutation.mutant import Mutant
from swarmtest.mutation.ordering import Order
from swarmtest.mutation.originals import Original, outcome_of
from swarmtest.mutation.steps import Counts, Steps, counting, ticking, ticking_at_import
from swarmtest.mutation.tree import Module
from swarmtest.targets import Source

IMPORT = -1
"""Stands for a test in the first item of a mutant: what came of the import."""
_CHUNK = 32


@dataclass
class Suite:
    """The files that may be mutated, and the tests: how they are called and how they end."""

    files: Mapping[str, Source]
    """By where they are, without links."""
    names: Sequence[str] = ()
    originals: dict[int, Original] = field(default_factory=dict)
    seconds: Mapping[int, float] = field(default_factory=dict)
    """What each test may take, with the import before it."""
    carried: Any = None
    """What a fork needs to have the tests: of a subject, their data."""

    def __post_init__(self) -> None:
        self.originals = {
            test: replace(original, reached=()) for test, original in self.originals.items()
        }
        self._parsed: dict[str, Module] = {}

    def parse(self) -> None:
        """Parse the files before forks do: each fork has a copy that it may change."""
        self._parsed = {file: Module(one.text, one.place) for file, one in self.files.items()}

    def module(self, file: str, place: str) -> Module:
        """A file that nobody has changed yet, which code objects are to call `place`."""
        module = self._parsed.pop(file, None)
        if module is None:  # imported twice, under two names
            return Module(self.files[file].text, place)
        module.filename = place
        return module


@dataclass
class Survey:
    """Which statements of functions are executed before the first test."""

    files: Mapping[str, Source]
    seconds: float
    memory: int
    workers: int = 1

    def tasks(self) -> Iterator[Task]:
        """One; its answer has the statements of each file, by its path."""
        yield Task(["survey"], [self.seconds])

    def learn(self, answer: Answer) -> None:
        """There is nothing to learn from it."""

    def child(self, items: list[Any], tell: Tell) -> Child:
        """Counts."""
        return _Counting(self.files, tell)


class _Counting:
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
class Control:
    """Every test without a mutant, in a program that was imported anew.

    An answer has the outcome, the steps that the import took, and the files that were imported.
    """

    suite: Suite
    memory: int
    workers: int

    def tasks(self) -> Iterator[Task]:
        """Tests in chunks, so that processes share the work."""
        self.suite.parse()
        tests = list(self.suite.originals)
        for i in range(0, len(tests), _CHUNK):
            chunk = tests[i : i + _CHUNK]
            yield Task(chunk, [self.suite.seconds[test] for test in chunk])

    def learn(self, answer: Answer) -> None:
        """Tests are not put in order here."""

    def child(self, items: list[int], tell: Tell) -> Child:
        """Runs tests."""
        return _Running(self.suite, items, tell)


@dataclass
class MutantJob:
    """Mutants, each with the tests that are run on it.

    Items are pairs of a mutant's number and a test, the first of them with `IMPORT`.
    """

    suite: Suite
    mutants: Mapping[int, Mutant]
    tests: Mapping[int, Sequence[int]]
    order: Order
    import_steps: int
    first_kill: bool
    memory: int
    workers: int

    def tasks(self) -> Iterator[Task]:
        """One for each mutant."""
        self.suite.parse()
        for number in self.mutants:
            tests = self.order.of(number, list(self.tests[number]))
            longest = max(self.suite.seconds.values())
            seconds = [longest, *(self.suite.seconds[test] for test in tests)]
            pairs = [(number, test) for test in (IMPORT, *tests)]
            yield Task(pairs, seconds, _settles_all if self.first_kill else _settles)

    def learn(self, answer: Answer) -> None:
        """Tests that kill come first."""
        number, test = answer.item
        if test != IMPORT:
            self.order.learn(number, test, answer.value != PASSED)

    def child(self, items: list[tuple[int, int]], tell: Tell) -> Child:
        """Imports a mutant and runs tests on it."""
        mutant = self.mutants[items[0][0]]
        tests = [test for _, test in items]
        return _Mutated(self.suite, tests, tell, mutant, self.import_steps, self.first_kill)


def _settles(pair: tuple[int, int], other: tuple[int, int]) -> bool:
    """A process that ends while it imports would do so before every test."""
    return pair[1] == IMPORT


def _settles_all(pair: tuple[int, int], other: tuple[int, int]) -> bool:
    return True


class _Running:
    """Imports the program as it is, and runs tests."""

    def __init__(self, suite: Suite, tests: list[int], tell: Tell) -> None:
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
        """What comes of each test; those that are no longer there cannot fail."""
        tests, all_there = tests_of(self._suite.carried)
        numbers = {name: number for number, name in enumerate(tests.names)}
        here = [numbers.get(self._suite.names[test]) for test in self._tests]
        following: list[int | None] = [None]
        for number in reversed(here[1:]):
            following.append(following[-1] if number is None else number)
        for test, number, after in zip(self._tests, here, reversed(following), strict=True):
            if number is None:
                yield PASSED if all_there else BROKEN
            else:
                original = self._suite.originals[test]
                yield outcome_of(tests, number, after, original, self._steps)


class _Mutated(_Running):
    """Imports the program as a mutant, and runs tests."""

    def __init__(
        self,
        suite: Suite,
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
                leave(replaced=True)  # what was ended anywhere may have left anything

    def fail(self) -> None:
        self._tell(ENDLESS if self._steps.exceeded else BROKEN, len(self._tests))
