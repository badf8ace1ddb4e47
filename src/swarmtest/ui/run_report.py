"""What `run` and `resume` print when a campaign ends: totals, faults, races and coverage.

Modules that only some campaigns need (coverage, races, roles) are imported where they are used.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from swarmtest.campaign.campaign import Campaign, Outcome
from swarmtest.campaign.failing_faults import RunLives
from swarmtest.campaign.reduced_faults import FaultReductions, reductions_of
from swarmtest.core.configuration import Configuration
from swarmtest.core.formatting import plural
from swarmtest.core.result import Verdict
from swarmtest.core.space import Space
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord, ReductionRecord, unpack_floats
from swarmtest.subjects.subject import Subject
from swarmtest.ui.options import screen_width
from swarmtest.ui.terminal.fault_lives import life_data, life_lines
from swarmtest.ui.terminal.fault_order import brief_lines, divided
from swarmtest.ui.terminal.progress import JsonLines, ProgressView
from swarmtest.ui.terminal.reduced_tests import (
    as_shown,
    reduction_data,
    reduction_line,
    reduction_notes,
    replay_words,
    unfinished_notes,
    with_reasons,
)
from swarmtest.ui.terminal.tables import (
    command_text,
    fault_configurations,
    fault_lines,
    screen_table,
)
from swarmtest.why.explanation import Explanation, explanations_of
from swarmtest.why.views import explanation_lines

if TYPE_CHECKING:
    from swarmtest.coverage.totals import Tally


# Totals and faults.


def outcome_text(
    outcome: Outcome,
    subject: Subject,
    configurations: Mapping[str, str],
    why: Mapping[str, Sequence[str]],
    reductions: Mapping[str, ReductionRecord],
    lives: RunLives,
) -> str:
    """Return the totals of a campaign, and each fault with its smallest test.

    `why` has lines about the roles of features for each fault.
    """
    progress = outcome.progress
    rate = progress.tests / progress.wall_seconds if progress.wall_seconds else 0.0
    lines = [
        f"campaign {outcome.campaign}: {outcome.reason}: {plural(progress.tests, 'test')}, "
        f"{plural(progress.steps, subject.part)} in {progress.wall_seconds:.1f} s "
        f"({rate:,.0f} tests/s), "
        f"{plural(len(outcome.faults), 'distinct fault')}"
    ]
    faults = divided(outcome.faults)
    for fault in faults.full:
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
                life_lines(lives.after.get(fault.id), lives.before),
                screen_width(),
            ),
        ]
    command = command_text(f"faults {outcome.campaign} --full", outcome.store)
    return "\n".join([*lines, *brief_lines(faults, command)])


# Invalid tests, which the generator could not make.

_MAX_ROWS = 8
_CONFIGURATION_HEAD = ("invalid", "of tests", "configuration")
_FEATURE_HEAD = ("feature", "invalid with", "invalid without")


def invalid_lines(store: Store, campaign: int) -> list[str]:
    """Return the reasons for invalid tests, the worst configurations, and the features involved.

    Return no lines if no test was invalid.
    """
    if not store.summary(campaign)["invalid"]:
        return []
    space = Space.from_json(store.campaign(campaign).space)
    found = _count_invalid(store, campaign, len(space.features))
    configurations = found.configurations
    useless = sum(each.invalid == each.tests for each in configurations)
    lines = [
        f"invalid tests: {found.reasons.total():,}, in "
        f"{plural(len(configurations), 'configuration')}, of which {useless:,} gave no valid test",
        *(f"  {count:,}: {reason}" for reason, count in found.reasons.most_common(_MAX_ROWS)),
    ]
    if found.repeated:
        worst = sorted(configurations, key=lambda c: (-c.invalid / c.tests, -c.tests, c.packed))
        rows = [
            (str(c.invalid), str(c.tests), str(Configuration.from_bytes(space, c.packed)))
            for c in worst[:_MAX_ROWS]
        ]
        lines += ["", *_table(_CONFIGURATION_HEAD, rows, "rr", below=[2])]
    return [*lines, "", *_table(_FEATURE_HEAD, _feature_rows(space, found), " rr")]


def _table(
    head: tuple[str, ...], rows: Sequence[tuple[str, ...]], right: str, below: Sequence[int] = ()
) -> list[str]:
    return screen_table(head, rows, right, screen_width(), below).split("\n")


class _InvalidConfiguration(NamedTuple):
    """A configuration with invalid tests."""

    packed: bytes
    tests: int
    invalid: int


class _InvalidTests(NamedTuple):
    """What is known about the invalid tests of a campaign."""

    reasons: Counter[str]
    configurations: list[_InvalidConfiguration]
    repeated: bool
    """Whether any configuration has several tests."""
    tests: int
    tests_with: list[int]
    invalid_with: list[int]
    """By features: all tests with it, and invalid ones."""


def _count_invalid(store: Store, campaign: int, features: int) -> _InvalidTests:
    import numpy as np  # here, because most campaigns have no invalid test

    from swarmtest.analysis.block_reading import configuration_keys

    reasons: Counter[str] = Counter()
    packed: dict[int, bytes] = {}
    keys, invalid_keys = [], []
    counts = np.zeros((2, features), np.int64)
    for block in store.blocks(campaign, hits=False):
        is_invalid = block.verdicts == Verdict.INVALID
        invalid = np.flatnonzero(is_invalid)
        keys.append(configuration_keys(block))
        invalid_keys.append(keys[-1][invalid])
        reasons.update(block.missing[index] for index in block.missing_index[invalid].tolist())
        for row, words in enumerate((block.enabled, block.enabled & block.packed(is_invalid))):
            counts[row] += np.bitwise_count(words).sum(axis=1, dtype=np.int64)
        new = [at for at, key in enumerate(invalid_keys[-1].tolist()) if key not in packed]
        configurations = block.take(invalid[new]).configurations()
        packed |= dict(zip(invalid_keys[-1][new].tolist(), configurations, strict=True))
    distinct, tests = np.unique(np.concatenate(keys), return_counts=True)
    chosen, times = np.unique(np.concatenate(invalid_keys), return_counts=True)
    of_chosen = tests[np.searchsorted(distinct, chosen)]
    rows = zip(chosen.tolist(), of_chosen.tolist(), times.tolist(), strict=True)
    return _InvalidTests(
        reasons,
        [_InvalidConfiguration(packed[key], *numbers) for key, *numbers in rows],
        bool((tests > 1).any()),
        int(tests.sum()),
        *counts.tolist(),
    )


def _feature_rows(space: Space, found: _InvalidTests) -> list[tuple[str, ...]]:
    """Return the share of invalid tests with and without each feature, largest difference first."""
    shares: list[tuple[float, str, tuple[str, str]]] = []
    all_invalid = found.reasons.total()
    for i, name in enumerate(space.feature_names):
        tests, invalid = found.tests_with[i], found.invalid_with[i]
        parts = (invalid, tests), (all_invalid - invalid, found.tests - tests)
        pair = [part / max(of, 1) for part, of in parts]
        shown = [f"{share:.1%}" if of else "-" for share, (_, of) in zip(pair, parts, strict=True)]
        shares.append((-abs(pair[0] - pair[1]), name, (shown[0], shown[1])))
    return [(name, *shown) for _, name, shown in sorted(shares)[:_MAX_ROWS]]


# The whole report.

_MAX_NAMES = 8
_MAX_RACE_WIDTH = 110
_MIN_HITS = 4
"""With fewer hits no feature can have a role, whatever its base rate (95%, Wilson)."""
_FEW_TESTS = 100
"""Up to this many tests are checked for enough hits before a study, whose import is slow."""


def report_outcome(
    campaign: Campaign,
    store: Store,
    outcome: Outcome,
    view: ProgressView,
    handed: list[str],
    reduced: FaultReductions | None,
    lives: RunLives,
    failing: Sequence[str],
) -> None:
    """Print the result of a campaign.

    `handed` has lines about faults that were also handed to another tool; `reduced` is the result
    of reducing the faults; `failing` are the faults that count for the exit status.
    """
    tally = _tally(campaign, store, outcome)
    notes = reduction_notes(reduced, store.url) if reduced else []
    if isinstance(view, JsonLines):
        ending = _end_event(store, outcome, tally, [*handed, *notes], lives)
        view.event("end", ending | {"failing": list(failing)})
        return
    races = _races(campaign, store, outcome, reduced)
    if races is not None:
        click.echo(races)
        for fault in outcome.faults:
            for line in life_lines(lives.after.get(fault.id), lives.before):
                click.echo(f"  {fault.id}: {line}")
    else:
        _print_outcome(campaign, store, outcome, reduced, lives)
    forgiven = [fault.id for fault in outcome.faults if fault.id not in failing]
    if forgiven:
        count = plural(len(forgiven), "fault")
        click.echo(f"  {count} without effect on the exit status: {', '.join(forgiven)}")
    if outcome.faults:
        command = command_text(f"roles {outcome.campaign}", outcome.store)
        click.echo(f"  why, with intervals: {command}")
    for line in handed:
        click.echo(f"  {line}")
    for note in unfinished_notes(reduced, store.url) if reduced else ():
        click.echo(f"\nnote: {note}")
    if tally is not None and (campaign.coverage is not None or tally.catalogue.targets):
        from swarmtest.ui.terminal.coverage import coverage_lines

        command = command_text(f"coverage {outcome.campaign}", outcome.store)
        asked = campaign.coverage.to_plain() if campaign.coverage else None
        click.echo("\n" + "\n".join(coverage_lines(tally, command, asked)))
    if outcome.interrupted:
        words = f"resume {outcome.campaign}{campaign.executor.words}"
        command = command_text(words, outcome.store)
        click.echo(f"\neverything so far is kept; continue with: {command}")


def _tally(campaign: Campaign, store: Store, outcome: Outcome) -> Tally | None:
    """Return what the tests reached; None if nothing was watched."""
    if campaign.coverage is None and not store.sources(outcome.campaign):
        return None  # native code is watched without an option, and has sources
    from swarmtest.ui.terminal.coverage import campaign_tally

    return campaign_tally(store, outcome.campaign)


def _print_outcome(
    campaign: Campaign,
    store: Store,
    outcome: Outcome,
    reduced: FaultReductions | None,
    lives: RunLives,
) -> None:
    for note in [*outcome.notes, *_never_seen(campaign, outcome)]:
        click.echo(f"note: {note}")
    if reduced is not None:  # faults that turned out to be one are shown as one
        outcome = replace(outcome, faults=store.faults(outcome.campaign))
    for line in stepped_over(campaign, store, outcome):
        click.echo(line)
    configurations = fault_configurations(store, outcome.campaign, outcome.faults)
    reductions = reductions_of(store, outcome.campaign)
    why = with_reasons(_why(store, outcome), reduced)
    for fault, explanation in explanations_of(store, outcome.campaign).items():
        why.setdefault(fault, []).extend(explanation_lines(explanation, _explained_width()))
    click.echo(outcome_text(outcome, campaign.subject, configurations, why, reductions, lives))


def _explained_width() -> int:
    """Return how wide the paragraph about a fault may be, which is indented by two columns."""
    return min(screen_width() or _EXPLAINED, _EXPLAINED) - 2


_EXPLAINED = 98
_STEPPED_OVER = ("tolerated ", "known difference: ")
"""The events of a test that went on after something that is known."""


def stepped_over(campaign: Campaign, store: Store, outcome: Outcome) -> list[str]:
    """Return the known faults and differences after which tests went on, with how many tests."""
    machine = getattr(campaign.subject, "machine", None)
    if not getattr(campaign.subject, "tolerated", ()) and not getattr(machine, "differences", ()):
        return []
    from swarmtest.analysis.block_reading import count_hits

    ids, counts, _ = count_hits(store, outcome.campaign)
    hits = dict(zip(ids.tolist(), counts.tolist(), strict=True))
    names = {
        target.name: hits[id]
        for id, target in store.targets(sorted(hits)).items()
        if target.kind == "event" and target.name.startswith(_STEPPED_OVER)
    }
    most = sorted(names, key=lambda name: (-names[name], name))
    return [f"went on in {plural(names[name], 'test')} after {name}" for name in most]


def _races(
    campaign: Campaign, store: Store, outcome: Outcome, reduced: FaultReductions | None
) -> str | None:
    """Return the races that a program with threads showed, as text; None for other subjects."""
    if campaign.subject.part != "switch":
        return None  # without importing anything about threads
    from swarmtest.race.subject import ThreadsSubject
    from swarmtest.race.views import races_text

    if not isinstance(campaign.subject, ThreadsSubject):
        return None
    why_not = reduced.why if reduced else {}
    return races_text(store, outcome, campaign.subject, why_not, race_width())


def race_width() -> int:
    """Return how wide a timeline of threads may be."""
    return min(screen_width() or _MAX_RACE_WIDTH, _MAX_RACE_WIDTH)


def _end_event(
    store: Store, outcome: Outcome, tally: Tally | None, notes: list[str], lives: RunLives
) -> dict[str, Any]:
    """Return the fields of the last JSON event."""
    reductions = reductions_of(store, outcome.campaign)
    explanations = explanations_of(store, outcome.campaign)
    return {
        "campaign": outcome.campaign,
        "reason": outcome.reason,
        "progress": vars(outcome.progress),
        "faults": [
            _fault_fields(fault, reductions.get(fault.id), explanations.get(fault.id))
            | {"new": fault.id not in lives.before, "life": life_data(lives.after.get(fault.id))}
            for fault in outcome.faults
        ],
        "unused": outcome.unused,
        "notes": [*outcome.notes, *notes],
        "coverage": tally.shares() if tally else {},
        "coverage_missing": dict(tally.missing) if tally else {},
    }


def _fault_fields(
    fault: FaultRecord, reduction: ReductionRecord | None, explanation: Explanation | None
) -> dict[str, Any]:
    test = json.loads(fault.test) if fault.test else None
    return fault._asdict() | {
        "test": test,
        "reduced": reduction_data(reduction) if reduction else None,
        "why": explanation.to_json() if explanation else None,
    }


def _never_seen(campaign: Campaign, outcome: Outcome) -> list[str]:
    """Return a note about features that a generator was allowed to use, and that no test has.

    It is no error, because such features may just be rare.
    """
    if not outcome.unused or campaign.subject.part == "step":
        return []
    names = list(outcome.unused)
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return [f"allowed, but in no test: {', '.join(names[:_MAX_NAMES])}{more}"]


def _why(store: Store, outcome: Outcome) -> dict[str, list[str]]:
    """Return the roles for each fault in short."""
    if not outcome.faults:
        return {}
    if outcome.progress.tests <= _FEW_TESTS and _has_too_few_hits(store, outcome):
        return {fault.id: [_too_few_hits(fault)] for fault in outcome.faults}
    from swarmtest.roles.views import study_or_none, why_in_short

    return why_in_short(study_or_none(store, outcome.campaign))


def _has_too_few_hits(store: Store, outcome: Outcome) -> bool:
    """Return whether no fault can have triggers yet, though features were left to chance."""
    return all(fault.count < _MIN_HITS for fault in outcome.faults) and any(
        0 < propensity < 1
        for trial in store.trials(outcome.campaign)
        for propensity in unpack_floats(trial.propensities)
    )


def _too_few_hits(fault: FaultRecord) -> str:
    more = plural(_MIN_HITS - fault.count, "more hit")
    return f"triggers unknown: insufficient data, at least {more} needed"
