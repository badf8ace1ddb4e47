"""Reduction: oracle calls beside other reducers, and what a test loses that is not kept whole.

    python benchmarks/reduction.py [--quick] [--work DIR] [--peers NAMES] [--no-questions]

First part. The same inputs for swarmtest's reducer, textbook ddmin, ddmin of complements, ProbDD,
picire, lithium, Hypothesis's shrinker, shrinkray and cvise, each at its best setting: how often
each asks, what it leaves, and its CPU time. Nobody is charged for asking the same twice. Peers run
in environments of their own in the working directory; --quick takes only what is there already.
shrinkray and cvise get one seed; no seed is one that our reducer's settings were chosen by. On the
C program those two also rewrite what is left, which no reducer that only removes can do: their
sizes are in the table, not in the figures.

`calls_vs_PEER` on an input: our calls until what is left is as small as what the peer leaves (all
our calls, with the check that no part can go, if we do not end smaller), over all the peer's calls.
`calls_vs_ddmin` is that for the textbook's; `calls_vs_best_peer` for the peer on each input for
which it is largest, that is, the one that is hardest to beat. `size_vs_best_peer`: our size over
the smallest of any peer. All are geometric means over the inputs. `total_calls_vs_best_peer`: all
our calls, also those that make it smaller, over those of the peer that asks least.
`calls_vs_each_peer` and `size_vs_each_peer` compare with one tool at a time, over all inputs.
`cpu_vs_best_peer`: CPU time over that of the quickest peer, on inputs where a question is a run of
something. What parts need is known for one input, and only our reducer can be told: that is a line
of its own, not in the figures.

Second part: the questions RQ1-RQ4 of the dissertation's chapter 3; see reduction_study.py. The last
line is one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "reduction_peers"))

from harness import cpu_seconds, print_figures, print_table
from inputs import CSMITH_SEEDS, ROWS, missing_for_c
from reduction_study import study

from swarmtest.reducer.reducer import Reducer, ReducerProgress

WORK = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "swarmtest" / "reduction"
HERE = Path(__file__).resolve().parent
OURS, TOLD, DDMIN = "swarmtest", "swarmtest, told the needs", "ddmin"
ALGORITHMS = (DDMIN, "ddmin, complements", "ProbDD")
"""Peers that are a few lines of ours, after the papers."""
PACKAGES = {
    "picire": "picire",
    "lithium": "lithium-reducer",
    "hypothesis": "hypothesis",
    "shrinkray": "shrinkray",
}
SLOW = ("shrinkray", "cvise")
C_ROW = "C program, lines"
FIRST_SEED = 5_000
"""The reducer's settings were chosen while looking at seeds 0 to 29 and 1,000 to 1,199."""
BYTES_ROW = "3,500 bytes, 12 needed"
RUNS_SOMETHING = (C_ROW, *(row for row in ROWS if "coverage" in row))


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    seeds: int
    hypothesis_seeds: int
    """It takes seconds of CPU time for each input."""
    slow_seeds: int
    """Of shrinkray and cvise."""
    rows: tuple[str, ...]


QUICK = Size(5, 0, 0, tuple(row for row in ROWS if row != C_ROW))
FULL = Size(30, 6, 1, tuple(ROWS))


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

    def note(progress: ReducerProgress) -> None:
        if not trace or trace[-1][1] > progress.size:
            trace.append((progress.calls, progress.size))

    begun = cpu_seconds()
    found = Reducer(given.parts, given.holds, needs=needs, on_progress=note).run()
    cpu = cpu_seconds() - begun
    return Outcome(
        found.calls, len(found.parts), sum(map(len, found.parts)), cpu, trace=tuple(trace)
    )


def theirs(python: Path, peer: str, row: str, seeds: range) -> list[Outcome]:
    """What a peer did with each; nothing if it refused."""
    script = HERE / "reduction_peers" / "run_peer.py"
    command = [str(python), str(script), peer, row, *map(str, seeds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return [Outcome(**json.loads(line)) for line in lines]


def environments(names: Sequence[str], work: Path, install: bool) -> dict[str, Path]:
    """The Python that each peer runs in; says which are not here."""
    found = dict.fromkeys(ALGORITHMS, Path(sys.executable))
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
            how = "a run without --quick installs it" if not install else "it cannot be installed"
            print(f"{peer} is left out: {how}")
    if "cvise" in names and shutil.which("cvise"):
        found["cvise"] = Path(sys.executable)
    elif "cvise" in names:
        print("cvise is not installed and left out: apt-get install cvise")
    return found


def _install(python: Path, package: str) -> None:
    own = _newer_python() if package == "shrinkray" else sys.executable
    if own is None:
        return
    subprocess.run([own, "-m", "venv", str(python.parents[1])], check=True)
    wanted = "shrinkray>=25" if package == "shrinkray" else package
    pip = [str(python), "-m", "pip", "install", "-q", "--only-binary", ":all:", wanted]
    done = subprocess.run(pip, capture_output=True)
    if done.returncode:
        python.unlink()


def _newer_python() -> str | None:
    """Older ones than 3.12 would get a shrinkray of years ago."""
    if sys.version_info >= (3, 12):
        return sys.executable
    runs = (
        name
        for name in ("python3.13", "python3.12")
        if shutil.which(name) and not subprocess.run([name, "-V"], capture_output=True).returncode
    )
    return next(runs, None)


def compare(size: Size, pythons: dict[str, Path]) -> dict[str, dict[str, list[Outcome]]]:
    """All inputs, all reducers."""
    rows = [row for row in size.rows if row != C_ROW or not missing_for_c()]
    if C_ROW in size.rows and missing_for_c():
        print(f"no C program to reduce: apt-get install {missing_for_c()}")
    found: dict[str, dict[str, list[Outcome]]] = {}
    for row in rows:
        of = found[row] = {}
        seeds = range(FIRST_SEED, FIRST_SEED + size.seeds)
        if row == C_ROW:
            seeds = range(min(size.seeds, len(CSMITH_SEEDS)))
        of[OURS] = [ours(row, seed) for seed in seeds]
        if ROWS[row](seeds[0]).needs:
            of[TOLD] = [ours(row, seed, told=True) for seed in seeds]
        for peer, python in pythons.items():
            if peer == "hypothesis" and row in (BYTES_ROW, C_ROW):
                continue  # refuses: too large
            most = {"hypothesis": size.hypothesis_seeds, **dict.fromkeys(SLOW, size.slow_seeds)}
            if outcomes := theirs(python, peer, row, seeds[: most.get(peer, len(seeds))]):
                of[peer] = outcomes
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


def size_ratio(mine: list[Outcome], other: list[Outcome]) -> float:
    pairs = list(zip(mine, other, strict=False))
    return sum(a.size for a, _ in pairs) / sum(b.size for _, b in pairs)


def cpu_ratio(mine: list[Outcome], other: list[Outcome]) -> float:
    pairs = list(zip(mine, other, strict=False))
    return sum(a.cpu for a, _ in pairs) / sum(b.cpu for _, b in pairs)


def print_comparison(found: dict[str, dict[str, list[Outcome]]]) -> None:
    names = list(dict.fromkeys(name for of in found.values() for name in of))
    measures = ("calls (mean)", "calls"), ("parts left", "size"), ("bytes left", "bytes")
    for title, measure in (*measures, ("CPU seconds", "cpu")):
        rows = []
        for name in names:
            cells = []
            for of in found.values():
                value = mean(of[name], attrgetter(measure)) if name in of else math.nan
                more = name in of and not all(o.complete for o in of[name])
                digits = ".2f" if measure == "cpu" else ",.1f"
                cells.append(f"{'> ' if more else ''}{value:{digits}}" if name in of else "-")
            rows.append((name, *cells))
        print_table((title, *found), rows)
        print()


def comparison_figures(found: dict[str, dict[str, list[Outcome]]]) -> dict[str, object]:
    best: dict[str, float] = {}
    hardest: dict[str, str] = {}
    ddmin: dict[str, float] = {}
    sizes: dict[str, float] = {}
    totals: dict[str, float] = {}
    cpu: dict[str, float] = {}
    for row, of in found.items():
        others = comparable(row, of)
        ratios = {peer: calls_ratio(of[OURS], o) for peer, o in others.items()}
        ddmin[row] = ratios[DDMIN]
        hardest[row] = max(ratios, key=lambda peer: ratios[peer])
        best[row] = ratios[hardest[row]]
        totals[row] = max(total_ratio(of[OURS], o) for o in others.values())
        sizes[row] = max(size_ratio(of[OURS], o) for o in others.values())
        if row in RUNS_SOMETHING:
            cpu[row] = max(cpu_ratio(of[OURS], o) for o in others.values())
    return {
        "calls_vs_ddmin": rounded_mean(ddmin),
        "calls_vs_best_peer": rounded_mean(best),
        "total_calls_vs_best_peer": rounded_mean(totals),
        "size_vs_best_peer": rounded_mean(sizes),
        "cpu_vs_best_peer": rounded_mean(cpu) if cpu else None,
        "calls_vs_each_peer": by_peer(found, calls_ratio),
        "size_vs_each_peer": by_peer(found, size_ratio),
        "best_peer": hardest,
        "calls_vs_best_peer_by_input": {row: round(value, 3) for row, value in best.items()},
        "total_calls_vs_best_peer_by_input": {r: round(value, 3) for r, value in totals.items()},
        "size_vs_best_peer_by_input": {row: round(value, 3) for row, value in sizes.items()},
        "cpu_vs_best_peer_by_input": {row: round(value, 3) for row, value in cpu.items()},
        "calls": {
            row: {name: round(mean(o, lambda o: o.calls), 1) for name, o in of.items()}
            for row, of in found.items()
        },
    }


def by_peer(
    found: dict[str, dict[str, list[Outcome]]],
    ratio: Callable[[list[Outcome], list[Outcome]], float],
) -> dict[str, float]:
    """For each peer alone: the mean over the inputs that it took."""
    ratios: dict[str, dict[str, float]] = {}
    for row, of in found.items():
        for peer, outcomes in comparable(row, of).items():
            ratios.setdefault(peer, {})[row] = ratio(of[OURS], outcomes)
    return {peer: rounded_mean(rows) for peer, rows in ratios.items()}


def rounded_mean(ratios: dict[str, float]) -> float:
    return round(statistics.geometric_mean(ratios.values()), 3)


def two_workers_speedup(seeds: int) -> float:
    """How much sooner two workers end, if each question takes 20 ms and no processor."""
    took = {1: 0.0, 2: 0.0}
    for workers, seed in itertools.product(took, range(seeds)):
        given = ROWS["200 calls, 15 needed"](seed)

        def asked(kept: Sequence[bytes], holds: Callable[..., bool] = given.holds) -> bool:
            time.sleep(0.02)
            return holds(kept)

        with ThreadPoolExecutor(workers) as pool:
            executor = pool if workers > 1 else None
            took[workers] += Reducer(given.parts, asked, executor=executor).run().seconds
    return took[1] / took[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, under a minute")
    parser.add_argument("--work", type=Path, default=WORK, help="where peers and builds are kept")
    parser.add_argument("--peers", default=",".join((*PACKAGES, "cvise")), help="default: all")
    parser.add_argument("--rows", default="", help="only inputs whose names contain this")
    parser.add_argument("--seeds", type=int, help="of each input, at most")
    parser.add_argument("--no-questions", action="store_true", help="the first part only")
    chosen = parser.parse_args()
    size = QUICK if chosen.quick else FULL
    rows = tuple(row for row in size.rows if chosen.rows in row)
    size = replace(size, rows=rows, seeds=min(size.seeds, chosen.seeds or size.seeds))
    pythons = environments(chosen.peers.split(","), chosen.work, install=not chosen.quick)
    found = compare(size, pythons)
    print()
    print_comparison(found)
    figures = comparison_figures(found)
    figures["two_workers_speedup"] = round(two_workers_speedup(3), 2)
    print(f"two workers end {figures['two_workers_speedup']} times as soon as one")
    print()
    if not chosen.no_questions:
        figures["questions"] = study(chosen.work, quick=chosen.quick)
    print_figures(figures)


if __name__ == "__main__":
    main()
