"""Coverage of steps: how the hits of a program that a step runs are collected.

A collector belongs to the process that made it, and to one program: a forked process makes its own.
All number their lines in one catalogue, so the same line is the same target whichever step ran it.
"""

from __future__ import annotations

import os
import shutil

from swarmtest.errors import UserError
from swarmtest.instrument.native.collector import Collector
from swarmtest.instrument.native.fast import FastCoverage, has_runtime
from swarmtest.instrument.native.gcov import GcovCoverage, has_counters
from swarmtest.instrument.native.hitfile import HitFile
from swarmtest.instrument.native.places import Lines
from swarmtest.subjects.command.scratch import Scratch
from swarmtest.subjects.command.specification import Specification, Step
from swarmtest.subjects.command.words import filled
from swarmtest.targets import Catalogue


class Coverers:
    """The collectors of a subject's steps, made when first needed in a process."""

    def __init__(self, spec: Specification, scratch: Scratch) -> None:
        self._here = spec.here
        self._scratch = scratch
        self.catalogue = Catalogue()
        self._lines = {step.name: self._lines_of(step) for step in spec.steps if step.cover}
        self._owner = 0
        self._collectors: dict[str, Collector] = {}

    def of(self, step: Step) -> Collector | None:
        """The collector for a step in this process; None if its coverage is not wanted."""
        if not step.cover:
            return None
        if self._owner != os.getpid():
            for one in self._collectors.values():
                if isinstance(one, FastCoverage):
                    one.close()  # our handle on the parent's memory, not the memory itself
            self._collectors.clear()
            self._owner = os.getpid()
        collector = self._collectors.get(step.name)
        if collector is None:
            collector = self._collectors[step.name] = self._make(step)
        return collector

    def _lines_of(self, step: Step) -> Lines:
        wanted = step.sources
        paths = None if wanted is None else [os.path.join(self._here, path) for path in wanted]
        return Lines(self.catalogue, paths)

    def _make(self, step: Step) -> Collector:
        program = program_of(step, self._here)
        way = detected(program, step.name) if step.cover == "auto" else step.cover
        lines = self._lines[step.name]
        if way == "fast":
            return FastCoverage(program, lines)
        directory = self._scratch.fresh(f"coverage-{len(self._collectors)}")
        if way == "gcov":
            return GcovCoverage(program, lines, directory)
        return HitFile(program, lines, directory / "hits", lcov=way == "lcov")


def program_of(step: Step, here: str) -> str:
    """The path of the program that a covered step runs."""
    word = filled(step.call.words[0], {"here": here})
    found = shutil.which(word)
    if found is None or "{" in word:
        raise UserError(
            f"step {step.name!r} has cover, but {word!r} is no program that was built before: "
            "name it as {here}/PROGRAM"
        )
    return os.path.abspath(found)


def detected(program: str, step: str) -> str:
    """How a program was built for coverage."""
    if has_runtime(program):
        return "fast"
    if has_counters(program):
        return "gcov"
    raise UserError(
        f"step {step!r} has cover, but {program} was built without coverage: build it with "
        '`swarmtest cc` or --coverage, or say cover = "hits" or "lcov"'
    )
