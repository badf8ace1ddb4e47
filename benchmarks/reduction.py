"""Reduction: oracle calls beside other reducers, and what a test loses that is not kept whole.

    python benchmarks/reduction.py [--quick] [--work DIR] [--peers NAMES] [--no-questions]

First part. The same inputs for swarmtest's reducer, textbook ddmin, picire, lithium, Hypothesis's
shrinker, shrinkray and cvise, each at its best setting: how often each asks, and what it leaves.
Peers run in environments of their own in the working directory; --quick takes only what is there
already. shrinkray and cvise start a process for each question, so they get one seed; on the C
program they also rewrite what is left, which no reducer that only removes can do: their sizes are
in the table, not in the figures.

`calls_vs_ddmin` and `calls_vs_best_peer`: our calls until what is left is as small as what the
other leaves (all our calls, with the check that no part can go, if we end with the same), over all
the calls of the other; the geometric mean over the inputs; the best peer is the one with the fewest
calls. `total_calls_vs_best_peer` takes all our calls, also those that make it smaller than the
other's. `size_vs_best_peer`: our final size over the smallest of any peer. What parts need is known
for one input, and only our reducer can be told: that is a line of its own, not in the figures.

Second part: the questions RQ1-RQ4 of the dissertation's chapter 3, on a red-black tree in Python
(lines and mutants) and on gzip (lines). The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "reduction_peers"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "reduction_subjects"))

from harness import cpu_seconds, print_figures, print_table
from inputs import CSMITH_SEEDS, ROWS, missing_for_c
from native_subjects import Unavailable
from questions import COVERAGE, MUTANTS, Study

from swarmtest.reduction import Progress, Reducer

WORK = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "swarmtest" / "reduction"
HERE = Path(__file__).resolve().parent
OURS, TOLD, DDMIN = "swarmtest", "swarmtest, told the needs", "ddmin"
PACKAGES = {
    "picire": "picire",
    "lithium": "lithium-reducer",
    "hypothesis": "hypothesis",
    "shrinkray": "shrinkray",
}
SLOW = ("shrinkray", "cvise")
C_ROW = "C program, lines"
BYTES_ROW = "3,500 bytes, 12 needed"


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    seeds: int
    hypothesis_seeds: int
    """It takes seconds of CPU time for each input."""
    slow_seeds: int
    """Of those that start a process for each question."""
    rows: tuple[str, ...]
    tests: int
    """Of each subject in the second part."""


QUICK = Size(5, 0, 0, tuple(row for row in ROWS if row != C_ROW), 2)
FULL = Size(30, 6, 1, tuple(ROWS), 20)


@dataclass(frozen=True)
class Outcome:
    """What a reducer did with one input."""

    calls: int
    size: int
    bytes: int
    cpu: float
    complete: bool = True
    trace: tuple[tuple[int, int], ...] = ()
    """Ours: calls and the size that was reached with them."""

    def calls_for(self, size: int) -> int:
        """How many calls it took to come down to a size; all of them if that is the last."""
        if size <= self.size:
            return self.calls
        return next((calls for calls, left in self.trace if left <= size), self.calls)


def ours(row: str, seed: int, told: bool = False) -> Outcome:
    """`told`: the reducer knows which parts need which; others cannot be told."""
    given = ROWS[row](seed)
    needs = given.needs if told else ()
    trace: list[tuple[int, int]] = []

    def note(progress: Progress) -> None:
        if not trace or trace[-1][1] > progress.size:
            trace.append((progress.calls, progress.size))

    begun = cpu_seconds()
    found = Reducer(given.parts, given.holds, needs=needs, on_progress=note).run()
    cpu = cpu_seconds() - begun
    return Outcome(
        found.calls, len(found.parts), sum(map(len, found.parts)), cpu, trace=tuple(trace)
    )


def theirs(python: Path, peer: str, row: str, seed: int) -> Outcome | None:
    """What a peer did; None if it refused."""
    command = [str(python), str(HERE / "reduction_peers" / "run_peer.py"), peer, row, str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def environments(names: Sequence[str], work: Path, install: bool) -> dict[str, Path]:
    """The Python that each peer runs in; says which are not here."""
    found = {DDMIN: Path(sys.executable)}
    if not install:
        print("a quick run leaves out hypothesis, shrinkray and cvise, and the C program")
        names = [name for name in names if name in ("picire", "lithium")]
    for peer in (name for name in names if name in PACKAGES):
        python = work / f"venv-{peer}" / "bin" / "python"
        if not python.exists() and install:
            _install(python, PACKAGES[peer])
        if python.exists():
            found[peer] = python
        else:
            print(f"{peer} is not installed and left out: a run without --quick installs it")
    if "cvise" in names and shutil.which("cvise"):
        found["cvise"] = Path(sys.executable)
    elif "cvise" in names:
        print("cvise is not installed and left out: apt-get install cvise")
    return found


def _install(python: Path, package: str) -> None:
    directory = python.parents[1]
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    done = subprocess.run([str(python), "-m", "pip", "install", "-q", package], capture_output=True)
    if done.returncode:
        python.unlink()


def compare(size: Size, pythons: dict[str, Path]) -> dict[str, dict[str, list[Outcome]]]:
    """All inputs, all reducers."""
    rows = [row for row in size.rows if row != C_ROW or not missing_for_c()]
    if C_ROW in size.rows and missing_for_c():
        print(f"no C program to reduce: apt-get install {missing_for_c()}")
    found: dict[str, dict[str, list[Outcome]]] = {}
    for row in rows:
        of = found[row] = {}
        seeds = len(CSMITH_SEEDS) if row == C_ROW else size.seeds
        of[OURS] = [ours(row, seed) for seed in range(seeds)]
        if ROWS[row](0).needs:
            of[TOLD] = [ours(row, seed, told=True) for seed in range(seeds)]
        for peer, python in pythons.items():
            if peer == "hypothesis" and row in (BYTES_ROW, C_ROW):
                continue  # refuses: too large
            most = {"hypothesis": size.hypothesis_seeds, **dict.fromkeys(SLOW, size.slow_seeds)}
            count = min(seeds, most.get(peer, seeds))
            outcomes = [theirs(python, peer, row, seed) for seed in range(count)]
            known = [outcome for outcome in outcomes if outcome is not None]
            if known:
                of[peer] = known
        print(f"  {row}: done", file=sys.stderr, flush=True)
    return found


def mean(outcomes: Sequence[Outcome], of: Callable[[Outcome], float]) -> float:
    return statistics.mean(map(of, outcomes))


def comparable(row: str, of: dict[str, list[Outcome]]) -> dict[str, list[Outcome]]:
    """The peers that only remove parts, as we do."""
    others = {peer: outcomes for peer, outcomes in of.items() if peer not in (OURS, TOLD)}
    if row == C_ROW:
        others = {peer: outcomes for peer, outcomes in others.items() if peer not in SLOW}
    return others


def calls_ratio(mine: list[Outcome], other: list[Outcome]) -> float:
    """Our calls for what the other leaves, over its calls."""
    pairs = list(zip(mine, other, strict=False))
    needed = sum(a.calls_for(b.size) for a, b in pairs)
    return needed / sum(b.calls for _, b in pairs)


def total_ratio(mine: list[Outcome], other: list[Outcome]) -> float:
    """All our calls over all of the other's, whatever is left."""
    pairs = list(zip(mine, other, strict=False))
    return sum(a.calls for a, _ in pairs) / sum(b.calls for _, b in pairs)


def print_comparison(found: dict[str, dict[str, list[Outcome]]]) -> None:
    names = list(dict.fromkeys(name for of in found.values() for name in of))
    for title, measure in (("calls (mean)", "calls"), ("parts left", "size"), ("bytes", "bytes")):
        rows = []
        for name in names:
            cells = []
            for of in found.values():
                value = mean(of[name], attrgetter(measure)) if name in of else math.nan
                more = name in of and not all(o.complete for o in of[name])
                cells.append(f"{'> ' if more else ''}{value:,.1f}" if name in of else "-")
            rows.append((name, *cells))
        print_table((title, *found), rows)
        print()


def comparison_figures(found: dict[str, dict[str, list[Outcome]]]) -> dict[str, object]:
    best: dict[str, float] = {}
    ddmin: dict[str, float] = {}
    sizes: dict[str, float] = {}
    totals: dict[str, float] = {}
    for row, of in found.items():
        others = comparable(row, of)
        ddmin[row] = calls_ratio(of[OURS], others[DDMIN])
        peers = {peer: o for peer, o in others.items() if peer != DDMIN} or others
        fewest = min(peers, key=lambda peer: mean(peers[peer], lambda o: o.calls))
        best[row] = calls_ratio(of[OURS], peers[fewest])
        totals[row] = total_ratio(of[OURS], peers[fewest])
        mine = mean(of[OURS], lambda o: o.size)
        sizes[row] = mine / min(mean(o, lambda o: o.size) for o in others.values())
    return {
        "calls_vs_ddmin": round(statistics.geometric_mean(ddmin.values()), 3),
        "calls_vs_best_peer": round(statistics.geometric_mean(best.values()), 3),
        "total_calls_vs_best_peer": round(statistics.geometric_mean(totals.values()), 3),
        "size_vs_best_peer": round(statistics.geometric_mean(sizes.values()), 3),
        "calls_vs_best_peer_by_input": {row: round(value, 3) for row, value in best.items()},
        "total_calls_vs_best_peer_by_input": {r: round(value, 3) for r, value in totals.items()},
        "size_vs_best_peer_by_input": {row: round(value, 3) for row, value in sizes.items()},
        "calls": {
            row: {name: round(mean(o, lambda o: o.calls), 1) for name, o in of.items()}
            for row, of in found.items()
        },
    }


def studies(size: Size, work: Path, build: bool) -> list[Study]:
    """The subjects of the second part that are here; says which are not, and why."""
    from gzip_bytes import GzipBytes, built_gzip
    from red_black_calls import RedBlackCalls, minimal_of

    found = [Study(RedBlackCalls(), range(size.tests), True, minimal_of).run()]
    try:
        gzip = GzipBytes(built_gzip(work, build))
    except Unavailable as problem:
        print(f"gzip is left out: {problem}")
        return found
    tests = range(max(1, size.tests // 4))
    found.append(Study(gzip, tests, has_mutants=False).run())
    gzip.close()
    return found


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def print_study(study: Study) -> None:
    print(f"{study.subject.title}: {len(study.seeds)} tests; medians in percent")
    rows = [
        (
            f"{kind} = {level}",
            *(
                percent(study.median(kind, level, name))
                for name in ("srr", "cpr", "mpr", "random_cpr", "random_mpr")
            ),
            f"{study.median(kind, level, 'calls'):,.0f}",
        )
        for kind, level in study.levels()
    ]
    print_table(("kept", "SRR", "CPR", "MPR", "random CPR", "random MPR", "calls"), rows)
    for kind in (COVERAGE, MUTANTS):
        for name in ("srr", "cpr", "mpr"):
            if (tau := study.tau(kind, name)) is not None and not math.isnan(tau[0]):
                print(
                    f"Kendall's tau of {kind} and {name.upper()}: {tau[0]:.2f} (p = {tau[1]:.2g})"
                )
    if (gain := study.largest_gain()) is not None:
        print(f"the largest gain in size is between C = {gain[1]} and C = {gain[0]}")
    print()


def study_figures(study: Study) -> dict[str, object]:
    names = ("srr", "cpr", "mpr", "random_cpr", "random_mpr")
    medians = {
        f"{kind} {level}": {name: study.median(kind, level, name) for name in names}
        for kind, level in study.levels()
    }
    taus = {
        f"{kind} {name}": found[0]
        for kind in (COVERAGE, MUTANTS)
        for name in ("srr", "mpr")
        if (found := study.tau(kind, name)) is not None and not math.isnan(found[0])
    }
    gain = study.largest_gain()
    return {"medians": medians, "tau": taus, "largest_gain": list(gain) if gain else None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, under a minute")
    parser.add_argument("--work", type=Path, default=WORK, help="where peers and builds are kept")
    parser.add_argument("--peers", default=",".join((*PACKAGES, "cvise")), help="default: all")
    parser.add_argument("--no-questions", action="store_true", help="the first part only")
    chosen = parser.parse_args()
    size = QUICK if chosen.quick else FULL
    pythons = environments(chosen.peers.split(","), chosen.work, install=not chosen.quick)
    found = compare(size, pythons)
    print()
    print_comparison(found)
    figures = comparison_figures(found)
    if not chosen.no_questions:
        done = studies(size, chosen.work, build=not chosen.quick)
        for study in done:
            print_study(study)
        figures["questions"] = {study.subject.title: study_figures(study) for study in done}
    print_figures(figures)


if __name__ == "__main__":
    main()
