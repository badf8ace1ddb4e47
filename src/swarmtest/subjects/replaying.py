"""Running a saved test of a machine, step by step, without a random generator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarmtest.errors import UserError, did_you_mean
from swarmtest.result import Result, Verdict
from swarmtest.subjects.machine import FromPool, Machine
from swarmtest.subjects.machine_test import MachineTest, Step
from swarmtest.subjects.values import Ref

if TYPE_CHECKING:
    from swarmtest.subjects.machine_subject import MachineSubject


class Replay:
    """One replay of a saved test."""

    def __init__(self, subject: MachineSubject, test: MachineTest) -> None:
        self._subject = subject
        self._test = test
        self._made: dict[int, Any] = {}
        self._raised: dict[int, str] = {}
        self._at = 0

    def run(self, noting: bool = False) -> Result:
        """Run it; `noting`: the result's test says what its steps raised this time."""
        subject = self._subject
        machine = None
        used = [0] * len(subject.actions)
        skipped = 0
        fault = None
        try:
            machine = subject.machine()
            machine.settings = dict(self._test.settings)
            try:
                machine.start()
                subject.compiled.check(machine)
                for place, step in enumerate(self._test.steps):
                    self._at = place
                    if not self._runs(machine, step, used):
                        skipped += 1
            finally:
                machine.stop()
        except BaseException as error:
            fault = subject.fault_of(error)
        hits = machine.hits() if machine is not None else ()
        verdict = Verdict.FAILED if fault else Verdict.PASSED
        test = self._noted() if noting else self._test
        return Result(verdict, fault, tuple(used), hits, sum(used), skipped, test.to_json())

    def _noted(self) -> MachineTest:
        steps = self._test.steps
        noted = [step._replace(raised=self._raised.get(i, "")) for i, step in enumerate(steps)]
        return replace(self._test, steps=tuple(noted))

    def _runs(self, machine: Machine, step: Step, used: list[int]) -> bool:
        """Run one step; False if a value that it uses, or its guard, is gone."""
        actions = self._subject.actions
        action = actions.get(step.action)
        if action is None:
            raise UserError(
                f"the test calls {step.action!r}, which {self._subject.name} does not have"
                f"{did_you_mean(step.action, actions)}"
            )
        values = dict(zip(action.arguments, step.values(), strict=False))
        if len(values) != len(action.arguments) or not self._resolve(values):
            return False
        number = list(actions).index(step.action)
        if action.when is not None and not action.when(machine):
            return False
        self._take(machine, action.arguments, step)
        used[number] += 1
        keys = list(values)
        positional = [values[key] for key in keys[: action.positional]]
        named = {key: values[key] for key in keys[action.positional :]}
        try:
            result = getattr(machine, action.name)(*positional, **named)
        except action.raises as error:
            result = None
            self._raised[self._at] = type(error).__qualname__
        if action.into is not None and result is not None:
            self._made[step.label] = result
            getattr(machine, action.into.name).entries.append((step.label, result))
        self._subject.compiled.check(machine)
        return True

    def _resolve(self, values: dict[str, Any]) -> bool:
        for name, value in values.items():
            if isinstance(value, Ref):
                if value.label not in self._made:
                    return False
                values[name] = self._made[value.label]
        return True

    def _take(self, machine: Machine, arguments: dict[str, Any], step: Step) -> None:
        for source, value in zip(arguments.values(), step.values(), strict=True):
            if isinstance(source, FromPool) and source.consumed:
                del self._made[value.label]
                entries = getattr(machine, source.pool.name).entries
                entries[:] = [entry for entry in entries if entry[0] != value.label]
