"""What it costs to look at a campaign of a million tests: CPU seconds, memory and file size.

    python benchmarks/million.py [--quick] [--tests N] [--keep DIR] [--only WORD ...]

Two campaigns are run by `swarmtest run`: 60 features, 36 faults of different rates, with coverage
of lines and branches (about 4,800 targets), and the same tests without coverage.
`benchmarks/million_program.py` says what the program is like. Then every command that looks at a
campaign runs as a process of its own.

- CPU seconds are those of the command and of all processes that it starts, from `wait4`. The start
  of Python is included. A figure is the less of two runs: what else the machine does can only add.
  Fewer than 100,000 tests are for trying the script: one run of each command, no second column, and
  neither `mutate` nor `suite`, which take seconds whatever the campaign; and 2 workers, not 16.
- Memory is the peak of the process. `peak_mb` is the largest of all commands.
- The second column of seconds is without numba, if it is installed (``'swarmtest[fast]'``).
- Goals are known for a million tests, and for the 100,000 of ``--quick``.
- Commands that change a store, or run tests, work on a copy. How long a run takes besides looking
  its tests up depends on the program; the tests of this one take a tenth of a millisecond.
- Pages of the dashboard are asked for over HTTP (`benchmarks/million_dashboard.py`);
  `dashboard_page_s` is the CPU time of the slowest, `dashboard_answer_s` what the answers that are
  computed in the background took for the page that needs most. `dashboard_live_page_s` is the same
  while 16 workers continue the campaign, and `dashboard_live_events` how many events told an open
  page that there are more tests.

``--keep`` keeps the stores in a directory, and takes those that are there instead of running the
campaigns again. ``--only suite copy dashboard`` measures only these.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import cannot_measure, print_figures, print_table, progress
from million_dashboard import WORKERS, live_costs, page_costs
from million_program import write_program

from swarmtest import open_store
from swarmtest.core.result import Verdict

MILLION, QUICK = 1_000_000, 100_000
ROUNDS = 2
"""Runs of each command."""
SWARMTEST = str(Path(sysconfig.get_path("scripts"), "swarmtest"))
MOST_MB = 1024
PAGE_SECONDS = 0.5
"""The goal for each page of the dashboard."""
PATIENT = ("--timeout", "300")
"""Options of commands that generate a test: on a machine with much work, that takes seconds."""
SIZES = {"covered": 150, "plain": 40}
"""The goal for each store: bytes in the file for each test."""


@dataclass(frozen=True)
class Question:
    """A command that looks at a campaign, and the CPU seconds that it may take."""

    words: tuple[str, ...]
    key: str
    """Its name among the figures; empty for commands that only the table shows."""
    million: float | None = None
    quick: float | None = None
    store: str = "covered"
    runs: bool = False
    """Whether it runs tests or writes: then it is run once, on a copy of the store."""
    expected: int = 0
    """Its exit status; -1: it may find a fault or not."""
    least: int = 0
    """It is left out for fewer tests."""

    @property
    def title(self) -> str:
        """What a person types."""
        return " ".join(self.words) + ("" if self.store == "covered" else ", no coverage")

    def goal(self, tests: int) -> float | None:
        """Return the CPU seconds that it may take for so many tests, if there is a goal."""
        return {MILLION: self.million, QUICK: self.quick}.get(tests)


QUESTIONS = (
    Question(("list",), "list_s", 0.2),
    Question(("show",), "show_s", 0.5, 0.4),
    Question(("faults",), "faults_s", 1, 0.6),
    Question(("roles",), "roles_fault_s", 6, 1),
    Question(("roles", "--kind", "line"), "roles_line_s", 10, 2),
    Question(("growth",), "growth_s", 3, 0.8),
    Question(("triage",), "triage_s", 3),
    Question(("report",), "report_s", 15, 4),
    Question(("show",), "show_plain_s", 0.5, 0.4, "plain"),
    Question(("roles",), "roles_fault_plain_s", 6, 1, "plain"),
    Question(("growth",), "growth_plain_s", 3, 0.8, "plain"),
    Question(("report",), "report_plain_s", 15, 4, "plain"),
    Question(("export", "-f", "csv", "-o", os.devnull), "export_s", runs=True),
    Question(("coverage",), "coverage_s", 1, 1),
    Question(("replay", "TRIAL", *PATIENT), "replay_s", 1, 1, runs=True, expected=-1),
    Question(("replay", "TRIAL", "--no-run", *PATIENT), "replay_no_run_s", 1, 1, runs=True),
    Question(("reduce", "TRIAL", *PATIENT), "reduce_s", runs=True),
    Question(("why", "FAULT"), "why_s", runs=True),
    Question(
        ("focus", "machine.py", "--fault", "FAULT", "-n", "200"), "focus_s", runs=True, expected=-1
    ),
    Question(
        ("mutate", "--sample", "2", "--tests", "50"),
        "mutate_s",
        runs=True,
        expected=-1,
        least=QUICK,
    ),
    Question(("suite", "--no-reduce"), "suite_s", runs=True, least=QUICK),
    Question(("doctor", "STORE"), "doctor_s", runs=True),
    Question(("copy", "STORE", "COPY"), "copy_s", runs=True),
    Question(("delete", "-y", "1"), "delete_s", runs=True),
)


@dataclass(frozen=True)
class Cost:
    """What a process used, with the processes that it started."""

    cpu_seconds: float
    megabytes: float


def measured(
    words: Sequence[str],
    directory: Path,
    environment: dict[str, str] | None = None,
    expected: int = 0,
) -> Cost:
    """Run a command, and return what it used; end the benchmark if it fails.

    `expected` is its exit status; -1: it may find a fault or not.
    """
    inherited = dict(os.environ)
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)  # a user does not compile sources at each start
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            words,
            cwd=directory,
            env=inherited | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != expected and (expected != -1 or process.returncode not in (0, 1)):
            errors.seek(0)
            cannot_measure(f"{' '.join(words)} failed: {errors.read().decode()[-2000:]}")
    # Linux counts memory in units of 1024 bytes.
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def run_campaign(machine: Path, store: Path, tests: int, coverage: bool) -> None:
    """Run a campaign into a store, unless it is there."""
    if store.exists():
        progress(f"{store.name} is there")
        return
    watched = ("--coverage", "line,branch", "--cover", "library") if coverage else ()
    progress(f"{store.name}: {tests:,} tests run")
    unfinished = store.with_suffix(".unfinished")
    words = (SWARMTEST, "run", machine.name, "-s", "coin", "-n", str(tests), "--seed", "1")
    more = (*watched, "--no-reduce", "--quiet", "--store", str(unfinished))
    cost = measured((*words, *more), machine.parent, expected=1)  # 1: it found faults
    unfinished.rename(store)
    progress(f"{store.name}: {cost.cpu_seconds:,.0f} s of CPU")


def answered(question: Question, store: Path, environment: dict[str, str], rounds: int) -> Cost:
    """Return the cost of a command: the less of some runs."""
    words = [SWARMTEST, *question.words, "--store", str(store)]
    if question.words == ("report",):
        words += ["-o", str(store.with_suffix(".html"))]
    runs = [measured(words, store.parent, environment) for _ in range(rounds)]
    return Cost(min(run.cpu_seconds for run in runs), max(run.megabytes for run in runs))


def run_once(question: Question, store: Path, program: Path, names: dict[str, str]) -> Cost:
    """Return the cost of a command that runs tests or writes, on a copy of the store."""
    work, copy = (store.with_suffix(ending) for ending in (".work", ".copy"))
    for path in (work, copy):
        path.unlink(missing_ok=True)
    shutil.copyfile(store, work)
    meant = names | {"STORE": str(work), "COPY": str(copy)}
    words = [SWARMTEST, *(meant.get(word, word) for word in question.words)]
    if "STORE" not in question.words:
        words += ["--store", str(work)]
    try:
        return measured(words, program, expected=question.expected)
    finally:
        for path in (work, copy):
            path.unlink(missing_ok=True)


def names_in(store: Path, tests: int) -> dict[str, str]:
    """Return a failing trial in the middle of the campaign, and its fault."""
    with open_store(store, read_only=True) as opened:
        trial = next(opened.trials(1, after=tests // 2, verdict=Verdict.FAILED, limit=1))
    return {"TRIAL": f"1#{trial.trial}", "FAULT": trial.fault or ""}


def hidden_numba(directory: Path) -> dict[str, str]:
    """Return an environment in which numba cannot be imported."""
    directory.mkdir(exist_ok=True)
    (directory / "numba.py").write_text("raise ImportError('hidden by a benchmark')\n")
    return {"PYTHONPATH": str(directory)}


def measure(directory: Path, tests: int, only: Sequence[str] = ()) -> None:
    """Run the campaigns, ask everything, or what has one of the words `only`, and print it."""
    machine = write_program(directory / "program")
    stores = {name: directory / f"{name}-{tests}.db" for name in SIZES}
    for name, store in stores.items():
        run_campaign(machine, store, tests, name == "covered")
    bytes_per_test = {name: store.stat().st_size / tests for name, store in stores.items()}
    has_numba = importlib.util.find_spec("numba") is not None
    environments = {"_s": dict[str, str]()}
    rounds = ROUNDS if tests >= QUICK else 1
    if has_numba and rounds > 1:
        environments["_numpy_s"] = hidden_numba(directory / "without_numba")
    rows: list[tuple[object, ...]] = []
    figures: dict[str, object] = {}
    peak = 0.0
    names = names_in(stores["covered"], tests)
    for question in QUESTIONS:
        if tests < question.least or (only and not set(only) & set(question.words)):
            continue
        if question.runs:
            costs = [run_once(question, stores[question.store], machine.parent, names)]
        else:
            costs = [
                answered(question, stores[question.store], environment, rounds)
                for environment in environments.values()
            ]
        goal = question.goal(tests)
        most = max(cost.megabytes for cost in costs)
        peak = max(peak, most)
        seconds = [f"{cost.cpu_seconds:.2f}" for cost in costs]
        progress(f"{question.title}: {', '.join(seconds)} s of CPU")
        seconds += [""] * (len(environments) - len(costs))
        rows.append((question.title, *seconds, "" if goal is None else f"{goal:g}", f"{most:,.0f}"))
        for ending, cost in zip(environments, costs, strict=False):
            figures[question.key.removesuffix("_s") + ending] = round(cost.cpu_seconds, 3)
    print(f"{tests:,} tests")
    columns = ("with numba" if has_numba else "without numba", "without numba")
    print_table(("CPU seconds", *columns[: len(environments)], "goal", "MB"), rows)
    print()
    print_table(
        ("bytes a test in the file", "", "goal"),
        [(name, f"{bytes_per_test[name]:.1f}", goal) for name, goal in SIZES.items()],
    )
    if not only or "dashboard" in only:
        figures |= measure_pages(stores["covered"], tests)
        figures |= measure_live_pages(stores["covered"], machine.parent, tests)
    print(f"\npeak memory {peak:,.0f} MB, goal {MOST_MB:,}")
    print_figures(
        figures
        | {
            "tests": tests,
            "bytes_per_test": round(bytes_per_test["covered"], 1),
            "bytes_per_test_plain": round(bytes_per_test["plain"], 1),
            "peak_mb": round(peak),
        }
    )


def measure_pages(store: Path, tests: int) -> dict[str, object]:
    """Ask for every page of the dashboard, and print what each took; return the figures."""
    progress("dashboard")
    pages = page_costs(SWARMTEST, store, tests)
    print("\ndashboard, CPU seconds of the server")
    print_table(
        ("page", "to show it", "goal", "wall", "answers in the background"),
        [
            (
                page.title,
                f"{page.cpu_seconds:.2f}",
                PAGE_SECONDS,
                f"{page.wall_seconds:.2f}",
                f"{page.answer_seconds:.2f}",
            )
            for page in pages
        ],
    )
    return {
        "dashboard_page_s": round(max(page.cpu_seconds for page in pages), 3),
        "dashboard_answer_s": round(max(page.answer_seconds for page in pages), 3),
    }


def measure_live_pages(store: Path, program: Path, tests: int) -> dict[str, object]:
    """Ask for the pages while a copy of the campaign goes on; print and return what they took."""
    workers = WORKERS if tests >= QUICK else 2
    progress(f"dashboard, while {workers} workers continue the campaign")
    copy = store.with_suffix(".live")
    for path in copy.parent.glob(f"{copy.name}*"):
        path.unlink()
    shutil.copyfile(store, copy)
    try:
        live = live_costs(SWARMTEST, copy, program, tests, workers)
    finally:
        for path in copy.parent.glob(f"{copy.name}*"):
            path.unlink()
    slowest = max(live.pages, key=lambda page: page.cpu_seconds)
    print(
        f"\nwhile {workers} workers continue the campaign: {slowest.cpu_seconds:.2f} CPU s for the "
        f"slowest page ({slowest.title}; goal {PAGE_SECONDS}), and {live.events} events that told "
        f"of {live.tests:,} new tests; the server took {live.server_share:.2f} CPU s a second"
    )
    return {
        "dashboard_live_page_s": round(slowest.cpu_seconds, 3),
        "dashboard_live_events": live.events,
        "dashboard_live_tests": live.tests,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} tests")
    parser.add_argument("--tests", type=int, metavar="N", help="so many tests")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the stores, or take them")
    parser.add_argument("--only", nargs="+", default=(), metavar="WORD", help="only such commands")
    options = parser.parse_args()
    tests = options.tests or (QUICK if options.quick else MILLION)
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        measure(options.keep.resolve(), tests, options.only)
        return
    with tempfile.TemporaryDirectory() as directory:
        measure(Path(directory), tests, options.only)


if __name__ == "__main__":
    main()
