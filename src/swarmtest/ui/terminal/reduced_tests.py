"""Reduced tests of faults, in words.

The recorded test keeps its name, ``CAMPAIGN#TRIAL``; its reduction goes by the id of the fault.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from swarmtest.campaign.reduced_faults import FaultReductionProgress, FaultReductions
from swarmtest.core.formatting import plural, typed_word
from swarmtest.store.records import FaultRecord, ReductionRecord
from swarmtest.ui.terminal.tables import command_text
from swarmtest.ui.terminal.text import one_line


def is_smaller(reduction: ReductionRecord | None, fault: FaultRecord) -> bool:
    """Return whether the reduced test of a fault is the one to show.

    A campaign that was resumed after a reduction may have found a test that is shorter still.

    >>> fault = FaultRecord("4ee18053", "exit", "boom", "", 0, trial=21, size=2, test="[2]")
    >>> is_smaller(ReductionRecord("4ee18053", trial=17, before=31, size=3, test="[3]"), fault)
    False
    """
    if reduction is None or reduction.test is None:
        return False
    return reduction.trial == fault.trial or reduction.size <= fault.size


def as_shown(fault: FaultRecord, reduction: ReductionRecord | None) -> FaultRecord:
    """Return the fault with the test to show: the reduced one, if that is smaller."""
    if reduction is None or not is_smaller(reduction, fault):
        return fault
    return fault._replace(
        test=reduction.test, details=reduction.details or fault.details, code=reduction.code
    )


def replay_words(campaign: int, fault: FaultRecord, reduction: ReductionRecord | None) -> str:
    """Return what to type after ``swarmtest`` to replay the test that is shown."""
    is_reduced = is_smaller(reduction, fault)
    return f"replay {typed_word(fault.id if is_reduced else f'{campaign}#{fault.trial}')}"


def reduction_line(
    fault: FaultRecord, reduction: ReductionRecord | None, campaign: int, part: str
) -> str:
    """Return a line about the reduction of a fault's test; empty if it was not tried.

    >>> fault = FaultRecord("4ee18053", "exit", "boom", "", 0, 17, 31, "[31]")
    >>> small = ReductionRecord("4ee18053", 17, 31, 3, "[3]", runs=42, complete=True)
    >>> reduction_line(fault, small, 5, "step")
    'reduced: from 31 steps (5#17) to 3, in 42 runs; nothing more can go'
    """
    if reduction is None:
        return ""
    runs = plural(reduction.runs, "run")
    if reduction.test is None:
        return f"the fault did not show again in {runs}: flaky?"
    if not is_smaller(reduction, fault):
        return f"not reduced yet: shorter than the reduced test {campaign}#{reduction.trial}"
    before, name = plural(reduction.before, part), f"{campaign}#{reduction.trial}"
    end = "nothing more can go" if reduction.complete else "more may go"
    if reduction.size < reduction.before:
        return f"reduced: from {before} ({name}) to {reduction.size:,}, in {runs}; {end}"
    if fault.test is not None and json.loads(reduction.test) != json.loads(fault.test):
        return f"reduced: {before} as in {name}, but simpler, in {runs}; {end}"
    if reduction.complete:
        return f"the test has {before} and cannot be shortened ({runs})"
    return f"as found; {end}"


def reduction_notes(outcome: FaultReductions, store: str) -> list[str]:
    """Return what was not reduced, and why, for output that does not say it beside the faults."""
    reasons = [f"fault {id} was not reduced: {one_line(why)}" for id, why in outcome.why.items()]
    return [*reasons, *unfinished_notes(outcome, store)]


def unfinished_notes(outcome: FaultReductions, store: str) -> list[str]:
    """Return a line about faults that were not fully reduced, and what to do; none if all were.

    >>> unfinished_notes(FaultReductions(7, {}, untried=("4ee18053",)), ".swarmtest/swarmtest.db")
    ['1 fault was not reduced: the time was up; `swarmtest resume 7 --reduce-time 5m` goes on']
    """
    unfinished = sum(
        1 for reduction in outcome.reductions.values() if reduction.test and not reduction.complete
    )
    count = len(outcome.untried) or unfinished
    if not count:
        return []
    state = "not reduced" if outcome.untried else "not reduced as far as it goes"
    what = f"{plural(count, 'fault')} {'was' if count == 1 else 'were'} {state}"
    why, more = "the time was up", " --reduce-time 5m"
    if outcome.interrupted:
        why, more = "interrupted", ""
    command = command_text(f"resume {outcome.campaign}{more}", store)
    return [f"{what}: {why}; `{command}` goes on"]


def reducing_line(progress: FaultReductionProgress, part: str) -> str:
    """Return a line about the progress of reduction.

    >>> reducing_line(FaultReductionProgress("4ee18053", 2, 5, runs=40, size=12), "step")
    'reducing fault 2 of 5: 40 runs, 12 steps left'
    """
    runs, size = plural(progress.runs, "run"), plural(progress.size, part)
    return f"reducing fault {progress.number} of {progress.faults}: {runs}, {size} left"


def reduction_data(reduction: ReductionRecord) -> dict[str, Any]:
    """Return a reduction as data for programs."""
    test = json.loads(reduction.test) if reduction.test is not None else None
    return reduction._asdict() | {"test": test}


def with_reasons(
    why: Mapping[str, Sequence[str]], outcome: FaultReductions | None
) -> dict[str, list[str]]:
    """Return the lines about each fault, with the reason if it could not be reduced."""
    lines_by_fault = {fault: list(lines) for fault, lines in why.items()}
    for fault, reason in (outcome.why if outcome else {}).items():
        lines_by_fault.setdefault(fault, []).append(f"not reduced: {one_line(reason)}")
    return lines_by_fault
