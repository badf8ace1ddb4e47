"""How much slower threaded programs become under each front end of `swarmtest.race`.

    python benchmarks/race_slowdown.py [--quick]

Each program runs without probes, and with them: with nothing behind them, recording, with pair
coverage (in Python, and with the C accelerator), with all concurrency coverage, and under noise
that is switched off. Rounds take turns, figures are medians of ratios of CPU time to the bare
program in the same round. `pair_slowdown` is the geometric mean over the programs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from harness import progress

from swarmtest.coverage.scope import Scope
from swarmtest.race.accelerator import OFF, accelerator_status
from swarmtest.race.coverage.coverage import ConcurrencyCoverage
from swarmtest.race.coverage.shared_variables import AccessRecording
from swarmtest.race.free.noise import Noise
from swarmtest.race.free.runner import free_run
from swarmtest.race.noise_settings import NoiseSettings
from swarmtest.race.weaving.weaver import woven

PROGRAMS = Path(__file__).with_name("race_slowdown_programs")
NAMES = {
    "log_report": "parses a log, counts in shared tables",
    "crawler": "parses pages, shares links and results",
    "warehouse": "small methods on shared objects",
}
PAIRS = "pairs, accelerated"
Front = Callable[[Callable[[], object]], object]


def coverage_of(kinds: list[str], accelerated: bool) -> ConcurrencyCoverage:
    if not accelerated:
        os.environ[OFF] = "1"
    try:
        return ConcurrencyCoverage(kinds)
    finally:
        os.environ.pop(OFF, None)


def fronts() -> dict[str, Front]:
    in_python = coverage_of(["pair"], False)
    in_c = coverage_of(["pair"], True)
    everything = coverage_of(["shared", "pair", "sync"], True)
    return {
        "probes, nothing behind": lambda main: main(),
        "noise, switched off": lambda main: checked(
            main, Noise(NoiseSettings(0), 1, most_probes=10**9)
        ),
        "pairs, in Python": lambda main: checked(main, None, in_python),
        PAIRS: lambda main: checked(main, None, in_c),
        "pairs, sync and shared": lambda main: checked(main, None, everything),
        "recording": lambda main: checked(main, AccessRecording()),
    }


def checked(
    main: Callable[[], object],
    policy: Noise | AccessRecording | None,
    coverage: ConcurrencyCoverage | None = None,
) -> None:
    run = free_run(main, policy, coverage=coverage, seconds=120)
    assert run.fault is None, run.fault
    assert not run.problem, run.problem


def loaded(name: str, suffix: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_{suffix}", PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def cpu_seconds(front: Front, main: Callable[[int], object], size: int) -> float:
    """The program's own time: switching probes on and off is not part of it."""
    spent = 0.0

    def timed() -> None:
        nonlocal spent
        begin = time.process_time()
        main(size)
        spent = time.process_time() - begin

    front(timed)
    return spent


def ratios_of(name: str, size: int, rounds: int) -> dict[str, float]:
    bare = loaded(name, "bare").main
    # The hook looks at imports; these programs are loaded by hand, and woven by name.
    sys.path.insert(0, str(PROGRAMS))
    found: dict[str, list[float]] = {}
    with woven(Scope(names=(name,))):
        main = importlib.import_module(name).main
    sys.path.remove(str(PROGRAMS))
    ways = fronts()
    for number in range(rounds + 1):
        seconds = cpu_seconds(lambda main: main(), bare, size)
        for label, front in ways.items():
            ratio = cpu_seconds(front, main, size) / seconds
            if number:  # the first round warms up
                found.setdefault(label, []).append(ratio)
    return {label: statistics.median(values) for label, values in found.items()}


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    size, rounds = (2, 3) if quick else (10, 9)
    print(f"pair coverage: {accelerator_status().partition(':')[0]}")
    print("CPU time as a multiple of the bare program's:\n")
    table = {}
    for name in NAMES:
        progress(f"{name}, {rounds} rounds")
        table[name] = ratios_of(name, size, rounds)
    print(f"{'':24}" + "".join(f"{name:>12}" for name in table) + f"{'mean':>8}")
    means: dict[str, float] = {}
    for label in next(iter(table.values())):
        values = [ratios[label] for ratios in table.values()]
        means[label] = geometric_mean(values)
        print(f"{label:24}" + "".join(f"{v:12.2f}" for v in values) + f"{means[label]:8.2f}")
    print()
    for name, what in NAMES.items():
        print(f"{name}: {what}")
    figures = {
        "accelerated": accelerator_status().startswith("C"),
        "pair_slowdown": round(means[PAIRS], 3),
        "pair_slowdown_worst": round(max(ratios[PAIRS] for ratios in table.values()), 3),
        "slowdowns": {label: round(mean, 3) for label, mean in means.items()},
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
