"""Read a search space from a TOML file: its dimensions, its tests, and its usual search."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swarmtest.campaign.budget import parse_seconds
from swarmtest.core.dimensions import Dimension, dimension_from_json
from swarmtest.core.errors import UserError
from swarmtest.coverage.kinds import parse_kinds
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.watch import Coverage
from swarmtest.languages.user_objects import load_object, split_reference
from swarmtest.search.executors.command import CommandExecutor
from swarmtest.search.executors.function import Executor, SubjectExecutor
from swarmtest.search.executors.pytest_node import PytestExecutor, collect_pytest, executor_of
from swarmtest.search.executors.wrapping import CoveredExecutor, wrap_executor
from swarmtest.search.space import SearchSpace
from swarmtest.search.stopping import (
    AfterRuns,
    AfterSeconds,
    IterationChecker,
    WhenFailed,
    WhenSaturated,
)
from swarmtest.subjects.command.toml_reader import TomlFile, TomlSection
from swarmtest.subjects.loading import SubjectReference

_KEYS = {
    "flag": ("default",),
    "integer": ("low", "high", "step", "default"),
    "choice": ("values", "ordered", "default"),
    "feature": ("requires", "excludes", "mandatory"),
    "test": ("values", "default"),
}
"""The keys that each kind of dimension may have."""


@dataclass(frozen=True)
class SpaceFile:
    """The contents of a file: a space, and the arguments of its usual search."""

    space: SearchSpace
    search: dict[str, Any] = field(default_factory=dict)
    """Further arguments of `Search`: engine, fitness, points, before and so on."""
    coverage: Coverage | None = None
    """The coverage that watches the program in this process, if the file asks for it."""


def load_space(reference: str) -> SpaceFile:
    """Return the space that a user names: ``airlines.toml``, or ``airlines.py::space``.

    >>> load_space("nowhere.toml")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: cannot read nowhere.toml: No such file or directory
    """
    where, name = split_reference(reference)
    if where.endswith(".toml") and not name:
        return read_space(Path(where))
    if not name:
        raise UserError(f"{reference}: name a space in it, like {where}::space, or a TOML file")
    space = load_object(reference, "space", lambda value: isinstance(value, SearchSpace))
    if not isinstance(space, SearchSpace):
        raise UserError(f"{reference} is a {type(space).__name__}, not a SearchSpace")
    return SpaceFile(space)


def read_space(path: Path) -> SpaceFile:
    """Return the space that a TOML file describes."""
    file = TomlFile(path)
    top = file.top()
    name = top.text("name", path.stem)
    listed = top.section("dimensions")
    if not listed.names():
        raise top.missing("dimensions", "what is searched: write [dimensions] and each below it")
    coverage = _read_coverage(top.section("coverage"), path.parent)
    tests = _read_tests(top.section("tests"), path.parent, coverage)
    dimensions = [_read_dimension(listed, name, tests) for name in listed.names()]
    search = top.section("search")
    options, forbid = _read_search(search), search.texts("forbid")
    search.close()
    top.close()
    try:
        space = SearchSpace(dimensions, tests, forbid, name=name)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return SpaceFile(space, options, coverage)


def _read_dimension(listed: TomlSection, name: str, tests: dict[str, Executor]) -> Dimension:
    section = listed.section(name)
    kind = section.one_of("kind", list(_KEYS), "")
    if not kind:
        raise section.missing("kind", f"one of {', '.join(_KEYS)}")
    data = {key: section.raw(key) for key in _KEYS[kind] if key in section}
    if kind == "test":
        data["values"] = _test_values(section, data, tests)
    section.close()
    try:
        return dimension_from_json({"kind": kind, "name": name, **data})
    except UserError as error:
        raise section.file.error(section.place, f"{section.title}: {error}") from None
    except TypeError:
        needed = {"integer": "low and high", "choice": "values", "test": "values"}[kind]
        raise section.file.error(
            section.place, f"{section.title}: {kind} {name!r} needs {needed}, as numbers or a list"
        ) from None


def _test_values(
    section: TomlSection, data: dict[str, Any], tests: dict[str, Executor]
) -> list[Any]:
    """Return the values of a test dimension: those listed, and those that pytest collects."""
    values = list(data.get("values", ()))
    places = section.texts("pytest")
    seconds = section.number("seconds", 60.0)
    for node in collect_pytest(*places) if places else ():
        values.append(node)
        tests[node] = PytestExecutor(node, seconds)
    return values


def _read_coverage(section: TomlSection, beside: Path) -> Coverage | None:
    """Install coverage before the first test is imported, if the file asks for it."""
    if not section.names():
        return None
    kinds, cover = parse_kinds(section.text("kinds", "line")), section.texts("cover")
    section.close()
    return Coverage(CoverageOptions(kinds, cover, beside=str(beside.resolve()))).install()


def _read_tests(
    section: TomlSection, beside: Path, coverage: Coverage | None
) -> dict[str, Executor]:
    tests: dict[str, Executor] = {}
    for name in section.names():
        inner = section.section(name)
        tests[name] = _read_test(inner, name, beside, coverage)
        inner.close()
    return tests


def _read_test(
    section: TomlSection, name: str, beside: Path, coverage: Coverage | None
) -> Executor:
    seconds = section.number("seconds", 0.0) or None
    kinds = [key for key in ("run", "command", "pytest", "race") if key in section]
    if len(kinds) != 1:
        raise section.missing("run", "a test says one of run, command, pytest and race")
    text = section.text(kinds[0])
    inner: Executor
    if kinds[0] == "command":
        inner, seconds = CommandExecutor(text, name, seconds or 60.0), None
    elif kinds[0] == "pytest":
        inner, seconds = PytestExecutor(text, seconds or 60.0), None
    elif kinds[0] == "race":
        inner, seconds = _raced(text, name, beside, section, seconds), None
    else:
        inner = executor_of(_placed(text, beside), name)
        inner = CoveredExecutor(inner, coverage) if coverage is not None else inner
    before, after = section.text("before") or None, section.text("after") or None
    try:
        return wrap_executor(inner, seconds, _read_checkers(section), before, after)
    except UserError as error:
        raise section.file.error(section.place, f"{section.title}: {error}") from None


def _raced(
    text: str, name: str, beside: Path, section: TomlSection, seconds: float | None
) -> Executor:
    """Return the executor of a program whose threads are scheduled as a point says."""
    words = ["race"]
    if kinds := section.text("coverage"):
        words += ["--coverage", kinds]
    if seconds:
        words += ["--timeout", f"{seconds:g}"]
    subject = SubjectReference(shlex.join([*words, _placed(text, beside)])).load()
    return SubjectExecutor(subject, name)


def _placed(reference: str, beside: Path) -> str:
    """Return a reference to a file beside the TOML file, relative to the current directory."""
    where, name = split_reference(reference)
    if where.endswith((".py", ".toml")) and (beside / where).exists():
        return f"{beside / where}::{name}" if name else str(beside / where)
    return reference


def _read_checkers(section: TomlSection) -> list[IterationChecker]:
    """Read when repetition ends: ``repeat = { runs = 20, saturation = { last = 10 } }``."""
    repeat = section.section("repeat")
    checkers: list[IterationChecker] = []
    if "runs" in repeat:
        checkers.append(AfterRuns(repeat.integer("runs", 1, low=1, high=1_000_000)))
    if "seconds" in repeat:
        checkers.append(AfterSeconds(repeat.number("seconds", 0.0)))
    if repeat.flag("failed"):
        checkers.append(WhenFailed())
    if "saturation" in repeat:
        saturation = repeat.section("saturation")
        last = saturation.integer("last", 10, low=1, high=100_000)
        checkers.append(
            WhenSaturated(last, saturation.number("below", 1.0), saturation.flag("relative"))
        )
        saturation.close()
    repeat.close()
    return checkers


def _read_search(section: TomlSection) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for key in ("engine", "fitness", "before", "after", "combine", "keep"):
        if key in section:
            arguments[key] = section.text(key)
    if "points" in section:
        arguments["points"] = section.integer("points", 1, low=1, high=10**12)
    if "reach" in section:
        arguments["reach"] = section.raw("reach")
        if type(arguments["reach"]) not in (int, float):
            raise section.error("reach", f"a number, not {arguments['reach']!r}")
    if "time" in section:
        arguments["seconds"] = parse_seconds(section.text("time"))
    return arguments
