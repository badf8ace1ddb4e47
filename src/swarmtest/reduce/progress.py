"""Reduce a campaign's faults when it ends, and show progress."""

from __future__ import annotations

from collections.abc import Iterable

from swarmtest.campaign.reduced_faults import FaultReductions, ReductionTime
from swarmtest.reduce.fault_reductions import reduce_faults
from swarmtest.store.interface import Store
from swarmtest.subjects.subject import Subject
from swarmtest.ui.terminal.progress import ProgressView


def make_small(
    subject: Subject,
    store: Store,
    campaign: int,
    allowed: ReductionTime,
    view: ProgressView,
    faults: Iterable[str] | None = None,
) -> FaultReductions:
    """Reduce the tests of a campaign's faults and show progress in `view`."""
    view.end()  # a live progress line has a thread, and forking with threads is unsafe
    try:
        return reduce_faults(
            subject,
            store,
            campaign,
            allowed,
            faults=faults,
            on_run=lambda progress: view.reducing(progress, subject.part),
            on_fault=view.reduced,
        )
    finally:
        view.end()
