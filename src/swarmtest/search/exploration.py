"""Explorations: how a search records its results in a store, and how they are read back for study.

`SearchRecording` writes a trial for each run. A trial's origin names its visit (``neighbour, visit
17``), its number determines its seed, and its measures are stored as its test, because the store
has no column for them. `Exploration` reads them; hits stay numbers in bitmaps, so thousands of
points with thousands of targets each fit into memory. `earlier_visits` reads what a search needs
to continue. `best_sequence` finds the few points that together reach everything.
"""

from __future__ import annotations

import heapq
import json
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyroaring import BitMap

from swarmtest.campaign.executors.worker import CampaignJob, RowBatch, TrialRunner
from swarmtest.campaign.recorder import Recorder
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import seed_of_test
from swarmtest.core.space import Space
from swarmtest.core.targets import Target
from swarmtest.search.results import INTERRUPTED, Fitness, Score, combine_results, cumulated
from swarmtest.search.space import size_of
from swarmtest.search.visits import Visit
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord
from swarmtest.strategies.strategy import Strategy


@dataclass(frozen=True)
class RecordedRun:
    """One run of a test at a point."""

    trial: int
    visit: int
    verdict: Verdict
    fault: Fault | None
    hits: BitMap
    seconds: float
    cpu_seconds: float
    measures: dict[str, float] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """Return ``passed``, ``failed``, ``interrupted`` or ``invalid``."""
        if self.fault is not None and self.fault.kind == INTERRUPTED:
            return "interrupted"
        return self.verdict.label


class Exploration:
    """What a search found out about a space; campaigns over the same space are read as one.

    >>> from swarmtest import Integer, Test, open_store
    >>> from swarmtest.search import Search, SearchSpace
    >>> def sell(threads): return {"sold": 150 + threads // 3, "hits": [f"t{threads}"]}
    >>> space = SearchSpace([Integer("threads", 1, 4), Test("test", ["sell"])], {"sell": sell})
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(space, "sequential", store=store).run()
    ...     exploration = Exploration.load(store, outcome.campaign)
    >>> len(exploration.points), len(exploration.reached()), exploration.values("sold")
    (4, 4, [150.0, 150.0, 151.0, 151.0])
    """

    def __init__(
        self,
        space: Space,
        runs: dict[Configuration, list[RecordedRun]],
        targets: dict[int, Target],
        name: str = "",
        campaigns: Sequence[int] = (),
        engines: Sequence[str] = (),
        forbid: Sequence[str] = (),
    ) -> None:
        self.space = space
        self.runs = runs
        """The runs of each point, in the order of the points' first visits."""
        self.targets = targets
        self.name = name
        self.campaigns = tuple(campaigns)
        self.engines = tuple(engines)
        """The engines that proposed the points."""
        self.forbid = tuple(forbid)
        """The texts of the predicates that forbade points."""
        self.points: list[Configuration] = list(runs)
        self._reached: dict[Configuration, BitMap] = {}

    @classmethod
    def load(cls, store: Store, *campaigns: int) -> Exploration:
        """Return the exploration that campaigns of a store recorded."""
        if not campaigns:
            raise UserError("name a campaign to read an exploration from")
        first = store.campaign(campaigns[0])
        if not first.space["dimensions"]:
            raise UserError(f"campaign {campaigns[0]} has no space: it is not a search")
        space = Space.from_json(first.space)
        runs: dict[Configuration, list[RecordedRun]] = {}
        for campaign in campaigns:
            if store.campaign(campaign).space != first.space:
                raise UserError(
                    f"campaigns {campaigns[0]} and {campaign} explored different spaces"
                )
            _read(store, campaign, space, runs)
        if not runs:
            raise UserError(f"campaign {campaigns[0]} has no results yet")
        seen = BitMap.union(
            BitMap(), *(run.hits for runs_of_point in runs.values() for run in runs_of_point)
        )
        records = [store.campaign(campaign) for campaign in campaigns]
        engines = dict.fromkeys(record.strategy for record in records)
        forbid = first.options.get("search", {}).get("forbid", [])
        targets = store.targets(seen)
        return cls(space, runs, targets, first.subject, campaigns, [*engines], forbid)

    @property
    def complete(self) -> bool:
        """Return whether every point of the space was explored, also the forbidden ones."""
        return len(self.points) == size_of(self.space)

    @property
    def measures(self) -> list[str]:
        """Return the measures that `values` accepts, in order of first appearance."""
        own: dict[str, None] = {}
        for runs in self.runs.values():
            for run in runs:
                own |= dict.fromkeys(run.measures)
        kinds = [f"hits.{kind}" for kind in self.kinds] if len(self.kinds) > 1 else []
        repeated = ["runs"] if any(len(runs) > 1 for runs in self.runs.values()) else []
        return [*(["hits", *kinds] if self.targets else []), *own, *repeated, "failed", "seconds"]

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of targets that were reached."""
        return sorted({target.kind for target in self.targets.values()})

    def of_kind(self, kind: str) -> Exploration:
        """Return the same exploration with only the targets of one kind."""
        if kind not in self.kinds:
            raise UserError(
                f"no target of kind {kind!r} was reached{did_you_mean(kind, self.kinds)}"
            )
        targets = {i: target for i, target in self.targets.items() if target.kind == kind}
        mask = BitMap(targets)
        runs = {
            point: [
                RecordedRun(**{**_fields(run), "hits": run.hits & mask}) for run in self.runs[point]
            ]
            for point in self.points
        }
        description = (self.name, self.campaigns, self.engines, self.forbid)
        return Exploration(self.space, runs, targets, *description)

    def hits(self, point: Configuration) -> BitMap:
        """Return the ids of all targets that the runs of a point reached."""
        hits = self._reached.get(point)
        if hits is None:
            hits = BitMap.union(BitMap(), *(run.hits for run in self._at(point)))
            self._reached[point] = hits
        return hits

    def reached(self, points: Iterable[Configuration] | None = None) -> BitMap:
        """Return the ids of all targets that some points, by default all, reached together."""
        which = self.points if points is None else points
        return BitMap.union(BitMap(), *(self.hits(point) for point in which))

    def growth(self, points: Iterable[Configuration]) -> list[int]:
        """Return the number of targets reached after each run, over the runs of some points."""
        reached, counts = BitMap(), []
        for point in points:
            for run in self._at(point):
                reached |= run.hits
                counts.append(len(reached))
        return counts

    def results(self, point: Configuration) -> list[Result]:
        """Return the results of a point as a search gets them."""
        names = {i: str(self.targets[i]) for i in self.hits(point)}
        return [
            Result(
                run.verdict,
                run.fault,
                hits=tuple(names[i] for i in run.hits),
                measures=run.measures,
                cpu_seconds=run.cpu_seconds,
                wall_seconds=run.seconds,
                trial=run.trial,
                configuration=point,
            )
            for run in self._at(point)
        ]

    def scores(
        self, fitness: Fitness, combine: Callable[[Result, Result], Result] = cumulated
    ) -> dict[Configuration, Score]:
        """Return how good each point is."""
        return {
            point: fitness(combine_results(self.results(point), combine)) for point in self.points
        }

    def values(self, measure: str) -> list[float]:
        """Return a measure of each point: the mean over its runs.

        For hits, the number that all runs reached together.
        """
        if measure == "hits":
            return [float(len(self.hits(point))) for point in self.points]
        if measure.startswith("hits."):
            return self.of_kind(measure.removeprefix("hits.")).values("hits")
        if measure not in self.measures:
            hint = did_you_mean(measure, self.measures)
            raise UserError(f"this exploration has no measure {measure!r}{hint}")
        if measure == "runs":
            return [float(len(self.runs[point])) for point in self.points]
        return [_mean([_value(run, measure) for run in self.runs[point]]) for point in self.points]

    def _at(self, point: Configuration) -> list[RecordedRun]:
        runs = self.runs.get(point)
        if runs is None:
            raise UserError(f"nothing is recorded at '{point}'")
        return runs


def _value(run: RecordedRun, measure: str) -> float:
    if measure == "failed":
        return float(run.verdict == Verdict.FAILED)
    if measure == "seconds":
        return run.seconds
    return run.measures.get(measure, float("nan"))


def _mean(values: list[float]) -> float:
    finite = [value for value in values if value == value]
    return sum(finite) / len(finite) if finite else float("nan")


def _fields(run: RecordedRun) -> dict[str, Any]:
    return {name: getattr(run, name) for name in run.__dataclass_fields__}


def _read(
    store: Store, campaign: int, space: Space, runs: dict[Configuration, list[RecordedRun]]
) -> None:
    """Add the runs of a campaign, block by block; equal points and hits are read once."""
    records = store.faults(campaign)
    faults = {f.id: f.fault for f in records}
    measures = _measures(store, campaign, records)
    points: dict[bytes, Configuration] = {}
    hits: dict[bytes | None, BitMap] = {None: BitMap()}
    for block in store.blocks(campaign):
        for trial in block.records():
            point = points.get(trial.configuration)
            if point is None:
                point = Configuration.from_bytes(space, trial.configuration)
                points[trial.configuration] = point
            if trial.hits is not None and trial.hits not in hits:
                hits[trial.hits] = BitMap.deserialize(trial.hits)
            run = RecordedRun(
                trial.trial,
                visit_of(trial.origin),
                Verdict(trial.verdict),
                faults.get(trial.fault) if trial.fault else None,
                hits[trial.hits],
                trial.wall_ns / 1e9,
                trial.cpu_ns / 1e9,
                measures.get(trial.trial, {}),
            )
            runs.setdefault(point, []).append(run)


def _measures(
    store: Store, campaign: int, faults: Sequence[FaultRecord]
) -> dict[int, dict[str, float]]:
    """Return the measures that were stored with each trial, in place of its test."""
    stored = {fault.trial: fault.test for fault in faults if fault.test}
    stored |= {kept.trial: kept.test for kept in store.tests(campaign)}
    found = {}
    for trial, text in stored.items():
        data: Any = json.loads(text)
        if isinstance(data, dict):
            found[trial] = dict(data.get("measures", {}))
    return found


# Recording.

_FLUSH_SECONDS = 0.5
_VISIT = re.compile(r"visit (\d+)$")


class SearchRecording:
    """Writes the results of a search into a campaign."""

    def __init__(
        self, store: Store, campaign: int, space: Space, engine: Strategy, seed: int
    ) -> None:
        self.recorder = Recorder(store, campaign, space)
        subject: Any = _OnlyASpace(space)
        self.worker = TrialRunner(CampaignJob(subject, engine, seed))
        self._seed = seed
        self._flushed = time.monotonic()

    def add(self, visit: Visit, results: Sequence[Result]) -> list[str]:
        """Store the results of a visit; return the ids of faults that are new."""
        proposal, words = visit.proposal, f"visit {visit.number}"
        words = f"{proposal.origin}, {words}" if proposal.origin else words
        origin = Proposal(proposal.configuration, proposal.propensities, words)
        batch = RowBatch()
        for trial, result in enumerate(results, visit.first_trial):
            cpu, wall = int(result.cpu_seconds * 1e9), int(result.wall_seconds * 1e9)
            seed = seed_of_test(self._seed, trial)
            self.worker.note(batch, trial, origin, seed, result._replace(test=None), cpu, wall)
            if result.measures:
                batch.tests.append((trial, {"measures": dict(result.measures)}))
        new = self.recorder.add(self.worker.complete(batch).message())
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.recorder.flush()
            self._flushed = time.monotonic()
        return new


def visit_of(origin: str) -> int:
    """Return the visit that the origin of a trial names; -1 if its campaign is not a search.

    >>> visit_of("neighbour, visit 17")
    17
    """
    match = _VISIT.search(origin)
    return int(match[1]) if match else -1


class _OnlyASpace:
    """Replaces the subject that a worker of a campaign has: here the point says which test runs."""

    def __init__(self, space: Space) -> None:
        self.space = space


# Resuming.


@dataclass(frozen=True)
class EarlierVisit:
    """A point that was proposed earlier, and its results."""

    point: Configuration
    results: list[Result]


def earlier_visits(store: Store, campaign: int, wanted: CampaignRecord) -> dict[int, EarlierVisit]:
    """Return the visits of a campaign by number; raise an error if it is another search.

    Numbers may be missing: with several workers, a visit may have been stopped while others that
    began later were finished.
    """
    record = store.campaign(campaign)
    for what, then, now in (
        ("space", record.space, wanted.space),
        ("engine", record.strategy, wanted.strategy),
        ("seed", record.seed, wanted.seed),
        ("keep", record.options.get("search", {}).get("keep"), wanted.options["search"]["keep"]),
    ):
        if then != now:
            shown = "" if what == "space" else f": {then} then, {now} now"
            raise UserError(f"campaign {campaign} was a search with another {what}{shown}")
    if not store.summary(campaign)["trials"]:
        return {}
    exploration = Exploration.load(store, campaign)
    visits: dict[int, EarlierVisit] = {}
    for point in exploration.points:
        results = exploration.results(point)
        for run, result in zip(exploration.runs[point], results, strict=True):
            visits.setdefault(run.visit, EarlierVisit(point, [])).results.append(result)
    return visits


# Sequences of points: which few points together reach everything (the paper's table 3).
#
# Each step of the greedy sequence takes the point that adds most to what those before it reached.
# The number of targets that a point adds never grows as others are taken, so points are kept in a
# heap by what they last added, and most are never looked at again (Minoux's accelerated greedy
# algorithm).


@dataclass(frozen=True)
class SequenceStep:
    """A point of a sequence, and what is reached up to it."""

    point: Configuration
    new: int
    """The targets that it adds."""
    reached: int
    """The targets that it and those before it reach."""
    runs: int
    """The runs of the test at it and at those before it."""


@dataclass(frozen=True)
class PointSequence:
    """Points in an order, up to the one with which everything is reached."""

    steps: tuple[SequenceStep, ...]
    total: int
    """The targets that the whole exploration reached."""

    @property
    def points(self) -> list[Configuration]:
        """Return the points in their order."""
        return [step.point for step in self.steps]


def best_sequence(exploration: Exploration, most: int | None = None) -> PointSequence:
    """Return the greedy sequence, until everything is reached or `most` points are taken.

    >>> from swarmtest import Integer, Test, open_store
    >>> from swarmtest.search import Search, SearchSpace
    >>> def sell(n): return {"hits": ["common"] + ["a"] * (n > 2) + ["b"] * (n == 1)}
    >>> space = SearchSpace([Integer("n", 1, 4), Test("test", ["sell"])], {"sell": sell})
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(space, "sequential", store=store).run()
    ...     sequence = best_sequence(Exploration.load(store, outcome.campaign))
    >>> [(step.point["n"], step.reached) for step in sequence.steps]
    [(1, 2), (3, 3)]
    """
    total = len(exploration.reached())
    points = exploration.points
    heap = [(-len(exploration.hits(point)), number) for number, point in enumerate(points)]
    heapq.heapify(heap)
    reached, steps = BitMap(), list[SequenceStep]()
    while heap and len(reached) < total and (most is None or len(steps) < most):
        _, number = heapq.heappop(heap)
        new = len(exploration.hits(points[number]) - reached)
        # Its last known addition may be outdated; put it back if another may add more now.
        if heap and (-new, number) > heap[0]:
            heapq.heappush(heap, (-new, number))
            continue
        reached |= exploration.hits(points[number])
        steps.append(_step(exploration, points[number], new, len(reached), steps))
    return PointSequence(tuple(steps), total)


def random_sequence(exploration: Exploration, seed: int) -> PointSequence:
    """Return all points in random order, up to the one with which everything is reached."""
    points = list(exploration.points)
    random.Random(seed).shuffle(points)
    total = len(exploration.reached())
    reached, steps = BitMap(), list[SequenceStep]()
    for point in points:
        new = len(exploration.hits(point) - reached)
        reached |= exploration.hits(point)
        steps.append(_step(exploration, point, new, len(reached), steps))
        if len(reached) == total:
            break
    return PointSequence(tuple(steps), total)


def _step(
    exploration: Exploration,
    point: Configuration,
    new: int,
    reached: int,
    before: list[SequenceStep],
) -> SequenceStep:
    runs = len(exploration.runs[point]) + (before[-1].runs if before else 0)
    return SequenceStep(point, new, reached, runs)
