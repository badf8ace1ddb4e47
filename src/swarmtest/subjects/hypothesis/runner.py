"""Run a state machine as Hypothesis's own loop does, step by step, and record the steps.

The order is that of Hypothesis: create the machine, check the invariants, run each initialize rule
once, then other rules; check the invariants after each step; always run `teardown`. The caller
decides which rule comes next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Any

from swarmtest.subjects.hypothesis.code import taken_down, text_of
from swarmtest.subjects.hypothesis.declaration import invariants_of
from swarmtest.subjects.hypothesis.drawing import ArgumentDraws, resolved
from swarmtest.subjects.hypothesis.internals import (
    MultipleResults,
    RuleBasedStateMachine,
    StopTest,
    UnsatisfiedAssumption,
    VarReference,
    build_context,
    deterministic_PRNG,
)
from swarmtest.subjects.hypothesis.test import RuleStep


class GaveUp(Exception):
    """The body of a rule gave up (`assume`, or an impossible draw), so the test ends."""


@dataclass(frozen=True)
class DrivenRule:
    """A rule, with what is needed to run it as a step."""

    name: str
    rule: Any
    strategy: Any
    """For an initialize rule, the strategy that draws all of its arguments; else None."""

    def arguments(self, draws: ArgumentDraws) -> dict[str, Any]:
        """Draw the arguments, in the order in which Hypothesis draws them."""
        if self.strategy is not None:
            return dict(draws.draw(self.strategy))
        return {key: draws.draw(s) for key, s in self.rule.arguments_strategies.items()}

    def possible(self, machine: Any) -> bool:
        """Return whether its bundles have values and its preconditions hold."""
        return all(machine.bundle(b.name) for b in self.rule.bundles) and all(
            holds(machine) for holds in self.rule.preconditions
        )


@dataclass
class RunningStep:
    """The record of a step while it runs."""

    rule: str
    label: int
    choices: list[Any]
    names: list[str]
    arguments: dict[str, Any] = field(default_factory=dict)
    drawn: list[Any] = field(default_factory=list)
    gives: int | None = None

    def step(self) -> RuleStep:
        """Return the step as a value."""
        return RuleStep(
            self.rule,
            self.label,
            tuple(self.choices),
            tuple(self.names),
            {key: text_of(taken) for key, taken in self.arguments.items()},
            tuple(map(text_of, self.drawn)),
            self.gives,
        )


class StateMachineRun:
    """One run of a state machine; a context manager in which Hypothesis's `assume` works."""

    def __init__(
        self,
        machine: type[Any],
        provider: type[Any],
        random: Random | None,
        journal: Callable[[Any], None] | None,
    ) -> None:
        self._class = machine
        self._journal = journal
        self._invariants = invariants_of(machine)
        self._own_check = machine.check_invariants is not RuleBasedStateMachine.check_invariants
        self.draws = ArgumentDraws(random, provider, None)
        self.noted: list[RunningStep] = []
        self.checking = ""
        """The name of the invariant that is being checked; empty otherwise."""
        self.machine: Any = None
        self._random = deterministic_PRNG()
        self._context = build_context(self.draws, machine)

    def __enter__(self) -> StateMachineRun:
        self._random.__enter__()
        self._context.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        try:
            self._context.__exit__(kind, error, tb)
        finally:
            self._random.__exit__(None, None, None)

    def start(self) -> None:
        """Create the machine and check its invariants."""
        self.machine = self.draws.hypothesis_runner = self._class()
        self.check()

    def stop(self) -> None:
        """Run the machine's `teardown`, as at the end of every test."""
        if self.machine is not None:
            self.machine.teardown()

    def step(self, driven: DrivenRule, label: int, saved: RuleStep | None = None) -> bool:
        """Run a rule, with new arguments or those of a saved step.

        Return False if no arguments could be drawn for it, so that it did not run.
        """
        draws, machine = self.draws, self.machine
        if saved is None:
            draws.begin()
        else:
            draws.begin(saved.choices, saved.names)
        noted = RunningStep(driven.name, label, draws.drawn, draws.named)
        self.noted.append(noted)
        try:
            arguments = driven.arguments(draws)
        except (StopTest, UnsatisfiedAssumption):
            self.noted.pop()
            draws.give_back()
            return False
        self._note_arguments(noted, arguments)
        if self._journal is not None:
            self._journal(noted.step().to_json())
        if driven.strategy is not None:
            machine._initialize_rules_to_run.remove(driven.rule)
        values = {key: resolved(machine, value) for key, value in arguments.items()}
        draws.in_body = self._note_draw
        try:
            result = driven.rule.function(machine, **values)
        except (StopTest, UnsatisfiedAssumption) as error:
            self.noted.pop()
            if self._journal is not None:
                self._journal({"gave up": True})
            raise GaveUp(f"rule {driven.name} gave up: {error}") from None
        finally:
            draws.in_body = None
        if driven.rule.targets:
            self._add_to_bundles(noted, driven.rule.targets, result)
        self.check()
        return True

    def check(self) -> None:
        """Check the invariants, as `check_invariants` of Hypothesis does."""
        machine = self.machine
        if self._own_check:
            machine.check_invariants(self._class.TestCase.settings, _ignore, _NoTimes())
            return
        for invariant in self._invariants:
            if machine._initialize_rules_to_run and not invariant.check_during_init:
                continue
            if all(holds(machine) for holds in invariant.preconditions):
                self.checking = invariant.function.__name__
                invariant.function(machine)
                self.checking = ""

    def _note_arguments(self, noted: RunningStep, arguments: Mapping[str, Any]) -> None:
        direct = sum(isinstance(value, VarReference) for value in arguments.values())
        # With more names than references, values of bundles are inside other arguments.
        bundle_values = self.machine.names_to_values if len(noted.names) > direct else None
        for key, value in arguments.items():
            noted.arguments[key] = taken_down(value, self._context, bundle_values)

    def _note_draw(self, value: Any) -> None:
        noted = self.noted[-1]
        bundle_values = self.machine.names_to_values if noted.names else None
        noted.drawn.append(taken_down(value, self._context, bundle_values))
        if self._journal is not None:
            step = noted.step().to_json()
            self._journal({k: step[k] for k in ("choices", "names", "drawn") if k in step})

    def _add_to_bundles(self, noted: RunningStep, targets: tuple[str, ...], result: Any) -> None:
        """Put the result of a rule into its bundles, under names that depend on no other step."""
        machine = self.machine
        name = f"v{noted.label}"
        if isinstance(result, MultipleResults):
            noted.gives = len(result.values)
            values = {f"{name}_{at}": value for at, value in enumerate(result.values, 1)}
            if self._journal is not None:
                self._journal({"gives": noted.gives})
        else:
            values = {name: result}
        machine.names_to_values |= values
        for target in targets:
            machine.bundle(target).extend(VarReference(name) for name in values)


class _NoTimes(dict[str, float]):
    """A stand-in for the dictionary in which Hypothesis adds up how long invariants took."""

    def __missing__(self, key: str) -> float:
        return 0.0


def _ignore(_line: str) -> None:
    return None
