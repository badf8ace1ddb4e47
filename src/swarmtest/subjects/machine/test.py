"""A machine's test as a value: steps with concrete arguments, and how they are saved as JSON.

A test prints as Python code that runs on its own (see `code`), is saved as JSON, and stays
runnable when steps are removed: a step that needs a missing value, or whose guard is false, is
skipped and counted.

In the JSON data, what JSON lacks has a tag such as ``$tuple``, and a value without a tag of its
own is pickled. Reading a pickled value runs code, as replaying a test does: do not do either with
files from people you do not trust.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from swarmtest.core.errors import UserError

FORMAT = "swarmtest machine test 1"


class Ref(NamedTuple):
    """A value that an earlier step of the same test made, referred to by that step's label.

    >>> Ref(3)
    Ref(label=3)
    """

    label: int


def to_json(value: Any) -> Any:
    """Return a value as JSON data.

    >>> to_json((1, b"a"))
    {'$tuple': [1, {'$bytes': 'YQ=='}]}
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        # JSON has no infinity and no NaN, the values for which the difference is not 0.
        return value if value - value == 0 else {"$float": repr(value)}
    if kind is Ref:
        return {"$ref": value.label}
    if kind is bytes:
        return {"$bytes": base64.b64encode(value).decode()}
    if kind is list:
        return [to_json(item) for item in value]
    if kind in (tuple, set, frozenset):
        items = sorted(value, key=repr) if kind is not tuple else value
        return {f"${kind.__name__}": [to_json(item) for item in items]}
    if kind is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: to_json(item) for key, item in value.items()}
        return {"$dict": [[to_json(key), to_json(item)] for key, item in value.items()]}
    try:
        return {"$pickle": base64.b64encode(pickle.dumps(value, 5)).decode(), "repr": repr(value)}
    except Exception:
        return {"$lost": repr(value)}


def from_json(data: Any) -> Any:
    """Return the value that `to_json` wrote.

    >>> from_json(to_json({"a": {1, 2}}))
    {'a': {1, 2}}
    """
    if isinstance(data, list):
        return [from_json(item) for item in data]
    if not isinstance(data, dict):
        return data
    tag = next(iter(data), "")
    if not tag.startswith("$"):
        return {key: from_json(item) for key, item in data.items()}
    return _from_tagged(tag, data[tag])


def _from_tagged(tag: str, body: Any) -> Any:
    match tag:
        case "$ref":
            return Ref(body)
        case "$float":
            return float(body)
        case "$bytes":
            return base64.b64decode(body)
        case "$tuple" | "$set" | "$frozenset":
            kinds: dict[str, Any] = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}
            return kinds[tag](from_json(item) for item in body)
        case "$dict":
            return {from_json(key): from_json(item) for key, item in body}
        case "$pickle":
            try:
                return pickle.loads(base64.b64decode(body))
            except Exception as error:
                raise UserError(
                    f"this test has an argument that cannot be read back: {error}"
                ) from None
        case "$lost":
            raise UserError(f"this test has an argument that could not be saved: {body}")
    raise UserError(f"not a test that this version of swarmtest wrote: unknown tag {tag!r}")


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

    def __len__(self) -> int:
        return len(self.steps)

    def without(self, removed: Iterable[int]) -> MachineTest:
        """Return the test without the steps at these positions."""
        excluded = set(removed)
        steps = tuple(step for i, step in enumerate(self.steps) if i not in excluded)
        return MachineTest(self.subject, steps, self.settings)

    def to_json(self) -> dict[str, Any]:
        """Return the test as JSON data."""
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
        """Return the test that `to_json` wrote."""
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
    """Return the labels to which the steps refer."""
    return {
        argument["$ref"]
        for step in steps
        for argument in step.arguments
        if isinstance(argument, dict) and "$ref" in argument
    }
