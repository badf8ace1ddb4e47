"""Reduce the faults of a focused campaign when it ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from swarmtest.campaign.reduced_faults import ReductionTime
from swarmtest.store.interface import Store
from swarmtest.subjects.subject import Subject
from swarmtest.ui.terminal.progress import ProgressView
from swarmtest.ui.terminal.reduced_tests import reduction_notes
from swarmtest.ui.terminal.tables import test_code

if TYPE_CHECKING:
    from swarmtest.focus.outcome import FocusOutcome


from swarmtest.reduce.progress import make_small


def focus_made_small(
    outcome: FocusOutcome,
    campaigns: Sequence[int],
    subject: Subject,
    store: Store,
    allowed: ReductionTime,
    view: ProgressView,
) -> FocusOutcome:
    """The outcome of a focus and its campaigns with its faults reduced; notes tell which are not.

    A fault that several of the campaigns show is reduced in the first that does.
    """
    faults = {fault.record.id: fault for fault in outcome.faults}
    left, notes, begun = set(faults), list(outcome.notes), time.monotonic()
    for campaign in campaigns:
        ours = {fault.id for fault in store.faults(campaign)} & left
        if not ours:
            continue
        rest = allowed
        if allowed.total is not None:
            spent = time.monotonic() - begun
            rest = replace(allowed, total=max(allowed.total - spent, 0.0))
        found = make_small(subject, store, campaign, rest, view, ours)
        left -= ours
        for id in ours & found.reductions.keys():
            small = found.reductions[id]
            code = test_code(small.test, subject)
            faults[id] = replace(
                faults[id], reduced=small, reduced_in=campaign, part=subject.part, code=code
            )
        notes += reduction_notes(found, store.url)
        if found.interrupted:
            break
    return replace(outcome, faults=tuple(faults.values()), notes=tuple(notes))
