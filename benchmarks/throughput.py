"""How many steps per CPU second a campaign runs, storage on, beside bare loops and Hypothesis.

    python benchmarks/throughput.py [--quick]

The program is the blog's push/pop/add stack, 50 steps a test. A *bare* loop makes the same choices
and calls the same program with nothing around it: no configurations, no record of the steps, no
isolation, no store, no seed per test. Three are shown: `randrange` at every step, as most people
write it; `int(random() * n)`, tuned; and all choices of a test drawn at once. `vs_bare` is against
the first; `vs_bare_tuned` against the second.

`layered_vs_coin` is the rate of tests of a campaign with `layered` over that of one with `coin`:
the worst of machines with 3, 30, 300 and 1,000 actions. Both run the same number of tests of 50
steps, in turns and in one process, which draws, runs and packs them as a worker does, and writes
them to a store. What else the machine does can only add CPU time, so a cost is the least of some
rounds. Nothing is corrected for: `layered` also has to store a weight for each action. A batch is
drawn and packed at once, and costs the more for each test, the smaller it is. On a machine with
other work, 0.2 s hold fewer tests; here a batch has what fits 0.2 s of CPU time. The first batches
of a campaign, with which it finds out how long its tests take, are no part of the rate.

`two_workers` is by wall time, and says nothing on a machine that has other work: `load` is the
number of processes that wanted to run, over the number of cores, before it was measured. What does
not depend on the load is `serial_share`: the CPU time of the one process that hands out tests and
writes to the store, over that of all processes. With two workers on two cores that process takes
its time from them, so they are at most 2 * (1 - `serial_share`) times as fast as one worker would
be that had a core for itself, and no number of workers is faster than 1 / `serial_share`.
`two_workers_by_cpu` is that speed as measured: the CPU time of one worker for a test, over half of
the CPU time that two workers and the process that writes take for it together. It counts what the
workers cost each other (a cache that they share), and not the time in which a worker has nothing to
do.

CPU time counts all processes of the campaign. The start of the workers (measured with a campaign of
one test) is subtracted, because it does not grow with the tests. All are measured in turns, and a
figure is the median of the ratios of neighbours: on a shared machine seconds vary by half.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from harness import (
    arguments,
    cpu_seconds,
    median_ratio,
    print_figures,
    print_table,
    progress,
    require_modules,
    timed,
)
from machines import StackProgram

from swarmtest import Campaign
from swarmtest.campaign.executors import worker
from swarmtest.campaign.executors.executor import InlineExecutor
from swarmtest.campaign.executors.worker import CampaignJob

STEPS = 50
MACHINES = Path(__file__).parent / "machines.py"
SUBJECT = f"{MACHINES}::PushPopAdd"
WIDTHS = {3: 60_000, 30: 40_000, 300: 16_000, 1000: 5_000}
"""Actions of the machines that strategies are compared on, with the tests of a campaign."""

FEW = 32
"""Tests of a campaign that hardly takes longer than its start. A campaign of 16 tests or fewer
forks its workers instead of starting interpreters, so its start is not that of larger ones."""


SMALL_BATCHES = 8 + 32 + 128 + 512
"""Tests in the first four batches of a campaign, which grow until they have a size that suits."""


def bare_randrange(tests: int) -> None:
    rng = random.Random(1)
    for _ in range(tests):
        program = StackProgram()
        for _ in range(STEPS):
            choice = rng.randrange(3)
            if choice == 0:
                program.push(rng.randrange(10))
            elif choice == 1:
                program.pop()
            else:
                program.add()


def bare_tuned(tests: int) -> None:
    draw = random.Random(1).random
    for _ in range(tests):
        program = StackProgram()
        for _ in range(STEPS):
            choice = int(draw() * 3)
            if choice == 0:
                program.push(int(draw() * 10))
            elif choice == 1:
                program.pop()
            else:
                program.add()


def bare_batched(tests: int) -> None:
    rng = random.Random(1)
    for _ in range(tests):
        program = StackProgram()
        choices, values = rng.choices((0, 1, 2), k=STEPS), rng.choices(range(10), k=STEPS)
        for choice, value in zip(choices, values, strict=True):
            if choice == 0:
                program.push(value)
            elif choice == 1:
                program.pop()
            else:
                program.add()


def campaign(tests: int, strategy: str, workers: int = 1, subject: str = SUBJECT) -> float:
    """Run a campaign; its wall time, from the first test handed out to the last row stored."""
    with tempfile.TemporaryDirectory() as directory:
        store = str(Path(directory) / "store.db")
        outcome = Campaign(subject, strategy, tests, workers=workers, store=store).run()
        return outcome.progress.wall_seconds


def hypothesis_steps_per_second(examples: int) -> float:
    """Hypothesis on the same actions, with everything that slows it down switched off."""
    from hypothesis import HealthCheck, Phase, settings
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

    done = 0

    class PushPopAdd(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.program = StackProgram()

        @rule(value=st.integers(0, 9))
        def push(self, value: int) -> None:
            nonlocal done
            done += 1
            self.program.push(value)

        @rule()
        def pop(self) -> None:
            nonlocal done
            done += 1
            self.program.pop()

        @rule()
        def add(self) -> None:
            nonlocal done
            done += 1
            self.program.add()

    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seconds = timed(lambda: run_state_machine_as_test(PushPopAdd, settings=chosen))
    return done / seconds


class WorkerInThisProcess(InlineExecutor):
    """Does in this process what a worker does, in batches of the size that they have without load.

    So all that a campaign costs is CPU time of one process.
    """

    def __init__(self, job: CampaignJob) -> None:
        super().__init__(job)
        job.packs_blocks = True

    def run_trials(self, trials: list[int], proposals: list[Any] | None) -> list[Any]:
        """Run a batch, and say how many tests there are in a second of CPU time."""
        start = time.process_time()
        rows = super().run_trials(trials, proposals)
        if trials:
            self.rate = len(trials) / (time.process_time() - start)
        return rows


def compare_strategies(quick: bool) -> dict[int, float]:
    """Print CPU time per test of `coin` and `layered` for machines of several widths.

    Return the ratio of their rates for each width. The start is measured for each strategy, with
    a campaign of its first batches, and subtracted; both are the least of the rounds.
    """
    worker._FLUSH_NS = 10**12  # a batch is sent as one block, however long it takes
    ratios, rows = {}, []
    for width, full in WIDTHS.items():
        tests, rounds = (full // 4, 2) if quick else (full, 7)
        subject = f"{MACHINES}::Wide{width}"
        spent: dict[tuple[str, int], list[float]] = {
            (strategy, count): []
            for strategy in ("coin", "layered")
            for count in (SMALL_BATCHES, tests)
        }
        for number in range(1, rounds + 1):
            progress(f"{width} actions, round {number} of {rounds}")
            for (strategy, count), each in spent.items():
                with tempfile.TemporaryDirectory() as directory:
                    store = str(Path(directory) / "store.db")
                    run = Campaign(
                        subject, strategy, count, store=store, executor=WorkerInThisProcess
                    ).run
                    each.append(timed(run, time.process_time))
        least = {key: min(each) for key, each in spent.items()}
        coin, layered = (
            (least[strategy, tests] - least[strategy, SMALL_BATCHES])
            / (tests - SMALL_BATCHES)
            * 1e6
            for strategy in ("coin", "layered")
        )
        ratios[width] = coin / layered
        rows.append((width, f"{coin:.1f}", f"{layered:.1f}", f"{ratios[width]:.2f}"))
    print()
    print_table(("actions", "coin, us/test", "layered, us/test", "layered/coin, rate"), rows)
    return ratios


def main() -> None:
    quick = arguments(__doc__).quick
    require_modules({"hypothesis": "hypothesis"})
    tests, rounds, examples = (12_000, 2, 12) if quick else (100_000, 7, 300)
    progress("the start of a campaign")
    start_up = statistics.median(
        timed(lambda: campaign(FEW, "coin")) for _ in range(2 if quick else 3)
    )
    writer_start = min(timed(lambda: campaign(FEW, "coin"), time.process_time) for _ in range(3))
    writer: list[float] = []
    names = ("bare, randrange", "bare, tuned", "bare, batched")
    loops = (bare_randrange, bare_tuned, bare_batched)
    strategies = ("coin", "layered")
    seconds: dict[str, list[float]] = {name: [] for name in (*names, *strategies)}
    hypothesis = []
    for number in range(1, rounds + 1):
        progress(f"round {number} of {rounds}: bare loops, campaigns, Hypothesis")
        for name, loop in zip(names, loops, strict=True):
            seconds[name].append(timed(partial(loop, tests)))
        for strategy in strategies:
            before = time.process_time()
            used = timed(partial(campaign, tests, strategy))
            seconds[strategy].append(used - start_up)
            writer.append(time.process_time() - before - writer_start)
        hypothesis.append(hypothesis_steps_per_second(examples))

    writer_us = statistics.median(writer) / tests * 1e6
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    walls: dict[int, list[float]] = {1: [], 2: []}
    # CPU time of workers, and of all processes.
    of_workers: dict[int, list[float]] = {1: [], 2: []}
    of_all: dict[int, list[float]] = {1: [], 2: []}
    starts = {
        workers: min(timed(partial(campaign, FEW, "coin", workers)) for _ in range(2))
        for workers in walls
    }
    for _ in range(1 if quick else 2 * rounds):
        progress("one worker and two")
        for workers in walls:
            before = time.process_time()
            started = cpu_seconds()
            walls[workers].append(campaign(tests, "coin", workers))
            used = cpu_seconds() - started
            writing = time.process_time() - before - writer_start
            of_all[workers].append(used - starts[workers])
            of_workers[workers].append(of_all[workers][-1] - writing)

    steps = tests * STEPS
    rates = {name: steps / statistics.median(taken) for name, taken in seconds.items()}
    rates["Hypothesis stateful"] = statistics.median(hypothesis)
    print_table(
        ("one worker", "steps per CPU second", "x Hypothesis"),
        [
            (name, f"{rate:,.0f}", f"{rate / rates['Hypothesis stateful']:,.1f}")
            for name, rate in rates.items()
        ],
    )
    print(f"\nstart of a campaign with one worker: {start_up:.2f} s of CPU, not counted above")
    ratios = sorted(one / two for one, two in zip(walls[1], walls[2], strict=True))
    print(
        f"two workers: {median_ratio(walls[1], walls[2]):.2f} times one, by wall time "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f} in single rounds), at a load of {load:.1f} a core"
    )
    by_cpu = statistics.median(
        2 * one / both for one, both in zip(of_workers[1], of_all[2], strict=True)
    )
    print(f"by CPU time, on two cores without other work: {by_cpu:.2f} times one")
    serial_share = statistics.median(writer) / statistics.median(seconds["coin"])
    print(f"the process that hands out and writes: {serial_share:.1%} of all CPU time")
    ratios_by_width = compare_strategies(quick)
    print(f"the process that writes to the store: {writer_us:.1f} us of CPU per test")
    print_figures(
        {
            "vs_bare": round(median_ratio(seconds["bare, randrange"], seconds["coin"]), 3),
            "vs_bare_tuned": round(median_ratio(seconds["bare, tuned"], seconds["coin"]), 3),
            "vs_bare_layered": round(
                median_ratio(seconds["bare, randrange"], seconds["layered"]), 3
            ),
            "vs_hypothesis": round(rates["coin"] / rates["Hypothesis stateful"], 1),
            "layered_vs_coin": round(min(ratios_by_width.values()), 3),
            "layered_vs_coin_by_width": {n: round(r, 3) for n, r in ratios_by_width.items()},
            "two_workers": round(median_ratio(walls[1], walls[2]), 3),
            "two_workers_by_cpu": round(by_cpu, 3),
            "load": round(load, 2),
            "serial_share": round(serial_share, 4),
            "writer_us_per_test": round(writer_us, 2),
            "start_up_cpu_seconds": round(start_up, 3),
            "python": sys.version.split()[0],
        }
    )


if __name__ == "__main__":
    main()
