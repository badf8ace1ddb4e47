"""After a failure under noise: how many controlled runs until one shows the same fault.

    python benchmarks/race_after_noise.py [--quick] [FAILURES]

For each subject, so many runs that failed under noise (30), and how many controlled runs each
needed, with what was seen of it and without. `mean_runs` has the means, `around_vs_anywhere` their
ratios. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from typing import Any

from harness import print_figures, print_table, progress
from race_peers_runner import SUBJECTS

from swarmtest.core.errors import UserError
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream
from swarmtest.race.explanation import find_schedule
from swarmtest.race.race_test import RaceTest
from swarmtest.race.raced_program import RacedProgram
from swarmtest.race.racer import Racer, RunOutcome
from swarmtest.race.subject import ThreadsSubject
from swarmtest.strategies.strategy import parse_strategy
from swarmtest.subjects.subject import usual_strategy

NAMES = ("airlines", "ab_ba", "lost_wake_up", "ftp_server", "web_crawler")
FAILURES = 30
QUICK_NAMES = ("airlines", "ab_ba")
QUICK_FAILURES = 3
WAYS = ("anywhere", "around what was seen")


class Counting(Racer):
    """Counts its runs."""

    runs = 0

    def run(self, *words: Any) -> RunOutcome:
        self.runs += 1
        return super().run(*words)

    def scheduled(self, *words: Any, **options: Any) -> RunOutcome:
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
        find_schedule(racer, test)
    except UserError as error:
        progress(f"{test.subject}: {error}")
    return racer.runs


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two subjects, few failures")
    parser.add_argument("failures", nargs="?", type=int, help="of each subject")
    return parser.parse_args()


def main() -> None:
    """Find failures, look for them again, print."""
    options = parsed()
    wanted = options.failures or (QUICK_FAILURES if options.quick else FAILURES)
    rows, means = [], {}
    for name in QUICK_NAMES if options.quick else NAMES:
        progress(f"{name}: {wanted} runs that fail under noise")
        tests = failures(name, wanted)
        racer = Counting(RacedProgram.of(f"{SUBJECTS / name}.py::program"))
        for way in WAYS:
            progress(f"{name}: controlled runs, {way}")
            seen = way != WAYS[0]
            counts = [runs_of(racer, one if seen else replace(one, seen=())) for one in tests]
            mean = means[name, way] = statistics.mean(counts)
            rows.append((name, way, f"{mean:.1f}", f"{statistics.median(counts):g}", max(counts)))
        racer.close()
    print_table(("subject", "controlled runs", "mean", "median", "most"), rows)
    names = dict.fromkeys(name for name, _ in means)
    print_figures(
        {
            "failures": wanted,
            "mean_runs": {
                name: {way: round(means[name, way], 2) for way in WAYS} for name in names
            },
            "around_vs_anywhere": {
                name: round(means[name, WAYS[1]] / means[name, WAYS[0]], 3) for name in names
            },
        }
    )


if __name__ == "__main__":
    main()
