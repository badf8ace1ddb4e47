"""Line and branch coverage of PyPI packages by their own tests: coverage.py beside swarmtest.

    python benchmarks/packages.py [--quick] [--only NAME] [--work DIR] [--show]
                                  [--against {swarmtest,coverage}]

Each suite runs plainly, under coverage.py with branches, and under swarmtest. Compared are the
lines and branches that can be executed, those that were, and the verdict of each test. A difference
is either explained by a rule (`package_rules.py`) or counted as unexplained. `--against coverage`
compares a second run of coverage.py in swarmtest's place: what differs then is noise of the suite.
Logs and results of the runs stay in the working directory. The last line is one JSON object; the
exit status is 1 if a suite did not run to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness import print_figures, print_table, progress, timed
from package_rules import EXPLAINED, Branch, Difference, Explanation
from pypi_suites import RECORDER, SUITES, Checkout, Suite, prepare

DEFAULT_WORK = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "swarmtest" / "packages"
LONGEST_RUN = 1800.0  # seconds; a suite that takes longer hangs
RAN_TO_ITS_END = (0, 1)  # pytest's status: all passed, some failed; others are errors of its own
# No line and no branch is left out for a comment or for how it reads.
COVERAGE_SETTINGS = """\
[run]
branch = True
data_file = {data}
source =
    {source}
[report]
exclude_lines = (?!)
partial_branches = (?!)
partial_branches_always = (?!)
[json]
output = {json}
"""
Verdicts = dict[str, dict[str, int]]


@dataclass(frozen=True)
class FileCoverage:
    """What can be executed in a file, and what was."""

    lines: frozenset[int] = frozenset()
    hit_lines: frozenset[int] = frozenset()
    branches: frozenset[Branch] = frozenset()
    hit_branches: frozenset[Branch] = frozenset()

    def check(self, path: str) -> None:
        if not (self.hit_lines <= self.lines and self.hit_branches <= self.branches):
            raise ValueError(f"{path}: executed, but not executable")


@dataclass
class Run:
    seconds: float
    verdicts: Verdicts
    files: dict[str, FileCoverage]


@dataclass
class Row:
    """What came out for one package."""

    package: str
    failure: str = ""  # why a run did not get to its end; then nothing was compared
    tests: int = 0
    files: int = 0
    verdict_changes: int = 0
    lines: int = 0
    hit_lines: int = 0
    branches: int = 0
    hit_branches: int = 0
    explained_line_differences: int = 0
    unexplained_line_differences: int = 0
    explained_branch_differences: int = 0
    unexplained_branch_differences: int = 0
    rules: dict[str, int] = field(default_factory=dict)
    seconds_plain: float = 0.0
    seconds_coverage: float = 0.0
    seconds_other: float = 0.0

    def add(self, difference: Difference, rule: Explanation | None) -> None:
        kind = "line" if isinstance(difference.item, int) else "branch"
        count = f"{'explained' if rule else 'unexplained'}_{kind}_differences"
        setattr(self, count, getattr(self, count) + 1)
        if rule:
            self.rules[rule.name] = self.rules.get(rule.name, 0) + 1


class Failure(Exception):
    """A run did not get to its end."""


def run_suite(at: Checkout, name: str, before: list[str], options: list[str]) -> Run:
    """One run of the suite's tests; its output goes to a log."""
    verdicts, log = at.output / f"{name}.verdicts.json", at.output / f"{name}.log"
    verdicts.unlink(missing_ok=True)
    left_out = [f"--deselect={test}" for test, why in at.suite.left_out if "::" in test]
    left_out += [f"--ignore={test}" for test, why in at.suite.left_out if "::" not in test]
    plugins = [f"-p{plugin}" for plugin in (RECORDER, *at.suite.plugins)]
    command = [str(at.python), *before, "-m", "pytest", "-q", "-oaddopts=", "-pno:cacheprovider"]
    command += [*options, *plugins, f"--verdicts={verdicts}", *left_out, *at.suite.tests]

    status: list[int] = []

    def run() -> None:
        with log.open("w") as out:
            ended = subprocess.run(
                command,
                cwd=at.root,
                env=at.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=LONGEST_RUN,
            )
            status.append(ended.returncode)

    try:
        seconds = timed(run)
    except subprocess.TimeoutExpired:
        raise Failure(f"the {name} run took more than {LONGEST_RUN:.0f} s; see {log}") from None
    if status[0] not in RAN_TO_ITS_END or not verdicts.is_file():
        tail = "".join(log.read_text(errors="replace").splitlines(keepends=True)[-12:])
        raise Failure(f"the {name} run ended with status {status[0]}; {log} ends:\n{tail}")
    return Run(seconds, json.loads(verdicts.read_text()), {})


def run_coverage(at: Checkout, name: str = "coverage") -> Run:
    """The suite under coverage.py; its JSON report says what can be executed and what was."""
    settings, report = at.output / f"{name}.ini", at.output / f"{name}.json"
    source = "\n    ".join(map(str, at.covered))
    data = at.output / f"{name}.data"
    settings.write_text(COVERAGE_SETTINGS.format(data=data, source=source, json=report))
    run = run_suite(at, name, ["-mcoverage", "run", f"--rcfile={settings}"], [])
    command = [str(at.python), "-mcoverage", "json", "-q", f"--rcfile={settings}"]
    report.unlink(missing_ok=True)
    subprocess.run(command, cwd=at.root, env=at.environment())
    if not report.is_file():
        raise Failure(f"coverage.py wrote no {report}")
    for path, found in json.loads(report.read_text())["files"].items():
        run.files[str(at.root / path)] = FileCoverage(
            frozenset(found["executed_lines"] + found["missing_lines"]),
            frozenset(found["executed_lines"]),
            _pairs(found["executed_branches"] + found["missing_branches"]),
            _pairs(found["executed_branches"]),
        )
    return run


def run_swarmtest(at: Checkout) -> Run:
    """The suite under the import hook of swarmtest."""
    report = at.output / "swarmtest.json"
    report.unlink(missing_ok=True)
    options = ["-pswarmtest.pytest_plugin", "--swarm-coverage=line,branch"]
    options += [f"--swarm-cover={name}" for name in at.suite.cover]
    options += [f"--swarm-coverage-file={report}"]
    run = run_suite(at, "swarmtest", [], options)
    if not report.is_file():
        raise Failure(f"swarmtest wrote no {report}")
    for found in json.loads(report.read_text())["files"]:
        run.files[str(Path(found["path"]).resolve())] = FileCoverage(
            frozenset(found["lines"]),
            frozenset(found["hit_lines"]),
            _pairs(found["branches"]),
            _pairs(found["hit_branches"]),
        )
    return run


def _pairs(branches: list[list[int]]) -> frozenset[Branch]:
    return frozenset((a, b) for a, b in branches)


def compared_files(suite: Suite, root: Path, reference: Run, other: Run) -> list[str]:
    """The package's files of which either knows something, without tests inside the package."""
    inside = str(root / suite.inside) + os.sep if suite.inside else None
    paths = {p for p, c in reference.files.items() if c.hit_lines} | other.files.keys()
    return sorted(p for p in paths if not (inside and p.startswith(inside)))


def differences(path: str, reference: Run, other: Run, name: str) -> Iterator[Difference]:
    """What only one says can be executed; and among what both say, what only one saw executed."""
    a, b = (run.files.get(path, FileCoverage()) for run in (reference, other))
    a.check(path)
    b.check(path)
    both_lines, both_branches = a.lines & b.lines, a.branches & b.branches
    sets: list[tuple[str, frozenset[Any], frozenset[Any]]] = [
        ("line", a.lines, b.lines),
        ("hit line", a.hit_lines & both_lines, b.hit_lines & both_lines),
        ("branch", a.branches, b.branches),
        ("hit branch", a.hit_branches & both_branches, b.hit_branches & both_branches),
    ]
    for kind, in_a, in_b in sets:
        for item in sorted(in_a ^ in_b):
            only_in = "coverage.py" if item in in_a else name
            yield Difference(Path(path), kind, only_in, item, path in other.files)


def verdict_changes(*runs: Run) -> list[str]:
    """The tests that did not end the same way in all runs."""
    tests = sorted({test for run in runs for test in run.verdicts})
    found = ([run.verdicts.get(test) for run in runs] for test in tests)
    return [f"{test}: {v}" for test, v in zip(tests, found, strict=True) if v.count(v[0]) < len(v)]


def study(at: Checkout, against: str, show: bool) -> Row:
    """All runs of one suite, compared; or why they cannot be."""
    progress(at.suite.requirement)
    try:
        return compare(at, against, show)
    except Failure as failure:
        progress(f"{at.suite.requirement}: {failure}")
        return Row(at.suite.requirement, failure=str(failure))


def compare(at: Checkout, against: str, show: bool) -> Row:
    plain = run_suite(at, "plain", [], [])
    reference = run_coverage(at)
    other = run_swarmtest(at) if against == "swarmtest" else run_coverage(at, "coverage-again")
    paths = compared_files(at.suite, at.root, reference, other)
    changes = verdict_changes(plain, reference, other)
    row = Row(at.suite.requirement, "", len(plain.verdicts), len(paths), len(changes))
    row.seconds_plain, row.seconds_coverage = round(plain.seconds, 2), round(reference.seconds, 2)
    row.seconds_other = round(other.seconds, 2)
    for change in changes if show else []:
        print(change)
    for path in paths:
        found = reference.files.get(path, FileCoverage())
        row.lines += len(found.lines)
        row.hit_lines += len(found.hit_lines)
        row.branches += len(found.branches)
        row.hit_branches += len(found.hit_branches)
        for difference in differences(path, reference, other, against):
            rule = next((rule for rule in EXPLAINED if rule.holds(difference)), None)
            row.add(difference, rule)
            if show:
                print(f"{difference}  [{rule.name if rule else 'unexplained'}]")
    return row


def report(rows: list[Row], against: str) -> None:
    head = ["package", "tests", "verdicts changed", "lines", "differ", "unexplained"]
    head += ["branches", "differ", "unexplained", "plain s", "coverage.py s", f"{against} s"]
    cells = [
        [row.package, "did not run to its end"] + [""] * (len(head) - 2)
        if row.failure
        else [
            row.package,
            row.tests,
            row.verdict_changes,
            row.lines,
            row.explained_line_differences + row.unexplained_line_differences,
            row.unexplained_line_differences,
            row.branches,
            row.explained_branch_differences + row.unexplained_branch_differences,
            row.unexplained_branch_differences,
            f"{row.seconds_plain:.1f}",
            f"{row.seconds_coverage:.1f}",
            f"{row.seconds_other:.1f}",
        ]
        for row in rows
    ]
    print_table(head, cells)
    rules = sum((Counter(row.rules) for row in rows), Counter[str]())
    for rule in EXPLAINED:
        print(f"{rule.name} ({rules[rule.name]}): {rule.comment}")
    summed = [name for name, value in asdict(rows[0]).items() if isinstance(value, int | float)]
    totals = {name: round(sum(getattr(row, name) for row in rows), 2) for name in summed}
    details = {"rules": rules, "details": [asdict(row) for row in rows]}
    counts = {"packages": len(rows), "failures": sum(bool(row.failure) for row in rows)}
    version = ".".join(map(str, sys.version_info[:3]))
    print_figures({"python": version, "against": against, **counts, **totals, **details})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few fast suites, under a minute")
    parser.add_argument("--only", action="append", help="only the suite of this package")
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK, help="the working directory")
    parser.add_argument("--show", action="store_true", help="print each difference")
    parser.add_argument("--against", choices=["swarmtest", "coverage"], default="swarmtest")
    options = parser.parse_args()
    suites = [suite for suite in SUITES if suite.quick or not options.quick]
    if options.only:
        suites = [suite for suite in SUITES if suite.name in options.only]
    quick = options.quick and not options.only
    checkouts = prepare(suites, options.work.expanduser().resolve(), quick)
    rows = [study(at, options.against, options.show) for at in checkouts]
    report(rows, options.against)
    sys.exit(any(row.failure for row in rows))


if __name__ == "__main__":
    main()
