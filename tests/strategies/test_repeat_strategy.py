"""The strategy `repeat` repeats the kinds of test that find faults in little time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from swarmtest import Choice, Feature, Space, UserError
from swarmtest.core.configuration import Configuration
from swarmtest.core.constraints import at_least_one_of
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.seeds import Stream
from swarmtest.strategies import Repeat

SPACE = Space(
    [
        *(Feature(name) for name in ("walk", "pct", "noise", "shared")),
        Choice("switches", (16, 32, 64), ordered=True, default=32),
    ],
    [at_least_one_of("walk", "pct", "noise")],
)
Program = Callable[[Configuration, Stream], tuple[str, float]]
"""Which fault a test shows (or none), and its seconds."""


def campaign(
    program: Program, tests: int = 2_000, strategy: Repeat | None = None
) -> tuple[Counter[str], Counter[str], float]:
    """How often each fault was found and each feature was on, and the seconds it took."""
    strategy = strategy or Repeat()
    found, on, total = Counter[str](), Counter[str](), 0.0
    for trial in range(tests):
        proposal = strategy.ask(SPACE, trial, Stream(1, trial))
        configuration = proposal.configuration
        assert not SPACE.violated(configuration.bits)
        fault, seconds = program(configuration, Stream(2, trial))
        used = tuple(int(name in configuration) for name in SPACE.feature_names)
        failed = Result(Verdict.FAILED, Fault("exception", fault)) if fault else None
        result = failed or Result(Verdict.PASSED)
        strategy.tell(
            result._replace(
                used=used, configuration=configuration, cpu_seconds=seconds, trial=trial
            )
        )
        found[fault] += 1
        on.update(name for name in configuration.included if proposal.origin == "paying")
        total += seconds
    return found, on, total


def crawler(configuration: Configuration, rng: Stream) -> tuple[str, float]:
    """Shared variables only shows the fault in 11% of runs, anything else in 0.1%."""
    rate = 0.11 if "shared" in configuration and "noise" not in configuration else 0.001
    return ("the race" if rng.named("hit") < rate else ""), 0.001


def test_runs_move_to_the_settings_that_pay() -> None:
    found, on, _ = campaign(crawler)
    tossed, _, _ = campaign(crawler, strategy=Repeat(share=0))
    assert found["the race"] > 1.8 * tossed["the race"]
    assert on["noise"] < on["shared"] / 10


def test_a_test_that_takes_ten_times_as_long_has_to_find_ten_times_as_much() -> None:
    def slow_noise(configuration: Configuration, rng: Stream) -> tuple[str, float]:
        slow = "noise" in configuration
        return ("the race" if rng.named("hit") < 0.1 + 0.05 * slow else ""), 0.01 if slow else 0.001

    _, on, _ = campaign(slow_noise)
    assert on["noise"] < (on["walk"] + on["pct"]) / 10


def test_a_frequent_fault_does_not_keep_rare_ones_away() -> None:
    def two(configuration: Configuration, rng: Stream) -> tuple[str, float]:
        if "walk" in configuration and rng.named("often") < 0.5:
            return "often", 0.001
        return ("seldom" if "pct" in configuration and rng.named("hit") < 0.05 else ""), 0.001

    found, on, _ = campaign(two)
    tossed, _, _ = campaign(two, strategy=Repeat(share=0))
    assert found["seldom"] > tossed["seldom"]
    assert on["pct"] > on["walk"] / 2


def test_settings_that_pay_are_repeated_too() -> None:
    counts: Counter[object] = Counter()

    def few_switches(configuration: Configuration, rng: Stream) -> tuple[str, float]:
        switches = configuration["switches"]
        counts[switches] += 1
        return ("the race" if switches == 16 and rng.named("hit") < 0.1 else ""), 0.001

    campaign(few_switches)
    assert counts[16] > counts[32] + counts[64]


def test_until_something_is_found_it_tosses_coins() -> None:
    repeat, tosses = Repeat(), Repeat(share=0)
    for trial in range(50):
        asked = repeat.ask(SPACE, trial, Stream(1, trial))
        assert asked == tosses.ask(SPACE, trial, Stream(1, trial))
        assert asked.origin == "coin"
        assert asked.propensities
        repeat.tell(Result(Verdict.INVALID, configuration=asked.configuration, used=(1, 0, 0, 0)))
        repeat.tell(Result(Verdict.PASSED, configuration=asked.configuration, used=(1, 0, 0, 0)))


def test_a_share_is_below_one() -> None:
    with pytest.raises(UserError, match="share is at least 0 and below 1"):
        Repeat(1.0)
