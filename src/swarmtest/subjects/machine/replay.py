"""Record the steps of a machine's test while it is generated, and replay a saved test.

`StepRecord`, `Journal` and `ReplacementAction` serve the generated loop of `compiled`;
`MachineReplay` runs a saved test step by step, without a random generator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Result, Verdict
from swarmtest.subjects.machine.machine import Action, FromPool, Machine
from swarmtest.subjects.machine.redraw import Redraw
from swarmtest.subjects.machine.test import MachineTest, Step, drawn_arguments
from swarmtest.subjects.machine.values import Ref

if TYPE_CHECKING:
    from swarmtest.subjects.machine.subject import MachineSubject

_TRIES = 3


def name_of(error: BaseException) -> str:
    """Return the name of an exception's type; of one that stands for another, that of the other.

    >>> name_of(KeyError(3))
    'KeyError'
    """
    return type(getattr(error, "original", error)).__qualname__


class StepRecord(list[Any]):
    """The steps of the current test, and which of them ended in an expected exception."""

    raised: tuple[tuple[int, str], ...] = ()

    def rescued(self, error: BaseException) -> None:
        """Record that the last step raised an exception that is a correct outcome."""
        self.raised = (*self.raised, (len(self), name_of(error)))


class Journal(StepRecord):
    """A record that reports each step before it runs, for tests that may kill the process."""

    def __init__(
        self,
        tell: Callable[[Any], None],
        step: Callable[[tuple[Any, ...], int], Step],
        origin: Callable[[], dict[str, Any]],
    ) -> None:
        """Create a journal; `origin` returns the origin of the test, which is seldom needed."""
        super().__init__()
        self._tell = tell
        self._step = step
        self._origin = origin
        self._has_origin = False

    def append(self, noted: Any) -> None:
        super().append(noted)
        step = self._step(noted, len(self))
        if not self._has_origin and any(drawn_arguments([step])):
            self._tell({"origin": self._origin()})
            self._has_origin = True
        self._tell(step)

    def rescued(self, error: BaseException) -> None:
        super().rescued(error)
        self._tell({"raised": name_of(error)})


def journalled(entries: Sequence[Any]) -> tuple[Step, ...]:
    """Return the steps in the entries of a journal.

    An entry is a step, a dictionary with the exception that the step before it raised, or the
    origin of the test.
    """
    steps: list[Step] = []
    for entry in entries:
        if isinstance(entry, dict):
            if "raised" in entry:
                steps[-1] = steps[-1]._replace(raised=entry["raised"])
        else:
            action, arguments, label, raised = entry
            steps.append(Step(action, tuple(arguments), label, raised))
    return tuple(steps)


class ReplacementAction:
    """Picks another action when the guard of the first one is false.

    It first tries a few picks among all actions, then lists the possible actions and picks one of
    those. Both give each possible action the same odds, so the number of tries only affects speed.
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
        candidates = [k for k in picks if (guard := possible[k]) is None or guard(machine)]
        if not candidates:
            return -1
        if self._bounds is None:
            return candidates[int(draw() * len(candidates))]
        assert self._weights is not None
        bounds = list(itertools.accumulate(self._weights[k] for k in candidates))
        point = draw() * bounds[-1]
        return next(k for k, bound in zip(candidates, bounds, strict=True) if point < bound)


class MachineReplay:
    """One replay of a saved test."""

    def __init__(self, subject: MachineSubject, test: MachineTest) -> None:
        self._subject = subject
        self._test = test
        self._values: dict[int, Any] = {}
        self._raised: dict[int, str] = {}
        self._position = 0
        self._last = ""
        """The action that ran last."""
        self._redraw = Redraw(subject, test)

    def run(self, noting: bool = False) -> Result:
        """Run the test.

        With `noting`, the steps of the result's test have the exceptions that they raised now.
        """
        subject = self._subject
        machine = None
        used = [0] * len(subject.actions)
        skipped = 0
        fault = None
        self._redraw.prepare()
        try:
            machine = subject.new_machine()
            machine.settings = dict(self._test.settings)
            try:
                machine.start()
                subject.compiled.check(machine)
                for position, step in enumerate(self._test.steps):
                    self._position = position
                    if not self._run_step(machine, step, used):
                        skipped += 1
            finally:
                machine._end()
        except BaseException as error:
            fault = subject.fault_of(error, self._last)
        hits = machine.hits() if machine is not None else ()
        verdict = Verdict.FAILED if fault else Verdict.PASSED
        test = self._with_raised() if noting else self._test
        counts = (*used, *(0 for _ in subject.modes))
        return Result(verdict, fault, counts, hits, sum(used), skipped, test.to_json())

    def _with_raised(self) -> MachineTest:
        steps = tuple(
            step._replace(raised=self._raised.get(i, "")) for i, step in enumerate(self._test.steps)
        )
        return replace(self._test, steps=steps)

    def _run_step(self, machine: Machine, step: Step, used: list[int]) -> bool:
        """Run one step; return False if a value that it uses is missing or its guard is false."""
        actions = self._subject.actions
        action = actions.get(step.action)
        if action is None:
            raise UserError(
                f"the test calls {step.action!r}, which {self._subject.name} does not have"
                f"{did_you_mean(step.action, actions)}"
            )
        values = self._redraw.values(action, step)
        if len(values) != len(action.arguments) or not self._resolve(values):
            return False
        number = list(actions).index(step.action)
        if action.when is not None and not action.when(machine):
            return False
        self._consume(machine, action.arguments, step)
        used[number] += 1
        self._last = step.action
        keys = list(values)
        positional = [values[key] for key in keys[: action.positional]]
        named = {key: values[key] for key in keys[action.positional :]}
        try:
            result = self.call(machine, action, positional, named)
        except action.raises as error:
            result = None
            self._raised[self._position] = name_of(error)
        except Exception as error:
            if not self._subject.tolerates(machine, error, self._last):
                raise
            result = None
            self._raised[self._position] = name_of(error)
        if action.into is not None and result is not None:
            self._values[step.label] = result
            getattr(machine, action.into.name).entries.append((step.label, result))
        try:
            self._subject.compiled.check(machine)
        except Exception as error:
            if not self._subject.tolerates(machine, error, self._last, restart=True):
                raise
        return True

    def call(
        self, machine: Machine, action: Action, positional: list[Any], named: dict[str, Any]
    ) -> Any:
        """Call an action."""
        return getattr(machine, action.name)(*positional, **named)

    def _resolve(self, values: dict[str, Any]) -> bool:
        """Replace references by the values they stand for; return False if one is missing."""
        for name, value in values.items():
            if isinstance(value, Ref):
                if value.label not in self._values:
                    return False
                values[name] = self._values[value.label]
        return True

    def _consume(self, machine: Machine, arguments: dict[str, Any], step: Step) -> None:
        """Remove the values that a step consumes from their pools."""
        for source, argument in zip(arguments.values(), step.arguments, strict=True):
            if isinstance(source, FromPool) and source.consumed:
                label = argument["$ref"]
                del self._values[label]
                entries = getattr(machine, source.pool.name).entries
                entries[:] = [entry for entry in entries if entry[0] != label]
