"""Our own ways to run a subject for some CPU time; as `race_peers_runner.py` runs those of others.

``python race_ways.py WAY SUBJECT SECONDS``: prints the same JSON object. What a way needs to know
before it begins (which variables are shared, how long runs are) it finds out in that time, too.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

from race_peers_runner import SUBJECTS, Tally, silent

from swarmtest import Choice, Flag, Test, open_store
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream
from swarmtest.coverage.scope import Scope
from swarmtest.race.control.runner import controlled_run
from swarmtest.race.control.schedulers import PCT, POS, RandomWalk, ThreadScheduler
from swarmtest.race.coverage.shared_variables import AccessRecording, shared_sites
from swarmtest.race.free.noise import Noise
from swarmtest.race.free.runner import free_run
from swarmtest.race.noise_settings import KIND_NAMES, NoiseSettings
from swarmtest.race.subject import ThreadsSubject
from swarmtest.race.weaving.weaver import woven
from swarmtest.search import Search, SearchSpace
from swarmtest.strategies.strategy import LearningStrategy, parse_strategy
from swarmtest.subjects.subject import usual_strategy

Runs = Callable[[int], bool]
"""One run with a seed: whether it failed."""
POLICIES = ("walk", "walk of few", "pct", "pos")
WHERE = ("all", "shared", "mixed")
SWITCHES = (8, 16, 32, 64)
"""How many choices a walk of few makes in a run, about; one of these for each seed."""
RECORDED = 3
POINTS = 40
SEARCHED = 3
"""A search may take so many times the time of what is measured."""
FAR = 1_000_000
"""Seeds of a search are not those of what is measured."""


@contextmanager
def loaded(name: str) -> Iterator[ModuleType]:
    """A subject, with probes."""
    sys.path.insert(0, str(SUBJECTS))
    with woven(Scope(places=(str(SUBJECTS),))):
        yield importlib.import_module(name)


def shared_of(subject: ModuleType) -> frozenset[int]:
    """The sites of what its threads share, as some recordings tell."""
    recordings = [AccessRecording() for _ in range(RECORDED)]
    for recording in recordings:
        free_run(subject.program, recording)
    return shared_sites(recordings)


def scheduler(policy: str, seed: int, steps: int) -> ThreadScheduler:
    if policy == "pct":
        return PCT(seed, steps=steps)
    if policy == "pos":
        return POS(seed)
    return few(seed, steps) if policy == "walk of few" else RandomWalk(seed)


def few(seed: int, steps: int) -> RandomWalk:
    """A walk of few choices: how many depends on the seed."""
    return RandomWalk(seed, SWITCHES[seed % len(SWITCHES)] / steps)


def controlled(subject: ModuleType, policy: str, where: str) -> Runs:
    """Runs under control; `mixed` takes turns between all sites and those of shared variables."""
    sites = None if where == "all" else shared_of(subject)
    steps = controlled_run(subject.program, RandomWalk(0)).steps

    def once(seed: int) -> bool:
        here = None if where == "mixed" and seed % 2 else sites
        run = controlled_run(subject.program, scheduler(policy, seed, steps), sites=here)
        return run.fault is not None

    return once


def noisy(subject: ModuleType, settings: NoiseSettings) -> Runs:
    """Threads that run freely, under noise."""
    shared = shared_of(subject) if settings.shared_only or settings.one_variable else None
    return lambda seed: free_run(subject.program, Noise(settings, seed, shared)).fault is not None


def default(name: str) -> Runs:
    """What `swarmtest race` does: settings are drawn, and those that pay are drawn more often."""
    subject = ThreadsSubject(f"{SUBJECTS / name}.py::program")
    strategy = parse_strategy(usual_strategy(subject))

    def once(seed: int) -> bool:
        proposal = strategy.ask(subject.space, seed, Stream(0, seed))
        assert isinstance(proposal, Proposal)
        cpu, wall = time.process_time(), time.monotonic()
        result = subject.execute(proposal.configuration, seed)
        if isinstance(strategy, LearningStrategy):
            strategy.tell(
                result._replace(
                    configuration=proposal.configuration,
                    cpu_seconds=time.process_time() - cpu,
                    wall_seconds=time.monotonic() - wall,
                )
            )
        return result.fault is not None

    return once


def searched(subject: ModuleType, seconds: float) -> Runs:
    """Hill climbing over the settings of noise and control; the best point, with other seeds."""
    sites = shared_of(subject)
    steps = controlled_run(subject.program, RandomWalk(0)).steps

    def once(mover: str, switches: int, shared: bool, seed: int) -> bool:
        here = sites if shared else None
        if mover in KIND_NAMES:
            frequency = min(1000, 1 + 1000 * switches // steps)
            noise = Noise(NoiseSettings(frequency, mover, shared_only=shared), seed, here)
            return free_run(subject.program, noise).fault is not None
        scheduler = (
            RandomWalk(seed, min(1.0, switches / steps))
            if mover == "walk"
            else PCT(seed, min(switches, 8), steps)
            if mover == "pct"
            else POS(seed)
        )
        return controlled_run(subject.program, scheduler, sites=here).fault is not None

    def found_per_second(mover: str, switches: int, shared: bool) -> dict[str, float]:
        tally = Tally(seconds / POINTS)
        count(lambda seed: once(mover, switches, shared, FAR + seed), tally)
        return {"rate": tally.found / tally.cpu}

    space = SearchSpace(
        [
            Choice("mover", ("walk", "pct", "pos", *KIND_NAMES)),
            Choice("switches", (2, 4, *SWITCHES, 128, 256), ordered=True),
            Flag("shared"),
            Test("test", ["rate"]),
        ],
        {"rate": found_per_second},
    )
    with open_store(":memory:") as store:
        search = Search(space, "climb", fitness="rate", points=POINTS, store=store)
        best = search.run().best
    assert best is not None
    return lambda seed: once(best["mover"], best["switches"], best["shared"], seed)


def measure(way: str, name: str, tally: Tally) -> Tally:
    """Run in a way until the time is used up; a search is not counted, but what it found is."""
    kind, _, rest = way.partition(" ")
    if kind == "default":
        count(default(name), tally)
        return tally
    with loaded(name) as subject:
        if kind == "searched":
            best = searched(subject, SEARCHED * tally.seconds_left)
            tally = Tally(tally.seconds)
            count(best, tally)
        elif kind == "noise":
            count(noisy(subject, noise_of(rest)), tally)
        else:
            policy, _, where = rest.rpartition(" ")
            count(controlled(subject, policy, where), tally)
    return tally


def noise_of(text: str) -> NoiseSettings:
    """A kind, or settings as JSON."""
    return NoiseSettings(**json.loads(text)) if text.startswith("{") else NoiseSettings(kind=text)


def count(once: Runs, tally: Tally) -> None:
    while not tally.over:
        tally.found += once(tally.runs)
        tally.runs += 1


WAYS = [
    *(f"noise {kind}" for kind in KIND_NAMES),
    *(f"control {policy} {where}" for policy in POLICIES for where in WHERE),
    "searched",
    "default",
]


def main() -> None:
    """Run, tell."""
    way, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    tally = Tally(seconds)
    with silent():
        tally = measure(way, name, tally)
    tally.tell()


if __name__ == "__main__":
    main()
