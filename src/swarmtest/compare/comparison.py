"""From campaigns in a store to a comparison; what cannot be compared is refused in one line.

Two campaigns can be compared if all that differs is the strategy and the seed: the same program,
features, tests of the same length, and the same things watched, for watching takes CPU time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from swarmtest.analysis.discovery import Discovery, discovery
from swarmtest.analysis.rank_tests import EffectSize, smallest_p
from swarmtest.analysis.trial_columns import changed_between
from swarmtest.compare.detection import Detection, FaultName, detections, fault_names
from swarmtest.compare.equal_effort import SHARES, Cut, Groups, cut, kinds_of
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord

# -------------------------------------------------------------------------------------------------
# Strategies compared over repeated runs: what each found, with equal effort, and how soon.
#
# `compare` takes runs that were read from a store (`swarmtest.compare.comparison` reads them and
# refuses what cannot be compared) and knows nothing of stores itself. The `Comparison` that it
# answers is what the terminal and other reports show.


@dataclass(frozen=True)
class Run:
    """One campaign of a comparison, as a whole."""

    campaign: int
    strategy: str
    seed: int
    tests: int
    steps: int
    cpu_seconds: float
    found: dict[str, int]
    """Distinct targets of each kind; faults are a kind."""


@dataclass(frozen=True)
class Comparison:
    """Everything that is known about how strategies compare."""

    subject: str
    strategies: tuple[str, ...]
    """The baseline first."""
    confidence: float
    """Of all intervals."""
    runs: tuple[Run, ...]
    equal_tests: Cut
    equal_cpu: Cut
    faults: tuple[FaultName, ...]
    detections: tuple[Detection, ...]
    """For `detection.ANY` and for each fault: every strategy. Empty when no run found a fault."""
    detection_tests: int | None = None
    """How far runs are looked at for `detections` in tests; None: whole runs."""
    notes: tuple[str, ...] = ()
    """What a reader has to know before believing the numbers, one line each."""

    @property
    def baseline(self) -> str:
        """The strategy against which the others are compared."""
        return self.strategies[0]

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data; the fields are those of the dataclasses, by their names.

        Curves are known at the shares of the limit that ``shares`` lists.
        """
        plain: dict[str, Any] = _plain(self)
        return plain | {"baseline": self.baseline, "shares": list(SHARES)}


def compare(
    subject: str,
    runs: Sequence[Discovery],
    at_equal_tests: Sequence[Discovery],
    at_equal_cpu: Sequence[Discovery],
    baseline: str = "",
    confidence: float = 0.95,
    notes: Iterable[str] = (),
    by_clock: bool = False,
) -> Comparison:
    """Compare the strategies of whole runs, and of the same runs cut to equal effort.

    `by_clock`: some runs were ended by a clock, so their numbers of tests tell how fast they were.
    `baseline`: that of the first run, if not named. Every run has at least one test.
    """
    groups = by_strategy(runs, baseline or runs[0].strategy)
    order, kinds = list(groups), kinds_of(groups)
    fewest = min(runs, key=lambda run: run.tests)
    least = min(runs, key=lambda run: float(run.cpu_seconds[-1]))
    by_tests, by_cpu = (by_strategy(part, order[0]) for part in (at_equal_tests, at_equal_cpu))
    seconds = float(least.cpu_seconds[-1])
    return Comparison(
        subject,
        tuple(order),
        confidence,
        tuple(_run(run) for run in runs),
        cut("tests", fewest.tests, fewest.campaign, by_tests, kinds, confidence),
        cut("cpu_seconds", seconds, least.campaign, by_cpu, kinds, confidence),
        fault_names(groups),
        detections(groups, confidence, fewest.tests if by_clock else math.inf, seconds),
        fewest.tests if by_clock else None,
        (*notes, *_notes_on_repeats(groups, confidence)),
    )


def by_strategy(runs: Sequence[Discovery], baseline: str) -> dict[str, list[Discovery]]:
    """The runs of each strategy: the baseline first, the others as they first come."""
    groups: dict[str, list[Discovery]] = {baseline: []}
    for run in runs:
        groups.setdefault(run.strategy, []).append(run)
    return groups


def _run(run: Discovery) -> Run:
    return Run(
        run.campaign,
        run.strategy,
        run.seed,
        run.tests,
        int(run.steps[-1]),
        float(run.cpu_seconds[-1]),
        {"fault": 0} | {kind: len(run.of_kind(kind)) for kind in run.kinds()},
    )


def _notes_on_repeats(groups: Groups, confidence: float) -> list[str]:
    counts = {strategy: len(runs) for strategy, runs in groups.items()}
    single = [strategy for strategy, count in counts.items() if count == 1]
    notes = []
    if len({*counts.values()}) > 1:
        told = ", ".join(f"{strategy} {count}" for strategy, count in counts.items())
        notes.append(
            f"strategies have different numbers of runs ({told}): what is found in any run, only "
            "here or everywhere grows with the runs; the numbers per run do not"
        )
    if single:
        notes.append(
            f"one run of {', '.join(single)}: no intervals and no p-values, for how much runs "
            "differ is not known; repeat with other seeds"
        )
    rest = sorted(count for count in counts.values() if count > 1)
    allowed = 1 - confidence
    if len(rest) > 1 and smallest_p(*rest[:2]) > allowed + 1e-12:
        needed = next(n for n in range(2, 100) if smallest_p(n, n) <= allowed + 1e-12)
        notes.append(
            f"{rest[0]} and {rest[1]} runs cannot give a p below {smallest_p(*rest[:2]):.2g}, "
            f"whatever they find; {needed} and {needed} can give one below {allowed:.2g}"
        )
    return notes


def _plain(value: Any) -> Any:
    if hasattr(value, "to_json") and not isinstance(value, Comparison):
        value = value.to_json()
    elif isinstance(value, EffectSize):
        return {**vars(value), "word": value.word}
    elif is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


# -------------------------------------------------------------------------------------------------

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
