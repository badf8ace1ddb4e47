"""Merging targets exactly, beside the papers' randomised merging and beside Z3.

    python benchmarks/merging.py [--quick] [--no-z3]

Three kinds of targets:

- a real program: lines of Python's `_pydecimal`, each hit by 2 to 30% of the tests of an undirected
  campaign, with the triggers and suppressors that the campaign shows (61 features);
- as in the papers: "most targets have few (< 3) triggers and suppressors" (section 4.2), of 40
  features of which some matter to many targets;
- dense: every one of 40 features triggers or suppresses a target with probability 0.1 each, which
  no real program does; here only bounds can be expected from 100 targets on.

The papers' algorithm 2 has 10,000 trials, or as many as fit a few seconds; the column says how
many. Z3 gets two formulations and a time limit per instance: integers with an objective, which is
how one writes it down first, and Booleans with falling numbers of colours and symmetry breaking,
the best that we know to do. "solved" is found and proven within the limit. All seconds are CPU
time, medians over instances. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import importlib
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import cpu_seconds, print_figures, print_table, progress

from swarmtest import Campaign, open_store
from swarmtest.analysis.role_cells import ROLES, SUPPRESSOR, TRIGGER
from swarmtest.coverage.options import CoverageOptions
from swarmtest.roles.study import Study
from swarmtest.strategies.directed.aim import Aim, Conflicts, Goal, members
from swarmtest.strategies.directed.colouring import first_fit
from swarmtest.strategies.directed.merging import (
    merge_at_random,
    merged_aggressively,
    without_subsumed,
)

SIZES = (10, 20, 40, 100, 200, 400)
FEATURES = 40


@dataclass(frozen=True)
class Effort:
    instances: int
    campaign_tests: int
    random_seconds: float
    z3_seconds: float
    z3_largest: int
    """Beyond so many targets Z3 is not asked."""
    dense_largest: int
    """Dense conflicts of more targets are left out: the exact search takes all its time."""


FULL = Effort(5, 5_000, 10.0, 20.0, 100, 400)
QUICK = Effort(2, 1_000, 0.5, 2.0, 40, 40)


# Targets.


def real_aims(tests: int) -> list[Aim]:
    """What an undirected campaign tells about the lines of decimal arithmetic."""
    subject = f"{Path(__file__).parent / 'decimal_machine.py'}:DecimalMachine"
    options = CoverageOptions(kinds=("line",), cover=("_pydecimal",))
    store = open_store(":memory:")
    outcome = Campaign(subject, "coin", tests, store=store, workers=1, coverage=options).run()
    table = Study(store, [outcome.campaign]).table("line")
    names = np.array(table.features)
    trigger, suppressor = ROLES.index(TRIGGER), ROLES.index(SUPPRESSOR)
    return [
        Aim(
            (Goal(str(target)),),
            frozenset(names[codes == trigger].tolist()),
            frozenset(names[codes == suppressor].tolist()),
        )
        for target, codes, hits in zip(table.targets, table.codes, table.hits, strict=True)
        if 0.02 * tests <= hits <= 0.3 * tests
    ]


def papers_aims(count: int, seed: int) -> list[Aim]:
    """Few triggers and suppressors each; some features matter to many targets."""
    rng = random.Random(seed)
    names = [f"f{i}" for i in range(FEATURES)]
    weights = [1 / (i + 1) ** 0.7 for i in range(FEATURES)]
    triggering, suppressing = rng.sample(names, FEATURES), rng.sample(names, FEATURES)
    found = []
    for number in range(count):
        triggers = set(rng.choices(triggering, weights, k=rng.choice((1, 1, 1, 2, 2, 3))))
        suppressors = set(rng.choices(suppressing, weights, k=rng.choice((0, 0, 1, 1, 2, 2, 3))))
        found.append(_aim(number, triggers, suppressors - triggers))
    return found


def dense_aims(count: int, seed: int) -> list[Aim]:
    """Roles by chance: a tenth of the features trigger, a tenth suppress."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        draws = {f"f{i}": rng.random() for i in range(FEATURES)}
        triggers = {name for name, draw in draws.items() if draw < 0.1}
        suppressors = {name for name, draw in draws.items() if draw >= 0.9}
        found.append(_aim(number, triggers, suppressors))
    return found


def _aim(number: int, triggers: set[str], suppressors: set[str]) -> Aim:
    return Aim((Goal(f"line:x:{number}"),), frozenset(triggers), frozenset(suppressors))


# The others.


@dataclass(frozen=True)
class Measured:
    size: int | None
    """None: no answer in time."""
    seconds: float
    trials: int = 0


def at_random(aims: Sequence[Aim], seconds: float) -> Measured:
    """The papers' algorithm, with 10,000 trials if they fit the time."""
    few = 20
    start = cpu_seconds()
    merge_at_random(aims, few)
    each = (cpu_seconds() - start) / few
    trials = max(few, min(10_000, int(seconds / max(each, 1e-9))))
    start = cpu_seconds()
    size = len(merge_at_random(aims, trials))
    return Measured(size, cpu_seconds() - start, trials)


def z3_integers(z3: Any, neighbours: Sequence[int], seconds: float) -> int | None:
    """A colour per target, all below a number that is minimised."""
    solver = z3.Optimize()
    solver.set("timeout", int(seconds * 1000))
    colours = [z3.Int(f"colour{v}") for v in range(len(neighbours))]
    count = z3.Int("count")
    for vertex, colour in enumerate(colours):
        solver.add(colour >= 0, colour < count, colour <= vertex)
        solver.add([colour != colours[u] for u in members(neighbours[vertex]) if u < vertex])
    solver.minimize(count)
    if solver.check() != z3.sat:
        return None
    found: int = solver.model()[count].as_long()
    return found


def z3_booleans(z3: Any, neighbours: Sequence[int], seconds: float) -> int | None:
    """One Boolean per target and colour; ever fewer colours until that is impossible."""
    count = len(first_fit(neighbours, range(len(neighbours))))
    deadline = cpu_seconds() + seconds
    solver = z3.SolverFor("QF_FD")
    has = [[z3.Bool(f"has{v}_{c}") for c in range(count)] for v in range(len(neighbours))]
    for vertex, row in enumerate(has):
        solver.add(z3.Or(row[: vertex + 1]), *[z3.Not(each) for each in row[vertex + 1 :]])
        for other in members(neighbours[vertex]):
            if other < vertex:
                solver.add(
                    [z3.Or(z3.Not(a), z3.Not(b)) for a, b in zip(row, has[other], strict=True)]
                )
    while count:
        left = deadline - cpu_seconds()
        if left <= 0:
            return None
        solver.add([z3.Not(row[count - 1]) for row in has])
        solver.set("timeout", int(left * 1000))
        answer = solver.check()
        if answer == z3.unknown:
            return None
        if answer == z3.unsat:
            return count
        count -= 1
    return count


Z3_WAYS: dict[str, Callable[[Any, Sequence[int], float], int | None]] = {
    "Z3 integers": z3_integers,
    "Z3 Booleans": z3_booleans,
}


def by_z3(z3: Any, way: str, aims: Sequence[Aim], seconds: float) -> Measured:
    neighbours = Conflicts.between(without_subsumed(aims)).neighbours
    start = cpu_seconds()
    size = Z3_WAYS[way](z3, neighbours, seconds)
    return Measured(size, cpu_seconds() - start)


# The table.


@dataclass(frozen=True)
class Row:
    """What came of all instances of one kind and size."""

    kind: str
    targets: int
    kept: list[int]
    sizes: list[int]
    lower: list[int]
    seconds: list[float]
    random: list[Measured]
    z3: dict[str, list[Measured]]

    @property
    def proven(self) -> int:
        return sum(size == low for size, low in zip(self.sizes, self.lower, strict=True))

    @property
    def excess(self) -> float:
        """How many merged aims more the randomised algorithm has, on average."""
        pairs = zip(self.random, self.sizes, strict=True)
        return statistics.mean((one.size or 0) - size for one, size in pairs)

    def solved(self, way: str) -> int:
        return sum(one.size is not None for one in self.z3.get(way, []))

    def cells(self) -> list[str]:
        return [
            self.kind,
            str(self.targets),
            f"{statistics.mean(self.kept):.0f}",
            _range(self.sizes),
            _range(self.lower),
            f"{self.proven}/{len(self.sizes)}",
            f"{statistics.median(self.seconds):.3f}",
            _range([one.size or 0 for one in self.random]),
            f"{statistics.median(one.trials for one in self.random):.0f}",
            f"{statistics.median(one.seconds for one in self.random):.2f}",
            *(self._z3_cell(way) for way in Z3_WAYS),
        ]

    def _z3_cell(self, way: str) -> str:
        found = self.z3.get(way)
        if not found:
            return "-"
        seconds = statistics.median(one.seconds for one in found)
        return f"{self.solved(way)}/{len(found)} {seconds:.1f} s"


HEAD = (
    "targets",
    "n",
    "kept",
    "exact",
    "at least",
    "proven",
    "CPU s",
    "random",
    "trials",
    "CPU s",
    "Z3 integers",
    "Z3 Booleans",
)


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}-{high}"


def measured(kind: str, instances: Sequence[Sequence[Aim]], effort: Effort, z3: Any) -> Row:
    row = Row(kind, len(instances[0]), [], [], [], [], [], {})
    for aims in instances:
        start = cpu_seconds()
        found = merged_aggressively(aims)
        row.seconds.append(cpu_seconds() - start)
        row.kept.append(len(without_subsumed(aims)))
        row.sizes.append(len(found.aims))
        row.lower.append(found.lower_bound)
        row.random.append(at_random(aims, effort.random_seconds))
        if z3 is not None and row.targets <= effort.z3_largest:
            for way in Z3_WAYS:
                one = by_z3(z3, way, aims, effort.z3_seconds)
                row.z3.setdefault(way, []).append(one)
                assert one.size in (None, len(found.aims)) or not found.proven, "Z3 disagrees"
    return row


def rows(effort: Effort, z3: Any) -> list[Row]:
    progress(f"an undirected campaign of {effort.campaign_tests:,} tests")
    real = real_aims(effort.campaign_tests)
    found = []
    for kind in ("a real program", "as in the papers", "dense"):
        for count in SIZES:
            if kind == "a real program" and count > len(real):
                continue
            if kind == "dense" and count > effort.dense_largest:
                continue
            instances = []
            for seed in range(effort.instances):
                if kind == "a real program":
                    instances.append(random.Random(seed).sample(real, count))
                else:
                    make = dense_aims if kind == "dense" else papers_aims
                    instances.append(make(count, seed))
            found.append(measured(kind, instances, effort, z3))
            progress(f"{kind}, {count} targets: done")
    return found


def figures(found: Sequence[Row], quick: bool, z3: Any) -> dict[str, object]:
    realistic = {row.targets: row for row in found if row.kind == "as in the papers"}
    dense = {row.targets: row for row in found if row.kind == "dense"}
    real = [row for row in found if row.kind == "a real program"]
    solved = {
        f"z3_{way.split()[1].lower()}_solved_40": realistic[40].solved(way) for way in Z3_WAYS
    }
    hard = {}
    if 400 in dense:
        hard = {
            "proven_share_dense_100": dense[100].proven / len(dense[100].sizes),
            "random_excess_dense_400": round(dense[400].excess, 2),
        }
    return {
        "exact_100_seconds": round(max(realistic[100].seconds), 4),
        "exact_400_seconds": round(max(realistic[400].seconds), 4),
        "exact_real_seconds": round(max(max(row.seconds) for row in real), 4),
        "proven_share_100": realistic[100].proven / len(realistic[100].sizes),
        "proven_share_400": realistic[400].proven / len(realistic[400].sizes),
        "proven_share_real": sum(r.proven for r in real) / sum(len(r.sizes) for r in real),
        "random_excess_100": round(realistic[100].excess, 2),
        "random_excess_400": round(realistic[400].excess, 2),
        **hard,
        "instances": len(realistic[40].sizes),
        **(solved if z3 is not None else {}),
        "z3": z3 is not None,
        "quick": quick,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="under two minutes")
    parser.add_argument("--no-z3", action="store_true")
    given = parser.parse_args()
    effort = QUICK if given.quick else FULL
    try:
        z3 = None if given.no_z3 else importlib.import_module("z3")
    except ImportError:
        z3 = None
        print("Z3 is not installed: pip install z3-solver")
    found = rows(effort, z3)
    print()
    print_table(HEAD, [row.cells() for row in found])
    print(
        f"kept: after subsumption; Z3: solved of all within {effort.z3_seconds:g} s; -: not asked"
    )
    print_figures(figures(found, given.quick, z3))


if __name__ == "__main__":
    main()
