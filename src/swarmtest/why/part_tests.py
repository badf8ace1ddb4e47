"""Edit tests that consist of parts without values: lines of a file, or steps of an own subject.

Such a test can be shortened and reordered, and parts of other generated tests can be inserted. What
a part means is not known, so values are not changed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.seeds import key_of
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.subjects.subject import Subject
from swarmtest.why.editing import Slot, Steps, other_settings

_GENERATED = 6
_SECONDS = 30.0
_MOST_FEATURES = 16
"""Different parts that are inserted."""
_LONGEST_NAME = 40


class PartEditor:
    """A test whose parts can be left out, reordered and inserted."""

    def __init__(self, subject: Subject, test: Any) -> None:
        self._subject = subject
        self._test = test
        self.steps: Steps = tuple(subject.parts(test))
        own = test.get("settings") if isinstance(test, Mapping) else None
        self.settings: Mapping[str, Sequence[Any]] = other_settings(subject, own or {})
        self._samples = _generated_parts(subject, test)
        self.features: Sequence[str] = list(self._samples)
        self.unsupported = f"{subject.part}s are left out, moved and inserted, but not changed"

    def test(self, steps: Steps, settings: Mapping[str, Any] | None = None) -> Any:
        whole = self._test
        if settings:
            whole = {**whole, "settings": {**whole["settings"], **settings}}
        return self._subject.with_parts(whole, steps)

    def feature(self, step: Any) -> str:
        return _name(step)

    def line(self, steps: Steps, at: int) -> str:
        return _name(steps[at])

    def is_possible(self, steps: Steps) -> bool:
        return True

    def is_fixed(self, step: Any) -> bool:
        return False

    def new_step(
        self, feature: str, steps: Steps, at: int, rng: random.Random, *, copied: bool = False
    ) -> Any | None:
        return self._samples[feature]

    def replacement(self, feature: str, step: Any, steps: Steps, at: int) -> Any | None:
        return None

    def borrowed(self, feature: str, steps: Steps, at: int) -> list[Any]:
        return []

    def slots(self, steps: Steps) -> list[Slot]:
        return []

    def value(self, steps: Steps, slot: Slot) -> Any:
        raise NotImplementedError  # there are no slots

    def with_values(self, steps: Steps, values: Mapping[Slot, Any]) -> Steps | None:
        return steps

    def candidates(self, steps: Steps, slot: Slot, rng: random.Random) -> list[Any]:
        return []


def _name(part: Any) -> str:
    """Return a part as a short line."""
    if isinstance(part, bytes):
        part = part.decode(errors="replace")
    text = part.strip() if isinstance(part, str) else json.dumps(part)
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _generated_parts(subject: Subject, test: Any) -> dict[str, Any]:
    """Return different parts by their names: those of the test, and of other tests."""

    def generate() -> list[Any]:
        default = subject.space.default()
        return [
            subject.parts(subject.test_of(default, key_of(f"why:{number}")))
            for number in range(_GENERATED)
        ]

    samples = {_name(part): part for part in subject.parts(test)}
    try:
        others = in_fork(generate, _SECONDS)
    except (NoAnswer, UserError):
        return samples  # nothing else can be inserted
    parts = [part for parts in others for part in parts]
    random.Random(0).shuffle(parts)
    for part in parts:
        if len(samples) >= _MOST_FEATURES:
            break
        samples.setdefault(_name(part), part)
    return samples
