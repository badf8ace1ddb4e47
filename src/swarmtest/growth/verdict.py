"""Stop, go on, or change the configuration: what growth means for the next hour.

The rules are applied in order, and the first one that holds decides:

1. *Too little data*: there are fewer than 30 tests.
2. *Go on*: some fault was shown by only one test (others as rare may exist), or as many tests again
   would reach, of some other kind, at least one new target and at least 1% of those found.
3. *Too little data*: only faults were looked at, and at most a handful of other targets (fewer than
   20, if their total number is not known). Faults are too few for a forecast: all that is known is,
   by the rule of three, how rare faults must be that no test has shown. However many tests there
   are, this alone is no reason to stop; the sentence says how rare, and the user decides.
4. *Too little data*: nothing grows any more, but that is known from fewer than 300 tests (by the
   rule of three, they may well have missed what 1 test in 100 reaches).
5. *Change the configuration*: nothing grows any more, and there are watched targets that no test
   reached. Tests drawn in the same way hardly ever reach them, however many there are.
6. *Stop*: nothing grows any more, and every watched target was reached. The sentence says, again by
   the rule of three, how rare a fault may be that was missed.

"Would reach" is the middle value of the extrapolation of `swarmtest.growth.richness`: a rule that
waited for the upper end of the interval would never stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swarmtest.core.formatting import counted, whole_interval, words_for
from swarmtest.growth.growth import Growth, KindGrowth
from swarmtest.growth.richness import Forecast, rarer_than

LEAST_TESTS = 30
LEAST_TESTS_TO_STOP = 300
LEAST_SHARE = 0.01
LEAST_TARGETS = 20
"""Fewer targets, of a kind whose total is not known, do not show that a campaign is done."""
_NAMED = 3
"""How many kinds are named in a sentence; the table has the rest."""


@dataclass(frozen=True)
class GrowthVerdict:
    """What to do, and why, in one sentence.

    >>> print(GrowthVerdict("stop", "everything was reached."))
    Stop: everything was reached.
    """

    action: str
    """``stop``, ``go on``, ``change the configuration`` or ``too little data``."""
    reason: str

    def __str__(self) -> str:
        return f"{self.action.capitalize()}: {self.reason}"

    def to_json(self) -> dict[str, str]:
        """Return plain data."""
        return {"action": self.action, "sentence": str(self)}


def verdict(growth: Growth) -> GrowthVerdict:
    """Return what the growth of a campaign says about running more tests."""
    if growth.tests < LEAST_TESTS:
        are = "is" if growth.tests == 1 else "are"
        few = f"{_tests(growth)} {are} too few to predict anything; run at least {LEAST_TESTS}."
        return GrowthVerdict("too little data", few)
    growing = [kind for kind in growth.kinds if grows(kind)]
    if growing:
        return GrowthVerdict("go on", f"doubling the tests would reach {_gains(growing)}.")
    judges = [kind for kind in growth.kinds if _can_judge(kind)]
    return _saturated(growth, judges) if judges else _faults_only(growth)


def _can_judge(kind: KindGrowth) -> bool:
    """Return whether there is enough of a kind to see that it does not grow any more."""
    return kind.kind != "fault" and bool(kind.watched or kind.seen.found >= LEAST_TARGETS)


def _faults_only(growth: Growth) -> GrowthVerdict:
    bound = f"{_no_new_fault(growth)}, but {_may_be_unseen(growth)}"
    others = [kind for kind in growth.kinds if kind.kind != "fault" and kind.seen.found]
    names = " and ".join(["faults", *(counted(kind.seen.found, kind.kind) for kind in others)])
    if growth.left_out:
        advice = "go on, or look at all kinds, without `--kind`, to be able to judge"
    else:
        advice = (
            f"{names} alone do not show whether tests still reach anything new: go on, or watch "
            "coverage (`--coverage branch`) to be able to judge"
        )
    return GrowthVerdict("too little data", f"{bound}; {advice}.")


def _saturated(growth: Growth, judges: Sequence[KindGrowth]) -> GrowthVerdict:
    if growth.tests < LEAST_TESTS_TO_STOP:
        rare = min(kind.seen.tests_per_new for kind in judges)
        return GrowthVerdict(
            "too little data",
            f"little more is in sight, but {_tests(growth)} may have missed what 1 test in "
            f"{rare} reaches; run at least {LEAST_TESTS_TO_STOP}.",
        )
    left = [kind for kind in judges if kind.unreached]
    if left:
        missed = " or ".join(counted(kind.unreached or 0, kind.kind, "watched ") for kind in left)
        return GrowthVerdict(
            "change the configuration",
            f"doubling the tests would {_little(left)}, but no test reached {missed}; fewer than "
            f"1 test in {min(k.seen.tests_per_new for k in left):,} reaches any of them.",
        )
    return GrowthVerdict("stop", "; ".join(_reasons_to_stop(growth, judges)) + ".")


def grows(kind: KindGrowth) -> bool:
    """Return whether more tests of the same kind are worth their time."""
    if kind.kind == "fault":
        return kind.seen.once > 0
    return kind.new.value >= max(1.0, LEAST_SHARE * kind.seen.found)


def interval_text(forecast: Forecast) -> str:
    """Return the interval in whole targets.

    >>> interval_text(Forecast(14.2, 9.1, 24.3)), interval_text(Forecast(0.2, 0.0, 3.8))
    ('9 to 25', 'up to 4')
    """
    return whole_interval(forecast.low, forecast.high)


def _gains(kinds: Sequence[KindGrowth]) -> str:
    faults = [kind for kind in kinds if kind.kind == "fault"]
    others = [kind for kind in kinds if kind.kind != "fault"]
    gains = " and ".join(_gain(kind) for kind in [*others[:_NAMED], *faults])
    rare = [f"; {_one_test_only(kind)}" for kind in faults]
    return gains + "".join(rare)


def _gain(kind: KindGrowth) -> str:
    value = max(1, round(kind.new.value))
    how = "perhaps" if kind.new.value < 1 else "about"
    return f"{how} {counted(value, kind.kind, 'more ')} {_sure(kind.new)}"


def _one_test_only(kind: KindGrowth) -> str:
    were = "was" if kind.seen.once == 1 else "were"
    total = counted(kind.seen.found, kind.kind, "known ")
    return f"{kind.seen.once:,} of {total} {were} shown by one test only"


def _little(kinds: Sequence[KindGrowth]) -> str:
    """Return ``probably reach no new line (95% sure: at most 4)``."""
    parts = []
    for kind in kinds[:_NAMED]:
        one, _ = words_for(kind.kind)
        many = kind.new.value >= 0.5
        new = f"about {counted(kind.new.value, kind.kind, 'new ')}" if many else f"no new {one}"
        parts.append(f"{new} {_sure(kind.new)}" if kind.new.high else new)
    return f"probably reach {' and '.join(parts)}"


def _sure(forecast: Forecast) -> str:
    return f"(95% sure: {interval_text(forecast).replace('up to', 'at most')})"


def _reasons_to_stop(growth: Growth, judges: Sequence[KindGrowth]) -> list[str]:
    complete = [kind.kind for kind in judges if kind.watched]
    rest = [kind for kind in judges if not kind.watched]
    reasons = [f"doubling the tests would {_little(rest)}"] if rest else []
    reasons += [f"every watched {' and '.join(complete)} was reached"] if complete else []
    if any(kind.kind == "fault" for kind in growth.kinds):
        reasons.append(f"{_no_new_fault(growth)}, though {_may_be_unseen(growth)}")
    return reasons


def _no_new_fault(growth: Growth) -> str:
    faults_found = any(kind.kind == "fault" and kind.seen.found for kind in growth.kinds)
    return "no new fault is in sight" if faults_found else f"no fault in {_tests(growth)}"


def _may_be_unseen(growth: Growth) -> str:
    return f"a fault that shows in up to 1 test in {rarer_than(growth.tests):,} may still be unseen"


def _tests(growth: Growth) -> str:
    return counted(growth.tests, "test")
