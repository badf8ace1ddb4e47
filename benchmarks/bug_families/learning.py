"""Does `bandit`, which learns which families pay, find bugs sooner than the fixed shares?

    python benchmarks/bug_families/learning.py [--quick] [--tune]

A simulated program has the bugs of one number of features and of steps, and two easier versions of
each: half and a quarter of every count that a bug needs. They stand for the lines and branches that
a test reaches on the way to a bug. A campaign picks a family of `hedged` for each test, by the
shares of the shipped strategy (`learnt_shares`), and then one of the simulated tests of that
family. It stops after a number of tests. Many campaigns are simulated at once.

The figure of a bug is the ratio of the medians over the campaigns, since it is found by chance. A
worst ratio is that of the noisiest bug, so the bugs that look worst are measured again, with other
seeds: `..._worst` comes from the second measurement. Two campaigns that both have fixed shares,
measured in the same way (`chance`), show how much of it is chance.

The propensities of features are those of the family, which are logged as before: what chose the
family is the past alone, so a test's members are as random as if the family had been fixed.
`wrong_role_rate` checks that: features that nothing depends on, judged at 95% by their logged
propensities in the campaigns of the learner.

`--tune` compares parameters on the kinds for tuning; the shipped ones were chosen by that table.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import print_figures, print_table, progress

from bug_families.fresh_kinds import FRESH
from bug_families.kinds import JUDGING, TUNING, Bug, read_bugs
from bug_families.simulation import ask, by_world, simulate, space_of
from swarmtest.strategies import Hedged
from swarmtest.strategies.bandit import FADING, PRIOR, SHARPNESS, Bandit, learnt_shares
from swarmtest.strategies.hedged import HEDGED_FAMILIES
from swarmtest.strategies.layered import chances_of

NAMES = [name for name, _, _ in HEDGED_FAMILIES]
COUNTS = (
    *("times", "depth", "length", "gap", "turns", "needed", "pieces", "phases", "odd", "even"),
    *("level", "least", "number", "others", "pairs", "rungs"),
)
"""Parameters of which less is easier."""
SIDES = {"tuning": TUNING, "judging": JUDGING, "fresh": FRESH}
_AGAIN = 10
"""So many bugs, those with the worst ratios, are measured again."""

Ints = npt.NDArray[np.int64]
Pair = tuple[list[float], list[float]]
"""The ratios of the bugs of a program, measured twice."""


@dataclass(frozen=True)
class Rule:
    """How a campaign chooses families."""

    fixed: float = Bandit.fixed
    sharpness: float = SHARPNESS
    prior: float = PRIOR
    fading: float = FADING


FIXED = Rule(1.0)
CANDIDATES = [
    *(
        Rule(fixed, sharpness, prior, fading)
        for fixed in (0.5, 0.7)
        for sharpness in (1.0, 2.0)
        for prior in (0.5, 2.0)
        for fading in (0.95, 0.99)
    ),
    *(Rule(0.5, sharpness, prior, 0.99) for sharpness in (3.0, 5.0) for prior in (0.2, 0.5)),
]


def easier(bug: Bug, divisor: int) -> Bug:
    """Return a version of a bug that needs less of everything."""
    changed = {
        name: max(1, value // divisor) if name in COUNTS else value
        for name, value in bug.parameters.items()
    }
    return replace(bug, parameters=changed)


@dataclass(frozen=True)
class Program:
    """Simulated tests, those of a family together: the targets that each hits, and its features."""

    targets: tuple[Bug, ...]
    is_bug: npt.NDArray[np.bool_]
    hits: npt.NDArray[np.bool_]
    members: npt.NDArray[np.bool_]
    first: Ints
    """The first test of each family."""
    count: Ints
    """The tests of each family."""


def program(bugs: Sequence[Bug], tests: int) -> Program:
    """Simulate tests of `hedged` on some bugs and their easier versions."""
    targets = tuple({str(t): t for b in bugs for t in (b, easier(b, 2), easier(b, 4))}.values())
    drawn = ask(Hedged(), space_of(bugs[0].features), range(tests), 17)
    origins = np.array([NAMES.index(origin) for origin in drawn.origins])
    hits = np.zeros((tests, len(targets)), bool)
    for part, simulated in simulate(drawn, bugs[0].steps, np.random.default_rng(17)):
        for number, target in enumerate(targets):
            hits[part, number] = target.found(simulated)
    order = np.argsort(origins, kind="stable")
    count = np.bincount(origins, minlength=len(NAMES))
    return Program(
        targets,
        np.array([target in bugs for target in targets]),
        hits[order],
        drawn.weights[order] > 0,
        np.concatenate([[0], np.cumsum(count)[:-1]]),
        count,
    )


@dataclass(frozen=True)
class Campaigns:
    """Campaigns of one program."""

    found: Ints
    """At which test each target was first hit; 0: never. A row for each campaign."""
    chosen: Ints
    """The simulated tests that each campaign ran."""

    def medians(self) -> npt.NDArray[np.float64]:
        """Return the median of each target; one that is not found has the next number of tests."""
        table = np.where(self.found == 0, self.chosen.shape[1] + 1, self.found)
        middle: npt.NDArray[np.float64] = np.median(table, axis=0)
        return middle


def campaigns(program: Program, tests: int, count: int, rule: Rule, seed: int) -> Campaigns:
    """Simulate so many campaigns, test by test."""
    random = np.random.default_rng((seed, 5))
    found = np.zeros((count, len(program.targets)), np.int64)
    chosen = np.zeros((count, tests), np.int64)
    new, seen = np.zeros((2, len(NAMES), count))
    rows = np.arange(count)
    for test in range(tests):
        shares = learnt_shares(
            [*new], [*seen], rule.fixed, sharpness=rule.sharpness, prior=rule.prior
        )
        bounds = np.cumsum(np.broadcast_arrays(*shares), axis=0)[:-1]
        family = (random.random(count) * (1 - 1e-12) >= bounds).sum(axis=0)
        place = (random.random(count) * program.count[family]).astype(np.int64)
        chosen[:, test] = program.first[family] + place
        reached = program.hits[chosen[:, test]] & (found == 0)
        found[reached] = test + 1
        new[family, rows] = rule.fading * new[family, rows] + reached.any(axis=1)
        seen[family, rows] = rule.fading * seen[family, rows] + 1.0
    return Campaigns(found, chosen)


def ratios(
    program: Program, learnt: npt.NDArray[np.float64], fixed: npt.NDArray[np.float64], tests: int
) -> list[float]:
    """Return the ratio of each target's medians; NaN for those that are no bug, or not found."""
    known = program.is_bug & (fixed <= tests) & (fixed > 1)
    return [float(ratio) if k else math.nan for ratio, k in zip(learnt / fixed, known, strict=True)]


def wrong_roles(program: Program, chosen: Ints, seed: int) -> list[bool]:
    """Whether a target of pure chance seems to depend on features, by the logged propensities.

    Each simulated test counts once: a campaign that repeats some has seen no more members.
    """
    random = np.random.default_rng((seed, 3))
    features = program.members.shape[1]
    surplus, variance = np.zeros(features), np.zeros(features)
    families = np.searchsorted(program.first, chosen, side="right") - 1
    for row, family in dict(zip(chosen.tolist(), families.tolist(), strict=True)).items():
        if random.random() < 0.2:  # the target
            on = program.members[row]
            bits = sum(1 << int(feature) for feature in np.flatnonzero(on))
            odds = chances_of(NAMES[family], features, bits)
            if odds:
                q = np.array(odds * features if len(odds) == 1 else odds)
                others = bits.bit_count() - on > 0  # else the other outcome would be an empty test
                surplus += others * (on - q)
                variance += others * q * (1 - q)
    known = variance > 5
    wrong: list[bool] = (np.abs(surplus[known]) > 1.96 * np.sqrt(variance[known])).tolist()
    return wrong


@dataclass(frozen=True)
class Size:
    tests: int
    campaigns: int
    pool: int
    most_steps: int


FULL, QUICK = Size(600, 301, 12_000, 200), Size(200, 31, 2000, 50)


def programs(side: str, size: Size) -> list[list[Bug]]:
    """Return the bugs of each program of a side."""
    worlds = by_world(read_bugs(SIDES[side]))
    return [
        bugs
        for (features, steps), bugs in worlds.items()
        if features <= 20 and steps <= size.most_steps
    ]


@dataclass(frozen=True)
class Judged:
    """The ratios of the bugs of a program, and those of chance alone."""

    learnt: Pair
    chance: Pair
    wrong: list[bool]


def judge(bugs: Sequence[Bug], size: Size) -> Judged:
    """Simulate campaigns of the shipped strategy on a program, beside fixed shares."""
    progress(f"{bugs[0].features} features, {bugs[0].steps} steps, {len(bugs)} bugs")
    simulated = program(bugs, size.pool)
    run = simulated, size.tests, size.campaigns
    learnt, chance = [], []
    for seed in (1, 2):
        fixed, again = (campaigns(*run, FIXED, 10 * seed + number).medians() for number in (0, 1))
        found = campaigns(*run, Rule(), 10 * seed + 2).medians()
        learnt.append(ratios(simulated, found, fixed, size.tests))
        chance.append(ratios(simulated, again, fixed, size.tests))
    learners = campaigns(simulated, size.tests, min(5, size.campaigns), Rule(), 9)
    wrong = [
        answer
        for seed, chosen in enumerate(learners.chosen)
        for answer in wrong_roles(simulated, chosen, seed)
    ]
    return Judged((learnt[0], learnt[1]), (chance[0], chance[1]), wrong)


def mean_and_worst(pairs: Sequence[Pair]) -> tuple[int, float, float]:
    """Return the number of bugs, the geometric mean of the ratios, and the worst ratio."""
    first = [ratio for of, _ in pairs for ratio in of]
    second = [ratio for _, of in pairs for ratio in of]
    both = [
        (a, b)
        for a, b in zip(first, second, strict=True)
        if not math.isnan(a) and not math.isnan(b)
    ]
    mean = math.exp(statistics.mean((math.log(a) + math.log(b)) / 2 for a, b in both))
    worst = max(again for _, again in sorted(both, reverse=True)[:_AGAIN])
    return len(both), mean, worst


def tune(pool: ProcessPoolExecutor, size: Size) -> None:
    """Print what other parameters reach on the kinds for tuning."""
    tables = [*pool.map(partial(pairs_of_candidates, size=size), programs("tuning", size))]
    rows = []
    for rule, pairs in zip(CANDIDATES, zip(*tables, strict=True), strict=True):
        _, mean, worst = mean_and_worst(pairs)
        rows.append((*vars(rule).values(), f"{mean:.3f}", f"{worst:.2f}"))
    print_table((*vars(FIXED), "mean", "worst"), rows)


def pairs_of_candidates(bugs: Sequence[Bug], size: Size) -> list[Pair]:
    """Return the ratios of the bugs of a program by each candidate."""
    progress(f"{bugs[0].features} features, {bugs[0].steps} steps, {len(bugs)} bugs")
    simulated = program(bugs, size.pool)
    run = simulated, size.tests, size.campaigns // 2
    fixed = [campaigns(*run, FIXED, seed).medians() for seed in (1, 3)]
    pairs = []
    for rule in CANDIDATES:
        first, second = (
            ratios(simulated, campaigns(*run, rule, seed).medians(), known, size.tests)
            for seed, known in zip((2, 4), fixed, strict=True)
        )
        pairs.append((first, second))
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few bugs, tests and campaigns")
    parser.add_argument("--tune", action="store_true", help="compare parameters, judge nothing")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    rows: list[tuple[object, ...]] = []
    figures: dict[str, object] = {}
    wrong: list[bool] = []
    with ProcessPoolExecutor(2) as pool:
        if options.tune:
            tune(pool, size)
            return
        for side in SIDES:
            judged = [*pool.map(partial(judge, size=size), programs(side, size))]
            bugs, mean, worst = mean_and_worst([one.learnt for one in judged])
            _, chance, worst_chance = mean_and_worst([one.chance for one in judged])
            least = min(r for one in judged for r in one.learnt[1] if not math.isnan(r))
            cells = (f"{figure:.2f}" for figure in (mean, worst, least, chance, worst_chance))
            rows.append((side, bugs, *cells))
            figures[f"{side}_learner_vs_fixed"] = round(mean, 3)
            figures[f"{side}_learner_vs_fixed_worst"] = round(worst, 3)
            figures[f"{side}_chance_worst"] = round(worst_chance, 3)
            if side != "tuning":
                wrong += [answer for one in judged for answer in one.wrong]
    print("tests of the learner over those of the fixed shares, medians until a bug is found")
    columns = ("kinds", "bugs", "mean", "worst", "best", "chance: mean", "worst")
    print_table(columns, rows)
    print(f"\nfeatures without a role that seem to have one at 95%: {statistics.mean(wrong):.1%}")
    print_figures(figures | {"wrong_role_rate": round(statistics.mean(wrong), 4)})


if __name__ == "__main__":
    main()
