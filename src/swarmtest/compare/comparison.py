"""Compare the strategies of campaigns in a store over repeated runs: what each found, and how soon.

`compare_campaigns` reads the campaigns and refuses those that cannot be compared. Two campaigns
can be compared if only the strategy and the seed differ: the same program and features, tests of
the same length, and the same coverage, because measuring coverage takes CPU time. `compare` takes
runs that were read and knows nothing of stores; the `Comparison` that it returns is what reports
show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from swarmtest.analysis.discovery import Discovery, discovery
from swarmtest.analysis.intervals import benjamini_hochberg
from swarmtest.analysis.rank_tests import EffectSize, smallest_p
from swarmtest.analysis.trial_columns import changed_between
from swarmtest.compare.detection import Detection, FaultName, detections, fault_names
from swarmtest.compare.equal_effort import SHARES, Cut, Groups, cut, kinds_of
from swarmtest.core.display import Displayed, ShownTable
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.formatting import amount, plural, with_interval
from swarmtest.core.strategy_names import current_strategy_text
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord


@dataclass(frozen=True)
class ComparedCampaign:
    """One campaign of a comparison, as a whole."""

    campaign: int
    strategy: str
    seed: int
    tests: int
    steps: int
    cpu_seconds: float
    found: dict[str, int]
    """The number of distinct targets of each kind; faults are a kind."""


@dataclass(frozen=True)
class Comparison(Displayed):
    """The result of comparing strategies; `compare_campaigns` returns it.

    >>> from swarmtest import open_store, swarm
    >>> with open_store(":memory:") as store:
    ...     for strategy in ("coin", "all-on"):
    ...         for trial in swarm(["push", "pop"], strategy=strategy, tests=9, store=store):
    ...             trial.record(failed="pop" not in trial and "overflow")
    ...     compare_campaigns(store, [1, 2]).baseline
    'all-on'
    """

    subject: str
    strategies: tuple[str, ...]
    """The strategies, the baseline first."""
    confidence: float
    """The confidence of all intervals."""
    runs: tuple[ComparedCampaign, ...]
    equal_tests: Cut
    equal_cpu: Cut
    faults: tuple[FaultName, ...]
    detections: tuple[Detection, ...]
    """For `detection.ANY` and each fault, every strategy; empty if no run found a fault."""
    detection_tests: int | None = None
    """How many tests of each run count for `detections`; None means whole runs."""
    notes: tuple[str, ...] = ()
    """What a reader has to know before believing the numbers, one line each."""

    def shown_title(self) -> str:
        """Return what is compared, and what a reader has to know."""
        words = (
            f"{self.subject}: {', '.join(self.strategies)}; baseline {self.baseline}; "
            f"{plural(len(self.runs), 'run')}"
        )
        return ". ".join([words, *self.notes])

    def shown_tables(self) -> list[ShownTable]:
        """Return what was found at equal tests and at equal CPU time."""
        cuts = (("tests", self.equal_tests), ("CPU time", self.equal_cpu))
        return [self._shown(unit, cut) for unit, cut in cuts]

    def _shown(self, unit: str, cut: Cut) -> ShownTable:
        differences = {(each.strategy, each.kind): each for each in cut.differences}
        rows = []
        for each in cut.reaches:
            difference = differences.get((each.strategy, each.kind))
            effect = difference.effect if difference else None
            rows.append(
                (
                    each.kind,
                    each.strategy,
                    with_interval(each.per_run),
                    each.in_any_run,
                    each.only_here,
                    "" if difference is None else with_interval(difference.more, sign="+"),
                    None if effect is None else effect.a12,
                    None if difference is None else difference.q,
                )
            )
        more = f"more than {self.baseline}"
        head = ("kind", "strategy", "per run", "in any run", "only here", more, "A12", "q")
        title = f"At equal {unit}: the first {amount(cut.limit, cut.unit)} of each run"
        return ShownTable(title, head, rows)

    def data_columns(self) -> Mapping[str, Any]:
        """Return a row per run and kind of target at equal effort: how many it found."""
        rows = [
            (cut.unit, cut.limit, each.kind, each.strategy, number, count)
            for cut in (self.equal_tests, self.equal_cpu)
            for each in cut.reaches
            for number, count in enumerate(each.counts)
        ]
        names = ("unit", "limit", "kind", "strategy", "run", "found")
        return {name: [row[column] for row in rows] for column, name in enumerate(names)}

    @property
    def baseline(self) -> str:
        """Return the strategy that the others are compared with."""
        return self.strategies[0]

    def to_json(self) -> dict[str, Any]:
        """Return plain data, with the names of the dataclasses' fields.

        ``shares`` lists the shares of the limit at which the curves have values.
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

    `by_clock` says that some runs were ended by a clock, so that their numbers of tests show how
    fast they were. `baseline` is by default the strategy of the first run. Every run must have at
    least one test.
    """
    groups = by_strategy(runs, baseline or runs[0].strategy)
    order, kinds = list(groups), kinds_of(groups)
    fewest = min(runs, key=lambda run: run.tests)
    least = min(runs, key=lambda run: float(run.cpu_seconds[-1]))
    by_tests, by_cpu = (by_strategy(part, order[0]) for part in (at_equal_tests, at_equal_cpu))
    seconds = float(least.cpu_seconds[-1])
    comparison = Comparison(
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
    return corrected(comparison)


def corrected(comparison: Comparison) -> Comparison:
    """Correct all p-values of a report for all of them (Benjamini and Hochberg).

    A report is read as a whole. If nothing differs, it claims something in at most one case of
    twenty (at 95%); tables that are corrected one by one add up to more. What differs really shows
    in several tables, so the correction costs little there.
    """
    tables = comparison.equal_tests.differences, comparison.equal_cpu.differences
    detections = comparison.detections
    p_values = [
        *(difference.p for table in tables for difference in table),
        *(detection.tests.p for detection in detections),
        *(detection.cpu_seconds.p for detection in detections),
    ]
    q_values = iter(_correct_p_values(p_values))
    at_tests, at_cpu = (
        tuple(replace(difference, q=next(q_values)) for difference in table) for table in tables
    )
    in_tests = [replace(detection.tests, q=next(q_values)) for detection in detections]
    in_cpu = [replace(detection.cpu_seconds, q=next(q_values)) for detection in detections]
    return replace(
        comparison,
        equal_tests=replace(comparison.equal_tests, differences=at_tests),
        equal_cpu=replace(comparison.equal_cpu, differences=at_cpu),
        detections=tuple(
            replace(detection, tests=tests, cpu_seconds=cpu)
            for detection, tests, cpu in zip(detections, in_tests, in_cpu, strict=True)
        ),
    )


def _correct_p_values(p_values: Sequence[float | None]) -> list[float | None]:
    """Correct each p-value for all of them; None stays None.

    >>> _correct_p_values([0.02, None, 0.04])
    [0.04, None, 0.04]
    """
    tested = [p for p in p_values if p is not None]
    adjusted = iter(benjamini_hochberg(tested).tolist())
    return [None if p is None else next(adjusted) for p in p_values]


def by_strategy(runs: Sequence[Discovery], baseline: str) -> dict[str, list[Discovery]]:
    """Return the runs of each strategy: the baseline first, the others in order of appearance."""
    groups: dict[str, list[Discovery]] = {baseline: []}
    for run in runs:
        groups.setdefault(run.strategy, []).append(run)
    return groups


def _run(run: Discovery) -> ComparedCampaign:
    return ComparedCampaign(
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
        text = ", ".join(f"{strategy} {count}" for strategy, count in counts.items())
        notes.append(
            f"strategies have different numbers of runs ({text}): what is found in any run, only "
            "here or everywhere grows with the runs; the numbers per run do not"
        )
    if single:
        notes.append(
            f"one run of {', '.join(single)}: no intervals and no p-values, because how "
            "much runs differ is not known; repeat with other seeds"
        )
    many = sorted(count for count in counts.values() if count > 1)
    allowed = 1 - confidence
    if len(many) > 1 and smallest_p(*many[:2]) > allowed + 1e-12:
        needed = next(n for n in range(2, 100) if smallest_p(n, n) <= allowed + 1e-12)
        notes.append(
            f"{many[0]} and {many[1]} runs cannot give a p below {smallest_p(*many[:2]):.2g}, "
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
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


# Campaigns in a store.

_AGAIN = "run them again in the same way, or leave one out"


def compare_campaigns(
    store: Store,
    campaigns: Sequence[int],
    baseline: str = "",
    confidence: float = 0.95,
    notes: Iterable[str] = (),
) -> Comparison:
    """Compare the strategies of campaigns that are in a store.

    `baseline` is by default ``all-on`` if it is among them, else the strategy of the
    first campaign. `notes` are added to those of the comparison.

    >>> from swarmtest import Campaign, Machine, action, open_store
    >>> class Tower(Machine):
    ...     def start(self): self.height = 0
    ...     @action
    ...     def build(self): self.height += 1; assert self.height < 40
    ...     @action
    ...     def raze(self): self.height = 0
    >>> with open_store(":memory:") as store:
    ...     for strategy in ("all-on", "coin"):
    ...         outcome = Campaign(Tower, strategy, 20, store=store, workers=0).run()
    ...     compare_campaigns(store, [1, 2]).strategies
    ('all-on', 'coin')
    """
    records = [store.campaign(campaign) for campaign in campaigns]
    check_comparable(store, records)
    labels = {record.strategy: record.label for record in records}
    baseline = current_strategy_text(baseline)
    if baseline and baseline not in labels:
        raise UserError(
            f"no campaign has the baseline {baseline!r}{did_you_mean(baseline, labels)}"
        )
    chosen = baseline or ("all-on" if "all-on" in labels else records[0].strategy)
    runs = [discovery(store, record.id) for record in records]
    for run in runs:
        if not run.tests:
            raise UserError(f"campaign {run.campaign} has no test: leave it out")
    tests = min(run.tests for run in runs)
    # Half a nanosecond more, so that the shortest run keeps its last test despite rounding.
    cpu_seconds = min(float(run.cpu_seconds[-1]) for run in runs) + 5e-10
    return compare(
        records[0].subject,
        runs,
        [_cut_run(store, run, tests=tests) for run in runs],
        [_cut_run(store, run, cpu_seconds=cpu_seconds) for run in runs],
        labels[chosen],
        confidence,
        [*notes, *_notes(records, runs)],
        any({"wall_seconds", "cpu_seconds"} & {*r.options.get("budget", ())} for r in records),
    )


def check_comparable(store: Store, records: Sequence[CampaignRecord]) -> None:
    """Raise an error if campaigns differ in more than strategy and seed."""
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
"""The options of `swarmtest run` that must be equal, and how to read them from a campaign."""


def _check_pair(first: CampaignRecord, other: CampaignRecord) -> None:
    both = f"campaigns {first.id} and {other.id} cannot be compared"
    if first.subject != other.subject:
        raise UserError(f"{both}: one tests {first.subject}, the other {other.subject}")
    if first.space != other.space:
        raise UserError(f"{both}: {first.subject} had other features or constraints; {_AGAIN}")
    for option, text_of in _OPTIONS.items():
        first_value, other_value = (
            text_of(record.options) or "not given" for record in (first, other)
        )
        if first_value != other_value:
            raise UserError(f"{both}: {option} was {first_value} and {other_value}; {_AGAIN}")


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


def _cut_run(
    store: Store, run: Discovery, tests: int | None = None, cpu_seconds: float | None = None
) -> Discovery:
    """Return a run as far as the limits; read it again only if it is longer."""
    within = tests is None or run.tests <= tests
    if within and (cpu_seconds is None or run.cpu_seconds[-1] <= cpu_seconds):
        return run
    return discovery(store, run.campaign, tests=tests, cpu_seconds=cpu_seconds)


def _notes(records: Sequence[CampaignRecord], runs: Sequence[Discovery]) -> list[str]:
    notes = [
        f"campaign {record.id} is {record.status}, not finished: the tests that it has count"
        for record in records
        if record.status != "finished"
    ]
    stopped = [
        str(r.id) for r in records if {"faults", "saturation"} & {*r.options.get("budget", ())}
    ]
    if stopped:
        notes.append(
            f"campaigns {', '.join(stopped)} stopped depending on what they found (faults, "
            "saturation): comparing what they found by then favours those that find it late"
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
