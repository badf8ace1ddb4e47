"""Choosing mutants: those of several files, all of them or a sample that a seed determines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from swarmtest.errors import UserError
from swarmtest.mutation.generating import all_mutants
from swarmtest.mutation.mutant import Mutant
from swarmtest.seeds import key_of, mixed
from swarmtest.targets import Source


@dataclass(frozen=True)
class Drawn:
    """Mutants that were drawn, and from what."""

    mutants: tuple[Mutant, ...]
    population: int
    """How many there were to draw from."""
    equivalent: int
    """How many were dropped before, as trivially equivalent."""
    sources: tuple[Source, ...]


def draw_mutants(
    sources: Sequence[Source],
    operators: str | Collection[str] = "",
    lines: Mapping[str, Collection[int]] | None = None,
    sample: int | None = None,
    seed: int = 0,
    *,
    stratified: bool = False,
) -> Drawn:
    """The mutants of files; `lines` are those that count, by path: a file not named has none.

    `sample`: so many of them, the same for the same seed; a mutant's luck does not depend on the
    others. `stratified`: every function has its share.
    """
    found = [
        all_mutants(source, operators, None if lines is None else lines[source.path])
        for source in sources
        if lines is None or source.path in lines
    ]
    mutants = [mutant for one in found for mutant in one.mutants]
    equivalent = sum(one.equivalent for one in found)
    population = len(mutants)
    if sample is not None:
        if sample < 1:
            raise UserError(f"--sample {sample}: a sample has at least one mutant")
        if sample < population:
            chosen = _shares(mutants, sample, seed) if stratified else _luck(mutants, sample, seed)
            mutants = [mutant for mutant in mutants if mutant in chosen]
    return Drawn(tuple(mutants), population, equivalent, tuple(sources))


def _key(mutant: Mutant, seed: int) -> int:
    return mixed(key_of(mutant.id) ^ mixed(seed))


def _luck(mutants: list[Mutant], sample: int, seed: int) -> set[Mutant]:
    return set(sorted(mutants, key=lambda mutant: _key(mutant, seed))[:sample])


def _shares(mutants: list[Mutant], sample: int, seed: int) -> set[Mutant]:
    """Evenly spaced, in the order of functions: each gets its share, rounded."""
    ordered = sorted(mutants, key=lambda one: (one.path, one.function, _key(one, seed)))
    start = mixed(seed) / 2**64
    return {ordered[int((i + start) * len(ordered) / sample)] for i in range(sample)}
