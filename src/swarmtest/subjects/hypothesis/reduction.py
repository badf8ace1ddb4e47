"""Making a test of a state machine smaller: steps first, then what the steps drew.

Initialize rules stay: Hypothesis runs them whatever the test says. Choices are made smaller as
data, by the criterion alone: that also works for a test that kills its process. What does not fit
any more is replaced by the simplest choice that does (see `drawing`), so removing choices is always
worth a try. Hypothesis's own shrinker knows more tricks; it gets the test afterwards (`hand_over`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarmtest.processes.fork import messages_of_fork
from swarmtest.reducer.reducer import AskedAs, minimised
from swarmtest.reducer.values import nearest_to_zero
from swarmtest.subjects.hypothesis.test import RuleStep, RuleTest, journalled

if TYPE_CHECKING:
    from swarmtest.subjects.hypothesis.subject import RuleBasedSubject

_SECONDS = 60.0


def reduced(subject: RuleBasedSubject, test: RuleTest, interesting: Callable[[Any], bool]) -> Any:
    """A smaller test (JSON data) for which `interesting` still holds."""

    def whole(steps: Sequence[RuleStep]) -> Any:
        return replace(test, steps=tuple(steps)).to_json()

    def holds(steps: Sequence[RuleStep]) -> bool:
        return interesting(whole(steps))

    steps, before = test.steps, None
    # Simpler arguments make other steps superfluous.
    while steps != before:
        before = steps
        first = [step for step in steps if step.rule in subject.initializers]
        rest = [step for step in steps if step.rule not in subject.initializers]
        still = AskedAs(interesting, lambda some, first=first: whole([*first, *some]))  # type: ignore[misc]
        kept = minimised(rest, still)
        steps = _simpler((*first, *kept), holds)
    small = replace(test, steps=steps)
    told = _printed_again(subject, small)
    return told.to_json() if interesting(told.to_json()) else small.to_json()


def _simpler(
    steps: tuple[RuleStep, ...], holds: Callable[[Sequence[RuleStep]], bool]
) -> tuple[RuleStep, ...]:
    """The same steps with fewer and simpler arguments."""
    kept = list(steps)

    def changed(at: int, **changes: Any) -> list[RuleStep]:
        return [*kept[:at], replace(kept[at], **changes), *kept[at + 1 :]]

    for at, step in enumerate(steps):
        if step.names and holds(changed(at, names=())):
            kept = changed(at, names=())  # then it takes what came into the bundle last
    for at, step in enumerate(steps):

        def with_choices(choices: Sequence[Any], at: int = at) -> bool:
            return holds(changed(at, choices=tuple(choices)))

        kept = changed(at, choices=smaller_choices(step.choices, with_choices))
    return tuple(kept)


def smaller_choices(
    choices: Sequence[Any], interesting: Callable[[Sequence[Any]], bool]
) -> tuple[Any, ...]:
    """Fewer and simpler choices.

    >>> smaller_choices([True, 77, False, "xyz"], lambda c: len(c) > 1 and c[1] > 20)
    (False, 21)
    """
    if not choices:
        return ()
    kept = list(minimised(choices, interesting))
    # An element of a collection is a few choices that can only go together.
    for width in (2, 3):
        for at in range(len(kept) - width, -1, -1):
            fewer = kept[:at] + kept[at + width :]
            if len(fewer) < len(kept) and interesting(fewer):
                kept = fewer
    for at in range(len(kept)):

        def with_value(value: Any, at: int = at) -> bool:
            return interesting([*kept[:at], value, *kept[at + 1 :]])

        kept[at] = _smaller(kept[at], with_value)
    return tuple(kept)


def _smaller(value: Any, interesting: Callable[[Any], bool]) -> Any:
    if isinstance(value, bool):
        return value and not interesting(False)
    if isinstance(value, int):
        return nearest_to_zero(value, interesting)
    if isinstance(value, float):
        for simple in (0.0, 1.0, value // 1 if value - value == 0 else value):
            if simple == value or interesting(simple):
                return simple
        return value
    kept = list(minimised(value, lambda parts: interesting(_joined(value, parts))))
    simplest = "0" if isinstance(value, str) else 0
    for at, part in enumerate(kept):
        simpler = [*kept[:at], simplest, *kept[at + 1 :]]
        if part != simplest and interesting(_joined(value, simpler)):
            kept = simpler
    return _joined(value, kept)


def _joined(like: str | bytes, parts: Sequence[Any]) -> str | bytes:
    return "".join(parts) if isinstance(like, str) else bytes(parts)


def _printed_again(subject: RuleBasedSubject, test: RuleTest) -> RuleTest:
    """The test with the choices and texts of a new run, which may end its process."""

    def work(tell: Callable[[Any], None]) -> None:
        subject.journal = tell
        subject.interruptible = False
        subject.replay(test.to_json())

    steps = journalled(messages_of_fork(work, subject.seconds or _SECONDS))
    return replace(test, steps=steps)
