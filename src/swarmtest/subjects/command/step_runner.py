"""Run the steps of a subject on one test, and collect the coverage of the programs they run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Catalogue, Hits
from swarmtest.coverage.native.collector import Collector, HitFile, Lines
from swarmtest.coverage.native.fast import FastCoverage, has_runtime
from swarmtest.coverage.native.gcov import GcovCoverage, has_counters
from swarmtest.processes.commands import ProcessEnd
from swarmtest.processes.scratch import Scratch, empty
from swarmtest.subjects.command.generator import setting_text
from swarmtest.subjects.command.specification import Specification, Step
from swarmtest.subjects.command.steps import Caller, CannotStart, Outcome
from swarmtest.subjects.command.test import CommandTest
from swarmtest.subjects.command.toml_reader import Values, expanded, filled

_TEST_DIRECTORY = "/directory-of-the-test"
"""Stands for the test's directory in commands that are only shown."""


@dataclass
class Stepped:
    """The outcomes of a test's steps; each step adds to it."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """Outcomes by step name, in the order of the steps."""
    cpu_seconds: float = 0.0
    covered: list[Hits] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Why coverage is missing; empty when it is complete."""


class Stepper:
    """Runs the steps in order, in a directory that at first contains only the test."""

    def __init__(self, spec: Specification, scratch: Scratch, caller: Caller) -> None:
        self._spec = spec
        self._scratch = scratch
        self._caller = caller
        self._file = f"test{spec.generate.suffix}"
        self._settings = dict(
            zip(spec.space.setting_names, spec.space.default_settings, strict=True)
        )
        self._coverers = Coverers(spec, scratch)

    def run(self, test: CommandTest, look: Callable[[Path], None] | None = None) -> Stepped:
        """Run all steps on one test; `look` is called with the directory as they left it."""
        directory = self._scratch.fresh("test")
        stepped = Stepped()
        try:
            (directory / self._file).write_bytes(test.content)
            for step in self._spec.steps:
                stepped.outcomes[step.name] = self._outcome(step, test, directory, stepped)
            if look is not None:
                look(directory)
            return stepped
        finally:
            empty(directory)

    def _outcome(self, step: Step, test: CommandTest, directory: Path, stepped: Stepped) -> Outcome:
        before = stepped.outcomes
        if test.only and step.name not in test.only:
            return Outcome(step.name, skipped="what is looked for does not need it")
        blocked = next((name for name in step.needs if not before[name].ok), "")
        if blocked:
            return Outcome(step.name, skipped=f"{blocked} did not succeed")
        coverer = self._coverers.of(step)
        try:
            ended = self._caller.run(
                step.call,
                directory,
                self._values(step, test, directory),
                env=coverer.environment if coverer else None,
                extra_memory=coverer.extra_memory if coverer else 0,
            )
        except CannotStart as error:
            # If an earlier step failed, it may not have built the program that this step runs.
            all_well = all(outcome.ok for outcome in before.values())
            return Outcome(step.name, skipped=str(error), broken=all_well)
        stepped.cpu_seconds += ended.cpu_seconds
        if coverer is not None:
            collected = coverer.collect(ended)
            stepped.covered += [collected.hits] if collected.hits is not None else []
            if collected.missing:
                stepped.missing.append(f"{step.name}: {collected.missing}")
        temporary = str(directory.with_name("tmp"))
        paths = {str(directory): "{dir}", temporary: "/tmp", self._spec.here: "{here}"}
        return outcome_of(step, ended, paths)

    def _values(self, step: Step, test: CommandTest, directory: Path) -> Values:
        values = dict(self._caller.places(step.call, directory, self._file))
        settings = {**self._settings, **test.settings}
        values |= {f"setting:{name}": setting_text(value) for name, value in settings.items()}
        return values

    def commands(self, test: CommandTest) -> dict[str, str]:
        """Return shell lines, by step name, that do what `run` does, in an empty directory."""
        return {step.name: self._command(step, test) for step in self._spec.steps}

    def _command(self, step: Step, test: CommandTest) -> str:
        call = step.call
        values = self._values(step, test, Path(_TEST_DIRECTORY))
        env = [f"{name}={_quoted(filled(text, values))}" for name, text in call.env.items()]
        line = " ".join([*env, *map(_quoted, expanded(call.words, values))])
        if call.stdin:
            line += f" < {_quoted(filled(call.stdin, values))}"
        if call.cwd:
            line = f"(D=$PWD; cd {_quoted(filled(call.cwd, values))} && {line})"
        return line


def _quoted(word: str) -> str:
    """Quote a word for the shell; ``$D`` stands for the test's directory."""
    return (
        '"$D"'.join(shlex.quote(part) if part else "" for part in word.split(_TEST_DIRECTORY))
        or "''"
    )


def outcome_of(step: Step, ended: ProcessEnd, paths: Mapping[str, str]) -> Outcome:
    """Return the outcome of a step, with paths in its output replaced by the names in `paths`.

    These paths differ between runs, and would make signatures differ.
    """
    status = None if ended.signal else os.WEXITSTATUS(ended.status)
    expected = status is not None and (not step.call.expect or status in step.call.expect)
    stdout, stderr = ended.stdout, ended.stderr
    for path, name in paths.items():
        if path != os.sep:
            pattern = re.escape(path.encode()) + rb"(?![\w.-])"
            stdout = re.sub(pattern, name.encode(), stdout)
            stderr = re.sub(pattern, name.encode(), stderr)
    return Outcome(
        step.name,
        None if ended.timed_out else status,
        0 if ended.timed_out else ended.signal,
        ended.timed_out,
        stdout=stdout,
        stderr=stderr,
        ok=expected and not ended.timed_out,
    )


# Coverage of the programs that steps run.


class Coverers:
    """The coverage collectors of a subject's steps, created when a process first needs them.

    A collector belongs to one program and to the process that created it, so a forked process
    creates its own. All collectors number lines in one catalogue: a line is the same target in
    every step that runs it.
    """

    def __init__(self, spec: Specification, scratch: Scratch) -> None:
        self._here = spec.here
        self._scratch = scratch
        self.catalogue = Catalogue()
        self._lines = {step.name: self._lines_of(step) for step in spec.steps if step.cover}
        self._owner = 0
        self._collectors: dict[str, Collector] = {}

    def of(self, step: Step) -> Collector | None:
        """Return the collector for a step in this process; None if the step has no `cover`."""
        if not step.cover:
            return None
        if self._owner != os.getpid():
            for inherited in self._collectors.values():
                if isinstance(inherited, FastCoverage):
                    inherited.close()  # our handle on the parent's memory, not the memory itself
            self._collectors.clear()
            self._owner = os.getpid()
        collector = self._collectors.get(step.name)
        if collector is None:
            collector = self._collectors[step.name] = self._make(step)
        return collector

    def _lines_of(self, step: Step) -> Lines:
        sources = step.sources
        paths = None if sources is None else [os.path.join(self._here, path) for path in sources]
        return Lines(self.catalogue, paths)

    def _make(self, step: Step) -> Collector:
        program = program_of(step, self._here)
        kind = detected(program, step.name) if step.cover == "auto" else step.cover
        lines = self._lines[step.name]
        if kind == "fast":
            return FastCoverage(program, lines)
        directory = self._scratch.fresh(f"coverage-{len(self._collectors)}")
        if kind == "gcov":
            return GcovCoverage(program, lines, directory)
        return HitFile(program, lines, directory / "hits", lcov=kind == "lcov")


def program_of(step: Step, here: str) -> str:
    """Return the path of the program that a step with `cover` runs."""
    word = filled(step.call.words[0], {"here": here})
    path = shutil.which(word)
    if path is None or "{" in word:
        raise UserError(
            f"step {step.name!r} has cover, but {word!r} is no program that was built before: "
            "name it as {here}/PROGRAM"
        )
    return os.path.abspath(path)


def detected(program: str, step: str) -> str:
    """Return the kind of coverage that a program was built with; raise if there is none."""
    if has_runtime(program):
        return "fast"
    if has_counters(program):
        return "gcov"
    raise UserError(
        f"step {step!r} has cover, but {program} was built without coverage: build it with "
        '`swarmtest cc` or --coverage, or say cover = "hits" or "lcov"'
    )
