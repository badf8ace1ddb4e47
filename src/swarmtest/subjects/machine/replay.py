"""Running a saved test of a machine, step by step, without a random generator."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Result, Verdict
from swarmtest.subjects.machine.machine import FromPool, Machine
from swarmtest.subjects.machine.test import MachineTest, Ref, Step

if TYPE_CHECKING:
    from swarmtest.subjects.machine.subject import MachineSubject


# -------------------------------------------------------------------------------------------------
# What happens while a machine's test is generated: steps are noted, impossible picks redone.

_TRIES = 3


class Record(list[Any]):
    """The steps of the test at hand, and which of them ended in an expected exception."""

    raised: tuple[tuple[int, str], ...] = ()

    def rescued(self, error: BaseException) -> None:
        """The step noted last raised an exception that is a correct outcome."""
        self.raised = (*self.raised, (len(self), type(error).__qualname__))


class Journal(Record):
    """A record that tells of each step before it runs: for tests that may kill the process."""

    def __init__(
        self, tell: Callable[[Any], None], step: Callable[[tuple[Any, ...], int], Step]
    ) -> None:
        super().__init__()
        self._tell = tell
        self._step = step

    def append(self, noted: Any) -> None:
        super().append(noted)
        self._tell(self._step(noted, len(self)))

    def rescued(self, error: BaseException) -> None:
        super().rescued(error)
        self._tell({"raised": type(error).__qualname__})


def journalled(told: Sequence[Any]) -> tuple[Step, ...]:
    """Steps from what a journal was told: a step, or that the step before it raised."""
    steps: list[Step] = []
    for entry in told:
        if isinstance(entry, dict):
            steps[-1] = steps[-1]._replace(raised=entry["raised"])
        else:
            action, arguments, label, raised = entry
            steps.append(Step(action, tuple(arguments), label, raised))
    return tuple(steps)


class Another:
    """Picks again when the guard of the action picked first is false.

    A few tries at the full odds, then one among the actions that are possible, listed. Both have
    the odds of "pick among the possible ones", so the number of tries is only a matter of speed.
    """

    __slots__ = ("_bounds", "_picks", "_possible", "_weights")

    def __init__(
        self,
        picks: Sequence[int],
        possible: Sequence[Callable[[Machine], Any] | None],
        weights: Sequence[float] | None,
        bounds: Sequence[float] | None,
    ) -> None:
        self._picks = picks
        self._possible = possible
        self._weights = weights
        self._bounds = bounds

    def __call__(self, machine: Machine, draw: Callable[[], float]) -> int:
        picks, possible = self._picks, self._possible
        if self._bounds is None:
            for _ in range(_TRIES):
                k = picks[int(draw() * len(picks))]
                guard = possible[k]
                if guard is None or guard(machine):
                    return k
        able = [k for k in picks if (guard := possible[k]) is None or guard(machine)]
        if not able:
            return -1
        if self._bounds is None:
            return able[int(draw() * len(able))]
        assert self._weights is not None
        bounds = list(itertools.accumulate(self._weights[k] for k in able))
        point = draw() * bounds[-1]
        return next(k for k, bound in zip(able, bounds, strict=True) if point < bound)


# -------------------------------------------------------------------------------------------------


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
