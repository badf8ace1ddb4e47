"""The files of a program that are loaded in this process, ready to be given mutants."""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source
from swarmtest.coverage.scope import Scope, shown_path, text_of
from swarmtest.mutate.kill_matrix import ENDLESS, FAILED, PASSED
from swarmtest.mutate.switching import LiveCode, LiveFile, Steps, live_code


def source_of(file: str) -> Source:
    """A file by its path."""
    path = Path(file)
    if not path.is_file():
        raise UserError(f"{file}: there is no such file to mutate")
    if path.suffix != ".py":
        raise UserError(
            f"{file}: mutants are made of Python files (.py); those of a C program need a campaign "
            "of commands (a TOML file)"
        )
    place = str(path.resolve())
    shown = shown_path(place)
    return Source(shown, text_of(path, shown), place)


def named_sources(files: Iterable[str | Source]) -> list[Source]:
    """Files by their paths; a directory stands for the Python files in it that hold no tests."""
    found: dict[str, Source] = {}
    for one in files:
        if isinstance(one, Source):
            found[one.path] = one
        elif Path(one).is_dir():
            below = (path.relative_to(one) for path in Path(one).rglob("*.py"))
            inside = sorted(Path(one) / path for path in below if not _holds_tests(path))
            if not inside:
                raise UserError(f"{one}: no Python files to mutate are in this directory")
            found |= {source.path: source for source in map(source_of, map(str, inside))}
        else:
            source = source_of(one)
            found[source.path] = source
    return list(found.values())


def _holds_tests(path: Path) -> bool:
    return path.name == "conftest.py" or path.name.startswith("test_") or "tests" in path.parts


def loaded_sources(scope: Scope, without: str = "") -> list[Source]:
    """The loaded files that a scope chooses, but for one that only drives the program.

    If there is nothing else, that one is the program.
    """
    found = {}
    for name, module in sorted(sys.modules.items()):
        origin = getattr(module, "__file__", None) or ""
        if origin.endswith(".py") and scope.may_choose(name) and scope.chooses(name, origin):
            found[os.path.realpath(origin)] = origin
    rest = [file for file in found if file != os.path.realpath(without)] if without else []
    return [source_of(found[file]) for file in rest or sorted(found)]


def live_files(sources: Sequence[Source]) -> list[LiveFile]:
    """Files with the functions that exist of them: none, of one that is not loaded."""
    names = _names_in_code(sources)
    live = live_code({name for found in names for name in found})
    if not any(names):
        shown = ", ".join(source.path for source in sources)
        raise UserError(f"{shown} is not loaded by what is tested: nothing of it can be mutated")
    files = []
    for source, found in zip(sources, names, strict=True):
        # A file may be loaded under two names (as a script and as a module).
        name = max(found, key=lambda one: len(live[one].functions), default=source.place)
        code = live.get(name, LiveCode())
        placed = replace(source, place=name)
        files.append(LiveFile(placed, code.functions, suspended=code.suspended))
    return files


def _names_in_code(sources: Iterable[Source]) -> list[list[str]]:
    """What the code objects of each file call it: as the import system found it."""
    by_place: dict[str, list[str]] = {}
    for module in list(sys.modules.values()):
        origin = getattr(module, "__file__", None)
        if isinstance(origin, str):
            names = by_place.setdefault(without_links(origin), [])
            if origin not in names:
                names.append(origin)
    return [by_place.get(os.path.realpath(source.place), []) for source in sources]


def without_links(file: str) -> str:
    """As ``os.path.realpath``, but quick for many files of few directories."""
    directory, name = os.path.split(file)
    if not os.path.isabs(file) or os.path.islink(file):
        return os.path.realpath(file)
    return os.path.join(_directory_without_links(directory), name)


@functools.cache
def _directory_without_links(directory: str) -> str:
    return os.path.realpath(directory)


# -------------------------------------------------------------------------------------------------
# Tests that are run again and again, and what is known of each without a mutant.


class Tests(Protocol):
    """Tests that can be run again and again, by their numbers."""

    @property
    def names(self) -> Sequence[str]:
        """What a person calls each."""

    def run(self, test: int, following: int | None) -> str:
        """Run one; the same answer means that it ended the same way.

        `following` will be run next in this process; None: this is the last.
        """

    def finish(self) -> None:
        """Clear away what tests keep for those that follow: other tests come next, or none."""

    def why_not(self, ended: str) -> str:
        """Why a test that ends so without a mutant is of no use; empty: it is."""


@dataclass(frozen=True)
class Original:
    """A test without a mutant."""

    ended: str
    seconds: float
    steps: int
    reached: tuple[frozenset[int], ...]
    """For each file, the numbers of the statements that it executed."""
    imports: bool = False
    """Whether it imports one of the files itself, perhaps again: what is loaded is not what it
    runs then."""


def outcome_of(
    tests: Tests, test: int, following: int | None, original: Original, steps: Steps
) -> int:
    """Run a test on the program as it is now, and compare."""
    steps.allow(original.steps)
    try:
        ended = tests.run(test, following)
    except BaseException:
        ended = ""
    if steps.exceeded:
        return ENDLESS
    return PASSED if ended == original.ended else FAILED


def in_turn(tests: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """Each test with the one that follows it; None follows the last."""
    return zip(tests, [*tests[1:], None], strict=True)


# -------------------------------------------------------------------------------------------------
# Which test to try first on a mutant.


class Order:
    """Cheap tests come first, and those that killed mutants of the same function (a *group*)."""

    def __init__(self, originals: dict[int, Original], groups: Sequence[str]) -> None:
        self._originals = originals
        self._groups = groups
        self._tried: Counter[tuple[str, int]] = Counter()
        self._killed: Counter[tuple[str, int]] = Counter()

    def learn(self, mutant: int, test: int, killed: bool) -> None:
        """Note whether a test killed a mutant."""
        key = self._groups[mutant], test
        self._tried[key] += 1
        self._killed[key] += killed

    def of(self, mutant: int, tests: list[int]) -> list[int]:
        """Tests in the order of what they are expected to cost per kill."""
        group = self._groups[mutant]

        def cost(test: int) -> float:
            chance = (self._killed[group, test] + 0.5) / (self._tried[group, test] + 1)
            return self._originals[test].seconds / chance

        return sorted(tests, key=cost)
