"""The loaded files of a program, ready to be mutated, and the tests that run on them.

The first part finds files and the functions that exist of them in this process. The second part
defines what the runs of tests on mutants share: the `Tests` protocol, how a test ends without a
mutant (`OriginalOutcome`), how outcomes are compared, and in which order tests are tried.
"""

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
    """Read a Python file by its path."""
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
    """Read files by their paths; a directory means the Python files in it that hold no tests."""
    sources: dict[str, Source] = {}
    for file in files:
        if isinstance(file, Source):
            sources[file.path] = file
        elif Path(file).is_dir():
            below = (path.relative_to(file) for path in Path(file).rglob("*.py"))
            inside = sorted(Path(file) / path for path in below if not _holds_tests(path))
            if not inside:
                raise UserError(f"{file}: this directory has no Python files to mutate")
            sources |= {source.path: source for source in map(source_of, map(str, inside))}
        else:
            source = source_of(file)
            sources[source.path] = source
    return list(sources.values())


def _holds_tests(path: Path) -> bool:
    return path.name == "conftest.py" or path.name.startswith("test_") or "tests" in path.parts


def loaded_sources(scope: Scope, without: str = "") -> list[Source]:
    """Return the loaded files that a scope chooses, except `without`, which drives the program.

    If no other file is left, `without` itself is the program.
    """
    origins = {}
    for name, module in sorted(sys.modules.items()):
        origin = getattr(module, "__file__", None) or ""
        if origin.endswith(".py") and scope.may_choose(name) and scope.chooses(name, origin):
            origins[os.path.realpath(origin)] = origin
    rest = [file for file in origins if file != os.path.realpath(without)] if without else []
    return [source_of(origins[file]) for file in rest or sorted(origins)]


def live_files(sources: Sequence[Source]) -> list[LiveFile]:
    """Return files with the functions that exist of them; a file that is not loaded has none."""
    names = _names_in_code(sources)
    live = live_code({name for of_file in names for name in of_file})
    if not any(names):
        shown = ", ".join(source.path for source in sources)
        raise UserError(f"{shown} is not loaded by what is tested: nothing of it can be mutated")
    files = []
    for source, of_file in zip(sources, names, strict=True):
        # A file may be loaded under two names (as a script and as a module).
        name = max(of_file, key=lambda name: len(live[name].functions), default=source.place)
        code = live.get(name, LiveCode())
        placed = replace(source, place=name)
        files.append(LiveFile(placed, code.functions, suspended=code.suspended))
    return files


def _names_in_code(sources: Iterable[Source]) -> list[list[str]]:
    """Return the file names in the code objects of each file, as the import system set them."""
    by_place: dict[str, list[str]] = {}
    for module in list(sys.modules.values()):
        origin = getattr(module, "__file__", None)
        if isinstance(origin, str):
            names = by_place.setdefault(without_links(origin), [])
            if origin not in names:
                names.append(origin)
    return [by_place.get(os.path.realpath(source.place), []) for source in sources]


def without_links(file: str) -> str:
    """Do the same as ``os.path.realpath``, but faster for many files in few directories."""
    directory, name = os.path.split(file)
    if not os.path.isabs(file) or os.path.islink(file):
        return os.path.realpath(file)
    return os.path.join(_directory_without_links(directory), name)


@functools.cache
def _directory_without_links(directory: str) -> str:
    return os.path.realpath(directory)


# Tests that run on mutants.


class Tests(Protocol):
    """Tests that can be run repeatedly, by their numbers."""

    @property
    def names(self) -> Sequence[str]:
        """The name of each test."""

    def run(self, test: int, following: int | None) -> str:
        """Run a test and return how it ended, as text; equal texts mean equal endings.

        `following` is the test that will run next in this process; None: this is the last.
        """

    def finish(self) -> None:
        """Clear what tests keep for later ones (fixtures, say); other tests, or none, come next."""

    def why_not(self, ended: str) -> str:
        """Return why a test that ends so without a mutant cannot be used; empty if it can."""


@dataclass(frozen=True)
class OriginalOutcome:
    """How a test ends without a mutant."""

    ended: str
    seconds: float
    steps: int
    reached: tuple[frozenset[int], ...]
    """For each file, the numbers of the statements that it executed."""
    imports: bool = False
    """Whether it imports one of the files itself, perhaps again: then it does not run the code
    that is loaded in this process."""


def outcome_of(
    tests: Tests, test: int, following: int | None, original: OriginalOutcome, steps: Steps
) -> int:
    """Run a test on the program in its current state and compare it with the original."""
    steps.allow(original.steps)
    try:
        ended = tests.run(test, following)
    except BaseException:
        ended = ""
    if steps.exceeded:
        return ENDLESS
    return PASSED if ended == original.ended else FAILED


def in_turn(tests: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """Yield each test with the one that follows it; None follows the last."""
    return zip(tests, [*tests[1:], None], strict=True)


class Order:
    """The order in which tests are tried on a mutant.

    Quick tests come first, and those that killed mutants of the same function (a *group*).
    """

    def __init__(self, originals: dict[int, OriginalOutcome], groups: Sequence[str]) -> None:
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
        """Return tests in the order of their expected cost per kill."""
        group = self._groups[mutant]

        def cost(test: int) -> float:
            chance = (self._killed[group, test] + 0.5) / (self._tried[group, test] + 1)
            return self._originals[test].seconds / chance

        return sorted(tests, key=cost)
