"""Races as text for the terminal, and as data for the HTML report.

A fault is shown with its timeline, whether it can happen on this interpreter, and the commands to
run next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swarmtest.analysis.intervals import beta_cdf
from swarmtest.campaign.campaign import Outcome
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.formatting import format_percent, plural
from swarmtest.race.explanation import BoundedSearch, Explored
from swarmtest.race.race_test import FORMAT, NO_SCHEDULE, RaceTest
from swarmtest.race.subject import ThreadsSubject
from swarmtest.race.timeline import Explanation, TimelineRow, timeline_text
from swarmtest.roles.views import study_or_none, why_in_short
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord, ReductionRecord
from swarmtest.ui.terminal.reduced_tests import replay_words
from swarmtest.ui.terminal.tables import command_text
from swarmtest.ui.terminal.text import kind_and_signature, one_line

_CONFIDENCE = 0.95


def races_text(
    store: Store,
    outcome: Outcome,
    subject: ThreadsSubject,
    why_not: Mapping[str, str],
    width: int,
) -> str:
    """Return the outcome of a search for races; `why_not` says why faults are unexplained."""
    progress = outcome.progress
    rate = progress.tests / progress.wall_seconds if progress.wall_seconds else 0.0
    lines = [
        *(f"note: {note}" for note in (*subject.notes, *outcome.notes)),
        f"campaign {outcome.campaign}: {outcome.reason}: {plural(progress.tests, 'run')} in "
        f"{progress.wall_seconds:.1f} s ({rate:,.0f} runs/s), "
        f"{plural(len(outcome.faults), 'distinct fault')}",
    ]
    if progress.invalid:
        lines.append(
            f"{plural(progress.invalid, 'run')} said nothing about the program: "
            f"{_invalid_reason(store, outcome)}"
        )
    reductions = reductions_of(store, outcome.campaign)
    roles = why_in_short(study_or_none(store, outcome.campaign)) if outcome.faults else {}
    for fault in outcome.faults:
        fault_lines = [
            *_fault_heading(fault, progress.tests),
            *(f"  {line}" for line in roles.get(fault.id, ())),
        ]
        reason = why_not.get(fault.id, "")
        fault_lines += _explanation_of_fault(fault, reductions.get(fault.id), reason, width)
        lines += [
            "",
            *fault_lines,
            *_next_commands(fault, reductions.get(fault.id), outcome, subject),
        ]
    return "\n".join(lines)


def _invalid_reason(store: Store, outcome: Outcome) -> str:
    trials = store.trials(outcome.campaign, verdict=2)
    return next((trial.missing for trial in trials), "")


def _fault_heading(fault: FaultRecord, tests: int) -> list[str]:
    return [
        f"fault {fault.id}  {kind_and_signature(fault.kind, fault.signature)}",
        f"  shown by {fault.count:,} of {plural(tests, 'run')}, first by run {fault.first_trial}",
    ]


def _explanation_of_fault(
    fault: FaultRecord, small: ReductionRecord | None, why_not: str, width: int
) -> list[str]:
    if small is None or small.test is None:
        reason = why_not or (
            "it did not show again" if small else "there was no time to explain it"
        )
        return [f"  not explained: {one_line(reason)}"]
    test = RaceTest.from_json(json.loads(small.test))
    if test.explanation is None:
        return [f"  not explained: {one_line(why_not or 'its schedule could not be minimised')}"]
    return explanation_lines(test.explanation, width, small.before)


def explanation_lines(explanation: Explanation, width: int, before: int | None = None) -> list[str]:
    """Return the truth, the switches and the timeline of a race."""
    shown, replays = explanation.replays
    switches = _switches_text(len(explanation.switches), before)
    return [
        f"  {explanation.truth}",
        f"  replayed: {shown} of {replays} times; {switches}",
        *(f"    {switch}" for switch in explanation.switches),
        *(f"  note: {note}" for note in explanation.notes),
        "",
        *(f"  {line}".rstrip() for line in timeline_text(explanation, width - 2).splitlines()),
        "",
    ]


def _switches_text(count: int, before: int | None) -> str:
    if not count:
        return "it fails without any switch: it needs no special order of threads or tasks"
    original = f" of {before}" if before is not None and count != before < NO_SCHEDULE else ""
    return f"{plural(count, 'switch')}{original} {'is' if count == 1 else 'are'} enough:"


def _next_commands(
    fault: FaultRecord, small: ReductionRecord | None, outcome: Outcome, subject: ThreadsSubject
) -> list[str]:
    replay = command_text(replay_words(outcome.campaign, fault, small), outcome.store)
    after = command_text(f"{subject.name} --after {fault.id}", outcome.store)
    if small is None or small.test is None:
        return [f"  replay: {replay}"]
    return [f"  replay: {replay}", f"  after a fix: {after}"]


def after_text(explored: Explored, width: int) -> str:
    """Return whether a fix holds, with a bound on failures and what the bound applies to."""
    lines = [f"note: {note}" for note in explored.notes]
    old = explored.old_fails
    lines.append(
        f"{explored.program}: the old schedule still fails: {old}"
        if old
        else f"{explored.program}: the old schedule passes"
    )
    lines.append(
        f"{explored.failures:,} of {plural(explored.runs, 'schedule')} near it fail "
        f"({explored.seconds:.1f} s)"
    )
    if explored.runs:
        lines += _bound_lines(explored)
    if explored.explanation is not None:
        lines += [
            "",
            explored.explanation.signature,
            *explanation_lines(explored.explanation, width),
        ]
    return "\n".join(lines)


def search_text(search: BoundedSearch, width: int) -> str:
    """Return what a systematic search has found, and how far it came."""
    ran = f"{plural(search.runs, 'schedule')} ({search.seconds:.1f} s)"
    lines = [f"note: a schedule did not come to its end: {line}" for line in search.problems[:1]]
    if search.failed is not None:
        lines.append(
            f"{search.program}: fails with {plural(search.failed, 'preemption')}, the last of {ran}"
        )
    elif search.complete == search.wanted and not search.problems:
        lines.append(
            f"{search.program}: no failure with at most {plural(search.wanted, 'preemption')}: "
            f"all {ran}"
        )
    else:
        lines.append(f"{search.program}: no failure in {ran}: {_complete_text(search)}")
    if search.failed is None:
        lines.append(
            "(threads are preempted wherever there are probes and at synchronisation; it says "
            "nothing about other inputs)"
        )
    elif search.complete >= 0:
        lines.append(f"(none with at most {plural(search.complete, 'preemption')} fails)")
    if search.explanation is not None:
        lines += ["", search.explanation.signature, *explanation_lines(search.explanation, width)]
    return "\n".join(lines)


def _complete_text(search: BoundedSearch) -> str:
    if search.complete < 0 or search.problems:
        return "not even those without preemptions were all run to their ends"
    left = search.complete + 1
    return (
        f"all with at most {plural(search.complete, 'preemption')}, but not all with {left}: "
        "--time and --tests allow more"
    )


def after_data(explored: Explored) -> dict[str, Any]:
    """Return the data of `after_text` for other programs."""
    data = asdict(explored)
    return data | {
        "fails_at_most": most_likely_failing(explored.failures, explored.runs)
        if explored.runs
        else None,
        "confidence": _CONFIDENCE,
    }


def _bound_lines(explored: Explored) -> Sequence[str]:
    upper = most_likely_failing(explored.failures, explored.runs)
    return [
        f"with {format_percent(_CONFIDENCE, 0)} confidence, at most {format_percent(upper)} "
        "of the schedules near the old one fail",
        "(for schedules drawn like these; it says nothing about schedules far from it, other "
        "inputs, or how often a machine makes such a schedule)",
    ]


def most_likely_failing(failures: int, runs: int, confidence: float = _CONFIDENCE) -> float:
    """Return the upper end of a one-sided Clopper-Pearson interval.

    Without failures it agrees with the rule of three.

    >>> round(most_likely_failing(0, 1000), 5)
    0.00299
    >>> round(most_likely_failing(2, 10), 3)
    0.507
    """
    if failures >= runs:
        return 1.0
    low, high = failures / runs, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if float(beta_cdf(middle, failures + 1, runs - failures)) < confidence:
            low = middle
        else:
            high = middle
    return high


# The timeline in the HTML report.


@dataclass(frozen=True)
class RaceRow:
    """A row of the timeline: the cell of one thread, or of all threads where rows are omitted."""

    column: int
    """The column, counted from 0; -1 stands for all of them."""
    place: str
    row: TimelineRow


@dataclass(frozen=True)
class RaceView:
    """What a page shows about a race."""

    explanation: Explanation
    threads: tuple[str, ...]
    rows: tuple[RaceRow, ...]


def race_view(test: str | None) -> RaceView | None:
    """Return the timeline that a saved test contains, or None if it contains none."""
    data = json.loads(test) if test else None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return None
    explanation = RaceTest.from_json(data).explanation
    if explanation is None:
        return None
    names = {row.thread for row in explanation.rows if row.thread}
    interleaved = explanation.threads
    threads = (*interleaved, *sorted(names - set(interleaved)))
    rows = tuple(
        RaceRow(threads.index(row.thread) if row.thread else -1, _location(row), row)
        for row in explanation.rows
    )
    return RaceView(explanation, threads, rows)


def _location(row: TimelineRow) -> str:
    return f"{row.path}:{row.line}" if row.line else ""
