"""Stop, go on, or change the configuration: what growth means for the next hour.

The rules, in order; the first that holds decides:

1. *Too little data*: fewer than 30 tests; or no fault and nothing else was watched.
2. *Go on*: some fault was shown by one test only (others as rare may be waiting), or as many tests
   again would reach, of some other kind, at least one new target and at least 1% of those found.
3. *Too little data*: nothing grows any more, but that is known from fewer than 300 tests (by the
   rule of three, they may well have missed what 1 test in 100 reaches).
4. *Change the configuration*: nothing grows any more, and there are watched targets that no test
   reached. Tests drawn in the same way hardly ever get there, however many.
5. *Stop*: nothing grows any more, and nothing that is watched is left.

"Would reach" is the extrapolation of `swarmtest.analysis.richness`, its middle value: a rule that
waited for the upper end of the interval would never stop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from swarmtest.analysis.growth import Growth, KindGrowth
from swarmtest.analysis.richness import Forecast, rarer_than

LEAST_TESTS = 30
LEAST_TESTS_TO_STOP = 300
LEAST_SHARE = 0.01
_NAMED = 3
"""So many kinds are named in a sentence; the table has the rest."""
_WORDS = {
    "branch": ("branch", "branches"),
    "prime": ("prime path", "prime paths"),
    "du": ("definition-use path", "definition-use paths"),
    "predicate": ("predicate value", "predicate values"),
}
"""One and many, where an s does not do."""


@dataclass(frozen=True)
class Verdict:
    """What to do, and why, in one sentence.

    >>> print(Verdict("stop", "everything was reached."))
    Stop: everything was reached.
    """

    action: str
    """``stop``, ``go on``, ``change the configuration`` or ``too little data``."""
    reason: str

    def __str__(self) -> str:
        return f"{self.action.capitalize()}: {self.reason}"

    def to_json(self) -> dict[str, str]:
        """Plain data."""
        return {"action": self.action, "sentence": str(self)}


def verdict(growth: Growth) -> Verdict:
    """What the growth of a campaign says about running more tests."""
    if growth.tests < LEAST_TESTS:
        few = f"{growth.tests} tests are too few to foretell anything; run at least {LEAST_TESTS}."
        return Verdict("too little data", few)
    growing = [kind for kind in growth.kinds if grows(kind)]
    if growing:
        return Verdict("go on", f"doubling the tests would reach {_gains(growing)}.")
    return _saturated(growth)


def _saturated(growth: Growth) -> Verdict:
    rest = [kind for kind in growth.kinds if kind.seen.found or kind.watched]
    if not rest:
        return Verdict(
            "too little data",
            f"{_no_fault(growth)}, and nothing else was watched; `--coverage branch` would show "
            "whether tests still reach anything new.",
        )
    if growth.tests < LEAST_TESTS_TO_STOP:
        rare = min(kind.seen.tests_per_new for kind in rest)
        return Verdict(
            "too little data",
            f"little more is in sight, but {growth.tests} tests may have missed what 1 test in "
            f"{rare} reaches; run at least {LEAST_TESTS_TO_STOP}.",
        )
    left = [kind for kind in rest if kind.unreached]
    if left:
        missed = " or ".join(counted(kind.unreached or 0, kind.kind, "watched ") for kind in left)
        return Verdict(
            "change the configuration",
            f"doubling the tests would reach {_little(left)}, but no test reached {missed}; "
            f"fewer than 1 test in {min(k.seen.tests_per_new for k in left):,} gets to any.",
        )
    return Verdict("stop", f"doubling the tests would reach {_little(rest)}{_tail(growth)}.")


def grows(kind: KindGrowth) -> bool:
    """Whether more tests of the same kind are worth their time."""
    if kind.kind == "fault":
        return kind.seen.once > 0
    return kind.new.value >= max(1.0, LEAST_SHARE * kind.seen.found)


def counted(count: float, kind: str, before: str = "") -> str:
    """A number of targets in words.

    >>> counted(41, "branch"), counted(1, "line", "watched ")
    ('41 branches', '1 watched line')
    """
    number = f"{count:,.0f}" if count >= 1 or not count else f"{count:.1g}"
    one, many = _WORDS.get(kind, (kind, f"{kind}s"))
    return f"{number} {before}{one if number == '1' else many}"


def interval_text(forecast: Forecast) -> str:
    """The interval in whole targets.

    >>> interval_text(Forecast(14.2, 9.1, 24.3))
    '9 to 25'
    """
    return f"{math.floor(forecast.low):,} to {math.ceil(forecast.high):,}"


def _gains(kinds: Sequence[KindGrowth]) -> str:
    faults = [kind for kind in kinds if kind.kind == "fault"]
    others = [kind for kind in kinds if kind.kind != "fault"]
    gains = " and ".join(_gain(kind) for kind in [*others[:_NAMED], *faults])
    rare = [f"; {_one_test_only(kind)}" for kind in faults]
    return gains + "".join(rare)


def _gain(kind: KindGrowth) -> str:
    value = max(1, round(kind.new.value))
    how = "perhaps" if kind.new.value < 1 else "about"
    return f"{how} {counted(value, kind.kind, 'more ')} ({interval_text(kind.new)})"


def _one_test_only(kind: KindGrowth) -> str:
    were = "was" if kind.seen.once == 1 else "were"
    known = counted(kind.seen.found, kind.kind, "known ")
    return f"{kind.seen.once:,} of {known} {were} shown by one test only"


def _little(kinds: Sequence[KindGrowth]) -> str:
    parts = [f"{counted(k.new.value, k.kind, 'new ')} ({interval_text(k.new)})" for k in kinds]
    return "about " + " and ".join(parts[:_NAMED])


def _tail(growth: Growth) -> str:
    known = [kind.kind for kind in growth.kinds if kind.watched]
    reached = [f"every watched {' and '.join(known)} was reached"] if known else []
    faults = [kind for kind in growth.kinds if kind.kind == "fault" and not kind.seen.found]
    return "".join(f"; {part}" for part in [*reached, *(_no_fault(growth) for _ in faults)])


def _no_fault(growth: Growth) -> str:
    return (
        f"no fault in {growth.tests:,} tests (with 95% confidence, fewer than 1 test in "
        f"{rarer_than(growth.tests):,} shows one)"
    )
