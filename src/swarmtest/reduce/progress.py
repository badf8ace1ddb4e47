"""At the end of a campaign its faults are reduced, in sight of who waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from swarmtest.campaign.reduced_faults import FaultReductions, ReductionTime
from swarmtest.reduce.fault_reductions import reduce_faults
from swarmtest.store.interface import Store
from swarmtest.subjects.subject import Subject
from swarmtest.ui.terminal.progress import ProgressView

if TYPE_CHECKING:
    pass


def make_small(
    subject: Subject,
    store: Store,
    campaign: int,
    allowed: ReductionTime,
    view: ProgressView,
    faults: Iterable[str] | None = None,
) -> FaultReductions:
    """Reduce the tests of a campaign's faults, and show how it goes."""
    view.end()  # a line that renews itself has a thread, and processes are forked here
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
