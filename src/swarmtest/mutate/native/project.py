"""A C program that is built to be mutated: copies of its directory, and which mutants compile.

Mutants are built in copies of the program's directory, which itself is never changed. The first
copy stays as it is, and the copies for mutants are made from it. File times are preserved, so that
`make` builds only what depends on a changed file.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swarmtest.core.errors import UserError
from swarmtest.languages.c.syntax_tree import CFile, named_c_files
from swarmtest.mutate.native.compilation import (
    NOT_COMPILED,
    NOT_USED,
    Builder,
    CompileCommand,
    Objects,
)
from swarmtest.mutate.native.generation import CMutant
from swarmtest.subjects.command.subject import CommandSubject

_CLOCK = 50_000_000
"""Nanoseconds by which the clock of a file system may be behind."""


@dataclass
class SiftedMutants:
    """Mutants that are worth running, and the numbers of those that are not."""

    mutants: list[CMutant]
    equivalent: int = 0
    """The number of mutants that compile to the program's own code."""
    duplicate: int = 0
    """The number of mutants that compile to the code of another mutant."""
    not_compiled: int = 0
    population: int = 0
    """The number of mutants that these are a sample of; 0: these are all."""


class Project:
    """A command subject's program, built in a temporary directory that is removed at the end.

    `files` are by default those of its table ``[mutate]``. With `all_used` a file that the build
    does not use is an error.
    """

    def __init__(
        self, subject: CommandSubject, files: Sequence[CFile] = (), all_used: bool = False
    ) -> None:
        self.spec = subject.spec
        self.here = Path(self.spec.here)
        mutate = self.spec.mutate
        if not mutate.build:
            raise UserError(
                f"{self.spec.path}: to mutate the program, say how it is built: a table [mutate] "
                'with a build, like build = "gcc -O2 -o prog prog.c"'
            )
        self.files = list(files) or named_c_files(mutated_files(subject))
        for file in self.files:
            self.place_in(self.here, file)
        self.directory = Path(tempfile.mkdtemp(prefix="swarmtest-mutants-"))
        self.close = weakref.finalize(self, _remove, self.directory, os.getpid())
        """Remove everything that was built; this also happens when the process ends."""
        self.original = self.directory / "original"
        try:
            self.builder = Builder(mutate.build, mutate.seconds, self.directory)
            self._compiled = self._build(all_used)
        except BaseException:
            self.close()
            raise
        self._objects: dict[str, Objects] = {}

    def place_in(self, directory: Path, file: CFile) -> Path:
        """Return the path of a file in a copy of the program's directory."""
        place = Path(file.source.place)
        if not place.is_relative_to(self.here):
            raise UserError(
                f"{file.source.path} is not below {self.here}, and mutants are built in copies of "
                f"that directory, in which {self.spec.path.name} is"
            )
        return directory / place.relative_to(self.here)

    def copy(self, name: str) -> Path:
        """Make another copy of the program, with everything that was built in the original."""
        twin(self.original, self.directory / name, self.written)
        return self.directory / name

    def compiled(self, file: CFile) -> CompileCommand:
        """Return how the build compiles a file."""
        return self._compiled[self.place_in(self.original, file)]

    def sifted(
        self, mutants: Sequence[CMutant], workers: int, most: int | None = None
    ) -> SiftedMutants:
        """Return the first `most` mutants that compile, each to code that no other has."""
        sifted = SiftedMutants([])
        seen: set[tuple[str, str]] = set()
        left = list(mutants)
        while left and (most is None or len(sifted.mutants) < most):
            count = len(left) if most is None else most - len(sifted.mutants)
            batch, left = left[:count], left[count:]
            for c_mutant, digest in zip(batch, self._digests(batch, workers), strict=True):
                place = c_mutant.file.source.place
                if digest == NOT_COMPILED:
                    sifted.not_compiled += 1
                elif digest == NOT_USED or digest == self._objects[place].original:
                    sifted.equivalent += 1
                elif (place, digest) in seen:
                    sifted.duplicate += 1
                else:
                    seen.add((place, digest))
                    sifted.mutants.append(c_mutant)
        if left:
            sifted.population = len(sifted.mutants) + len(left)
        return sifted

    def _digests(self, mutants: list[CMutant], workers: int) -> list[str]:
        by_index: dict[int, str] = {}
        for file in self.files:
            own = [i for i, c_mutant in enumerate(mutants) if c_mutant.file is file]
            if own:
                objects = self._objects.get(file.source.place)
                if objects is None:
                    place = self.place_in(self.original, file)
                    objects = Objects(file, self.compiled(file), place)
                    self._objects[file.source.place] = objects
                digests = objects.digests([mutants[i] for i in own], workers)
                by_index |= dict(zip(own, digests, strict=True))
        return [by_index.get(i, NOT_USED) for i in range(len(mutants))]

    def _build(self, all_used: bool) -> dict[Path, CompileCommand]:
        """Build the original; return how each of its files was compiled."""
        copied(self.here, self.original)
        places = {self.place_in(self.original, file): file for file in self.files}
        began = time.time_ns() - _CLOCK
        for place, file in places.items():
            place.write_bytes(file.raw)  # now newer than its object file: it is compiled again
        ended = self.builder.build(self.original)
        self.written = written_since(self.original, began)
        """The files that the build writes, and the files that are mutated."""
        if ended.status:
            raise UserError(
                f"{self.spec.path}: [mutate] build failed without a mutant: "
                f"{ended.first_error.replace(str(self.original) + os.sep, '')}"
            )
        compiled = self.builder.compiled(list(places))
        unused = [file for place, file in places.items() if place not in compiled]
        if unused and (all_used or len(unused) == len(places)):
            names = ", ".join(file.source.path for file in unused)
            raise UserError(
                f"{names}: the build of {self.spec.path.name} does not compile it with a compiler "
                f"that is called by its name (gcc, cc, clang): {self.spec.mutate.build}"
            )
        self.files = [file for place, file in places.items() if place in compiled]
        return compiled


def mutated_files(subject: CommandSubject) -> list[str]:
    """Return the C files that a subject's ``[mutate]`` names; by default all beside its file."""
    spec = subject.spec
    patterns = spec.mutate.files or ("*.c",)
    paths = {str(path) for pattern in patterns for path in Path(spec.here).glob(pattern)}
    if not paths:
        raise UserError(f"{spec.path}: [mutate] files: no file is called {' or '.join(patterns)}")
    return sorted(paths)


def _remove(directory: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


# Copies of directories.

_NOT_COPIED = (
    "__pycache__", "node_modules", "swarmtest.db", "swarmtest.db-shm", "swarmtest.db-wal"
)  # fmt: skip
_MOST_BYTES = 1 << 30


def copied(directory: Path, to: Path) -> None:
    """Copy a directory without hidden files and without stores of campaigns."""
    size = sum(path.lstat().st_size for path in _files(directory))
    if size > _MOST_BYTES:
        raise UserError(
            f"{directory} has {size >> 20:,} MiB: the program is built in copies of the directory "
            "of its TOML file, so that should hold the program alone"
        )
    shutil.copytree(directory, to, symlinks=True, ignore=lambda _, names: _ignored(names))


def _walk(directory: Path) -> list[tuple[str, list[str], list[str]]]:
    folders_and_files = []
    for place, folders, names in os.walk(directory):
        folders[:] = sorted(set(folders) - _ignored(folders))
        folders_and_files.append((place, folders, sorted(set(names) - _ignored(names))))
    return folders_and_files


def _ignored(names: list[str]) -> set[str]:
    return {name for name in names if name.startswith(".") or name in _NOT_COPIED}


def written_since(directory: Path, moment: int) -> frozenset[Path]:
    """Return the files, relative to the directory, written since a moment (nanoseconds)."""
    return frozenset(
        path.relative_to(directory)
        for path in _files(directory)
        if path.lstat().st_mtime_ns >= moment
    )


def twin(directory: Path, to: Path, written: frozenset[Path]) -> None:
    """Copy a copy: files that a build writes are copied, all others are hard links."""
    shutil.copytree(
        directory,
        to,
        symlinks=True,
        copy_function=lambda old, new: (
            shutil.copy2(old, new)
            if Path(old).relative_to(directory) in written
            else os.link(old, new)
        ),
    )


def shared(directory: Path, other: Path, written: frozenset[Path]) -> None:
    """Turn files of a twin that a build could have written, and did not, into hard links too."""
    for name in written:
        path, same = directory / name, other / name
        if path.is_symlink() or not path.is_file() or not same.is_file():
            continue
        mine, its = path.stat(), same.stat()
        if (mine.st_size, mine.st_mtime_ns) == (its.st_size, its.st_mtime_ns):
            path.unlink()
            path.hardlink_to(same)


def _files(directory: Path) -> list[Path]:
    return [Path(place, name) for place, _, names in _walk(directory) for name in names]
