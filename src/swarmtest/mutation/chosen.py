"""Mutants for reduction: drawn from a program, then those that a test kills, then N of them."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence

from swarmtest.errors import UserError
from swarmtest.mutation.drawing import draw_mutants
from swarmtest.mutation.killing import Killing, NativeKilling
from swarmtest.mutation.loaded import live_files, named_sources
from swarmtest.mutation.mutant import Mutant
from swarmtest.mutation.mutating import sources_beside
from swarmtest.subjects.command import CommandSubject
from swarmtest.subjects.subject import Subject


def drawn_killing(
    subject: Subject,
    files: Iterable[str] = (),
    *,
    sample: int = 200,
    seed: int = 0,
    seconds: float = 10.0,
    first: Collection[str] = (),
) -> Killing | NativeKilling:
    """Mutants of the program that a subject tests, at most `sample` of them, ready to be asked.

    Those that the running program cannot be given are not among them; `first` are ids of some that
    are drawn before all others.
    """
    if isinstance(subject, CommandSubject):
        from swarmtest.mutation.native import drawn_mutants

        return NativeKilling(drawn_mutants(subject, files, sample=sample, seed=seed, first=first))
    sources = named_sources(files) or sources_beside(subject)
    live = {file.source.path: file for file in live_files(sources)}
    population = draw_mutants(sources)
    can = [m for m in population.mutants if live[m.path].switchable(m)]
    if not can:
        where = ", ".join(source.path for source in sources)
        raise UserError(f"{where}: no mutant can be made of what is loaded")
    drawn = random.Random(seed).sample(can, len(can))
    drawn = sorted(drawn, key=lambda mutant: mutant.id not in first)[:sample]
    places = sorted({source.place for source in sources if source.path in {m.path for m in drawn}})
    return Killing(subject, drawn, places, seconds)


def chosen_mutants(
    killed: Sequence[Mutant], count: int, seed: int = 0, hard: Iterable[str] | None = None
) -> tuple[Mutant, ...]:
    """`count` of the mutants that a test kills; `hard`: only those with these ids.

    If there are fewer, all (dissertation, 3.5.2).

    >>> chosen_mutants([], 1)
    Traceback (most recent call last):
    ...
    swarmtest.errors.UserError: the test kills none of the mutants, so there are none to keep
    """
    if count < 1:
        raise UserError(f"{count} mutants cannot be kept: at least 1")
    ids = None if hard is None else frozenset(hard)
    possible = [mutant for mutant in killed if ids is None or mutant.id in ids]
    if not possible:
        which = "mutants" if ids is None else "minimal mutants"
        raise UserError(f"the test kills none of the {which}, so there are none to keep")
    return tuple(random.Random(seed).sample(possible, min(count, len(possible))))
