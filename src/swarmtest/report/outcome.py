"""What a person wants to know when a campaign ends, as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from swarmtest.campaign.campaign import Outcome
from swarmtest.report.reduced import as_shown, reduction_line, replay_words
from swarmtest.report.terminal import command_text, fault_lines, plural
from swarmtest.store import ReductionRecord
from swarmtest.subjects.subject import Subject


def outcome_text(
    outcome: Outcome,
    subject: Subject,
    configurations: Mapping[str, str],
    why: Mapping[str, Sequence[str]],
    reductions: Mapping[str, ReductionRecord],
) -> str:
    """Totals, and each fault by the smallest test there is; `why`: lines about its roles."""
    progress = outcome.progress
    rate = progress.tests / progress.wall_seconds if progress.wall_seconds else 0.0
    lines = [
        f"campaign {outcome.campaign}: {outcome.reason}: {progress.tests:,} tests, "
        f"{plural(progress.steps, subject.part)} in {progress.wall_seconds:.1f} s "
        f"({rate:,.0f} tests/s), "
        f"{plural(len(outcome.faults), 'distinct fault')}"
    ]
    for fault in outcome.faults:
        reduction = reductions.get(fault.id)
        lines += [
            "",
            *fault_lines(
                as_shown(fault, reduction),
                subject,
                configurations.get(fault.id, ""),
                command_text(replay_words(outcome.campaign, fault, reduction), outcome.store),
                why.get(fault.id, ()),
                reduction_line(fault, reduction, outcome.campaign, subject.part),
            ),
        ]
    return "\n".join(lines)
