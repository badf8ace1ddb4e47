"""A test of a state machine as a value: rules with what they drew.

What a step drew is kept as Hypothesis's *choices*, which replay whatever the strategies make of
them (objects, functions, draws in the rule's body) where values could not be saved. Values from
bundles are kept by name, `v3` for what the third step gave, so that steps can be removed: a step
whose value is gone is skipped. The texts are for people; no replay reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.subjects.machine.test import from_json, to_json

FORMAT = "swarmtest rule test 1"


@dataclass(frozen=True)
class RuleStep:
    """One rule, with what it drew.

    >>> RuleStep("push", 1, (5,), texts={"value": "5"}).to_json()
    {'rule': 'push', 'label': 1, 'choices': [5], 'arguments': {'value': '5'}}
    """

    rule: str
    label: int
    """The number by which later steps name what this one gives."""
    choices: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    """The values that it took from bundles, in the order of the draws."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The arguments as code."""
    drawn: tuple[str, ...] = ()
    """What the rule's body drew, as code."""
    gives: int | None = None
    """How many values it gave with `multiple()`; None: not with `multiple()`."""

    def to_json(self) -> dict[str, Any]:
        """The step as JSON data; what is empty is left out."""
        data = {
            "rule": self.rule,
            "label": self.label,
            "choices": [to_json(choice) for choice in self.choices],
            "names": list(self.names),
            "arguments": dict(self.texts),
            "drawn": list(self.drawn),
            "gives": self.gives,
        }
        return {key: value for key, value in data.items() if value or key == "label"} | (
            {"gives": 0} if self.gives == 0 else {}
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RuleStep:
        """The step that `to_json` wrote."""
        return cls(
            str(data["rule"]),
            int(data["label"]),
            tuple(map(from_json, data.get("choices", ()))),
            tuple(data.get("names", ())),
            dict(data.get("arguments", {})),
            tuple(data.get("drawn", ())),
            data.get("gives"),
        )


@dataclass(frozen=True)
class RuleTest:
    """A sequence of steps for one state machine.

    >>> test = RuleTest("test_stack.py::Stack", (RuleStep("push", 1, (5,)), RuleStep("pop", 2)))
    >>> RuleTest.from_json(test.to_json()) == test
    True
    """

    subject: str
    steps: tuple[RuleStep, ...]
    violated: str = ""
    """The invariant that did not hold at the end, if one did not; for people."""

    def to_json(self) -> dict[str, Any]:
        """The test as JSON data."""
        data: dict[str, Any] = {"format": FORMAT, "subject": self.subject}
        if self.violated:
            data["violated"] = self.violated
        data["steps"] = [step.to_json() for step in self.steps]
        return data

    @classmethod
    def from_json(cls, data: Any) -> RuleTest:
        """The test that `to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise UserError(
                f"not a saved test of a state machine (its format should be {FORMAT!r})"
            )
        try:
            steps = tuple(map(RuleStep.from_json, data["steps"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UserError(
                "a saved test of a state machine is broken: 'steps' is not a list of steps"
            ) from None
        return cls(str(data.get("subject", "")), steps, str(data.get("violated", "")))


def journalled(told: Sequence[Any]) -> tuple[RuleStep, ...]:
    """Steps from what a journal was told: a step, or what became of the last one."""
    steps: list[dict[str, Any]] = []
    for entry in told:
        if "rule" in entry:
            steps.append(dict(entry))
        elif "gave up" in entry:
            del steps[-1]
        else:
            steps[-1] |= entry
    return tuple(map(RuleStep.from_json, steps))
