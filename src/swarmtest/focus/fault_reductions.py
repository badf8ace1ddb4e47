"""Reduce the faults of a focused campaign when it ends, and show progress."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from swarmtest.campaign.reduced_faults import ReductionTime
from swarmtest.reduce.fault_reductions import reduce_and_show
from swarmtest.store.interface import Store
from swarmtest.subjects.subject import Subject
from swarmtest.ui.terminal.progress import ProgressView
from swarmtest.ui.terminal.reduced_tests import reduction_notes
from swarmtest.ui.terminal.tables import test_code

if TYPE_CHECKING:
    from swarmtest.focus.outcome import FocusOutcome


def reduce_focused_faults(
    outcome: FocusOutcome,
    campaigns: Sequence[int],
    subject: Subject,
    store: Store,
    allowed: ReductionTime,
    view: ProgressView,
) -> FocusOutcome:
    """Reduce the faults of a focused campaign; notes in the outcome name those not reduced.

    `campaigns` are the campaigns of the focus; a fault that several of them show is reduced in the
    first one. The reductions share the time that is `allowed` in total.
    """
    faults = {fault.record.id: fault for fault in outcome.faults}
    pending, notes, started = set(faults), list(outcome.notes), time.monotonic()
    for campaign in campaigns:
        ids = {fault.id for fault in store.faults(campaign)} & pending
        if not ids:
            continue
        rest = allowed
        if allowed.total is not None:
            spent = time.monotonic() - started
            rest = replace(allowed, total=max(allowed.total - spent, 0.0))
        result = reduce_and_show(subject, store, campaign, rest, view, ids)
        pending -= ids
        for id in ids & result.reductions.keys():
            reduction = result.reductions[id]
            code = test_code(reduction.test, subject)
            faults[id] = replace(
                faults[id], reduced=reduction, reduced_in=campaign, part=subject.part, code=code
            )
        notes += reduction_notes(result, store.url)
        if result.interrupted:
            break
    return replace(outcome, faults=tuple(faults.values()), notes=tuple(notes))
