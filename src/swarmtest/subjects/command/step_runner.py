"""Run the steps of a subject on one test, and collect the coverage of the programs they run.

`CommandRunner` fills in the placeholders of a command, runs it within its limits and leaves no
process behind. A `StepOutcome` is the result of a step, as oracles see it. `StepRunner` runs all
steps of a test.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from swarmtest.core.errors import UserError
from swarmtest.core.messages.telling_lines import telling_line
from swarmtest.core.targets import Catalogue, Hits
from swarmtest.coverage.native.collector import (
    Collector,
    HitFile,
    LineNumbers,
    campaign_wants_branches,
)
from swarmtest.coverage.native.fast import FastCoverage, has_runtime
from swarmtest.coverage.native.gcov import GcovCoverage, has_counters
from swarmtest.coverage.native.sanitizers import limits_resident_memory
from swarmtest.processes.commands import CommandLine, Output, ProcessEnd
from swarmtest.processes.limits import own_memory_limit_lifted
from swarmtest.processes.perturbation import note_program, perturbation
from swarmtest.processes.scratch import Scratch, empty
from swarmtest.subjects.command.debian_packages import remedy_for
from swarmtest.subjects.command.specification import CommandCall, Specification, StepSection
from swarmtest.subjects.command.test import CommandTest
from swarmtest.subjects.command.toml_reader import Values, expanded, filled, setting_text

# One command.

_LONGEST_LINE = 200


class CannotStart(Exception):
    """The command could not be started; the message says why, in one line."""


@dataclass(frozen=True)
class _GuardedCommand(CommandLine):
    """A command whose process group is killed even if this process is killed."""

    guard: Callable[[int], None] = lambda group: None

    def start(
        self, stdin: int, outputs: Sequence[Output], keep: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        with own_memory_limit_lifted():
            process = super().start(stdin, outputs, keep)
        self.guard(process.pid)
        return process


class CommandRunner:
    """Runs commands in the directory of the current test."""

    def __init__(self, scratch: Scratch, here: str) -> None:
        self._scratch = scratch
        self._here = here
        note_program()
        self._environment = dict(os.environ)

    def places(self, call: CommandCall, directory: Path, test: str) -> Values:
        """Return the values of ``{test}``, ``{dir}`` and ``{here}``.

        For a command that runs in the test's directory, the first two are relative. An absolute
        path would differ in every run, and would get into messages and, through ``__FILE__``, into
        compiled programs.
        """
        if not call.cwd:
            return {"test": test, "dir": ".", "here": self._here}
        return {"test": str(directory / test), "dir": str(directory), "here": self._here}

    def run(
        self,
        call: CommandCall,
        directory: Path,
        values: Values,
        *,
        env: Mapping[str, str] | None = None,
        extra_memory: int = 0,
        separator: str = " ",
    ) -> ProcessEnd:
        """Run a command until it ends or reaches its time limit."""
        words = expanded(call.words, values, separator)
        environment = {**self._environment, **perturbation(), **(env or {})}
        environment["TMPDIR"] = self._scratch.temporary
        environment.update({name: filled(text, values) for name, text in call.env.items()})
        cwd = filled(call.cwd, values) if call.cwd else str(directory)
        resident = bool(call.memory) and limits_resident_memory(
            _program(words[0], cwd), environment
        )
        command = _GuardedCommand(
            tuple(words),
            environment,
            cwd,
            call.memory and call.memory + (0 if resident else extra_memory),
            resident,
            self._scratch.guard,
        )
        stdin = _open(os.path.join(cwd, filled(call.stdin, values)) if call.stdin else os.devnull)
        try:
            return command.run(stdin, call.timeout)
        except (UserError, ValueError) as error:
            raise CannotStart(str(error)) from None
        finally:
            os.close(stdin)
            self._scratch.guard(0)


def _program(word: str, directory: str) -> str:
    """Return the path of a command's program as a shell finds it; empty if there is none."""
    if os.sep in word:
        return os.path.join(directory, word)
    return shutil.which(word) or ""


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError as error:
        name = os.path.basename(path)
        raise CannotStart(f"cannot read {name} as standard input: {error.strerror}") from None


# Outcomes of steps.


@dataclass(frozen=True)
class StepOutcome:
    """The result of one step, as a Python oracle gets it.

    >>> StepOutcome("run", status=1).how
    'exit status 1'
    """

    name: str
    status: int | None = None
    """The exit status; None if it did not exit by itself."""
    signal: int = 0
    """The signal that ended it; 0 if it exited by itself."""
    timed_out: bool = False
    out_of_memory: bool = False
    """Whether it was ended because it held more than its `memory`."""
    skipped: str = ""
    """Why it did not run; empty if it ran."""
    stdout: bytes = b""
    """The first MiB of its standard output."""
    stderr: bytes = b""
    """The first MiB of its standard error."""
    ok: bool = False
    """Whether it exited in time, with an expected exit status."""
    broken: bool = False
    """Whether it could not start although all steps before it succeeded."""
    stack: tuple[str, ...] = ()
    """The functions that a signal interrupted, the innermost first, if the step has `cover`."""

    @property
    def how(self) -> str:
        """How the step ended, in words."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        if self.timed_out:
            return "timeout"
        if self.out_of_memory:
            return "out of memory"
        return signal_name(self.signal) if self.signal else f"exit status {self.status}"

    @property
    def text(self) -> str:
        """The output: standard error, then standard output."""
        return "\n".join(
            output.decode(errors="replace") for output in (self.stderr, self.stdout) if output
        )


def signal_name(number: int) -> str:
    """Return a signal's name.

    >>> signal_name(11)
    'SIGSEGV'
    """
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def how_it_ended(ended: ProcessEnd) -> str:
    """Return how a process ended, in words."""
    if ended.signal:
        return signal_name(ended.signal)
    return f"exit status {os.WEXITSTATUS(ended.status)}"


def said_by(stderr: bytes, stdout: bytes = b"") -> str:
    """Return what a process said about its failure and how to fix that, as the end of a message.

    >>> said_by(b"t.c:1:10: fatal error: csmith.h: No such file or directory\\nterminated.\\n")
    ': t.c:1:10: fatal error: csmith.h: No such file or directory (apt-get install libcsmith-dev)'
    >>> said_by(b"")
    ''
    """
    line = telling_line(stderr.decode(errors="replace"), stdout.decode(errors="replace"))
    if not line:
        return ""
    remedy = remedy_for(line)
    return f": {line[:_LONGEST_LINE]}{f' ({remedy})' if remedy else ''}"


# All steps of a test.

_TEST_DIRECTORY = "/directory-of-the-test"
"""Stands for the test's directory in commands that are only shown."""


@dataclass
class StepResults:
    """The outcomes of a test's steps; each step adds to it."""

    outcomes: dict[str, StepOutcome] = field(default_factory=dict)
    """Outcomes by step name, in the order of the steps."""
    cpu_seconds: float = 0.0
    covered: list[Hits] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Why coverage is missing; empty when it is complete."""
    killed: bool = False
    """Whether a step was killed, perhaps from outside."""


class StepRunner:
    """Runs the steps in order, in a directory that at first contains only the test."""

    def __init__(self, spec: Specification, scratch: Scratch, caller: CommandRunner) -> None:
        self._spec = spec
        self._scratch = scratch
        self._caller = caller
        self._file = f"test{spec.generate.suffix}"
        self._coverers = StepCoverage(spec, scratch)

    def run(self, test: CommandTest, look: Callable[[Path], None] | None = None) -> StepResults:
        """Run all steps on one test; `look` is called with the directory as they left it."""
        directory = self._scratch.fresh("test")
        stepped = StepResults()
        try:
            (directory / self._file).write_bytes(test.content)
            for step in self._spec.steps:
                stepped.outcomes[step.name] = self._outcome(step, test, directory, stepped)
            if look is not None:
                look(directory)
            return stepped
        finally:
            empty(directory)

    def _outcome(
        self, step: StepSection, test: CommandTest, directory: Path, stepped: StepResults
    ) -> StepOutcome:
        before = stepped.outcomes
        if test.only and step.name not in test.only:
            return StepOutcome(step.name, skipped="not needed for what is looked for")
        blocked = next((name for name in step.needs if not before[name].ok), "")
        if blocked:
            return StepOutcome(step.name, skipped=f"{blocked} did not succeed")
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
            return StepOutcome(step.name, skipped=str(error), broken=all_well)
        stepped.cpu_seconds += ended.cpu_seconds
        stepped.killed = stepped.killed or ended.perhaps_from_outside
        stack: tuple[str, ...] = ()
        if coverer is not None:
            collected = coverer.collect(ended)
            stack = collected.stack
            stepped.covered += [collected.hits] if collected.hits is not None else []
            if collected.missing:
                stepped.missing.append(f"{step.name}: {collected.missing}")
        temporary = str(directory.with_name("tmp"))
        paths = {str(directory): "{dir}", temporary: "/tmp", self._spec.here: "{here}"}
        return replace(outcome_of(step, ended, paths), stack=stack)

    def _values(self, step: StepSection, test: CommandTest, directory: Path) -> Values:
        values = dict(self._caller.places(step.call, directory, self._file))
        # A test may come from somebody else, and a command may be `sh -c` with a setting in it.
        settings = self._spec.space.settings_among(test.settings)
        values |= {f"setting:{name}": setting_text(value) for name, value in settings.items()}
        return values

    def commands(self, test: CommandTest) -> dict[str, str]:
        """Return shell lines, by step name, that do what `run` does, in an empty directory."""
        return {step.name: self._command(step, test) for step in self._spec.steps}

    def _command(self, step: StepSection, test: CommandTest) -> str:
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


def outcome_of(step: StepSection, ended: ProcessEnd, paths: Mapping[str, str]) -> StepOutcome:
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
    return StepOutcome(
        step.name,
        None if ended.timed_out else status,
        0 if ended.timed_out else ended.signal,
        ended.timed_out,
        ended.out_of_memory,
        stdout=stdout,
        stderr=stderr,
        ok=expected and not ended.timed_out,
    )


# Coverage of the programs that steps run.


class StepCoverage:
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

    def of(self, step: StepSection) -> Collector | None:
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

    def _lines_of(self, step: StepSection) -> LineNumbers:
        sources = step.sources
        paths = None if sources is None else [os.path.join(self._here, path) for path in sources]
        return LineNumbers(self.catalogue, paths)

    def _make(self, step: StepSection) -> Collector:
        program = program_of(step, self._here)
        kind = detected(program, step.name) if step.cover == "auto" else step.cover
        lines = self._lines[step.name]
        if kind == "fast":
            return FastCoverage(program, lines, branches=campaign_wants_branches())
        directory = self._scratch.fresh(f"coverage-{len(self._collectors)}")
        if kind == "gcov":
            return GcovCoverage(program, lines, directory)
        return HitFile(program, lines, directory / "hits", lcov=kind == "lcov")


def program_of(step: StepSection, here: str) -> str:
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
