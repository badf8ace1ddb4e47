"""Make a machine's test smaller: fewer steps, then simpler steps, then a canonical order.

Every test that is tried is one that the machine could have generated: an argument is only replaced
by a value that its generator can draw (if the generator cannot tell, the argument stays), and a
step is never removed without the steps that use what it makes.

Simpler arguments may make other steps superfluous, so removing and simplifying alternate until
nothing changes. The reduction therefore always ends with a check that no single step can be
removed. Steps are put in a canonical order so that equal bugs give equal tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.reducer.reducer import ConvertedCriterion, minimised
from swarmtest.reducer.values import in_canonical_order, shrunk_values
from swarmtest.subjects.machine.generators import Generator
from swarmtest.subjects.machine.machine import Action
from swarmtest.subjects.machine.test import MachineTest, Step, used_labels
from swarmtest.subjects.machine.values import from_json, to_json

_MAX_ORDERED = 40
"""Steps of the longest test whose order is made canonical: it may take a run per pair of steps."""

Interesting = Callable[[Any], bool]
Steps = tuple[Step, ...]


def reduced_machine_test(
    test: MachineTest,
    actions: Mapping[str, Action],
    defaults: Mapping[str, Any],
    interesting: Interesting,
) -> MachineTest:
    """Return a smaller test that is still interesting; `defaults` are the simplest settings."""
    reduction = _Reduction(test, actions, interesting)
    before = None
    while reduction.test != before:
        before = reduction.test
        reduction.drop_steps()
        reduction.simplify_settings(defaults)
        reduction.simplify_steps()
        if reduction.test == before:
            reduction.order_steps()
    reduction.number_labels()
    return reduction.test


def needs_of(steps: Sequence[Step]) -> list[list[int]]:
    """Return for each step the positions of the earlier steps that make what it uses.

    >>> ref = {"$ref": 1}
    >>> needs_of([Step("open", (), 1), Step("look"), Step("close", (ref,))])
    [[], [], [0]]
    """
    makers: dict[int, int] = {}
    needs = []
    for position, step in enumerate(steps):
        needs.append(sorted({makers[label] for label in used_labels([step]) if label in makers}))
        if step.label:
            makers[step.label] = position
    return needs


class _Reduction:
    """A reduction in progress: `test` is the smallest interesting test so far."""

    def __init__(
        self, test: MachineTest, actions: Mapping[str, Action], interesting: Interesting
    ) -> None:
        self.test = test
        self._actions = actions
        self._interesting = interesting

    def drop_steps(self) -> None:
        still = ConvertedCriterion(self._interesting, lambda steps: self._with(steps).to_json())
        steps = self.test.steps
        self.test = self._with(minimised(steps, still, needs_of(steps)))

    def simplify_settings(self, defaults: Mapping[str, Any]) -> None:
        for name, value in self.test.settings.items():
            if name in defaults and defaults[name] != value:
                settings = {**self.test.settings, name: defaults[name]}
                self._try(replace(self.test, settings=settings))

    def simplify_steps(self) -> None:
        for position in range(len(self.test.steps)):
            self._simplify_action(position)
            self._simplify_arguments(position)

    def order_steps(self) -> None:
        if len(self.test.steps) > _MAX_ORDERED:
            return
        names = list(self._actions)
        ordered = in_canonical_order(
            self.test.steps,
            lambda steps: _is_in_order(steps) and self._holds(self._with(steps)),
            key=lambda step: (names.index(step.action), repr(step.arguments), step.label),
        )
        self.test = self._with(ordered)

    def number_labels(self) -> None:
        """Give the labels numbers in order, those in use first; their values mean nothing."""
        used = used_labels(self.test.steps)
        labels = [step.label for step in self.test.steps if step.label in used]
        unused = [s.label for s in self.test.steps if s.label and s.label not in used]
        numbers = {label: number for number, label in enumerate([*labels, *unused], 1)}
        self._try(
            self._with(
                [
                    step._replace(
                        label=numbers.get(step.label, 0),
                        arguments=tuple(_relabelled(a, numbers) for a in step.arguments),
                    )
                    for step in self.test.steps
                ]
            )
        )

    def _simplify_action(self, position: int) -> None:
        """Try each action declared earlier that has the same arguments and the same pool."""
        step = self.test.steps[position]
        action = self._actions[step.action]
        for name, other in self._actions.items():
            if name == step.action:
                return
            same_arguments = [*other.arguments.values()] == [*action.arguments.values()]
            if (
                same_arguments
                and other.into is action.into
                and self._try_step(position, step._replace(action=name))
            ):
                return

    def _simplify_arguments(self, position: int) -> None:
        step = self.test.steps[position]
        sources = list(self._actions[step.action].arguments.values())
        for at, (source, argument) in enumerate(zip(sources, step.arguments, strict=False)):
            if not isinstance(source, Generator):
                continue
            try:
                value = from_json(argument)
            except UserError:
                continue  # an argument that could not be saved cannot be simplified
            self._simplify_argument(position, at, source, value)

    def _simplify_argument(
        self, position: int, at: int, source: Generator[Any], value: Any
    ) -> None:
        def becomes(new: Any) -> bool:
            step = self.test.steps[position]
            arguments = (*step.arguments[:at], to_json(new), *step.arguments[at + 1 :])
            return self._try_step(position, step._replace(arguments=arguments))

        for option in source.options:
            if (type(option) is type(value) and option == value) or becomes(option):
                return
        allows = source.allows
        if allows is not None:
            shrunk_values([value], lambda parts: allows(parts[0]) and becomes(parts[0]))

    def _try_step(self, position: int, step: Step) -> bool:
        steps = self.test.steps
        return self._try(self._with([*steps[:position], step, *steps[position + 1 :]]))

    def _try(self, test: MachineTest) -> bool:
        if test != self.test and not self._holds(test):
            return False
        self.test = test
        return True

    def _holds(self, test: MachineTest) -> bool:
        return self._interesting(test.to_json())

    def _with(self, steps: Sequence[Step]) -> MachineTest:
        return replace(self.test, steps=tuple(steps))


def _is_in_order(steps: Sequence[Step]) -> bool:
    """Return whether nothing is used before it is made."""
    labels: set[int] = set()
    for step in steps:
        if not used_labels([step]) <= labels:
            return False
        labels.add(step.label)
    return True


def _relabelled(argument: Any, numbers: Mapping[int, int]) -> Any:
    if isinstance(argument, dict) and "$ref" in argument:
        return {"$ref": numbers[argument["$ref"]]}
    return argument
