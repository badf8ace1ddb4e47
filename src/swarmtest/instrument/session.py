"""Coverage of a whole suite of tests, each test by its name; and its files.

A suite may be spread over processes (pytest-xdist). Each tells after every test what is new, so
that one that crashes takes only the test at hand with it.
"""

from __future__ import annotations

import json
import uuid

from swarmtest.instrument.kinds import parse_kinds
from swarmtest.instrument.options import CoverageOptions
from swarmtest.instrument.scope import project_root
from swarmtest.instrument.tally import Tally
from swarmtest.instrument.watch import Coverage


class SuiteCoverage:
    """What each test of a suite reached. Made before the program is imported."""

    def __init__(self, kinds: str, cover: list[str]) -> None:
        options = CoverageOptions(parse_kinds(kinds), tuple(cover))
        options.check()
        self._coverage = Coverage(options).install()
        self._tally = Tally(kinds=options.kinds)
        self._name = uuid.uuid4().hex
        self._told = 0
        self._known = 0
        self._outside: set[int] = set()
        self._numbers: dict[str, list[int]] = {}
        self._lost: list[str] = []

    def begin(self) -> None:
        """A test begins."""
        self._coverage.settle()
        self._coverage.reset()

    def end(self, test: str) -> None:
        """The test has ended, or one of its runs has."""
        self._tally.add(self._coverage.take(), test)
        self._coverage.reset()

    def lose(self, test: str) -> None:
        """The process that ran a test died in it."""
        self._lost.append(test)

    def problems(self) -> list[str]:
        """What could not be watched."""
        seen = self._coverage.files or self._tally.catalogue.targets
        unseen = [] if seen else ["no chosen module was imported"]
        lost = [
            f"coverage of {test} is missing: its process died before it could tell"
            for test in self._lost
        ]
        return [*self._coverage.problems, *unseen, *lost]

    def told(self) -> str:
        """What is new since the last time, as text for another process."""
        self._settle()
        tally, since = self._tally, self._told
        told = json.dumps((self._name, since, tally.to_plain(since)))
        self._told = len(tally.catalogue.targets)
        for each in (tally.counts, tally.tests, tally.outside, tally.places):
            each.clear()
        return told

    def merge(self, told: str) -> None:
        """Add what another process told; it has to come in order."""
        name, since, plain = json.loads(told)
        numbers = self._numbers.setdefault(name, [])
        if len(numbers) == since:
            self._tally.merge(plain, numbers)

    def _settle(self) -> None:
        """Take up targets and imports that are new."""
        self._coverage.settle()
        targets = self._coverage.catalogue.targets
        if len(targets) > self._known:
            places = {file.source.path: file.path for file in self._coverage.files}
            self._tally.places |= places
            self._tally.know(targets[self._known :])
            self._known = len(targets)
        imported = self._coverage.outside - self._outside
        if imported:
            self._tally.add_outside(targets[number] for number in imported)
            self._outside |= imported

    def summary(self) -> str:
        """How much of each kind was reached."""
        self._settle()
        return self._tally.summary()

    def write(self, file: str) -> None:
        """Write it in the format that the file's ending names."""
        self._settle()
        self._tally.write(file, str(project_root()))
