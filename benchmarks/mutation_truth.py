"""Ground truth for mutants: the changed file is written, and the suite runs in a fresh process.

    python benchmarks/mutation_truth.py [--quick]

`mutation.py` switches mutants on in a running program, or imports the program anew. Here the same
verdicts are asked of pytest in a process of its own for each mutant, which has not imported the
program and finds the changed file on disk: on a sample, for a module that does much at import
(`mutation_subjects/odd.py`) and for modules of the standard library. `agreement` is the share of
mutants about which both say the same. The last line is one JSON object.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest
from harness import arguments, print_figures, print_table, progress

from swarmtest.mutate.generation import replacement
from swarmtest.mutate.kill_matrix import KillMatrix
from swarmtest.mutate.mutant import Module, Mutant
from swarmtest.mutate.pytest_suites import mutate_pytest

SUBJECTS = Path(__file__).resolve().parent / "mutation_subjects"
PREFIX = "std_"
LONGEST = 20  # seconds of CPU time for a suite that takes a fraction of one
OPTIONS = ("-x", "-q", "-pno:cacheprovider", "--assert=plain")


def subject(name: str, place: Path) -> Path:
    """A module and its suite, copied to a directory; the module's file."""
    shutil.copy(SUBJECTS / f"test_{name}.py", place)
    target = place / f"{name}.py"
    if name.startswith(PREFIX):
        spec = importlib.util.find_spec(name.removeprefix(PREFIX))
        assert spec is not None
        assert spec.origin is not None
        shutil.copy(spec.origin, target)
    else:
        shutil.copy(SUBJECTS / f"{name}.py", target)
    return target


def mutated_text(text: str, mutant: Mutant) -> str:
    """The whole file as the mutant has it."""
    module = Module(text, "")
    spot = module.spots[mutant.place]
    spot.replace(replacement(spot, mutant.change))
    return ast.unparse(module.tree)


def killed_in_truth(name: str, mutant: Mutant) -> bool:
    """Write the mutant's file, and run the suite in a process that has not imported it."""
    with tempfile.TemporaryDirectory() as directory:
        target = subject(name, Path(directory))
        target.write_text(mutated_text(target.read_text(), mutant))
        pid = os.fork()
        if pid == 0:
            _run_suite(name, directory)
        _, status = os.waitpid(pid, 0)
        return status != 0


def _run_suite(name: str, directory: str) -> NoReturn:
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
        os.chdir(directory)
        sys.path.insert(0, directory)
        sys.dont_write_bytecode = True
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        status = int(pytest.main([*OPTIONS, f"test_{name}.py"]))
    finally:
        os._exit(status)


def compared(name: str, sample: int) -> tuple[KillMatrix, list[Mutant]]:
    """Our verdicts on a sample of a module's mutants, and those that the truth contradicts."""
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        target = subject(name, Path(directory))
        matrix = mutate_pytest([f"test_{name}.py"], [target.name], sample=sample, seed=1)
    with multiprocessing.get_context("fork").Pool() as pool:
        truth = pool.starmap(killed_in_truth, [(name, mutant) for mutant in matrix.mutants], 1)
    pairs = zip(matrix.mutants, matrix.is_killed.tolist(), truth, strict=True)
    return matrix, [mutant for mutant, ours, true in pairs if ours != true]


def main() -> None:
    """Compare, and print a table, what differs, and the figures."""
    quick = arguments(__doc__ or "").quick
    names = sorted(file.stem.removeprefix("test_") for file in SUBJECTS.glob("test_*.py"))
    sample = 5 if quick else 40
    rows, judged, wrong, anew = [], 0, 0, 0
    for name in names[:2] if quick else names:
        progress(f"mutants of {name}")
        matrix, differing = compared(name, 2 * sample if name == "odd" else sample)
        at_import = sum(not mutant.function for mutant in matrix.mutants)
        rows.append(
            (name, len(matrix.mutants), at_import, int(matrix.is_killed.sum()), len(differing))
        )
        judged += len(matrix.mutants)
        wrong += len(differing)
        anew += at_import
        for mutant in differing:
            print(f"{name}: {mutant.diff_text}\n", flush=True)
    print_table(("module", "mutants", "at import", "killed", "differ"), rows)
    print_figures(
        {
            "judged": judged,
            "at_import": anew,
            "differing": wrong,
            "agreement": round(1 - wrong / judged, 4),
        }
    )


if __name__ == "__main__":
    main()
