"""Faults of a page: each with its smallest test, its intervals and how to see it again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.errors import UserError
from swarmtest.core.targets import Target
from swarmtest.race.views import RaceView, race_view
from swarmtest.roles.study import Study
from swarmtest.roles.views import pair_lines, roles_in_short
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord, ReductionRecord
from swarmtest.subjects.loading import SubjectReference
from swarmtest.ui.report.figures import IntervalPlot
from swarmtest.ui.report.reproduce import roles_command
from swarmtest.ui.report.study_figures import interval_plot
from swarmtest.ui.report.tables import Table, amount_table, role_table
from swarmtest.ui.terminal.reduced_tests import as_shown, is_smaller, reduction_line, replay_words
from swarmtest.ui.terminal.tables import command_text, fault_configurations, test_code

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
    reduction: ReductionRecord | None = None
    """The smallest of what is left of its tests, if one was reduced."""
    reduced_in: int = 0
    """The campaign whose test that was."""

    @property
    def count(self) -> int:
        """Tests that show it."""
        return sum(self.counts.values())

    @property
    def place(self) -> str:
        """The name of its shortest test."""
        return f"{self.campaign}#{self.record.trial}"

    @property
    def size(self) -> int:
        """The parts of the smallest test there is."""
        return self.reduction.size if self.reduction and self.is_reduced else self.record.size

    @property
    def is_reduced(self) -> bool:
        """Whether that is what is left of a longer one."""
        return is_smaller(self.reduction, self.record)


@dataclass(frozen=True)
class Code:
    """A test as code, as far as a page shows it."""

    text: str
    left_out: int
    """Lines that are not shown."""


@dataclass(frozen=True)
class FaultView:
    """Everything that a page tells about a fault."""

    known: KnownFault
    short: str
    """Triggers and suppressors in one line."""
    configuration: str
    reduced: str
    """How its test was made small, in a line; empty if it was not."""
    part: str
    """What its tests are made of."""
    code: Code
    original: Code | None
    """The test as it was found, if `code` is what is left of it."""
    details: str
    """What the test printed that is shown."""
    race: RaceView | None
    """Of a program with threads: what they did, in columns."""
    plot: IntervalPlot | None
    roles: Table | None
    amounts: Table
    pairs: tuple[str, ...]
    replay: str
    roles_command: str


def known_faults(store: Store, campaigns: Sequence[int]) -> list[KnownFault]:
    """The faults of several campaigns, the same one once, most frequent first."""
    found: dict[str, list[tuple[int, FaultRecord]]] = {}
    small: dict[str, list[tuple[int, ReductionRecord]]] = {}
    for campaign in campaigns:
        for record in store.faults(campaign):
            found.setdefault(record.id, []).append((campaign, record))
        for id, reduction in reductions_of(store, campaign).items():
            small.setdefault(id, []).append((campaign, reduction))
    known = [_merged(records, small.get(id, ())) for id, records in found.items()]
    return sorted(known, key=lambda fault: (-fault.count, fault.record.id))


def _merged(
    records: Sequence[tuple[int, FaultRecord]], small: Sequence[tuple[int, ReductionRecord]]
) -> KnownFault:
    campaign, best = min(records, key=lambda pair: (pair[1].test is None, pair[1].size))
    first, record = records[0]
    counts = {number: one.count for number, one in records}
    known = KnownFault(best, campaign, counts, (first, record.first_trial))
    if not small:
        return known
    # As `swarmtest replay FAULT` chooses: the smallest, of equally small ones the newest.
    place, least = min(small, key=lambda one: (one[1].test is None, one[1].size, -one[0]))
    return replace(known, reduction=least, reduced_in=place)


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
    varied = study.chances.vary
    targets = {target.name: target for target in study.faults}
    return [
        _view(study, fault, targets[fault.record.id], subject, varied)
        for fault in faults
        if fault.record.id in targets
    ]


def _view(study: Study, fault: KnownFault, target: Target, subject: Any, varied: bool) -> FaultView:
    plot = interval_plot(study, target) if varied else None
    rate = 1 - study.confidence
    record = as_shown(fault.record, fault.reduction)
    code, original = _code(record, subject), _code(fault.record, subject)
    store = study.store
    part = str(store.campaign(fault.campaign).options.get("part", "step"))
    told = fault_configurations(store, fault.campaign, [fault.record])
    pairs = study.pairs(target)
    replayable = bool(store.campaign(fault.campaign).options.get("subject"))
    return FaultView(
        fault,
        roles_in_short(plot.roles, rate) if plot else "",
        told[fault.record.id],
        reduction_line(fault.record, fault.reduction, fault.reduced_in, part),
        part,
        code,
        original if original != code else None,
        record.details,
        race_view(record.test),
        plot,
        role_table(plot, study.effects(target)) if plot else None,
        amount_table(study.amounts(target), rate),
        tuple(pair_lines(pairs)) if pairs else (),
        command_text(replay_words(fault.campaign, fault.record, fault.reduction), store.url)
        if replayable
        else "",
        roles_command(study.evidence.campaigns, str(target), store.url, study.confidence),
    )


def _code(record: FaultRecord, subject: Any) -> Code:
    lines = test_code(record.test, subject).rstrip().splitlines()
    return Code("\n".join(lines[:_CODE_LINES]), max(len(lines) - _CODE_LINES, 0))
