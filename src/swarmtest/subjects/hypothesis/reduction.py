"""Make a test of a state machine smaller: first its steps, then what the steps drew.

Initialize rules stay, because Hypothesis runs them in every test. Choices are reduced as data, and
only the criterion decides, so this also works for a test that kills its process. A choice that no
longer fits is replaced by the simplest one that does (see `drawing`), so it is always worth trying
to remove choices. Hypothesis's own shrinker can do more; it gets the test afterwards (`hand_over`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarmtest.processes.fork import messages_of_fork
from swarmtest.reducer.reducer import ConvertedCriterion, minimised
from swarmtest.reducer.values import nearest_to_zero
from swarmtest.subjects.hypothesis.test import RuleStep, RuleTest, journalled

if TYPE_CHECKING:
    from swarmtest.subjects.hypothesis.subject import RuleBasedSubject

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
    printed = _printed_again(subject, small)
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


def _printed_again(subject: RuleBasedSubject, test: RuleTest) -> RuleTest:
    """Return the test with the choices and texts of a new run, in a process that it may end."""

    def work(tell: Callable[[Any], None]) -> None:
        subject.journal = tell
        subject.interruptible = False
        subject.replay(test.to_json())

    steps = journalled(messages_of_fork(work, subject.seconds or _SECONDS))
    return replace(test, steps=steps)
