"""What one fork does: a few mutants, one after the other, each with its tests."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from swarmtest.mutation.forks import Replace, Tell
from swarmtest.mutation.matrix import ENDLESS, PASSED
from swarmtest.mutation.mutant import Mutant
from swarmtest.mutation.originals import in_turn
from swarmtest.mutation.switching import NotSwitchable

if TYPE_CHECKING:
    from swarmtest.mutation.kills import Runner


class Batch:
    """Mutants in a fork; `first_kill`: each up to the first test that kills it."""

    def __init__(self, runner: Runner, mutants: Sequence[Mutant], first_kill: bool) -> None:
        self._runner = runner
        self._mutants = mutants
        self._first_kill = first_kill

    def run(self, pairs: list[tuple[int, int]], tell: Tell) -> None:
        """Run pairs of a mutant's number and a test."""
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
            suspects = self._one(tests, tell)
            file.restore(before)
            if number != groups[-1][0]:
                self._go_on_if_clean(suspects)

    def _one(self, tests: list[int], tell: Tell) -> set[int]:
        """Run tests on a mutant; answers the last that killed it, and the last that was ended."""
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

    def _go_on_if_clean(self, killers: set[int]) -> None:
        """Without the mutant, tests that killed it end as they should, or the fork is spoilt."""
        if any(self._runner.baseline.outcome(killer) != PASSED for killer in killers):
            raise Replace


@contextlib.contextmanager
def _replaced_on_failure() -> Iterator[None]:
    try:
        yield
    except BaseException:
        raise Replace from None
