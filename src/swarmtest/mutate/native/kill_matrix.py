"""Compute the kill matrix of a command subject's tests for the mutants of its C program.

Every test runs twice without a mutant before the mutants are run, and once more afterwards. A test
that does not end the same way each time is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source
from swarmtest.mutate.campaign_tests import check_features, draw_trials, tests_of
from swarmtest.mutate.kill_matrix import CRASHED, NOT_RUN, PASSED, SLOW, KillMatrix
from swarmtest.mutate.native.build import BuiltMutants, OriginalRun, drawn_mutants
from swarmtest.processes.fork_tasks import Forks, ForkTask, Tell
from swarmtest.store.interface import Store
from swarmtest.subjects.command.subject import CommandSubject
from swarmtest.subjects.stored_reference import stored_reference

_CHUNK = 16
"""How many tests one fork runs without a mutant."""
_PAIRS = 64
"""How many pairs of a mutant and a test one fork runs, at least."""
_SLACK = 30.0
"""Seconds that a fork may take in addition to the time limits of its tests."""
FLAKY = "gave something else when it was run again without a mutant"
SLOWLY = "takes too long without a mutant"

Show = Callable[[int, int], None]


def native_kill_matrix(
    subject: CommandSubject,
    tests: Mapping[str, Any],
    files: Iterable[str | Source] = (),
    *,
    operators: str | Collection[str] = "",
    lines: Mapping[str, Collection[int]] | None = None,
    sample: int | None = None,
    seed: int = 0,
    workers: int = 2,
    first_kill: bool = False,
    on_progress: Show | None = None,
) -> KillMatrix:
    """Return the kill matrix of tests (JSON data, by name) for the mutants of C files.

    `files` are by default those that the subject's table ``[mutate]`` names. `lines` restricts the
    mutants to these lines, by `Source.path`. `sample` is the number of mutants to draw among those
    that compile and are not trivially equivalent.
    """
    built = drawn_mutants(
        subject,
        files,
        operators=operators,
        lines=lines,
        sample=sample,
        seed=seed,
        workers=workers,
    )
    with built:
        matrix = _MatrixRunner(built, tests, workers, first_kill, on_progress).matrix()
        return replace(
            matrix,
            population=built.sifted.population,
            equivalent=built.sifted.equivalent,
            duplicate=built.sifted.duplicate,
            not_compiled=built.sifted.not_compiled,
            sources=built.sources,
        )


class _MatrixRunner:
    """Runs the tests in forks and puts the kill matrix together."""

    def __init__(
        self,
        built: BuiltMutants,
        tests: Mapping[str, Any],
        workers: int,
        first_kill: bool,
        on_progress: Show | None,
    ) -> None:
        self._built = built
        self._names = list(tests)
        self._tests = list(tests.values())
        self._workers = workers
        self._first_kill = first_kill
        self._show = on_progress
        self._originals: dict[int, OriginalRun] = {}
        self._left_out: dict[str, list[str]] = {}

    def matrix(self) -> KillMatrix:
        first = self._run_originals(range(len(self._tests)))
        again = self._run_originals(first)
        self._originals = first
        self._drop_flaky(again)
        if not self._originals:
            why = "; ".join(f"{len(names)}: {reason}" for reason, names in self._left_out.items())
            raise UserError(f"no test can tell mutants apart: {why}")
        if not any(original.ran for original in self._originals.values()):
            raise UserError(
                f"{self._built.spec.path}: no step runs what [mutate] builds, so no mutant would "
                "ever run: name the program as {here}/PROGRAM"
            )
        outcomes, reached = self._outcomes()
        # A result that depends on the time may be the same in two runs at once and differ later.
        self._drop_flaky(self._run_originals(self._originals))
        used = sorted(self._originals)
        return KillMatrix(
            self._built.mutants,
            tuple(self._names[i] for i in used),
            outcomes[:, used],
            reached[:, used],
            tuple(self._originals[i].selected.seconds for i in used),
            complete=not self._first_kill,
            left_out={why: tuple(names) for why, names in self._left_out.items()},
        )

    def _run_originals(self, numbers: Iterable[int]) -> dict[int, OriginalRun]:
        def run(items: list[int], tell: Tell) -> None:
            for item in items:
                try:
                    tell(self._built.run_original(self._tests[item]))
                except UserError as error:
                    tell(error)

        wanted = list(numbers)
        chunks = [wanted[i : i + _CHUNK] for i in range(0, len(wanted), _CHUNK)]
        seconds = self._built.seconds + _SLACK
        originals: dict[int, OriginalRun] = {}
        for answer in Forks(run, self._workers).answers(
            ForkTask(chunk, [seconds] * len(chunk)) for chunk in chunks
        ):
            if isinstance(answer.value, UserError):
                raise answer.value
            if answer.value is not None:
                originals[answer.item] = answer.value
        return originals

    def _drop_flaky(self, again: Mapping[int, OriginalRun]) -> None:
        """Leave out tests that ended differently the second time, or timed out."""
        for number, original in list(self._originals.items()):
            other = again.get(number)
            why = ""
            if original.selected.timed_out:
                why = SLOWLY
            elif other is None or _digests(original) != _digests(other):
                why = FLAKY
            if why:
                del self._originals[number]
                self._left_out.setdefault(why, []).append(self._names[number])

    def _outcomes(self) -> tuple[Any, Any]:
        mutants = self._built.mutants
        outcomes = np.full((len(mutants), len(self._tests)), NOT_RUN, np.uint8)
        reached = np.zeros(outcomes.shape, bool)
        for test, original in self._originals.items():
            for i, mutant in enumerate(mutants):
                reached[i, test] = mutant.id in original.reached
        done: set[int] = set()
        left = {i: int(reached[i].sum()) for i in range(len(mutants))}
        forks = Forks(self._run_pairs, self._workers)
        for answer in forks.answers(self._tasks(reached)):
            mutant, test = answer.item
            without_answer = SLOW if answer.silent else CRASHED
            outcomes[mutant, test] = without_answer if answer.value is None else answer.value
            left[mutant] -= 1
            if not left[mutant] or (self._first_kill and outcomes[mutant, test] > PASSED):
                done.add(mutant)
            if self._show is not None:
                self._show(len(done), len(mutants))
        if self._show is not None:
            self._show(len(mutants), len(mutants))
        return outcomes, reached

    def _tasks(self, reached: Any) -> Iterator[ForkTask]:
        """Yield tasks of pairs of a mutant and a test: quick tests first, a mutant in one task."""
        order = sorted(self._originals, key=lambda test: self._originals[test].selected.seconds)
        pairs: list[tuple[int, int]] = []
        for mutant in range(len(reached)):
            pairs += [(mutant, test) for test in order if reached[mutant, test]]
            if len(pairs) >= _PAIRS:
                yield self._task(pairs)
                pairs = []
        if pairs:
            yield self._task(pairs)

    def _task(self, pairs: list[tuple[int, int]]) -> ForkTask:
        steps = len(self._built.spec.steps)
        seconds = [self._originals[test].selected.limit * steps + _SLACK for _, test in pairs]
        return ForkTask(pairs, seconds)

    def _run_pairs(self, pairs: list[tuple[int, int]], tell: Tell) -> None:
        killed: set[int] = set()
        for index, (mutant, test) in enumerate(pairs):
            if self._first_kill and mutant in killed:
                continue
            outcome = self._built.outcome_beside(
                self._originals[test], self._tests[test], self._built.mutants[mutant]
            )
            count = 1
            if self._first_kill and outcome > PASSED:
                killed.add(mutant)
                count = sum(1 for other, _ in pairs[index:] if other == mutant)
            tell(outcome, count)


def _digests(original: OriginalRun) -> tuple[bytes, bytes]:
    plain = original.plain.digest if original.plain is not None else b""
    return original.selected.digest, plain


def mutate_c_campaign(
    store: Store,
    campaign: int,
    files: Iterable[str] = (),
    *,
    operators: str | Collection[str] = "",
    lines: Mapping[str, Collection[int]] | None = None,
    sample: int | None = None,
    tests: int = 1000,
    seed: int = 0,
    workers: int = 2,
    first_kill: bool = False,
    on_progress: Show | None = None,
) -> KillMatrix:
    """Return the kill matrix of a campaign's tests, named ``CAMPAIGN#TRIAL``, for a C program."""
    record = store.campaign(campaign)
    subject = stored_reference(record.options["subject"]).load()
    if not isinstance(subject, CommandSubject):
        raise UserError(f"{subject.name} runs no commands, so there is no C program to mutate")
    named = list(files)
    for file in named:
        if file.endswith(".py"):
            raise UserError(
                f"{file}: campaign {campaign} runs the commands of {subject.name}: its mutants are "
                "made of C files (.c)"
            )
    check_features(subject, record)
    trials = draw_trials(store, campaign, tests, seed)
    regenerated = tests_of(store, record, subject, trials, subject.seconds or 0.0, workers)
    if not regenerated:
        raise UserError(f"campaign {campaign} has no test that can be made again")
    return native_kill_matrix(
        subject,
        regenerated,
        named,
        operators=operators,
        lines=lines,
        sample=sample,
        seed=seed,
        workers=workers,
        first_kill=first_kill,
        on_progress=on_progress,
    )
