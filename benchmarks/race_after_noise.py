"""After a failure under noise: how many controlled runs until one shows the same fault.

``python benchmarks/race_after_noise.py [FAILURES]``: for each subject, so many runs that failed
under noise (30), and how many controlled runs each needed, with what was seen of it and without.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import replace
from typing import Any

from race_peers_runner import SUBJECTS

from swarmtest.errors import UserError
from swarmtest.report.terminal import table
from swarmtest.seeds import Stream
from swarmtest.space import Proposal
from swarmtest.strategies import parse_strategy
from swarmtest.subjects.subject import usual_strategy
from swarmtest.subjects.threads.around_noise import replayable
from swarmtest.subjects.threads.race_test import RaceTest
from swarmtest.subjects.threads.racer import Racer, Ran
from swarmtest.subjects.threads.subject import ThreadsSubject
from swarmtest.subjects.threads.target import Target

NAMES = ("airlines", "ab_ba", "lost_wake_up", "ftp_server", "web_crawler")
FAILURES = 30


class Counting(Racer):
    """Counts its runs."""

    runs = 0

    def run(self, *words: Any) -> Ran:
        self.runs += 1
        return super().run(*words)

    def scheduled(self, *words: Any, **options: Any) -> Ran:
        self.runs += 1
        return super().scheduled(*words, **options)


def failures(name: str, wanted: int) -> list[RaceTest]:
    """Runs under noise, drawn as `swarmtest race --noise` draws them, that failed."""
    subject = ThreadsSubject(f"race --noise {SUBJECTS / name}.py::program")
    swarm = parse_strategy(usual_strategy(subject))
    found: list[RaceTest] = []
    trial = 0
    while len(found) < wanted:
        proposal = swarm.ask(subject.space, trial, Stream(0, trial))
        assert isinstance(proposal, Proposal)
        result = subject.execute(proposal.configuration, trial)
        if result.fault is not None:
            found.append(RaceTest.from_json(result.test))
        trial += 1
    subject.racer.close()
    return found


def runs_of(racer: Counting, test: RaceTest) -> int:
    """How many controlled runs it took; the most there are if none showed the fault."""
    racer.runs = 0
    try:
        replayable(racer, test)
    except UserError as error:
        print(f"{test.subject}: {error}")
    return racer.runs


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else FAILURES
    rows = []
    for name in NAMES:
        tests = failures(name, wanted)
        racer = Counting(Target.of(f"{SUBJECTS / name}.py::program"))
        for way in ("anywhere", "around what was seen"):
            seen = way != "anywhere"
            counts = [runs_of(racer, one if seen else replace(one, seen=())) for one in tests]
            mean = f"{statistics.mean(counts):.1f}"
            rows.append((name, way, mean, f"{statistics.median(counts):g}", f"{max(counts)}"))
        racer.close()
    print(table(("subject", "controlled runs", "mean", "median", "most"), rows, right="  rrr"))


if __name__ == "__main__":
    main()
