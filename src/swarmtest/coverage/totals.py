"""Add up what tests reached: how much of each file, and by how many tests; write it to files.

`Tally` counts hits of targets. `SuiteCoverage` keeps the tally of a test suite, each test by its
name. A suite may be spread over processes (pytest-xdist): each process reports what is new after
every test, so that a crash loses only the test that was running.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import format_percent
from swarmtest.core.targets import Catalogue, Hits, Target
from swarmtest.coverage.interchange.cobertura import write_cobertura
from swarmtest.coverage.interchange.coveragepy import write_coverage_data
from swarmtest.coverage.interchange.formats import (
    FileCoverage,
    TestCoverage,
    format_of,
    is_python,
    seen_from_here,
)
from swarmtest.coverage.interchange.lcov import write_lcov
from swarmtest.coverage.kinds import WITH_PROBES, parse_kinds
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.scope import project_root
from swarmtest.coverage.watch import Coverage
from swarmtest.coverage.weaving.arcs import arc_of


@dataclass
class Tally:
    """Targets, how many tests hit each, and (for tests with names) which test hit which."""

    catalogue: Catalogue = field(default_factory=Catalogue)
    counts: Counter[int] = field(default_factory=Counter)
    outside: set[int] = field(default_factory=set)
    """Targets that were reached while modules were imported, which belong to no test."""
    tests: dict[str, list[int]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    """The paths of files on this machine, by the names that targets have for them."""
    kinds: tuple[str, ...] = ()
    """The kinds that were requested; empty if they are unknown."""
    missing: Counter[str] = field(default_factory=Counter)
    """Reasons why coverage of tests is unknown, with the number of tests."""

    def know(self, targets: Iterable[Target]) -> None:
        """List targets, whether they were hit or not."""
        for target in targets:
            self.catalogue.number(target)

    def add(self, hits: Hits, test: str = "") -> None:
        """Count the hits of one test; a test that ran several times counts once per target."""
        numbers = [self.catalogue.number(target) for target in hits.targets()]
        before = set(self.tests.get(test, ()))
        numbers = [number for number in numbers if number not in before]
        self.counts.update(numbers)
        if test:
            self.tests.setdefault(test, []).extend(numbers)

    def add_outside(self, targets: Iterable[Target]) -> None:
        """Record targets that imports reached."""
        self.outside |= {self.catalogue.number(target) for target in targets}

    def reached(self, number: int) -> bool:
        """Return whether a test or an import reached a target."""
        return number in self.counts or number in self.outside

    def shares(self, file: str = "") -> dict[str, tuple[int, int]]:
        """Return for each kind how many targets were reached and how many there are.

        Targets of one file are counted, or of all files.
        """
        shares: dict[str, tuple[int, int]] = {}
        for number, target in enumerate(self.catalogue.targets):
            if not file or target.file == file:
                hit, total = shares.get(target.kind, (0, 0))
                shares[target.kind] = (hit + self.reached(number), total + 1)
        return shares

    def summary(self) -> str:
        """Return one line, such as ``line 40 of 52 (77%), path 12``.

        >>> tally = Tally()
        >>> tally.know([Target("line", "a.py:1"), Target("line", "a.py:2")])
        >>> tally.add_outside([Target("line", "a.py:2")])
        >>> tally.summary()
        'line 1 of 2 (50%)'
        """
        parts = []
        for kind, (hit, total) in self.shares().items():
            # The targets of other kinds are found while tests run, so their total is unknown.
            share = f" of {total} ({format_percent(hit / total, 0)})" if kind in WITH_PROBES else ""
            parts.append(f"{kind} {hit}{share}")
        return ", ".join(parts) or "nothing was reached"

    def missing_lines(self) -> list[str]:
        """Return how many tests have no coverage and why, one line per reason.

        >>> Tally(missing=Counter({"its process died": 2})).missing_lines()
        ['coverage of 2 tests is missing: their process died']
        """
        return [
            f"coverage of {count:,} test{'s' * (count != 1)} is missing: "
            + (re.sub(r"^its\b", "their", why) if count > 1 else why)
            for why, count in self.missing.items()
        ]

    # Files

    def files(self) -> list[FileCoverage]:
        """Return the lines, branches and functions of each file, with how many tests hit each."""
        lines: dict[str, dict[int, int]] = {}
        branches: dict[str, dict[tuple[int, int], int]] = {}
        functions: dict[str, dict[str, tuple[int, int]]] = {}
        for number, target in enumerate(self.catalogue.targets):
            count = self.counts[number] or int(number in self.outside)
            if target.kind == "line":
                lines.setdefault(target.file, {})[target.line] = count
                if target.function:
                    of_file = functions.setdefault(target.file, {})
                    first, most = of_file.get(target.function, (target.line, 0))
                    of_file[target.function] = (min(first, target.line), max(most, count))
            elif target.kind == "branch":
                branches.setdefault(target.file, {})[arc_of(target)] = count
        return [
            FileCoverage(path, lines.get(path, {}), branches.get(path, {}), functions.get(path, {}))
            for path in sorted(lines.keys() | branches.keys())
        ]

    def test_coverages(self) -> list[TestCoverage]:
        """Return what each named test hit."""
        return [self._test_coverage(name, numbers) for name, numbers in self.tests.items()]

    def _test_coverage(self, name: str, numbers: Iterable[int]) -> TestCoverage:
        lines: dict[str, set[int]] = {}
        arcs: dict[str, set[tuple[int, int]]] = {}
        for number in numbers:
            target = self.catalogue.targets[number]
            if target.kind == "line":
                lines.setdefault(target.file, set()).add(target.line)
            elif target.kind == "branch":
                arcs.setdefault(target.file, set()).add(arc_of(target))
        files = {
            path: (frozenset(lines.get(path, ())), frozenset(arcs.get(path, ())))
            for path in sorted(lines.keys() | arcs.keys())
        }
        return TestCoverage(name, files)

    def write(self, file: str, root: str = "") -> None:
        """Write the tally in the format that the file's suffix names (`format_of`).

        Files whose paths are unknown are looked for in the directory `root`.
        """
        path, form = Path(file), format_of(file)
        try:
            if form == "json":
                path.write_text(json.dumps(self.to_json(), indent=1) + "\n")
            elif form == "lcov":
                path.write_text(write_lcov(*self._with_paths(root)))
            elif form == "cobertura":
                here = str(Path.cwd())
                path.write_text(write_cobertura(self._with_paths(root)[0], sources=[here]))
            else:
                self._write_coverage_data(path, root)
        except OSError as error:
            raise UserError(f"{file}: cannot be written: {error.strerror}") from None

    def _with_paths(self, root: str) -> tuple[list[FileCoverage], list[TestCoverage]]:
        """Return files and tests, with the paths by which other tools find the files."""

        def path_of(name: str) -> str:
            return seen_from_here(os.path.join(root, self.places.get(name) or name))

        files = [replace(file, path=path_of(file.path)) for file in self.files()]
        tests = [
            replace(test, files={path_of(name): hit for name, hit in test.files.items()})
            for test in self.test_coverages()
        ]
        return files, tests

    def _write_coverage_data(self, path: Path, root: str) -> None:
        files, tests = self._with_paths(root)
        shown = [file for file in files if is_python(file.path)]
        if files and not shown:
            raise UserError(
                f"{path}: coverage.py can show Python only, not {files[0].path}; "
                f"write {path.name.lstrip('.').partition('.')[0] or 'coverage'}.lcov instead"
            )
        tests = [
            replace(test, files={name: hit for name, hit in test.files.items() if is_python(name)})
            for test in tests
        ]
        branches = "branch" in self.kinds if self.kinds else None
        write_coverage_data(path, shown, tests, branches=branches)

    def to_json(self) -> dict[str, Any]:
        """Return files, targets with their counts, and tests with the numbers of their targets."""
        return {
            "files": [self._file_json(file) for file in self.files()],
            "targets": [
                {
                    "kind": target.kind,
                    "name": target.name,
                    "file": target.file,
                    "line": target.line,
                    "function": target.function,
                    "content": target.content,
                    "source": target.source,
                    **({"detail": target.detail} if target.detail else {}),
                    "tests": self.counts[number],
                    "at_import": number in self.outside,
                }
                for number, target in enumerate(self.catalogue.targets)
            ],
            "tests": self.tests,
        }

    def _file_json(self, file: FileCoverage) -> dict[str, Any]:
        return {
            "file": file.path,
            "path": self.places.get(file.path, ""),
            "lines": sorted(file.lines),
            "hit_lines": sorted(line for line, count in file.lines.items() if count),
            "branches": sorted(file.branches),
            "hit_branches": sorted(arc for arc, count in file.branches.items() if count),
        }

    # Between processes

    def to_plain(self, since: int = 0) -> Any:
        """Return everything as plain data for `merge` in another process.

        Only targets from the number `since` on are included.
        """
        targets = [tuple(target) for target in self.catalogue.targets[since:]]
        return targets, dict(self.counts), sorted(self.outside), self.tests, self.places

    def merge(self, report: Any, numbers: list[int] | None = None) -> None:
        """Add what another process reported with `to_plain`.

        `numbers` are our numbers of the targets that it reported before; new ones are appended.
        """
        targets, counts, outside, tests, places = report
        self.places |= places
        numbers = [] if numbers is None else numbers
        numbers += [self.catalogue.number(Target(*target)) for target in targets]
        for number, count in counts.items():
            self.counts[numbers[int(number)]] += count
        self.outside |= {numbers[number] for number in outside}
        for name, hit in tests.items():
            self.tests[name] = [numbers[number] for number in hit]


class SuiteCoverage:
    """What each test of a suite reached. Create it before the program is imported."""

    def __init__(self, kinds: str, cover: list[str]) -> None:
        options = CoverageOptions(parse_kinds(kinds), tuple(cover))
        options.check()
        self._coverage = Coverage(options).install()
        self._tally = Tally(kinds=options.kinds)
        self._name = uuid.uuid4().hex
        self._reported = 0
        self._listed = 0
        self._outside: set[int] = set()
        self._numbers: dict[str, list[int]] = {}
        self._waiting: dict[str, list[tuple[int, Any]]] = {}
        self._lost: list[str] = []

    def begin(self) -> None:
        """Begin a test."""
        self._coverage.settle()
        self._coverage.reset()

    def end(self, test: str) -> None:
        """End a test, or one of several runs of a test."""
        self._tally.add(self._coverage.take(), test)
        self._coverage.reset()

    def lose(self, test: str) -> None:
        """Record that the process which ran a test died in it."""
        self._lost.append(test)

    def problems(self) -> list[str]:
        """Return what could not be watched, a line each."""
        seen = self._coverage.files or self._tally.catalogue.targets
        unseen = [] if seen else ["no chosen module was imported"]
        lost = [
            f"coverage of {test} is missing: its process died before it could tell"
            for test in self._lost
        ]
        early = [
            f"coverage of {test} is missing: an earlier report of its process did not arrive"
            for waiting in self._waiting.values()
            for _, plain in waiting
            for test in plain[3]
        ]
        return [*self._coverage.problems, *unseen, *lost, *early]

    def report(self) -> str:
        """Return what is new since the last call, as text for `merge` in another process."""
        self._settle()
        tally, since = self._tally, self._reported
        report = json.dumps((self._name, since, tally.to_plain(since)))
        self._reported = len(tally.catalogue.targets)
        for collection in (tally.counts, tally.tests, tally.outside, tally.places):
            collection.clear()
        return report

    def merge(self, report: str) -> None:
        """Add what another process reported with `report`.

        A report uses the numbers of targets that earlier ones introduced, so one that arrives early
        waits for those before it.
        """
        name, since, plain = json.loads(report)
        numbers = self._numbers.setdefault(name, [])
        waiting = self._waiting.setdefault(name, [])
        waiting.append((since, plain))
        while usable := [pair for pair in waiting if pair[0] <= len(numbers)]:
            since, plain = usable[0]
            waiting.remove(usable[0])
            is_new = not plain[0] or since == len(numbers)
            if is_new:  # otherwise its targets are known: the same report came twice
                self._tally.merge(plain, numbers)

    def _settle(self) -> None:
        """Add new targets, and what new imports reached, to the tally."""
        self._coverage.settle()
        targets = self._coverage.catalogue.targets
        if len(targets) > self._listed:
            places = {file.source.path: file.path for file in self._coverage.files}
            self._tally.places |= places
            self._tally.know(targets[self._listed :])
            self._listed = len(targets)
        imported = self._coverage.outside - self._outside
        if imported:
            self._tally.add_outside(targets[number] for number in imported)
            self._outside |= imported

    def summary(self) -> str:
        """Return one line on how much of each kind was reached."""
        self._settle()
        return self._tally.summary()

    def write(self, file: str) -> None:
        """Write the coverage in the format that the file's suffix names."""
        self._settle()
        self._tally.write(file, str(project_root()))
