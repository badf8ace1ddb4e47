"""How the families and shares of `hedged` were chosen, on the kinds of bugs for tuning.

    python benchmarks/bug_families/choice.py [--quick]

How often a candidate finds a bug is simulated; a mixture finds it as often as the mean of its
parts, by their shares (`mixtures`). The ratio of a bug is the median number of tests of the mixture
over that of the best single strategy. Each kind counts alike.

Two questions come first. What is the best that any fixed shares can reach, if they know the bugs:
for the mean, for the worst ratio? And how much of that is left for a kind of bugs that had no part
in the choice? To see that, each kind is left out in turn: the shares are chosen on the others, and
its ratios are those of these shares (`others` in the tables). Shares that are free are far behind
on a kind whose like they have not seen. So some shares are given beforehand to candidates that draw
as the single strategies do (`GIVEN`), which limits the worst ratio whatever the bug is; the more is
given, the smaller is the gain on kinds that were seen.

The shares of `hedged` are between those: what is given comes from this table, from the examples of
the paper and the blog, on which its median is to stay at most twice the best one (`detection.py`),
and from the wish that fair coins, which tell most about roles, have a third of the tests.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import arguments, print_figures, print_table, progress

from bug_families.calibration import SINGLES
from bug_families.candidates import CANDIDATES
from bug_families.kinds import TUNING, Bug, read_bugs
from bug_families.mixtures import (
    BETWEEN,
    MEAN,
    WORST,
    Matrix,
    best_shares,
    geometric_mean,
    medians,
    weights_by_kind,
)
from bug_families.simulation import by_world, number_of_tests, odds_of, odds_of_configurations
from swarmtest.strategies import parse_strategy

NAMES = [candidate.name for candidate in CANDIDATES]
GIVEN = {"all-equal": 0.25, "share-equal": 0.25, "all-uniform-spent": 0.25, "all-uniform": 0.25}
"""Candidates that draw as the single strategies do."""
RAREST = 1 / 400
"""Bugs that are found more rarely are left out: their ratios would be noise."""


@dataclass(frozen=True)
class Rates:
    """How often bugs are found: a row for each bug, a column for each part of a mixture."""

    bugs: tuple[Bug, ...]
    candidates: Matrix
    singles: Matrix
    best: Matrix
    """By the best single strategy."""
    layered: Matrix
    hedged: Matrix

    @property
    def kinds(self) -> list[str]:
        return [bug.kind for bug in self.bugs]

    def ratios(self, mixed: Matrix) -> Matrix:
        """Return how many times as many tests are needed as by the best single strategy."""
        return medians(mixed) / medians(self.best)


def rates_on(bugs: Sequence[Bug], tests: int) -> Rates:
    """Simulate candidates, single strategies and mixtures on bugs."""
    worlds = [*by_world(bugs).values()]
    with ProcessPoolExecutor(2) as pool:
        simulated = [*pool.map(partial(_rates_in_world, tests=tests), worlds)]
    rows = {
        id(bug): row
        for of, table in zip(worlds, simulated, strict=True)
        for bug, row in zip(of, table, strict=True)
    }
    table = np.stack([rows[id(bug)] for bug in bugs])
    kept = table[:, -3] >= RAREST
    left = tuple(bug for bug, keep in zip(bugs, kept, strict=True) if keep)
    parts = np.split(table[kept], (len(NAMES), len(NAMES) + len(SINGLES)), axis=1)
    return Rates(left, parts[0], parts[1], *parts[2].T)


def _rates_in_world(alike: Sequence[Bug], tests: int) -> Matrix:
    """Return a row for each bug: candidates, singles, the best one, `layered` and `hedged`."""
    features, steps = alike[0].features, alike[0].steps
    count, random = number_of_tests(steps, tests), np.random.default_rng((5, features, steps))
    columns = [
        odds_of_configurations(candidate.draw(count, features, random), alike, 5, namings=2).overall
        for candidate in CANDIDATES
    ]
    # The best is chosen on one half of the tests, its rate comes from the other half.
    halves = np.array(
        [
            [odds_of(parse_strategy(s), alike, count, seed, namings=2).overall for s in SINGLES]
            for seed in (6, 7)
        ]
    )
    of_best = [
        np.take_along_axis(halves[1 - half], halves[half].argmax(axis=0)[None, :], axis=0)[0]
        for half in (0, 1)
    ]
    mixtures = [
        odds_of(parse_strategy(text), alike, 2 * count, 8, namings=2).overall
        for text in ("layered", "hedged")
    ]
    progress(f"{features} features, {steps} steps: {len(alike)} bugs")
    singles = halves.mean(axis=0)
    return np.stack([*columns, *singles, np.mean(of_best, axis=0), *mixtures], axis=1)


def left_out_ratios(rates: Rates, parts: Matrix, power: float, least: Matrix) -> Matrix:
    """Return the ratios of each kind, of the shares that are best for the other kinds."""
    kinds, ratios = np.array(rates.kinds), np.empty(len(rates.bugs))
    for kind in dict.fromkeys(rates.kinds):
        out = kinds == kind
        weights = weights_by_kind(kinds[~out].tolist())
        shares = best_shares(parts[~out], rates.best[~out], power, least, weights, 1000)
        ratios[out] = rates.ratios(parts @ shares)[out]
    return ratios


def shown(shares: Matrix) -> dict[str, float]:
    """Return the shares of at least 2%, largest first."""
    return {
        NAMES[number]: round(float(shares[number]), 3)
        for number in np.argsort(-shares)
        if shares[number] >= 0.02
    }


def main() -> None:
    quick = arguments(__doc__ or "").quick
    bugs = read_bugs(TUNING)
    if quick:
        bugs = [bug for bug in bugs if bug.features <= 12 and bug.steps <= 100]
    rates = rates_on(bugs, 100 if quick else 1600)
    weights = weights_by_kind(rates.kinds)
    table: list[tuple[str, Matrix, Matrix | None]] = [
        ("layered", rates.ratios(rates.layered), None),
        ("hedged", rates.ratios(rates.hedged), None),
    ]
    chosen: dict[str, Mapping[str, float]] = {}
    for name, power in (("mean", MEAN), ("worst", WORST)):
        shares = best_shares(rates.singles, rates.best, power, weights=weights)
        table.append((f"single strategies, {name}", rates.ratios(rates.singles @ shares), None))
    given = np.array([GIVEN.get(name, 0.0) for name in NAMES])
    for part in (0.0, 0.3, 0.6, 0.9):
        for name, power in (("mean", MEAN), ("between", BETWEEN), ("worst", WORST)):
            if part and power != BETWEEN:
                continue
            least = part * given
            shares = best_shares(rates.candidates, rates.best, power, least, weights)
            others = left_out_ratios(rates, rates.candidates, power, least)
            label = f"{part:.0%} given, {name}"
            table.append((label, rates.ratios(rates.candidates @ shares), others))
            chosen[label] = shown(shares)
    for label, of in chosen.items():
        print(f"{label}:", ", ".join(f"{name} {share:.1%}" for name, share in of.items()))
    print()
    rows = []
    figures: dict[str, object] = {"shares": chosen, "bugs": len(rates.bugs)}
    for label, ratios, left_out in table:
        cells = [f"{geometric_mean(ratios):.2f}", f"{ratios.max():.2f}"]
        figures[f"tuning_mean_ratio, {label}"] = float(cells[0])
        figures[f"tuning_worst_ratio, {label}"] = float(cells[1])
        if left_out is not None:
            cells += [f"{geometric_mean(left_out):.2f}", f"{left_out.max():.2f}"]
            figures[f"left_out_mean_ratio, {label}"] = float(cells[2])
            figures[f"left_out_worst_ratio, {label}"] = float(cells[3])
        rows.append((label, *cells, *([""] * (4 - len(cells)))))
    print_table(("shares chosen for", "mean", "worst", "by others, mean", "worst"), rows)
    print_figures(figures)


if __name__ == "__main__":
    main()
