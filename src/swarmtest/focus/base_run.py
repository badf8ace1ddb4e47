"""Run one test in its own process, in the source tree it is started in, and print the result.

``python -m swarmtest.focus.base_run TEST.json FAULT SECONDS FILE...`` prints one line of JSON: the
verdict, in how many runs the fault showed, and where each of the files was imported from, so that
the caller can check that the intended version was tested.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.result import Result, Verdict
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.processes.perturbation import replayed
from swarmtest.subjects.loading import SubjectReference, enclosed_test

RUNS = 5
"""How often a test is run: a flaky fault shows in some runs only."""


def run_saved_test(test: Path, fault: str, seconds: float, files: list[str]) -> dict[str, Any]:
    """Run a test that should show a fault and return what happened; `files` are of the tree."""
    saved = json.loads(test.read_text())
    data = enclosed_test(saved)
    try:
        subject = SubjectReference.from_json(saved["reference"]).load()
        problems = subject.check()
    except UserError as error:
        return {"error": str(error)}
    if problems:
        return {"error": problems[0]}
    # One passing run proves little: a flaky test fails in some runs only.
    results: list[Result] = []
    while len(results) < RUNS and not _hung(results):
        results.append(
            replayed(
                lambda: run_isolated(lambda: subject.replay(data), seconds),
                lambda shown: shown.key == fault,
            )
        )
    showing = [run for run in results if run.fault and run.fault.key == fault]
    result = next((run for run in results if run.fault), results[-1])
    return {
        "runs": len(results),
        "shown": len(showing),
        "verdict": Verdict(result.verdict).label,
        "fault": result.fault.key if result.fault else "",
        "signature": result.fault.signature if result.fault else "",
        "skipped": result.skipped,
        "missing": result.missing,
        "places": {file: place for file in files if (place := _imported_from(file))},
        "programs": _programs(),
    }


def _programs() -> list[str]:
    """Return the native programs and libraries that were tested, by their paths."""
    programs: list[str] = []
    for module, name in (("program", "executed"), ("library", "loaded")):
        imported = sys.modules.get(f"swarmtest.coverage.native.{module}")
        programs += getattr(imported, name, [])
    return [str(Path(program).resolve()) for program in dict.fromkeys(programs)]


def _hung(results: list[Result]) -> bool:
    """Return whether the last run timed out: the next one would, too."""
    last = results[-1].fault if results else None
    return last is not None and last.kind == "timeout"


def _imported_from(file: str) -> str:
    """Return where the module of a file was imported from; empty if it was not imported (yet)."""
    place = Path(file).resolve()
    if place.suffix != ".py":
        return ""
    names = place.with_suffix("").parts
    names = names[:-1] if names[-1] == "__init__" else names
    other_place = ""
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None)
        if origin and Path(origin).resolve() == place:
            return str(place)
        parts = tuple(name.split("."))
        if origin and names[-len(parts) :] == parts:
            other_place = str(Path(origin).resolve())
    return other_place


def main() -> None:
    """Run the test that the command line names."""
    test, fault, seconds, *files = sys.argv[1:]
    try:
        result = run_saved_test(Path(test), fault, float(seconds), files)
    except Exception as error:  # the other version may raise anything; report it in one line
        result = {"error": f"{type(error).__name__}: {error}"}
    # The program under test may print, too; the caller reads the last line.
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    main()
