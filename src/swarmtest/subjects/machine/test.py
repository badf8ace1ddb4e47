"""A machine's test as a value: steps with concrete arguments, and how they are saved as JSON.

A test prints as Python code that runs on its own (see `code`), is saved as JSON, and stays
runnable when steps are removed: a step that needs a missing value, or whose guard is false, is
skipped and counted.

The arguments are JSON data: see `values`. An argument that has no form as data is drawn again when
the test runs, from the `origin` of the test: see `redraw`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from swarmtest.core.errors import UserError
from swarmtest.subjects.machine.values import from_json

FORMAT = "swarmtest machine test 1"


class Step(NamedTuple):
    """One call of an action. Its arguments are JSON data, so that the program cannot change them.

    >>> Step("push", (3,)).values()
    [3]
    """

    action: str
    arguments: tuple[Any, ...] = ()
    label: int = 0
    """The number by which later steps refer to what this step makes; 0 if it makes nothing."""
    raised: str = ""
    """The expected exception that this step raised when the test was generated."""

    def values(self) -> list[Any]:
        """Return the arguments as new Python values; what other steps made remains a `Ref`."""
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
    origin: Mapping[str, Any] = field(default_factory=dict)
    """The configuration and the seed from which arguments are drawn again; empty if none are."""

    def __len__(self) -> int:
        return len(self.steps)

    def without(self, removed: Iterable[int]) -> MachineTest:
        """Return the test without the steps at these positions."""
        excluded = set(removed)
        steps = tuple(step for i, step in enumerate(self.steps) if i not in excluded)
        return replace(self, steps=steps)

    def to_json(self) -> dict[str, Any]:
        """Return the test as JSON data."""
        data: dict[str, Any] = {"format": FORMAT, "subject": self.subject}
        if self.settings:
            data["settings"] = dict(self.settings)
        if self.origin and any(drawn_arguments(self.steps)):
            data["origin"] = dict(self.origin)
        data["steps"] = [
            [s.action, list(s.arguments), *((s.label, s.raised) if s.label or s.raised else ())]
            for s in self.steps
        ]
        return data

    @classmethod
    def from_json(cls, data: Any) -> MachineTest:
        """Return the test that `to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise UserError(f"not a saved machine test (its format should be {FORMAT!r})")
        try:
            steps = tuple(
                _step(action, arguments, *rest) for action, arguments, *rest in data["steps"]
            )
        except (KeyError, TypeError, ValueError):
            raise UserError(
                "a saved machine test is broken: 'steps' is not a list of steps"
            ) from None
        test = cls(data.get("subject", ""), steps, data.get("settings", {}), data.get("origin", {}))
        try:
            used_labels(steps)
        except (TypeError, ValueError):
            raise UserError("a saved machine test is broken: a '$ref' is no number") from None
        return test


def _step(action: Any, arguments: Any, label: Any = 0, raised: Any = "") -> Step:
    """Return a step of saved data. A label becomes a part of a name when the test is written."""
    return Step(str(action), tuple(arguments), int(label), str(raised))


def used_labels(steps: Sequence[Step]) -> set[int]:
    """Return the labels to which the steps refer."""
    return {
        int(argument["$ref"])
        for step in steps
        for argument in step.arguments
        if isinstance(argument, dict) and "$ref" in argument
    }


def drawn_arguments(steps: Iterable[Step]) -> Iterator[tuple[int, int]]:
    """Yield the arguments to draw again: the number of the step in the trial, and the position."""
    for step in steps:
        for argument in step.arguments:
            if isinstance(argument, dict) and "$drawn" in argument:
                label, position = argument["$drawn"]
                yield int(label), int(position)
