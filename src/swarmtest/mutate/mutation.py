"""Compute the kill matrix of a subject's tests, or of the tests of a stored campaign.

`compute_kill_matrix` takes tests as data; `mutate_campaign` takes them from a store. Both draw
mutants of the program's files, run the tests without a mutant, and then run them on the mutants.
Tests of pytest suites are in `pytest_suites`, and mutants of C programs in `native`.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.core.targets import Source
from swarmtest.coverage.scope import Scope, file_of_module, imported_program, parse_scope, text_of
from swarmtest.languages.user_objects import split_reference
from swarmtest.mutate.baseline import KillLimits
from swarmtest.mutate.campaign_tests import check_features, draw_trials, tests_of, trials_that_reach
from swarmtest.mutate.generation import DrawnMutants, all_mutants, draw_mutants
from swarmtest.mutate.import_forks import Imports
from swarmtest.mutate.import_mutants import ImportMutantRunner
from swarmtest.mutate.kill_matrix import KillMatrix
from swarmtest.mutate.kills import Runner, Show
from swarmtest.mutate.loaded_files import live_files, loaded_sources, named_sources, source_of
from swarmtest.processes.tree import end_strays
from swarmtest.store.interface import Store
from swarmtest.subjects.command.subject import CommandSubject
from swarmtest.subjects.loading import SubjectReference, is_testable
from swarmtest.subjects.stored_reference import stored_reference
from swarmtest.subjects.subject import Subject

_SECONDS = 10.0

Lines = Mapping[str, Collection[int]]
"""Line numbers by `Source.path`."""


class SubjectTests:
    """Tests of a subject as JSON data, which are replayed.

    A replay uses no random generator, so a mutant cannot influence what a test contains.
    """

    def __init__(self, subject: Subject, tests: Mapping[str, Any]) -> None:
        self.names = list(tests)
        self._subject = subject
        self._tests = list(tests.values())

    def run(self, test: int, following: int | None) -> str:
        """Run a test; return its verdict and fault as text."""
        self._subject.interruptible = False
        try:
            result = self._subject.replay(self._tests[test])
        finally:
            end_strays()
        return f"{result.verdict.label} {result.fault.id if result.fault else ''}"

    def finish(self) -> None:
        """Do nothing: tests of a subject share no state."""

    def why_not(self, ended: str) -> str:
        """Return why a test cannot be used; a failing test can, as a mutant may make it pass."""
        return "is no test" if ended.startswith(Verdict.INVALID.label) else ""


@dataclass(frozen=True)
class _RunOptions:
    """How the tests are run on the mutants."""

    limits: KillLimits
    workers: int
    first_kill: bool
    on_progress: Show | None


def compute_kill_matrix(
    subject: Subject | SubjectReference,
    tests: Sequence[Any] | Mapping[str, Any],
    files: Iterable[str | Source] = (),
    *,
    operators: str | Collection[str] = "",
    lines: Lines | None = None,
    sample: int | None = None,
    seed: int = 0,
    workers: int = 2,
    first_kill: bool = False,
    seconds: float = _SECONDS,
    memory: int = 0,
    mutants_per_fork: int = 32,
    on_progress: Show | None = None,
) -> KillMatrix:
    """Return which tests (JSON data, perhaps by name) kill which mutants of a program's files.

    `files` are Python files or directories of them; by default the loaded code beside the
    subject. For a command subject they are C files; by default those of its table ``[mutate]``.
    `lines` restricts mutants to these lines, by file. `first_kill` stops at the first test that
    kills a mutant. `mutants_per_fork` = 1 gives each mutant a process of its own.

    A subject that is already loaded cannot be imported again, so mutants of code that runs at
    import are `not_switchable`; with a `SubjectReference` they are run as well.

    >>> from swarmtest import Machine, action
    >>> from swarmtest.subjects import MachineSubject
    >>> class Counter(Machine):
    ...     def start(self): self.n = 0
    ...     @action
    ...     def up(self): self.n += 1
    >>> subject = MachineSubject(Counter)
    >>> tests = [subject.test_of(subject.space.default(), seed) for seed in (1, 2)]
    >>> compute_kill_matrix(subject, tests, ["no_such_file.py"])
    Traceback (most recent call last):
    ...
    swarmtest.UserError: no_such_file.py: there is no such file to mutate
    """
    named = tests if isinstance(tests, Mapping) else {str(i): test for i, test in enumerate(tests)}
    if not named:
        raise UserError("there are no tests to run on mutants")
    if isinstance(subject, CommandSubject):
        from swarmtest.mutate.native.kill_matrix import native_kill_matrix

        return native_kill_matrix(
            subject,
            named,
            files,
            operators=operators,
            lines=lines,
            sample=sample,
            seed=seed,
            workers=workers,
            first_kill=first_kill,
            on_progress=on_progress,
        )
    limits = KillLimits(seconds, memory, mutants_per_fork)
    options = _RunOptions(limits, workers, first_kill, on_progress)
    sources = named_sources(files)

    def drawn(loaded: Subject) -> DrawnMutants:
        if sources:
            return _drawn(sources, lines, operators, sample, seed)
        program = sources_beside(loaded)
        return _drawn(program, lines_of_program(program, lines, loaded), operators, sample, seed)

    if isinstance(subject, SubjectReference):
        with _loaded(subject, sources) as (loaded, imports):
            return _matrix(loaded, imports, named, drawn(loaded), options)
    return _matrix(subject, None, named, drawn(subject), options)


def _drawn(
    sources: Sequence[Source],
    lines: Lines | None,
    operators: str | Collection[str],
    sample: int | None,
    seed: int,
) -> DrawnMutants:
    drawn = draw_mutants(sources, operators, lines, sample, seed)
    if not drawn.mutants:
        where = ", ".join(source.path for source in sources)
        raise UserError(f"no mutant of {where} is left: choose other lines or operators")
    return drawn


def _matrix(
    subject: Subject,
    imports: Imports | None,
    named: Mapping[str, Any],
    drawn: DrawnMutants,
    options: _RunOptions,
) -> KillMatrix:
    """Run the tests on the mutants; restore the program in this process afterwards."""
    mutated = {mutant.path for mutant in drawn.mutants}
    sources = [source for source in drawn.sources if source.path in mutated]
    files = live_files(sources)
    importing = None if imports is None else ImportMutantRunner(imports, sources, dict(named))
    tests = SubjectTests(subject, named)
    runner = Runner(tests, files, options.limits, options.workers, importing)
    try:
        runner.baseline.run()
        matrix = runner.matrix(
            drawn.mutants, first_kill=options.first_kill, on_progress=options.on_progress
        )
    finally:
        for file in files:
            file.restore()
    return matrix.drawn_from(drawn)


@contextlib.contextmanager
def _loaded(
    reference: SubjectReference, sources: Sequence[Source]
) -> Iterator[tuple[Subject, Imports]]:
    """Load a subject, with waiting processes from before the import of the program it tests."""
    paths = [os.path.realpath(source.place) for source in sources]
    imports = Imports(Scope(places=tuple(paths)) if paths else _scope_of(reference), paths)
    try:
        with imports.watched():
            subject = reference.load()
            imports.arrived(lambda carried: (SubjectTests(subject, carried), True))
        yield subject, imports
    finally:
        imports.end()


def _scope_of(reference: SubjectReference) -> Scope:
    where, _ = split_reference(reference.text)
    if where.endswith((".py", ".toml")):
        imports = imported_program(where).names if where.endswith(".py") else ()
        return parse_scope((), os.path.dirname(os.path.abspath(where)), imports=imports)
    imports = () if reference.api else imported_program(file_of_module(where)).names
    return parse_scope((), "", where.partition(".")[0], imports=imports)


def sources_beside(subject: Subject) -> list[Source]:
    """Return the loaded files of the program that a subject tests, if the user named none."""
    where, _ = split_reference(subject.name)
    beside = os.path.dirname(subject.harness) if subject.harness else ""
    package = "" if where.endswith((".py", ".toml")) else where.partition(".")[0]
    imports = imported_program(subject.harness).names if subject.harness else ()
    scope = parse_scope((), beside, package, imports=imports)
    sources = loaded_sources(scope, subject.harness)
    if not sources:
        raise UserError(f"no file of what {subject.name} tests was found: name the files to mutate")
    return sources


def lines_of_program(
    sources: Sequence[Source], lines: Lines | None, subject: Subject
) -> Lines | None:
    """Return the lines to mutate in files that the user did not name; None: all.

    If the program is in the file of its machine, its lines are those outside machines: a mutant of
    a machine says nothing about what its tests notice.
    """
    harness = os.path.realpath(subject.harness) if subject.harness else ""
    own = [source for source in sources if os.path.realpath(source.place) == harness]
    machines = _machine_lines(subject) if own and lines is None else set()
    if not machines:
        return lines
    program = {source.path: set(range(1, source.text.count("\n") + 2)) for source in sources}
    for source in own:
        program[source.path] -= machines
    if not any(all_mutants(source, "", program[source.path]).mutants for source in sources):
        raise UserError(
            f"{own[0].path}: nothing to mutate besides the machine itself: name the files of the "
            "program"
        )
    return program


def _machine_lines(subject: Subject) -> set[int]:
    """Return the lines of machines in the file that defines the subject's machine."""
    machine = getattr(subject, "machine", None)
    module = sys.modules.get(getattr(machine, "__module__", ""))
    if module is None or not subject.harness:
        return set()
    machines = {name for name, member in vars(module).items() if is_testable(member)}
    tree = ast.parse(text_of(Path(subject.harness), subject.harness))
    return {
        line
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name in machines
        for line in range(_first_line(node), (node.end_lineno or node.lineno) + 1)
    }


def _first_line(node: ast.ClassDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def mutate_campaign(
    store: Store,
    campaign: int,
    files: Iterable[str] = (),
    *,
    operators: str | Collection[str] = "",
    lines: Lines | None = None,
    sample: int | None = None,
    tests: int = 1000,
    seed: int = 0,
    workers: int = 2,
    first_kill: bool = False,
    mutants_per_fork: int = 32,
    on_progress: Show | None = None,
) -> KillMatrix:
    """Return the kill matrix of a campaign's tests, which are named ``CAMPAIGN#TRIAL``.

    `files` are by default those that the campaign watched. At most `tests` of its tests are used,
    chosen by the seed. Tests that reach no mutant according to the store are not run.
    `mutants_per_fork` = 1 gives each mutant a process of its own.

    >>> from swarmtest import open_store
    >>> with open_store(":memory:") as store:
    ...     mutate_campaign(store, 1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    swarmtest.UserError: no campaign 1 in :memory:: it has none yet; run ... first
    """
    record = store.campaign(campaign)
    reference = record.options.get("subject")
    if not reference:
        raise UserError(
            f"campaign {campaign} tested {record.subject}, which cannot be imported by name; "
            "mutate it from the program that defined it (compute_kill_matrix)"
        )
    if stored_reference(reference).text.endswith(".toml"):
        from swarmtest.mutate.native.kill_matrix import mutate_c_campaign

        return mutate_c_campaign(
            store,
            campaign,
            files,
            operators=operators,
            lines=lines,
            sample=sample,
            tests=tests,
            seed=seed,
            workers=workers,
            first_kill=first_kill,
            on_progress=on_progress,
        )
    named: list[str | Source] = [*files]
    sources = named_sources(named or _watched(store, campaign))
    seconds = record.options.get("seconds") or _SECONDS
    limits = KillLimits(seconds, 0, mutants_per_fork)
    options = _RunOptions(limits, workers, first_kill, on_progress)
    with _loaded(stored_reference(reference), sources) as (subject, imports):
        check_features(subject, record)
        program = sources or sources_beside(subject)
        own_lines = lines if named else lines_of_program(program, lines, subject)
        drawn = _drawn(program, own_lines, operators, sample, seed)
        trials = draw_trials(store, campaign, tests, seed)
        needed = trials_that_reach(store, record, subject, drawn, trials)
        regenerated = tests_of(store, record, subject, needed, seconds, workers)
        if not regenerated:
            raise UserError(f"campaign {campaign} has no test that can be made again")
        matrix = _matrix(subject, imports, regenerated, drawn, options)
    skipped = {trial.trial for trial in trials} - {trial.trial for trial in needed}
    return matrix.with_tests(f"{campaign}#{trial}" for trial in sorted(skipped))


def _watched(store: Store, campaign: int) -> list[Source]:
    """Return the Python files that a campaign watched, with their current text."""
    return [
        source_of(source.place)
        for source in store.sources(campaign)
        if source.place.endswith(".py")
    ]
