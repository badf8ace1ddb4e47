"""Run one test in a process of its own, in whatever tree it was started, and tell what came of it.

``python -m swarmtest.focus.base_run TEST.json FAULT SECONDS FILE...`` prints one line of JSON: the
verdict, in how many runs the fault showed, and from where each of the files was imported, so that
the caller can see that it was the version that it meant.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from swarmtest.campaign.executors.isolation import run_isolated
from swarmtest.core.errors import UserError
from swarmtest.core.result import Result, Verdict
from swarmtest.subjects.loading import SubjectReference, enclosed_test

RUNS = 5
"""How often a test is run: what depends on more than the test shows in some runs only."""


def ran(test: Path, fault: str, seconds: float, files: list[str]) -> dict[str, Any]:
    """What came of a test that is to show a fault; `files` are those of the tree."""
    saved = json.loads(test.read_text())
    data = enclosed_test(saved)
    try:
        subject = SubjectReference.from_json(saved["reference"]).load()
        problems = subject.check()
    except UserError as error:
        return {"error": str(error)}
    if problems:
        return {"error": problems[0]}
    results: list[Result] = []
    while len(results) < RUNS and not _hung(results):
        results.append(run_isolated(lambda: subject.replay(data), seconds))
    shown = [one for one in results if one.fault and one.fault.id == fault]
    result = next((one for one in results if one.fault), results[-1])
    return {
        "runs": len(results),
        "shown": len(shown),
        "verdict": Verdict(result.verdict).label,
        "fault": result.fault.id if result.fault else "",
        "signature": result.fault.signature if result.fault else "",
        "skipped": result.skipped,
        "missing": result.missing,
        "places": {file: place for file in files if (place := _imported_from(file))},
    }


def _hung(results: list[Result]) -> bool:
    """Whether the last run took all the time there was: the next would, too."""
    last = results[-1].fault if results else None
    return last is not None and last.kind == "timeout"


def _imported_from(file: str) -> str:
    """Where the module that a file is was found; empty if it is not imported (yet)."""
    place = Path(file).resolve()
    names = place.with_suffix("").parts
    names = names[:-1] if names[-1] == "__init__" else names
    found = ""
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None)
        if origin and Path(origin).resolve() == place:
            return str(place)
        parts = tuple(name.split("."))
        if origin and names[-len(parts) :] == parts:
            found = str(Path(origin).resolve())
    return found


def main() -> None:
    """Entry point."""
    test, fault, seconds, *files = sys.argv[1:]
    try:
        told = ran(Path(test), fault, float(seconds), files)
    except Exception as error:  # whatever the other version does, one line tells of it
        told = {"error": f"{type(error).__name__}: {error}"}
    # The program may print, too; the last line is ours.
    print("\n" + json.dumps(told))


if __name__ == "__main__":
    main()
