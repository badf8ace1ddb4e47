"""Tests that experiments can edit: steps in an order, with values.

Each kind of subject has an editor (`EditableTest`), which knows the steps of a test, can make a new
step of a feature, and knows which values an argument may have. `editor_of` returns the editor of a
test, or says why there is none.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from swarmtest.core.errors import UserError
from swarmtest.subjects.subject import Subject

FEW_OPTIONS = 16
"""Of more values than these, only some are tried."""
Steps = tuple[Any, ...]
"""The steps of a test, as its editor represents them."""


@dataclass(frozen=True)
class Slot:
    """A value of a step that can be changed: an argument, or a part of one.

    >>> Slot(0, "pairs", (1, 0)).label
    'pairs[1][0]'
    """

    step: int
    name: str
    """The name of the argument."""
    path: tuple[int, ...] = ()
    """Where the value is in the argument, if that is a list or a tuple."""
    group: Hashable = None
    """Slots of the same group draw from the same generator."""

    @property
    def label(self) -> str:
        """The name as code."""
        return self.name + "".join(f"[{at}]" for at in self.path)


class EditableTest(Protocol):
    """A test that can be taken apart and put together again."""

    steps: Steps
    features: Sequence[str]
    """The features of which a step can be inserted."""
    settings: Mapping[str, Sequence[Any]]
    """For each setting of the test, the other values that it may have."""
    unsupported: str
    """Which experiments are not possible with tests of this kind, in one line; may be empty."""

    def test(self, steps: Steps, settings: Mapping[str, Any] | None = None) -> Any:
        """Return the test (JSON data) with these steps, and some settings changed."""

    def feature(self, step: Any) -> str:
        """Return the feature that a step belongs to."""

    def line(self, steps: Steps, at: int) -> str:
        """Return a step as code, in one line."""

    def is_possible(self, steps: Steps) -> bool:
        """Return whether no step uses a value before it is made."""

    def is_fixed(self, step: Any) -> bool:
        """Return whether a step can be neither moved nor removed."""

    def new_step(
        self, feature: str, steps: Steps, at: int, rng: random.Random, *, copied: bool = False
    ) -> Any | None:
        """Return a new step to insert at a position; None if there can be none.

        With `copied`, its arguments are values that the test contains already, where they fit.
        """

    def replacement(self, feature: str, step: Any, steps: Steps, at: int) -> Any | None:
        """Return a step of another feature with the arguments of this one, as far as they fit."""

    def borrowed(self, feature: str, steps: Steps, at: int) -> list[Any]:
        """Return steps of a feature with the arguments of other steps than the one at a position.

        The nearest steps before it come first. What `remove(0)` removes by its position, `discard`
        may name as the step that added it did.
        """

    def slots(self, steps: Steps) -> list[Slot]:
        """Return the values that can be changed; whole arguments first, then their parts."""

    def value(self, steps: Steps, slot: Slot) -> Any:
        """Return the value in a slot."""

    def with_values(self, steps: Steps, values: Mapping[Slot, Any]) -> Steps | None:
        """Return the steps with these values; None if the generator could not draw one of them."""

    def candidates(self, steps: Steps, slot: Slot, rng: random.Random) -> list[Any]:
        """Return other values for a slot: all if there are few, else a telling selection."""


def editor_of(subject: Subject, test: Any) -> EditableTest:
    """Return the editor of a test; raise `UserError` if tests of this subject have none."""
    form = test.get("format", "") if isinstance(test, Mapping) else ""
    if form == "swarmtest machine test 1":
        from swarmtest.why.machine_tests import MachineEditor

        return MachineEditor(subject, test)  # type: ignore[arg-type]  # the format says which
    if form == "swarmtest rule test 1":
        from swarmtest.why.rule_tests import RuleEditor

        return RuleEditor(subject, test)  # type: ignore[arg-type]  # the format says which
    if subject.part != "switch" and subject.parts(test):
        from swarmtest.why.part_tests import PartEditor

        return PartEditor(subject, test)
    raise UserError(
        f"experiments are not supported for tests of {subject.name}: `swarmtest roles` has the "
        "statistics"
    )


def others_of(steps: Steps, at: int) -> Steps:
    """Return the other steps than the one at a position, the nearest before it first.

    >>> others_of(("a", "b", "c", "d"), 2)
    ('b', 'a', 'd')
    """
    return (*reversed(steps[:at]), *steps[at + 1 :])


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return values without repetitions; they may not be hashable.

    >>> distinct([[1], 1, [2], [1], 1.0])
    [[1], 1, [2], 1.0]
    """
    found: list[Any] = []
    for value in values:
        if not any(type(value) is type(other) and value == other for other in found):
            found.append(value)
    return found


def other_settings(subject: Subject, settings: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return for each setting the other values that it may have, at most a few."""
    others = {}
    for dimension in subject.space.settings:
        if dimension.name in settings:
            current = settings[dimension.name]
            values = dimension.values
            few = values if len(values) <= FEW_OPTIONS else (values[0], values[-1])
            others[dimension.name] = [v for v in few if v != current]
    modes = (name for name in subject.space.feature_names if isinstance(settings.get(name), bool))
    return others | {name: [not settings[name]] for name in modes}


def telling_values(
    value: Any,
    others: Sequence[Any],
    drawn: Sequence[Any],
    bounds: tuple[float, float] | None = None,
    most: int = 14,
) -> list[Any]:
    """Return values of the same type that may behave differently: bounds, neighbours, others.

    `others` are values of the test, and `drawn` are values that the generator drew.

    >>> telling_values(3, [7], [], (0, 5))
    [0, 1, 2, 4, 5]
    >>> telling_values(30, [70], [45, 12], (0, 100))
    [0, 100, 29, 31, 70, 69, 71, 1, 45, 12]
    """
    kind = type(value)
    if kind is bool:
        return [not value]
    if kind is int and bounds is not None and bounds[1] - bounds[0] < most:
        return [n for n in range(int(bounds[0]), int(bounds[1]) + 1) if n != value]
    same = [other for other in others if type(other) is kind]
    fresh = [other for other in drawn if type(other) is kind]
    found: list[Any] = []
    if kind in (int, float):
        found += [kind(bound) for bound in bounds or ()] + [value - 1, value + 1]
        found += [near for other in same for near in (other, other - 1, other + 1)]
        found += [kind(0), kind(1)]
    elif kind in (str, bytes):
        found += [kind(), value[:-1], value + value[-1:], *same]
    distinct = list(dict.fromkeys(v for v in found if v != value))[: most - 4]
    return list(dict.fromkeys([*distinct, *(v for v in fresh if v != value)]))[:most]
