"""Choosing mutants of a C program: those of files and lines, all of them or a sample."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.mutation.native.built import BuiltMutants
from swarmtest.mutation.native.c_file import named_c_files
from swarmtest.mutation.native.generating import CMutant, mutants_in
from swarmtest.mutation.native.project import Project
from swarmtest.seeds import key_of, mixed
from swarmtest.subjects.command import CommandSubject
from swarmtest.targets import Source


def drawn_mutants(
    subject: CommandSubject,
    files: Iterable[str | Source] = (),
    *,
    operators: str | Collection[str] = "",
    lines: Mapping[str, Collection[int]] | None = None,
    sample: int | None = None,
    seed: int = 0,
    workers: int = 2,
    first: Collection[str] = (),
) -> BuiltMutants:
    """Mutants of C files, built; without `files`: of those that ``[mutate]`` names.

    `lines`: only mutants on these, by `Source.path`. `sample`: so many of those that compile and
    are not trivially equivalent, the same for the same seed; `first` are ids of some that are drawn
    before all others.
    """
    if sample is not None and sample < 1:
        raise UserError(f"--sample {sample}: a sample has at least one mutant")
    named = list(files)
    all_used = bool(named) and not any(isinstance(one, str) and Path(one).is_dir() for one in named)
    project = Project(subject, named_c_files(named), all_used)
    try:
        found = _found(project, operators, lines)
        order = {id(one): i for i, one in enumerate(found)}
        if sample is not None:
            found.sort(key=lambda one: (one.mutant.id not in first, _luck(one, seed)))
        sifted = project.sifted(found, workers, sample)
        if not sifted.mutants:
            where = ", ".join(file.source.path for file in project.files)
            raise UserError(f"no mutant is left of {where}: other lines or operators?")
        sifted.mutants.sort(key=lambda one: order[id(one)])
        return BuiltMutants.of(project, sifted, workers)
    except BaseException:
        project.close()
        raise


def _found(
    project: Project,
    operators: str | Collection[str],
    lines: Mapping[str, Collection[int]] | None,
) -> list[CMutant]:
    return [
        one
        for file in project.files
        if lines is None or file.source.path in lines
        for one in mutants_in(file, operators, None if lines is None else lines[file.source.path])
    ]


def _luck(one: CMutant, seed: int) -> int:
    return mixed(key_of(one.mutant.id) ^ mixed(seed))
