"""What a test loses that is not kept whole: RQ1-RQ4 of the dissertation's chapter 3.

    python benchmarks/reduction_study.py [--quick] [--work DIR] [--tests N] [--subject NAME]
                                         [--workers N] [--picture FILE]

Each test is reduced so that C% of its coverage are kept (C = 70, 80, 90, 95, 100), or N of the
mutants that it kills (N = 1, 2, 4, 8, 16, 32); tests of a minimal suite also so that they keep one
mutant of the minimal set (3.5.1.3). Beside each reduced test stand three of the same size that were
reduced at random. Measured are SRR, CPR and MPR (3.4).

Subjects: calls of a red-black tree in Python, and bytes for gzip, which is built from Debian's
source. `--picture` draws how the three trade off. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "reduction_subjects"))

from harness import print_figures, print_table, progress
from native_subjects import Unavailable
from questions import COVERAGE, MUTANTS, Study

WORK = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "swarmtest" / "reduction"
TESTS, QUICK_TESTS = 20, 2
SUBJECTS = ("red-black", "gzip")
RATES = ("srr", "cpr", "mpr", "random_cpr", "random_mpr")
COLOURS = {COVERAGE: "tab:blue", MUTANTS: "tab:orange"}


def study(
    work: Path,
    quick: bool,
    tests: int | None = None,
    subject: str = "",
    picture: str = "",
    workers: int = 2,
) -> dict[str, object]:
    """All subjects that are here: prints the tables, gives the figures."""
    done = []
    count = tests or (QUICK_TESTS if quick else TESTS)
    for one in studies(work, quick, count, subject, workers):
        print_study(one)
        done.append(one)
    if picture:
        draw(done, picture)
    return {one.subject.title: study_figures(one) for one in done}


def studies(work: Path, quick: bool, tests: int, subject: str, workers: int) -> Iterator[Study]:
    """The subjects that are here; says which are not, and why."""
    if subject in ("", "red-black"):
        from red_black_calls import RedBlackCalls

        progress(f"RQ1 to RQ4: {tests} tests of a red-black tree")
        yield Study(RedBlackCalls(), range(tests)).run(workers)
    if subject in ("", "gzip"):
        from gzip_bytes import GzipBytes, built_gzip

        try:
            gzip = GzipBytes(built_gzip(work, build=not quick))
        except Unavailable as problem:
            print(f"gzip is left out: {problem}")
            return
        progress(f"RQ1 to RQ4: {tests} tests of gzip")
        with gzip:
            yield Study(gzip, range(tests)).run(workers)


def print_study(done: Study) -> None:
    print(f"{done.subject.title}: {len(done.seeds)} tests, {done.sizes}; medians in percent")
    rows = [
        (
            f"{kind} = {level}",
            *(percent(done.median(kind, level, name)) for name in RATES),
            f"{done.median(kind, level, 'calls'):,.0f}",
        )
        for kind, level in done.levels()
    ]
    print_table(("kept", "SRR", "CPR", "MPR", "random CPR", "random MPR", "calls"), rows)
    for kind in (COVERAGE, MUTANTS):
        for name in ("srr", "cpr", "mpr"):
            tau = done.tau(kind, name)
            if not math.isnan(tau.tau):
                print(
                    f"Kendall's tau of {kind} and {name.upper()}: {tau.tau:.2f} (p = {tau.p:.2g})"
                )
    tau = done.tau_between("cpr", "mpr")
    print(f"Kendall's tau of CPR and MPR: {tau.tau:.2f} (p = {tau.p:.2g})")
    for name in ("cpr", "mpr"):
        better, worse, p = done.beside_random(name)
        print(
            f"{name.upper()} is above that of tests reduced at random in {better} reductions, "
            f"below in {worse} (sign test: p = {p:.2g})"
        )
    low, high = done.largest_gain()
    print(f"the largest gain in size is between C = {high} and C = {low}")
    print()


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def study_figures(done: Study) -> dict[str, object]:
    return {
        "tests": len(done.seeds),
        "medians": {
            f"{kind} {level}": {name: round(done.median(kind, level, name), 3) for name in RATES}
            for kind, level in done.levels()
        },
        "tau": {
            f"{kind} {name}": round(tau.tau, 3)
            for kind in (COVERAGE, MUTANTS)
            for name in ("srr", "cpr", "mpr")
            if not math.isnan((tau := done.tau(kind, name)).tau)
        },
        "largest_gain": done.largest_gain(),
        "above_random": {name: done.beside_random(name)[0] for name in ("cpr", "mpr")},
        "below_random": {name: done.beside_random(name)[1] for name in ("cpr", "mpr")},
    }


def draw(done: list[Study], file: str) -> None:
    """A row for each subject: what is gained against what is lost."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "swarmtest"
    from matplotlib import pyplot

    sides = (("srr", "cpr"), ("srr", "mpr"), ("cpr", "mpr"))
    figure, axes = pyplot.subplots(
        len(done), 3, figsize=(11, 3.4 * len(done)), squeeze=False, layout="constrained"
    )
    for of, row in zip(done, axes, strict=True):
        for (x, y), panel in zip(sides, row, strict=True):
            panel.set(xlabel=f"{x.upper()} (%)", ylabel=f"{y.upper()} (%)", title=of.subject.title)
            for kind, colour in COLOURS.items():
                _draw_kind(panel, of, kind, colour, x, y)
    axes[0][0].legend(fontsize="small", loc="lower left")
    figure.savefig(file, metadata={"Date": None})


def _draw_kind(panel, of: Study, kind: str, colour: str, x: str, y: str) -> None:  # type: ignore[no-untyped-def]
    points = [p for p in of.points if p.kind == kind]
    shown = [[100 * getattr(p, side) for p in points] for side in (x, y)]
    panel.scatter(*shown, s=6, alpha=0.25, color=colour, linewidths=0)
    levels = [level for one, level in of.levels() if one == kind]
    middle = [[100 * of.median(kind, level, side) for level in levels] for side in (x, y)]
    name = "C% of coverage" if kind == COVERAGE else "N mutants"
    panel.plot(*middle, "o-", color=colour, markersize=4, label=f"{name}, medians")
    for level, *place in zip(levels, *middle, strict=True):
        panel.annotate(str(level), place, (3, 4), textcoords="offset points", fontsize=7)
    if x == "srr":
        chance = [100 * of.median(kind, level, f"random_{y}") for level in levels]
        panel.plot(middle[0], chance, "x:", color=colour, markersize=4, label=f"{name}, random")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, under a minute")
    parser.add_argument("--work", type=Path, default=WORK, help="where gzip is built")
    parser.add_argument("--tests", type=int, help=f"of each subject; default: {TESTS}")
    parser.add_argument("--subject", default="", choices=("", *SUBJECTS), help="default: all")
    parser.add_argument("--workers", type=int, default=2, help="tests that are reduced at a time")
    parser.add_argument("--picture", default="", help="draw the trade-offs into this file")
    chosen = parser.parse_args()
    print_figures(study(**vars(chosen)))


if __name__ == "__main__":
    main()
