"""Spaces of noise settings for the threaded programs of `race_subjects`, and what is explored."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from race_ways import RECORDED, shared_of

from swarmtest import Choice, Flag, Result, Store, Test, Verdict
from swarmtest.core.configuration import Configuration
from swarmtest.race.coverage.coverage import ConcurrencyCoverage
from swarmtest.race.free.noise import Noise
from swarmtest.race.free.runner import free_run
from swarmtest.race.noise_settings import KIND_NAMES, NoiseSettings, noise_dimensions
from swarmtest.search import (
    AfterRuns,
    Exploration,
    FunctionExecutor,
    RepeatedExecutor,
    Search,
    SearchSpace,
)
from swarmtest.search.results import named_hits

PROGRAMS = ("airlines", "web_crawler", "ftp_server")
"""The paper's three."""
NONE = "none"
HEURISTICS = (NONE, *(d.name for d in noise_dimensions() if isinstance(d, Flag)))
"""One at a time: most make noise in fewer places, and of two such little would be left."""
OTHER_SEEDS = 1_000_000
"""Seeds of runs that no exploration has seen."""


@dataclass(frozen=True)
class Settings:
    """The noise settings that are explored, each with so many runs."""

    frequencies: tuple[int, ...]
    runs: int
    kinds: tuple[str, ...] = KIND_NAMES
    strengths: tuple[int, ...] = (10,)
    heuristics: tuple[str, ...] = HEURISTICS


class Program:
    """A program that runs under noise, and what its threads do to each other."""

    def __init__(self, subject: ModuleType) -> None:
        self.name = subject.__name__
        self._program = subject.program
        self._shared = shared_of(subject)
        self._switched = switched_of(subject)
        self._coverage = ConcurrencyCoverage()

    def run(self, point: Configuration, seed: int) -> Result:
        """One run at a point; its fault is a target, too."""
        noise = Noise(settings_of(point), seed, self._shared, self._switched)
        run = free_run(self._program, noise, coverage=self._coverage)
        if run.problem:
            return Result(Verdict.INVALID, missing=run.problem)
        assert run.hits is not None
        if run.fault is None:
            return Result(Verdict.PASSED, covered=(run.hits,))
        hits = (f"fault:{run.fault.signature}",)
        return Result(Verdict.FAILED, run.fault, hits=hits, covered=(run.hits,))

    def space(self, settings: Settings) -> SearchSpace:
        """Its space; without noise there is a single point."""
        first = f"heuristic != {NONE!r} or kind != 'mixed' or strength != {settings.strengths[0]}"
        test = RepeatedExecutor(FunctionExecutor(self.run, self.name), AfterRuns(settings.runs))
        return SearchSpace(
            [
                Choice("frequency", settings.frequencies, ordered=True),
                Choice("kind", settings.kinds),
                Choice("strength", settings.strengths, ordered=True),
                Choice("heuristic", settings.heuristics),
                Test("test", (self.name,)),
            ],
            {self.name: test},
            forbid=[f"frequency == 0 and ({first})"],
            name=self.name,
        )


def settings_of(point: Configuration) -> NoiseSettings:
    """The noise of a point."""
    values: dict[str, Any] = point.to_json()
    del values["test"]
    heuristic = values.pop("heuristic")
    if heuristic != NONE:
        values[heuristic] = True
    return NoiseSettings(**values)


def switched_of(subject: ModuleType) -> set[int]:
    """Where another thread went on, in some runs under noise: what `predecessors` begins with."""
    switched = set[int]()
    for seed in range(RECORDED):
        noise = Noise(NoiseSettings(1000, "yield", 1, predecessors=True), seed, switched=switched)
        free_run(subject.program, noise)
        switched |= noise.switched
    return switched


def explored(space: SearchSpace, store: Store) -> Exploration:
    """All of a space; in random order, so that no setting has the busy minute of the machine."""
    return Exploration.load(store, Search(space, "random", store=store).run().campaign)


def reached_anew(space: SearchSpace, points: Iterable[Configuration], kind: str) -> int:
    """How many targets of a kind points reach in runs with other seeds."""
    found = set[str]()
    seeds = itertools.count(OTHER_SEEDS)
    for point in points:
        for result in space.executor(point).run(point, seeds):
            found |= {hit for hit in named_hits(result) if hit.startswith(f"{kind}:")}
    return len(found)


def failures_anew(program: Program, point: Configuration, runs: int) -> float:
    """The share of failing runs at a point, with other seeds."""
    results = [program.run(point, OTHER_SEEDS + at) for at in range(runs)]
    return sum(result.verdict == Verdict.FAILED for result in results) / runs
