"""How far each strategy is behind the best one, on bugs of kinds that chose nothing.

The figure of a bug and a strategy is the median number of tests until the bug is found, from the
share of simulated tests that find it. The best single strategy is chosen on one half of the
simulated tests, and its figure comes from the other half: the best of several noisy numbers would
look better than any strategy is.

A bug that few of the tests find is simulated again, with up to ten times as many tests of the
mixtures and the best single strategy: the worst of many ratios is otherwise that of the rarest bug.

A strategy that splits its tests must be behind a specialist. How far is computed too: the shares of
a fixed mixture of the single strategies that are best for these very bugs, for the mean and for the
worst ratio. Those shares know what they are judged by, so no mixture of these strategies that does
not can be expected to do better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
from harness import print_table, progress

from bug_families.calibration import SINGLES
from bug_families.kinds import Bug, Tests, read_bugs
from bug_families.mixtures import MEAN, WORST, best_shares, geometric_mean, medians
from bug_families.simulation import by_world, number_of_tests, odds_of
from swarmtest import Machine, action
from swarmtest.strategies import parse_strategy

JUDGED = (*SINGLES, "covering:t=2", "layered", "hedged")
MIXTURES = ("layered", "hedged")


@dataclass
class Finding:
    """How often strategies find a bug: the share of tests in each half of the simulation."""

    bug: Bug
    shares: dict[str, tuple[float, float]] = field(default_factory=dict)

    def median(self, strategy: str) -> float:
        """Return the median number of tests until a strategy finds the bug."""
        return median_tests(sum(self.shares[strategy]) / 2)

    @property
    def best(self) -> float:
        """Return the median of the best single strategy."""
        halves = [
            self.shares[max(SINGLES, key=lambda text: self.shares[text][half])][1 - half]
            for half in (0, 1)
        ]
        return median_tests(sum(halves) / 2)

    def ratio(self, strategy: str) -> float:
        """Return how many times as many tests a strategy needs as the best single one."""
        return self.median(strategy) / self.best


def median_tests(share: float) -> float:
    """Return the median number of tests until one is found, if this share of them finds it.

    >>> median_tests(0.5), round(median_tests(0.01))
    (1.0, 69)
    """
    return max(1.0, math.log(0.5) / math.log1p(-share)) if share < 1 else 1.0


_ENOUGH, _ROUNDS = 20, 10
"""How often a bug is to be found, and how many times as many tests to simulate at most."""


def judge(kinds: Sequence[str], tests: int, bugs_of_a_kind: int) -> list[Finding]:
    """Simulate so many tests of each strategy on bugs of some kinds."""
    bugs = [b for kind in kinds for b in read_bugs((kind,))[:bugs_of_a_kind]]
    worlds = [*by_world(bugs).values()]
    findings: dict[int, Finding] = {}
    with ProcessPoolExecutor(2) as pool:
        judged = pool.map(partial(_judge_in_world, tests=tests), worlds)
        for alike, shares in zip(worlds, judged, strict=True):
            findings |= {id(b): Finding(b, of) for b, of in zip(alike, shares, strict=True)}
    return [finding for bug in bugs if (finding := findings[id(bug)]).best < tests]


def _judge_in_world(alike: Sequence[Bug], tests: int) -> list[dict[str, tuple[float, float]]]:
    """Return for each bug and strategy the share of tests that find it, in each half."""
    features, steps = alike[0].features, alike[0].steps
    progress(f"bugs that chose nothing: {features} features, {steps} steps: {len(alike)}")
    count = number_of_tests(steps, tests)
    everything = range(len(alike))
    counts = {text: _Counts(text, alike, count) for text in JUDGED}
    for counted in counts.values():
        counted.simulate(0, everything)
    for text in (*MIXTURES, *SINGLES):
        for number in range(1, _ROUNDS):
            wanted = (
                everything
                if text in MIXTURES
                else [bug for bug in everything if text == _best_single(counts, bug)]
            )
            rare = [bug for bug in wanted if counts[text].finds(bug) < _ENOUGH]
            if not rare:
                break
            counts[text].simulate(number, rare)
    return [{text: of.shares(bug) for text, of in counts.items()} for bug in everything]


def _best_single(counts: Mapping[str, _Counts], bug: int) -> str:
    return max(SINGLES, key=lambda text: counts[text].rate(bug))


class _Counts:
    """How many tests of a strategy found each of some bugs, in two halves."""

    def __init__(self, text: str, bugs: Sequence[Bug], tests: int) -> None:
        self._strategy, self._bugs, self._tests = parse_strategy(text), bugs, tests
        self._found = np.zeros((2, len(bugs)))
        self._simulated = np.zeros(len(bugs))

    def simulate(self, number: int, which: Sequence[int]) -> None:
        """Simulate more tests for some of the bugs."""
        bugs = [self._bugs[bug] for bug in which]
        for half in (0, 1):
            seed = 100 + half + 2 * number
            odds = odds_of(self._strategy, bugs, self._tests, seed, namings=2)
            self._found[half, which] += odds.overall * self._tests
        self._simulated[which] += self._tests

    def finds(self, bug: int) -> float:
        """Return how many tests found a bug; with two namings of a test, that may be a half."""
        return float(self._found[:, bug].sum())

    def rate(self, bug: int) -> float:
        """Return the share of the tests that found a bug."""
        return float(self.finds(bug) / self._simulated[bug])

    def shares(self, bug: int) -> tuple[float, float]:
        """Return the share of the tests that found a bug; half a find in all tests for none."""
        least = 0.25 / self._simulated[bug]
        first, second = np.maximum(self._found[:, bug] / self._simulated[bug], least)
        return float(first), float(second)


def mixture_ratios(findings: Sequence[Finding], power: float) -> list[float]:
    """Return the ratios of the fixed mixture of single strategies that is best for these bugs."""
    rates = np.array([[sum(f.shares[text]) / 2 for text in SINGLES] for f in findings])
    best = 1 - 0.5 ** (1 / np.array([finding.best for finding in findings]))
    mixed = medians(rates @ best_shares(rates, best, power))
    ratios: list[float] = (mixed / [finding.best for finding in findings]).tolist()
    return ratios


def print_judgement(findings: Sequence[Finding], key: str = "unseen") -> dict[str, object]:
    """Print the ratios by strategy, and those of mixtures by kind; return the figures."""
    kinds = list(dict.fromkeys(finding.bug.kind for finding in findings))
    ratios = {text: [finding.ratio(text) for finding in findings] for text in JUDGED}
    for name, power in (("mean", MEAN), ("worst", WORST)):
        ratios[f"best mixture, {name}"] = mixture_ratios(findings, power)
    print(
        f"{len(findings)} bugs of {len(kinds)} kinds: the median number of tests over that of the "
        "best single strategy.\nThe best mixtures have the shares of single strategies that are "
        "best for these very bugs."
    )
    print_table(
        ("strategy", "mean ratio", "95% of bugs at most", "worst ratio"),
        [
            (text, f"{geometric_mean(of):.2f}", f"{np.quantile(of, 0.95):,.2f}", f"{max(of):,.2f}")
            for text, of in ratios.items()
        ],
    )
    print()
    rows = []
    for kind in kinds:
        of = [finding for finding in findings if finding.bug.kind == kind]
        firsts = [min(SINGLES, key=finding.median) for finding in of]
        best = max(dict.fromkeys(firsts), key=firsts.count)
        cells = []
        for text in MIXTURES:
            of_kind = [finding.ratio(text) for finding in of]
            cells += [f"{geometric_mean(of_kind):.2f}", f"{max(of_kind):.2f}"]
        rows.append((kind, len(of), best, *cells))
    columns = (c for text in MIXTURES for c in (f"{text}, mean ratio", "worst"))
    print_table(("kind", "bugs", "most often best", *columns), rows)
    figures: dict[str, object] = {f"{key}_bugs": len(findings)}
    for text, name in (("layered", key), ("hedged", f"hedged_{key}")):
        figures[f"{name}_worst_ratio"] = round(max(ratios[text]), 3)
        figures[f"{name}_mean_ratio"] = round(geometric_mean(ratios[text]), 3)
    return figures | {
        f"{key}_mixture_worst_ratio": round(max(ratios["best mixture, worst"]), 3),
        f"{key}_mixture_mean_ratio": round(geometric_mean(ratios["best mixture, mean"]), 3),
    }


def machine_of(bug: Bug) -> type[Machine]:
    """Return a machine that has the bug: the test fails at its end."""

    def start(self: Machine) -> None:
        self.used = []  # type: ignore[attr-defined]

    def stop(self: Machine) -> None:
        used: list[int] = self.used  # type: ignore[attr-defined]
        assert not bug.found(Tests(steps_of(used, bug), bug.features))[0], "found"

    def using(number: int) -> object:
        def use(self: Machine) -> None:
            self.used.append(number)  # type: ignore[attr-defined]

        use.__name__ = f"f{number}"
        return action(use)

    body = {"steps": bug.steps, "start": start, "stop": stop, "__module__": __name__}
    actions = {f"f{number}": using(number) for number in range(bug.features)}
    return type("Planted", (Machine,), body | actions)


def steps_of(used: Sequence[int], bug: Bug) -> npt.NDArray[np.int16]:
    """Return the steps of one test, filled up to the length of tests."""
    steps = np.full((1, bug.steps), bug.features, np.int16)
    steps[0, : len(used)] = used
    return steps
