"""A state machine of Hypothesis as a subject: swarmtest chooses rules, Hypothesis draws arguments.

`execute` is a pure function of its arguments, even if the program uses the global random
generators: they are seeded for each test, as Hypothesis does.
"""

from __future__ import annotations

import itertools
import random
import sys
import unittest
from bdb import BdbQuit
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis.errors import InvalidDefinition

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import message_of, operation_of_check
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.subjects.hypothesis.code import code_of
from swarmtest.subjects.hypothesis.declaration import (
    initializers_of,
    rules_of,
    settings_of,
    space_of,
    state_machine_of,
    unfilled,
)
from swarmtest.subjects.hypothesis.drawing import provider_for
from swarmtest.subjects.hypothesis.internals import (
    StopTest,
    UnsatisfiedAssumption,
    fault_in_own_frames,
    skip_exceptions_to_reraise,
)
from swarmtest.subjects.hypothesis.runner import DrivenRule, GaveUp, StateMachineRun
from swarmtest.subjects.hypothesis.test import RuleStep, RuleTest, journalled, reduced
from swarmtest.subjects.machine.replay import ReplacementAction
from swarmtest.subjects.subject import Subject

if TYPE_CHECKING:
    from swarmtest.subjects.hypothesis.example_database import HandoverResult

_HYPOTHESIS_EVENTS = ("Retried draw from ", "gave up because")
"""How the events begin that Hypothesis adds itself; they are not the program's."""


class RuleBasedSubject(Subject):
    """A subject for a `RuleBasedStateMachine`, given as its class or as its `TestCase`.

    >>> from hypothesis import strategies as st
    >>> from hypothesis.stateful import RuleBasedStateMachine, rule
    >>> class Counter(RuleBasedStateMachine):
    ...     n = 0
    ...     @rule(by=st.integers(1, 9))
    ...     def up(self, by): self.n += by; assert self.n < 99
    ...     @rule()
    ...     def down(self): self.n = 0
    >>> subject = RuleBasedSubject(Counter)
    >>> subject.space.feature_names
    ('up', 'down')
    >>> subject.execute(subject.space.configuration(["up"]), seed=1).verdict.label
    'failed'
    """

    suffix = ".py"
    weighted = True

    def __init__(
        self, machine: type[Any], name: str = "", steps: int | tuple[int, int] | None = None
    ) -> None:
        self.machine = state_machine_of(machine)
        self.settings = settings_of(machine)
        module = sys.modules.get(self.machine.__module__)
        self.harness = getattr(module, "__file__", None) or ""
        self.name = name or f"{self.machine.__module__}:{self.machine.__qualname__}"
        self.space = space_of(self.machine)
        self.rules = tuple(
            DrivenRule(rule.function.__name__, rule, None) for rule in rules_of(self.machine)
        )
        self.initializers = {i.name: i for i in map(_initializer, initializers_of(self.machine))}
        self.steps = _steps(self.machine, self.settings, steps)
        self.provider = provider_for(module)
        self._possible = tuple(
            rule.possible if rule.rule.bundles or rule.rule.preconditions else None
            for rule in self.rules
        )
        self._numbers = {rule.name: number for number, rule in enumerate(self.rules)}

    def check(self, thorough: bool = False) -> list[str]:
        """Return the rules that can never run; other mistakes are reported by the constructor.

        Hypothesis does not report such rules. So without `thorough`, they are reported only if no
        rule can run.
        """
        dead = unfilled(self.machine)
        if not thorough and len(dead) < len(self.rules):
            return []
        return [
            f"rule {self.machine.__name__}.{name} can never run: no rule fills bundle {bundle!r}"
            for name, bundle in dead.items()
        ]

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Generate a test while running it."""
        rng = random.Random(seed)

        def drive(run: StateMachineRun) -> int:
            low, high = self.steps
            count = low if low == high else low + int(rng.random() * (high - low + 1))
            for initializer in rng.sample(list(self.initializers.values()), len(self.initializers)):
                if not run.step(initializer, len(run.noted) + 1):
                    raise GaveUp(f"initialize rule {initializer.name} got no arguments")
            return self._choose(run, configuration, rng, max(1, count - len(run.noted)))

        return self._run(drive, rng)

    def run(self, test: Any) -> Result:
        """Run a saved test step by step; steps that cannot run are skipped and counted."""
        saved = RuleTest.from_json(test)
        self._check_rules(saved)

        def drive(run: StateMachineRun) -> int:
            left = dict(self.initializers)
            first = [step for step in saved.steps if step.rule in left]
            for step in first:
                if left.pop(step.rule, None):
                    run.step(self.initializers[step.rule], step.label, step)
            for name, initializer in left.items():
                run.step(initializer, 0, RuleStep(name, 0))
            return sum(not self._replay_step(run, step) for step in saved.steps)

        return self._run(drive, None, keep=True)

    def _replay_step(self, run: StateMachineRun, step: RuleStep) -> bool:
        """Run a saved step, unless it is an initialize rule; return False if it cannot run."""
        if step.rule in self.initializers:
            return True
        number = self._numbers[step.rule]
        possible = self._possible[number]
        if possible is not None and not possible(run.machine):
            return False
        return run.step(self.rules[number], step.label, step)

    def _choose(
        self, run: StateMachineRun, configuration: Configuration, rng: random.Random, count: int
    ) -> int:
        """Choose rules and run them; return how many steps were skipped.

        The probabilities are those of a `Machine`: see `swarmtest.subjects.machine.compiled`.
        """
        draw = rng.random
        picks = [k for k in range(len(self.rules)) if configuration.bits >> k & 1]
        weights = configuration.weights if configuration.fractional else None
        bounds = None
        if weights is not None and configuration.renormalised:
            bounds = list(itertools.accumulate(weights[k] for k in picks))
        another = ReplacementAction(picks, self._possible, weights, bounds)
        skipped = 0
        for _ in range(count):
            k = another(run.machine, draw)
            if k < 0:
                if not run.noted:
                    raise GaveUp("none of the included rules can run")
                break
            spent = weights is not None and bounds is None and draw() >= weights[k]
            if spent or not run.step(self.rules[k], len(run.noted) + 1):
                skipped += 1
        return skipped

    def _run(
        self, drive: Callable[[StateMachineRun], int], rng: random.Random | None, keep: bool = False
    ) -> Result:
        run = StateMachineRun(self.machine, self.provider, rng, self.journal)
        fault = None
        skipped, why = 0, ""
        try:
            with run:
                try:
                    run.start()
                    skipped = drive(run)
                except (GaveUp, StopTest, UnsatisfiedAssumption) as error:
                    why, run.checking = str(error), ""
                finally:
                    run.stop()
        except (unittest.SkipTest, *skip_exceptions_to_reraise()) as error:
            return Result(Verdict.INVALID, missing=f"it skipped itself: {message_of(error)}")
        except BaseException as error:
            last = run.noted[-1].rule if run.noted else ""
            fault = self.fault_of(error, run.checking, last)
        return self._result(run, fault, skipped, why, keep or self.keep_tests)

    def _result(
        self, run: StateMachineRun, fault: Fault | None, skipped: int, why: str, keep: bool
    ) -> Result:
        used = [0] * len(self.rules)
        for noted in run.noted:
            if noted.rule in self._numbers:
                used[self._numbers[noted.rule]] += 1
        if fault is None and not any(used):
            return Result(Verdict.INVALID, missing=why or "no step of this test can run")
        test = None
        if fault is not None or keep:
            steps = tuple(noted.step() for noted in run.noted)
            test = RuleTest(self.name, steps, run.checking if fault else "").to_json()
        return Result(
            Verdict.FAILED if fault else Verdict.PASSED,
            fault,
            tuple(used),
            tuple(
                f"event:{name}"
                for name in sorted(run.draws.events)
                if not name.startswith(_HYPOTHESIS_EVENTS)
            ),
            len(run.noted),
            skipped,
            test,
        )

    def generate(self, configuration: Configuration, seed: int) -> Any:
        """Return the test of a configuration and a seed (JSON data); it is run to find out."""
        before, self.keep_tests = self.keep_tests, True
        try:
            result = self.execute(configuration, seed)
        finally:
            self.keep_tests = before
        return result.test or RuleTest(self.name, ()).to_json()

    def result_of_journal(
        self, entries: Sequence[Any], configuration: Configuration, fault: Fault
    ) -> Result:
        """Return the result of a test that ended its process, from its entries in the journal."""
        steps = journalled(entries)
        used = tuple(sum(step.rule == rule.name for step in steps) for rule in self.rules)
        test = RuleTest(self.name, steps).to_json()
        return Result(Verdict.FAILED, fault, used, (), len(steps), 0, test)

    def size(self, test: Any) -> int:
        """Return the number of steps of a saved test."""
        return len(RuleTest.from_json(test).steps)

    def parts(self, test: Any) -> list[Any]:
        """Return the steps of a saved test."""
        return list(RuleTest.from_json(test).steps)

    def with_parts(self, test: Any, parts: Sequence[Any]) -> Any:
        """Return a saved test with other steps."""
        return replace(RuleTest.from_json(test), steps=tuple(parts)).to_json()

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """Return the test without unnecessary steps, and with simpler arguments."""
        return reduced(self, RuleTest.from_json(test), interesting)

    def code(self, test: Any) -> str:
        """Return a saved test as a Python program."""
        return code_of(self, RuleTest.from_json(test))

    def hand_over(self, test: Any, fault: Fault, shrink: bool = False) -> HandoverResult:
        """Save a failing test in Hypothesis's example database; the next pytest run replays it."""
        from swarmtest.subjects.hypothesis.example_database import hand_over

        return hand_over(self, RuleTest.from_json(test), fault, shrink)

    def fault_of(self, error: BaseException, checking: str = "", last: str = "") -> Fault:
        """Return the fault of an exception; raise it again if the program did not cause it.

        `checking` is the invariant that was checked, `last` the rule that ran last.
        """
        if isinstance(error, UserError):
            raise error
        if isinstance(error, KeyboardInterrupt | BdbQuit) and self.interruptible:
            raise KeyboardInterrupt from error
        if isinstance(error, InvalidDefinition):
            raise UserError(f"state machine {self.machine.__name__!r}: {message_of(error)}")
        if checking:
            after = f" after {last}" if last else ""
            return fault_in_own_frames(error, "invariant", f"invariant {checking}{after}:")
        if isinstance(error, MemoryError):
            return fault_in_own_frames(error, "memory")
        operation = operation_of_check(self.machine, error, last)
        return fault_in_own_frames(error, operation=operation)

    def _check_rules(self, test: RuleTest) -> None:
        names = (*self._numbers, *self.initializers)
        for step in test.steps:
            if step.rule not in names:
                raise UserError(
                    f"the test calls {step.rule!r}, which {self.name} does not have"
                    f"{did_you_mean(step.rule, names)}"
                )


def _initializer(rule: Any) -> DrivenRule:
    from hypothesis import strategies as st

    return DrivenRule(rule.function.__name__, rule, st.fixed_dictionaries(rule.arguments))


def _steps(
    machine: type[Any], settings: Any, steps: int | tuple[int, int] | None
) -> tuple[int, int]:
    count = settings.stateful_step_count if steps is None else steps
    low, high = count if isinstance(count, tuple) and len(count) == 2 else (count, count)
    if not (isinstance(low, int) and isinstance(high, int) and 1 <= low <= high):
        raise UserError(
            f"state machine {machine.__name__!r}: steps is a number above 0 or a range, "
            f"not {count!r}"
        )
    return low, high
