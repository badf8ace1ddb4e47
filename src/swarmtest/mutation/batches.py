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
            killer = self._one(tests, tell)
            file.restore(before)
            if killer is not None and number != groups[-1][0]:
                self._go_on_if_clean(killer)

    def _one(self, tests: list[int], tell: Tell) -> int | None:
        """Run tests on a mutant; answers the last that killed it."""
        killer = None
        endless = False
        for i, (test, following) in enumerate(in_turn(tests)):
            outcome = self._runner.outcome(test, following)
            settled = self._first_kill and outcome > PASSED
            tell(outcome, len(tests) - i if settled else 1)
            endless = endless or outcome == ENDLESS
            if outcome > PASSED:
                killer = test
            if settled:
                break
        with _replaced_on_failure():
            self._runner.finish()
        if endless:
            raise Replace  # what was ended anywhere may have left anything
        return killer

    def _go_on_if_clean(self, killer: int) -> None:
        """Without the mutant, the test that killed it ends as it should, or the fork is spoilt."""
        if self._runner.outcome(killer) != PASSED:
            raise Replace


@contextlib.contextmanager
def _replaced_on_failure() -> Iterator[None]:
    try:
        yield
    except BaseException:
        raise Replace from None
