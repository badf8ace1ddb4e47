"""Measure how long it takes to find the bugs: our default, all features on, and Hypothesis.

    python trophies/measure.py [WORD ...]
    python trophies/measure.py --table     write the table from the figures that are there

For each trophy, the machine that found it runs with the strategies `layered` (the default) and
`all-on`, and as a state machine of Hypothesis with a rule for each action, until a fault is the one
that the trophy names. Counted is the CPU time of tests, up to CPU_LIMIT seconds. Each run has a
process of its own: a crash or a call that does not end is a fault like another. Hypothesis draws
whole numbers and choices by its own strategies, and other values by our generators. The figures are
written to `measured.json`, and from there into the table of docs/trophies.md.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import mmap
import os
import random
import re
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

from check import PLACE, Trophy, installed_together, trophies

from swarmtest.core.seeds import seed_of_test, trial_key
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.strategies import Stream, parse_strategy
from swarmtest.subjects import MachineSubject

CPU_LIMIT = 3.0
HANGS = 0.5
"""CPU seconds after which a test hangs."""
ENDED = int(CPU_LIMIT) + 5
"""CPU seconds after which a run is ended in which nothing could end the test that hangs."""
MEMORY = 2 << 30
MEASURED = PLACE / "measured.json"
DOCS = PLACE.parent / "docs" / "trophies.md"
RUNS = ("layered", "all-on", "Hypothesis")


class Found(BaseException):
    """Ends a run of Hypothesis."""


def measured(trophy: Trophy, run: str, machine: type[Any]) -> float | str | None:
    """Return the CPU seconds to the first hit; None if there was none, or how the run ended."""
    clock = mmap.mmap(-1, 8)
    late = 0.0

    def in_child() -> bool:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (ENDED, ENDED + 1))
        signal.signal(signal.SIGPROF, hang)
        begun = time.process_time()

        def tick() -> bool:
            clock[:8] = struct.pack("d", time.process_time() - begun)
            if run != "Hypothesis":
                signal.setitimer(signal.ITIMER_PROF, HANGS)
            return time.process_time() - begun > CPU_LIMIT

        with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
            find = by_hypothesis if run == "Hypothesis" else by_strategy
            found = find(machine, run, re.compile(trophy.fault), tick)
            tick()
        return found

    try:
        found = in_fork(in_child, 300)
    except NoAnswer as end:
        hangs = "SIGXCPU" in str(end)
        if re.search(trophy.fault, "timeout" if hangs else str(end)) is None:
            return None if hangs else f"ended: {end}"
        found, late = True, HANGS if hangs else 0.0
    return round(struct.unpack("d", clock[:8])[0] + late, 3) if found else None


def hang(*_: Any) -> None:
    """Raise what stands for a test that does not end."""
    raise TimeoutError("timeout")


def machine_of(trophy: Trophy) -> type[Any]:
    """Import the hunt of a trophy."""
    file, _, name = trophy.hunt.partition("::")
    known_as = f"hunt_{trophy.script.parent.name}"
    if known_as not in sys.modules:
        spec = importlib.util.spec_from_file_location(known_as, trophy.script.parent / file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[known_as] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known_as])
    machine: type[Any] = getattr(sys.modules[known_as], name)
    return machine


def by_strategy(machine: Any, strategy: str, fault: Any, tick: Callable[[], bool]) -> bool:
    """Return whether a strategy finds a fault before the time is up."""
    subject, chosen, stream = MachineSubject(machine), parse_strategy(strategy), Stream(0)
    trial = 0
    while not tick():
        stream.rekey(trial_key(0, trial))
        proposal: Any = chosen.ask(subject.space, trial, stream)
        shown = subject.execute(proposal.configuration, seed_of_test(0, trial)).fault
        if shown is not None and fault.search(f"{shown.kind} {shown.signature}"):
            return True
        trial += 1
    return False


def by_hypothesis(machine: Any, _: str, fault: Any, tick: Callable[[], bool]) -> bool:
    """Return whether Hypothesis finds a fault before the time is up."""
    import hypothesis.core
    from hypothesis import HealthCheck, Phase, settings
    from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

    subject = MachineSubject(machine)

    class Rules(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            if tick():
                raise KeyboardInterrupt
            self.machine, self.failed = machine(), False
            self.machine.start()

        def teardown(self) -> None:
            self.machine.stop()

    def acting(name: str) -> Any:
        declared = subject.actions[name]

        def act(self: Any, **values: Any) -> None:
            if self.failed:
                return
            try:
                signal.setitimer(signal.ITIMER_PROF, HANGS)
                getattr(self.machine, name)(*(values[key] for key in declared.arguments))
            except (*declared.raises, *as_tuple(self.machine.raises)):
                return
            except Exception as error:
                if fault.search(f"{type(error).__name__}: {error} [{name}]"):
                    raise Found from None
                self.failed = True  # another fault
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)

        act.__name__ = name
        return rule(**{key: strategy_of(g) for key, g in declared.arguments.items()})(act)

    members = {name: acting(name) for name in subject.actions}
    hypothesis.core.global_force_seed = 0  # type: ignore[assignment]
    steps = machine.steps if isinstance(machine.steps, int) else machine.steps[-1]
    chosen = settings(
        max_examples=10**6,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(type("Rules", (Rules,), members), settings=chosen)
    except Found:
        return True
    except KeyboardInterrupt:
        pass
    return False


def as_tuple(errors: Any) -> tuple[type[BaseException], ...]:
    """Return exceptions as a tuple; what `Compared` declares is for the class under test."""
    return () if isinstance(errors, dict) else errors if isinstance(errors, tuple) else (errors,)


def strategy_of(generator: Any) -> Any:
    """Return a strategy of Hypothesis for one of our generators."""
    from hypothesis import strategies as st

    if generator.options:
        return st.sampled_from(generator.options)
    if generator.bounds and all(isinstance(bound, int) for bound in generator.bounds):
        return st.integers(*generator.bounds)
    return st.integers(0, 2**32).map(lambda seed: generator.draw(random.Random(seed)))


def seconds_text(seconds: float | str | None) -> str:
    """Return CPU seconds as the table shows them.

    >>> seconds_text(0.0123), seconds_text(None)
    ('0.012', 'over 3')
    """
    if isinstance(seconds, str):
        return "an error"
    return f"over {CPU_LIMIT:g}" if seconds is None else f"{seconds:.2g}"


def write_table(figures: dict[str, Any]) -> None:
    """Write the figures into the table of the documentation."""
    head = ["release", "what is wrong", "script", "found by", "known before", *RUNS]
    lines = [f"| {' | '.join(head)} |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for trophy in trophies():
        row = figures.get(trophy.name)
        shown = [seconds_text(row[run]) for run in RUNS] if row else [""] * len(RUNS)
        cells = [
            trophy.release.replace("==", " "),
            trophy.bug,
            f"`{trophy.name}.py`",
            trophy.oracle,
            trophy.known,
            *shown,
        ]
        lines.append("| " + " | ".join(cell.replace("|=", "\\|=") for cell in cells) + " |")
    before, _, rest = DOCS.read_text().partition("<!-- table -->\n")
    after = rest.partition("<!-- end -->")[2]
    DOCS.write_text(before + "<!-- table -->\n" + "\n".join(lines) + "\n<!-- end -->" + after)


def main() -> None:
    """Measure the trophies whose path contains one of the arguments."""
    if "--table" in sys.argv:
        write_table(json.loads(MEASURED.read_text()) if MEASURED.exists() else {})
        return
    chosen = trophies(sys.argv[1:])
    packages = installed_together([each.release for each in trophies() if not each.in_library])
    sys.path.insert(0, str(packages))
    import hypothesis.stateful  # noqa: F401  so that no run pays for it

    figures = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    for trophy in chosen:
        machine = machine_of(trophy)
        row = {run: measured(trophy, run, machine) for run in RUNS}
        figures[trophy.name] = row
        print(f"{trophy.name:46}", *(f"{run} {row[run]}" for run in RUNS), flush=True)
        MEASURED.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
        write_table(figures)


if __name__ == "__main__":
    main()
