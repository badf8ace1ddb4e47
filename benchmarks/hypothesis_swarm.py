"""Hypothesis's own swarm flags against our strategies, on the same state machines.

    python benchmarks/hypothesis_swarm.py [--quick]

Both draw the arguments with Hypothesis's strategies. Hypothesis runs as in pytest, but it only
generates: no shrinking, no database. Counted are tests and CPU seconds until the first failure,
over many seeds, up to a cap; and steps per CPU second where there is nothing to find.
`vs_hypothesis_tests` and `vs_hypothesis_cpu` are the geometric means over the rows that both found
of Hypothesis's median over `layered`'s: above 1 is better than Hypothesis.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import rule_machines
from harness import arguments, print_figures, print_table, progress, require_modules

from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import seed_of_test, trial_key
from swarmtest.strategies import Stream, parse_strategy
from swarmtest.subjects.hypothesis.subject import RuleBasedSubject

STRATEGIES = ("all-on", "coin", "layered")
THEIRS = "Hypothesis"
ROWS: dict[str, type[Any]] = {
    "stack deeper than 32": rule_machines.Depth,
    "the same with a third rule": rule_machines.DepthWithAdd,
    "pops:pushes at least 5:1": rule_machines.Ratio,
    "32 files open at once": rule_machines.OpenFiles,
    "a large sum in one rule": rule_machines.Values,
}


@dataclass(frozen=True)
class Size:
    seeds: int
    cap: int
    hypothesis_cap: int
    rate_tests: int


FULL = Size(20, 400, 80, 100)
QUICK = Size(3, 80, 15, 10)


class Found(NamedTuple):
    """Tests and CPU seconds up to the first failure; infinite if the cap was reached."""

    tests: float
    cpu: float


NOTHING = Found(math.inf, math.inf)


def ours(row: str, strategy: str, seed: int, cap: int) -> Found:
    machine = ROWS[row]
    subject = RuleBasedSubject(machine, steps=machine.steps)
    chosen, stream = parse_strategy(strategy), Stream(seed)
    begun = time.process_time()
    for trial in range(cap):
        stream.rekey(trial_key(seed, trial))
        proposal = chosen.ask(subject.space, trial, stream)
        assert isinstance(proposal, Proposal)
        if subject.execute(proposal.configuration, seed_of_test(seed, trial)).fault:
            return Found(trial + 1, time.process_time() - begun)
    return NOTHING


class Watch:
    """Counts the tests and steps that Hypothesis runs of a machine."""

    def __init__(self, machine: type[Any]) -> None:
        watch = self
        self.tests = self.steps = 0
        self.found = NOTHING
        self.begun = time.process_time()

        class Watched(machine):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                watch.tests += 1
                self.checks = -1

            def check_invariants(self, *arguments: Any) -> None:
                self.checks += 1

            def teardown(self) -> None:
                watch.steps += self.checks
                if sys.exc_info()[0] is AssertionError and watch.found is NOTHING:
                    watch.found = Found(watch.tests, time.process_time() - watch.begun)

        self.machine = Watched

    def run(self, seed: int, examples: int) -> None:
        """Run it as pytest would, to the first failure."""
        import hypothesis.core
        from hypothesis import HealthCheck, Phase, settings
        from hypothesis.stateful import run_state_machine_as_test

        hypothesis.core.global_force_seed = seed  # type: ignore[assignment]  # declared as None
        chosen = settings(
            max_examples=examples,
            stateful_step_count=self.machine.steps,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=False,
        )
        self.begun = time.process_time()
        with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
            run_state_machine_as_test(self.machine, settings=chosen)


def theirs(row: str, seed: int, cap: int) -> Found:
    watch = Watch(ROWS[row])
    with contextlib.suppress(AssertionError):
        watch.run(seed, cap)
    return watch.found


def steps_per_second(row: str, engine: str, tests: int) -> float:
    machine = ROWS[row]
    if engine == THEIRS:
        watch = Watch(machine)
        with contextlib.suppress(AssertionError):
            watch.run(1, tests)
        return watch.steps / (time.process_time() - watch.begun)
    subject = RuleBasedSubject(machine, steps=machine.steps)
    chosen, stream = parse_strategy(engine), Stream(1)
    begun, steps = time.process_time(), 0
    for trial in range(tests):
        stream.rekey(trial_key(1, trial))
        proposal = chosen.ask(subject.space, trial, stream)
        assert isinstance(proposal, Proposal)
        steps += subject.execute(proposal.configuration, seed_of_test(1, trial)).steps
    return steps / (time.process_time() - begun)


def median(found: Sequence[Found], what: int) -> float:
    return statistics.median(f[what] for f in found)


def cell(found: Sequence[Found]) -> tuple[str, str]:
    hits = sum(f.tests < math.inf for f in found)
    if hits == 0:
        return f"0/{len(found)}", "-"
    share = "" if hits == len(found) else f" ({hits}/{len(found)})"
    tests, cpu = median(found, 0), median(found, 1)
    if tests == math.inf:
        return f"{hits}/{len(found)}", "-"
    return f"{tests:,.0f}{share}", f"{cpu:.3f}"


def gain(found: dict[str, dict[str, list[Found]]], strategy: str, what: int) -> float | None:
    """The geometric mean of their median over ours, where both found it."""
    ratios = [
        median(of[THEIRS], what) / median(of[strategy], what)
        for of in found.values()
        if max(median(of[THEIRS], 0), median(of[strategy], 0)) < math.inf
    ]
    return round(statistics.geometric_mean(ratios), 2) if ratios else None


def main() -> None:
    size = QUICK if arguments(__doc__).quick else FULL
    require_modules({"hypothesis": "'swarmtest[hypothesis]'"})
    engines = (*STRATEGIES, THEIRS)
    found: dict[str, dict[str, list[Found]]] = {}
    with ProcessPoolExecutor(2) as pool:
        for row in ROWS:
            progress(f"tests to the first failure: {row}")
            of = found[row] = {}
            for strategy in STRATEGIES:
                run = partial(ours, row, strategy, cap=size.cap)
                of[strategy] = list(pool.map(run, range(size.seeds)))
            run = partial(theirs, row, cap=size.hypothesis_cap)
            of[THEIRS] = list(pool.map(run, range(size.seeds)))
    print(
        f"median tests to the first failure, {size.seeds} seeds, at most {size.cap:,} tests "
        f"(Hypothesis: {size.hypothesis_cap});\nn/m: found by n of m seeds"
    )
    for what, name in enumerate(("tests", "CPU seconds")):
        rows = [(row, *(cell(of[e])[what] for e in engines)) for row, of in found.items()]
        print_table((name, *engines), rows)
        print()
    progress("steps per second")
    rates = {
        row: [steps_per_second(row, e, size.rate_tests) for e in ("coin", THEIRS)]
        for row in ("pops:pushes at least 5:1", "32 files open at once")
    }
    print_table(
        ("steps per CPU second", "coin", THEIRS, "ratio"),
        [(r, f"{a:,.0f}", f"{b:,.0f}", f"{a / b:.1f}") for r, (a, b) in rates.items()],
    )
    print_figures(
        {
            "vs_hypothesis_tests": gain(found, "layered", 0),
            "vs_hypothesis_cpu": gain(found, "layered", 1),
            "coin_vs_hypothesis_tests": gain(found, "coin", 0),
            "coin_vs_hypothesis_cpu": gain(found, "coin", 1),
            "vs_hypothesis_steps_per_second": round(
                statistics.geometric_mean(a / b for a, b in rates.values()), 2
            ),
            "seeds": size.seeds,
            "medians": {
                row: {e: m if (m := median(of[e], 0)) < math.inf else None for e in engines}
                for row, of in found.items()
            },
        }
    )


if __name__ == "__main__":
    main()
