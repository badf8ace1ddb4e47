"""Bugs of PyPI releases: do the triggers that a campaign finds agree with the fix's changelog?

    python benchmarks/known_bugs.py [--quick] [--only WORD] [--work DIR] [--tests N] [--seed N]

For each bug, a machine that compares the library with a plain dict, list or string runs on the
last release that has the bug: a coin campaign of a fixed seed. Of the faults that it finds, the
bug's own is known by its signature. Its triggers, after correction for all comparisons, are set
against the features that the line in the changelog names: precision is the share of the triggers
that the line names, recall the share of the named features that are triggers. What differs is
explained below the table, or undecided because its interval contains chance, or counted as
unexplained. Then the same campaign runs on each release whose changelog claims the fix.

A suppressor may undo what leads to the fault, or end tests with another fault first (these are
listed as masking), or merely take steps from the others. Releases stay in the working directory.
The last line is one JSON object; the exit status is 1 if a bug was not found or is still in the
last release that claims the fix.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from changelogs import BUGS, Bug
from harness import cannot_measure, cpu_seconds, print_figures, print_table, progress
from unpacking import unpack_tar

from swarmtest import open_store
from swarmtest.analysis.role_cells import SUPPRESSOR, TRIGGER
from swarmtest.roles.roles import FeatureRole
from swarmtest.roles.study import Study

HERE = Path(__file__).resolve().parent
DEFAULT_WORK = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "swarmtest" / "known_bugs"
TESTS = 30_000
CONFIDENCE = 0.95
FAULTS_FOUND = (0, 1)  # the exit status of a campaign that ran to its end


@dataclass(frozen=True)
class Fault:
    """A fault of a campaign: its tests and what each feature is to it."""

    signature: str
    count: int
    roles: tuple[FeatureRole, ...]

    def having(self, role: str) -> list[FeatureRole]:
        """The features with a role that survives the correction, the strongest first."""
        found = [r for r in self.roles if r.role == role and r.is_discovery(1 - CONFIDENCE)]
        return sorted(found, key=lambda r: -abs(r.share - r.base))

    @property
    def triggers(self) -> set[str]:
        return {role.feature for role in self.having(TRIGGER)}


@dataclass(frozen=True)
class Difference:
    """A feature that is only a trigger, or only named."""

    feature: str
    which: str
    kind: str  # explained, undecided or unexplained
    why: str


@dataclass(frozen=True)
class Finding:
    """What came out for one bug."""

    bug: Bug
    tests: int
    fault: Fault | None
    beside: list[Fault]  # the other faults of the broken release
    still: dict[str, int]  # tests that show it, by the releases that claim the fix
    others: list[Fault]  # the other faults of the last of those

    @property
    def found(self) -> set[str]:
        return self.fault.triggers if self.fault else set()

    @property
    def precision(self) -> float:
        return len(self.found & self.bug.expected) / len(self.found) if self.found else 0.0

    @property
    def recall(self) -> float:
        return len(self.found & self.bug.expected) / len(self.bug.expected)

    @property
    def differences(self) -> list[Difference]:
        found, expected = self.found, self.bug.expected
        pairs = [(name, "not named") for name in sorted(found - expected)]
        pairs += [(name, "not a trigger") for name in sorted(expected - found)]
        return [Difference(name, which, *self._why(name)) for name, which in pairs]

    def _why(self, name: str) -> tuple[str, str]:
        if name in self.bug.remarks:
            return "explained", self.bug.remarks[name]
        roles = self.fault.roles if self.fault else ()
        role = next((role for role in roles if role.feature == name), None)
        if role and name in self.bug.expected and role.role != SUPPRESSOR:
            return "undecided", f"no role shown: {told([role])}"
        return "unexplained", "unexplained"

    @property
    def masking(self) -> list[str]:
        """The suppressors without which some other fault never shows."""
        always = {r.feature for f in self.beside for r in f.having(TRIGGER) if r.share == 1}
        suppressors = self.fault.having(SUPPRESSOR) if self.fault else []
        return [role.feature for role in suppressors if role.feature in always]

    @property
    def gone(self) -> bool:
        return self.still[self.bug.claims[-1].release] == 0


@dataclass(frozen=True)
class Plan:
    """What the campaigns on all releases of a bug have in common."""

    tests: int
    seed: int
    work: Path


def install(package: str, release: str, work: Path) -> Path:
    """A directory with one release of a package and nothing else."""
    directory = work / f"{package}-{release}"
    if not directory.is_dir():
        progress(f"getting {package} {release}")
        work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=work) as temporary:
            unpacked = Path(temporary) / "library"
            options = ["-qq", "--no-deps", "--target", str(unpacked)]
            command = [sys.executable, "-m", "pip", "install", *options, f"{package}=={release}"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
                cannot_measure(f"{package} {release} could not be installed: {last}")
            unpacked.rename(directory)
    return directory


def unpack_source(package: str, release: str, work: Path) -> Path:
    """A directory with the source archive of a release whose extension modules cannot be built."""
    directory = work / f"{package}-{release}-source"
    if not directory.is_dir():
        progress(f"getting the source of {package} {release}")
        work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=work) as temporary:
            options = ["-qq", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
            command = [sys.executable, "-m", "pip", "download", *options, "--dest", temporary]
            done = subprocess.run([*command, f"{package}=={release}"], capture_output=True)
            archives = list(Path(temporary).glob("*.tar.gz"))
            if done.returncode or not archives:
                cannot_measure(f"the source of {package} {release} could not be downloaded")
            unpack_tar(archives[0], Path(temporary) / "unpacked")
            next((Path(temporary) / "unpacked").iterdir()).rename(directory)
    return directory


def campaign(bug: Bug, release: str, plan: Plan) -> list[Fault]:
    """The faults that a campaign finds in a release."""
    progress(f"{bug.package} {release}, {bug.title}: {plan.tests:,} tests")
    library = install(bug.package, release, plan.work)
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "store.db"
        path = os.pathsep.join(map(str, (library, HERE.parent / "src")))
        command = [sys.executable, "-m", "swarmtest", "run", str(HERE / "known_bugs" / bug.machine)]
        command += ["--strategy", "coin", "--seed", str(plan.seed), "--tests", str(plan.tests)]
        command += ["--no-reduce"]
        ended = subprocess.run(
            [*command, "--store", str(file)],
            env=os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if ended.returncode not in FAULTS_FOUND or not file.exists():
            sys.exit(f"{bug.package} {release}: the campaign failed:\n{ended.stdout}")
        return list(faults(str(file)))


def faults(file: str) -> Iterator[Fault]:
    """All faults of the only campaign of a store, with the roles of the features."""
    with open_store(file) as store:
        counts = {fault.id: fault.count for fault in store.faults(1)}
        for target, roles in Study(store, [1], CONFIDENCE).table("fault"):
            yield Fault(target.detail, counts[target.name], tuple(roles))


def examine(bug: Bug, plan: Plan) -> Finding:
    shown, beside = parted(bug, campaign(bug, bug.broken, plan))
    still: dict[str, int] = {}
    others: list[Fault] = []
    for claim in bug.claims:
        again, others = parted(bug, campaign(bug, claim.release, plan))
        still[claim.release] = sum(fault.count for fault in again)
    return Finding(bug, plan.tests, shown[0] if shown else None, beside, still, others)


def parted(bug: Bug, found: list[Fault]) -> tuple[list[Fault], list[Fault]]:
    """The faults that show a bug, and the others."""
    shown = [fault for fault in found if bug.fault in fault.signature]
    return shown, [fault for fault in found if fault not in shown]


def row(finding: Finding) -> list[object]:
    bug, fault = finding.bug, finding.fault
    releases = ", ".join(f"{release}: {count}" for release, count in finding.still.items())
    return [
        f"{bug.package} {bug.broken} {bug.title}",
        len(fault.roles) if fault else "",
        f"{finding.tests:,}",
        f"{fault.count / finding.tests:.1%}" if fault else "not found",
        len(bug.expected),
        len(finding.found),
        f"{finding.precision:.0%}",
        f"{finding.recall:.0%}",
        releases,
    ]


def told(roles: list[FeatureRole]) -> str:
    return ", ".join(f"{r.feature} {r.share:.0%} [{r.low:.0%}, {r.high:.0%}]" for r in roles)


def explain(finding: Finding) -> None:
    """The lines below the table for one bug."""
    bug, fault = finding.bug, finding.fault
    print(f"\n{bug.package} {bug.broken}, {bug.title}")
    for claim in bug.claims:
        print(f'  {claim.release}: "{claim.quote}"')
    print("  named:       " + "; ".join(f"{w}: {', '.join(f)}" for w, f in bug.named.items()))
    if fault is None:
        return
    print(f"  triggers:    {told(fault.having(TRIGGER))}")
    print(f"  suppressors: {told(fault.having(SUPPRESSOR))}")
    if finding.masking:
        print(f"  masking:     {', '.join(finding.masking)}")
    for difference in finding.differences:
        print(f"  {difference.which}: {difference.feature}: {difference.why}")
    for other in finding.others:
        print(
            f"  also in {bug.claims[-1].release}: {other.signature} ({other.count} tests; "
            f"triggers: {', '.join(r.feature for r in other.having(TRIGGER)) or 'none'})"
        )


def figures(findings: list[Finding]) -> dict[str, object]:
    differences = Counter(d.kind for finding in findings for d in finding.differences)
    return {
        "bugs": len(findings),
        "found": sum(finding.fault is not None for finding in findings),
        "triggers_agree": sum(finding.found == finding.bug.expected for finding in findings),
        "mean_precision": round(mean(finding.precision for finding in findings), 3),
        "mean_recall": round(mean(finding.recall for finding in findings), 3),
        "explained_differences": differences["explained"],
        "undecided_differences": differences["undecided"],
        "unexplained_differences": differences["unexplained"],
        "gone_after_fix": sum(finding.gone for finding in findings),
        "gone_after_first_claim": sum(next(iter(s.still.values())) == 0 for s in findings),
        "other_faults_in_fixed_releases": sum(len(finding.others) for finding in findings),
        "tests": sum(finding.tests for finding in findings),
        "cpu_seconds": round(cpu_seconds(), 1),
        "details": {
            f"{finding.bug.package} {finding.bug.broken} {finding.bug.title}": {
                "named": sorted(finding.bug.expected),
                "triggers": sorted(finding.found),
                "precision": round(finding.precision, 3),
                "recall": round(finding.recall, 3),
                "tests": finding.tests,
                "failing": finding.fault.count if finding.fault else 0,
                "failing_after_fix": finding.still,
            }
            for finding in findings
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two bugs, fewer tests")
    parser.add_argument("--only", help="only the bugs with this in their package or title")
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK, help="the working directory")
    parser.add_argument("--tests", type=int, help="the number of tests of each campaign")
    parser.add_argument("--seed", type=int, default=0, help="of each campaign")
    options = parser.parse_args()
    bugs = [bug for bug in BUGS if bug.quick_tests or not options.quick]
    if options.only:
        bugs = [bug for bug in BUGS if options.only in f"{bug.package} {bug.title}"]
    work = options.work.expanduser().resolve()
    findings = []
    for bug in bugs:
        tests = options.tests or (bug.quick_tests if options.quick else TESTS)
        findings.append(examine(bug, Plan(tests, options.seed, work)))
    head = ["bug", "features", "tests", "failing", "named", "triggers", "precision", "recall"]
    print_table([*head, "failing after the fix"], [row(finding) for finding in findings])
    print("\nBelow: a feature's share of the failing tests and its 95% interval; by chance, 50%.")
    for one in findings:
        explain(one)
    print_figures(figures(findings))
    sys.exit(not all(one.fault and one.gone for one in findings))


if __name__ == "__main__":
    main()
