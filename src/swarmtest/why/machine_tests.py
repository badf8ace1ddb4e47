"""Edit the tests of machines: steps are calls of actions, values are their arguments.

Every value that is tried is one that the argument's generator can draw, as far as the generator
can tell. What an action takes from a pool is a value, too: another object of the same pool.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.seeds import key_of
from swarmtest.subjects.machine.code import ArgumentWriter
from swarmtest.subjects.machine.generators import Generator, allowed_by
from swarmtest.subjects.machine.machine import FromPool
from swarmtest.subjects.machine.repeats import part_at, parts_of, with_part
from swarmtest.subjects.machine.subject import MachineSubject
from swarmtest.subjects.machine.test import MachineTest, Step, used_labels
from swarmtest.subjects.machine.values import Ref, from_json, to_json
from swarmtest.why.editing import (
    FEW_OPTIONS,
    Slot,
    Steps,
    distinct,
    other_settings,
    others_of,
    telling_values,
)

_DRAWS = 24
"""How many values are drawn to learn what a generator draws."""
_NOTHING = object()


class MachineEditor:
    """A machine's test that can be edited.

    >>> from swarmtest import Machine, action, integers
    >>> class Safe(Machine):
    ...     @action(code=integers(0, 9))
    ...     def dial(self, code): assert code != 7
    >>> subject = MachineSubject(Safe)
    >>> test = MachineTest(subject.name, (Step("dial", (7,)),)).to_json()
    >>> editor = MachineEditor(subject, test)
    >>> [slot] = editor.slots(editor.steps)
    >>> editor.with_values(editor.steps, {slot: 3})
    (Step(action='dial', arguments=(3,), label=0, raised=''),)
    """

    unsupported = ""

    def __init__(self, subject: MachineSubject, test: Any) -> None:
        self._subject = subject
        self._actions = subject.actions
        self._test = MachineTest.from_json(test)
        for step in self._test.steps:
            if step.action not in self._actions:
                raise UserError(f"the test calls {step.action!r}, which {subject.name} has not")
        self.steps: Steps = self._test.steps
        self.features: Sequence[str] = list(self._actions)
        self.settings: Mapping[str, Sequence[Any]] = other_settings(subject, self._test.settings)
        self._samples: dict[tuple[str, str], list[Any]] = {}

    def test(self, steps: Steps, settings: Mapping[str, Any] | None = None) -> Any:
        changed = {**self._test.settings, **(settings or {})}
        return replace(self._test, steps=tuple(steps), settings=changed).to_json()

    def feature(self, step: Step) -> str:
        return step.action

    def line(self, steps: Steps, at: int) -> str:
        step: Step = steps[at]
        writer = ArgumentWriter()
        made = f"v{step.label} = " if step.label in used_labels(steps) else ""
        shown = []
        for argument in step.arguments:
            text = argument.get("repr") if isinstance(argument, dict) else None
            shown.append(str(text) if text is not None else writer.code(argument))
        return f"{made}{step.action}({', '.join(shown)})"

    def is_possible(self, steps: Steps) -> bool:
        made: set[int] = set()
        for step in steps:
            if not used_labels([step]) <= made:
                return False
            made.add(step.label)
        return True

    def is_fixed(self, step: Step) -> bool:
        return False

    def new_step(
        self, feature: str, steps: Steps, at: int, rng: random.Random, *, copied: bool = False
    ) -> Step | None:
        action = self._actions[feature]
        arguments = []
        for name, source in action.arguments.items():
            if isinstance(source, FromPool):
                labels = self._labels(steps, at, source)
                if not labels:
                    return None
                arguments.append({"$ref": rng.choice(labels)})
                continue
            own = self._own_values(steps, source) if copied else []
            value = rng.choice(own) if own else rng.choice(self._drawn(feature, name, source))
            arguments.append(to_json(value))
        if any(isinstance(a, dict) and "$lost" in a for a in arguments):
            return None
        return Step(feature, tuple(arguments), self._label_for(feature, steps))

    def replacement(self, feature: str, step: Step, steps: Steps, at: int) -> Step | None:
        """Give arguments by their name and position, if the other generator can draw them.

        Where a whole argument does not fit, its parts may, or a list of them: ``set(3, 7)`` for
        ``update([(3, 7)])``, and the other way round.
        """
        action = self._actions[feature]
        if action.into is not self._actions[step.action].into and step.label in used_labels(steps):
            return None
        left = list(zip(self._actions[step.action].arguments.items(), step.arguments, strict=False))
        arguments = []
        for name, source in action.arguments.items():
            fitting = [pair for pair in left if self._fits(pair, source)]
            if not fitting:
                arguments = self._from_parts(action.arguments, step)
                break
            chosen = next((pair for pair in fitting if pair[0][0] == name), fitting[0])
            left.remove(chosen)
            arguments.append(chosen[1])
        if len(arguments) != len(action.arguments):
            return None
        label = step.label or self._label_for(feature, steps)
        return Step(feature, tuple(arguments), label if action.into is not None else 0)

    def borrowed(self, feature: str, steps: Steps, at: int) -> list[Any]:
        others = (other._replace(label=0) for other in others_of(steps, at))
        found = (self.replacement(feature, other, steps, at) for other in others)
        return distinct(step for step in found if step is not None)

    def _from_parts(self, wanted: Mapping[str, Generator[Any] | FromPool], step: Step) -> list[Any]:
        """Return arguments made of the parts of a step's values, or of a list of them."""
        leaves: list[Any] = []
        for argument in step.arguments:
            try:
                value = from_json(argument)
            except UserError:
                return []
            leaves += [part_at(value, path) for path in parts_of(value)] or [value]
        packed = [[tuple(leaves)], list(leaves), tuple(leaves)]
        arguments = []
        for source in wanted.values():
            allows = None if isinstance(source, FromPool) else allowed_by(source)
            if allows is None:
                return []
            value = next((v for v in [*leaves, *packed] if allows(v)), _NOTHING)
            if value is _NOTHING:
                return []
            if any(value is leaf for leaf in leaves):
                leaves.remove(value)
            arguments.append(to_json(value))
        return arguments

    def slots(self, steps: Steps) -> list[Slot]:
        slots = []
        for at, step in enumerate(steps):
            arguments = self._actions[step.action].arguments.items()
            for (name, source), argument in zip(arguments, step.arguments, strict=False):
                group = _group(source)
                if isinstance(source, FromPool):
                    slots.append(Slot(at, name, (), group))
                    continue
                try:
                    value = from_json(argument)
                except UserError:
                    continue  # drawn again in each run
                slots.append(Slot(at, name, (), group))
                slots += [Slot(at, name, path, (group, len(path))) for path in parts_of(value)]
        return slots

    def value(self, steps: Steps, slot: Slot) -> Any:
        value = from_json(self._argument(steps, slot))
        return value if isinstance(value, Ref) else part_at(value, slot.path)

    def with_values(self, steps: Steps, values: Mapping[Slot, Any]) -> Steps | None:
        changed = list(steps)
        for slot, value in sorted(values.items(), key=lambda pair: len(pair[0].path)):
            step: Step = changed[slot.step]
            names = list(self._actions[step.action].arguments)
            position = names.index(slot.name)
            if isinstance(value, Ref):
                argument: Any = {"$ref": value.label}
            else:
                whole = with_part(from_json(step.arguments[position]), slot.path, value)
                source = self._actions[step.action].arguments[slot.name]
                assert isinstance(source, Generator)
                allows = allowed_by(source)
                if allows is not None and not allows(whole):
                    return None
                argument = to_json(whole)
            arguments = (*step.arguments[:position], argument, *step.arguments[position + 1 :])
            changed[slot.step] = step._replace(arguments=arguments)
        return tuple(changed)

    def candidates(self, steps: Steps, slot: Slot, rng: random.Random) -> list[Any]:
        step: Step = steps[slot.step]
        source = self._actions[step.action].arguments[slot.name]
        current = self.value(steps, slot)
        if isinstance(source, FromPool):
            labels = self._labels(steps, slot.step, source)
            return [Ref(label) for label in labels if label != current.label]
        drawn = self._drawn(step.action, slot.name, source)
        if not slot.path:
            if source.options:
                return _without(source.options[:FEW_OPTIONS], current)
            others = [
                self.value(steps, other) for other in self.slots(steps) if other.group == slot.group
            ]
            if type(current) not in (int, float, str, bytes, bool):
                return _without(distinct([*others, *drawn[:8]]), current)
            return self._allowed(telling_values(current, others, drawn, source.bounds), source)
        others = [self.value(steps, s) for s in self.slots(steps) if s.path]
        leaves = [part_at(value, path) for value in drawn for path in parts_of(value, 99)]
        numbers = [leaf for leaf in leaves if type(leaf) is type(current)]
        is_number = type(current) in (int, float) and numbers
        bounds = (min(numbers), max(numbers)) if is_number else None
        found = telling_values(current, others, numbers, bounds)
        return [v for v in found if self.with_values(steps, {slot: v}) is not None]

    def _allowed(self, values: list[Any], source: Generator[Any]) -> list[Any]:
        allows = allowed_by(source)
        return values if allows is None else [value for value in values if allows(value)]

    def _argument(self, steps: Steps, slot: Slot) -> Any:
        step: Step = steps[slot.step]
        return step.arguments[list(self._actions[step.action].arguments).index(slot.name)]

    def _drawn(self, feature: str, name: str, source: Generator[Any]) -> list[Any]:
        """Return values that a generator drew, always the same ones."""
        key = feature, name
        if key not in self._samples:
            rng = random.Random(key_of(f"why:{feature}:{name}"))
            self._samples[key] = [source.draw(rng) for _ in range(_DRAWS)]
        return self._samples[key]

    def _own_values(self, steps: Steps, source: Generator[Any]) -> list[Any]:
        """Return values of the test that a generator could have drawn."""
        allows = allowed_by(source)
        if allows is None:
            return []
        values = [self.value(steps, slot) for slot in self.slots(steps)]
        return distinct(v for v in values if not isinstance(v, Ref) and allows(v))

    def _labels(self, steps: Steps, at: int, source: FromPool) -> list[int]:
        return [
            step.label
            for step in steps[:at]
            if step.label and self._actions[step.action].into is source.pool
        ]

    def _label_for(self, feature: str, steps: Steps) -> int:
        if self._actions[feature].into is None:
            return 0
        return max((step.label for step in steps), default=0) + 1

    def _fits(self, pair: tuple[tuple[str, Any], Any], source: Generator[Any] | FromPool) -> bool:
        (_, given), argument = pair
        if isinstance(source, FromPool):
            return isinstance(given, FromPool) and given.pool is source.pool
        if isinstance(given, FromPool):
            return False
        if given is source:
            return True
        allows = allowed_by(source)
        try:
            return allows is not None and allows(from_json(argument))
        except UserError:
            return False


def _group(source: Generator[Any] | FromPool) -> Hashable:
    """Return what arguments of the same generator have in common."""
    if isinstance(source, FromPool):
        return "pool", source.pool.name
    if source.bounds is not None:
        return "numbers", source.bounds
    return "generator", id(source)


def _without(values: Sequence[Any], current: Any) -> list[Any]:
    return [v for v in values if not (type(v) is type(current) and v == current)]
