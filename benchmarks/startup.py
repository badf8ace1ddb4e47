"""CPU seconds that commands take to start, beside pytest and Optuna.

User and system time of a command and of all processes that it starts, from `wait4`. Commands take
turns, after a round that is not counted. The figures are
the least of all rounds: what else the machine does can only add to them.

- ``swarmtest list`` reads a store with one campaign; ``swarmtest run`` runs ten tests of
  ``examples/stack.py``, finds its fault and reduces it.
- ``pytest`` runs ten tests that do nothing; its plugins are those that are installed, ours too.
- The bare interpreter (``python -c pass``) is part of every other figure.
- Modules are compiled once, in the round that is not counted, as pip does when it installs.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness import arguments, print_figures, print_table, progress, timed

ROUNDS, QUICK_ROUNDS = 15, 3
STACK = Path(__file__).parents[1] / "examples" / "stack.py"
SCRIPTS = Path(sysconfig.get_path("scripts"))
PYTHON = (sys.executable, "-c")
LIST_MODULES = """
import json, sys
from swarmtest.ui.cli import main
sys.argv = ["swarmtest", "list"]
try:
    main()
finally:
    print(json.dumps([name for name in sys.modules if name.partition(".")[0] == "swarmtest"]))
"""


@dataclass(frozen=True)
class Command:
    """A command that is measured."""

    words: Sequence[str]
    key: str
    """Its name among the figures."""
    needs: str = ""
    """The package that has to be installed."""
    goal: float | None = None

    @property
    def title(self) -> str:
        """What a person types."""
        first = Path(self.words[0]).name.rstrip("0123456789.")
        return " ".join(
            [first, *(Path(w).name if w.startswith("/") else w for w in self.words[1:])]
        )

    @property
    def is_installed(self) -> bool:
        """Whether it can be measured here."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None


def script(name: str, *words: str) -> tuple[str, ...]:
    """Return the words that run an installed console script."""
    return (str(SCRIPTS / name), *words)


RUN = Command(script("swarmtest", "run", str(STACK), "--tests", "10"), "run_cpu_s", goal=0.5)
COMMANDS = (
    Command((*PYTHON, "pass"), "python_cpu_s"),
    Command((*PYTHON, "import swarmtest"), "import_cpu_s", goal=0.03),
    Command(script("swarmtest", "--help"), "help_cpu_s", goal=0.15),
    Command(script("swarmtest", "list"), "list_cpu_s", goal=0.2),
    Command(script("swarmtest", "run", "--help"), "run_help_cpu_s"),
    RUN,
    Command((*PYTHON, "import pytest"), "import_pytest_cpu_s", "pytest"),
    Command((*PYTHON, "import pytest, swarmtest.pytest_plugin"), "import_plugin_cpu_s", "pytest"),
    Command(script("pytest", "--version"), "pytest_version_cpu_s", "pytest"),
    Command(script("pytest", "-q", "test_ten.py"), "pytest_run_cpu_s", "pytest"),
    Command(script("optuna", "--version"), "optuna_version_cpu_s", "optuna"),
    Command((*PYTHON, "import optuna"), "import_optuna_cpu_s", "optuna"),
)
TEN_TESTS = "".join(f"def test_{number}():\n    pass\n\n\n" for number in range(10))


def main() -> None:
    """Measure and print."""
    rounds = QUICK_ROUNDS if arguments(__doc__ or "").quick else ROUNDS
    chosen = [command for command in COMMANDS if command.is_installed]
    for package in sorted({c.needs for c in COMMANDS if not c.is_installed}):
        progress(f"{package} is not measured: pip install {package}")
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "test_ten.py").write_text(TEN_TESTS)
        Path(directory, "pytest.ini").write_text("[pytest]\n")
        seconds = measure(chosen, rounds, directory)
        modules = modules_of_list(directory)
    print_table(
        ("CPU seconds", "least", "median", "goal"),
        [
            (command.title, f"{min(times):.3f}", f"{statistics.median(times):.3f}", goal(command))
            for command, times in zip(chosen, seconds, strict=True)
        ],
    )
    print(f"\nmodules of swarmtest that `swarmtest list` imports: {len(modules)} (goal: 60)")
    least = {c.key: round(min(times), 4) for c, times in zip(chosen, seconds, strict=True)}
    figures: dict[str, object] = {command.key: least.get(command.key) for command in COMMANDS}
    print_figures(figures | {"own_modules_list": len(modules), "rounds": rounds})


def goal(command: Command) -> str:
    """Return what the command may take, as text."""
    return "" if command.goal is None else f"{command.goal:g}"


def measure(commands: Sequence[Command], rounds: int, directory: str) -> list[list[float]]:
    """Return the CPU seconds of each command in each round."""
    run(RUN.words, directory)  # makes the store that `list` reads
    seconds: list[list[float]] = [[] for _ in commands]
    for number in range(rounds + 1):
        progress(f"round {number} of {rounds}" if number else "a round that is not counted")
        for times, command in zip(seconds, commands, strict=True):
            times.append(timed(partial(run, command.words, directory)))
    return [times[1:] for times in seconds]


def run(words: Sequence[str], directory: str) -> str:
    """Run a command; return what it prints."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SWARMTEST_")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(Path(directory, "bytecode"))
    done = subprocess.run(
        words, cwd=directory, env=environment, capture_output=True, text=True, timeout=300
    )
    if done.returncode not in (0, 1):  # 1: a campaign that found a fault
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr}")
    return done.stdout


def modules_of_list(directory: str) -> list[str]:
    """Return the names of our modules that `swarmtest list` imports."""
    names: list[str] = json.loads(run((*PYTHON, LIST_MODULES), directory).splitlines()[-1])
    return names


if __name__ == "__main__":
    main()
