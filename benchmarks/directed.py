"""Directed swarm testing on real and simulated subjects, by the paper's protocol (sections 5, 6).

    python benchmarks/directed.py [--quick] [--subject api|c|grammar|simulated] [--repetitions N]
        [--seed N]

For each subject and repetition an undirected coin-toss swarm is run with coverage, and targets are
chosen at random among the lines that 10-30% of its tests hit: sets of 1, 5, 10 and 20. For each set
the nine strategies of the paper are run (three for a single target, for which merging does
nothing), `portfolio` and `adaptive`. HF_d/HF_u is how many times as often tests hit the targets as
undirected ones do, on average over the set, at an equal number of tests; the same per CPU second is
the comparison at equal CPU time. Undirected fractions come from tests of their own, not from those
that the targets were chosen by. p: Wilcoxon's signed-rank test that ratios are above 1, one-sided.

`api_ratio`, `c_ratio` and `grammar_ratio` are the mean ratios for one target of the best strategy
of the paper. `adaptive_vs_best` is the geometric mean, over the real subjects, of the ratio of
`adaptive` to the best of the nine, with its interval; `adaptive_vs_best_least` is the smallest of
these ratios. `--quick` measures api and c, with few tests and sets.

The *simulated* subjects (`directed_subjects/simulated.py`) have targets whose truth is known: what
they need, and what tests cost. Their kinds are split into those on which `adaptive` was tuned and
those by which it is judged: `tuning_vs_best` is about the former, `simulated_vs_best` and
`simulated_vs_best_least` about the latter. For each subject the best of the nine is the one that
was best on this subject, as for real ones.

- api: pyfakefs, a file system in memory; features are calls (pip install pyfakefs)
- c: Lua's interpreter from Debian's source, built with coverage; features are kinds of statements.
  ``--subject c`` also measures mujs, an interpreter of JavaScript, and cmark, which reads
  CommonMark: `c_ratios` has the mean ratio of each beside those of the paper for its C programs.
- grammar: sqlglot reads and writes SQL; features are productions (pip install sqlglot)

The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import mean

import numpy as np
from harness import (
    cannot_measure,
    cpu_seconds,
    print_figures,
    print_table,
    progress,
    require_modules,
)
from native_subjects import Unavailable
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parent / "directed_subjects"))

from c_builds import RECIPES, built
from measuring import ALL_ON, Factory, Measurement, Repetition, Subject
from simulated import JUDGING, TUNING, Draw, Simulated, simulated
from simulated import TESTS as SIMULATED_TESTS

from swarmtest.strategies.directed.adaptive import Adaptive
from swarmtest.strategies.directed.aim import SINGLES
from swarmtest.strategies.directed.directed import Directed, Portfolio
from swarmtest.strategies.directed.merging import MERGES

SUBJECTS = {
    "api": Subject("api", "pyfakefs", "fake_files.py", "pyfakefs", 2000, 250),
    "c": Subject("c", "Lua 5.4 (C)", "lua_programs.py::LuaPrograms", "", 3000, 400),
    "mujs": Subject("mujs", "mujs (C)", "mujs_programs.py::MujsPrograms", "", 3000, 400),
    "cmark": Subject("cmark", "cmark (C)", "cmark_documents.py::CmarkDocuments", "", 3000, 400),
    "grammar": Subject("grammar", "sqlglot", "sql_dialects.py", "sqlglot", 1500, 150),
}
C_SUBJECTS = {"c": "lua", "mujs": "mujs", "cmark": "cmark"}
"""The C programs, by the names of their subjects; ``--subject c`` is all of them."""
PACKAGES = {"api": "pyfakefs", "grammar": "sqlglot"}
PAPER = {
    "YAFFS2": dict(zip(SINGLES, (3.56, 3.03, 3.94), strict=True)),
    "GCC": dict(zip(SINGLES, (2.40, 2.56, 2.28), strict=True)),
    "SpiderMonkey": dict(zip(SINGLES, (1.75, 1.15, 4.56), strict=True)),
}
"""Table 3 of the paper: the mean ratio of each strategy for one target."""
SETS = {1: 8, 5: 3, 10: 2, 20: 2}
QUICK_SETS = {1: 3, 5: 1}
QUICK_SUBJECTS = ("api", "c")
QUICK_TESTS = {"api": (250, 20), "c": (300, 20)}
"""Of the undirected swarm, and of each directed run."""
SIMULATED = "simulated"
SIMULATED_SETS = {1: 3, 5: 2, 20: 1}
QUICK_SIMULATED_SETS = {1: 1, 5: 1}
QUICK_VARIANTS = 1
QUICK_SIMULATED_TESTS = 100
REPETITIONS = 3
PROCESSES = 2
RESAMPLES = 10_000


def paper_strategies(size: int) -> dict[str, Factory]:
    """The nine, by name; for a single target the three without merging."""
    merges = MERGES if size > 1 else MERGES[:1]
    return {
        name_of(merge, single): partial(Directed, single=single, merge=merge)
        for merge in merges
        for single in SINGLES
    }


def name_of(merge: str, single: str) -> str:
    return f"{merge} {single}"


OURS: dict[str, Factory] = {"portfolio": Portfolio, "adaptive": Adaptive}
NINE = tuple(paper_strategies(size=2))


def strategies_for(size: int) -> dict[str, Factory]:
    return {**paper_strategies(size), **OURS}


def measured(subject: Subject, repetition: int, sets: Mapping[int, int]) -> list[Measurement]:
    """One repetition, in a process of its own."""
    return Repetition(subject, repetition).measure(sets, strategies_for)


def all_measured(
    subjects: Sequence[Subject], repetitions: Sequence[int], sets: Mapping[int, int]
) -> list[Measurement]:
    """All repetitions of all subjects, a few at a time."""
    os.environ["PYTHONHASHSEED"] = "0"  # so that the tests are the same in every run
    found: list[Measurement] = []
    jobs = [(subject, repetition) for repetition in repetitions for subject in subjects]
    progress(f"{len(jobs)} repetitions in {PROCESSES} processes")
    with ProcessPoolExecutor(PROCESSES, get_context("spawn"), max_tasks_per_child=1) as pool:
        futures = {pool.submit(measured, *job, sets): job for job in jobs}
        for future, (subject, repetition) in futures.items():
            found += future.result()
            progress(f"{subject.name}, repetition {repetition}: done")
    return found


def simulation(
    subject: Simulated, repetition: int, sets: Mapping[int, int], tests: int
) -> list[Measurement]:
    """One repetition of a simulated subject."""
    return subject.repeated(repetition).measure(sets, strategies_for, tests)


def all_simulated(
    kinds: Sequence[Draw], repetitions: Sequence[int], quick: bool
) -> dict[str, list[Measurement]]:
    """The measurements of the simulated subjects of some kinds, by subject."""
    subjects = simulated(kinds)
    sets, tests = SIMULATED_SETS, SIMULATED_TESTS
    if quick:
        subjects = [one for one in subjects if one.number <= QUICK_VARIANTS]
        sets, tests = QUICK_SIMULATED_SETS, QUICK_SIMULATED_TESTS
    progress(f"{len(subjects)} simulated subjects, {len(repetitions)} times")
    found: dict[str, list[Measurement]] = {one.name: [] for one in subjects}
    with ProcessPoolExecutor(PROCESSES, get_context("fork")) as pool:
        futures = [
            (one.name, pool.submit(simulation, one, repetition, sets, tests))
            for one in subjects
            for repetition in repetitions
        ]
        for name, future in futures:
            found[name] += future.result()
    return {name: group for name, group in found.items() if group}


# Tables


def ratio_row(strategy: str, found: Sequence[Measurement]) -> list[object]:
    """A row of the paper's tables 3-6, with the ratio per CPU second at the end."""
    ratios = np.array([one.ratio for one in found])
    quartiles = np.quantile(ratios, [0, 0.25, 0.5, 0.75, 1])
    deviation = ratios.std(ddof=1) if len(ratios) > 1 else 0.0
    return [
        strategy,
        f"{np.mean(ratios > 1):.2f}",
        len(ratios),
        *(f"{value:.2f}" for value in (ratios.mean(), deviation, *quartiles)),
        f"{p_above_one(ratios):.4f}",
        f"{mean(one.rate_ratio for one in found):.2f}",
    ]


def p_above_one(ratios: np.ndarray) -> float:
    """As in the paper: the normal approximation of the one-sided signed-rank test."""
    if np.all(ratios == 1):
        return 1.0
    tested = stats.wilcoxon(ratios - 1, alternative="greater", method="approx", correction=False)
    return float(tested.pvalue)


def print_ratios(subject: Subject, found: Sequence[Measurement]) -> None:
    head = ["", ">1", "sets", "mean", "sd", "min", "25%", "50%", "75%", "max", "p", "per CPU s"]
    for size in sorted({one.size for one in found}):
        print(f"\n{subject.title}: HF_d/HF_u for sets of {size}")
        by_strategy = grouped(one for one in found if one.size == size)
        order = [*strategies_for(size), ALL_ON]
        print_table(head, [ratio_row(name, by_strategy[name]) for name in order])


def grouped(found: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    groups: dict[str, list[Measurement]] = defaultdict(list)
    for one in found:
        groups[one.strategy].append(one)
    return groups


def print_against_all_on(subjects: Sequence[Subject], found: Sequence[Measurement]) -> None:
    """The paper's table 8: single targets, the three strategies together, a paired t-test."""
    print("\nSingle targets: hitting fractions with all features on and directed")
    rows = []
    for subject in subjects:
        single = [one for one in found if one.subject == subject.name and one.size == 1]
        defaults = {
            (one.repetition, one.number): one.directed for one in single if one.strategy == ALL_ON
        }
        directed = [one for one in single if one.strategy in NINE]
        pairs = [(one.directed, defaults[one.repetition, one.number]) for one in directed]
        left, right = np.array(pairs).T
        test = stats.ttest_rel(left, right)
        low, high = test.confidence_interval(0.95)
        interval = f"({low:.3f}, {high:.3f})"
        rows.append(
            [
                subject.title,
                f"{right.mean():.3f}",
                f"{left.mean():.3f}",
                interval,
                f"{test.pvalue:.4f}",
            ]
        )
    print_table(["", "HF_r", "HF_d", "difference", "p"], rows)


# Figures


def over_all_sets(found: Sequence[Measurement], name: str) -> dict[tuple[int, int, int], float]:
    """Hits per CPU second, relative to undirected, of a strategy for each set.

    Merging does nothing for a single target: there, all merges have the value of round-robin.
    """
    alone = name_of(MERGES[0], name.split()[-1]) if name in NINE else name
    return {
        (one.repetition, one.size, one.number): one.rate_ratio
        for one in found
        if one.strategy == (alone if one.size == 1 else name)
    }


def pairs_with_best(found: Sequence[Measurement], name: str) -> tuple[str, np.ndarray]:
    """The best of the nine; and for each set the rates of a strategy of ours and of the best."""
    values = {one: over_all_sets(found, one) for one in NINE}
    best = max(NINE, key=lambda one: mean(values[one].values()))
    ours = over_all_sets(found, name)
    return best, np.array([(ours[key], values[best][key]) for key in ours])


def resampled(pairs: np.ndarray, seed: int = 0) -> np.ndarray:
    """Ratios of the means of sets that are drawn with replacement."""
    numbers = np.random.default_rng(seed).integers(len(pairs), size=(RESAMPLES, len(pairs)))
    means = pairs[numbers].mean(axis=1)
    # Of few sets, a draw may have none that was hit.
    ratios: np.ndarray = means[:, 0] / np.maximum(means[:, 1], pairs[:, 1].mean() / 100)
    return ratios


def against_best(found: Sequence[Measurement], name: str) -> dict[str, object]:
    """A strategy of ours beside the best of the nine, at equal CPU time over all sets."""
    best, pairs = pairs_with_best(found, name)
    low, high = np.quantile(resampled(pairs), [0.025, 0.975])
    return {
        "mean": round(float(pairs[:, 0].mean()), 3),
        "best_of_nine": best,
        "best_mean": round(float(pairs[:, 1].mean()), 3),
        "ratio": round(float(pairs[:, 0].mean() / pairs[:, 1].mean()), 3),
        "interval": [round(float(low), 3), round(float(high), 3)],
    }


def mean_against_best(
    subjects: Sequence[Sequence[Measurement]], name: str, prefix: str
) -> dict[str, object]:
    """The geometric mean of the ratios of several subjects, its interval, and the least ratio."""
    groups = [pairs_with_best(found, name)[1] for found in subjects]
    ratios = np.array([pairs[:, 0].mean() / pairs[:, 1].mean() for pairs in groups])
    draws = np.array([resampled(pairs, seed) for seed, pairs in enumerate(groups)])
    means = np.exp(np.log(np.maximum(draws, 1e-3)).mean(axis=0))
    low, high = np.quantile(means, [0.025, 0.975])
    return {
        prefix: round(float(np.exp(np.log(np.maximum(ratios, 1e-3)).mean())), 3),
        f"{prefix}_interval": [round(float(low), 3), round(float(high), 3)],
        f"{prefix}_least": round(float(ratios.min()), 3),
        f"{prefix}_below_1": round(float((ratios < 1).mean()), 3),
    }


def simulated_figures(found: Mapping[str, list[Measurement]], prefix: str) -> dict[str, object]:
    """Print the table of some simulated subjects, and return their figures."""
    print(f"\nSimulated subjects ({prefix}): hits per CPU second relative to undirected")
    rows = []
    for name, group in found.items():
        beside = against_best(group, "adaptive")
        best = f"{beside['best_mean']} ({beside['best_of_nine']})"
        rows.append([name, beside["mean"], best, beside["ratio"]])
    print_table(["", "adaptive", "best of the nine", "ratio"], rows)
    return mean_against_best(list(found.values()), "adaptive", f"{prefix}_vs_best")


def means_of(found: Iterable[Measurement]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "ratio": round(mean(one.ratio for one in group), 3),
            "per_cpu_second": round(mean(one.rate_ratio for one in group), 3),
            "improved": round(mean(one.ratio > 1 for one in group), 3),
        }
        for name, group in grouped(found).items()
    }


def figures_of(subject: Subject, found: Sequence[Measurement]) -> dict[str, object]:
    sizes = sorted({one.size for one in found})
    return {
        "title": subject.title,
        **{f"size_{size}": means_of(one for one in found if one.size == size) for size in sizes},
        **{f"{name}_at_equal_cpu": against_best(found, name) for name in OURS},
    }


def best_single(found: Sequence[Measurement]) -> tuple[str, float]:
    """The best strategy of the paper for one target, and its mean ratio."""
    groups = grouped(one for one in found if one.size == 1 and one.strategy in NINE)
    means = {name: mean(one.ratio for one in group) for name, group in groups.items()}
    best = max(means, key=lambda name: means[name])
    return best.split()[-1], round(means[best], 3)


def singles_of(found: Iterable[Measurement], subject: str) -> dict[str, float]:
    """The mean ratio of each of the paper's strategies for one target."""
    groups = grouped(one for one in found if one.subject == subject and one.size == 1)
    return {
        single: round(mean(one.ratio for one in groups[name_of(MERGES[0], single)]), 2)
        for single in SINGLES
    }


def print_beside_paper(ratios: object) -> None:
    assert isinstance(ratios, dict)
    print("\nC programs: mean HF_d/HF_u for one target, beside the paper's")
    print_table(["", *SINGLES], [[name, *row.values()] for name, row in ratios.items()])


def print_at_equal_cpu(figures: Mapping[str, dict[str, object]]) -> None:
    print("\nAll sets: hits per CPU second relative to undirected, beside the best of the nine")
    rows = []
    for name, of_subject in figures.items():
        for ours in OURS:
            told = of_subject[f"{ours}_at_equal_cpu"]
            assert isinstance(told, dict)
            low, high = told["interval"]
            best = f"{told['best_mean']} ({told['best_of_nine']})"
            rows.append([name, ours, told["mean"], best, f"{told['ratio']} [{low}, {high}]"])
    print_table(["", "strategy", "mean", "best of the nine", "ratio"], rows)


def summary(subjects: Sequence[Subject], found: Sequence[Measurement]) -> dict[str, object]:
    figures: dict[str, dict[str, object]] = {}
    top: dict[str, object] = {}
    for subject in subjects:
        own = [one for one in found if one.subject == subject.name]
        figures[subject.name] = figures_of(subject, own)
        top[f"{subject.name}_best"], top[f"{subject.name}_ratio"] = best_single(own)
    by_subject = [[one for one in found if one.subject == subject.name] for subject in subjects]
    for name in OURS:
        top |= mean_against_best(by_subject, name, f"{name}_vs_best")
    print_at_equal_cpu(figures)
    if any(subject.name in C_SUBJECTS for subject in subjects):
        top["c_ratios"] = {
            C_SUBJECTS[subject.name]: singles_of(found, subject.name)
            for subject in subjects
            if subject.name in C_SUBJECTS
        } | {f"paper: {program}": ratios for program, ratios in PAPER.items()}
        print_beside_paper(top["c_ratios"])
    return {**top, "cpu_seconds": round(cpu_seconds()), "subjects": figures}


def require(names: Sequence[str]) -> None:
    """End the benchmark, with a line that says what to install, unless all subjects are here."""
    require_modules({PACKAGES[name]: PACKAGES[name] for name in names if name in PACKAGES})
    for name in C_SUBJECTS.keys() & set(names):
        program = C_SUBJECTS[name]
        progress(f"{program} is built, unless that was done before")
        try:
            built(program)
        except Unavailable as reason:
            others = " and ".join(
                f"--subject {name}" for name in SUBJECTS if name not in C_SUBJECTS
            )
            cannot_measure(f"{RECIPES[program].package}: {reason} (without C programs: {others})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two subjects, few tests")
    parser.add_argument("--subject", choices=[*SUBJECTS, SIMULATED], help="only this one")
    parser.add_argument("--repetitions", type=int, help="undirected swarms of each subject")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first repetition")
    options = parser.parse_args()
    names: Sequence[str] = QUICK_SUBJECTS if options.quick else tuple(SUBJECTS)
    if options.subject == "c":
        names = [*C_SUBJECTS]
    elif options.subject:
        names = [options.subject] if options.subject in SUBJECTS else []
    require(names)
    subjects = [SUBJECTS[name] for name in names]
    sets, repetitions = SETS, options.repetitions or REPETITIONS
    if options.quick:
        sets, repetitions = QUICK_SETS, options.repetitions or 1
        sizes = [QUICK_TESTS.get(name, QUICK_TESTS["api"]) for name in names]
        pairs = zip(subjects, sizes, strict=True)
        subjects = [replace(one, seed_tests=seeds, tests=tests) for one, (seeds, tests) in pairs]
    numbers = range(options.seed, options.seed + repetitions)
    figures: dict[str, object] = {}
    if options.subject in (None, SIMULATED):
        for kinds, prefix in ((TUNING, "tuning"), (JUDGING, SIMULATED)):
            figures |= simulated_figures(all_simulated(kinds, numbers, options.quick), prefix)
    if subjects:
        found = all_measured(subjects, numbers, sets)
        for subject in subjects:
            print_ratios(subject, [one for one in found if one.subject == subject.name])
        print_against_all_on(subjects, found)
        figures = summary(subjects, found) | figures
    print_figures(figures)


if __name__ == "__main__":
    main()
