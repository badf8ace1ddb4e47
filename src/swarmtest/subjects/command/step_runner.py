"""Running the steps of a subject on one test."""

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
from swarmtest.processes.commands import Ended
from swarmtest.processes.scratch import Scratch, empty
from swarmtest.subjects.command.generator import setting_text
from swarmtest.subjects.command.specification import Specification, Step
from swarmtest.subjects.command.steps import Caller, CannotStart, Outcome
from swarmtest.subjects.command.test import CommandTest
from swarmtest.subjects.command.toml_reader import Values, expanded, filled

# -------------------------------------------------------------------------------------------------
# Coverage of steps: how the hits of a program that a step runs are collected.
#
# A collector belongs to the process that made it, and to one program: a forked process makes its
# own.
# All number their lines in one catalogue, so the same line is the same target whichever step ran
# it.


class Coverers:
    """The collectors of a subject's steps, made when first needed in a process."""

    def __init__(self, spec: Specification, scratch: Scratch) -> None:
        self._here = spec.here
        self._scratch = scratch
        self.catalogue = Catalogue()
        self._lines = {step.name: self._lines_of(step) for step in spec.steps if step.cover}
        self._owner = 0
        self._collectors: dict[str, Collector] = {}

    def of(self, step: Step) -> Collector | None:
        """The collector for a step in this process; None if its coverage is not wanted."""
        if not step.cover:
            return None
        if self._owner != os.getpid():
            for one in self._collectors.values():
                if isinstance(one, FastCoverage):
                    one.close()  # our handle on the parent's memory, not the memory itself
            self._collectors.clear()
            self._owner = os.getpid()
        collector = self._collectors.get(step.name)
        if collector is None:
            collector = self._collectors[step.name] = self._make(step)
        return collector

    def _lines_of(self, step: Step) -> Lines:
        wanted = step.sources
        paths = None if wanted is None else [os.path.join(self._here, path) for path in wanted]
        return Lines(self.catalogue, paths)

    def _make(self, step: Step) -> Collector:
        program = program_of(step, self._here)
        way = detected(program, step.name) if step.cover == "auto" else step.cover
        lines = self._lines[step.name]
        if way == "fast":
            return FastCoverage(program, lines)
        directory = self._scratch.fresh(f"coverage-{len(self._collectors)}")
        if way == "gcov":
            return GcovCoverage(program, lines, directory)
        return HitFile(program, lines, directory / "hits", lcov=way == "lcov")


def program_of(step: Step, here: str) -> str:
    """The path of the program that a covered step runs."""
    word = filled(step.call.words[0], {"here": here})
    found = shutil.which(word)
    if found is None or "{" in word:
        raise UserError(
            f"step {step.name!r} has cover, but {word!r} is no program that was built before: "
            "name it as {here}/PROGRAM"
        )
    return os.path.abspath(found)


def detected(program: str, step: str) -> str:
    """How a program was built for coverage."""
    if has_runtime(program):
        return "fast"
    if has_counters(program):
        return "gcov"
    raise UserError(
        f"step {step!r} has cover, but {program} was built without coverage: build it with "
        '`swarmtest cc` or --coverage, or say cover = "hits" or "lcov"'
    )


# -------------------------------------------------------------------------------------------------

_PLACE = "/directory-of-the-test"
"""Stands for the test's directory in commands that are only shown."""


@dataclass
class Stepped:
    """What came of the steps of a test; it grows from step to step."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """By the step's name, in their order."""
    cpu_seconds: float = 0.0
    covered: list[Hits] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Why coverage is missing; empty when it is all there."""


class Stepper:
    """Runs the steps, in order, in a directory that holds nothing but the test."""

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
        """All steps on one test; `look` sees the directory as they left it."""
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
        """For each step a shell line that does by hand what `run` does, in an empty directory."""
        return {step.name: self._command(step, test) for step in self._spec.steps}

    def _command(self, step: Step, test: CommandTest) -> str:
        call = step.call
        values = self._values(step, test, Path(_PLACE))
        env = [f"{name}={_quoted(filled(text, values))}" for name, text in call.env.items()]
        line = " ".join([*env, *map(_quoted, expanded(call.words, values))])
        if call.stdin:
            line += f" < {_quoted(filled(call.stdin, values))}"
        if call.cwd:
            line = f"(D=$PWD; cd {_quoted(filled(call.cwd, values))} && {line})"
        return line


def _quoted(word: str) -> str:
    """A word for the shell; the test's directory is known only there."""
    return '"$D"'.join(shlex.quote(part) if part else "" for part in word.split(_PLACE)) or "''"


def outcome_of(step: Step, ended: Ended, paths: Mapping[str, str]) -> Outcome:
    """How a step ended; paths that are not the same everywhere are taken out of its output."""
    status = None if ended.signal else os.WEXITSTATUS(ended.status)
    expected = status is not None and (not step.call.expect or status in step.call.expect)
    stdout, stderr = ended.stdout, ended.stderr
    for path, name in paths.items():
        if path != os.sep:
            whole = re.escape(path.encode()) + rb"(?![\w.-])"
            stdout = re.sub(whole, name.encode(), stdout)
            stderr = re.sub(whole, name.encode(), stderr)
    return Outcome(
        step.name,
        None if ended.timed_out else status,
        0 if ended.timed_out else ended.signal,
        ended.timed_out,
        stdout=stdout,
        stderr=stderr,
        ok=expected and not ended.timed_out,
    )
