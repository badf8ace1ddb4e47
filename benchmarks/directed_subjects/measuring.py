"""The papers' protocol on one subject: an undirected swarm, targets, directed runs, hits.

Invariants: targets and roles come from the *seed* campaign alone; hitting fractions of undirected
tests, with which directed ones are compared, come from other tests (*control*), for a target that
was chosen because it was hit by 10-30% of some tests is hit by other shares of others. CPU time is
that of the whole process during a campaign: generating and running tests, coverage, the store, and
what a strategy takes to ask and to learn. A control run stands among each set's directed runs, and
the order of all of them is random, so that a machine that is slower at times is so for everybody.
Each run is a fork of a process that has loaded the subject, so none finds anything that another
left, and starting costs nothing.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import multiprocessing
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from harness import cpu_seconds
from pyroaring import BitMap

from swarmtest import Campaign, Store, open_store
from swarmtest.analysis.role_cells import ROLES, SUPPRESSOR, TRIGGER
from swarmtest.campaign import Progress
from swarmtest.campaign.executors.executor import InlineExecutor
from swarmtest.campaign.executors.worker import CampaignJob
from swarmtest.campaign.loop import CampaignLoop
from swarmtest.campaign.recorder import Recorder
from swarmtest.core.result import Result
from swarmtest.core.targets import Target
from swarmtest.coverage.watch import Coverage
from swarmtest.roles.study import Study
from swarmtest.store.records import FaultRecord
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.strategies.strategy import Strategy
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.subject import Subject as Tested

HERE = Path(__file__).resolve().parent
LOWEST, HIGHEST = 0.1, 0.3
CONTROL, ALL_ON = "undirected", "all-on"
ALL_ON_RUNS = 4
"""For all sets of a repetition together: the default configuration aims at nothing."""

FORKING = multiprocessing.get_context("fork")
Answer = TypeVar("Answer")
Factory = Callable[[Sequence[Aim]], Strategy]
Chooses = Callable[[Target, float], bool]
StrategiesOf = Callable[[int], Mapping[str, Factory]]
"""The strategies to try for sets of a size, by name."""


@dataclass(frozen=True)
class Subject:
    """What is tested, and how many tests make a run."""

    name: str
    title: str
    file: str
    """In this directory, perhaps with the name of the machine."""
    cover: str
    """The Python package whose lines are targets; empty: the subject tells what it covers."""
    seed_tests: int
    tests: int
    """Of each directed run."""

    @functools.cached_property
    def loaded(self) -> tuple[Tested, Coverage | None]:
        """What is tested, with the probes that watch it; forked processes share both."""
        watching = Coverage("line", self.cover).install() if self.cover else None
        tested = SubjectReference(str(HERE / self.file)).load()
        tested.warm_up()
        return tested, watching

    def sample(
        self, strategy: str | Strategy, tests: int, seed: int, names: Collection[str]
    ) -> Sample:
        """A campaign in a process of its own, and which of the named targets it hit how often."""
        return in_fork(lambda: self._sample(strategy, tests, seed, frozenset(names)))

    def _sample(
        self, strategy: str | Strategy, tests: int, seed: int, names: frozenset[str]
    ) -> Sample:
        with open_store(":memory:") as store:
            number, cpu = self._campaign(strategy, tests, seed, store)
            wanted = {id: str(one) for id, one in store.targets().items() if str(one) in names}
            counts = Counter(id for hits in _hits(store, number) for id in hits & BitMap(wanted))
            hits = {name: counts[id] for id, name in wanted.items()}
            faults = {fault.signature: fault.count for fault in store.faults(number)}
            return Sample(tests, cpu, hits, faults)

    def aims(self, tests: int, seed: int, chooses: Chooses) -> dict[str, Aim]:
        """Aims at some of the lines that undirected tests hit, by what is known from these tests.

        `chooses` is asked for each target, with the share of the tests that hit it.
        """
        return in_fork(lambda: self._aims(tests, seed, chooses))

    def _aims(self, tests: int, seed: int, chooses: Chooses) -> dict[str, Aim]:
        with open_store(":memory:") as store:
            number, _ = self._campaign("coin", tests, seed, store)
            table = Study(store, [number]).table("line")
        names = np.array(table.features)
        aims = {}
        for row, target in enumerate(table.targets):
            if chooses(target, table.hits[row] / tests):
                triggers = names[table.codes[row] == ROLES.index(TRIGGER)].tolist()
                suppressors = names[table.codes[row] == ROLES.index(SUPPRESSOR)].tolist()
                certain = names[table.certain_triggers[row]].tolist()
                goals = (Goal(str(target)),)
                roles = (frozenset(triggers), frozenset(suppressors), frozenset(certain))
                aims[str(target)] = Aim(goals, *roles)
        return aims

    def _campaign(
        self, strategy: str | Strategy, tests: int, seed: int, store: Store
    ) -> tuple[int, float]:
        """Its number, and the CPU time of this process and its children while it ran."""
        gc.freeze()  # as workers do
        tested, watching = self.loaded
        tested.execute = limited(tested.execute)  # type: ignore[method-assign]
        start = cpu_seconds()
        campaign = Campaign(tested, strategy, tests, seed, workers=0, store=store)
        campaign.rehearse()
        number = store.add_campaign(campaign.record())
        job = CampaignJob(tested, campaign.strategy, seed, coverage=watching)
        wanted = getattr(strategy, "wants", None)
        recorder = Recorder(store, number, tested.space, wanted)
        CampaignLoop(job, campaign.budget, InlineExecutor(job), recorder, _silent).until_done(0)
        if not self.cover:
            # The time of a fork server and of what it forked is known when it has ended.
            machine, name = self.file.split("::")
            getattr(sys.modules[Path(machine).stem], name).program.close()
        return number, cpu_seconds() - start


LONGEST = 5.0
"""CPU seconds after which a test is stopped: some tests of pyfakefs would take minutes."""


class TookTooLong(Exception):
    """A test took longer than `LONGEST`; not an `OSError`, which a library may expect."""


def limited(execute: Callable[..., Result]) -> Callable[..., Result]:
    """Run tests with a limit; it is CPU time, so a busy machine stops the same tests."""

    def stop(number: int, frame: object) -> None:
        raise TookTooLong(f"the test took more than {LONGEST:g} s of CPU")

    @functools.wraps(execute)
    def run(*arguments: Any, **options: Any) -> Result:
        signal.signal(signal.SIGVTALRM, stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST, LONGEST)
        try:
            return execute(*arguments, **options)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    return run


def _silent(progress: Progress, faults: list[FaultRecord]) -> None:
    """Nobody watches."""


def _hits(store: Store, campaign: int) -> Iterator[BitMap]:
    return (BitMap.deserialize(one.hits) for one in store.trials(campaign) if one.hits)


def in_fork(work: Callable[[], Answer]) -> Answer:
    """What a function answers in a fork of this process: nothing that it changes stays."""
    ours, theirs = FORKING.Pipe(duplex=False)
    process = FORKING.Process(target=lambda: theirs.send(work()))
    process.start()
    theirs.close()
    try:
        answer: Answer = ours.recv()
    except EOFError:
        raise SystemExit("a run failed; its message is above") from None
    process.join()
    return answer


@dataclass(frozen=True)
class Sample:
    """Tests of one strategy, and how many of them hit each target that matters."""

    tests: int
    cpu: float
    hits: Mapping[str, int]
    faults: Mapping[str, int]
    """Tests that showed each fault, by its signature."""

    def of(self, targets: Sequence[str]) -> int:
        """Hits of some targets together."""
        return sum(self.hits.get(name, 0) for name in targets)


def joined(samples: Sequence[Sample]) -> Sample:
    """The tests of several runs of the same strategy."""
    hits, faults = Counter[str](), Counter[str]()
    for one in samples:
        hits.update(one.hits)
        faults.update(one.faults)
    return Sample(sum(one.tests for one in samples), sum(one.cpu for one in samples), hits, faults)


@dataclass(frozen=True)
class Measurement:
    """What one strategy did for one set of targets; fractions are means over the set."""

    subject: str
    repetition: int
    size: int
    number: int
    strategy: str
    directed: float
    undirected: float
    rate: float
    """Hits of the set's targets per CPU second."""
    undirected_rate: float

    @property
    def ratio(self) -> float:
        """HF_d / HF_u."""
        return self.directed / self.undirected

    @property
    def rate_ratio(self) -> float:
        """The same at equal CPU time."""
        return self.rate / self.undirected_rate


@dataclass(frozen=True)
class TargetSet:
    """Targets that are aimed at together."""

    number: int
    targets: tuple[str, ...]


class Repetition:
    """One undirected swarm, the sets of targets chosen from it, and the runs directed at them."""

    def __init__(self, subject: Subject, number: int) -> None:
        self.subject = subject
        self.number = number
        self._rng = random.Random(f"{subject.name} {number}")
        self._seed = 1_000_000 * (number + 1)
        _ = subject.loaded  # before any fork
        self.aims = subject.aims(subject.seed_tests, self._fresh_seed(), _neither_rare_nor_common)
        self._control: list[Sample] = []

    def measure(self, sets: Mapping[int, int], strategies: StrategiesOf) -> list[Measurement]:
        """Runs for random sets of targets, so many of each size."""
        chosen = [
            TargetSet(number, self._chosen_targets(size, number))
            for size, count in sets.items()
            for number in range(count)
        ]
        runs = [run for one in chosen for run in self._runs(one, strategies(len(one.targets)))]
        all_on = joined([self._sample("all-on", list(self.aims)) for _ in range(ALL_ON_RUNS)])
        runs += [(one, ALL_ON, all_on) for one in chosen]
        return [self._measurement(*run) for run in runs]

    def _chosen_targets(self, size: int, number: int) -> tuple[str, ...]:
        """Choose targets at random, by a hash of their names.

        A line near the bounds of `_neither_rare_nor_common` is a candidate in one run and not in
        the next (some lines depend on the clock). The choice among the others stays the same.
        """

        def place(target: str) -> bytes:
            text = f"{self.subject.name} {self.number} {size} {number} {target}"
            return hashlib.sha256(text.encode()).digest()

        return tuple(sorted(self.aims, key=place)[:size])

    def _runs(
        self, chosen: TargetSet, factories: Mapping[str, Factory]
    ) -> Iterator[tuple[TargetSet, str, Sample]]:
        aims = [self.aims[target] for target in chosen.targets]
        names = [CONTROL, *factories]
        self._rng.shuffle(names)
        for name in names:
            if name == CONTROL:
                self._control.append(self._sample("coin", list(self.aims)))
            else:
                yield chosen, name, self._sample(factories[name](aims), chosen.targets)

    def _sample(self, strategy: str | Strategy, targets: Sequence[str]) -> Sample:
        return self.subject.sample(strategy, self.subject.tests, self._fresh_seed(), targets)

    def _fresh_seed(self) -> int:
        self._seed += 1
        return self._seed

    def _measurement(self, chosen: TargetSet, strategy: str, sample: Sample) -> Measurement:
        size = len(chosen.targets)
        control = joined(self._control)
        return Measurement(
            self.subject.name,
            self.number,
            size,
            chosen.number,
            strategy,
            sample.of(chosen.targets) / sample.tests / size,
            control.of(chosen.targets) / control.tests / size,
            sample.of(chosen.targets) / sample.cpu,
            control.of(chosen.targets) / control.cpu,
        )


def _neither_rare_nor_common(target: Target, share: float) -> bool:
    return LOWEST <= share <= HIGHEST
