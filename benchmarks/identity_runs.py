"""Runs one program for `identity.py`, in a process of its own, and prints its failures as JSON.

    python identity_runs.py collect MACHINE.py TESTS SEED     what failed, where, and its fault
    python identity_runs.py replay MACHINE.py < tests.json    which of these tests fail

A program with planted bugs has a tuple `BUGS`: its failures are labelled by running each failing
test again with one bug at a time. The bug that alone gives the same failure at the same step is the
truth; if none does, or several do, the failure has no label.
"""

from __future__ import annotations

import importlib.util
import json
import linecache
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from swarmtest import Campaign, Machine, open_store
from swarmtest.campaign.reduced_faults import ReductionTime
from swarmtest.core.configuration import Configuration
from swarmtest.core.faults import is_internal
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.reduce.fault_reductions import reduce_faults
from swarmtest.subjects import MachineSubject

HERE = Path(__file__).resolve().parent
MOST_FAILURES = 600
"""Failures of a program that are labelled."""
ENOUGH_TIME = ReductionTime(total=600.0)
"""So that the figures do not depend on how busy the machine is."""


def load(path: str) -> ModuleType:
    """The module of a machine, and what it imports beside it."""
    sys.path.insert(0, str(Path(path).parent))
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[Path(path).stem] = module
    spec.loader.exec_module(module)
    return module


def machine_in(module: ModuleType) -> type[Machine]:
    """The only machine that a module defines."""
    (machine,) = [
        member
        for member in vars(module).values()
        if isinstance(member, type)
        and issubclass(member, Machine)
        and member.__module__ == module.__name__
    ]
    return machine


class WatchedSubject(MachineSubject):
    """A machine whose exceptions are noted, with everything that rules of other tools look at."""

    def __init__(self, machine: type[Machine], name: str) -> None:
        super().__init__(machine, name)
        self.seen: dict[str, Any] = {}
        self.failures: dict[int, dict[str, Any]] = {}

    def fault_of(self, error: BaseException, last: str = "") -> Fault:
        self.seen = {"type": type(error).__name__, "frames": list(frames_of(error)), "last": last}
        self.seen["context"] = origins(error)
        self.seen["message"] = str(error)
        return super().fault_of(error, last)

    def execute(self, configuration: Configuration, seed: int) -> Result:
        result = super().execute(configuration, seed)
        if result.verdict == Verdict.FAILED:
            shown = {"test": result.test, "steps": result.steps}
            self.failures[seed] = self.seen | shown
        return result


def frames_of(error: BaseException) -> Iterator[tuple[str, str, int, str, bool]]:
    """File, function, line, text of the line, and whether it is no library, the innermost last."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if not is_internal(code.co_filename):
            own = "/lib/python" not in code.co_filename or "site-packages" in code.co_filename
            text = linecache.getline(code.co_filename, line).strip()
            yield code.co_filename, code.co_qualname, line, text, own


def origins(error: BaseException) -> list[tuple[str, str, int]]:
    """Type, file and line of each exception that was being handled, as Hypothesis notes them."""
    found = []
    context, seen = error.__context__, {id(error)}
    while context is not None and id(context) not in seen:
        seen.add(id(context))
        frames = list(frames_of(context))
        if frames:
            found.append((type(context).__name__, frames[-1][0], frames[-1][2]))
        context = context.__context__
    return found


def collect(path: str, tests: int, seed: int) -> list[dict[str, Any]]:
    """The failures of a campaign, each with its fault before and after reduction."""
    module = load(path)
    switches = sys.modules.get("switches")
    bugs = tuple(getattr(module, "BUGS", ()))
    if switches is not None:
        switches.ON.update(bugs)
    subject = WatchedSubject(machine_in(module), Path(path).name)
    with open_store(":memory:") as store:
        Campaign(subject, "coin", tests, seed, workers=0, store=store).run()
        recorded = {trial.trial: trial.fault for trial in store.recorded.trials(1)}
        failures = dict(subject.failures)
        reduce_faults(subject, store, 1, ENOUGH_TIME)
        names = {fault.id: fault.signature for fault in store.recorded.faults(1)}
        found = []
        for trial in store.trials(1, verdict=Verdict.FAILED, limit=MOST_FAILURES):
            failure = failures[trial.seed]
            failure["recorded"] = recorded[trial.trial]
            failure["fault"] = trial.fault
            failure["signature"] = names[str(recorded[trial.trial])]
            found.append(failure)
    if switches is not None:
        for failure in found:
            failure["truth"] = truth_of(subject, failure, bugs, switches.ON)
        switches.ON.clear()
        for failure in found:
            if subject.run(failure["test"]).verdict == Verdict.FAILED:
                sys.exit(f"{path}: a test fails without any planted bug: {failure['message']}")
    return found


def truth_of(
    subject: WatchedSubject, failure: dict[str, Any], bugs: tuple[str, ...], on: set[str]
) -> str | None:
    """The only planted bug that alone makes the test fail in the same way at the same step."""
    causes = []
    for name in bugs:
        on.clear()
        on.add(name)
        result = subject.run(failure["test"])
        same = (failure["type"], failure["steps"]) == (subject.seen.get("type"), result.steps)
        if result.verdict == Verdict.FAILED and same:
            causes.append(name)
    on.clear()
    return causes[0] if len(causes) == 1 else None


def replay(path: str, tests: list[Any]) -> list[bool]:
    """Whether each of some tests fails."""
    subject = WatchedSubject(machine_in(load(path)), Path(path).name)
    return [subject.run(test).verdict == Verdict.FAILED for test in tests]


def main() -> None:
    command, path, *numbers = sys.argv[1:]
    if command == "collect":
        print(json.dumps(collect(path, *map(int, numbers))))
    else:
        print(json.dumps(replay(path, json.load(sys.stdin))))


if __name__ == "__main__":
    main()
