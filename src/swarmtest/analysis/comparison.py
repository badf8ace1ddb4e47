"""Strategies compared over repeated runs: what each found, with equal effort, and how soon.

`compare` takes runs that were read from a store (`swarmtest.analysis.comparable` reads them and
refuses what cannot be compared) and knows nothing of stores itself. The `Comparison` that it
answers is what the terminal and other reports show.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from swarmtest.analysis.detection import Detection, FaultName, detections, fault_names
from swarmtest.analysis.discovery import Discovery
from swarmtest.analysis.equal_effort import SHARES, Cut, Groups, cut, kinds_of
from swarmtest.analysis.rank_tests import EffectSize, smallest_p


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
