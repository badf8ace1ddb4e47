"""What `run` and `resume` print when a campaign is over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from swarmtest.campaign import Campaign, Outcome
from swarmtest.campaign.reduced_faults import FaultReductions, reductions_of
from swarmtest.cli.options import screen_width
from swarmtest.report.outcome import outcome_text
from swarmtest.report.progress import JsonLines, ProgressView
from swarmtest.report.reduced import reduction_data, reduction_notes, unfinished_notes, with_reasons
from swarmtest.report.terminal import command_text, fault_configurations, plural
from swarmtest.store import FaultRecord, ReductionRecord, Store
from swarmtest.store.records import unpack_floats

if TYPE_CHECKING:
    from swarmtest.instrument.tally import Tally

_NAMED = 8
_WIDEST_RACE = 110
_QUICKLY_STUDIED = 200_000
"""Tests that are studied within a second or two."""
_FEWEST_HITS = 4
"""With fewer hits no feature can have a role, whatever its chance (95%, Wilson)."""
_FEW_TESTS = 100
"""Campaigns up to this size are looked through before a study is begun."""


def report_outcome(
    campaign: Campaign,
    store: Store,
    outcome: Outcome,
    view: ProgressView,
    handed: list[str],
    found: FaultReductions | None,
) -> None:
    """Print what came of a campaign.

    `handed`: what became of faults that another tool keeps as well; `found`: of reducing them.
    """
    tally = _tally(campaign, store, outcome)
    notes = reduction_notes(found, store.url) if found else []
    if isinstance(view, JsonLines):
        view.event("end", _end(store, outcome, tally, [*handed, *notes]))
        return
    races = _races(campaign, store, outcome, found)
    if races is not None:
        click.echo(races)
    else:
        _print_outcome(campaign, store, outcome, found)
    if outcome.faults:
        command = command_text(f"roles {outcome.campaign}", outcome.store)
        click.echo(f"  why, with intervals: {command}")
    for line in handed:
        click.echo(f"  {line}")
    for note in unfinished_notes(found, store.url) if found else ():
        click.echo(f"\nnote: {note}")
    if tally is not None and (campaign.coverage is not None or tally.catalogue.targets):
        from swarmtest.report.coverage import coverage_lines

        command = command_text(f"coverage {outcome.campaign}", outcome.store)
        click.echo("\n" + "\n".join(coverage_lines(tally, command)))
    if outcome.interrupted:
        words = f"resume {outcome.campaign}{campaign.engine.words}"
        command = command_text(words, outcome.store)
        click.echo(f"\neverything so far is kept; go on with: {command}")


def _tally(campaign: Campaign, store: Store, outcome: Outcome) -> Tally | None:
    """Return what the tests reached; None if nothing was watched."""
    if campaign.coverage is None and not store.sources(outcome.campaign):
        return None  # native code is watched without an option, and has sources
    from swarmtest.report.coverage import campaign_tally

    return campaign_tally(store, outcome.campaign)


def _print_outcome(
    campaign: Campaign, store: Store, outcome: Outcome, found: FaultReductions | None
) -> None:
    for note in [*outcome.notes, *_never_seen(campaign, outcome)]:
        click.echo(f"note: {note}")
    configurations = fault_configurations(store, outcome.campaign, outcome.faults)
    reductions = reductions_of(store, outcome.campaign)
    why = with_reasons(_why(store, outcome), found)
    click.echo(outcome_text(outcome, campaign.subject, configurations, why, reductions))


def _races(
    campaign: Campaign, store: Store, outcome: Outcome, found: FaultReductions | None
) -> str | None:
    """Return the races that a program with threads showed, as text; None for other subjects."""
    if campaign.subject.part != "switch":
        return None  # and what is about threads need not be imported
    from swarmtest.report.races import races_text
    from swarmtest.subjects.threads.subject import ThreadsSubject

    if not isinstance(campaign.subject, ThreadsSubject):
        return None
    why_not = found.why if found else {}
    return races_text(store, outcome, campaign.subject, why_not, race_width())


def race_width() -> int:
    """How wide a timeline may be."""
    return min(screen_width() or _WIDEST_RACE, _WIDEST_RACE)


def _end(store: Store, outcome: Outcome, tally: Tally | None, notes: list[str]) -> dict[str, Any]:
    """The last event, for programs."""
    small = reductions_of(store, outcome.campaign)
    return {
        "campaign": outcome.campaign,
        "reason": outcome.reason,
        "progress": vars(outcome.progress),
        "faults": [_fault(fault, small.get(fault.id)) for fault in outcome.faults],
        "unused": outcome.unused,
        "notes": [*outcome.notes, *notes],
        "coverage": tally.shares() if tally else {},
        "coverage_missing": dict(tally.missing) if tally else {},
    }


def _fault(fault: FaultRecord, small: ReductionRecord | None) -> dict[str, Any]:
    test = json.loads(fault.test) if fault.test else None
    return fault._asdict() | {"test": test, "reduced": reduction_data(small) if small else None}


def _never_seen(campaign: Campaign, outcome: Outcome) -> list[str]:
    """Of generators, features that never appeared are worth a note; they may just be rare."""
    if not outcome.unused or campaign.subject.part == "step":
        return []
    names = list(outcome.unused)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return [f"allowed, but in no test: {', '.join(names[:_NAMED])}{more}"]


def _why(store: Store, outcome: Outcome) -> dict[str, list[str]]:
    """Triggers and suppressors in short, unless a long campaign would make its user wait."""
    if not outcome.faults or outcome.progress.tests > _QUICKLY_STUDIED:
        return {}
    if outcome.progress.tests <= _FEW_TESTS and _is_too_little(store, outcome):
        return {fault.id: [_too_few(fault)] for fault in outcome.faults}
    from swarmtest.report.roles import study_or_none, why_in_short

    return why_in_short(study_or_none(store, outcome.campaign))


def _is_too_little(store: Store, outcome: Outcome) -> bool:
    """Return whether no fault can have triggers yet, though features were left to chance."""
    return all(fault.count < _FEWEST_HITS for fault in outcome.faults) and any(
        0 < chance < 1
        for trial in store.trials(outcome.campaign)
        for chance in unpack_floats(trial.propensities)
    )


def _too_few(fault: FaultRecord) -> str:
    more = plural(_FEWEST_HITS - fault.count, "more hit")
    return f"triggers unknown: insufficient data, at least {more} needed"
