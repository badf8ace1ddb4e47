"""How much has not been seen yet, estimated from how often the rest was seen.

Ecologists ask how many species live in a forest that a few hundred traps have sampled; Böhme
(STADS, 2018) saw that testing asks the same. Tests are the traps, and targets are the species.
Everything here needs only the numbers of targets that were reached by exactly one test and by
exactly two:

- Good-Turing: the next test reaches ``once / tests`` new targets, on average.
- Chao2 (Chao 1987): at least ``once² / 2 twice`` targets are reachable and unseen. It is a *lower*
  bound, and only for tests drawn as these were: what they cannot reach is not counted.
- Extrapolation (Chao et al. 2014): new targets in the next m tests, reliable up to about as many
  tests as were run; beyond that it approaches Chao2's lower bound.

Species are caught one by one, but the lines of one block are reached together, and ten lines that a
single test reached are one piece of evidence, not ten. Such lines are a *clump*. The mean size of
clumps, each weighted by its size, widens the intervals and takes the place of 1 in the small-sample
corrections. For targets that are reached one by one it is 1, and all formulas are the published
ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from swarmtest.analysis.discovery import FoundTarget
from swarmtest.analysis.intervals import normal_quantile, wilson_interval


@dataclass(frozen=True)
class Forecast:
    """A number of targets with its 95% interval.

    >>> Forecast(14.2, 9.1, 25.0).to_json()
    {'value': 14.2, 'low': 9.1, 'high': 25.0}
    """

    value: float
    low: float
    high: float

    def at_most(self, most: float) -> Forecast:
        """Return the forecast if there are known to be no more than `most` targets.

        >>> Forecast(2.0, 0.0, 6.5).at_most(3)
        Forecast(value=2.0, low=0.0, high=3)
        """
        return Forecast(*(min(value, most) for value in (self.value, self.low, self.high)))

    def to_json(self) -> dict[str, float]:
        """Return plain data, rounded to meaningful digits."""
        return {name: float(f"{value:.4g}") for name, value in vars(self).items()}


@dataclass(frozen=True)
class Incidence:
    """How many targets the tests reached, and how many of them only once or twice.

    >>> Incidence(tests=100, found=20, once=6, twice=3, hits=500).new_per_test
    0.06
    """

    tests: int
    found: int
    once: int
    """Targets that exactly one test reached."""
    twice: int
    """Targets that exactly two tests reached."""
    hits: int
    """The number of pairs of a test and a target that it reached."""
    clump_once: float = 1.0
    """The mean clump size of the targets that were reached once."""
    clump_twice: float = 1.0
    """The mean clump size of the targets that were reached twice."""

    @property
    def new_per_test(self) -> float:
        """Return how many new targets the next test reaches on average (Good-Turing)."""
        return self.once / self.tests if self.tests else 0.0

    @property
    def tests_per_new(self) -> int:
        """Return n so that, with 95% confidence, fewer than 1 test in n reaches anything new.

        >>> Incidence(tests=3000, found=20, once=0, twice=3, hits=500).tests_per_new
        781
        """
        share: float = wilson_interval(self.once / self.clump_once, self.tests)[1]
        return math.floor(1 / share)

    @property
    def familiar(self) -> float:
        """Return the share of what the next test reaches that was reached before (sample coverage).

        See Chao and Jost (2012).

        >>> round(Incidence(tests=100, found=20, once=6, twice=3, hits=500).familiar, 4)
        0.9881
        """
        if not self.once:
            return 1.0
        turn = (self.tests - 1) * self.once
        return 1.0 - self.once / self.hits * (turn / (turn + 2 * self.twice) if turn else 1.0)


def incidence(found: Sequence[FoundTarget], tests: int) -> Incidence:
    """Count what was found of one kind.

    >>> from swarmtest.core.targets import Target
    >>> lines = [FoundTarget(Target("line", str(i)), hits=1, first=7) for i in range(4)]
    >>> incidence(lines, tests=50).clump_once
    4.0
    """
    once = Counter(item.first for item in found if item.hits == 1)
    # The second test is not known. Assuming that targets with the same first test also have the
    # same second one makes clumps too large, and so intervals too wide rather than too narrow.
    twice = Counter(item.first for item in found if item.hits == 2)
    return Incidence(
        tests,
        len(found),
        once.total(),
        twice.total(),
        sum(item.hits for item in found),
        _clump(once),
        _clump(twice) if twice else _clump(once),
    )


def _clump(sizes: Counter[int]) -> float:
    return sum(size * size for size in sizes.values()) / sizes.total() if sizes else 1.0


def unseen(seen: Incidence, confidence: float = 0.95) -> Forecast:
    """Return Chao2: a lower bound of the targets that such tests could reach and did not yet.

    If no target was reached by only one test, there is no sign of more, and the result is 0.

    The interval is Chao's (1987), log-normal, as other tools print it. Its lower end is above 0, so
    it is too narrow if little is left. Measured with targets that are all alike, for which Chao2 is
    not a bound but exact: it contains the truth in 95% of the cases for 1,000 targets, in 92% for
    50 of which 7 are unseen, and in 57% for 50 of which one is. Decide by `new_within`.

    >>> unseen(Incidence(tests=1000, found=50, once=10, twice=10, hits=4000)).value
    4.995
    """
    once, twice, clump = seen.once, seen.twice, seen.clump_once
    if not once:
        return Forecast(0.0, 0.0, 0.0)
    most = (seen.tests - 1) / seen.tests
    if twice:
        value = most * once**2 / (2 * twice)
        ratio = once / twice
        spread = twice * (
            clump * (most / 2 * ratio**2 + most**2 * ratio**3)
            + seen.clump_twice * most**2 / 4 * ratio**4
        )
    else:
        value = most * once * (once - clump) / (2 * clump)
        whole = value + seen.found
        spread = clump**2 * (
            most * once / clump * (once / clump - 1) / 2
            + most**2 * once / clump * (2 * once / clump - 1) ** 2 / 4
            - most**2 * (once / clump) ** 4 / (4 * whole / clump)
        )
    return _log_normal(value, max(spread, 0.0), confidence)


def least_unseen(seen: Incidence, unseen: Forecast) -> int:
    """Return how many targets such tests could at least still reach, with 95% confidence.

    The lower end of Chao's interval, in whole clumps: it is above 0 as soon as one target was
    reached once, and half a target, or half a block of lines, is none. (Chao2 itself is a bound
    only in the mean, and above the truth in half of the campaigns where targets are alike.)

    >>> seen = Incidence(tests=1000, found=50, once=20, twice=10, hits=4000)
    >>> unseen(seen).value, least_unseen(seen, unseen(seen))
    (19.98, 6)
    """
    clumps = math.floor(unseen.low / seen.clump_once)
    return math.floor(clumps * seen.clump_once)


def new_within(seen: Incidence, more: int, confidence: float = 0.95) -> Forecast:
    """Return how many new targets `more` tests of the same kind would reach.

    The interval is for what will be counted, not for its mean. It is valid up to about doubling the
    tests. If no target was reached twice, Chao2 needs a number to divide by, and one clump is
    assumed.

    >>> round(new_within(Incidence(tests=1000, found=50, once=10, twice=10, hits=4000), 1000).value)
    4
    """
    if not seen.tests or more <= 0:
        return Forecast(0.0, 0.0, 0.0)
    clump, twice = seen.clump_once, max(seen.twice, seen.clump_once)
    # New targets per test only get fewer, so the upper end of today's rate is the ceiling.
    ceiling = more * clump * wilson_interval(seen.once / clump, seen.tests, confidence)[1]
    value = _extrapolated(seen.once, twice, seen.tests, more)
    # The variance follows from numerical derivatives (the delta method).
    slope_once, slope_twice = (
        (_extrapolated(seen.once + up, twice + side, seen.tests, more) - value) / 0.01
        for up, side in ((0.01, 0.0), (0.0, 0.01))
    )
    spread = (
        slope_once**2 * clump * seen.once
        + slope_twice**2 * seen.clump_twice * twice
        + clump * value
    )
    if not value:
        return Forecast(0.0, 0.0, ceiling)
    around = _log_normal(value, spread, confidence)
    # A log-normal lower end is above 0, but the next tests may well miss all of a few clumps.
    low = value - normal_quantile(confidence) * math.sqrt(spread)
    return Forecast(value, max(low, 0.0), max(min(around.high, ceiling), value))


def _extrapolated(once: float, twice: float, tests: int, more: int) -> float:
    if not once:
        return 0.0
    left = (tests - 1) / tests * once**2 / (2 * twice)
    return left * -math.expm1(more * math.log1p(-once / (tests * left + once))) if left else 0.0


def _log_normal(value: float, variance: float, confidence: float) -> Forecast:
    """Return the interval of a number that cannot be below 0."""
    z = normal_quantile(confidence)
    if not value:
        return Forecast(0.0, 0.0, z * math.sqrt(variance))
    factor = math.exp(z * math.sqrt(math.log1p(variance / value**2)))
    return Forecast(value, value / factor, value * factor)


def rarer_than(tests: int) -> int:
    """Return n so that what no test showed is, with 95% confidence, rarer than 1 test in n.

    This is the rule of three.

    >>> rarer_than(3000)
    1000
    """
    return tests // 3
