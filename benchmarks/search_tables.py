"""Tables 3 and 4 and figures 2 to 5 of the paper, of recorded explorations."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import cpu_seconds, print_table
from search_spaces import NONE, Program, Settings, failures_anew, reached_anew, settings_of

from swarmtest.search import Exploration, best_sequence, collapsed, compare_engines, correlations
from swarmtest.search.exploration import PointSequence, random_sequence
from swarmtest.search.pictures import collapsed_svg, growth_svg
from swarmtest.search.views import collapsed_text, shoulders_of

FIRST = 10
"""Points of a best sequence that are run again."""
FIGURE_5 = (10, 30, 100, 300)
MOST = 0.9
"""The last targets are those that hardly any run reaches: how many settings reach the others?"""


@dataclass(frozen=True)
class Effort:
    settings: Settings
    repeats: int
    """Searches, and random orders."""
    grown: Settings
    """As in the paper: no noise, noise, and noise where variables are shared."""
    again: int
    """Runs at the point with the most failures."""


Rows = list[list[object]]


class Tables:
    """What is printed, a row for each program and kind of target."""

    def __init__(self, effort: Effort, pictures: Path | None) -> None:
        self.effort, self.pictures = effort, pictures
        self.growth: Rows = []
        self.table_3: Rows = []
        self.table_4: Rows = []
        self.figure_4: list[str] = []
        self.figure_5: Rows = []
        self.matters: list[tuple[list[str], Rows]] = []
        self.anew: Rows = []
        self.faults: Rows = []

    def draw(self, name: str, picture: str) -> None:
        if self.pictures:
            (self.pictures / f"{name}.svg").write_text(picture, encoding="utf-8")

    def grow(self, exploration: Exploration) -> None:
        """Figures 2 and 3: which pairs a few settings reach, run by run."""
        pairs, curves = exploration.of_kind("pair"), []
        for point in pairs.points:
            words = "everywhere" if point["heuristic"] == NONE else "shared variables only"
            label = words if point["frequency"] else "no noise"
            counts = pairs.growth([point])
            curves.append((label, counts))
            longest = max((end - start for start, end in shoulders_of(counts, 1)), default=0)
            tenth = counts[max(1, len(counts) // 10) - 1]
            failed = statistics.fmean(run.status == "failed" for run in pairs.runs[point])
            row = [label, counts[0], tenth, counts[-1], longest, f"{failed:.0%}"]
            self.growth.append([exploration.name, *row])
        title = f"{exploration.name}: figures 2 and 3"
        self.draw(f"growth_{exploration.name}", growth_svg(sorted(curves), title, "pairs reached"))

    def study(self, exploration: Exploration) -> dict[str, Any]:
        """Tables 3 and 4, figures 4 and 5."""
        kinds = {kind: self._of_kind(exploration, kind) for kind in exploration.kinds}
        measures = [*(f"hits.{kind}" for kind in exploration.kinds), "failed"]
        if len(exploration.kinds) == 1:
            measures = ["hits", "failed"]
        self._explain(exploration, measures)
        done = [run for runs in exploration.runs.values() for run in runs]
        main = "hits.pair" if "hits.pair" in measures else "hits"
        line, name = collapsed(exploration, main), exploration.name
        self.figure_4.append(collapsed_text(line, name))
        self.draw(f"space_{name}", collapsed_svg(line, f"{name}: figure 4"))
        return {
            "points": len(exploration.points),
            "runs": len(done),
            "without_verdict": sum(run.status == "invalid" for run in done),
            "cpu_seconds": sum(run.cpu_seconds for run in done),
            "kinds": kinds,
        }

    def _of_kind(self, exploration: Exploration, kind: str) -> dict[str, float]:
        part, repeats = exploration.of_kind(kind), self.effort.repeats
        best = best_sequence(part)
        others = [random_sequence(part, seed) for seed in range(repeats)]
        points = statistics.median(len(one.steps) for one in others)
        most = statistics.median(map(points_to_most, others))
        name = exploration.name
        counts = [len(best.steps), f"{points:g}", points_to_most(best), f"{most:g}"]
        self.table_3.append([name, kind, best.total, *counts])
        curves = [part.growth(one.points) for one in others]
        grown = part.growth(best.points)
        if len(best.steps) > 1:
            self.figure_5.append([name, kind, "best", *reached_after([grown])])
            self.figure_5.append([name, kind, "random", *reached_after(curves)])
        labelled = [("best sequence", grown), ("random sequence", curves[0])]
        self.draw(
            f"sequences_{kind}_{name}",
            growth_svg(labelled, f"{name}: figure 5", f"{kind}: reached"),
        )
        searched = searches(part, repeats)
        shares = [f"{searched[one]:.0%}" for one in ("hill", "random", "hill_restarts")]
        means = [f"{searched[one]:.1%}" for one in ("hill_best", "random_best")]
        best_points = f"{searched['best_points']:.0%}"
        self.table_4.append([name, kind, f"{searched['points']:.0f}", best_points, *shares, *means])
        return {
            "targets": best.total,
            "best_sequence": len(best.steps),
            "random_sequence": points,
            "best_to_most": points_to_most(best),
            "random_to_most": most,
            **searched,
        }

    def _explain(self, exploration: Exploration, measures: Sequence[str]) -> None:
        found, rows = correlations(exploration, measures), list[list[object]]()
        for dimension in dict.fromkeys(one.dimension for one in found):
            shares = {one.measure: one for one in found if one.dimension == dimension}
            cells = [
                f"{shares[one].explained:.0%}{'*' if shares[one].adjusted < 0.05 else ' '}"
                for one in measures
            ]
            rows.append([dimension, *cells])
        self.matters.append(([exploration.name, *measures], rows))

    def run_again(self, program: Program, exploration: Exploration) -> dict[str, float]:
        """Was it hindsight? The best sequence, and the setting that failed most, once more."""
        space, runs = program.space(self.effort.settings), self.effort.again
        pairs, rng = exploration.of_kind("pair"), random.Random(0)
        best = best_sequence(pairs, most=FIRST).points
        recorded, anew = len(pairs.reached(best)), reached_anew(space, best, "pair")
        chance = statistics.median(
            len(pairs.reached(rng.sample(pairs.points, len(best))))
            for _ in range(self.effort.repeats)
        )
        self.anew.append([program.name, len(pairs.reached()), recorded, anew, f"{chance:g}"])
        rates = dict(zip(exploration.points, exploration.values("failed"), strict=True))
        worst = max(rates, key=lambda point: rates[point])
        quiet = next(point for point in rates if point["frequency"] == 0)
        found = {
            "without_noise": failures_anew(program, quiet, runs),
            "mean": statistics.fmean(rates.values()),
            "best_setting": failures_anew(program, worst, runs),
        }
        cells = [f"{found[name]:.0%}" for name in found]
        self.faults.append([program.name, *cells, f"{rates[worst]:.0%}", settings_of(worst)])
        return {"sequence_anew_vs_random": anew / chance, **found}

    def show(self) -> None:
        if self.growth:
            title = "Figures 2 and 3: pairs after the first run, a tenth of the runs, all of them"
            head = ("first", "a tenth", "all", "longest shoulder", "failed")
            _print(title, ("program", "noise", *head), self.growth)
        head = ("all", "best", "random", f"{MOST:.0%}: best", f"{MOST:.0%}: random")
        title = f"Table 3: settings until all targets, and {MOST:.0%} of them, are reached"
        _print(title, ("program", "targets", *head), self.table_3)
        title = "Figure 5: reached after so many runs, in the best order and in random ones"
        _print(title, ("program", "targets", "order", *map(str, FIGURE_5)), self.figure_5)
        title = f"Table 4: {self.effort.repeats} searches for the setting that reaches most"
        engines = ("hill", "random", "hill, restarts", "hill: mean", "random: mean")
        _print(title, ("program", "targets", "points", "are best", *engines), self.table_4)
        print("Figure 4: all settings in a row\n")
        print("\n\n".join(self.figure_4), end="\n\n")
        print("What a dimension explains of each measure (*: more than chance)\n")
        for names, rows in self.matters:
            print_table(names, rows)
            print()
        if self.anew:
            self._show_again()

    def _show_again(self) -> None:
        title = f"Pairs that {FIRST} settings reach: the best ones, again, and random ones"
        head = ["program", "all", "recorded", "with other seeds", "random settings"]
        _print(title, head, self.anew)
        title = f"Failing runs, of {self.effort.again} with other seeds; mean: as explored"
        head = ["program", "no noise", "mean", "best setting", "it had", "the best setting"]
        _print(title, head, self.faults)


def _print(title: str, head: Sequence[str], rows: Rows) -> None:
    print(f"{title}\n")
    print_table(head, rows)
    print()


def points_to_most(sequence: PointSequence) -> int:
    """How many points of a sequence reach most of the targets."""
    wanted = MOST * sequence.total
    return next(at for at, step in enumerate(sequence.steps, 1) if step.reached >= wanted)


def reached_after(curves: Sequence[Sequence[int]]) -> list[str]:
    """Targets after some numbers of runs: medians."""
    medians = (statistics.median(one[min(at, len(one)) - 1] for one in curves) for at in FIGURE_5)
    return [f"{count:g}" for count in medians]


def searches(exploration: Exploration, repeats: int) -> dict[str, float]:
    """Table 4: hill climbing until its first top, and others for as many points."""
    (hill,) = compare_engines(exploration, ["climb:restarts=0"], "hits", repeats=repeats)
    points = max(1, round(hill.mean_points))
    others = ["random", "climb"]
    chance, again = compare_engines(exploration, others, "hits", points=points, repeats=repeats)
    values = exploration.values("hits")
    return {
        "points": hill.mean_points,
        "best_points": values.count(max(values)) / len(values),
        "hill": hill.found / repeats,
        "random": chance.found / repeats,
        "hill_restarts": again.found / repeats,
        "hill_best": hill.mean_best / hill.optimum,
        "random_best": chance.mean_best / chance.optimum,
    }


def replayed_per_second(exploration: Exploration) -> float:
    """Points per CPU second of searches of what is recorded."""
    start = cpu_seconds()
    (found,) = compare_engines(exploration, ["random"], "hits", repeats=20)
    return sum(replay.points for replay in found.replays) / (cpu_seconds() - start)
