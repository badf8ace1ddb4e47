"""Successive releases of real projects: which changed lines do directed tests of the change hit?

    python benchmarks/diffs.py [--quick] [--only WORD] [--pairs N] [--cpu SECONDS] [--work DIR]

Each pair is a release from PyPI and the one after it, as source archives. The old release and a
machine of `known_bugs/` are committed to a repository, and the new release is put into its place,
as a pull request would. Then three things run, the first two with the same CPU time for tests:

- `swarmtest focus --diff HEAD`, with its baseline in that time, for there is no data yet;
- undirected tests: `swarmtest run --strategy coin`;
- the project's own tests with pytest, if its archive has any; a whole run of the suite.

Counted are changed statements in functions of the package; those that run at import say nothing.
*Reached* are those that at least one of the three executed. "Said" are the changed lines that
`focus` says it cannot aim at or see; "wrong" are those of them that undirected tests of the same
machine executed nevertheless, and "suite" those that only the project's own tests executed.

`focus_share`, `undirected_share` and `pytest_share` are shares of the reached lines, over all
pairs; `machine_focus_share` is the share of the lines that any test of the machine hit.

The issue asks for 60 s for each pair: `--cpu 60`. Ctrl-C prints what is known so far. The last line
is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from harness import cannot_measure, cpu_seconds, print_figures, print_table, progress
from known_bugs import DEFAULT_WORK, HERE, install, unpack_source

from swarmtest import open_store
from swarmtest.core.errors import UserError
from swarmtest.languages.changes import from_diff
from swarmtest.languages.places import NothingToAimAt

Line = tuple[str, int]


@dataclass(frozen=True)
class Project:
    """A project, a machine that drives it, and its releases in order."""

    package: str
    module: str
    """What is watched, and the name of its files below the archive's root."""
    machine: str
    releases: tuple[str, ...]
    also: tuple[tuple[str, str], ...] = ()
    """Packages and releases that it needs."""


PROJECTS = (
    Project(
        "portion",
        "portion",
        "portion_machine.py",
        ("2.1.0", "2.1.1", "2.1.2", "2.1.3", "2.1.4", "2.1.5", "2.1.6", "2.2.0", "2.3.0", "2.3.1"),
    ),
    Project(
        "portion",
        "portion",
        "interval_dict_machine.py",
        ("2.1.0", "2.1.1", "2.1.2", "2.1.3", "2.1.4", "2.1.5", "2.1.6", "2.2.0", "2.3.0", "2.3.1"),
    ),
    Project(
        "cachetools",
        "cachetools",
        "sized_cache_machine.py",
        ("3.1.1", "4.0.0", "4.1.0", "4.1.1", "4.2.0", "4.2.1", "4.2.2", "4.2.4", "5.0.0", "5.2.0"),
    ),
    Project(
        "intervaltree",
        "intervaltree",
        "interval_tree_machine.py",
        ("2.0.0", "2.0.2", "2.0.4", "2.1.0", "3.0.0", "3.0.1", "3.0.2", "3.1.0"),
        (("sortedcontainers", "2.4.0"),),
    ),
    Project(
        "jsonpatch",
        "jsonpatch",
        "json_patch_machine.py",
        ("1.23", "1.24", "1.25", "1.26", "1.27", "1.28", "1.30", "1.31", "1.32", "1.33"),
        (("jsonpointer", "2.4"),),
    ),
    Project(
        "boltons",
        "boltons",
        "lri_machine.py",
        ("19.0.0", "19.1.0", "19.2.0", "19.3.0", "20.0.0", "20.1.0", "20.2.0", "21.0.0"),
    ),
)
QUICK_PAIRS, QUICK_CPU = 1, 1.0
PAIRS, CPU = 40, 10.0
SUITE_SECONDS = 60
"""CPU seconds after which a suite is stopped, and counts as one that could not be run."""
_GIT = ("git", "-c", "user.name=benchmark", "-c", "user.email=benchmark@example.org")


@dataclass(frozen=True)
class Pair:
    """Two successive releases of a project."""

    project: Project
    old: str
    new: str

    @property
    def name(self) -> str:
        machine = self.project.machine.removesuffix("_machine.py")
        return f"{self.project.package} {self.old} -> {self.new} ({machine})"


@dataclass
class Finding:
    """What came out for one pair."""

    pair: Pair
    changed: set[Line] = field(default_factory=set)
    focus: set[Line] = field(default_factory=set)
    undirected: set[Line] = field(default_factory=set)
    suite: set[Line] | None = None
    """None: the archive has no tests, or they could not be run."""
    said: set[Line] = field(default_factory=set)
    trouble: str = ""

    @property
    def reached(self) -> set[Line]:
        return self.focus | self.undirected | (self.suite or set())


def pairs_of(projects: Sequence[Project]) -> list[Pair]:
    """All pairs, one of each project in turn, so that the first few are of all projects."""
    lists = [
        [Pair(one, old, new) for old, new in zip(one.releases, one.releases[1:], strict=False)]
        for one in projects
    ]
    longest = max(map(len, lists))
    return [pairs[number] for number in range(longest) for pairs in lists if number < len(pairs)]


def examine(pair: Pair, cpu: float, work: Path) -> Finding:
    """Measure one pair in a repository of its own."""
    progress(pair.name)
    archives = [
        unpack_source(pair.project.package, release, work) for release in (pair.old, pair.new)
    ]
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary).resolve() / "project"
        _commit(root, archives[0], pair.project.machine)
        _replace(root, archives[1])
        finding = Finding(pair)
        finding.changed = _changed(root, pair.project.module)
        if finding.changed:
            needed = [install(package, release, work) for package, release in pair.project.also]
            _run_all(finding, root, needed, cpu)
        return finding


def _commit(root: Path, archive: Path, machine: str) -> None:
    shutil.copytree(archive, root, symlinks=True)
    for name in {machine, "portion_machine.py", "old_collections.py"}:  # one imports another
        shutil.copy(HERE / "known_bugs" / name, root / name)
    for command in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "old"]):
        subprocess.run([*_GIT, *command], cwd=root, check=True)


def _replace(root: Path, archive: Path) -> None:
    """Put the new release into the place of the old one; files that are gone are gone."""
    for entry in root.iterdir():
        if entry.name != ".git" and not entry.name.endswith(("_machine.py", "old_collections.py")):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(archive, root, symlinks=True, dirs_exist_ok=True)


def _changed(root: Path, module: str) -> set[Line]:
    """Return the changed statements in functions of the package."""
    with chdir(root):
        try:
            wanted = from_diff("HEAD", str(root)).wanted
        except (NothingToAimAt, UserError):
            return set()
    lines = {(os.path.relpath(one.place, root), one.line) for one in wanted if one.function}
    return {line for line in lines if _is_of(line[0], module)}


def _is_of(path: str, module: str) -> bool:
    parts = Path(path).with_suffix("").parts
    inner = parts[1:] if parts[0] == "src" else parts
    return inner[0] == module and not any("test" in part for part in inner)


def _run_all(finding: Finding, root: Path, needed: Sequence[Path], cpu: float) -> None:
    project = finding.pair.project
    source = root / "src" if (root / "src").is_dir() else root
    path = os.pathsep.join(map(str, (source, *needed, HERE.parent / "src")))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    common = ["--cover", project.module, "--cpu-time", f"{cpu:g}s", "--workers", "1"]
    common += ["--no-reduce", "--timeout", "5s"]
    focused = _swarmtest(
        root,
        environment,
        *("focus", project.machine, "--diff", "HEAD", "--json", "--allow-nothing"),
        *("--no-base-check", "--store", "focus.db", *common),
    )
    try:
        outcome = json.loads(focused.strip().splitlines()[-1])
    except (IndexError, ValueError):
        progress(f"focus failed: {focused.strip().splitlines()[-1:]}")
        finding.trouble = "failed"
        return
    _swarmtest(
        root,
        environment,
        *("run", project.machine, "--strategy", "coin", "--quiet", "--store", "run.db"),
        *("--coverage", "line", *common),
    )
    finding.focus = _hit_lines(root / "focus.db") & finding.changed
    finding.undirected = _hit_lines(root / "run.db") & finding.changed
    aimed = {(one["file"], one["line"]) for one in outcome["targets"] if not one["dropped"]}
    hot = {(t["file"], t["line"]) for t in outcome["targets"] if "hit by" in t["dropped"]}
    finding.said = finding.changed - aimed - hot
    suite = _suite_lines(root, environment, project.module)
    finding.suite = None if suite is None else suite & finding.changed


def _swarmtest(root: Path, environment: Mapping[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "swarmtest", *arguments]
    done = subprocess.run(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.stdout.decode(errors="replace")


def _hit_lines(store: Path) -> set[Line]:
    """Return the lines that any test of any campaign of a store hit."""
    if not store.exists():
        return set()
    hit: set[Line] = set()
    with open_store(str(store)) as opened:
        for campaign in opened.campaigns():
            ids = opened.hit_summary(campaign.id).targets.tolist()
            targets = opened.targets(ids).values()
            hit |= {(one.file, one.line) for one in targets if one.kind == "line"}
    return hit


def _suite_lines(root: Path, environment: Mapping[str, str], module: str) -> set[Line] | None:
    """Return the lines that the project's own tests execute; None if there are none that run."""
    places = [name for name in ("tests", "test", "tests.py", "test.py") if (root / name).exists()]
    if not places:
        return None

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SUITE_SECONDS, SUITE_SECONDS + 5))

    measure = [sys.executable, "-m", "coverage", "run", f"--source={module}", "-m", "pytest", "-q"]
    subprocess.run(
        [*measure, "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={root}", places[0]],
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=limited,
    )
    report = [sys.executable, "-m", "coverage", "json", "-q", "-o", "coverage.json"]
    if subprocess.run(report, cwd=root, env=environment, stdout=subprocess.DEVNULL).returncode:
        return None
    files = json.loads((root / "coverage.json").read_text())["files"]
    return {(name, line) for name, told in files.items() for line in told["executed_lines"]}


def share(part: int, whole: int) -> float:
    return round(part / whole, 3) if whole else 0.0


def row(finding: Finding) -> list[object]:
    reached = len(finding.reached)
    suite = "-" if finding.suite is None else len(finding.suite)
    wrong = len(finding.said & finding.undirected)
    only_suite = len((finding.said & (finding.suite or set())) - finding.undirected - finding.focus)
    return [
        finding.pair.name,
        len(finding.changed),
        reached,
        finding.trouble or len(finding.focus),
        len(finding.undirected),
        suite,
        len(finding.said),
        wrong,
        only_suite,
    ]


HEAD = ("", "changed", "reached", "focus", "undirected", "pytest", "said", "wrong", "suite")


def summary(findings: Sequence[Finding]) -> dict[str, object]:
    reached = sum(len(one.reached) for one in findings)
    with_suite = [one for one in findings if one.suite is not None]
    by_machine = [one.focus | one.undirected for one in findings]
    said = sum(len(one.said) for one in findings)
    wrong = sum(len(one.said & one.undirected) for one in findings)
    return {
        "pairs": len(findings),
        "with_changes": sum(bool(one.changed) for one in findings),
        "changed": sum(len(one.changed) for one in findings),
        "reached": reached,
        "focus_share": share(sum(len(one.focus) for one in findings), reached),
        "undirected_share": share(sum(len(one.undirected) for one in findings), reached),
        "pytest_share": share(
            sum(len(one.suite or ()) for one in with_suite),
            sum(len(one.reached) for one in with_suite),
        ),
        "machine_focus_share": share(
            sum(len(one.focus) for one in findings), sum(map(len, by_machine))
        ),
        "said_unreachable": said,
        "said_wrongly": wrong,
        "failed": sum(bool(one.trouble) for one in findings),
        "cpu_seconds": round(cpu_seconds()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one pair, a second of CPU time")
    parser.add_argument("--only", help="only the projects with this in their name")
    parser.add_argument("--pairs", type=int, help=f"so many pairs (default: {PAIRS})")
    parser.add_argument("--cpu", type=float, help=f"CPU seconds for each (default: {CPU:g})")
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK, help="the working directory")
    options = parser.parse_args()
    projects = [one for one in PROJECTS if not options.only or options.only in one.package]
    if not projects:
        sys.exit(f"no project has {options.only!r} in its name")
    if not shutil.which("git"):
        cannot_measure("apt-get install git")
    pairs = pairs_of(projects)[: options.pairs or (QUICK_PAIRS if options.quick else PAIRS)]
    cpu = options.cpu or (QUICK_CPU if options.quick else CPU)
    work = options.work.expanduser().resolve()
    findings = []
    try:
        for pair in pairs:
            findings.append(examine(pair, cpu, work))  # noqa: PERF401  # Ctrl-C keeps what is done
    except KeyboardInterrupt:
        progress(f"interrupted: {len(findings)} of {len(pairs)} pairs")
    print(f"\nChanged lines in functions, {cpu:g} s of CPU time for each kind of tests")
    print_table(HEAD, [row(finding) for finding in findings])
    print_figures(summary(findings))


if __name__ == "__main__":
    main()
