"""A test of a state machine, as a value: a sequence of rules with what they drew.

The draws are saved as Hypothesis's *choices*, which can be replayed whatever the strategies make of
them (objects, functions, draws in the rule's body), while values often cannot be saved. Values from
bundles are saved by name, such as `v3` for the result of the third step, so that steps can be
removed; a step whose value is missing is skipped. The texts of arguments are for people; a replay
does not use them. Reading a test does not need Hypothesis.

The second part makes a test smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError
from swarmtest.processes.fork import messages_of_fork
from swarmtest.reducer.reducer import ConvertedCriterion, minimised
from swarmtest.reducer.values import nearest_to_zero
from swarmtest.subjects.machine.values import from_json, to_json

if TYPE_CHECKING:
    from swarmtest.subjects.hypothesis.subject import RuleBasedSubject


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
            {str(name): str(text) for name, text in data.get("arguments", {}).items()},
            tuple(map(str, data.get("drawn", ()))),
            None if data.get("gives") is None else int(data["gives"]),
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


def journalled(entries: Sequence[Any]) -> tuple[RuleStep, ...]:
    """Return the steps in a journal, whose entries are steps or changes to the last step."""
    steps: list[dict[str, Any]] = []
    for entry in entries:
        if "rule" in entry:
            steps.append(dict(entry))
        elif "gave up" in entry:
            del steps[-1]
        else:
            steps[-1] |= entry
    return tuple(map(RuleStep.from_json, steps))


# Smaller tests: first without steps, then with simpler draws.
#
# Initialize rules stay, because Hypothesis runs them in every test. Choices are reduced as data,
# and only the criterion decides, so this also works for a test that kills its process. A choice
# that no longer fits is replaced by the simplest one that does (see `drawing`), so it is always
# worth trying to remove choices. Hypothesis's own shrinker can do more; it gets the test
# afterwards (`hand_over`).

_SECONDS = 60.0


def reduced(subject: RuleBasedSubject, test: RuleTest, interesting: Callable[[Any], bool]) -> Any:
    """Return a smaller test (JSON data) for which `interesting` still holds."""

    def whole(steps: Sequence[RuleStep]) -> Any:
        return replace(test, steps=tuple(steps)).to_json()

    def holds(steps: Sequence[RuleStep]) -> bool:
        return interesting(whole(steps))

    steps, before = test.steps, None
    # Simpler arguments may make further steps unnecessary.
    while steps != before:
        before = steps
        first = [step for step in steps if step.rule in subject.initializers]
        rest = [step for step in steps if step.rule not in subject.initializers]
        still = ConvertedCriterion(interesting, lambda some, first=first: whole([*first, *some]))  # type: ignore[misc]
        needed = minimised(rest, still)
        steps = _simpler((*first, *needed), holds)
    small = replace(test, steps=steps)
    printed = printed_again(subject, small)
    return printed.to_json() if interesting(printed.to_json()) else small.to_json()


def _simpler(
    steps: tuple[RuleStep, ...], holds: Callable[[Sequence[RuleStep]], bool]
) -> tuple[RuleStep, ...]:
    """Return the same steps with fewer and simpler arguments."""
    current = list(steps)

    def changed(at: int, **changes: Any) -> list[RuleStep]:
        return [*current[:at], replace(current[at], **changes), *current[at + 1 :]]

    for at, step in enumerate(steps):
        if step.names and holds(changed(at, names=())):
            current = changed(at, names=())  # the step then draws the newest value of the bundle
    for at, step in enumerate(steps):

        def with_choices(choices: Sequence[Any], at: int = at) -> bool:
            return holds(changed(at, choices=tuple(choices)))

        current = changed(at, choices=smaller_choices(step.choices, with_choices))
    return tuple(current)


def smaller_choices(
    choices: Sequence[Any], interesting: Callable[[Sequence[Any]], bool]
) -> tuple[Any, ...]:
    """Return fewer and simpler choices for which `interesting` still holds.

    >>> smaller_choices([True, 77, False, "xyz"], lambda c: len(c) > 1 and c[1] > 20)
    (False, 21)
    """
    if not choices:
        return ()
    current = list(minimised(choices, interesting))
    # An element of a collection consists of a few choices that can only be removed together.
    for width in (2, 3):
        for at in range(len(current) - width, -1, -1):
            fewer = current[:at] + current[at + width :]
            if len(fewer) < len(current) and interesting(fewer):
                current = fewer
    for at in range(len(current)):

        def with_value(value: Any, at: int = at) -> bool:
            return interesting([*current[:at], value, *current[at + 1 :]])

        current[at] = _smaller_value(current[at], with_value)
    return tuple(current)


def _smaller_value(value: Any, interesting: Callable[[Any], bool]) -> Any:
    if isinstance(value, bool):
        return value and not interesting(False)
    if isinstance(value, int):
        return nearest_to_zero(value, interesting)
    if isinstance(value, float):
        for simple in (0.0, 1.0, value // 1 if value - value == 0 else value):
            if simple == value or interesting(simple):
                return simple
        return value
    parts = list(minimised(value, lambda some: interesting(_joined(value, some))))
    simplest = "0" if isinstance(value, str) else 0
    for at, part in enumerate(parts):
        simpler = [*parts[:at], simplest, *parts[at + 1 :]]
        if part != simplest and interesting(_joined(value, simpler)):
            parts = simpler
    return _joined(value, parts)


def _joined(like: str | bytes, parts: Sequence[Any]) -> str | bytes:
    return "".join(parts) if isinstance(like, str) else bytes(parts)


def printed_again(subject: RuleBasedSubject, test: RuleTest) -> RuleTest:
    """Return the test with the choices and texts of a new run, in a process that it may end.

    Texts are code, and those of a store may be hostile: a program that will be run has
    those of a run that was made here.
    """

    def work(tell: Callable[[Any], None]) -> None:
        subject.journal = tell
        subject.interruptible = False
        subject.replay(test.to_json())

    steps = journalled(messages_of_fork(work, subject.seconds or _SECONDS))
    return replace(test, steps=steps)
