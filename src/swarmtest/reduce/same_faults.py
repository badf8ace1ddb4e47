"""Decide after reduction which recorded faults are one.

While tests run, a failure is identified by what it shows (`swarmtest.core.faults`). One bug may
show in several ways. Small tests tell more; three rules are sure enough to be applied unasked:

- Two faults showed at the same place, and their small tests do the same steps: only the messages
  differ.
- Both violate an invariant after the same operation, and the small test of one, without one of its
  steps, shows the other. So it contains all that the other needs, and the additional step only
  changes which of two invariants is found to be violated first.

- Both failed the same check of the harness, and one operation calls the other: see
  `swarmtest.reduce.contained_operations`.

Rules that go further also merge bugs that are different: if the second rule is applied to all
faults, a bug of `benchmarks/identity.py` is hidden behind another one of the same operation. The
recorded faults stay in the store, and ``swarmtest faults --split`` takes a decision back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.campaign.reduced_faults import SAME_FAULT
from swarmtest.core.result import Fault
from swarmtest.core.signatures import SignatureParts
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.reduce.contained_operations import (
    functions_of_last_step,
    shows_in_its_state,
    steps_of,
)
from swarmtest.store.fault_groups import RULE, FaultDecision, groups_of
from swarmtest.store.interface import Store
from swarmtest.subjects.subject import Subject

_MOST_PARTS = 20
"""Tests with more parts are not small: they say too little."""
_MOST_RUNS = 400
"""Runs for all faults of a campaign together."""


@dataclass(frozen=True)
class _SmallTest:
    """The reduced test of a recorded fault."""

    id: str
    fault: Fault
    test: Any
    parts: list[Any]

    @property
    def steps(self) -> tuple[str, ...]:
        """What its steps do, without their arguments."""
        return tuple(map(step_name, self.parts))


def merge_same_faults(
    subject: Subject, store: Store, campaign: int, *, seconds: float, deadline: float
) -> list[FaultDecision]:
    """Store which faults of a campaign are one, as far as small tests tell; return what is new.

    `seconds` is the limit of one run, `deadline` that of all, as `time.monotonic` counts.
    """
    small = _small_tests(subject, store, campaign)
    known: dict[Fault | None, _SmallTest] = {each.fault: each for each in small}
    decisions = list(_alike(small))
    decided = {decision.fault for decision in decisions}
    runs = 0
    for each in small:
        if each.id in decided or each.fault.kind != "invariant":
            continue
        for position, variant in _shorter_variants(subject, each):
            if runs >= _MOST_RUNS or time.monotonic() + seconds > deadline:
                break
            runs += 1
            other = known.get(_shown(subject, variant, seconds))
            if other is not None and other.id != each.id and _same_end(each, other):
                why = f"without step {position + 1} of its small test, that one shows {other.id}"
                decisions.append(FaultDecision(each.id, other.id, RULE, why, time.time()))
                break
    decided = {decision.fault for decision in decisions}
    single = [each for each in small if each.id not in decided]
    decisions += _by_contained_operations(subject, single, seconds, deadline)
    return _store_new(store, decisions)


def _shown(subject: Subject, test: Any, seconds: float) -> Fault | None:
    return run_isolated(lambda: subject.replay(test), seconds, quiet=True).fault


def _same_end(one: _SmallTest, other: _SmallTest) -> bool:
    """Return whether both violate an invariant after the same operation."""
    return one.fault.kind == other.fault.kind == "invariant" and one.steps[-1] == other.steps[-1]


def _small_tests(subject: Subject, store: Store, campaign: int) -> list[_SmallTest]:
    """Return the small tests of a campaign, the smallest first."""
    recorded = store.recorded
    faults = {record.id: record for record in recorded.faults(campaign)}
    small = []
    for reduction in recorded.reductions(campaign):
        record = faults.get(reduction.fault)
        if reduction.criterion != SAME_FAULT or reduction.test is None or record is None:
            continue
        test = json.loads(reduction.test)
        parts = list(subject.parts(test))
        if 0 < len(parts) <= _MOST_PARTS:
            small.append(_SmallTest(record.id, record.fault, test, parts))
    return sorted(small, key=lambda each: (len(each.parts), faults[each.id].first_trial))


def _alike(small: Sequence[_SmallTest]) -> Iterator[FaultDecision]:
    """Yield the faults that showed at the same place as one before, with the same steps."""
    first: dict[tuple[Any, ...], str] = {}
    for each in small:
        place = SignatureParts.of(each.fault.signature).place
        key = (each.fault.kind, place, each.steps)
        same_as = first.setdefault(key, each.id)
        if same_as != each.id:
            why = "the same place, and small tests with the same steps"
            yield FaultDecision(each.id, same_as, RULE, why, time.time())


def _shorter_variants(subject: Subject, small: _SmallTest) -> Iterator[tuple[int, Any]]:
    """Yield the small test without each of its steps but the last, with the step's position."""
    for position in range(len(small.parts) - 1):
        parts = small.parts[:position] + small.parts[position + 1 :]
        yield position, subject.with_parts(small.test, parts)


def step_name(part: Any) -> str:
    """Return what a part of a test does, without its arguments; a text part is what it says.

    >>> step_name("x = 1"), step_name(["push", [3]])
    ('x = 1', 'push')
    """
    for attribute in ("action", "rule"):
        name = getattr(part, attribute, None)
        if isinstance(name, str):
            return name
    return str(part[0]) if isinstance(part, Sequence) and not isinstance(part, str) else str(part)


def _by_contained_operations(
    subject: Subject, small: Sequence[_SmallTest], seconds: float, deadline: float
) -> Iterator[FaultDecision]:
    """Yield the faults of an operation that are those of another operation, which it calls."""
    alike: dict[tuple[Any, ...], list[_SmallTest]] = {}
    for each in small:
        if (check := _check_of(each.fault)) is not None and isinstance(each.parts[-1], Sequence):
            alike.setdefault(check, []).append(each)
    for faults in alike.values():
        if len(faults) == 1:
            continue
        called: dict[str, frozenset[str]] = {}
        for each in faults:
            if time.monotonic() + seconds > deadline:
                return
            called[each.id] = functions_of_last_step(subject, each.test, each.steps[-1], seconds)
        own: list[_SmallTest] = []
        # The operations that call least come first: others may contain them.
        for outer in sorted(faults, key=lambda each: len(called[each.id])):
            for inner in own:
                if time.monotonic() + seconds > deadline:
                    return
                is_part = called[inner.id] and called[inner.id] <= called[outer.id]
                if is_part and _shows_after(subject, outer, inner, faults, seconds):
                    why = (
                        f"{outer.steps[-1]} calls all that {inner.steps[-1]} calls, and this fails "
                        "in its state as well"
                    )
                    yield FaultDecision(outer.id, inner.id, RULE, why, time.time())
                    break
            else:
                own.append(outer)


def _check_of(fault: Fault) -> tuple[Any, ...] | None:
    """Return which check of a harness failed, whatever the operation; None for other faults."""
    parts = SignatureParts.of(fault.signature)
    if fault.kind != "invariant" and not parts.operation:
        return None
    label = parts.label.partition(" after ")[0]
    return (fault.kind, label, parts.type, parts.message, *parts.functions, parts.statement)


def _shows_after(
    subject: Subject,
    outer: _SmallTest,
    inner: _SmallTest,
    faults: Sequence[_SmallTest],
    seconds: float,
) -> bool:
    """Return whether an operation fails in the state in which another one fails."""
    tests = [inner.parts, *(each.parts for each in faults)]

    def show(parts: list[Any]) -> bool:
        return _shown(subject, subject.with_parts(outer.test, parts), seconds) == inner.fault

    return shows_in_its_state(show, outer.parts[:-1], steps_of(inner.steps[-1], tests, step_name))


def _store_new(store: Store, decisions: Sequence[FaultDecision]) -> list[FaultDecision]:
    """Store the decisions that change something; a circle of them is left out."""
    before: Mapping[tuple[str, str], FaultDecision] = {
        (each.fault, each.decided_by): each for each in store.fault_decisions()
    }
    kept: list[FaultDecision] = []
    for decision in decisions:
        earlier = before.get((decision.fault, decision.decided_by))
        if earlier is not None and earlier.same_as == decision.same_as:
            continue
        if groups_of(kept).get(decision.same_as) == decision.fault:
            continue
        kept.append(decision)
    if kept:
        store.decide_faults(kept)
    return kept
