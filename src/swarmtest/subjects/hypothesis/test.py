"""A test of a state machine, as a value: a sequence of rules with what they drew.

The draws are saved as Hypothesis's *choices*, which can be replayed whatever the strategies make of
them (objects, functions, draws in the rule's body), while values often cannot be saved. Values from
bundles are saved by name, such as `v3` for the result of the third step, so that steps can be
removed; a step whose value is missing is skipped. The texts of arguments are for people; a replay
does not use them. Reading a test does not need Hypothesis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.subjects.machine.values import from_json, to_json

FORMAT = "swarmtest rule test 1"


@dataclass(frozen=True)
class RuleStep:
    """One rule, with what it drew.

    >>> RuleStep("push", 1, (5,), texts={"value": "5"}).to_json()
    {'rule': 'push', 'label': 1, 'choices': [5], 'arguments': {'value': '5'}}
    """

    rule: str
    label: int
    """The number in the names of this step's results."""
    choices: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    """The names of the values that it drew from bundles, in the order of the draws."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The arguments as code."""
    drawn: tuple[str, ...] = ()
    """What the rule's body drew, as code."""
    gives: int | None = None
    """The number of values that it returned with `multiple()`; None: it did not use that."""

    def to_json(self) -> dict[str, Any]:
        """Return the step as JSON data, without empty entries."""
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
        """Return the step that `to_json` wrote."""
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
    """The invariant that did not hold at the end, if any; only for people."""

    def to_json(self) -> dict[str, Any]:
        """Return the test as JSON data."""
        data: dict[str, Any] = {"format": FORMAT, "subject": self.subject}
        if self.violated:
            data["violated"] = self.violated
        data["steps"] = [step.to_json() for step in self.steps]
        return data

    @classmethod
    def from_json(cls, data: Any) -> RuleTest:
        """Return the test that `to_json` wrote."""
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
    """Return the steps in a journal, whose entries are steps or changes to the last step."""
    steps: list[dict[str, Any]] = []
    for entry in told:
        if "rule" in entry:
            steps.append(dict(entry))
        elif "gave up" in entry:
            del steps[-1]
        else:
            steps[-1] |= entry
    return tuple(map(RuleStep.from_json, steps))
