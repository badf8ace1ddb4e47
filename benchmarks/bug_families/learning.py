"""Would a strategy that learns which families pay find more than fixed shares?

    python benchmarks/bug_families/learning.py [--quick]

A simulated program has the bugs of one number of features and of steps, and two easier versions of
each: half and a quarter of every count that a bug needs. They stand for the lines and branches that
a test reaches on the way to a bug. A campaign picks a family of `layered` for each test, and then
one of the simulated tests of that family. It stops after a number of tests.

Half of the tests of the learner have the fixed shares, so it can be twice as slow at worst. For the
other half it draws a family by Thompson sampling: for each family, a Beta distribution of the share
of its tests that reach something new, in which old tests count less and less. The program is found
to have one or another bug by chance, so the figure is the ratio of the medians over seeds.

The propensities of features are those of the family, which are logged as before: what chose the
family is the past alone, so a test's members are as random as if the family had been fixed.
`wrong_role_rate` checks that: features that nothing depends on, judged at 95% by their logged
propensities in the campaigns of the learner.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import arguments, print_figures, print_table, progress

from bug_families.kinds import JUDGING, TUNING, Bug, read_bugs
from bug_families.simulation import ask, by_world, simulate, space_of
from swarmtest.strategies import Layered
from swarmtest.strategies.layered import FAMILIES, chances_of

NAMES = [name for name, _, _ in FAMILIES]
SHARES = np.array([share for _, share, _ in FAMILIES])
FADING = 0.98
"""How much a test of a family counts after each later test of the same family."""
COUNTS = ("times", "depth", "length", "gap", "turns", "needed", "pieces", "phases", "odd", "even")
"""Parameters of which less is easier."""


def easier(bug: Bug, divisor: int) -> Bug:
    """Return a version of a bug that needs less of everything."""
    changed = {
        name: max(1, value // divisor) if name in COUNTS else value
        for name, value in bug.parameters.items()
    }
    return replace(bug, parameters=changed)


@dataclass(frozen=True)
class Program:
    """Simulated tests: which targets each hits, and which features it had, by family."""

    targets: tuple[Bug, ...]
    hits: tuple[npt.NDArray[np.bool_], ...]
    members: tuple[npt.NDArray[np.bool_], ...]


def program(bugs: Sequence[Bug], tests: int) -> Program:
    """Simulate tests of `layered` on some bugs and their easier versions."""
    targets = tuple({str(t): t for b in bugs for t in (b, easier(b, 2), easier(b, 4))}.values())
    space = space_of(bugs[0].features)
    drawn = ask(Layered(), space, range(tests), 17)
    origins = np.array([NAMES.index(origin) for origin in drawn.origins])
    hits = np.zeros((tests, len(targets)), bool)
    random = np.random.default_rng(17)
    for part, simulated in simulate(drawn, bugs[0].steps, random):
        for number, target in enumerate(targets):
            hits[part, number] = target.found(simulated)
    rows = [np.flatnonzero(origins == family) for family in range(len(NAMES))]
    on = drawn.weights > 0
    return Program(targets, tuple(hits[r] for r in rows), tuple(on[r] for r in rows))


def campaign(
    program: Program, tests: int, learns: bool, random: np.random.Generator
) -> tuple[npt.NDArray[np.int64], list[tuple[int, int]]]:
    """Return at which test each target was first hit (0: never), and the tests: family and row."""
    first = np.zeros(len(program.targets), np.int64)
    new, old = np.zeros(len(NAMES)), np.zeros(len(NAMES))
    fixed = random.choice(len(NAMES), tests, p=SHARES)
    explores, places = random.random(tests), random.random(tests)
    chosen = []
    for test in range(tests):
        family = int(fixed[test])
        if learns and explores[test] < 0.5:
            family = int(random.beta(new + 0.1, old + 1.0).argmax())
        row = int(places[test] * len(program.hits[family]))
        reached = program.hits[family][row] & (first == 0)
        gain = bool(reached.any())
        if gain:
            first[reached] = test + 1
        new[family] = FADING * new[family] + gain
        old[family] = FADING * old[family] + (not gain)
        chosen.append((family, row))
    return first, chosen


def wrong_roles(program: Program, chosen: Sequence[tuple[int, int]], seed: int) -> list[bool]:
    """Whether a target of pure chance seems to depend on features, by the logged propensities.

    Each simulated test counts once: a campaign that repeats some has seen no more members.
    """
    random = np.random.default_rng((seed, 3))
    features = program.members[0].shape[1]
    surplus, variance = np.zeros(features), np.zeros(features)
    for family, row in dict.fromkeys(chosen):
        if random.random() < 0.2:  # the target
            on = program.members[family][row]
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


def medians(found: Sequence[npt.NDArray[np.int64]], tests: int) -> npt.NDArray[np.float64]:
    """Return the median of each target; one that is not found has the next number of tests."""
    table = np.array(found, np.float64)
    table[table == 0] = tests + 1
    middle: npt.NDArray[np.float64] = np.median(table, axis=0)
    return middle


def main() -> None:
    quick = arguments(__doc__ or "").quick
    tests, seeds, pool = (300, 5, 3000) if quick else (2000, 31, 12_000)
    rows: list[tuple[object, ...]] = []
    figures: dict[str, object] = {}
    wrong: list[bool] = []
    for side, kinds in (("tuning", TUNING), ("judging", JUDGING)):
        ratios: list[float] = []
        for (features, steps), bugs in by_world(read_bugs(kinds)).items():
            if features > 20 or steps > (100 if quick else 200):
                continue
            progress(f"{side}: {features} features, {steps} steps, {len(bugs)} bugs")
            simulated = program(bugs, pool)
            runs = {
                learns: [
                    campaign(simulated, tests, learns, np.random.default_rng((seed, learns)))
                    for seed in range(seeds)
                ]
                for learns in (False, True)
            }
            fixed, learnt = (medians([f for f, _ in runs[which]], tests) for which in (False, True))
            is_bug = np.array([target in bugs for target in simulated.targets])
            known = is_bug & (fixed <= tests) & (fixed > 1)
            ratios += (learnt[known] / fixed[known]).tolist()
            if side == "judging":
                for seed, (_, chosen) in enumerate(runs[True]):
                    wrong += wrong_roles(simulated, chosen, seed)
        mean = math.exp(statistics.mean(map(math.log, ratios)))
        rows.append((side, len(ratios), f"{mean:.2f}", f"{max(ratios):.2f}", f"{min(ratios):.2f}"))
        figures[f"{side}_learner_vs_fixed"] = round(mean, 3)
        figures[f"{side}_learner_vs_fixed_worst"] = round(max(ratios), 3)
    print("tests of the learner over those of the fixed shares, medians until a bug is found")
    print_table(("kinds", "bugs", "mean", "worst", "best"), rows)
    print(f"\nfeatures without a role that seem to have one at 95%: {statistics.mean(wrong):.1%}")
    print_figures(figures | {"wrong_role_rate": round(statistics.mean(wrong), 4)})


if __name__ == "__main__":
    main()
