"""Mutants per second: swarmtest beside mutmut, cosmic-ray, universalmutator and pytest-gremlins.

    python benchmarks/mutation.py [--quick]

The module is the red-black tree of `red_black.py`, the suite is `mutation_suite.py`. Every tool
finds out for each of its mutants whether the suite kills it (up to the first test that does);
swarmtest also fills the whole matrix of mutants and tests. `vs_best_peer` is the ratio of verdicts
per second of CPU time, because the tools use two processes each and machines are shared.

`schemata_vs_swap` is the CPU time of the same mutants and tests behind a selector, by that with
swapped code (`mutation_schemata.py`); the slow-downs are those of the program without a mutant.

Each tool is installed in a virtual environment under ``~/.cache/swarmtest/mutation`` and gets two
minutes. `--quick` takes a sample of our mutants, and of the tools only mutmut, the fastest of them
in full runs, on the mutants of one function. The last line is one JSON object.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from harness import arguments, cannot_measure, cpu_seconds, print_figures, print_table, progress
from mutation_peers import PEERS, QUICK_PEERS, Measured, NotInstalled, project
from mutation_schemata import measured

from swarmtest.mutate.kill_matrix import KillMatrix
from swarmtest.mutate.pytest_suites import mutate_pytest

LONGEST = 120.0  # seconds of wall time for a peer; what it has judged by then counts
QUICK_LONGEST = 600.0  # it has few mutants to judge, and gets to its end
QUICK_SAMPLE = 40


def ours(name: str, place: Path, **options: object) -> tuple[Measured, KillMatrix]:
    """One run of swarmtest."""
    progress(name)
    start = cpu_seconds()
    with contextlib.chdir(place):
        matrix = mutate_pytest(["tests"], ["src/red_black.py"], **options)  # type: ignore[arg-type]
    return Measured(name, len(matrix.mutants), cpu_seconds() - start, True), matrix


def verdicts(matrix: KillMatrix) -> dict[str, bool]:
    """Which mutants are killed."""
    killed = zip(matrix.mutants, matrix.is_killed.tolist(), strict=True)
    return {mutant.id: bool(dead) for mutant, dead in killed}


def peers(quick: bool) -> list[Measured]:
    """The other tools, those that are here or can be installed."""
    found = []
    for peer in QUICK_PEERS if quick else PEERS:
        progress(f"{peer.name} is installed, unless that was done before, and run")
        try:
            peer.install()
        except NotInstalled as problem:
            print(f"left out: {problem}")
            continue
        found.append(peer.measure(QUICK_LONGEST if quick else LONGEST))
    return found


def main() -> None:
    """Measure, and print a table and the figures."""
    quick = arguments(__doc__ or "").quick
    os.environ.pop("PYTEST_ADDOPTS", None)
    with project() as place:
        sample = QUICK_SAMPLE if quick else None
        first, matrix = ours("swarmtest, first kill", place, sample=sample)
        alone, careful = ours(
            "swarmtest, a fork per mutant", place, mutants_per_fork=1, sample=sample
        )
        full, whole = ours("swarmtest, whole matrix", place, first_kill=False, sample=sample)
    ways = measured(every=20 if quick else 1)
    others = peers(quick)
    judged = [one for one in others if one.mutants]
    if not judged:
        cannot_measure("there is no other tool to compare with: pip install mutmut")
    rows = [
        (one.tool, one.mutants, f"{one.seconds:.1f}", f"{one.rate:.2f}", "" if one.whole else "cut")
        for one in (first, alone, full, *others)
    ]
    print_table(("tool", "mutants", "CPU s", "mutants/s", ""), rows)
    best = max(judged, key=lambda one: one.rate)
    runs = int((whole.outcomes > 0).sum())
    same = verdicts(careful)
    figures: dict[str, object] = {
        "mutants": first.mutants,
        "tests": len(matrix.tests),
        "score": round(matrix.score, 4),
        "mutants_per_second": round(first.rate, 2),
        "mutants_per_second_fork_per_mutant": round(alone.rate, 2),
        "mutants_per_second_whole_matrix": round(full.rate, 2),
        "runs_per_second_whole_matrix": round(runs / full.seconds, 1),
        "not_switchable": len(matrix.not_switchable),
        "differing_verdicts": sum(
            dead != same[one] for found in (matrix, whole) for one, dead in verdicts(found).items()
        ),
        "minimal_tests": len(whole.minimal_tests),
        "minimal_mutants": len(whole.minimal_mutants),
        "distinct": len(whole.distinct),
        "at_import": sum(not mutant.function for mutant in matrix.mutants),
        "schemata_vs_swap": round(ways.schemata / ways.swap, 2),
        "schemata_slowdown": round(ways.schemata_slowdown, 2),
        "swap_slowdown": round(ways.swap_slowdown, 2),
        "schemata_differing": ways.differing,
        "best_peer": best.tool,
        "best_peer_mutants_per_second": round(best.rate, 3),
        "vs_best_peer": round(first.rate / best.rate, 1),
    }
    print_figures(figures)


if __name__ == "__main__":
    main()
