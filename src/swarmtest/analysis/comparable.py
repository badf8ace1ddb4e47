"""From campaigns in a store to a comparison; what cannot be compared is refused in one line.

Two campaigns can be compared if all that differs is the strategy and the seed: the same program,
features, tests of the same length, and the same things watched, for watching takes CPU time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from swarmtest.analysis.comparison import Comparison, compare
from swarmtest.analysis.discovery import Discovery, discovery
from swarmtest.analysis.versions import changed_between
from swarmtest.errors import UserError, did_you_mean
from swarmtest.store import CampaignRecord, Store

_AGAIN = "run them again alike, or leave one out"


def compare_campaigns(
    store: Store,
    campaigns: Sequence[int],
    baseline: str = "",
    confidence: float = 0.95,
    notes: Iterable[str] = (),
) -> Comparison:
    """Compare the strategies of campaigns that are in a store.

    `baseline`: if not named, ``default`` if it is among them, else the strategy of the first
    campaign. `notes`: what else to tell a reader.
    """
    records = [store.campaign(campaign) for campaign in campaigns]
    check_comparable(store, records)
    labels = {record.strategy: record.label for record in records}
    if baseline and baseline not in labels:
        raise UserError(
            f"no campaign has the baseline {baseline!r}{did_you_mean(baseline, labels)}"
        )
    chosen = baseline or ("default" if "default" in labels else records[0].strategy)
    whole = [discovery(store, record.id) for record in records]
    for run in whole:
        if not run.tests:
            raise UserError(f"campaign {run.campaign} has no test: leave it out")
    tests = min(run.tests for run in whole)
    # Half a nanosecond more, for the shortest run has to keep its last test whatever the rounding.
    cpu_seconds = min(float(run.cpu_seconds[-1]) for run in whole) + 5e-10
    return compare(
        records[0].subject,
        whole,
        [_cut(store, run, tests=tests) for run in whole],
        [_cut(store, run, cpu_seconds=cpu_seconds) for run in whole],
        labels[chosen],
        confidence,
        [*notes, *_notes(records, whole)],
        any({"wall_seconds", "cpu_seconds"} & {*r.options.get("budget", ())} for r in records),
    )


def check_comparable(store: Store, records: Sequence[CampaignRecord]) -> None:
    """Refuse campaigns that differ in more than strategy and seed."""
    for record in records:
        if not record.space["dimensions"]:
            raise UserError(
                f"campaign {record.id} is coverage of another tool: it has no strategy to compare"
            )
    first = records[0]
    for record in records[1:]:
        _check_pair(first, record)
    _check_repeats(records)
    changed = changed_between(store, records)
    if changed:
        raise UserError(f"these campaigns cannot be compared: {changed}; {_AGAIN}")
    if len({record.strategy for record in records}) < 2:
        raise UserError(
            f"{'all campaigns are' if records[1:] else f'campaign {first.id} is'} of strategy "
            f"{first.strategy!r}: name campaigns of two strategies or more"
        )


def _steps(options: dict[str, Any]) -> str:
    return "-".join(map(str, (options.get("subject") or {}).get("steps") or ()))


def _raises(options: dict[str, Any]) -> str:
    return " ".join((options.get("subject") or {}).get("raises") or ())


def _timeout(options: dict[str, Any]) -> str:
    return f"{options['seconds']:g}s" if options.get("seconds") else ""


def _coverage(options: dict[str, Any]) -> str:
    watched = options.get("coverage")
    if not watched:
        return ""
    return " ".join([",".join(watched["kinds"]), *watched.get("cover", ()), watched["probes"]])


_OPTIONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "--steps": _steps,
    "--raises": _raises,
    "--timeout": _timeout,
    "--coverage": _coverage,
}
"""How `swarmtest run` spells what has to be the same, and where a campaign keeps it."""


def _check_pair(first: CampaignRecord, other: CampaignRecord) -> None:
    both = f"campaigns {first.id} and {other.id} cannot be compared"
    if first.subject != other.subject:
        raise UserError(f"{both}: one tests {first.subject}, the other {other.subject}")
    if first.space != other.space:
        raise UserError(f"{both}: {first.subject} had other features or constraints; {_AGAIN}")
    for option, spelt in _OPTIONS.items():
        one, another = (spelt(record.options) or "not given" for record in (first, other))
        if one != another:
            raise UserError(f"{both}: {option} was {one} and {another}; {_AGAIN}")


def _check_repeats(records: Sequence[CampaignRecord]) -> None:
    seen: dict[tuple[str, int], int] = {}
    for record in records:
        same = seen.setdefault((record.strategy, record.seed), record.id)
        if same == record.id and [r.id for r in records].count(same) > 1:
            raise UserError(f"campaign {record.id} is named twice")
        if same != record.id:
            raise UserError(
                f"campaigns {same} and {record.id} are the same tests (strategy {record.strategy}, "
                f"seed {record.seed}): a repeat needs a seed of its own; leave one out"
            )


def _cut(
    store: Store, run: Discovery, tests: int | None = None, cpu_seconds: float | None = None
) -> Discovery:
    within = tests is None or run.tests <= tests
    if within and (cpu_seconds is None or run.cpu_seconds[-1] <= cpu_seconds):
        return run
    return discovery(store, run.campaign, tests=tests, cpu_seconds=cpu_seconds)


def _notes(records: Sequence[CampaignRecord], runs: Sequence[Discovery]) -> list[str]:
    notes = [
        f"campaign {record.id} is {record.status}, not finished: it counts as far as it is"
        for record in records
        if record.status != "finished"
    ]
    stopped = [
        str(r.id) for r in records if {"faults", "saturation"} & {*r.options.get("budget", ())}
    ]
    if stopped:
        notes.append(
            f"campaigns {', '.join(stopped)} were to stop at what they found (faults, saturation): "
            "comparing what they found by then favours those that find it late"
        )
    pythons = sorted({str(record.options.get("python")) for record in records})
    if len(pythons) > 1:
        notes.append(f"run by different Pythons ({', '.join(pythons)}): CPU times differ by that")
    notes += [
        f"campaign {run.campaign}: the coverage of {run.missing:,} of {run.tests:,} tests is not "
        "known, so it may have reached more than is shown"
        for run in runs
        if run.missing
    ]
    return notes
