"""Making a machine's test smaller: fewer steps, then simpler ones, then one order for equal bugs.

Every test on the way is one that the machine could have made: arguments stay within what their
generator draws (where it does not say what that is, they stay as they are), and a step never goes
without those that use what it makes.

After simpler arguments other steps may be superfluous, so both go on in turns until nothing
changes; the last question about steps is therefore always whether any one of them can go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.reducer.reducer import AskedAs, minimised
from swarmtest.reducer.values import in_canonical_order, shrunk_values
from swarmtest.subjects.machine.generators import Generator
from swarmtest.subjects.machine.machine import Action
from swarmtest.subjects.machine.test import MachineTest, Step, to_json, used_labels

_FEW = 40
"""Up to so many steps the order is made canonical: it takes a question per pair at worst."""

Interesting = Callable[[Any], bool]
Steps = tuple[Step, ...]


def reduced_machine_test(
    test: MachineTest,
    actions: Mapping[str, Action],
    defaults: Mapping[str, Any],
    interesting: Interesting,
) -> MachineTest:
    """A smaller test that is still interesting; `defaults` are the simplest settings."""
    reducing = _Reducing(test, actions, interesting)
    before = None
    while reducing.test != before:
        before = reducing.test
        reducing.drop_steps()
        reducing.simplify_settings(defaults)
        reducing.simplify_steps()
        if reducing.test == before:
            reducing.order_steps()
    reducing.number_labels()
    return reducing.test


def needs_of(steps: Sequence[Step]) -> list[list[int]]:
    """For each step the earlier ones that make what it uses, by their places.

    >>> ref = {"$ref": 1}
    >>> needs_of([Step("open", (), 1), Step("look"), Step("close", (ref,))])
    [[], [], [0]]
    """
    makers: dict[int, int] = {}
    needs = []
    for place, step in enumerate(steps):
        needs.append(sorted({makers[label] for label in used_labels([step]) if label in makers}))
        if step.label:
            makers[step.label] = place
    return needs


class _Reducing:
    """One reduction: the smallest test so far."""

    def __init__(
        self, test: MachineTest, actions: Mapping[str, Action], interesting: Interesting
    ) -> None:
        self.test = test
        self._actions = actions
        self._interesting = interesting

    def drop_steps(self) -> None:
        still = AskedAs(self._interesting, lambda steps: self._with(steps).to_json())
        steps = self.test.steps
        self.test = self._with(minimised(steps, still, needs_of(steps)))

    def simplify_settings(self, defaults: Mapping[str, Any]) -> None:
        for name, value in self.test.settings.items():
            if name in defaults and defaults[name] != value:
                settings = {**self.test.settings, name: defaults[name]}
                self._try(replace(self.test, settings=settings))

    def simplify_steps(self) -> None:
        for place in range(len(self.test.steps)):
            self._simplify_action(place)
            self._simplify_arguments(place)

    def order_steps(self) -> None:
        if len(self.test.steps) > _FEW:
            return
        names = list(self._actions)
        ordered = in_canonical_order(
            self.test.steps,
            lambda steps: _is_in_order(steps) and self._holds(self._with(steps)),
            key=lambda step: (names.index(step.action), repr(step.arguments), step.label),
        )
        self.test = self._with(ordered)

    def number_labels(self) -> None:
        """What steps make is called 1, 2, ... in order: nothing depends on these numbers."""
        wanted = used_labels(self.test.steps)
        labels = [step.label for step in self.test.steps if step.label in wanted]
        rest = [s.label for s in self.test.steps if s.label and s.label not in wanted]
        numbers = {label: number for number, label in enumerate([*labels, *rest], 1)}
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

    def _simplify_action(self, place: int) -> None:
        """An action that was declared earlier, if it takes and makes the same kinds of things."""
        step = self.test.steps[place]
        own = self._actions[step.action]
        for name, other in self._actions.items():
            if name == step.action:
                return
            same = [*other.arguments.values()] == [*own.arguments.values()]
            if (
                same
                and other.into is own.into
                and self._try_step(place, step._replace(action=name))
            ):
                return

    def _simplify_arguments(self, place: int) -> None:
        step = self.test.steps[place]
        sources = list(self._actions[step.action].arguments.values())
        try:
            values = step.values()
        except UserError:
            return  # something that could not be saved stays what it is
        for at, (source, value) in enumerate(zip(sources, values, strict=False)):
            if isinstance(source, Generator):
                self._simplify_argument(place, at, source, value)

    def _simplify_argument(self, place: int, at: int, source: Generator[Any], value: Any) -> None:
        def becomes(new: Any) -> bool:
            step = self.test.steps[place]
            arguments = (*step.arguments[:at], to_json(new), *step.arguments[at + 1 :])
            return self._try_step(place, step._replace(arguments=arguments))

        for option in source.options:
            if (type(option) is type(value) and option == value) or becomes(option):
                return
        allows = source.allows
        if allows is not None:
            shrunk_values([value], lambda parts: allows(parts[0]) and becomes(parts[0]))

    def _try_step(self, place: int, step: Step) -> bool:
        steps = self.test.steps
        return self._try(self._with([*steps[:place], step, *steps[place + 1 :]]))

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
    """Whether nothing is used before it is made."""
    made: set[int] = set()
    for step in steps:
        if not used_labels([step]) <= made:
            return False
        made.add(step.label)
    return True


def _relabelled(argument: Any, numbers: Mapping[int, int]) -> Any:
    if isinstance(argument, dict) and "$ref" in argument:
        return {"$ref": numbers[argument["$ref"]]}
    return argument
