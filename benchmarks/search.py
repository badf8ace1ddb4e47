"""The experiments of "A platform for search-based testing of concurrent software" in shape.

    python benchmarks/search.py [--quick] [--exploration STORE:CAMPAIGN ...] [--pictures DIRECTORY]

Tables 3 and 4 and figures 2 to 5 of the paper, on explorations of whole spaces. Without
`--exploration` two are made here:

- threads: the paper's Airlines with real threads, of which one in four forgets the lock, under
  noise (none, yield, sleep) of some frequency, with and without a tiny switch interval;
- turns: the same program as generators that take turns, so that every run repeats.

Targets are pairs and triples of places that followed each other, with where the thread changed.
Any other exploration of a search can be put in their place: `swarmtest search run ... --store S`.
Table 4 counts as the paper does: hill climbing until its first top, random search for as many
points as that took on average, how many of 100 searches found the best point. The last line is one
JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import cpu_seconds, print_figures, print_table

from swarmtest import (
    AfterRuns,
    Choice,
    Exploration,
    Flag,
    FunctionExecutor,
    Integer,
    RepeatedExecutor,
    Search,
    SearchSpace,
    Test,
    best_sequence,
    collapsed,
    compare_engines,
    correlations,
    open_store,
)
from swarmtest.report.search import shoulders_of
from swarmtest.report.search_svg import collapsed_svg, growth_svg
from swarmtest.search.sequences import random_sequence

SEATS = 20
NOISES = ("none", "yield", "sleep")


@dataclass(frozen=True)
class Effort:
    step: int
    """Between frequencies, of 1000."""
    sellers: tuple[int, ...]
    runs: int
    repeats: int
    grown: int
    """Runs of the points whose growth is looked at."""


FULL = Effort(step=100, sellers=(2, 4, 8, 16), runs=20, repeats=100, grown=100)
QUICK = Effort(step=250, sellers=(2, 4, 8), runs=4, repeats=30, grown=30)


# The program under test.


class Sites:
    """Which places followed each other, and whether the thread changed between them."""

    def __init__(self) -> None:
        self._last: list[tuple[object, str]] = []
        self.hits: set[str] = set()

    def pass_by(self, who: object, site: str) -> None:
        last = self._last = [*self._last[-2:], (who, site)]
        for kind, length in (("pair", 2), ("triple", 3)):
            steps = last[-length:]
            if len(steps) == length:
                marks = ["|" if a[0] != b[0] else "," for a, b in itertools.pairwise(steps)]
                words = [mark + step[1] for mark, step in zip(["", *marks], steps, strict=True)]
                self.hits.add(f"{kind}:{''.join(words)}")


def sell_in_threads(
    sellers: int, noise: str, frequency: int, switch: bool, seed: int
) -> dict[str, Any]:
    """Airlines with real threads: lost updates sell a seat twice."""
    rng, sites = random.Random(seed), Sites()
    left, sold, lock = [SEATS], [], threading.Lock()

    def at(site: str) -> None:
        sites.pass_by(threading.get_ident(), site)
        if noise != "none" and rng.randrange(1000) < frequency:
            time.sleep(0.0 if noise == "yield" else 0.00002)

    def seller(careful: bool) -> None:
        who = "c" if careful else "x"
        while True:
            if careful:
                at("lock")
                lock.acquire()
            try:
                at(f"{who}-read")
                seats = left[0]
                if seats <= 0:
                    return
                at(f"{who}-write")
                left[0] = seats - 1
                sold.append(1)
            finally:
                if careful:
                    lock.release()
                    at("unlock")

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6 if switch else before)
    try:
        threads = [threading.Thread(target=seller, args=(n % 4 != 3,)) for n in range(sellers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return {"oversold": len(sold) - SEATS, "hits": sites.hits}


def turns(flight: dict[str, Any], careful: bool) -> Iterator[str]:
    """A seller that gives way at each yield."""
    who = "c" if careful else "x"
    while True:
        if careful:
            while flight["lock"]:
                yield "wait"
            flight["lock"] = True
            yield "lock"
        left = flight["left"]
        yield f"{who}-read"
        if left <= 0:
            flight["lock"] = flight["lock"] and not careful
            return
        flight["left"] = left - 1
        flight["sold"] += 1
        yield f"{who}-write"
        if careful:
            flight["lock"] = False
            yield "unlock"


def sell_in_turns(
    sellers: int, noise: str, frequency: int, switch: bool, seed: int
) -> dict[str, Any]:
    """Airlines as generators: who is next is drawn from the seed."""
    rng, sites = random.Random(seed), Sites()
    flight = {"left": SEATS, "sold": 0, "lock": False}
    running = {n: turns(flight, n % 4 != 3) for n in range(sellers)}
    at = 0
    while running:
        site = next(running[at], "")
        if site:
            sites.pass_by(at, site)
        else:
            del running[at]
        chance = frequency if noise != "none" else 0
        if (
            not site
            or site == "wait"
            or rng.randrange(1000) < chance
            or (switch and rng.random() < 0.02)
        ):
            others = list(running)
            if noise == "sleep" and others:
                at = rng.choice(others)
            else:
                at = min(others, key=lambda n: (n - at - 1) % sellers, default=0)
    return {"oversold": flight["sold"] - SEATS, "hits": sites.hits}


SUBJECTS: dict[str, Callable[..., dict[str, Any]]] = {
    "threads": sell_in_threads,
    "turns": sell_in_turns,
}


# Explorations.


def space_of(
    name: str, effort: Effort, runs: int, frequencies: tuple[int, ...] = ()
) -> SearchSpace:
    test = RepeatedExecutor(FunctionExecutor(SUBJECTS[name], name), AfterRuns(runs))
    frequency = (
        Choice("frequency", frequencies, ordered=True)
        if frequencies
        else Integer("frequency", 0, 1000, effort.step)
    )
    return SearchSpace(
        [
            frequency,
            Choice("noise", NOISES),
            Flag("switch"),
            Choice("sellers", effort.sellers, ordered=True),
            Test("test", [name]),
        ],
        {name: test},
        forbid=["(noise == 'none') != (frequency == 0)"],
        name=name,
    )


def explored(space: SearchSpace, **options: Any) -> tuple[Exploration, float]:
    with open_store(":memory:") as store:
        start = cpu_seconds()
        outcome = Search(space, "random", store=store, **options).run()
        spent = cpu_seconds() - start
        return Exploration.load(store, outcome.campaign), spent


def recorded(text: str) -> Exploration:
    path, _, campaign = text.rpartition(":")
    with open_store(path, must_exist=True, read_only=True) as store:
        return Exploration.load(store, int(campaign))


# The paper's tables and figures.


def growth_table(name: str, effort: Effort, pictures: Path | None) -> list[list[object]]:
    """Figures 2 and 3: what a few points reach, run by run."""
    sellers = effort.sellers[-1]
    curves = []
    space = space_of(name, Effort(100, (sellers,), 1, 1, 1), effort.grown, (0, 600))
    exploration, _ = explored(space)
    rows: list[list[object]] = []
    for point in exploration.points:
        counts = exploration.growth([point])
        label = f"{point['noise']}{', switch' if point['switch'] else ''}"
        curves.append((label, counts))
        shoulders = [end - start for start, end in shoulders_of(counts, 1)]
        tenth = counts[len(counts) // 10 - 1]
        rows.append([name, label, counts[0], tenth, counts[-1], max(shoulders, default=0)])
    if pictures:
        picture = growth_svg(sorted(curves), f"{name}: figures 2 and 3", "targets reached")
        (pictures / f"growth_{name}.svg").write_text(picture)
    return sorted(rows, key=lambda row: str(row[1]))


def sequences(exploration: Exploration, repeats: int) -> tuple[int, float, int, float]:
    """Table 3 and figure 5: points and runs until everything is reached, best and random."""
    best = best_sequence(exploration)
    others = [random_sequence(exploration, seed) for seed in range(repeats)]
    points = statistics.median(len(one.steps) for one in others)
    runs = statistics.median(one.steps[-1].runs for one in others)
    return len(best.steps), points, best.steps[-1].runs, runs


def searches(exploration: Exploration, repeats: int) -> dict[str, float]:
    """Table 4: hill climbing until its first top, and random search for as many points."""
    (hill,) = compare_engines(exploration, ["climb:restarts=0"], "hits", repeats=repeats)
    points = max(1, round(hill.mean_points))
    chance, again = compare_engines(
        exploration, ["random", "climb"], "hits", points=points, repeats=repeats
    )
    return {
        "points": hill.mean_points,
        "hill": hill.found / repeats,
        "random": chance.found / repeats,
        "hill_restarts": again.found / repeats,
        "hill_best": hill.mean_best / hill.optimum,
        "random_best": chance.mean_best / chance.optimum,
    }


def draw(exploration: Exploration, pictures: Path) -> None:
    line = collapsed(exploration, "hits")
    text = collapsed_svg(line, f"{exploration.name}: figure 4")
    (pictures / f"space_{exploration.name}.svg").write_text(text)
    best, chance = best_sequence(exploration), random_sequence(exploration, 0)
    curves = [
        ("best sequence", exploration.growth(best.points)),
        ("random sequence", exploration.growth(chance.points)),
    ]
    text = growth_svg(curves, f"{exploration.name}: figure 5", "targets reached")
    (pictures / f"sequences_{exploration.name}.svg").write_text(text)


def replays_per_second(exploration: Exploration) -> tuple[float, float]:
    """Points per CPU second of searches of what is recorded, and of one that runs the tests."""
    start = cpu_seconds()
    (found,) = compare_engines(exploration, ["random"], "hits", repeats=20)
    replayed = sum(replay.points for replay in found.replays) / (cpu_seconds() - start)
    spent = sum(run.cpu_seconds for runs in exploration.runs.values() for run in runs)
    return replayed, len(exploration.points) / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smaller run, under a minute")
    parser.add_argument("--exploration", action="append", metavar="STORE:CAMPAIGN")
    parser.add_argument("--pictures", type=Path, metavar="DIRECTORY")
    options = parser.parse_args()
    effort = QUICK if options.quick else FULL
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    if options.exploration:
        explorations = [recorded(text) for text in options.exploration]
    else:
        explorations = [explored(space_of(name, effort, effort.runs))[0] for name in SUBJECTS]
    figures: dict[str, Any] = {"quick": options.quick, "subjects": {}}

    if not options.exploration:
        print(
            "Figures 2 and 3: targets after the first run, a tenth of the runs, and all of them\n"
        )
        rows = [row for name in SUBJECTS for row in growth_table(name, effort, options.pictures)]
        head = ("program", "noise", "first", "a tenth", "all", "longest shoulder")
        print_table(head, rows)
        print()

    table_3, table_4, dimensions = [], [], []
    for exploration in explorations:
        found: dict[str, Any] = {"points": len(exploration.points)}
        figures["subjects"][exploration.name] = found
        for kind in exploration.kinds:
            part = exploration.of_kind(kind)
            best, chance, best_runs, chance_runs = sequences(part, effort.repeats)
            total = len(part.reached())
            table_3.append(
                [exploration.name, kind, total, best, f"{chance:g}", best_runs, f"{chance_runs:g}"]
            )
            searched = searches(part, effort.repeats)
            table_4.append(
                [
                    exploration.name,
                    kind,
                    f"{searched['points']:.0f}",
                    *(f"{searched[name]:.0%}" for name in ("hill", "random", "hill_restarts")),
                    *(f"{searched[name]:.1%}" for name in ("hill_best", "random_best")),
                ]
            )
            found[kind] = {
                "targets": total,
                "best_sequence": best,
                "random_sequence": chance,
                "best_runs": best_runs,
                "random_runs": chance_runs,
                **searched,
            }
        explained = {one.dimension: one.explained for one in correlations(exploration, ["hits"])}
        found["explained"] = explained
        dimensions += [
            [exploration.name, name, f"{share:.1%}"] for name, share in explained.items()
        ]
        if options.pictures:
            draw(exploration, options.pictures)

    print("Table 3 and figure 5: points, and runs, until everything is reached\n")
    head = ("program", "targets", "all", "best", "random", "best runs", "random runs")
    print_table(head, table_3)
    print(f"\nTable 4: {effort.repeats} searches for the best point\n")
    hill = ("hill", "random", "hill, restarts", "hill: best, mean", "random: best, mean")
    print_table(("program", "targets", "points", *hill), table_4)
    print("\nFigure 4: what explains the targets reached, in the order of the picture\n")
    print_table(("program", "dimension", "explains"), dimensions)

    replayed, live = replays_per_second(explorations[0])
    print(f"\nreplayed {replayed:,.0f} points per CPU second; the tests themselves {live:,.0f}")
    ratios = [
        found[kind]["random_sequence"] / found[kind]["best_sequence"]
        for found in figures["subjects"].values()
        for kind in found
        if isinstance(found[kind], dict) and "best_sequence" in found[kind]
    ]
    figures["random_vs_best_min"] = min(ratios)
    figures["random_vs_best_max"] = max(ratios)
    figures["replay_vs_live"] = replayed / live
    print_figures(figures)


if __name__ == "__main__":
    main()
