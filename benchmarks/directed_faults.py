"""Real faults: do tests that are directed at the lines of the fix find them more often?

    python benchmarks/directed_faults.py [--quick] [--only WORD] [--work DIR] [--suites N]

The bugs are those of known_bugs.py: old releases from PyPI, with machines that compare the library
with a plain dict, list or string. As for table 7 of the paper, the aims are the lines of the
change: in the function that the fix changed, the lines of the old release that it replaced, and
those beside which it inserted some. Their triggers and suppressors come from undirected tests. Then
every strategy runs suites of other tests, and the tests that show the fault are counted, per CPU
second of the whole process: a rate of 2 is 120 detections in a suite of a minute. All suites run
with coverage, though only `adaptive` learns from it. p: Mann-Whitney, suite by suite, against
undirected. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import mean

from changelogs import BUGS, Bug
from directed import OURS, paper_strategies
from harness import cpu_seconds, print_figures, print_table, progress
from known_bugs import DEFAULT_WORK, install
from measuring import ALL_ON, CONTROL, Sample, Subject, joined

from swarmtest.analysis.rank_tests import mann_whitney
from swarmtest.core.targets import Target
from swarmtest.strategies.directed.aim import Aim

FIXED = {
    "IndexedSet: slice": ("boltons/setutils.py", "IndexedSet.iter_slice"),
    "IndexedSet: index": ("boltons/setutils.py", "IndexedSet.index"),
    "BarrelList: pop": ("boltons/listutils.py", "BarrelList.pop"),
    "BarrelList: sort": ("boltons/listutils.py", "BarrelList.sort"),
    "PMap: lookup": ("pyrsistent/_pmap.py", "PMap._Evolver.set"),
    "BitArray: prepend": ("bitstring.py", "ConstByteStore._prependstore"),
    "TLRUCache: expired": ("cachetools/__init__.py", "TLRUCache.__setitem__"),
}
"""Where the fix of each bug is; both releases also differ elsewhere."""
QUICK = ("BitArray: prepend",)
SEED_TESTS, TESTS, SUITES = 4000, 1500, 10
QUICK_SIZES = (600, 100, 2)
PROCESSES = 2
FIRST_SUITE = 1000
UNDIRECTED = {CONTROL: "coin", ALL_ON: "all-on"}


@dataclass(frozen=True)
class Finding:
    """What came out for one bug: the suites of each strategy."""

    bug: Bug
    lines: tuple[int, ...]
    aims: tuple[Aim, ...]
    """One for each changed line that undirected tests reached."""
    suites: dict[str, tuple[Sample, ...]]

    def detections(self, sample: Sample) -> int:
        return sum(n for signature, n in sample.faults.items() if self.bug.fault in signature)

    def rates(self, strategy: str) -> list[float]:
        """Detections per CPU second, suite by suite."""
        return [self.detections(one) / one.cpu for one in self.suites[strategy]]

    def rate(self, strategy: str) -> float:
        whole = joined(self.suites[strategy])
        return self.detections(whole) / whole.cpu

    def share(self, strategy: str) -> float:
        """Detections per test."""
        whole = joined(self.suites[strategy])
        return self.detections(whole) / whole.tests

    def improvement(self, strategy: str) -> float | None:
        """How many times as many detections as undirected tests have, at equal CPU time."""
        undirected = self.rate(CONTROL)
        return self.rate(strategy) / undirected if undirected else None


def changed_lines(old: Path, new: Path, function: str) -> tuple[int, ...]:
    """The lines of a function of the old file that the new one replaced, or inserted beside."""
    before, after = old.read_text(), new.read_text()
    low, high = lines_of(before, function)
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), False)
    changed: set[int] = set()
    for kind, start, stop, _, _ in matcher.get_opcodes():
        if kind == "insert":
            changed |= {start, start + 1}
        elif kind != "equal":
            changed |= set(range(start + 1, stop + 1))
    return tuple(sorted(line for line in changed if low <= line <= high))


def lines_of(text: str, function: str) -> tuple[int, int]:
    """The first and the last line of a function, by its qualified name."""
    found: ast.AST = ast.parse(text)
    for name in function.split("."):
        found = next(
            node
            for node in ast.walk(found)
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
        )
    assert isinstance(found, ast.FunctionDef)
    assert found.end_lineno
    return found.lineno, found.end_lineno


def examine(bug: Bug, work: Path, sizes: Sequence[int]) -> Finding:
    """Measure one bug, in a process of its own that has imported no release yet."""
    seed_tests, tests, suites = sizes
    library = install(bug.package, bug.broken, work)
    file, function = FIXED[bug.title]
    repaired = install(bug.package, bug.claims[-1].release, work)
    lines = changed_lines(library / file, repaired / file, function)
    sys.path.insert(0, str(library))
    module = file.removesuffix(".py").split("/")[0]
    subject = Subject(
        "faults", bug.title, f"../known_bugs/{bug.machine}", module, seed_tests, tests
    )
    _ = subject.loaded  # before any fork

    def chooses(target: Target, share: float) -> bool:
        return target.file.endswith(file) and target.line in lines

    aims = tuple(subject.aims(seed_tests, 1, chooses).values())
    return Finding(bug, lines, aims, run_suites(subject, aims, suites))


def run_suites(subject: Subject, aims: Sequence[Aim], suites: int) -> dict[str, tuple[Sample, ...]]:
    """So many suites of every strategy, in turns."""
    factories = {**paper_strategies(len(aims)), **OURS}
    found: dict[str, list[Sample]] = {name: [] for name in (CONTROL, ALL_ON, *factories)}
    for suite in range(suites):
        for name, samples in found.items():
            strategy = factories[name](aims) if name in factories else UNDIRECTED[name]
            samples.append(subject.sample(strategy, subject.tests, FIRST_SUITE + suite, ()))
    return {name: tuple(samples) for name, samples in found.items()}


def print_rates(findings: Sequence[Finding]) -> None:
    """Table 7, the other way round: a row for each fault would be too wide."""
    names = list(dict.fromkeys(name for one in findings for name in one.suites))
    for title, cell in (("Detections per CPU second", rate_cell), ("p", p_cell)):
        print(f"\n{title}")
        rows = [[name, *(cell(one, name) for one in findings)] for name in names]
        print_table(["", *(one.bug.title for one in findings)], rows)
    print("\nChanged lines")
    for one in findings:
        where = f"{FIXED[one.bug.title][1]} of {one.bug.package} {one.bug.broken}"
        print(f"{one.bug.title}: {where}: lines {', '.join(map(str, one.lines))}")
        for aim in one.aims:
            triggers, suppressors = sorted(aim.triggers), sorted(aim.suppressors)
            line = aim.targets[0].rpartition(":")[2]
            print(f"  {line}: triggers {told(triggers)}; suppressors {told(suppressors)}")


def told(names: list[str]) -> str:
    return ", ".join(names) or "none"


def rate_cell(finding: Finding, strategy: str) -> str:
    if strategy not in finding.suites:
        return ""
    times = finding.improvement(strategy)
    return f"{finding.rate(strategy):.2f}" + (f" ({times:.2f}x)" if times is not None else "")


def p_cell(finding: Finding, strategy: str) -> str:
    if strategy == CONTROL or strategy not in finding.suites:
        return ""
    return f"{mann_whitney(finding.rates(strategy), finding.rates(CONTROL)):.4f}"


def mean_improvements(findings: Sequence[Finding]) -> dict[str, float]:
    """For each strategy, over the faults; for a single line all merges are like round-robin."""
    found = {}
    for name in (ALL_ON, *paper_strategies(size=2), *OURS):
        alone = " ".join(["round-robin", *name.split()[1:]])
        times = [one.improvement(name if name in one.suites else alone) for one in findings]
        known = [value for value in times if value is not None]
        found[name] = round(mean(known), 3) if known else 0.0
    return found


def figures(findings: Sequence[Finding]) -> dict[str, object]:
    means = mean_improvements(findings)
    directed = {name: value for name, value in means.items() if name != ALL_ON}
    best = max(directed, key=lambda name: directed[name])
    return {
        "faults": len(findings),
        "best": best,
        "best_mean_improvement": means[best],
        "mean_improvement": means,
        "cpu_seconds": round(cpu_seconds()),
        "rates": {
            one.bug.title: {name: round(one.rate(name), 3) for name in one.suites}
            for one in findings
        },
        "shares": {
            one.bug.title: {name: round(one.share(name), 5) for name in one.suites}
            for one in findings
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one bug, fewer and smaller suites")
    parser.add_argument("--only", help="only the bugs with this in their package or title")
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK, help="the working directory")
    parser.add_argument("--suites", type=int, help="of each strategy, for each bug")
    options = parser.parse_args()
    bugs = [bug for bug in BUGS if not options.quick or bug.title in QUICK]
    if options.only:
        bugs = [bug for bug in BUGS if options.only in f"{bug.package} {bug.title}"]
    if not bugs:
        sys.exit(f"no bug has {options.only!r} in its package or title")
    seed_tests, tests, suites = QUICK_SIZES if options.quick else (SEED_TESTS, TESTS, SUITES)
    sizes = (seed_tests, tests, options.suites or suites)
    work = options.work.expanduser().resolve()
    for bug in bugs:
        for release in (bug.broken, bug.claims[-1].release):
            install(bug.package, release, work)
    os.environ["PYTHONHASHSEED"] = "0"
    findings = []
    with ProcessPoolExecutor(PROCESSES, get_context("spawn"), max_tasks_per_child=1) as pool:
        found = pool.map(examine, bugs, [work] * len(bugs), [sizes] * len(bugs))
        progress(f"{len(bugs)} bugs: an undirected swarm, and suites of every strategy")
        for finding in found:
            findings.append(finding)
            progress(f"{finding.bug.package} {finding.bug.broken}: done")
    print_rates(findings)
    print_figures(figures(findings))


if __name__ == "__main__":
    main()
