"""Coverage of a whole suite of tests in this process, each test by its name; and its files."""

from __future__ import annotations

import json

from swarmtest.instrument.scope import project_root
from swarmtest.instrument.tally import Tally
from swarmtest.instrument.watch import Coverage


class SuiteCoverage:
    """What each test of a suite reached. Made before the program is imported."""

    def __init__(self, kinds: str, cover: list[str]) -> None:
        self._coverage = Coverage(kinds, cover).install()
        self._tally = Tally()

    def begin(self) -> None:
        """A test begins."""
        self._coverage.settle()
        self._coverage.reset()

    def end(self, test: str) -> None:
        """The test has ended."""
        self._tally.add(self._coverage.take(), test)
        self._coverage.reset()

    def problems(self) -> list[str]:
        """What could not be watched."""
        seen = self._coverage.files or self._tally.catalogue.targets
        unseen = [] if seen else ["no chosen module was imported"]
        return [*self._coverage.problems, *unseen]

    def told(self) -> str:
        """Everything as text, for another process."""
        self._settle()
        return json.dumps(self._tally.to_plain())

    def merge(self, told: str) -> None:
        """Add what another process told."""
        self._tally.merge(json.loads(told))

    def _settle(self) -> None:
        self._coverage.settle()
        catalogue = self._coverage.catalogue
        self._tally.places |= {file.source.path: file.path for file in self._coverage.files}
        self._tally.know(catalogue.targets)
        self._tally.add_outside(catalogue.targets[number] for number in self._coverage.outside)

    def summary(self) -> str:
        """How much of each kind was reached."""
        self._settle()
        return self._tally.summary()

    def write(self, file: str) -> None:
        """Write it in the format that the file's ending names."""
        self._settle()
        self._tally.write(file, str(project_root()))
