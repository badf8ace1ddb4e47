"""The subject that a TOML file describes: a generator, steps to run on each test, and oracles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.coverage.native.program import executed
from swarmtest.processes.kills import FEWEST_KILLS, run_until_not_killed
from swarmtest.processes.scratch import Scratch
from swarmtest.reducer.reducer import ConvertedCriterion
from swarmtest.subjects.command.generator import (
    CommandGenerator,
    GeneratorOutput,
    GrammarTests,
    TestGenerator,
)
from swarmtest.subjects.command.oracles import Judge, details_of, load_oracle
from swarmtest.subjects.command.reader import read_specification
from swarmtest.subjects.command.specification import Specification
from swarmtest.subjects.command.step_runner import CommandRunner, StepRunner
from swarmtest.subjects.command.test import CommandTest
from swarmtest.subjects.command.toml_reader import filled
from swarmtest.subjects.subject import NoTest, Subject


def load_command_subject(path: str) -> CommandSubject:
    """Return the subject that a TOML file describes; raise `UserError` for a mistake in the file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write('''
    ...     [generate]
    ...     command = "echo {seed} {features}"
    ...     [features]
    ...     loops = "--loops"
    ...     calls = { on = "--calls", off = "--no-calls" }
    ...     [[steps]]
    ...     run = "grep -q loops {test}"
    ...     ''')
    ...     file.flush()
    ...     subject = load_command_subject(file.name)
    >>> result = subject.execute(subject.space.configuration(["calls"]), seed=1)
    >>> result.verdict.label, result.fault.signature, subject.code(result.test)
    ('failed', 'step1: exit status 1', '2 --calls\\n')
    """
    return CommandSubject(read_specification(Path(path)), path)


class CommandSubject(Subject):
    """A subject that runs commands, as a TOML file says; see docs/commands.md."""

    def __init__(self, spec: Specification, name: str = "") -> None:
        self.spec = spec
        self.name = name or str(spec.path)
        self.space = spec.space
        self.harness = str(spec.path)
        self.part = "line" if spec.generate.grammar is None else "token"
        self.suffix = spec.generate.suffix or ".txt"
        self.weighted = spec.weighted
        calls = [spec.generate.call] if spec.generate.call else []
        once = sum(call.timeout for call in [*calls, *(step.call for step in spec.steps)])
        self.seconds = FEWEST_KILLS * once  # what is killed from outside runs again
        self._seconds_for_kills = (FEWEST_KILLS - 1) * once
        self._scratch = Scratch()
        self._caller = CommandRunner(self._scratch, spec.here)
        self._generator: TestGenerator = self._make_generator()
        self._stepper = StepRunner(spec, self._scratch, self._caller)
        self._judge = Judge(spec, load_oracle(spec))
        self._is_built = False
        self._counts_appearances = any(form.appears for form in spec.forms)

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Generate a test and run the steps on it."""
        output = self.generated(configuration, seed)
        if output.why_not:
            return Result(
                Verdict.INVALID,
                missing=output.why_not,
                cpu_seconds=output.cpu_seconds,
                killed=output.killed,
            )
        test = self._test(output, configuration, seed)
        if self.journal is not None:
            self.journal(test.to_json())
        result = self._run(test)
        return result._replace(
            cpu_seconds=result.cpu_seconds + output.cpu_seconds,
            killed=result.killed or output.killed,
        )

    def generated(self, configuration: Configuration, seed: int) -> GeneratorOutput:
        """Return the generator's output: a test, or the reason why there is none."""
        self.bring_up_to_date()
        return self._generator.make(configuration, seed)

    def generate(self, configuration: Configuration, seed: int) -> Any:
        """Return the test of a configuration and a seed, as JSON data."""
        output = self.generated(configuration, seed)
        if output.why_not:
            raise NoTest(f"there is no test: {output.why_not}")
        return self._test(output, configuration, seed).to_json()

    def result_of_journal(
        self, entries: Sequence[Any], configuration: Configuration, fault: Fault
    ) -> Result:
        """Return the result of a test that ended this process itself, and not one it started.

        `entries` is what the journal was given: nothing if the process ended in the generator.
        """
        if not entries:
            why = f"the generator did not end ({fault.signature})"
            return Result(Verdict.INVALID, missing=why)
        test = CommandTest.from_json(entries[-1])
        return Result(Verdict.FAILED, fault, self._used(test), (), self._size(test), 0, entries[-1])

    def run(self, test: Any) -> Result:
        """Run the steps on a saved test; this does not need the generator."""
        return self._run(CommandTest.from_json(test))

    def size(self, test: Any) -> int:
        """Return the number of lines of a saved test, or of tokens if it came from a grammar."""
        return self._size(CommandTest.from_json(test))

    def code(self, test: Any) -> str:
        """Return the test's text, or a dump of its bytes if it is not text."""
        return CommandTest.from_json(test).shown

    def content(self, test: Any) -> bytes:
        """Return the bytes of the test's file."""
        return CommandTest.from_json(test).content

    def commands(self, test: Any) -> list[str]:
        """Return shell lines that run the steps by hand, in a directory with the test's file."""
        return list(self._stepper.commands(CommandTest.from_json(test)).values())

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """Return a smaller test for which `interesting` still holds; see `reduction`."""
        from swarmtest.subjects.command.reduction import needed_steps, reduced_quickly

        whole = CommandTest.from_json(test)
        judgement = self._judge.judge(self._stepper.run(whole).outcomes, whole.text)
        steps = needed_steps(self.spec, judgement.steps)
        criterion = ConvertedCriterion(interesting, CommandTest.to_json)
        return reduced_quickly(self.spec, whole, steps, criterion).to_json()

    def parts(self, test: Any) -> list[Any]:
        """Return the lines of a test that are not blank; none if it came from a grammar."""
        whole = CommandTest.from_json(test)
        if whole.tree is not None:
            return []
        return [line for line in whole.content.splitlines(keepends=True) if line.strip()]

    def with_parts(self, test: Any, parts: Sequence[Any]) -> Any:
        """Return the test with other lines."""
        return CommandTest.from_json(test).with_content(b"".join(parts)).to_json()

    def check(self, thorough: bool = False) -> list[str]:
        """Return the subject's problems, one line each; `thorough`: try features and tests too."""
        from swarmtest.subjects.command.check import problems_of

        self.bring_up_to_date()
        return problems_of(self, thorough)

    def bring_up_to_date(self) -> None:
        """Build what ``[build]`` says, unless the sources are as they were built."""
        if self._is_built:
            return
        if self.spec.build is not None:
            self.spec.build.bring_up_to_date()
        executed.extend(
            filled(step.call.words[0], {"here": self.spec.here}) for step in self.spec.steps
        )
        self._is_built = True

    def close(self) -> None:
        """Remove the temporary directories; this also happens when the process ends."""
        self._scratch.close()

    def _make_generator(self) -> TestGenerator:
        if self.spec.generate.grammar is not None:
            return GrammarTests(self.spec.generate.grammar)
        return CommandGenerator(self.spec, self._scratch, self._caller)

    def _test(
        self, output: GeneratorOutput, configuration: Configuration, seed: int
    ) -> CommandTest:
        return CommandTest(
            self.name,
            output.content,
            configuration.settings,
            seed,
            configuration.included,
            output.tree,
        )

    def _run(self, test: CommandTest) -> Result:
        self.bring_up_to_date()
        stepped, killed = run_until_not_killed(
            lambda: self._stepper.run(test),
            lambda stepped: stepped.killed,
            self._seconds_for_kills,
        )
        judgement = self._judge.judge(stepped.outcomes, test.text)
        cpu = stepped.cpu_seconds
        if judgement.invalid:
            why = judgement.invalid
            return Result(Verdict.INVALID, missing=why, cpu_seconds=cpu, killed=killed)
        fault = None
        if judgement.signature:
            file = f"test{self.spec.generate.suffix}"
            commands = self._stepper.commands(test)
            details = details_of(judgement, stepped.outcomes, file, commands)
            fault = Fault(judgement.kind, judgement.signature, details)
        saved = test.to_json() if fault or self.keep_tests else None
        return Result(
            Verdict.FAILED if fault else Verdict.PASSED,
            fault,
            self._used(test),
            steps=self._size(test),
            test=saved,
            cpu_seconds=cpu,
            covered=tuple(stepped.covered),
            missing="; ".join(stepped.missing),
            killed=killed,
        )

    def _size(self, test: CommandTest) -> int:
        grammar = self.spec.generate.grammar
        return grammar.size(test.tree) if grammar and test.tree is not None else test.size

    def _used(self, test: CommandTest) -> tuple[int, ...]:
        """Return how often each feature appears in the test; empty if that cannot be known.

        If only some features have an `appears` pattern, each other one counts once when it is on.
        """
        grammar = self.spec.generate.grammar
        if grammar is not None and test.tree is not None:
            used = grammar.used(test.tree)
            return tuple(used.get(name, 0) for name in self.space.feature_names)
        if not self._counts_appearances:
            return ()
        text, on = test.text, set(test.features or ())
        return tuple(
            sum(1 for _ in form.appears.finditer(text)) if form.appears else int(form.name in on)
            for form in self.spec.forms
        )
