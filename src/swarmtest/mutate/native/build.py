"""Mutants of a C program, built: as many as possible in one program, the rest one by one.

Each is compared with the program that it is part of, with no mutant on: what putting mutants into
it changes by itself (memory that is read before it is written) kills nothing.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.seeds import key_of, mixed
from swarmtest.core.targets import Source
from swarmtest.languages.c.syntax_tree import CFile, named_c_files
from swarmtest.mutate.kill_matrix import PASSED
from swarmtest.mutate.mutant import Mutant
from swarmtest.mutate.native.compilation import run
from swarmtest.mutate.native.generation import CMutant, found_again, mutants_in
from swarmtest.mutate.native.project import Project, Sifted, shared
from swarmtest.mutate.native.schemata import (
    LIMIT,
    MUTANT,
    REACHED,
    Observer,
    Schema,
    Seen,
    schema_of,
)
from swarmtest.subjects.command.specification import Specification
from swarmtest.subjects.command.subject import CommandSubject

_ROUNDS = 10
_SECONDS = 300.0
_REMEMBERED = 1000


@dataclass(frozen=True)
class Original:
    """A test without a mutant."""

    selected: Seen
    """With the program that has mutants in it."""
    plain: Seen | None
    """With the program as it is; None: nobody needs to know."""
    reached: frozenset[str]
    """Ids of the mutants that it executes."""
    ran: bool
    """Whether it ran what was built."""


class BuiltMutants:
    """Mutants of a command subject's program, ready to be run on one test after the other.

    Those that do not compile, or compile to what the program or another mutant does, are left out
    (`sifted` counts them). Usable in forked processes; `close` removes what was built.
    """

    def __init__(
        self,
        subject: CommandSubject,
        mutants: Sequence[Mutant],
        *,
        workers: int = 2,
        one_by_one: bool = False,
    ) -> None:
        """`one_by_one`: a program for each mutant, which takes longer and tells the same."""
        places = {mutant.path: _place_of(mutant, subject) for mutant in mutants}
        files = named_c_files(dict.fromkeys(places.values()))
        wanted = found_again(files, mutants)
        project = Project(subject, files)
        try:
            self._begin(project, project.sifted(wanted, workers), workers, one_by_one)
        except BaseException:
            project.close()
            raise

    @classmethod
    def of(cls, project: Project, sifted: Sifted, workers: int) -> BuiltMutants:
        """Mutants of a project that is there already, sifted."""
        built = cls.__new__(cls)
        built._begin(project, sifted, workers)
        return built

    def _begin(
        self, project: Project, sifted: Sifted, workers: int, one_by_one: bool = False
    ) -> None:
        self._project = project
        self.sifted = sifted
        self.mutants = tuple(one.mutant for one in sifted.mutants)
        self._by_id = {one.mutant.id: one for one in sifted.mutants}
        self._observer = Observer(project.spec)
        self._selected = project.copy("selected")
        self._schema = self._build_schema(workers, one_by_one)
        self._alone = self._build_alone(workers)
        self._originals: OrderedDict[str, Original] = OrderedDict()

    # What is asked

    def kills(self, test: Any, among: Collection[Mutant] | None = None) -> frozenset[Mutant]:
        """The mutants that a test (JSON data) kills; `among`: only these are tried."""
        tried = self.mutants if among is None else among
        return frozenset(one for one in tried if self.outcome(test, one) > PASSED)

    def kills_all(self, test: Any, among: Collection[Mutant] | None = None) -> bool:
        """Whether a test kills all of them; nothing is run after the first that survives."""
        tried = self.mutants if among is None else among
        reached = self.original(test).reached
        return all(one.id in reached for one in tried) and all(
            self.outcome(test, one) > PASSED for one in tried
        )

    def reached(self, test: Any) -> frozenset[Mutant]:
        """The mutants that a test executes; it can kill no others."""
        ids = self.original(test).reached
        return frozenset(one for one in self.mutants if one.id in ids)

    def outcome(self, test: Any, mutant: Mutant) -> int:
        """What becomes of a test under a mutant: an entry of a kill matrix."""
        original = self.original(test)
        if mutant.id not in self._by_id or mutant.id not in original.reached:
            return PASSED
        return self.outcome_beside(original, test, mutant)

    def outcome_beside(self, original: Original, test: Any, mutant: Mutant) -> int:
        """The same, if it is known already what comes of the test without a mutant."""
        number = self._schema.numbers.get(mutant.id)
        beside, here = original.selected, self._selected
        env = {MUTANT: str(number), LIMIT: str(int(beside.cpu_limit * 1e6))}
        if number is None:
            env = {}
            assert original.plain is not None
            beside, here = original.plain, self._alone[mutant.id]
        return beside.outcome(self._observer.see(test, here, env, beside.limit))

    def original(self, test: Any) -> Original:
        """What comes of a test without a mutant; remembered for a while."""
        key = json.dumps(test, sort_keys=True)
        found = self._originals.get(key)
        if found is None:
            found = self._originals[key] = self.run_original(test)
            if len(self._originals) > _REMEMBERED:
                self._originals.popitem(last=False)
        return found

    def run_original(self, test: Any) -> Original:
        """Run a test without a mutant."""
        marks = self._observer.scratch.directory / "reached"
        marks.write_bytes(bytes(self._schema.size))
        selected = self._observer.see(test, self._selected, {REACHED: str(marks)})
        if selected.broken:
            raise UserError(f"{self._project.spec.path}: {selected.broken}")
        found = marks.read_bytes()
        sites = self._schema.sites
        reached = {one for one in self._by_id if one not in sites or found[sites[one]]}
        plain = self._observer.see(test, self._project.original) if self._alone else None
        return Original(selected, plain, frozenset(reached), bool(found[0]))

    def close(self) -> None:
        """Remove what was built."""
        self._observer.scratch.close()
        self._project.close()

    def __enter__(self) -> BuiltMutants:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def spec(self) -> Specification:
        """What the subject's file says."""
        return self._project.spec

    @property
    def seconds(self) -> float:
        """How long a test may take without a mutant."""
        return 2 * sum(step.call.timeout for step in self.spec.steps)

    @property
    def selectable(self) -> int:
        """How many of the mutants are in one program; the others have one each."""
        return len(self._schema.numbers)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The files that were mutated."""
        return tuple(file.source for file in self._project.files)

    # How they are built

    def _build_schema(self, workers: int, one_by_one: bool) -> Schema:
        """All that can be switched in one program; on lines that do not compile so, none is."""
        project = self._project
        everything = {file.source.place: _all_lines(file) for file in project.files}
        if not one_by_one:
            schema = self._compilable_schema(workers)
            if not project.builder.build(self._selected).status:
                return schema
        schema = self._written(everything)
        ended = project.builder.build(self._selected)
        if ended.status:
            raise UserError(
                f"{project.spec.path}: the program cannot be built to be mutated: "
                f"{ended.first_error}"
            )
        return schema

    def _compilable_schema(self, workers: int) -> Schema:
        """As many mutants as each file compiles with."""
        without: dict[str, set[int]] = {file.source.place: set() for file in self._project.files}
        left = self._project.files
        for round_ in range(_ROUNDS):
            schema = self._written(without)
            with ThreadPoolExecutor(max(workers, 1)) as pool:
                wrong = dict(zip(left, pool.map(self._wrong_lines, left), strict=True))
            left = [file for file, lines in wrong.items() if lines]
            if not left:
                break
            for file in left:
                barred = without[file.source.place]
                if wrong[file] <= barred:
                    wrong[file] |= self._lines_around(file, wrong[file], 2**round_)
                barred |= _all_lines(file) if round_ == _ROUNDS - 2 else wrong[file]
        return schema

    def _written(self, without: Mapping[str, set[int]]) -> Schema:
        project = self._project
        schema = schema_of(project.files, self._by_id.values(), without)
        for file in project.files:
            place = project.place_in(self._selected, file)
            place.write_bytes(schema.texts[file.source.place])
        return schema

    def _wrong_lines(self, file: CFile) -> set[int]:
        """The lines of a file that do not compile with mutants in them."""
        compiled = self._project.compiled(file)
        directory = self._selected / compiled.directory.relative_to(self._project.original)
        name = os.path.relpath(self._project.place_in(self._selected, file), directory)
        words = [compiled.compiler, *compiled.flags, "-w", "-O1", "-S", "-o", "-", name]
        ended = run(words, directory, _SECONDS)
        if not ended.status:
            return set()
        return ended.error_lines(Path(name).name) & _all_lines(file) or _all_lines(file)

    def _lines_around(self, file: CFile, lines: set[int], reach: int) -> set[int]:
        """Lines near these, and where the places begin that reach over them.

        A line that is wrong without a mutant on it has to do with one before: an ``else`` of an
        ``if`` that is another statement now.
        """
        spots = (one.spot for one in self._by_id.values() if one.file is file)
        over = {
            spot.line for spot in spots if any(spot.line <= one <= spot.last_line for one in lines)
        }
        return over | {near for one in lines for near in range(one - reach, one + reach + 1)}

    def _build_alone(self, workers: int) -> dict[str, Path]:
        """Directories with a program each, for mutants that cannot be switched."""
        alone = [one for one in self._by_id.values() if one.mutant.id not in self._schema.numbers]
        with ThreadPoolExecutor(max(workers, 1)) as pool:
            built = dict(zip(alone, pool.map(self._build_one, alone), strict=True))
        failed = {one.mutant.id for one, path in built.items() if path is None}
        self.sifted.not_compiled += len(failed)
        self.mutants = tuple(one for one in self.mutants if one.id not in failed)
        for one in failed:
            del self._by_id[one]
        return {one.mutant.id: path for one, path in built.items() if path is not None}

    def _build_one(self, one: CMutant) -> Path | None:
        project = self._project
        directory = project.copy(f"alone-{one.mutant.id}")
        project.place_in(directory, one.file).write_bytes(one.text)
        if project.builder.build(directory).status:
            return None
        shared(directory, project.original, project.written)
        return directory


def _all_lines(file: CFile) -> set[int]:
    return set(range(1, file.raw.count(b"\n") + 2))


def _place_of(mutant: Mutant, subject: CommandSubject) -> str:
    """The file of a mutant: its path is as seen from the project's top, or from the program."""
    for base in (Path.cwd(), *Path.cwd().parents, Path(subject.spec.here)):
        if (base / mutant.path).is_file():
            return str(base / mutant.path)
    raise UserError(f"{mutant.path}: there is no such file to mutate")


# -------------------------------------------------------------------------------------------------
# Choosing mutants of a C program: those of files and lines, all of them or a sample.


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
