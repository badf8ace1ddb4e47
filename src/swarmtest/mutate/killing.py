"""Decide whether tests kill given mutants, for many tests in turn, as reduction needs it.

The files of the mutants are compiled once, with loops that use up steps. Each test runs in a fork,
which gives the functions that code. First the test runs without a mutant, which shows how it ends
and how many steps it takes. Then each mutant is switched on in turn; if one ends the process or
hangs, another fork goes on with the next.
"""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError
from swarmtest.coverage.scope import shown_path
from swarmtest.mutate.generation import draw_mutants
from swarmtest.mutate.loaded_files import live_files, named_sources, source_of
from swarmtest.mutate.mutant import Mutant
from swarmtest.mutate.mutation import lines_of_program, sources_beside
from swarmtest.mutate.switching import LiveFile, Steps
from swarmtest.processes.fork_tasks import Forks, ForkTask, Replace, Tell
from swarmtest.processes.tree import end_strays
from swarmtest.subjects.command.subject import CommandSubject
from swarmtest.subjects.subject import Subject

if TYPE_CHECKING:
    from swarmtest.mutate.native.build import BuiltMutants


class MutantKiller:
    """Runs tests of a subject against mutants of the Python files that it has loaded.

    The mutant that survived last is tried first: often the next test does not kill it either.
    """

    def __init__(
        self, subject: Subject, mutants: Sequence[Mutant], places: Sequence[str], seconds: float
    ) -> None:
        """Prepare the files `places`, which the mutants change."""
        self._subject = subject
        self._mutants = list(mutants)
        self._seconds = seconds
        self._steps = Steps()
        self._files = {file.source.path: file for file in live_files([*map(source_of, places)])}
        for mutant in mutants:
            if mutant.path not in self._files or not self._file(mutant).switchable(mutant):
                raise UserError(
                    f"mutant {mutant.id} ({mutant.path}:{mutant.line}) cannot be switched on in "
                    "the running program"
                )
        self._ticking = [*self._ticking_code()]

    def survivor(self, test: Any) -> Mutant | None:
        """Return the first mutant that a test does not kill; None if it kills all."""
        for mutant, killed in self._verdicts(test, self._mutants):
            if not killed:
                self._mutants.remove(mutant)
                self._mutants.insert(0, mutant)
                return mutant
        return None

    def killed(self, test: Any) -> list[Mutant]:
        """Return the mutants that a test kills."""
        return [mutant for mutant, killed in self._verdicts(test, self._mutants) if killed]

    def among(self, mutants: Sequence[Mutant]) -> MutantKiller:
        """Return the same for only some of the mutants."""
        restricted = copy.copy(self)
        restricted._mutants = [mutant for mutant in self._mutants if mutant in set(mutants)]
        return restricted

    def close(self) -> None:
        """Do nothing: only forks change the program."""

    def _verdicts(self, test: Any, mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, bool]]:
        forks = Forks(lambda items, tell: self._run(test, items, tell), 1)
        task = ForkTask([*mutants], [self._seconds] * len(mutants))
        for answer in forks.answers([task]):
            yield answer.item, answer.value is not False

    def _run(self, test: Any, mutants: list[Mutant], tell: Tell) -> None:
        """Run the test, in a fork, without a mutant and then with each of them."""
        self._subject.interruptible = False
        for function, code in self._ticking:
            function.__code__ = code
        self._steps.count()
        plain = self._ended(test)
        steps = self._steps.counted()
        for mutant in mutants:
            file = self._file(mutant)
            before = file.changes
            file.switch_on(mutant)
            self._steps.allow(steps)
            killed = self._ended(test) != plain or self._steps.exceeded
            file.restore(before)
            tell(killed)
            # What a mutant leaves behind must not be attributed to the next one.
            if killed and mutant is not mutants[-1] and self._is_spoilt(test, plain, steps):
                raise Replace

    def _is_spoilt(self, test: Any, plain: str, steps: int) -> bool:
        if self._steps.exceeded:
            return True
        self._steps.allow(steps)
        return self._ended(test) != plain

    def _ended(self, test: Any) -> str:
        try:
            result = self._subject.replay(test)
        except BaseException:
            return ""
        finally:
            end_strays()
        return f"{result.verdict.label} {result.fault.id if result.fault else ''}"

    def _file(self, mutant: Mutant) -> LiveFile:
        return self._files[mutant.path]

    def _ticking_code(self) -> Iterator[tuple[FunctionType, CodeType]]:
        """Yield the functions of the files, each with the code that uses up steps."""
        for file in self._files.values():
            file.steps = self._steps
            file.tick()
            functions = [function for group in file.functions.values() for function in group]
            codes = [function.__code__ for function in functions]
            file.restore()
            yield from zip(functions, codes, strict=True)


class NativeMutantKiller:
    """Runs tests of a command subject against mutants of its C program, which are built once."""

    def __init__(self, built: BuiltMutants) -> None:
        self._built = built
        self._mutants = list(built.mutants)

    def survivor(self, test: Any) -> Mutant | None:
        """Return the first mutant that a test does not kill; None if it kills all."""
        for mutant in self._mutants:
            if not self._built.kills_all(test, [mutant]):
                self._mutants.remove(mutant)
                self._mutants.insert(0, mutant)
                return mutant
        return None

    def killed(self, test: Any) -> list[Mutant]:
        """Return the mutants that a test kills."""
        killed = self._built.kills(test)
        return [mutant for mutant in self._mutants if mutant in killed]

    def among(self, mutants: Sequence[Mutant]) -> NativeMutantKiller:
        """Return the same for only some of the mutants."""
        restricted = copy.copy(self)
        restricted._mutants = [mutant for mutant in self._mutants if mutant in set(mutants)]
        return restricted

    def close(self) -> None:
        """Remove the programs that were built."""
        self._built.close()


def kills_of(
    subject: Subject, mutants: Sequence[Mutant], seconds: float = 10.0
) -> MutantKiller | NativeMutantKiller:
    """Return an object that decides whether tests kill these mutants of Python files or of C."""
    if isinstance(subject, CommandSubject):
        from swarmtest.mutate.native.build import BuiltMutants

        built = BuiltMutants(subject, mutants)
        hopeless = built.sifted.equivalent + built.sifted.not_compiled
        if hopeless:
            built.close()
            raise UserError(
                f"no test can kill {hopeless} of the mutants: they compile to what the "
                "program does, or not at all"
            )
        return NativeMutantKiller(built)
    wanted = {mutant.path for mutant in mutants}
    origins = {getattr(module, "__file__", None) or "" for module in sys.modules.values()}
    places = sorted(file for file in origins if file and shown_path(file) in wanted)
    return MutantKiller(subject, mutants, places or sorted(wanted), seconds)


# Mutants for reduction: drawn from the program, then those that a test kills, then N of these.


def drawn_killing(
    subject: Subject,
    files: Iterable[str] = (),
    *,
    sample: int = 200,
    seed: int = 0,
    seconds: float = 10.0,
    first: Collection[str] = (),
) -> MutantKiller | NativeMutantKiller:
    """Draw at most `sample` mutants of the program that a subject tests, ready to be run.

    Mutants that cannot be switched on in the running program are not among them. `first` are the
    ids of mutants that are drawn before all others.
    """
    if isinstance(subject, CommandSubject):
        from swarmtest.mutate.native.build import drawn_mutants

        return NativeMutantKiller(
            drawn_mutants(subject, files, sample=sample, seed=seed, first=first)
        )
    named = named_sources(files)
    sources = named or sources_beside(subject)
    live = {file.source.path: file for file in live_files(sources)}
    lines = None if named else lines_of_program(sources, None, subject)
    population = draw_mutants(sources, lines=lines)
    switchable = [m for m in population.mutants if live[m.path].switchable(m)]
    if not switchable:
        where = ", ".join(source.path for source in sources)
        raise UserError(f"{where}: no mutant can be made of what is loaded")
    drawn = random.Random(seed).sample(switchable, len(switchable))
    drawn = sorted(drawn, key=lambda mutant: mutant.id not in first)[:sample]
    places = sorted({source.place for source in sources if source.path in {m.path for m in drawn}})
    return MutantKiller(subject, drawn, places, seconds)


def chosen_mutants(
    killed: Sequence[Mutant], count: int, seed: int = 0, hard: Iterable[str] | None = None
) -> tuple[Mutant, ...]:
    """Choose `count` of the mutants that a test kills, with `hard` only among those ids.

    If there are fewer, choose all (dissertation, 3.5.2).

    >>> chosen_mutants([], 1)
    Traceback (most recent call last):
    ...
    swarmtest.UserError: the test kills none of the mutants, so there are none to keep
    """
    if count < 1:
        raise UserError(f"{count}: the number of mutants to keep must be at least 1")
    ids = None if hard is None else frozenset(hard)
    possible = [mutant for mutant in killed if ids is None or mutant.id in ids]
    if not possible:
        which = "mutants" if ids is None else "minimal mutants"
        raise UserError(f"the test kills none of the {which}, so there are none to keep")
    return tuple(random.Random(seed).sample(possible, min(count, len(possible))))
