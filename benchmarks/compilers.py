"""Compilers as in the swarm testing paper (section 3.2): csmith, all features on against a swarm.

    python benchmarks/compilers.py [--quick] [--repeats N --cpu-seconds S]

csmith's programs are compiled by gcc, clang and tcc (examples/csmith/csmith.toml). Each side gets
the same CPU time, csmith's and the compilers' included, in several runs with seeds of their own.
What is counted is what the paper counts: distinct faults (its table 4), lines of a compiler, here
tcc, that only one side reached (table 5), and features that trigger or suppress (table 6). The
fault that most tests show, tcc's rejection of `#pragma pack(push)`, hides what else they would
have shown: the share of tests that end there is `masked`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import cannot_measure, print_figures, print_table, progress, require_programs

from swarmtest import Budget, Campaign, Outcome, Store, open_store
from swarmtest.analysis.rank_tests import bootstrap_interval, difference_of_means
from swarmtest.core.errors import UserError
from swarmtest.roles import Study
from swarmtest.roles.roles import feature_shares

ROOT = Path(__file__).resolve().parents[1]
SUBJECT = ROOT / "examples" / "csmith" / "csmith.toml"
SIDES = {"all-on": "all-on", "swarm": "coin"}
MASKING = "tcc: error: ',' expected (got \")\")"
"""tcc's answer to `#pragma pack(push)`."""
TOOLS = {"csmith": "csmith", "gcc": "gcc", "clang": "clang", "dpkg-source": "dpkg-dev"}
KINDS = ("trigger", "suppressor")
TOP = 10


@dataclass(frozen=True)
class Side:
    """All runs of one side."""

    outcomes: list[Outcome]
    lines: list[set[str]]
    """What each run reached of tcc."""

    @property
    def all_lines(self) -> set[str]:
        return set().union(*self.lines)

    @property
    def faults(self) -> Counter[str]:
        """Each fault's tests."""
        found: Counter[str] = Counter()
        for outcome in self.outcomes:
            found.update({fault.signature: fault.count for fault in outcome.faults})
        return found

    @property
    def tests(self) -> int:
        return sum(outcome.progress.tests for outcome in self.outcomes)

    @property
    def invalid(self) -> int:
        return sum(outcome.progress.invalid for outcome in self.outcomes)

    @property
    def cpu_seconds(self) -> float:
        return sum(outcome.progress.cpu_seconds for outcome in self.outcomes)

    @property
    def masked(self) -> float:
        """The share of the tests that end at the rejection, of those that are valid."""
        return self.faults[MASKING] / max(self.tests - self.invalid, 1)


def tcc_missing() -> str:
    """Why there is no tcc to test; empty when there is one, or it could be built."""
    path = {"PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"}
    built = subprocess.run(
        ["sh", str(ROOT / "tools" / "tcc.sh")], env=path, capture_output=True, text=True
    )
    return built.stderr.strip()


def measured(store: Store, repeats: int, cpu_seconds: float) -> dict[str, Side]:
    """Both sides, in turns, so that what else the machine does disturbs both alike."""
    sides = {name: Side([], []) for name in SIDES}
    for seed in range(repeats):
        for name, strategy in SIDES.items():
            budget = Budget(cpu_seconds=cpu_seconds)
            outcome = Campaign(str(SUBJECT), strategy, budget, seed, workers=2, store=store).run()
            reached = Study(store, [outcome.campaign]).targets.values()
            sides[name].outcomes.append(outcome)
            sides[name].lines.append({t.name for t in reached if t.kind == "line"})
            progress(
                f"run {seed + 1} of {repeats}, {name}: {outcome.progress.tests} tests, "
                f"{len(outcome.faults)} faults, {len(sides[name].lines[-1])} lines of tcc"
            )
    return sides


def only(mine: set[str], other: set[str]) -> int:
    return len(mine - other)


def show_sides(all_on: Side, swarm: Side) -> None:
    def row(title: str, value: object) -> tuple[object, ...]:
        return (title, *map(value, (all_on, swarm)))  # type: ignore[call-overload]

    print_table(
        ("", *SIDES),
        [
            row("CPU seconds", lambda side: f"{side.cpu_seconds:,.0f}"),
            row("tests", lambda side: f"{side.tests:,}"),
            row("of them csmith gave none", lambda side: side.invalid),
            row("end at #pragma pack(push)", lambda side: f"{side.masked:.1%}"),
            row("distinct faults", lambda side: len(side.faults)),
            (
                "faults of one side only",
                only(set(all_on.faults), set(swarm.faults)),
                only(set(swarm.faults), set(all_on.faults)),
            ),
            row("lines of tcc, all runs", lambda side: f"{len(side.all_lines):,}"),
            row(
                "lines of tcc, mean of runs",
                lambda side: f"{statistics.mean(map(len, side.lines)):,.1f}",
            ),
            (
                "lines of one side only",
                only(all_on.all_lines, swarm.all_lines),
                only(swarm.all_lines, all_on.all_lines),
            ),
        ],
    )


def line_change(all_on: Side, swarm: Side) -> tuple[float, float, float]:
    """How many more lines a run of the swarm reaches: the mean, and its 95% interval."""
    counts = [list(map(len, side.lines)) for side in (swarm, all_on)]
    change = statistics.mean(counts[0]) - statistics.mean(counts[1])
    return change, *bootstrap_interval(*counts, statistic=difference_of_means)


def show_faults(all_on: Side, swarm: Side) -> None:
    print("\nfaults, by the tests that show them:")
    signatures = sorted(all_on.faults | swarm.faults, key=lambda s: (-swarm.faults[s], s))
    rows = [(s[:90], all_on.faults[s], swarm.faults[s]) for s in signatures]
    print_table(("fault", *SIDES), rows or [("none", 0, 0)])


def show_roles(store: Store, swarm: Side) -> dict[str, dict[str, list[str]]]:
    """The features that matter to a fault, over all runs of the swarm."""
    study = Study(store, [outcome.campaign for outcome in swarm.outcomes])
    found: dict[str, dict[str, list[str]]] = {}
    table = study.table("fault")
    signatures = {fault.id: fault.signature for one in swarm.outcomes for fault in one.faults}
    for row, fault in enumerate(table.targets):
        roles = {kind: table.discovered(row, kind) for kind in KINDS}
        found[signatures[fault.name]] = roles
    print("\ntriggers and suppressors of faults (swarm, false discoveries below 5%):")
    rows = [
        (name, ", ".join(of["trigger"]) or "-", ", ".join(of["suppressor"]) or "-")
        for name, of in found.items()
    ]
    print_table(("fault", "triggers", "suppressors"), rows or [("none", "-", "-")])
    show_line_roles(study)
    return found


def show_line_roles(study: Study) -> None:
    """Table 6 for lines: for which share of them each feature is a trigger, or a suppressor."""
    shares = feature_shares(study.table("line"))
    columns = [
        sorted(((getattr(one, kind), one.feature) for one in shares), reverse=True)[:TOP]
        for kind in KINDS
    ]
    print("\nshare of tcc's lines that a feature triggers, or suppresses:")
    print_table(
        ("triggers", "share", "suppressors", "share"),
        [
            tuple(
                cell
                for share, name in pair
                for cell in ((name, f"{share:.1%}") if share else ("-", ""))
            )
            for pair in zip(*columns, strict=True)
            if any(share for share, _ in pair)
        ]
        or [("-", "", "-", "")],
    )


def run(repeats: int, cpu_seconds: float) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(str(Path(directory) / "compilers.db"))
        sides = measured(store, repeats, cpu_seconds)
        all_on, swarm = sides["all-on"], sides["swarm"]
        print()
        show_sides(all_on, swarm)
        change, low, high = line_change(all_on, swarm)
        interval = f"95% interval {low:+.1f} to {high:+.1f}"
        print(f"\na run of the swarm reaches {change:+.1f} lines of tcc, {interval}")
        show_faults(all_on, swarm)
        roles = show_roles(store, swarm)
    print_figures(
        {
            "lines_only_swarm": only(swarm.all_lines, all_on.all_lines),
            "lines_only_all_on": only(all_on.all_lines, swarm.all_lines),
            "lines_swarm": round(statistics.mean(map(len, swarm.lines)), 1),
            "lines_all_on": round(statistics.mean(map(len, all_on.lines)), 1),
            "lines_change": [round(change, 1), round(low, 1), round(high, 1)],
            "faults_only_swarm": only(set(swarm.faults), set(all_on.faults)),
            "faults_only_all_on": only(set(all_on.faults), set(swarm.faults)),
            "faults_swarm": len(swarm.faults),
            "faults_all_on": len(all_on.faults),
            "masked_swarm": round(swarm.masked, 3),
            "masked_all_on": round(all_on.masked, 3),
            "tests_swarm": swarm.tests,
            "tests_all_on": all_on.tests,
            "invalid_swarm": swarm.invalid,
            "invalid_all_on": all_on.invalid,
            "cpu_seconds": [round(side.cpu_seconds) for side in (all_on, swarm)],
            "roles": roles,
        }
    )


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, about a minute")
    parser.add_argument("--repeats", type=int, help="runs of each side [6; quick: 2]")
    parser.add_argument("--cpu-seconds", type=float, help="of one run [180; quick: 1]")
    options = parser.parse_args(words)
    require_programs(TOOLS)
    progress("tcc is built, unless that was done before")
    if reason := tcc_missing():
        cannot_measure(reason)
    repeats = options.repeats or (2 if options.quick else 6)
    try:
        run(repeats, options.cpu_seconds or (1 if options.quick else 180))
    except UserError as error:
        sys.exit(f"compilers.py: {error}")


if __name__ == "__main__":
    main()
