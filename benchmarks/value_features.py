"""Do values as features find bugs sooner? CPU seconds to the first hit on twenty known bugs.

    python benchmarks/value_features.py [--quick] [--work DIR] [--rounds N] [--cap SECONDS]

Each bug is one of a PyPI release, with its machine (`known_bugs/`, `why_truth.py`,
`why_judged.py`). Each way of testing runs until the bug shows, or until `--cap` CPU seconds are
over; time in which it did not show counts as twice the cap. The ways are:

- *all-on*: every action in every test;
- *layered*: the default strategy, over the actions;
- *values*: the same with classes of argument values as features (`Machine.value_features`);
- *lengths*: layered, with tests of any length up to twice the machine's own, short ones as likely
  as long ones;
- *both*: values and lengths.

`speedup_X` is the geometric mean, over the bugs, of the mean seconds of *layered* over those of X:
above 1, X is faster. To both, 0.05 s are added, less than the start of a campaign takes, so that
bugs that every way finds at once do not decide. The first half of the bugs is for tuning and the
second for judging: rules were chosen by the first alone. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness import print_figures, print_table, progress
from known_bugs import DEFAULT_WORK, HERE, install, unpack_source
from why_judged import JUDGING
from why_truth import RARE, TUNING, KnownCause

WAYS = ("all-on", "layered", "values", "lengths", "both")
TUNED = [*TUNING, *RARE[:2]]
JUDGED = [*RARE[2:], *JUDGING]
QUICK = ("IndexedSet: slice", "Buffer: heavier value")
ROUNDS, CAP = 5, 4.0
START = 0.05


def run_child(machine_file: str, fault: str, rounds: int, cap: float) -> dict[str, list[float]]:
    """Return the CPU seconds to the first hit, by way and round; twice the cap if there is none.

    The ways take turns, so that another load of the machine hits all of them.
    """
    from swarmtest.core.seeds import Stream
    from swarmtest.languages.user_objects import load_module
    from swarmtest.strategies import parse_strategy
    from swarmtest.subjects import MachineSubject
    from swarmtest.subjects.machine.machine import Machine

    module = load_module(machine_file)
    machine = next(
        member
        for member in vars(module).values()
        if isinstance(member, type)
        and issubclass(member, Machine)
        and member.__module__ == module.__name__
    )
    cause = KnownCause("", "", "", "", "", machine_file, fault, (), frozenset(), 0)

    def subject_of(way: str) -> MachineSubject:
        chosen: Any = machine
        if way in ("lengths", "both"):
            chosen = type(machine.__name__, (machine,), {"steps": any_length(machine.steps)})
            chosen.__module__, chosen.__qualname__ = machine.__module__, machine.__qualname__
        return MachineSubject(chosen, value_features=way in ("values", "both"))

    def first_hit(way: str, seed: int) -> float:
        subject = subject_of(way)
        strategy = parse_strategy("all-on" if way == "all-on" else "layered")
        source = Stream(seed)
        began = time.process_time()
        for trial in itertools.count():
            proposal: Any = strategy.ask(subject.space, trial, source.split(str(trial)))
            configuration = getattr(proposal, "configuration", proposal)
            result = subject.execute(configuration, hash((seed, trial)) & 0xFFFFFFFF)
            if result.fault and cause.is_shown_by(result.fault.signature):
                break
            if time.process_time() - began > cap:
                return 2 * cap
        return time.process_time() - began

    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for round_ in range(rounds):
        for way in WAYS:
            seconds[way].append(first_hit(way, round_))
    return seconds


def any_length(steps: Any) -> Any:
    """Return a function that draws lengths up to twice `steps`, by their logarithm."""
    most = 2 * (steps if isinstance(steps, int) else max(steps))

    def draw(rng: random.Random) -> int:
        return max(1, int(2 ** (rng.random() * math.log2(most))))

    return draw


def measure(bug: KnownCause, work: Path, rounds: int, cap: float) -> dict[str, list[float]]:
    """Run all ways on one bug, in a process that sees its release only."""
    get = unpack_source if bug.source else install
    paths = [get(bug.package, bug.release, work)]
    paths += [install(package, release, work) for package, release in bug.also]
    known = HERE / "known_bugs"
    roots = [str(root) for path in paths for root in (path, path / "src")]
    source = str(HERE.parent / "src")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*roots, str(known), source])}
    environment["PYTHONHASHSEED"] = "0"
    child = [sys.executable, __file__, "--child", str(known / bug.machine), bug.fault]
    options = [f"--rounds={rounds}", f"--cap={cap}"]
    done = subprocess.run([*child, *options], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{bug.title}: {done.stderr.strip().splitlines()[-1]}")
    seconds: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def speedup(measured: list[dict[str, list[float]]], way: str) -> float:
    """Return the geometric mean of the seconds of layered over those of another way."""
    ratios = [
        (sum(seconds["layered"]) / len(seconds["layered"]) + START)
        / (sum(seconds[way]) / len(seconds[way]) + START)
        for seconds in measured
    ]
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--cap", type=float)
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args()
    options.work = options.work.expanduser()
    rounds = options.rounds or (2 if options.quick else ROUNDS)
    cap = options.cap or (1.0 if options.quick else CAP)
    if options.child:
        machine_file, fault = options.child
        print(json.dumps(run_child(machine_file, fault, rounds, cap)))
        return
    halves = {"tuned": TUNED, "judged": JUDGED}
    if options.quick:
        halves = {
            name: [bug for bug in bugs if bug.title in QUICK] for name, bugs in halves.items()
        }
    rows: list[list[object]] = []
    figures: dict[str, object] = {"bugs": sum(map(len, halves.values())), "cap": cap}
    for half, bugs in halves.items():
        measured = []
        for bug in bugs:
            progress(f"{half}: {bug.title}")
            seconds = measure(bug, options.work, rounds, cap)
            measured.append(seconds)
            progress(" ".join(f"{way} {sum(seconds[way]) / rounds:.2f}s" for way in WAYS))
            means = [f"{sum(seconds[way]) / rounds:.3f}" for way in WAYS]
            rows.append([half, bug.title, *means])
        for way in WAYS:
            figures[f"{half}_speedup_{way}"] = round(speedup(measured, way), 3)
            hits = [value < 2 * cap for seconds in measured for value in seconds[way]]
            figures[f"{half}_found_{way}"] = round(sum(hits) / len(hits), 3)
    print_table(["half", "bug", *WAYS], rows)
    print_figures(figures)


if __name__ == "__main__":
    main()
