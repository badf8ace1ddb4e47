"""Resolve what a user names: a line, a range of lines, or a function.

Lines are ``cart.py:120`` and ``cart.py:100-140``; functions are ``shop.cart:Cart.add`` and
``shop/cart.py::Cart.add``. A module is located but not imported, so neither it nor the packages
above it run.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.coverage.scope import project_root, shown_path
from swarmtest.languages.c.functions import CStatements
from swarmtest.languages.python.statements import PythonStatements
from swarmtest.languages.source import Statements, statements_of

_LINE = re.compile(r"(?P<file>.+?):(?P<first>\d{1,9})(:\d+)?")
_RANGE = re.compile(r"(?P<file>.+?):(?P<first>\d{1,9})(-(?P<last>\d{1,9}))?")
_SKIPPED_FOLDERS = ("node_modules", "site-packages", "dist-packages", "build", "dist")
_MAX_FILES = 20_000
"""How many files of a project are searched for a similar name."""


class NothingToAimAt(UserError):
    """The request is valid, but no test can be directed at any of it."""


@dataclass(frozen=True)
class Wanted:
    """A statement that tests are to hit.

    >>> Wanted("/home/me/shop/cart.py", 12, "--line cart.py:12").line
    12
    """

    place: str
    """The file on this machine: absolute, with links resolved."""
    line: int
    """Where the statement begins, as in the name of its target."""
    why: str
    """What the user wrote: ``--line cart.py:120``, ``--diff main``."""
    function: str = ""
    """The qualified name of the enclosing function. It is empty if it is not known, and at module
    and class level, where statements run at import and so in no test."""


@dataclass(frozen=True)
class ResolvedTargets:
    """What a request resolved to, and which parts of it cannot be used.

    >>> named = ResolvedTargets(names=("event:full",))
    >>> len((named + ResolvedTargets(unusable=("README.md: not code",))).names)
    1
    """

    wanted: tuple[Wanted, ...] = ()
    unusable: tuple[str, ...] = ()
    """One line each: what it is, and why it cannot be a target."""
    names: tuple[str, ...] = ()
    """Targets that are not in code, as ``kind:name``: ``fault:ID``, ``event:NAME``."""

    def __add__(self, other: ResolvedTargets) -> ResolvedTargets:
        """Return both together."""
        return united((self, other))


def united(parts: Iterable[ResolvedTargets]) -> ResolvedTargets:
    """Return all parts together, each statement once, with the words that named it first."""
    statements: dict[tuple[str, int], Wanted] = {}
    unusable: dict[str, None] = {}
    names: dict[str, None] = {}
    for part in parts:
        for wanted in part.wanted:
            statements.setdefault((wanted.place, wanted.line), wanted)
        unusable |= dict.fromkeys(part.unusable)
        names |= dict.fromkeys(part.names)
    return ResolvedTargets(tuple(statements.values()), tuple(unusable), tuple(names))


# Lines and ranges of lines.


def from_line(text: str, why: str = "") -> ResolvedTargets:
    """Return the statement at ``FILE:LINE``.

    A column after it, as linters print it, is ignored.
    """
    why = why or f"--line {text}"
    match = _LINE.fullmatch(text.strip())
    if match is None:
        hint = f"; for a range: --lines {text}" if _RANGE.fullmatch(text.strip()) else ""
        raise UserError(f"{why}: write FILE:LINE, as in cart.py:120{hint}")
    path = find_file(match["file"], why)
    line = int(match["first"])
    statements = read_statements(path)
    _check_line_exists(line, statements, path, why)
    start = statements.at(line)
    if start is None:
        nearest = _nearest_statements(line, statements.lines)
        raise UserError(f"{path.name}:{line} is {statements.what_is(line)}{nearest}")
    return ResolvedTargets((wanted_at(path, start, statements, why),))


def from_lines(text: str, why: str = "") -> ResolvedTargets:
    """Return the statements of ``FILE:FIRST-LAST``; comments and blank lines in it are ignored."""
    why = why or f"--lines {text}"
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise UserError(f"{why}: write FILE:FIRST-LAST, as in cart.py:100-140")
    path = find_file(match["file"], why)
    first, last = int(match["first"]), int(match["last"] or match["first"])
    if last < first:
        raise UserError(f"{why}: the range is backwards; write {path.name}:{last}-{first}")
    return statements_between(path, first, last, why)


def statements_between(place: Path, first: int, last: int, why: str) -> ResolvedTargets:
    """Return the statements from one line to another; raise `UserError` if there are none."""
    statements = read_statements(place)
    _check_line_exists(first, statements, place, why)
    lines = statements.within(range(first, min(last, len(statements.texts)) + 1))
    if not lines:
        where = f"{first}-{last}" if last > first else f"{first}"
        raise UserError(
            f"{why}: there is no statement in {place.name}:{where}"
            f"{_nearest_statements(first, statements.lines)}"
        )
    return ResolvedTargets(tuple(wanted_at(place, line, statements, why) for line in lines))


def _check_line_exists(line: int, statements: Statements, place: Path, why: str) -> None:
    count = len(statements.texts)
    if not 1 <= line <= count:
        has = f"has lines 1 to {count}" if count else "is empty"
        raise UserError(f"{why}: there is no line {line}; {place.name} {has}")


def _nearest_statements(line: int, statements: Iterable[int]) -> str:
    lines = sorted(statements)
    before = [number for number in lines if number < line][-1:]
    after = [number for number in lines if number > line][:1]
    if not before and not after:
        return "; the file has no statement"
    if before and after:
        return f"; the nearest statements are {before[0]} and {after[0]}"
    return f"; the nearest statement is {(before or after)[0]}"


# Functions.


def from_function(text: str, why: str = "") -> ResolvedTargets:
    """Return all statements of a function's body, or of all functions of a class."""
    why = why or f"--function {text}"
    where, name = _split_function(text.strip().removesuffix("()"))
    if not where or not name:
        raise UserError(f"{why}: write MODULE:FUNCTION or FILE:FUNCTION, as in cart.py:Cart.add")
    is_file = "/" in where or where.endswith(".py") or located(where) is not None
    path = find_file(where, why) if is_file else _module_file(where, why)
    statements = read_statements(path)
    if not isinstance(statements, PythonStatements | CStatements):
        raise UserError(
            f"{why}: functions are found in Python and C files only; name lines of {path.name} "
            f"instead: --lines {where}:FIRST-LAST"
        )
    lines = statements.of_function(name)
    if not lines and name.replace(".<locals>", "") in statements.functions:
        raise UserError(f"{why}: {name} has no statement that could be executed")
    if not lines:
        suggestion = _suggested_functions(name, statements.functions)
        raise UserError(f"{why}: {path.name} has no function {name!r}{suggestion}")
    return ResolvedTargets(tuple(wanted_at(path, line, statements, why) for line in lines))


def _split_function(text: str) -> tuple[str, str]:
    """Return the file or module, and the function.

    Only the first colons separate the two: a C++ function may have ``::`` in its name.

    >>> _split_function("cart.cc:Cart::add"), _split_function("cart.py::Cart.add")
    (('cart.cc', 'Cart::add'), ('cart.py', 'Cart.add'))
    """
    where, _, name = text.partition(":")
    return where, name.removeprefix(":")


def _suggested_functions(name: str, functions: list[str]) -> str:
    """Suggest a function with the same last part (``Cart.add`` for ``add``) or a similar name."""
    same_end = [function for function in functions if _last_part(function) == _last_part(name)]
    if same_end:
        return f"; did you mean {same_end[0]!r}?"
    hint = did_you_mean(name, functions)
    return hint if hint.startswith("; did") or len(functions) <= 12 else ""


def _last_part(name: str) -> str:
    return name.replace("::", ".").rpartition(".")[2]


def _module_file(name: str, why: str) -> Path:
    if not all(part.isidentifier() for part in name.split(".")):
        raise UserError(f"{why}: {name!r} is neither a module's name nor a file")
    spec = _find_spec(name)
    if spec is None:
        raise UserError(f"{why}: there is no module {name!r}; name its file: PATH.py:FUNCTION")
    if spec.origin is None or not spec.origin.endswith((".py", ".pyw")):
        what = "a package without a file of its own" if spec.origin is None else "compiled"
        raise UserError(f"{why}: {name} is {what}: its functions cannot be found")
    return Path(spec.origin).resolve()


def _find_spec(name: str) -> ModuleSpec | None:
    """Locate a module in the project, or where Python would look."""
    here = [str(Path.cwd()), str(project_root()), str(project_root() / "src")]
    top, *rest = name.split(".")
    for spec_of_top in (PathFinder.find_spec(top, here), PathFinder.find_spec(top, sys.path)):
        spec = _submodule_spec(spec_of_top, rest)
        if spec is not None:
            return spec
    return _submodule_spec(_spec_from_other_finders(top), rest)


def _submodule_spec(spec: ModuleSpec | None, parts: list[str]) -> ModuleSpec | None:
    """Locate a module within a package; each package is located in the one above it."""
    for part in parts:
        if spec is None or spec.submodule_search_locations is None:
            return None
        # With its whole name instead of the last part, the packages above would be imported.
        spec = PathFinder.find_spec(part, list(spec.submodule_search_locations))
    return spec


def _spec_from_other_finders(top: str) -> ModuleSpec | None:
    """Locate a top-level module with all finders: editable installs add their own.

    A name without dots needs no import.
    """
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None


# Files and their statements.


def wanted_at(place: Path, line: int, statements: Statements, why: str) -> Wanted:
    """Return the statement that begins at a line of a file."""
    return Wanted(str(place), line, why, statements.function_at(line))


def read_statements(place: Path) -> Statements:
    """Return the statements of a file that a user named."""
    try:
        status = place.stat()
        return _cached_statements(place, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise UserError(f"cannot read {shown_path(str(place))}: {error.strerror}") from None


@lru_cache(maxsize=32)
def _cached_statements(place: Path, changed: int, size: int) -> Statements:
    """Return the statements of a file; cached, because lists name many lines of one file."""
    return statements_of(place)


def find_file(text: str, why: str) -> Path:
    """Return the file that a user means.

    Its name is relative to the current directory or to the top of the project, or absolute.
    """
    file = located(text)
    if file is not None:
        return file
    if any(os.path.isdir(path) for path in _candidates(text)):
        raise UserError(f"{why}: {text} is a directory; name a file in it")
    raise UserError(f"{why}: there is no file {text}{_suggested_file(text)}")


def located(text: str) -> Path | None:
    """Return the file with that name, from here or from the top of the project, or None."""
    return next((Path(path).resolve() for path in _candidates(text) if os.path.isfile(path)), None)


def _candidates(text: str) -> list[str]:
    return [os.path.join(root, text) for root in dict.fromkeys((Path.cwd(), *_project_tops()))]


def _project_tops() -> Iterator[Path]:
    """Yield the tops of the project, and of the repository that may contain it."""
    yield project_root()
    here = Path.cwd().resolve()
    yield from (directory for directory in (here, *here.parents) if (directory / ".git").exists())


def _suggested_file(text: str) -> str:
    """Suggest a file with that name elsewhere, or with a similar name."""
    files = list(_project_files())
    name = Path(text).name
    same = [path for path in files if Path(path).name == name]
    near = difflib.get_close_matches(text, same or files, n=1, cutoff=0.0 if same else 0.6)
    if not near:
        alike = difflib.get_close_matches(name, {Path(path).name for path in files}, n=1)
        near = [path for path in files if alike and Path(path).name == alike[0]]
    return f"; did you mean {near[0]!r}?" if near else f" (looked from {Path.cwd()})"


def _project_files() -> Iterator[str]:
    """Yield the project's files that are not hidden, relative to the current directory."""
    seen = 0
    here = Path.cwd()
    for directory, folders, files in os.walk(project_root()):
        folders[:] = sorted(folder for folder in folders if not _is_skipped(folder))
        for name in sorted(files):
            if not name.startswith(".") and not name.endswith(".pyc"):
                yield os.path.relpath(os.path.join(directory, name), here)
        seen += len(files)
        if seen > _MAX_FILES:
            return


def _is_skipped(folder: str) -> bool:
    return (
        folder.startswith((".", "__")) or folder in _SKIPPED_FOLDERS or folder.endswith(".egg-info")
    )
