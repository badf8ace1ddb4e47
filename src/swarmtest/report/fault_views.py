"""Faults of a page: each with its shortest test, its intervals and how to see it again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.analysis.study import Study
from swarmtest.errors import UserError
from swarmtest.report.figures import IntervalPlot
from swarmtest.report.page_tables import Table, amount_table, role_table
from swarmtest.report.reproduce import roles_command
from swarmtest.report.roles import pair_lines, roles_in_short
from swarmtest.report.study_figures import interval_plot
from swarmtest.report.terminal import command_text, fault_configurations, test_code
from swarmtest.store import FaultRecord, Store
from swarmtest.subjects.loading import SubjectReference
from swarmtest.targets import Target

MOST_FAULTS = 60
"""More are in the table only: a report is for reading."""
_CODE_LINES = 400


@dataclass(frozen=True)
class KnownFault:
    """One fault over all campaigns."""

    record: FaultRecord
    """With the shortest test of all."""
    campaign: int
    """Where that test is."""
    counts: dict[int, int]
    """Tests that show it, by campaign."""
    first: tuple[int, int]
    """The first campaign that shows it, and its first trial that does."""

    @property
    def count(self) -> int:
        """Tests that show it."""
        return sum(self.counts.values())

    @property
    def place(self) -> str:
        """The name of its shortest test."""
        return f"{self.campaign}#{self.record.trial}"


@dataclass(frozen=True)
class FaultView:
    """Everything that a page tells about a fault."""

    known: KnownFault
    short: str
    """Triggers and suppressors in one line."""
    configuration: str
    code: str
    left_out: int
    """Lines of code that are not shown."""
    plot: IntervalPlot | None
    roles: Table | None
    amounts: Table
    pairs: tuple[str, ...]
    replay: str
    roles_command: str


def known_faults(store: Store, campaigns: Sequence[int]) -> list[KnownFault]:
    """The faults of several campaigns, the same one once, most frequent first."""
    found: dict[str, list[tuple[int, FaultRecord]]] = {}
    for campaign in campaigns:
        for record in store.faults(campaign):
            found.setdefault(record.id, []).append((campaign, record))
    known = [_merged(records) for records in found.values()]
    return sorted(known, key=lambda fault: (-fault.count, fault.record.id))


def _merged(records: Sequence[tuple[int, FaultRecord]]) -> KnownFault:
    campaign, best = min(records, key=lambda pair: (pair[1].test is None, pair[1].size))
    first, record = records[0]
    counts = {number: one.count for number, one in records}
    return KnownFault(best, campaign, counts, (first, record.first_trial))


def load_subject(store: Store, campaign: int) -> tuple[Any, str]:
    """The subject, by which tests become code; or None, and why it cannot be loaded here."""
    reference = store.campaign(campaign).options.get("subject")
    if not reference:
        return None, "the campaign does not say where its subject is"
    try:
        return SubjectReference.from_json(reference).load(), ""
    except UserError as error:
        return None, str(error)


def fault_views(study: Study, faults: Iterable[KnownFault], subject: Any) -> list[FaultView]:
    """The faults with all that a study knows about them."""
    varied = bool(study.chances.informative.any())
    targets = {target.name: target for target in study.faults}
    return [
        _view(study, fault, targets[fault.record.id], subject, varied)
        for fault in faults
        if fault.record.id in targets
    ]


def _view(study: Study, fault: KnownFault, target: Target, subject: Any, varied: bool) -> FaultView:
    plot = interval_plot(study, target) if varied else None
    rate = 1 - study.confidence
    lines = test_code(fault.record.test, subject).rstrip().splitlines()
    store = study.store
    told = fault_configurations(store, fault.campaign, [fault.record])
    pairs = study.pairs(target)
    replayable = bool(store.campaign(fault.campaign).options.get("subject"))
    return FaultView(
        fault,
        roles_in_short(plot.roles, rate) if plot else "",
        told[fault.record.id],
        "\n".join(lines[:_CODE_LINES]),
        max(len(lines) - _CODE_LINES, 0),
        plot,
        role_table(plot, study.effects(target)) if plot else None,
        amount_table(study.amounts(target), rate),
        tuple(pair_lines(pairs)) if pairs else (),
        command_text(f"replay {fault.place}", store.url) if replayable else "",
        roles_command(study.evidence.campaigns, str(target), store.url, study.confidence),
    )
