"""The price of knowing, for each test, what it executed: swarmtest beside other coverage tools.

    python benchmarks/instrument.py [--quick] [--python-only]

The program is a red-black tree (`red_black.py`); a test makes one, runs 20, 100 or 1,000 random
operations on it and checks its invariants. What to do is drawn beforehand: a test's time is the
tree's. Before each test a technique is reset, after it what was hit is taken; no two tests have the
same seed, so nothing but the program itself makes their hits alike. A slow-down is CPU time with a
technique over CPU time without, for the same tests. Each technique has a process of its own (some
change the whole interpreter); the bare tree, in one too, is run right before each, in short turns,
and a figure is the median of the ratios of neighbours.

Every technique has to tell the same lines and branches of each test as coverage.py does; tests for
which one does not are counted. The other tools are at their best, by private ways where those are
faster (`coverage_peers.py`).

Beside it: what importing with probes costs, and what `reset` and `take` cost whatever a test does.
`native_coverage.py` measures native programs; it is run at the end unless ``--python-only``.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import multiprocessing
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

from coverage_peers import (
    TREE,
    Arcs,
    Place,
    Watched,
    branch_arcs,
    coverage_collector,
    coverage_contexts,
    import_tree,
    monitoring_branches,
    monitoring_lines,
    slipcover_sets,
)
from harness import (
    median_ratio,
    print_figures,
    print_table,
    progress,
    require_modules,
    timed,
)

from swarmtest.core.targets import Hits
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.watch import Coverage
from swarmtest.coverage.weaving.arcs import arc_of

HERE = Path(__file__).parent
OPERATIONS = (20, 100, 1000)
GOALS = {"swarmtest line": 1.4, "swarmtest branch": 1.8, "swarmtest path": 2.5}
"""Slow-downs for tests of 100 operations."""
GOAL_OPERATIONS = 100
KEYS = 64
WEIGHTS = (45, 30, 23, 2)
"""How often a test inserts, deletes, finds and iterates."""

Test = list[tuple[int, int]]


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    turns: int
    steps: int
    """Operations in a turn, over all its tests."""
    copies: int
    """Modules that are imported to time it."""
    modules: int
    """Modules of the large program."""
    compared: int
    """Operations of the tests whose hits are compared."""


FULL = Size(turns=31, steps=4000, copies=20, modules=200, compared=6000)
QUICK = Size(turns=3, steps=1000, copies=3, modules=20, compared=2000)


# Tests


def draw_test(seed: int, operations: int) -> Test:
    """What a test does: actions and keys."""
    rng = random.Random(seed)
    actions = rng.choices(range(len(WEIGHTS)), WEIGHTS, k=operations)
    return list(zip(actions, rng.choices(range(KEYS), k=operations), strict=True))


def run_test(tree_type: Callable[[], Any], test: Test) -> None:
    tree = tree_type()
    actions = (tree.insert, tree.delete, tree.__contains__, lambda _: list(tree))
    for action, key in test:
        actions[action](key)
    tree.check()


def run_bare(module: ModuleType, tests: Sequence[Test]) -> None:
    for test in tests:
        run_test(module.RedBlackTree, test)


def run_watched(watched: Watched, tests: Sequence[Test]) -> None:
    reset, take, tree_type = watched.reset, watched.take, watched.module.RedBlackTree
    for test in tests:
        reset()
        run_test(tree_type, test)
        take()


def hits_of(watched: Watched, test: Test) -> Set[Place]:
    watched.reset()
    run_test(watched.module.RedBlackTree, test)
    found = watched.take()
    watched.reset()
    return watched.decode(found)


# Techniques


@dataclass(frozen=True)
class Technique:
    """One row of the table."""

    name: str
    start: Callable[[Arcs], Watched]
    python: tuple[int, int] = (3, 11)
    """The first version that has it."""
    tells: tuple[str, ...] = ()
    """What it has to tell as coverage.py does: ``line``, ``branch``."""

    @property
    def is_peer(self) -> bool:
        return not self.name.startswith("swarmtest")

    @property
    def missing(self) -> str:
        """Why this Python cannot run it; empty when it can."""
        if sys.version_info >= self.python:
            return ""
        return f"needs Python {self.python[0]}.{self.python[1]}"


def swarmtest(kinds: tuple[str, ...], probes: str = "auto") -> Callable[[Arcs], Watched]:
    """Our own coverage of the tree."""

    def start(_: Arcs) -> Watched:
        coverage = Coverage(CoverageOptions(kinds, (TREE,), probes)).install()
        module = import_tree()
        coverage.begin()
        return Watched(module, coverage.reset, coverage.take, places)

    return start


def places(hits: Hits) -> Set[Place]:
    """The lines and branches among what a test hit."""
    found: set[Place] = {target.line for target in hits.targets() if target.kind == "line"}
    return found | {arc_of(target) for target in hits.targets() if target.kind == "branch"}


def ours() -> Iterator[Technique]:
    for kinds in ("line", "branch", "line+branch", "path", "predicate", "prime", "du"):
        chosen = tuple(kinds.split("+"))
        told = tuple(kind for kind in chosen if kind in ("line", "branch"))
        yield Technique(f"swarmtest {kinds}", swarmtest(chosen), tells=told)
    by_events = swarmtest(("line",), "monitoring")
    yield Technique("swarmtest line, by monitoring", by_events, (3, 12), ("line",))


def peers() -> Iterator[Technique]:
    for kind, branch in (("line", False), ("branch", True)):
        by_contexts = partial(coverage_contexts, branch)
        yield Technique(f"coverage.py {kind}, public", by_contexts, tells=(kind,))
        for core in ("ctrace", "pytrace", "sysmon"):
            collected = partial(coverage_collector, core, branch)
            python = (3, 11) if core != "sysmon" else (3, 14) if branch else (3, 12)
            yield Technique(f"coverage.py {kind}, {core}", collected, python, (kind,))
        yield Technique(f"SlipCover {kind}", partial(slipcover_sets, branch), tells=(kind,))
    yield Technique("bare sys.monitoring line", monitoring_lines, (3, 12), ("line",))
    yield Technique("bare sys.monitoring branch", monitoring_branches, (3, 12), ("branch",))


TECHNIQUES = (*ours(), *peers())
REFERENCES = {"line": "coverage.py line, ctrace", "branch": "coverage.py branch, ctrace"}


# Processes


class Runner:
    """A process that runs tests under one technique, or bare."""

    def __init__(self, technique: Technique | None, arcs: Arcs) -> None:
        context = multiprocessing.get_context("fork")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, technique, arcs), daemon=True)
        self._process.start()
        theirs.close()

    def seconds(self, operations: int, seeds: range) -> float:
        """The CPU time of tests."""
        self._connection.send((operations, seeds, False))
        return float(self._connection.recv())

    def hits(self, operations: int, seeds: range) -> list[Set[Place]]:
        """What each of the tests hits."""
        self._connection.send((operations, seeds, True))
        return list(self._connection.recv())

    def close(self) -> None:
        self._connection.send(None)
        self._process.join()


def serve(connection: Connection, technique: Technique | None, arcs: Arcs) -> None:
    """Answer a `Runner` until it is closed."""
    watched = technique.start(arcs) if technique else None
    module = watched.module if watched else import_tree()
    gc.collect()
    gc.freeze()
    while (question := connection.recv()) is not None:
        operations, seeds, compared = question
        tests = [draw_test(seed, operations) for seed in seeds]
        if compared and watched:
            connection.send([frozenset(hits_of(watched, test)) for test in tests])
        else:
            connection.send(timed_tests(watched, module, tests))


def timed_tests(watched: Watched | None, module: ModuleType, tests: list[Test]) -> float:
    if watched is None:
        return timed(lambda: run_bare(module, tests), time.process_time)
    return timed(lambda: run_watched(watched, tests), time.process_time)


@dataclass
class Measured:
    """What was measured of the techniques that this Python has."""

    ratios: dict[str, dict[int, float]]
    """CPU time with a technique over CPU time without, by operations."""
    bare: dict[int, float]
    """CPU seconds of a test without any, by operations."""
    differing: dict[str, int]
    """Tests for which a technique told other lines or branches than coverage.py."""


def measure(size: Size) -> Measured:
    """Run all techniques in turns."""
    arcs = branch_arcs(HERE / f"{TREE}.py")
    bare = Runner(None, arcs)
    runners = {one.name: Runner(one, arcs) for one in TECHNIQUES if not one.missing}
    progress(f"what {len(runners)} techniques tell of the same tests")
    differing = count_differing(runners, size.compared)
    measured = Measured({name: {} for name in runners}, {}, differing)
    for operations in OPERATIONS:
        progress(f"slow-downs, {operations} operations a test")
        measure_tests(bare, runners, operations, size, measured)
    for runner in (bare, *runners.values()):
        runner.close()
    return measured


def measure_tests(
    bare: Runner, runners: dict[str, Runner], operations: int, size: Size, measured: Measured
) -> None:
    """Tests of one length: the bare tree runs right before each technique."""
    with_it: dict[str, list[float]] = {name: [] for name in runners}
    without: dict[str, list[float]] = {name: [] for name in runners}
    tests = size.steps // operations
    for turn in range(size.turns + 1):
        seeds = range(size.compared + turn * tests, size.compared + (turn + 1) * tests)
        for name, runner in runners.items():
            without[name].append(bare.seconds(operations, seeds))
            with_it[name].append(runner.seconds(operations, seeds))
    for name in runners:  # the first turn only warms up
        measured.ratios[name][operations] = median_ratio(with_it[name][1:], without[name][1:])
    spent = [seconds for turns in without.values() for seconds in turns[1:]]
    measured.bare[operations] = statistics.median(spent) / tests


def count_differing(runners: dict[str, Runner], steps: int) -> dict[str, int]:
    """Compare what the techniques tell of the same tests with what coverage.py tells."""
    differing = {one.name: 0 for one in TECHNIQUES if one.tells and one.name in runners}
    for operations in OPERATIONS:
        seeds = range(steps // operations)
        known = {kind: runners[name].hits(operations, seeds) for kind, name in REFERENCES.items()}
        for one in TECHNIQUES:
            if one.name in differing:
                told = runners[one.name].hits(operations, seeds)
                right = [
                    frozenset().union(*found)
                    for found in zip(*(known[kind] for kind in one.tells), strict=True)
                ]
                differing[one.name] += sum(a != b for a, b in zip(told, right, strict=True))
    return differing


# Fixed costs


def import_milliseconds(kinds: tuple[str, ...] | None, copies: int) -> tuple[float, float]:
    """CPU time to import the tree: for the first time, and again from what was kept on disk."""
    text = (HERE / f"{TREE}.py").read_text()
    firsts, agains = [], []
    for number in range(copies):
        name = f"{TREE}_{number}"
        once = partial(load, name, kinds)
        with module_folder({name: text}):
            firsts.append(timed(once, time.process_time))
            agains.append(timed(once, time.process_time))
    return statistics.median(firsts) * 1000, statistics.median(agains) * 1000


def load(name: str, kinds: tuple[str, ...] | None) -> None:
    """Import a module as if for the first time, with probes of some kinds or with none."""
    watching = Coverage(CoverageOptions(kinds, (name,))) if kinds else contextlib.nullcontext()
    with watching:
        importlib.import_module(name)
    del sys.modules[name]


@contextlib.contextmanager
def module_folder(texts: dict[str, str]) -> Iterator[None]:
    """A folder with modules that can be imported, and whose code is kept on disk."""
    not_kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            Path(folder, f"{name}.py").write_text(text)
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.path.remove(folder)
            sys.dont_write_bytecode = not_kept


def fixed_microseconds(modules: int, executed: int) -> tuple[float, float]:
    """CPU time of `take` and `reset` for modules of 100 probes, of which some are executed.

    First for hits that no test had before, then for the same ones again.
    """
    body = "".join(f"    if x > {i}:\n        x\n" for i in range(99))
    names = [f"generated_{number}" for number in range(modules)]
    with (
        module_folder(dict.fromkeys(names, f"def reach(x):\n{body}    return x\n")),
        Coverage(CoverageOptions(("line",), tuple(names))) as coverage,
    ):
        loaded = [importlib.import_module(name) for name in names]
        coverage.begin()
        new, known = (reset_seconds(coverage, loaded[:executed]) * 1e6 for _ in range(2))
    for name in names:
        del sys.modules[name]
    return new, known


def reset_seconds(coverage: Coverage, executed: list[ModuleType]) -> float:
    spent = []
    for number in range(99):
        coverage.reset()
        for module in executed:
            module.reach(number)
        start = time.process_time()
        coverage.take()
        coverage.reset()
        spent.append(time.process_time() - start)
    return statistics.median(spent)


# Reports


def print_slowdowns(measured: Measured) -> None:
    bare = [f"1 ({measured.bare[operations] * 1e6:,.0f} us)" for operations in OPERATIONS]
    rows: list[list[object]] = [["no coverage", *bare, "", ""]]
    for one in TECHNIQUES:
        if one.missing:
            rows.append([one.name, *[""] * (len(OPERATIONS) - 1), one.missing, "", ""])
            continue
        shown = [f"{measured.ratios[one.name][operations]:.2f}" for operations in OPERATIONS]
        goal = f"<= {GOALS[one.name]}" if one.name in GOALS else ""
        rows.append([one.name, *shown, goal, measured.differing.get(one.name, "")])
    head = [f"{operations:,} operations" for operations in OPERATIONS]
    print(f"slow-down, CPU time with over without, Python {sys.version.split()[0]}\n")
    print_table(["technique", *head, f"goal for {GOAL_OPERATIONS}", "tests that differ"], rows)


def print_import_costs(size: Size) -> dict[str, float]:
    figures: dict[str, float] = {}
    rows = []
    for name, kinds in (("plain", None), ("line", ("line",)), ("path", ("path",))):
        first, again = import_milliseconds(kinds, size.copies)
        rows.append([name, f"{first:.2f}", f"{again:.2f}"])
        figures |= {f"import_{name}_ms": round(first, 2), f"reimport_{name}_ms": round(again, 2)}
    print(f"\nimport of {TREE}.py, CPU ms\n")
    print_table(["", "first time", "from disk"], rows)
    return figures


def print_fixed_costs(size: Size) -> dict[str, float]:
    programs = {"small": (1, 1), "large": (size.modules, 1), "large_all": (size.modules,) * 2}
    figures: dict[str, float] = {}
    rows = []
    for name, (modules, executed) in programs.items():
        new, known = fixed_microseconds(modules, executed)
        rows.append([modules, executed, f"{new:.1f}", f"{known:.1f}"])
        figures |= {f"fixed_us_{name}": round(known, 1), f"fixed_us_{name}_new": round(new, 1)}
    print("\ntake and reset, line, CPU us per test\n")
    print_table(["modules of 100 probes", "executed", "hits are new", "seen before"], rows)
    return figures


def native_figures(quick: bool) -> dict[str, Any]:
    """Run the benchmark of native programs, and answer its figures."""
    script = HERE / "native_coverage.py"
    command = [sys.executable, str(script), *(["--quick"] if quick else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    table, _, last = done.stdout.strip().rpartition("\n")
    print(f"\nnative programs ({script.name})\n\n{table}")
    figures: dict[str, Any] = json.loads(last)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, about 25 seconds")
    parser.add_argument("--python-only", action="store_true", help="leave native programs out")
    given = parser.parse_args()
    require_modules({"coverage": "coverage", "slipcover": "slipcover"})
    size = QUICK if given.quick else FULL
    measured = measure(size)
    print_slowdowns(measured)
    progress("what imports, `reset` and `take` cost")
    fixed = print_import_costs(size) | print_fixed_costs(size)
    native = {} if given.python_only else native_figures(given.quick)
    at_goal = {name: ratios[GOAL_OPERATIONS] for name, ratios in measured.ratios.items()}
    best = {
        kind: min(
            at_goal[one.name]
            for one in TECHNIQUES
            if one.is_peer and one.tells == (kind,) and one.name in at_goal
        )
        for kind in REFERENCES
    }
    print_figures(
        {
            **{f"{name.split()[1]}_slowdown": round(at_goal[name], 3) for name in GOALS},
            **{f"best_peer_{kind}": round(ratio, 3) for kind, ratio in best.items()},
            "ratios": {
                name: {str(operations): round(ratio, 3) for operations, ratio in ratios.items()}
                for name, ratios in measured.ratios.items()
            },
            "differing_sets": sum(measured.differing.values()),
            **fixed,
            **native,
            "python": sys.version.split()[0],
        }
    )


if __name__ == "__main__":
    main()
