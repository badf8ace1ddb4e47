"""Edit the tests of Hypothesis state machines: steps are rules, values are Hypothesis's choices.

Only Hypothesis knows which choices a strategy makes of which values, so new steps and other values
come from tests that are generated for this purpose. A choice that does not fit is replaced by the
simplest one that does, as in a replay.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from swarmtest.core.seeds import key_of
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.subjects.hypothesis.subject import RuleBasedSubject
from swarmtest.subjects.hypothesis.test import RuleStep, RuleTest
from swarmtest.why.editing import Slot, Steps, distinct, others_of, telling_values

_GENERATED = 12
"""Tests that are generated to learn which steps and values there are."""
_SECONDS = 20.0
_NAME = re.compile(r"v(\d+)")


class RuleEditor:
    """A test of a Hypothesis state machine that can be edited."""

    def __init__(self, subject: RuleBasedSubject, test: Any) -> None:
        self._test = RuleTest.from_json(test)
        self._initializers = frozenset(subject.initializers)
        self.steps: Steps = self._test.steps
        self.settings: Mapping[str, Sequence[Any]] = {}
        self._samples = _generated_steps(subject)
        self.features: Sequence[str] = [
            name for name in subject.space.feature_names if name in self._samples
        ]
        self.unsupported = ""
        if not self.features:
            self.unsupported = "no rules could be inserted: generating tests ends their process"

    def test(self, steps: Steps, settings: Mapping[str, Any] | None = None) -> Any:
        return replace(self._test, steps=tuple(steps)).to_json()

    def feature(self, step: RuleStep) -> str:
        return step.rule

    def line(self, steps: Steps, at: int) -> str:
        step: RuleStep = steps[at]
        arguments = ", ".join(f"{name}={text}" for name, text in step.texts.items())
        return f"{step.rule}({arguments})"

    def is_possible(self, steps: Steps) -> bool:
        made: set[int] = set()
        for step in steps:
            labels = {int(m[1]) for name in step.names if (m := _NAME.match(name))}
            if not labels <= made:
                return False
            made.add(step.label)
        return True

    def is_fixed(self, step: RuleStep) -> bool:
        return step.rule in self._initializers

    def new_step(
        self, feature: str, steps: Steps, at: int, rng: random.Random, *, copied: bool = False
    ) -> RuleStep | None:
        sample = rng.choice(self._samples[feature])
        choices = list(sample.choices)
        own = [choice for step in steps for choice in step.choices]
        for position, choice in enumerate(choices if copied else ()):
            same = [other for other in own if type(other) is type(choice)]
            if same:
                choices[position] = rng.choice(same)
        return replace(
            sample,
            label=max((step.label for step in steps), default=0) + 1,
            choices=tuple(choices),
            names=(),  # it draws the newest value of the bundle
        )

    def replacement(self, feature: str, step: RuleStep, steps: Steps, at: int) -> RuleStep | None:
        return replace(step, rule=feature, names=(), texts={}, drawn=(), gives=None)

    def borrowed(self, feature: str, steps: Steps, at: int) -> list[Any]:
        label = max((step.label for step in steps), default=0) + 1
        found = (self.replacement(feature, other, steps, at) for other in others_of(steps, at))
        return distinct(replace(step, label=label) for step in found if step is not None)

    def slots(self, steps: Steps) -> list[Slot]:
        return [
            Slot(at, name, (), type(choice).__name__)
            for at, step in enumerate(steps)
            for name, choice in zip(_choice_names(step), step.choices, strict=True)
        ]

    def value(self, steps: Steps, slot: Slot) -> Any:
        step: RuleStep = steps[slot.step]
        return step.choices[_choice_names(step).index(slot.name)]

    def with_values(self, steps: Steps, values: Mapping[Slot, Any]) -> Steps | None:
        changed = list(steps)
        for slot, value in values.items():
            step: RuleStep = changed[slot.step]
            choices = list(step.choices)
            position = _choice_names(step).index(slot.name)
            bounds = self._bounds(self.steps[slot.step], position)
            # Beyond what was drawn, a choice might not fit, and be replaced by a simpler one.
            if bounds is not None and not bounds[0] <= value <= bounds[1]:
                return None
            choices[position] = value
            changed[slot.step] = replace(step, choices=tuple(choices))
        return tuple(changed)

    def candidates(self, steps: Steps, slot: Slot, rng: random.Random) -> list[Any]:
        step: RuleStep = steps[slot.step]
        position = _choice_names(step).index(slot.name)
        others = [other for s in steps for other in s.choices]
        drawn = self._drawn(step, position)
        bounds = self._bounds(step, position)
        found = telling_values(self.value(steps, slot), others, drawn, bounds)
        return [value for value in found if self.with_values(steps, {slot: value}) is not None]

    def _drawn(self, step: RuleStep, position: int) -> list[Any]:
        """Return choices of the same type that other steps of the rule drew at a position."""
        kind = type(step.choices[position])
        samples = self._samples.get(step.rule, ())
        choices = [s.choices[position] for s in samples if len(s.choices) > position]
        return [choice for choice in choices if type(choice) is kind]

    def _bounds(self, step: RuleStep, position: int) -> tuple[Any, Any] | None:
        current = step.choices[position]
        if type(current) not in (int, float):
            return None
        numbers = [*self._drawn(step, position), current]
        return min(numbers), max(numbers)


def _choice_names(step: RuleStep) -> list[str]:
    """Return a name for each choice: the argument's, if each has one choice."""
    names = list(step.texts)
    if len(names) == len(step.choices):
        return names
    return [f"choice{number}" for number, _ in enumerate(step.choices, 1)]


def _generated_steps(subject: RuleBasedSubject) -> dict[str, list[RuleStep]]:
    """Return steps of each rule, from tests that run in a process of their own."""

    def generate() -> list[Any]:
        subject.interruptible = False
        default = subject.space.default()
        return [subject.test_of(default, key_of(f"why:{n}")) for n in range(_GENERATED)]

    samples: dict[str, list[RuleStep]] = {}
    try:
        tests = in_fork(generate, _SECONDS)
    except NoAnswer:
        return samples
    for test in tests:
        for step in RuleTest.from_json(test).steps:
            if step.rule not in subject.initializers:
                samples.setdefault(step.rule, []).append(step)
    return samples
