"""The files of a program that are loaded in this process, ready to be given mutants."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.instrument.scope import Scope, shown_path
from swarmtest.instrument.versions import text_of
from swarmtest.mutation.switching import LiveCode, LiveFile, live_code
from swarmtest.targets import Source


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
