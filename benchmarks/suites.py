"""A campaign as a small suite: how many tests and steps, what they take, and what they keep.

One campaign on a red-black tree, watched for lines, branches and paths; in a full run also the
mutants that its tests kill. Beside our suites (exact cover, each test reduced) stand whole tests by
greedy and by exact cover, as many random tests as those, random tests of the time that our suite
takes (at least one; mean of 200 draws), and the whole campaign. Times are those of the campaign, in
proportion to the steps that are left, so that all rows are measured alike.

`kept_vs_random` is what our suite keeps by what random tests of the same time keep;
`time_vs_greedy` its time by that of whole tests by greedy. The last line is one JSON object.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import arguments, print_figures, print_table, progress

from swarmtest import open_store
from swarmtest.suite.suite import HitTable, read_table

DRAWS = 200
MACHINE = """
from red_black import RedBlackTree

from swarmtest import Machine, action, integers


class Tree(Machine):
    steps = STEPS

    def start(self):
        self.tree = RedBlackTree()

    @action(key=integers(0, 40))
    def insert(self, key):
        self.tree.insert(key)

    @action(key=integers(0, 40))
    def delete(self, key):
        self.tree.delete(key)

    @action(key=integers(0, 40))
    def contains(self, key):
        assert (key in self.tree) == (key in list(self.tree))

    @action
    def check(self):
        self.tree.check()
"""


@dataclass(frozen=True)
class Row:
    """One way to choose tests."""

    title: str
    tests: float
    steps: float
    seconds: float
    kept: float


def swarmtest(place: Path, *words: str) -> str:
    """What a command prints, in a process of its own: coverage begins before the import."""
    progress(" ".join(("swarmtest", *words)))
    program = [sys.executable, "-P", "-c", "from swarmtest.ui.cli import main; main()"]
    done = subprocess.run([*program, *words], cwd=place, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout


def suite(place: Path, title: str, *words: str) -> tuple[Row, dict[str, Any]]:
    """A suite by the command."""
    told: dict[str, Any] = json.loads(swarmtest(place, "suite", "--json", *words))
    tests = told["tests"]
    seconds = sum(one["seconds_before"] * one["size"] / one["before"] for one in tests)
    row = Row(title, len(tests), sum(one["size"] for one in tests), seconds, told["kept"])
    return row, told


def drawn(table: HitTable, title: str, *, tests: int = 0, seconds: float = 0.0) -> Row:
    """Random tests: so many, or as many as begin within a time; the mean of some draws."""
    rng = random.Random(1)
    rows = []
    for _ in range(DRAWS):
        order = rng.sample(range(len(table.tests)), len(table.tests))
        chosen: list[int] = []
        while order and (len(chosen) < tests or _seconds(table, chosen) < seconds):
            chosen.append(order.pop())
        steps = sum(table.tests[i].steps for i in chosen)
        kept = int(table.hits[chosen].any(0).sum())
        rows.append((len(chosen), steps, _seconds(table, chosen), kept))
    means = [statistics.mean(column) for column in zip(*rows, strict=True)]
    return Row(title, *means)


def _seconds(table: HitTable, chosen: list[int]) -> float:
    return sum(table.tests[i].seconds for i in chosen)


def main() -> None:
    quick = arguments(__doc__).quick
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        shutil.copy(Path(__file__).with_name("red_black.py"), place)
        (place / "tree_swarm.py").write_text(MACHINE.replace("STEPS", "25" if quick else "100"))
        tests = "60" if quick else "1000"
        kinds = "line,branch" if quick else "line,branch,path"
        watched = ["--coverage", kinds, "--cover", "red_black.py"]
        swarmtest(place, "run", "tree_swarm.py", "--tests", tests, *watched, "-q")
        if not quick:
            swarmtest(place, "mutate", "--sample", "40", "--tests", "100")
        patience = ("--reduce-time", "1s") if quick else ()
        ours, told = suite(place, "ours: exact, reduced", *patience)
        fewer = ("--keep", "95", "--keep-parts", "90", *patience)
        less, _ = suite(place, "ours, 95% by tests, 90% of parts", *fewer)
        greedy, _ = suite(place, "greedy, whole tests", "--method", "greedy", "--no-reduce")
        exact, _ = suite(place, "exact, whole tests", "--no-reduce")
        with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
            table = read_table(store, 1)
            steps = sum(trial.steps for trial in store.trials(1))
    all_tests = Row(
        "whole campaign", told["trials"], steps, told["trials_seconds"], told["targets"]
    )
    rows = [
        all_tests,
        drawn(table, "random, as many as exact", tests=int(exact.tests)),
        greedy,
        exact,
        drawn(table, "random, the time of ours", seconds=ours.seconds),
        ours,
        less,
    ]
    cells = [
        (
            row.title,
            f"{row.tests:,.0f}",
            f"{row.steps:,.0f}",
            f"{1000 * row.seconds:,.1f}",
            f"{row.kept / told['targets']:.1%}",
        )
        for row in rows
    ]
    print_table(("", "tests", "steps", "ms", "targets kept"), cells)
    same_time = rows[4]
    print_figures(
        {
            "trials": told["trials"],
            "targets": told["targets"],
            "kept": ours.kept,
            "tests": ours.tests,
            "proven": told["proven"],
            "steps_of_campaign": round(ours.steps / steps, 5),
            "time_vs_greedy": round(ours.seconds / greedy.seconds, 3),
            "tests_exact_vs_greedy": round(exact.tests / greedy.tests, 3),
            "kept_vs_random": round(ours.kept / same_time.kept, 2),
            "less_kept": round(less.kept / told["targets"], 3),
            "less_time_vs_ours": round(less.seconds / ours.seconds, 3),
        }
    )


if __name__ == "__main__":
    main()
