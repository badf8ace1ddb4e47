"""Other failing tests of a fault: does what was found on one test hold for them as well?

Up to ten of them are reduced. A reduced test follows the rule if it has the needed steps, or those
that can stand in for them, in the order that matters, and with the relations between their values.
Tests that do not follow it are counted by their steps: perhaps they show another bug.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.reduce.reduction import reduce_test
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord
from swarmtest.subjects.subject import Subject
from swarmtest.why.editing import EditableTest, editor_of
from swarmtest.why.explanation import Explanation, OtherTests
from swarmtest.why.relations import Rule

_MOST_TESTS = 10
_CPU_SECONDS = 2.0
"""CPU time, with that of child processes, after which no other test is reduced."""
_REDUCTION_SECONDS = 5.0
_MOST_MATCHES = 2000
"""Ways to find the steps of the rule in a test that are tried."""


def other_small_tests(
    store: Store, campaign: int, subject: Subject, fault: FaultRecord, seconds: float
) -> list[Any]:
    """Return reduced tests of other trials of a campaign that showed the fault."""
    begun = cpu_seconds_so_far()
    small: list[Any] = []
    trials = store.trials(campaign, fault=fault.id, limit=_MOST_TESTS + 1)
    for trial in list(trials):
        if trial.trial == fault.trial or len(small) == _MOST_TESTS:
            continue
        if cpu_seconds_so_far() - begun > _CPU_SECONDS:
            break
        configuration = Configuration.from_bytes(subject.space, trial.configuration)
        try:
            test = in_fork(functools.partial(subject.test_of, configuration, trial.seed), seconds)
            reduced = reduce_test(
                subject, test, fault.id, seconds=seconds, budget=_REDUCTION_SECONDS, workers=1
            )
        except (NoAnswer, UserError):
            continue  # it ends its process, or does not fail again
        small.append(reduced.test)
    return small


def cpu_seconds_so_far() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def compare_other_tests(
    explanation: Explanation, rule: Rule | None, subject: Subject, tests: Sequence[Any]
) -> OtherTests:
    """Return how many reduced tests follow the rule of an explanation, and the steps of the rest.

    `rule` has the relations between values that were learnt, if there are any.
    """
    fitting = 0
    others: Counter[str] = Counter()
    for test in tests:
        editor = editor_of(subject, test)
        features = [editor.feature(step) for step in editor.steps]
        matches = list(_matches(explanation, features))
        if any(_relations_hold(match, explanation, rule, editor) for match in matches):
            fitting += 1
        else:
            others[_shape(features) + (" with other values" if matches else "")] += 1
    shapes = tuple(
        f"{shape} ({count} tests)" if count > 1 else shape for shape, count in others.items()
    )
    return OtherTests(fitting, len(tests), shapes)


def _shape(features: Sequence[str]) -> str:
    """Return the steps of a test in a few words.

    >>> _shape(["push", "push", "pop"])
    '“2 × push, pop”'
    """
    runs = [(feature, len(list(steps))) for feature, steps in itertools.groupby(features)]
    texts = [feature if count == 1 else f"{count} × {feature}" for feature, count in runs]
    return f"“{', '.join(texts)}”" if texts else "an empty test"


def _matches(explanation: Explanation, features: Sequence[str]) -> Iterator[dict[int, int]]:
    """Yield ways to find the needed steps in a test: for each step of the rule, one of the test."""
    needed = [at for at, step in enumerate(explanation.steps) if step.is_needed]
    before = {(fact.before, fact.after) for fact in explanation.order}
    tried = 0

    def extend(match: dict[int, int]) -> Iterator[dict[int, int]]:
        nonlocal tried
        if len(match) == len(needed):
            yield dict(match)
            return
        at = needed[len(match)]
        for position, feature in enumerate(features):
            tried += 1
            if tried > _MOST_MATCHES:
                return
            if position in match.values() or feature not in explanation.steps[at].choices:
                continue
            if any((i, at) in before and match[i] > position for i in match):
                continue
            yield from extend({**match, at: position})

    yield from extend({})


def _relations_hold(
    match: Mapping[int, int], explanation: Explanation, rule: Rule | None, editor: EditableTest
) -> bool:
    """Return whether the values of a test have the relations; steps of other features have none."""
    if rule is None:
        return True
    values = []
    for slot in rule.slots:
        position = match.get(slot.step)
        if position is None:
            return True
        if editor.feature(editor.steps[position]) != explanation.steps[slot.step].feature:
            return True
        try:
            values.append(editor.value(editor.steps, replace(slot, step=position)))
        except (LookupError, TypeError, ValueError):
            return False  # a list that is shorter than the one of the rule
    return rule.holds(tuple(values))
