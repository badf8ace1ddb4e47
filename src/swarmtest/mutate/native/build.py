"""Build the mutants of a C program: as many as possible in one program, the others one by one.

Each mutant is compared with the program that contains it, with no mutant switched on. So a
difference that is caused by inserting mutants, not by the mutant itself (memory that is read before
it is written, say), kills nothing.
"""

from __future__ import annotations

import json
import os
import sys
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
from swarmtest.mutate.native.project import Project, SiftedMutants, shared
from swarmtest.mutate.native.schemata import (
    LIMIT,
    MUTANT,
    REACHED,
    Observer,
    RunRecord,
    Schema,
    schema_of,
)
from swarmtest.subjects.command.specification import Specification
from swarmtest.subjects.command.subject import CommandSubject

_ROUNDS = 10
"""How many times mutants that do not compile are taken out of the common program."""
_SECONDS = 300.0
"""The time limit of compiling one file."""
_REMEMBERED = 1000
"""How many tests' runs without a mutant are remembered."""


@dataclass(frozen=True)
class OriginalRun:
    """What a test does without a mutant."""

    selected: RunRecord
    """What was seen with the program that contains mutants, none of them on."""
    plain: RunRecord | None
    """What was seen with the unchanged program; None if no mutant has a program of its own."""
    reached: frozenset[str]
    """The ids of the mutants that it executes."""
    ran: bool
    """Whether it ran the program that was built."""


class BuiltMutants:
    """Mutants of a command subject's program, ready to be run on one test after the other.

    Mutants that do not compile, or compile to the code of the program or of another mutant, are
    left out (`sifted` counts them). An instance can be used in forked processes; `close` removes
    the programs that were built.
    """

    def __init__(
        self,
        subject: CommandSubject,
        mutants: Sequence[Mutant],
        *,
        workers: int = 2,
        one_by_one: bool = False,
    ) -> None:
        """Build the mutants; `one_by_one` builds a program for each, slower but equivalent."""
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
    def of(cls, project: Project, sifted: SiftedMutants, workers: int) -> BuiltMutants:
        """Build mutants of an existing project that have already been sifted."""
        built = cls.__new__(cls)
        built._begin(project, sifted, workers)
        return built

    def _begin(
        self, project: Project, sifted: SiftedMutants, workers: int, one_by_one: bool = False
    ) -> None:
        self._project = project
        self.sifted = sifted
        self.mutants = tuple(c_mutant.mutant for c_mutant in sifted.mutants)
        self._by_id = {c_mutant.mutant.id: c_mutant for c_mutant in sifted.mutants}
        self._observer = Observer(project.spec)
        self._selected = project.copy("selected")
        self._schema = self._build_schema(workers, one_by_one)
        self._alone = self._build_alone(workers)
        self._originals: OrderedDict[str, OriginalRun] = OrderedDict()

    # Running tests

    def kills(self, test: Any, among: Collection[Mutant] | None = None) -> frozenset[Mutant]:
        """Return the mutants that a test (JSON data) kills, of all or of those in `among`."""
        tried = self.mutants if among is None else among
        return frozenset(mutant for mutant in tried if self.outcome(test, mutant) > PASSED)

    def kills_all(self, test: Any, among: Collection[Mutant] | None = None) -> bool:
        """Return whether a test kills all mutants; stop at the first that survives."""
        tried = self.mutants if among is None else among
        reached = self.original(test).reached
        return all(mutant.id in reached for mutant in tried) and all(
            self.outcome(test, mutant) > PASSED for mutant in tried
        )

    def reached(self, test: Any) -> frozenset[Mutant]:
        """Return the mutants that a test executes; it can kill no others."""
        ids = self.original(test).reached
        return frozenset(mutant for mutant in self.mutants if mutant.id in ids)

    def outcome(self, test: Any, mutant: Mutant) -> int:
        """Return the outcome of a test under a mutant: an entry of a kill matrix."""
        original = self.original(test)
        if mutant.id not in self._by_id or mutant.id not in original.reached:
            return PASSED
        return self.outcome_beside(original, test, mutant)

    def outcome_beside(self, original: OriginalRun, test: Any, mutant: Mutant) -> int:
        """Return the same, given what the test does without a mutant."""
        number = self._schema.numbers.get(mutant.id)
        beside, here = original.selected, self._selected
        env = {MUTANT: str(number), LIMIT: str(int(beside.cpu_limit * 1e6))}
        if number is None:
            env = {}
            assert original.plain is not None
            beside, here = original.plain, self._alone[mutant.id]
        return beside.outcome(self._observer.see(test, here, env, beside.limit))

    def original(self, test: Any) -> OriginalRun:
        """Return what a test does without a mutant, remembered from earlier calls."""
        key = json.dumps(test, sort_keys=True)
        original = self._originals.get(key)
        if original is None:
            original = self._originals[key] = self.run_original(test)
            if len(self._originals) > _REMEMBERED:
                self._originals.popitem(last=False)
        return original

    def run_original(self, test: Any) -> OriginalRun:
        """Run a test without a mutant."""
        marks = self._observer.scratch.directory / "reached"
        marks.write_bytes(bytes(self._schema.size))
        selected = self._observer.see(test, self._selected, {REACHED: str(marks)})
        if selected.broken:
            raise UserError(f"{self._project.spec.path}: {selected.broken}")
        marked = marks.read_bytes()
        sites = self._schema.sites
        reached = {id for id in self._by_id if id not in sites or marked[sites[id]]}
        plain = self._observer.see(test, self._project.original) if self._alone else None
        return OriginalRun(selected, plain, frozenset(reached), bool(marked[0]))

    def close(self) -> None:
        """Remove the programs that were built."""
        self._observer.scratch.close()
        self._project.close()

    def __enter__(self) -> BuiltMutants:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def spec(self) -> Specification:
        """The specification in the subject's TOML file."""
        return self._project.spec

    @property
    def seconds(self) -> float:
        """How long a test may take without a mutant."""
        return 2 * sum(step.call.timeout for step in self.spec.steps)

    @property
    def selectable(self) -> int:
        """The number of mutants in the common program; the others have one each."""
        return len(self._schema.numbers)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The files that were mutated."""
        return tuple(file.source for file in self._project.files)

    # Building

    def _build_schema(self, workers: int, one_by_one: bool) -> Schema:
        """Build the common program, with all mutants that can be switched in it.

        Lines that do not compile with mutants in them get none.
        """
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
        """Write the files with as many mutants as each compiles with."""
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
                if wrong[file] <= barred:  # mutants on other lines are the cause
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
        """Return the lines of a file that do not compile with mutants in them."""
        compiled = self._project.compiled(file)
        directory = self._selected / compiled.directory.relative_to(self._project.original)
        name = os.path.relpath(self._project.place_in(self._selected, file), directory)
        words = [compiled.compiler, *compiled.flags, "-w", "-O1", "-S", "-o", "-", name]
        ended = run(words, directory, _SECONDS)
        if not ended.status:
            return set()
        return ended.error_lines(Path(name).name) & _all_lines(file) or _all_lines(file)

    def _lines_around(self, file: CFile, lines: set[int], reach: int) -> set[int]:
        """Return lines near these, and the first lines of the spots that span them.

        If a line without a mutant does not compile, a mutant before it is the cause: it may be the
        ``else`` of an ``if`` that has become another statement.
        """
        spots = (c_mutant.spot for c_mutant in self._by_id.values() if c_mutant.file is file)
        over = {
            spot.line
            for spot in spots
            if any(spot.line <= line <= spot.last_line for line in lines)
        }
        return over | {near for line in lines for near in range(line - reach, line + reach + 1)}

    def _build_alone(self, workers: int) -> dict[str, Path]:
        """Build a program for each mutant that cannot be switched; return the directories."""
        alone = [c_mutant for id, c_mutant in self._by_id.items() if id not in self._schema.numbers]
        with ThreadPoolExecutor(max(workers, 1)) as pool:
            built = dict(zip(alone, pool.map(self._build_one, alone), strict=True))
        failed = {c_mutant.mutant.id for c_mutant, path in built.items() if path is None}
        self.sifted.not_compiled += len(failed)
        self.mutants = tuple(mutant for mutant in self.mutants if mutant.id not in failed)
        for id in failed:
            del self._by_id[id]
        return {c_mutant.mutant.id: path for c_mutant, path in built.items() if path is not None}

    def _build_one(self, c_mutant: CMutant) -> Path | None:
        """Build a program with one mutant; return its directory, or None if that fails."""
        project = self._project
        directory = project.copy(f"alone-{c_mutant.mutant.id}")
        project.place_in(directory, c_mutant.file).write_bytes(c_mutant.text)
        if project.builder.build(directory).status:
            return None
        shared(directory, project.original, project.written)
        return directory


def _all_lines(file: CFile) -> set[int]:
    return set(range(1, file.raw.count(b"\n") + 2))


def _place_of(mutant: Mutant, subject: CommandSubject) -> str:
    """Return the file of a mutant; its path is as `shown_path` gives it, or below the program."""
    for base in (Path.cwd(), *Path.cwd().parents, Path(subject.spec.here), *map(Path, sys.path)):
        if (base / mutant.path).is_file():
            return str(base / mutant.path)
    raise UserError(f"{mutant.path}: there is no such file to mutate")


# Drawing mutants of a C program: all of some files and lines, or a sample.


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
    """Draw mutants of C files and build them; by default of the files that ``[mutate]`` names.

    `lines` restricts them to these lines, by `Source.path`. `sample` is the number to draw among
    those that compile and are not trivially equivalent; the same seed draws the same mutants.
    `first` are the ids of mutants that are drawn before all others.
    """
    if sample is not None and sample < 1:
        raise UserError(f"--sample {sample}: a sample has at least one mutant")
    named = list(files)
    all_used = bool(named) and not any(
        isinstance(file, str) and Path(file).is_dir() for file in named
    )
    project = Project(subject, named_c_files(named), all_used)
    try:
        population = _all_mutants(project, operators, lines)
        order = {id(c_mutant): i for i, c_mutant in enumerate(population)}
        if sample is not None:
            population.sort(
                key=lambda c_mutant: (c_mutant.mutant.id not in first, _rank(c_mutant, seed))
            )
        sifted = project.sifted(population, workers, sample)
        if not sifted.mutants:
            where = ", ".join(file.source.path for file in project.files)
            raise UserError(f"no mutant of {where} is left: choose other lines or operators")
        sifted.mutants.sort(key=lambda c_mutant: order[id(c_mutant)])
        return BuiltMutants.of(project, sifted, workers)
    except BaseException:
        project.close()
        raise


def _all_mutants(
    project: Project,
    operators: str | Collection[str],
    lines: Mapping[str, Collection[int]] | None,
) -> list[CMutant]:
    return [
        c_mutant
        for file in project.files
        if lines is None or file.source.path in lines
        for c_mutant in mutants_in(
            file, operators, None if lines is None else lines[file.source.path]
        )
    ]


def _rank(c_mutant: CMutant, seed: int) -> int:
    return mixed(key_of(c_mutant.mutant.id) ^ mixed(seed))
