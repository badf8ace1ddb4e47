"""Faults in a report: each with its smallest test, its roles and the command that replays it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.formatting import plural
from swarmtest.core.targets import Target
from swarmtest.race.views import RaceView, race_view
from swarmtest.roles.study import Study
from swarmtest.roles.views import pair_lines, roles_in_short
from swarmtest.store.fault_groups import effective
from swarmtest.store.fault_lives import FaultLife, fault_lives
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord, ReductionRecord
from swarmtest.subjects.stored_tests import StoredTests
from swarmtest.ui.report.figures import IntervalPlot, interval_plot
from swarmtest.ui.report.lifelines import Lifelines, lifelines
from swarmtest.ui.report.reproduce import roles_command
from swarmtest.ui.report.tables import HtmlTable, amount_table, role_table
from swarmtest.ui.terminal.fault_lives import life_lines
from swarmtest.ui.terminal.reduced_tests import as_shown, is_smaller, reduction_line, replay_words
from swarmtest.ui.terminal.shown_code import folded_lines
from swarmtest.ui.terminal.tables import command_text, fault_configurations, test_code
from swarmtest.ui.terminal.text import elided
from swarmtest.why.explanation import Explanation, explanations_of
from swarmtest.why.views import confirmation_line, experiment_lines, test_lines

MOST_FAULTS = 60
"""The most faults shown in detail, so that a report stays readable."""
MOST_LISTED = 200
"""The most faults in a table of a page."""
_MAX_CODE_LINES = 400
_MAX_GROUP_NAME = 100


@dataclass(frozen=True)
class ReportedFault:
    """A fault over several campaigns."""

    record: FaultRecord
    """The fault with its shortest test."""
    campaign: int
    """The campaign of that test."""
    counts: dict[int, int]
    """The number of tests that show the fault, by campaign."""
    first: tuple[int, int]
    """The first campaign that shows the fault, and its first trial that does."""
    reduction: ReductionRecord | None = None
    """The smallest reduction of one of its tests, if one was reduced."""
    reduced_in: int = 0
    """The campaign of the reduced test."""
    explanation: Explanation | None = None
    """What experiments on its reduced test showed, if some were made."""
    life: FaultLife | None = None
    """Its state and history, over all campaigns of its subject."""

    also: tuple[str, ...] = ()
    """The recorded faults that are shown as this one, in words: id, signature, and why."""

    @property
    def life_lines(self) -> list[str]:
        """Its state and history in words."""
        return life_lines(self.life)

    @property
    def also_ids(self) -> list[str]:
        """The ids of the recorded faults that are shown as this one."""
        return [line.partition(":")[0] for line in self.also]

    @property
    def state(self) -> str:
        """Its state: open, fixed, back again or known."""
        return self.life.state if self.life is not None else ""

    @property
    def count(self) -> int:
        """The number of tests that show the fault."""
        return sum(self.counts.values())

    @property
    def test_name(self) -> str:
        """The name of its shortest test."""
        return f"{self.campaign}#{self.record.trial}"

    @property
    def size(self) -> int:
        """The number of parts of its smallest test."""
        return self.reduction.size if self.reduction and self.is_reduced else self.record.size

    @property
    def experiments(self) -> str:
        """The experiments on its reduced test, in lines; empty if there were none."""
        found = self.explanation
        if found is None:
            return ""
        lines = [*test_lines(found), "", *experiment_lines(found)]
        if found.confirmation is not None:
            lines.append(confirmation_line(found))
        return "\n".join([*lines, *found.notes, plural(found.runs, "run")])

    @property
    def is_reduced(self) -> bool:
        """Whether the smallest test is a reduced one."""
        return is_smaller(self.reduction, self.record)


@dataclass(frozen=True)
class FaultGroup:
    """Faults with the same kind of error in the same function."""

    name: str
    faults: tuple[ReportedFault, ...]
    """The most frequent first."""

    @property
    def count(self) -> int:
        """The number of tests that show one of them."""
        return sum(fault.count for fault in self.faults)


def group_name(record: FaultRecord) -> str:
    """Return the kind of error of a fault, and the function that raised it, if it is known.

    >>> signature = "KeyError: 'a' [Shop.buy: del x]"
    >>> group_name(FaultRecord("f6f54754", "exception", signature, "", 0, 0, 1, None))
    'KeyError [Shop.buy]'
    """
    kind = re.split(r":\s| \[", record.signature, maxsplit=1)[0]
    place = re.search(r"\[([^\]\[:]+)(?::[^\[]*)?\]$", record.signature)
    return elided(f"{kind} [{place[1]}]" if place else kind, _MAX_GROUP_NAME)


def fault_groups(faults: Iterable[ReportedFault]) -> list[FaultGroup]:
    """Return faults by the kind of error and its place, the largest group first."""
    groups: dict[str, list[ReportedFault]] = {}
    for fault in faults:
        groups.setdefault(group_name(fault.record), []).append(fault)
    by_size = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        FaultGroup(name, tuple(sorted(each, key=lambda fault: -fault.count)))
        for name, each in by_size
    ]


@dataclass(frozen=True)
class TestCode:
    """A test as code, cut to what a page shows."""

    text: str
    left_out: int
    """The number of lines that are not shown."""


@dataclass(frozen=True)
class FaultView:
    """A fault with everything that a report shows about it."""

    reported: ReportedFault
    short: str
    """Triggers and suppressors in one line."""
    configuration: str
    reduced: str
    """How its test was reduced, in one line; empty if it was not."""
    part: str
    """The name of the parts that its tests consist of."""
    code: TestCode
    original: TestCode | None
    """The test as it was found, if `code` is a reduced one."""
    details: str
    """The output of the test that is shown."""
    race: RaceView | None
    """For a program with threads, what they did, in columns."""
    plot: IntervalPlot | None
    roles: HtmlTable | None
    amounts: HtmlTable
    pairs: tuple[str, ...]
    replay: str
    roles_command: str


def known_faults(store: Store, campaigns: Sequence[int]) -> list[ReportedFault]:
    """Return the distinct faults of several campaigns, the most frequent first."""
    records_by_id: dict[str, list[tuple[int, FaultRecord]]] = {}
    reductions_by_id: dict[str, list[tuple[int, ReductionRecord]]] = {}
    explanations: dict[str, Explanation] = {}
    for campaign in campaigns:
        for record in store.faults(campaign):
            records_by_id.setdefault(record.id, []).append((campaign, record))
        for id, reduction in reductions_of(store, campaign).items():
            reductions_by_id.setdefault(id, []).append((campaign, reduction))
        explanations |= explanations_of(store, campaign)
    subjects = {campaign: store.campaign(campaign).subject for campaign in campaigns}
    lives = {
        (subject, life.fault): life
        for subject in {*subjects.values()}
        for life in fault_lives(store, subject).values()
    }
    members = {
        also for records in records_by_id.values() for _, each in records for also in each.also
    }
    seen_as = _members_in_words(store, campaigns) if members else {}
    faults = [
        replace(
            _merged(records, reductions_by_id.get(id, ())),
            also=tuple(
                seen_as[also]
                for also in sorted({also for _, each in records for also in each.also})
            ),
            explanation=explanations.get(id),
            life=lives.get((subjects[records[-1][0]], id)),
        )
        for id, records in records_by_id.items()
    ]
    return sorted(faults, key=lambda fault: (-fault.count, fault.record.id))


def lifelines_of(faults: Iterable[ReportedFault]) -> Lifelines | None:
    """Return the lives of faults as a figure; None if they were seen in one campaign only."""
    return lifelines(
        (fault.record.signature, fault.life) for fault in faults if fault.life is not None
    )


def _members_in_words(store: Store, campaigns: Sequence[int]) -> dict[str, str]:
    """Return what is said about each recorded fault that is shown as another one."""
    signatures = {
        fault.id: fault.signature
        for campaign in campaigns
        for fault in store.recorded.faults(campaign)
    }
    decisions = effective(store.fault_decisions())
    return {
        id: f"{id}: {signatures.get(id, '')} ({decision.reason})"
        for id, decision in decisions.items()
        if id in signatures
    }


def _merged(
    records: Sequence[tuple[int, FaultRecord]], reductions: Sequence[tuple[int, ReductionRecord]]
) -> ReportedFault:
    campaign, best = min(records, key=lambda pair: (pair[1].test is None, pair[1].size))
    first, record = records[0]
    counts = {number: record.count for number, record in records}
    fault = ReportedFault(best, campaign, counts, (first, record.first_trial))
    if not reductions:
        return fault
    # The same choice as that of `swarmtest replay FAULT`: the smallest, and the newest of equals.
    reduced_in, smallest = min(
        reductions, key=lambda pair: (pair[1].test is None, pair[1].size, -pair[0])
    )
    return replace(fault, reduction=smallest, reduced_in=reduced_in)


def fault_views(study: Study, faults: Iterable[ReportedFault]) -> list[FaultView]:
    """Return the faults with everything that a study knows about them."""
    varied = study.chances.vary
    targets = {target.name: target for target in study.faults}
    return [
        _view(study, fault, targets[fault.record.id], varied)
        for fault in faults
        if fault.record.id in targets
    ]


def _view(study: Study, fault: ReportedFault, target: Target, varied: bool) -> FaultView:
    plot = interval_plot(study, target) if varied else None
    error_rate = 1 - study.confidence
    record = as_shown(fault.record, fault.reduction)
    code, original = _code(record), _code(fault.record)
    store = study.store
    part = str(store.campaign(fault.campaign).options.get("part", "step"))
    configurations = fault_configurations(store, fault.campaign, [fault.record])
    pairs = study.pairs(target)
    is_replayable = bool(store.campaign(fault.campaign).options.get("subject"))
    return FaultView(
        fault,
        roles_in_short(plot.roles, error_rate) if plot else "",
        configurations[fault.record.id],
        reduction_line(fault.record, fault.reduction, fault.reduced_in, part),
        part,
        code,
        original if original != code else None,
        record.details,
        race_view(record.test),
        plot,
        role_table(plot, study.effects(target)) if plot else None,
        amount_table(study.amounts(target), error_rate),
        tuple(pair_lines(pairs)) if pairs else (),
        command_text(replay_words(fault.campaign, fault.record, fault.reduction), store.url)
        if is_replayable
        else "",
        roles_command(study.evidence.campaigns, str(target), store.url, study.confidence),
    )


def _code(record: FaultRecord) -> TestCode:
    lines = folded_lines(record.code or test_code(record.test, StoredTests()))
    return TestCode("\n".join(lines[:_MAX_CODE_LINES]), max(len(lines) - _MAX_CODE_LINES, 0))
