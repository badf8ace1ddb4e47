"""Which tests kill which mutants.

A test kills a mutant if it ends otherwise than without it: it passed and fails, it fails
differently, it ends its process, it takes many times the steps, or far too much time. It can only
do so if it executes the changed statement, so no other tests are run.

First every test is run once without a mutant, with all statements counted: that tells how it ends,
what it reaches, how many steps it takes and how long. A test that ends otherwise although nothing
was changed is flaky, and is left out.

Then forks run a few mutants each, one after the other. What a mutant leaves behind in its process
must not be taken for what the next one does: after a kill, the test that killed is run again
without the mutant; if it does not end as it should, and after an endless loop, the next mutant gets
a new fork. Whoever trusts that too little asks for a fork per mutant (`Limits.mutants_per_fork`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from swarmtest.faults import message_of
from swarmtest.mutation.batches import Batch
from swarmtest.mutation.forks import Answer, Forks, Task, Tell
from swarmtest.mutation.matrix import CRASHED, ENDLESS, FAILED, PASSED, SLOW, KillMatrix
from swarmtest.mutation.mutant import Mutant
from swarmtest.mutation.ordering import Order
from swarmtest.mutation.originals import Original, Tests, in_turn
from swarmtest.mutation.steps import Steps
from swarmtest.mutation.switching import LiveFile

_CHUNK = 32
"""Tests that one fork runs without a mutant, so that two processes share the work."""


@dataclass(frozen=True)
class Limits:
    """What a test may take beside its budget of steps."""

    seconds: float = 10.0
    """What a test may take without a mutant."""
    memory: int = 0
    """Bytes that a fork may hold; 0: no limit."""
    mutants_per_fork: int = 16
    """How many mutants one process runs, one after the other."""

    def with_mutant(self, seconds: float) -> float:
        """The time for a test that takes `seconds` without a mutant: the second net."""
        return 10.0 + 50.0 * seconds


Show = Callable[[int, int], None]
"""Told how many mutants are done, of how many."""


class Runner:
    """Runs tests against mutants of loaded files."""

    def __init__(
        self,
        tests: Tests,
        files: Sequence[LiveFile],
        limits: Limits | None = None,
        workers: int = 2,
    ) -> None:
        self._tests = tests
        self._files = list(files)
        self._by_path = {file.source.path: i for i, file in enumerate(self._files)}
        self._limits = limits or Limits()
        self._workers = workers
        self.originals: dict[int, Original] = {}
        """How tests end without a mutant; those that are left out are not here."""
        self.left_out: dict[str, list[str]] = defaultdict(list)
        """The names of tests that are not used, by the reason."""

    # Without a mutant

    def run_originals(self, wanted: Sequence[int] | None = None) -> None:
        """Run every test once, counting, and once more as it will be with mutants."""
        wanted = range(len(self._tests.names)) if wanted is None else wanted
        limit = self._limits.seconds
        chunks = [list(wanted[i : i + _CHUNK]) for i in range(0, len(wanted), _CHUNK)]
        tasks = [Task(chunk, [limit] * len(chunk)) for chunk in chunks]
        forks = Forks(self._count, self._workers, self._limits.memory)
        for answer in forks.answers(tasks):
            if answer.value is None:
                why = "took too long" if answer.silent else "ended its process"
                self.left_out[f"{why} without a mutant"].append(self._name(answer))
            elif isinstance(answer.value, str):
                self.left_out[answer.value].append(self._name(answer))
            else:
                self.originals[answer.item] = answer.value
        self._share_steps()
        for file in self._files:
            file.tick()
        self._leave_out_flaky(sorted(self.originals))

    def _leave_out_flaky(self, tests: list[int]) -> None:
        chunks = [tests[i : i + _CHUNK] for i in range(0, len(tests), _CHUNK)]
        tasks = [Task(chunk, self._seconds(chunk)) for chunk in chunks]
        forks = Forks(self._again, self._workers, self._limits.memory)
        for answer in forks.answers(tasks):
            if answer.value != PASSED:
                del self.originals[answer.item]
                self.left_out["does not end the same way twice"].append(self._name(answer))

    def _again(self, tests: list[int], tell: Tell) -> None:
        for test, following in in_turn(tests):
            tell(self.outcome(test, following))

    def _name(self, answer: Answer) -> str:
        name: str = self._tests.names[answer.item]
        return name

    def _seconds(self, tests: Sequence[int]) -> list[float]:
        return [self._limits.with_mutant(self.originals[test].seconds) for test in tests]

    def _share_steps(self) -> None:
        """One budget for all files: a mutant of one may make another endless."""
        shared = Steps()
        for file in self._files:
            file.steps = shared
        self._steps = shared

    def _count(self, tests: list[int], tell: Tell) -> None:
        counts = [file.count() for file in self._files]
        for test, following in in_turn(tests):
            for one in counts:
                one.reset()
            start = time.perf_counter()
            try:
                ended = self._tests.run(test, following)
            except Exception as error:
                tell(f"cannot be run: {message_of(error)}")
                continue
            seconds = time.perf_counter() - start
            steps = sum(
                one.of_statements[k]
                for one, file in zip(counts, self._files, strict=True)
                for k in file.plain.ticks
            )
            reached = tuple(
                frozenset(np.flatnonzero(np.array(one.of_statements, np.int64)).tolist())
                for one in counts
            )
            tell(self._tests.why_not(ended) or Original(ended, seconds, steps, reached))

    # With mutants

    def matrix(
        self,
        mutants: Sequence[Mutant],
        *,
        first_kill: bool = False,
        on_progress: Show | None = None,
    ) -> KillMatrix:
        """Run the tests that reach each mutant; `first_kill`: up to the first that kills it."""
        outcomes = np.zeros((len(mutants), len(self._tests.names)), np.uint8)
        reached = self._reached(mutants)
        refused: dict[int, str] = {}
        order = Order(self.originals, [self._of(mutant) for mutant in mutants])
        batch = Batch(self, mutants, first_kill)
        forks = Forks(batch.run, self._workers, self._limits.memory)
        started: set[int] = set()
        for answer in forks.answers(self._tasks(mutants, reached, order, first_kill)):
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
        if on_progress is not None:
            on_progress(len(mutants), len(mutants))
        return self._finished(mutants, reached, outcomes, refused, first_kill)

    def _of(self, mutant: Mutant) -> str:
        return f"{mutant.path} {mutant.function}"

    def _reached(self, mutants: Sequence[Mutant]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        reached = np.zeros((len(mutants), len(self._tests.names)), bool)
        for i, mutant in enumerate(mutants):
            at = self._by_path[mutant.path]
            statement = self._files[at].statement(mutant)
            for test, original in self.originals.items():
                reached[i, test] = statement in original.reached[at]
        return reached

    def _tasks(
        self, mutants: Sequence[Mutant], reached: Any, order: Order, first_kill: bool
    ) -> Iterator[Task]:
        """A few mutants each, with the tests that reach them."""
        pairs: list[tuple[int, int]] = []
        count = 0
        for number, mutant in enumerate(mutants):
            if self.file_of(mutant).switchable(mutant):
                tests = order.of(number, np.flatnonzero(reached[number]).tolist())
                pairs += [(number, test) for test in tests]
                count += bool(tests)
            if count == self._limits.mutants_per_fork or mutant is mutants[-1]:
                seconds = self._seconds([test for _, test in pairs])
                yield Task(pairs, seconds, _same_mutant if first_kill else _nothing)
                pairs, count = [], 0

    def file_of(self, mutant: Mutant) -> LiveFile:
        """The file that a mutant changes."""
        return self._files[self._by_path[mutant.path]]

    def finish(self) -> None:
        """No more tests on the program as it is now."""
        self._tests.finish()

    def outcome(self, test: int, following: int | None = None) -> int:
        """Run a test on the program as it is now, and compare."""
        original = self.originals[test]
        self._steps.allow(original.steps)
        try:
            ended = self._tests.run(test, following)
        except BaseException:
            ended = ""
        if self._steps.exceeded:
            return ENDLESS
        return PASSED if ended == original.ended else FAILED

    def _finished(
        self,
        mutants: Sequence[Mutant],
        reached: Any,
        outcomes: Any,
        refused: dict[int, str],
        first_kill: bool,
    ) -> KillMatrix:
        switchable = [
            i not in refused and self.file_of(mutant).switchable(mutant)
            for i, mutant in enumerate(mutants)
        ]
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
            left_out={why: tuple(names) for why, names in self.left_out.items()},
        )


def _same_mutant(pair: tuple[int, int], other: tuple[int, int]) -> bool:
    return pair[0] == other[0]


def _nothing(pair: tuple[int, int], other: tuple[int, int]) -> bool:
    return False
