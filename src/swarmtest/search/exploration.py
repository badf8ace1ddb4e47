"""An explored space: the results of each point, as a store keeps them, ready to be studied.

Hits stay numbers here, in bitmaps: an exploration of thousands of points with thousands of targets
each fits into memory easily.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyroaring import BitMap

from swarmtest.campaign.executors.worker import Batch, Job, Worker
from swarmtest.campaign.recorder import Recorder
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import seed_of_test
from swarmtest.core.space import Space
from swarmtest.core.targets import Target
from swarmtest.search.results import INTERRUPTED, Fitness, Score, combined, cumulated
from swarmtest.search.space import size_of
from swarmtest.search.visits import Visit
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, TrialRecord
from swarmtest.strategies.strategy import Strategy

# -------------------------------------------------------------------------------------------------
# From the results of a point to rows of the store: a trial for each run.
#
# A trial's origin says with which visit it came (``neighbour, visit 17``), its number is its
# seed's,
# and its measures are kept as its test: what the store has no column for.

_FLUSH_SECONDS = 0.5
_VISIT = re.compile(r"visit (\d+)$")


class Recording:
    """Writes a search's results into a campaign."""

    def __init__(
        self, store: Store, campaign: int, space: Space, engine: Strategy, seed: int
    ) -> None:
        self.recorder = Recorder(store, campaign, space)
        subject: Any = _OnlyASpace(space)
        self.worker = Worker(Job(subject, engine, seed))
        self._seed = seed
        self._flushed = time.monotonic()

    def add(self, visit: Visit, results: Sequence[Result]) -> list[str]:
        """Keep the results of a visit; the ids of faults that are new."""
        proposal, words = visit.proposal, f"visit {visit.number}"
        words = f"{proposal.origin}, {words}" if proposal.origin else words
        origin = Proposal(proposal.configuration, proposal.propensities, words)
        batch = Batch()
        for trial, result in enumerate(results, visit.first_trial):
            cpu, wall = int(result.cpu_seconds * 1e9), int(result.wall_seconds * 1e9)
            seed = seed_of_test(self._seed, trial)
            self.worker.note(batch, trial, origin, seed, result._replace(test=None), cpu, wall)
            if result.measures:
                batch.tests.append((trial, {"measures": dict(result.measures)}))
        new = self.recorder.add(self.worker.finished(batch).message())
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.recorder.flush()
            self._flushed = time.monotonic()
        return new


def visit_of(trial: TrialRecord) -> int:
    """The visit that a trial came with; -1 for a trial of another campaign than a search.

    >>> visit_of(TrialRecord(3, b"", origin="neighbour, visit 17"))
    17
    """
    found = _VISIT.search(trial.origin)
    return int(found[1]) if found else -1


def measures_of(store: Store, campaign: int, trial: int) -> dict[str, float]:
    """The measures that were kept with a trial."""
    told: Any = json.loads(store.test(campaign, trial) or "{}")
    return dict(told.get("measures", {})) if isinstance(told, dict) else {}


class _OnlyASpace:
    """What stands where a campaign has its subject: a point says which test runs."""

    def __init__(self, space: Space) -> None:
        self.space = space


# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
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
        """``passed``, ``failed``, ``interrupted`` or ``invalid``."""
        if self.fault is not None and self.fault.kind == INTERRUPTED:
            return "interrupted"
        return self.verdict.label


class Exploration:
    """What a search found out about a space; several campaigns over one space are read as one.

    >>> from swarmtest import Integer, Search, SearchSpace, Test, open_store
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
        runs: dict[Configuration, list[Run]],
        targets: dict[int, Target],
        name: str = "",
        campaigns: Sequence[int] = (),
        engines: Sequence[str] = (),
        forbid: Sequence[str] = (),
    ) -> None:
        self.space = space
        self.runs = runs
        """The runs of each point, in order of its first visit."""
        self.targets = targets
        self.name = name
        self.campaigns = tuple(campaigns)
        self.engines = tuple(engines)
        """Who proposed the points."""
        self.forbid = tuple(forbid)
        """What forbade points, in words."""
        self.points: list[Configuration] = list(runs)
        self._reached: dict[Configuration, BitMap] = {}

    @classmethod
    def load(cls, store: Store, *campaigns: int) -> Exploration:
        """The exploration that campaigns of a store recorded."""
        if not campaigns:
            raise UserError("name a campaign to read an exploration from")
        first = store.campaign(campaigns[0])
        if not first.space["dimensions"]:
            raise UserError(f"campaign {campaigns[0]} has no space: it is no search")
        space = Space.from_json(first.space)
        runs: dict[Configuration, list[Run]] = {}
        for campaign in campaigns:
            if store.campaign(campaign).space != first.space:
                raise UserError(
                    f"campaigns {campaigns[0]} and {campaign} explored different spaces"
                )
            _read(store, campaign, space, runs)
        if not runs:
            raise UserError(f"campaign {campaigns[0]} has no results yet")
        seen = BitMap.union(BitMap(), *(run.hits for one in runs.values() for run in one))
        records = [store.campaign(campaign) for campaign in campaigns]
        engines = dict.fromkeys(record.strategy for record in records)
        forbid = first.options.get("search", {}).get("forbid", [])
        targets = store.targets(seen)
        return cls(space, runs, targets, first.subject, campaigns, [*engines], forbid)

    @property
    def complete(self) -> bool:
        """Whether every point of the space was explored, the forbidden ones too."""
        return len(self.points) == size_of(self.space)

    @property
    def measures(self) -> list[str]:
        """What can be asked for by `values`, in order of first appearance."""
        own: dict[str, None] = {}
        for runs in self.runs.values():
            for run in runs:
                own |= dict.fromkeys(run.measures)
        kinds = [f"hits.{kind}" for kind in self.kinds] if len(self.kinds) > 1 else []
        repeated = ["runs"] if any(len(runs) > 1 for runs in self.runs.values()) else []
        return [*(["hits", *kinds] if self.targets else []), *own, *repeated, "failed", "seconds"]

    @property
    def kinds(self) -> list[str]:
        """The kinds of targets that were reached."""
        return sorted({target.kind for target in self.targets.values()})

    def of_kind(self, kind: str) -> Exploration:
        """The same exploration, as if only targets of one kind counted."""
        if kind not in self.kinds:
            raise UserError(
                f"no target of kind {kind!r} was reached{did_you_mean(kind, self.kinds)}"
            )
        kept = {i: target for i, target in self.targets.items() if target.kind == kind}
        mask = BitMap(kept)
        runs = {
            point: [Run(**{**_fields(run), "hits": run.hits & mask}) for run in self.runs[point]]
            for point in self.points
        }
        told = (self.name, self.campaigns, self.engines, self.forbid)
        return Exploration(self.space, runs, kept, *told)

    def hits(self, point: Configuration) -> BitMap:
        """The ids of all targets that the runs of a point reached."""
        found = self._reached.get(point)
        if found is None:
            found = BitMap.union(BitMap(), *(run.hits for run in self._at(point)))
            self._reached[point] = found
        return found

    def reached(self, points: Iterable[Configuration] | None = None) -> BitMap:
        """The ids of all targets that some points reached together; by default, that all did."""
        which = self.points if points is None else points
        return BitMap.union(BitMap(), *(self.hits(point) for point in which))

    def growth(self, points: Iterable[Configuration]) -> list[int]:
        """How many targets were reached after each run, going through the runs of some points."""
        reached, counts = BitMap(), []
        for point in points:
            for run in self._at(point):
                reached |= run.hits
                counts.append(len(reached))
        return counts

    def results(self, point: Configuration) -> list[Result]:
        """The results of a point, as a search gets them."""
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
        """How good each point is."""
        return {point: fitness(combined(self.results(point), combine)) for point in self.points}

    def values(self, measure: str) -> list[float]:
        """A measure of each point: the mean over its runs; of hits, what they reached together."""
        if measure == "hits":
            return [float(len(self.hits(point))) for point in self.points]
        if measure.startswith("hits."):
            return self.of_kind(measure.removeprefix("hits.")).values("hits")
        if measure not in self.measures:
            known = did_you_mean(measure, self.measures)
            raise UserError(f"this exploration has no measure {measure!r}{known}")
        if measure == "runs":
            return [float(len(self.runs[point])) for point in self.points]
        return [_mean([_value(run, measure) for run in self.runs[point]]) for point in self.points]

    def _at(self, point: Configuration) -> list[Run]:
        found = self.runs.get(point)
        if found is None:
            raise UserError(f"nothing is recorded at '{point}'")
        return found


def _value(run: Run, measure: str) -> float:
    if measure == "failed":
        return float(run.verdict == Verdict.FAILED)
    if measure == "seconds":
        return run.seconds
    return run.measures.get(measure, float("nan"))


def _mean(values: list[float]) -> float:
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else float("nan")


def _fields(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in run.__dataclass_fields__}


def _read(store: Store, campaign: int, space: Space, runs: dict[Configuration, list[Run]]) -> None:
    faults = {f.id: Fault(f.kind, f.signature, f.details) for f in store.faults(campaign)}
    for trial in store.trials(campaign):
        point = Configuration.from_bytes(space, trial.configuration)
        runs.setdefault(point, []).append(_run(store, campaign, trial, faults))


def _run(store: Store, campaign: int, trial: TrialRecord, faults: dict[str, Fault]) -> Run:
    return Run(
        trial.trial,
        visit_of(trial),
        Verdict(trial.verdict),
        faults.get(trial.fault) if trial.fault else None,
        BitMap.deserialize(trial.hits) if trial.hits else BitMap(),
        trial.wall_ns / 1e9,
        trial.cpu_ns / 1e9,
        measures_of(store, campaign, trial.trial),
    )


# -------------------------------------------------------------------------------------------------
# What an earlier part of a search found, visit by visit, so that it can go on.


@dataclass(frozen=True)
class EarlierVisit:
    """A point that was proposed, and the results that it gave then."""

    point: Configuration
    results: list[Result]


def earlier_visits(store: Store, campaign: int, wanted: CampaignRecord) -> dict[int, EarlierVisit]:
    """The visits of a campaign by their numbers, if it is one of the search that is wanted.

    Of several workers, one may have been stopped before others that began later were done.
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
    found: dict[int, EarlierVisit] = {}
    for point in exploration.points:
        results = exploration.results(point)
        for run, result in zip(exploration.runs[point], results, strict=True):
            found.setdefault(run.visit, EarlierVisit(point, [])).results.append(result)
    return found
