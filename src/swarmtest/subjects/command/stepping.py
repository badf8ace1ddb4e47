"""Running the steps of a subject on one test."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from swarmtest.instrument.native.process import Ended
from swarmtest.subjects.command.calling import Caller, CannotStart
from swarmtest.subjects.command.command_test import CommandTest
from swarmtest.subjects.command.covering import Coverers
from swarmtest.subjects.command.generating import setting_text
from swarmtest.subjects.command.outcomes import Outcome
from swarmtest.subjects.command.scratch import Scratch, empty
from swarmtest.subjects.command.specification import Specification, Step
from swarmtest.subjects.command.words import Values, expanded, filled
from swarmtest.targets import Hits

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
