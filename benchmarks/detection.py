"""How many tests until a bug is found: the strategies, and Hypothesis, on the papers' examples.

    python benchmarks/detection.py [--quick]

Part one repeats two odds of the swarm testing paper (sections 1 and 2.1). Part two counts the tests
until the first detection of five bugs, over many seeds, each strategy up to a cap. `layered` is
meant to be near the best on every row; `layered_worst_ratio` is the worst ratio of its median to
the best median of that row. A strategy that reaches the cap with half of its seeds counts as if the
next test had found the bug, so that the ratio is never too small. `layered` has a cap of its own:
its median has to be known.

Part three judges on bugs of kinds that had no part in choosing the families and shares of `layered`
and of `hedged` (`bug_families`): `unseen_worst_ratio` and `unseen_mean_ratio` (a geometric mean)
are those of the median of `layered` to that of the best single strategy, `hedged_unseen_...` those
of `hedged`. Tests are simulated there, from the strategies' own draws. A sample of these bugs is
also given to Hypothesis. `first_unseen_...` are about the kinds that judged `layered` first: what
they showed gave ideas for `hedged`.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import machines
from bug_families.fresh_kinds import FRESH
from bug_families.judgement import MIXTURES, Finding, judge, machine_of, print_judgement
from bug_families.kinds import JUDGING
from harness import arguments, print_figures, print_table, progress, require_modules

from swarmtest import Machine
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import seed_of_test, trial_key
from swarmtest.strategies import Stream, parse_strategy
from swarmtest.subjects import MachineSubject

STRATEGIES = ("all-on", "coin", "coin:p=random", "activation", "layered", "hedged")
ROWS: dict[str, type[Machine]] = {
    "stack deeper than 32": machines.Depth,
    "the same with a third action": machines.DepthWithAdd,
    "pops:pushes at least 5:1": machines.Ratio,
    "three features half as common": machines.HalfAsCommon,
    "64 opens without a close": machines.OpenFiles,
}


@dataclass(frozen=True)
class Size:
    seeds: int
    cap: int
    layered_cap: int
    hypothesis_seeds: int
    hypothesis_cap: int
    odds_all_on: int
    odds_coin: int
    odds_opens: int
    unseen_tests: int
    unseen_bugs: int
    """Of each kind."""
    hypothesis_unseen: int
    """Seeds for each bug of the sample."""


FULL = Size(60, 10_000, 10_000, 30, 100, 4_000_000, 100_000, 100_000, 2_000, 12, 2)
QUICK = Size(5, 200, 10_000, 1, 5, 20_000, 10_000, 500, 400, 1, 0)
UNSEEN_CAP = 60
"""Examples that Hypothesis has for each bug of the sample."""


def tests_until_found(machine: type[Machine], strategy: str, seed: int, cap: int) -> int | None:
    """The number of tests up to and including the first that fails; None if the cap is reached."""
    subject, chosen, stream = MachineSubject(machine), parse_strategy(strategy), Stream(seed)
    for trial in range(cap):
        stream.rekey(trial_key(seed, trial))
        proposal = chosen.ask(subject.space, trial, stream)
        assert isinstance(proposal, Proposal)
        if subject.execute(proposal.configuration, seed_of_test(seed, trial)).fault:
            return trial + 1
    return None


def hypothesis_until_found(machine: type[Machine], seed: int, cap: int) -> int | None:
    """The same for Hypothesis's stateful testing of the same actions."""
    import hypothesis.core
    from hypothesis import HealthCheck, Phase, settings
    from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

    started = count()
    latest = found = 0

    class Rules(RuleBasedStateMachine):
        def __init__(self) -> None:
            nonlocal latest
            super().__init__()
            latest = next(started) + 1
            self.machine = machine()
            self.machine.start()

        def teardown(self) -> None:
            nonlocal found
            try:
                self.machine.stop()
            except AssertionError:
                found = found or latest
                raise

    def acting(name: str) -> Callable[[Any], None]:
        def act(self: Any) -> None:
            nonlocal found
            try:
                getattr(self.machine, name)()
            except AssertionError:
                found = found or latest
                raise

        act.__name__ = name
        return rule()(act)

    members = {name: acting(name) for name in MachineSubject(machine).space.feature_names}
    hypothesis.core.global_force_seed = seed  # type: ignore[assignment]  # declared as None
    assert isinstance(machine.steps, int)
    chosen = settings(
        max_examples=cap,
        stateful_step_count=machine.steps,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    try:
        with open(os.devnull, "w") as null, _output_to(null):
            run_state_machine_as_test(type("Rules", (Rules,), members), settings=chosen)
    except AssertionError:
        pass
    return found or None


def _output_to(stream: Any) -> Any:
    import contextlib

    return contextlib.redirect_stdout(stream)


def share_failing(machine: type[Machine], strategy: str, tests: range) -> int:
    """How many of these trials fail."""
    subject, chosen, stream = MachineSubject(machine), parse_strategy(strategy), Stream(0)
    failing = 0
    for trial in tests:
        stream.rekey(trial_key(0, trial))
        proposal = chosen.ask(subject.space, trial, stream)
        assert isinstance(proposal, Proposal)
        failing += subject.execute(proposal.configuration, seed_of_test(0, trial)).fault is not None
    return failing


def exact_overflow_odds() -> tuple[float, float]:
    """The exact chance that a test of `Overflow32` overflows: all-on, and coin (non-empty)."""
    longest = 260
    weights = [_half_normal(steps, 25.0) for steps in range(1, longest)]
    depth, over, all_on = {0: 1.0}, 0.0, 0.0
    for weight in weights:
        following: dict[int, float] = {}
        for at, chance in depth.items():
            if at == 32:
                over += chance / 2
            else:
                following[at + 1] = following.get(at + 1, 0.0) + chance / 2
            following[max(at - 1, 0)] = following.get(max(at - 1, 0), 0.0) + chance / 2
        depth = following
        all_on += weight * over
    pushes_only = sum(weights[32:])
    return all_on, (all_on + pushes_only) / 3


def _half_normal(steps: int, deviation: float) -> float:
    """The chance that max(1, round(|N(0, deviation)|)) is `steps`."""
    low = 0.0 if steps == 1 else steps - 0.5
    scale = deviation * math.sqrt(2)
    return math.erf((steps + 0.5) / scale) - math.erf(low / scale)


def one_in(chance: float) -> str:
    return f"1 in {1 / chance:,.4g}" if chance else "never"


def odds(pool: ProcessPoolExecutor, size: Size) -> dict[str, object]:
    def measure(machine: type[Machine], strategy: str, tests: int) -> float:
        pieces = [range(start, tests, 8) for start in range(8)]
        return sum(pool.map(partial(share_failing, machine, strategy), pieces)) / tests

    progress("odds of single tests")
    exact_all_on, exact_coin = exact_overflow_odds()
    all_on = measure(machines.Overflow32, "all-on", size.odds_all_on)
    coin = measure(machines.Overflow32, "coin", size.odds_coin)
    opens_all_on = measure(machines.OpenFiles, "all-on", size.odds_opens)
    opens = MachineSubject(machines.OpenFiles)
    pair = opens.space.configuration(["open", "read"])
    opens_pair = statistics.mean(opens.execute(pair, seed).fault is not None for seed in range(500))
    tests, few = f"{size.odds_all_on:,} tests", f"{size.odds_coin:,} tests"
    opened = f"{size.odds_opens:,} tests"
    print_table(
        ("odds that one test finds the bug", "measured", "exact", "the paper"),
        [
            (
                f"stack of 32, all-on ({tests})",
                one_in(all_on),
                one_in(exact_all_on),
                "1 in 370,000",
            ),
            (f"stack of 32, coin ({few})", one_in(coin), one_in(exact_coin), "1 in 16"),
            (f"64 opens, all-on ({opened})", one_in(opens_all_on), "", "< 1 in 100,000"),
            ("64 opens, open and read only (500 tests)", f"{opens_pair:.0%}", "", "over 80%"),
        ],
    )
    print()
    return {
        "odds_all_on_one_in": round(1 / all_on) if all_on else None,
        "odds_coin_one_in": round(1 / coin, 2) if coin else None,
        "odds_all_on_exact_one_in": round(1 / exact_all_on),
        "odds_coin_exact_one_in": round(1 / exact_coin, 2),
        "opens_pair_share": round(opens_pair, 3),
    }


def hypothesis_on_bug(finding: Finding, seed: int) -> int | None:
    return hypothesis_until_found(machine_of(finding.bug), seed, UNSEEN_CAP)


def print_hypothesis(
    pool: ProcessPoolExecutor, findings: list[Finding], seeds: int
) -> dict[str, object]:
    """Give a sample of the unseen bugs to Hypothesis: of each kind the one that is found first.

    Only small machines and short tests, because Hypothesis runs some 9,000 steps in a second.
    """
    small = [f for f in findings if f.bug.features <= 20 and f.bug.steps <= 200]
    sample = {
        kind: min(of, key=lambda finding: finding.best)
        for kind in FRESH
        if (of := [finding for finding in small if finding.bug.kind == kind])
    }
    rows, found = [], {}
    for kind, finding in sample.items() if seeds else ():
        progress(f"Hypothesis: {finding.bug}")
        medians = list(pool.map(partial(hypothesis_on_bug, finding), range(seeds)))
        found[kind] = sum(tests is not None for tests in medians)
        figures = (f"{finding.best:,.0f}", f"{finding.median('layered'):,.0f}", cell(medians))
        rows.append((str(finding.bug), *figures))
    if rows:
        print(f"\nHypothesis on one bug of each kind ({seeds} seeds, {UNSEEN_CAP} examples each):")
        print_table(("bug", "best single strategy", "layered", "Hypothesis"), rows)
    return {"unseen_hypothesis_bugs": len(rows), "unseen_hypothesis_found": found}


def median_of(found: list[int | None]) -> float:
    """The median number of tests; infinite if half of the seeds or more found nothing."""
    return statistics.median(math.inf if tests is None else tests for tests in found)


def detections(pool: ProcessPoolExecutor, size: Size) -> Iterator[tuple[str, dict[str, Any]]]:
    for row, machine in ROWS.items():
        found: dict[str, Any] = {}
        for strategy in STRATEGIES:
            progress(f"tests to the first detection: {row}, {strategy}")
            cap = size.layered_cap if strategy in MIXTURES else size.cap
            run = partial(tests_until_found, machine, strategy, cap=cap)
            found[strategy] = list(pool.map(run, range(size.seeds)))
        run = partial(hypothesis_until_found, machine, cap=size.hypothesis_cap)
        found["Hypothesis"] = list(pool.map(run, range(size.hypothesis_seeds)))
        yield row, found


def mixture_ratio(found: dict[str, list[int | None]], mixture: str, cap: int) -> float:
    """The median of a mixture over the best median; one that is beyond the cap is just beyond."""
    strategies = {mixture, *STRATEGIES} - ({*MIXTURES} - {mixture})
    best = min(min(median_of(found[strategy]), cap + 1) for strategy in strategies)
    return median_of(found[mixture]) / best


def cell(found: list[int | None]) -> str:
    hits = sum(tests is not None for tests in found)
    if hits == len(found):
        return f"{median_of(found):,.0f}"
    return f"{hits}/{len(found)}"


def main() -> None:
    size = QUICK if arguments(__doc__).quick else FULL
    require_modules({"hypothesis": "hypothesis"})
    with ProcessPoolExecutor(2) as pool:
        figures = odds(pool, size)
        found = dict(detections(pool, size))
    columns = (*STRATEGIES, "Hypothesis")
    print(
        f"median tests to the first detection, {size.seeds} seeds, at most {size.cap:,} tests "
        f"(Hypothesis: {size.hypothesis_seeds} seeds, {size.hypothesis_cap} examples);\n"
        "n/m: found by n of m seeds"
    )
    print_table(("bug", *columns), [(r, *(cell(f[c]) for c in columns)) for r, f in found.items()])
    ratios = {
        mixture: {row: mixture_ratio(of, mixture, size.cap) for row, of in found.items()}
        for mixture in MIXTURES
    }
    print("\nthe median of a mixture over the best strategy's:")
    print_table(
        ("bug", *MIXTURES), [(row, *(f"{ratios[m][row]:.2f}" for m in MIXTURES)) for row in found]
    )
    print()
    unseen = judge(FRESH, size.unseen_tests, size.unseen_bugs)
    figures |= print_judgement(unseen)
    print("\nThe kinds that judged `layered` first:")
    first = judge(JUDGING, size.unseen_tests, size.unseen_bugs)
    figures |= print_judgement(first, "first_unseen")
    with ProcessPoolExecutor(2) as pool:
        figures |= print_hypothesis(pool, unseen, size.hypothesis_unseen)
    all_found = all(None not in of["layered"] for of in found.values())
    print_figures(
        figures
        | {
            "layered_worst_ratio": round(max(ratios["layered"].values()), 3),
            "hedged_worst_ratio": round(max(ratios["hedged"].values()), 3),
            "layered_found_everywhere": all_found,
            "seeds": size.seeds,
            "cap": size.cap,
            "medians": {
                row: {c: m if (m := median_of(of[c])) < math.inf else None for c in columns}
                for row, of in found.items()
            },
        }
    )


if __name__ == "__main__":
    main()
