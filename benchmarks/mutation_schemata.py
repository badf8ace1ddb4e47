"""Two ways to switch a mutant on: all behind a selector (*schemata*), or a code object for each.

    python benchmarks/mutation_schemata.py [--quick]

Both run the same mutants of `red_black.py` with the same tests (functions of `mutation_suite.py`),
in one process, with the same budget of steps. Schemata read a global at every place that some
mutant changes; swapping gives the one function that a mutant changes its code, and leaves the
others as they are.

`schemata_vs_swap` is the ratio of CPU time; the slow-downs are those of the program without a
mutant. `differing` runs end otherwise in the two ways. The last line is one JSON object.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from harness import arguments, print_figures, print_table, progress

from swarmtest.core.targets import Source
from swarmtest.mutate.generation import module_code, mutants_of, replacement
from swarmtest.mutate.loaded_files import live_files, source_of
from swarmtest.mutate.mutant import Module, Mutant, NodeSpot
from swarmtest.mutate.switching import LiveFile, Steps, ticking

HERE = Path(__file__).resolve().parent
SELECTOR = "_mutant"
Test = Callable[[], None]


@dataclass(frozen=True)
class Ways:
    """CPU seconds of both ways, on the same mutants and tests."""

    mutants: int
    runs: int
    schemata: float
    swap: float
    schemata_slowdown: float
    """Of the tests without a mutant: schemata against the plain module."""
    swap_slowdown: float
    differing: int
    """Runs that pass in one way and fail in the other."""


def measured(every: int) -> Ways:
    """Measure both ways on every so-many-th mutant."""
    plain = _loaded("red_black", HERE / "red_black.py")
    source = source_of(str(HERE / "red_black.py"))
    (live,) = live_files([source])
    can = [mutant for mutant in mutants_of(source) if _in_function(live, mutant)][::every]
    woven = ModuleType("red_black")
    woven.__file__ = ""
    steps = Steps()
    steps.count()
    mutants = _weave(source, can, woven, steps)
    tests, woven_tests = _tests(plain), _tests(woven)
    reached, budgets = _originals(live, tests)
    pairs = [
        (number, [test for test in range(len(tests)) if live.statement(mutant) in reached[test]])
        for number, mutant in enumerate(mutants)
    ]
    before = _best(tests)
    live.tick()
    live.steps.count()
    after = _best(tests)
    progress(f"{len(mutants)} mutants with swapped code")
    swap, swapped = _timed(_swapping(live, mutants, pairs, tests, budgets))
    live.restore()
    progress(f"{len(mutants)} mutants behind a selector")
    schemata, selected = _timed(_selecting(woven, steps, pairs, woven_tests, budgets))
    woven.__dict__[SELECTOR] = -1
    steps.count()
    return Ways(
        len(mutants),
        len(swapped),
        schemata,
        swap,
        _best(woven_tests) / before,
        after / before,
        sum(bool(one) != bool(other) for one, other in zip(swapped, selected, strict=True)),
    )


def _in_function(live: LiveFile, mutant: Mutant) -> bool:
    """Whether a mutant can be had in both ways: a slice cannot be chosen by an expression."""
    spot = live.plain.spots[mutant.place]
    return spot.outer is not None and not isinstance(spot.node, ast.Slice)


def _loaded(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _tests(program: ModuleType) -> list[Test]:
    """The tests of the suite that are plain functions, of one program."""
    sys.modules["red_black"] = program
    suite = _loaded("mutation_suite", HERE / "mutation_suite.py")

    def test(name: str, *given: Any) -> Test:
        return lambda: getattr(suite, name)(*given)

    counts = [(name, n) for name in _COUNTED for n in (1, 2, 3, 7, 20, 64, 200)]
    seeds = [(name, n) for name in _SEEDED for n in range(12)]
    alone = [name for name in dir(suite) if name.startswith("test_check_finds")]
    return [test(*one) for one in counts + seeds] + [test(name) for name in alone]


_COUNTED = ("test_ascending_keys_stay_in_order", "test_descending_keys_stay_in_order")
_SEEDED = (
    "test_random_keys_stay_in_order",
    "test_keys_are_deleted_in_any_order",
    "test_a_tree_is_a_set",
)


def _weave(
    source: Source, mutants: Sequence[Mutant], program: ModuleType, steps: Steps
) -> list[Mutant]:
    """Put all mutants behind a selector, and execute the module; the mutants by their numbers."""
    module = ticking(Module(source.text, source.place))
    by_place: dict[Any, list[Mutant]] = {}
    for mutant in mutants:
        by_place.setdefault(mutant.place, []).append(mutant)
    ordered = list(mutants)
    # The inner ones first: what is around them holds on to what they became.
    for place in sorted(by_place, key=len, reverse=True):
        spot = module.spots[place]
        node = spot.node
        for mutant in by_place[place]:
            node = _chosen(spot, node, replacement(spot, mutant.change), ordered.index(mutant))
        spot.replace(node)
    ast.fix_missing_locations(module.tree)
    program.__dict__[SELECTOR] = -1
    exec(steps.bind(module_code(module)), program.__dict__)
    return ordered


def _chosen(spot: NodeSpot, node: Any, new: Any, number: int) -> ast.AST:
    name = ast.Name(SELECTOR, ast.Load())
    test = ast.Compare(name, [ast.Eq()], [ast.Constant(number)])
    made: ast.AST
    if isinstance(spot.node, ast.stmt):
        made = ast.If(test, [new], [node])
    else:
        made = ast.IfExp(test, new, node)
    return ast.copy_location(made, spot.node)


def _ended(test: Test) -> str:
    try:
        test()
    except BaseException as error:
        return type(error).__name__
    return ""


def _originals(live: LiveFile, tests: Sequence[Test]) -> tuple[list[set[int]], list[int]]:
    """What each test reaches, and its steps."""
    counts = live.count()
    reached, budgets = [], []
    for test in tests:
        counts.reset()
        test()
        reached.append({i for i, count in enumerate(counts.of_statements) if count})
        budgets.append(sum(counts.of_statements[i] for i in live.plain.ticks))
    live.restore()
    return reached, budgets


def _swapping(
    live: LiveFile, mutants: Sequence[Mutant], pairs: Any, tests: Sequence[Test], budgets: list[int]
) -> Iterator[str]:
    for number, some in pairs:
        before = live.changes
        live.switch_on(mutants[number])
        for test in some:
            live.steps.allow(budgets[test])
            yield _ended(tests[test])
        live.restore(before)


def _selecting(
    woven: ModuleType, steps: Steps, pairs: Any, tests: Sequence[Test], budgets: list[int]
) -> Iterator[str]:
    for number, some in pairs:
        woven.__dict__[SELECTOR] = number
        for test in some:
            steps.allow(budgets[test])
            yield _ended(tests[test])


def _timed(runs: Iterator[str]) -> tuple[float, list[str]]:
    start = time.process_time()
    ended = list(runs)
    return time.process_time() - start, ended


def _best(tests: Sequence[Test]) -> float:
    """CPU seconds of all tests, the best of a few."""

    def once() -> float:
        start = time.process_time()
        for test in tests:
            test()
        return time.process_time() - start

    return min(once() for _ in range(5))


def main() -> None:
    """Measure, and print a table and the figures."""
    ways = measured(every=6 if arguments(__doc__ or "").quick else 1)
    print(f"{ways.mutants} mutants, {ways.runs} runs of tests\n")
    rows = [
        ("schemata", f"{ways.schemata:.2f}", f"{ways.schemata_slowdown:.2f}"),
        ("swapped code", f"{ways.swap:.2f}", f"{ways.swap_slowdown:.2f}"),
    ]
    print_table(("way", "CPU s", "slow-down without a mutant"), rows)
    print_figures(
        {
            "mutants": ways.mutants,
            "runs": ways.runs,
            "schemata_vs_swap": round(ways.schemata / ways.swap, 2),
            "schemata_slowdown": round(ways.schemata_slowdown, 2),
            "swap_slowdown": round(ways.swap_slowdown, 2),
            "differing": ways.differing,
        }
    )


if __name__ == "__main__":
    main()
