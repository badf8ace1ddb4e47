"""Explain faults of a store, by experiments on their smallest tests.

`explain_fault` finds the smallest test of a fault, explains it, and keeps the explanation in the
store. `explain_faults` does so for the reduced faults of a campaign, as far as time allows. The
experiments themselves are those of `swarmtest.why.failing_test`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from swarmtest.campaign.budget import Limits
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.errors import UserError
from swarmtest.reduce.named_tests import load_subject
from swarmtest.store.fault_groups import names_of_faults
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord
from swarmtest.subjects.subject import Subject
from swarmtest.why.explanation import (
    Explanation,
    explanations_of,
    record_of,
)
from swarmtest.why.failing_test import explain_test
from swarmtest.why.other_tests import (
    cpu_seconds_so_far,
    other_small_tests,
)
from swarmtest.why.variant_runs import VariantBudget

_LEAST_SECONDS = 1.0
_FEWEST_RUNS = 200
"""Runs that have to fit into the time for a fault to be explained at the end of a campaign."""
IN_PASSING = VariantBudget(runs=600, cpu_seconds=2.0)
"""The budget for a fault at the end of a campaign, where nobody asked for an explanation."""


def explain_fault(
    store: Store,
    fault: str,
    *,
    budget: VariantBudget | None = None,
    seed: int = 0,
    timeout: float | None = None,
    subject: Subject | None = None,
    confirming: bool = True,
) -> Explanation:
    """Explain a fault of a store, named by the beginning of its id, and keep the explanation.

    The fault's smallest test is used; it is reduced first if that was not done. `subject` is loaded
    by the name that its campaign recorded, unless it is given.

    >>> from swarmtest import Campaign, Machine, action, open_store
    >>> from swarmtest.subjects import MachineSubject
    >>> class Counter(Machine):
    ...     def start(self): self.n = 0
    ...     @action
    ...     def up(self): self.n += 1; assert self.n < 3
    ...     @action
    ...     def look(self): pass
    ...     @action
    ...     def reset(self): self.n = 0
    >>> subject = MachineSubject(Counter)
    >>> with open_store(":memory:") as store:
    ...     [fault] = Campaign(subject, "coin", 50, workers=0, store=store).run().faults
    ...     explain_fault(store, fault.id, subject=subject).paragraph.partition("; seen")[0]
    'needs 3 × up; never with reset after the 1st up'
    """
    where = find_fault(store, fault)
    record = store.campaign(where.campaign)
    if subject is None:
        subject = load_subject(record)[0]
    subject.fault_names = names_of_faults(store, where.campaign)
    seconds = Limits(timeout or record.options.get("seconds")).seconds_of(subject)
    test, before = _reduced_test(store, where, subject)
    others: list[Any] = []
    begun = cpu_seconds_so_far()
    if confirming and _has_steps(test):
        others = other_small_tests(store, where.campaign, subject, where.fault, seconds)
    spent = cpu_seconds_so_far() - begun
    kind = replace(where.fault.fault, details="")
    explanation = explain_test(
        subject,
        test,
        kind,
        budget=budget,
        seed=seed,
        seconds=seconds,
        confirming=confirming,
        others=others,
    )
    explanation = replace(explanation, cpu_seconds=explanation.cpu_seconds + spent)
    explanation = _with_rate_before(store, where.campaign, explanation, where.fault)
    size = subject.size(test)
    store.add_reduction(
        where.campaign, record_of(explanation, test, where.fault.trial, before, size)
    )
    return explanation


def explain_faults(
    subject: Subject,
    store: Store,
    campaign: int,
    *,
    seconds: float = 10.0,
    budget: VariantBudget | None = None,
    faults: Iterable[str] | None = None,
) -> dict[str, Explanation]:
    """Explain the reduced faults of a campaign, the most frequent first, for so many seconds.

    Those that have an explanation already are left out, and so are those that cannot be explained.
    Return all explanations of the campaign's faults.

    >>> from swarmtest import Campaign, Machine, action, open_store
    >>> from swarmtest.reduce import reduce_faults
    >>> from swarmtest.subjects import MachineSubject
    >>> class Lamp(Machine):
    ...     def start(self): self.on = False
    ...     @action
    ...     def switch(self): self.on = True
    ...     @action
    ...     def look(self): assert not self.on
    >>> subject = MachineSubject(Lamp)
    >>> with open_store(":memory:") as store:
    ...     campaign = Campaign(subject, "coin", 20, workers=0, store=store).run().campaign
    ...     _ = reduce_faults(subject, store, campaign)
    ...     [found] = explain_faults(subject, store, campaign).values()
    >>> found.needed
    {'switch': 1, 'look': 1}
    """
    chosen = None if faults is None else set(faults)
    deadline = time.monotonic() + seconds
    reductions = reductions_of(store, campaign)
    known = explanations_of(store, campaign)
    wanted = [
        fault
        for fault in sorted(store.faults(campaign), key=lambda f: (-f.count, f.first_trial))
        if (chosen is None or fault.id in chosen)
        and fault.id not in known
        and (reduction := reductions.get(fault.id)) is not None
        and reduction.test is not None
    ]
    for fault in wanted:
        left = deadline - time.monotonic()
        if left < _LEAST_SECONDS:
            break
        if _FEWEST_RUNS * store.trial(campaign, fault.trial).wall_ns / 1e9 > left:
            continue  # a program that takes so long is explained only if somebody asks for it
        limits = budget or VariantBudget()
        limits = VariantBudget(limits.runs, min(limits.cpu_seconds, left), left)
        try:
            explain_fault(store, fault.id, budget=limits, subject=subject, confirming=False)
        except UserError:
            continue  # flaky, or of a kind that has no editor: nothing is claimed about it
    return explanations_of(store, campaign)


@dataclass(frozen=True)
class FoundFault:
    """A fault of a store, in the campaign that has its smallest test."""

    campaign: int
    fault: FaultRecord
    reduced: str | None
    """Its reduced test as JSON; None if it was not reduced."""


def find_fault(store: Store, start: str) -> FoundFault:
    """Return the only fault of a store whose id begins with `start`."""
    found: dict[str, tuple[tuple[int, int, int], FoundFault]] = {}
    for record in store.campaigns():
        reductions = reductions_of(store, record.id)
        for fault in store.faults(record.id):
            if not fault.id.startswith(start) or fault.test is None:
                continue
            reduction = reductions.get(fault.id)
            reduced = reduction.test if reduction is not None else None
            size = reduction.size if reduction is not None and reduced else fault.size
            rank = size, reduced is None, -record.id
            if fault.id not in found or rank < found[fault.id][0]:
                found[fault.id] = rank, FoundFault(record.id, fault, reduced)
    if len(found) == 1:
        return next(iter(found.values()))[1]
    if found:
        raise UserError(f"{start} may be {', '.join(sorted(found))}: say which")
    raise UserError(f"{store.url} has no test of a fault {start}: `swarmtest faults` lists them")


def _reduced_test(store: Store, where: FoundFault, subject: Subject) -> tuple[Any, int]:
    """Return the reduced test of a fault, and the size of the original; reduce it if need be."""
    original = json.loads(str(where.fault.test))
    if where.reduced is not None:
        return json.loads(where.reduced), subject.size(original)
    from swarmtest.reduce.fault_reductions import reduce_faults

    outcome = reduce_faults(subject, store, where.campaign, faults=[where.fault.id])
    reduction = outcome.reductions.get(where.fault.id)
    if reduction is None or reduction.test is None:
        why = outcome.why.get(where.fault.id, "it did not show again")
        raise UserError(f"fault {where.fault.id} could not be reduced: {why}")
    return json.loads(reduction.test), subject.size(original)


def _has_steps(test: Any) -> bool:
    """Return whether a test is a list of steps, not a derivation and not a schedule."""
    return not isinstance(test, dict) or not {"tree", "schedule"} & test.keys()


def _with_rate_before(
    store: Store, campaign: int, explanation: Explanation, fault: FaultRecord
) -> Explanation:
    """Return the explanation with the hits of the campaign that found the fault."""
    if explanation.confirmation is None:
        return explanation
    tests = store.summary(campaign)["trials"]
    confirmation = replace(explanation.confirmation, before_hits=fault.count, before_tests=tests)
    return replace(explanation, confirmation=confirmation)
