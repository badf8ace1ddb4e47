"""A machine's test as a value: steps with concrete arguments.

It prints as Python code that runs by itself, saves as JSON, and stays runnable when steps are
removed: a step whose value or guard is gone is skipped and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from swarmtest.errors import UserError
from swarmtest.subjects.values import from_json

FORMAT = "swarmtest machine test 1"


class Step(NamedTuple):
    """One call of an action. `arguments` are JSON data, so that nothing can change them.

    >>> Step("push", (3,)).values()
    [3]
    """

    action: str
    arguments: tuple[Any, ...] = ()
    label: int = 0
    """The number under which later steps refer to what this one makes; 0: makes nothing."""
    raised: str = ""
    """The expected exception that this step raised when the test was made."""

    def values(self) -> list[Any]:
        """The arguments as fresh Python values; what other steps made stays a `Ref`."""
        return [from_json(argument) for argument in self.arguments]


@dataclass(frozen=True)
class MachineTest:
    """A sequence of steps for one machine.

    >>> test = MachineTest("stack.py::StackMachine", (Step("push", (3,)), Step("pop")))
    >>> MachineTest.from_json(test.to_json()) == test
    True
    >>> len(test.without([0]))
    1
    """

    subject: str
    steps: tuple[Step, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.steps)

    def without(self, removed: Iterable[int]) -> MachineTest:
        """The test with the steps at these positions removed."""
        gone = set(removed)
        kept = tuple(step for i, step in enumerate(self.steps) if i not in gone)
        return MachineTest(self.subject, kept, self.settings)

    def to_json(self) -> dict[str, Any]:
        """The test as JSON data."""
        data: dict[str, Any] = {"format": FORMAT, "subject": self.subject}
        if self.settings:
            data["settings"] = dict(self.settings)
        data["steps"] = [
            [s.action, list(s.arguments), *((s.label, s.raised) if s.label or s.raised else ())]
            for s in self.steps
        ]
        return data

    @classmethod
    def from_json(cls, data: Any) -> MachineTest:
        """The test that `to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise UserError(f"not a saved machine test (its format should be {FORMAT!r})")
        try:
            steps = tuple(
                Step(str(action), tuple(arguments), *rest)
                for action, arguments, *rest in data["steps"]
            )
        except (KeyError, TypeError, ValueError):
            raise UserError(
                "a saved machine test is broken: 'steps' is not a list of steps"
            ) from None
        return cls(data.get("subject", ""), steps, data.get("settings", {}))


def used_labels(steps: Sequence[Step]) -> set[int]:
    """The labels that some step refers to."""
    return {
        argument["$ref"]
        for step in steps
        for argument in step.arguments
        if isinstance(argument, dict) and "$ref" in argument
    }
