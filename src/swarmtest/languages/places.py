"""Lines that a user names: ``cart.py:120``, ``cart.py:100-140``."""

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

# -------------------------------------------------------------------------------------------------
# What a user's words stand for: places in the code as it is now, and targets without a place.


class NothingToAimAt(UserError):
    """What was asked for is in order, but no test can be aimed at any of it."""


@dataclass(frozen=True)
class Wanted:
    """A statement that is to be hit.

    >>> Wanted("/home/me/shop/cart.py", 12, "--line cart.py:12").line
    12
    """

    place: str
    """The file on this machine: absolute, without links."""
    line: int
    """Where the statement begins, as in the name of its target."""
    why: str
    """How the user said it: ``--line cart.py:120``, ``--diff main``."""
    function: str = ""
    """The qualified name of the function around it. Empty at module and class level, which runs at
    import and so in no test, and where it is not known."""


@dataclass(frozen=True)
class Found:
    """What was meant, and what of it cannot be used.

    >>> len((Found(names=("event:full",)) + Found(unusable=("README.md: not code",))).names)
    1
    """

    wanted: tuple[Wanted, ...] = ()
    unusable: tuple[str, ...] = ()
    """One line each: what it is, and why it is no target."""
    names: tuple[str, ...] = ()
    """Targets that are not places, as ``kind:name``: ``fault:ID``, ``event:NAME``."""

    def __add__(self, other: Found) -> Found:
        """Both together."""
        return united((self, other))


def united(parts: Iterable[Found]) -> Found:
    """All together, each place once: the words that named it first are kept."""
    places: dict[tuple[str, int], Wanted] = {}
    unusable: dict[str, None] = {}
    names: dict[str, None] = {}
    for part in parts:
        for one in part.wanted:
            places.setdefault((one.place, one.line), one)
        unusable |= dict.fromkeys(part.unusable)
        names |= dict.fromkeys(part.names)
    return Found(tuple(places.values()), tuple(unusable), tuple(names))


# -------------------------------------------------------------------------------------------------
# Functions that a user names: ``shop.cart:Cart.add``, ``shop/cart.py::Cart.add``.
#
# The module is found, not imported: neither it nor the packages above it run.


def from_function(text: str, why: str = "") -> Found:
    """All statements of a function's body, or of all functions of a class."""
    why = why or f"--function {text}"
    where, name = _split(text.strip().removesuffix("()"))
    if not where or not name:
        raise UserError(f"{why}: write MODULE:FUNCTION or FILE:FUNCTION, as in cart.py:Cart.add")
    is_file = "/" in where or where.endswith(".py") or located(where) is not None
    place = find_file(where, why) if is_file else _module_file(where, why)
    statements = read_statements(place)
    if not isinstance(statements, PythonStatements | CStatements):
        raise UserError(
            f"{why}: functions are found in Python and C files only; name lines of {place.name} "
            f"instead: --lines {where}:FIRST-LAST"
        )
    lines = statements.of_function(name)
    if not lines and name.replace(".<locals>", "") in statements.functions:
        raise UserError(f"{why}: {name} has no statement that could be executed")
    if not lines:
        known = _nearest_names(name, statements.functions)
        raise UserError(f"{why}: {place.name} has no function {name!r}{known}")
    return Found(tuple(wanted_at(place, line, statements, why) for line in lines))


def _split(text: str) -> tuple[str, str]:
    """The file or module, and the function. Only before a function of C++ may ``::`` mean more.

    >>> _split("cart.cc:Cart::add"), _split("cart.py::Cart.add")
    (('cart.cc', 'Cart::add'), ('cart.py', 'Cart.add'))
    """
    where, _, name = text.partition(":")
    return where, name.removeprefix(":")


def _nearest_names(name: str, functions: list[str]) -> str:
    """Of names that end alike (``add`` for ``Cart.add``), or are spelt alike."""
    same_end = [one for one in functions if _last_part(one) == _last_part(name)]
    if same_end:
        return f"; did you mean {same_end[0]!r}?"
    hint = did_you_mean(name, functions)
    return hint if hint.startswith("; did") or len(functions) <= 12 else ""


def _last_part(name: str) -> str:
    return name.replace("::", ".").rpartition(".")[2]


def _module_file(name: str, why: str) -> Path:
    if not all(part.isidentifier() for part in name.split(".")):
        raise UserError(f"{why}: {name!r} is neither a module's name nor a file")
    spec = _find(name)
    if spec is None:
        raise UserError(f"{why}: there is no module {name!r}; name its file: PATH.py:FUNCTION")
    if spec.origin is None or not spec.origin.endswith((".py", ".pyw")):
        what = "a package without a file of its own" if spec.origin is None else "compiled"
        raise UserError(f"{why}: {name} is {what}: its functions cannot be found")
    return Path(spec.origin).resolve()


def _find(name: str) -> ModuleSpec | None:
    """Where a module is: in the project, or where Python would look."""
    here = [str(Path.cwd()), str(project_root()), str(project_root() / "src")]
    top, *rest = name.split(".")
    for found in (PathFinder.find_spec(top, here), PathFinder.find_spec(top, sys.path)):
        spec = _below(found, rest)
        if spec is not None:
            return spec
    return _below(_found_by_others(top), rest)


def _below(spec: ModuleSpec | None, parts: list[str]) -> ModuleSpec | None:
    """The module of that name in a package; each package is found in the one above it."""
    for part in parts:
        if spec is None or spec.submodule_search_locations is None:
            return None
        # By the last part of its name: with the whole name, packages above it would be imported.
        spec = PathFinder.find_spec(part, list(spec.submodule_search_locations))
    return spec


def _found_by_others(top: str) -> ModuleSpec | None:
    """Editable installs have finders of their own. A name without dots needs no import."""
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None


# -------------------------------------------------------------------------------------------------

_LINE = re.compile(r"(?P<file>.+?):(?P<first>\d{1,9})(:\d+)?")
_RANGE = re.compile(r"(?P<file>.+?):(?P<first>\d{1,9})(-(?P<last>\d{1,9}))?")
_SKIPPED = ("node_modules", "site-packages", "dist-packages", "build", "dist")
_MOST_FILES = 20_000


def from_line(text: str, why: str = "") -> Found:
    """The statement at ``FILE:LINE``; a column behind it, as linters print it, is left out."""
    why = why or f"--line {text}"
    found = _LINE.fullmatch(text.strip())
    if found is None:
        hint = f"; for a range: --lines {text}" if _RANGE.fullmatch(text.strip()) else ""
        raise UserError(f"{why}: write FILE:LINE, as in cart.py:120{hint}")
    place = find_file(found["file"], why)
    line = int(found["first"])
    statements = read_statements(place)
    _check_is_there(line, statements, place, why)
    start = statements.at(line)
    if start is None:
        raise UserError(
            f"{place.name}:{line} is {statements.what_is(line)}{_nearest(line, statements.lines)}"
        )
    return Found((wanted_at(place, start, statements, why),))


def from_lines(text: str, why: str = "") -> Found:
    """The statements of ``FILE:FIRST-LAST``; comments and blank lines in it do not matter."""
    why = why or f"--lines {text}"
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise UserError(f"{why}: write FILE:FIRST-LAST, as in cart.py:100-140")
    place = find_file(found["file"], why)
    first, last = int(found["first"]), int(found["last"] or found["first"])
    if last < first:
        raise UserError(f"{why}: the range is backwards; write {place.name}:{last}-{first}")
    return statements_between(place, first, last, why)


def statements_between(place: Path, first: int, last: int, why: str) -> Found:
    """The statements from one line to another; that there are none is the user's to mend."""
    statements = read_statements(place)
    _check_is_there(first, statements, place, why)
    lines = statements.within(range(first, min(last, len(statements.texts)) + 1))
    if not lines:
        where = f"{first}-{last}" if last > first else f"{first}"
        raise UserError(
            f"{why}: there is no statement in {place.name}:{where}"
            f"{_nearest(first, statements.lines)}"
        )
    return Found(tuple(wanted_at(place, line, statements, why) for line in lines))


def wanted_at(place: Path, line: int, statements: Statements, why: str) -> Wanted:
    """The statement that begins at a line of a file."""
    return Wanted(str(place), line, why, statements.function_at(line))


def read_statements(place: Path) -> Statements:
    """The statements of a file that a user named."""
    try:
        now = place.stat()
        return _kept_statements(place, now.st_mtime_ns, now.st_size)
    except OSError as error:
        raise UserError(f"cannot read {shown_path(str(place))}: {error.strerror}") from None


@lru_cache(maxsize=32)
def _kept_statements(place: Path, changed: int, size: int) -> Statements:
    """Lists name many lines of the same file."""
    return statements_of(place)


def find_file(text: str, why: str) -> Path:
    """The file that a user means: from here, from the top of the project, or absolute."""
    found = located(text)
    if found is not None:
        return found
    if any(os.path.isdir(path) for path in _candidates(text)):
        raise UserError(f"{why}: {text} is a directory; name a file in it")
    raise UserError(f"{why}: there is no file {text}{_near_file(text)}")


def located(text: str) -> Path | None:
    """The file of that name, from here or from the top of the project; None if there is none."""
    return next((Path(path).resolve() for path in _candidates(text) if os.path.isfile(path)), None)


def _candidates(text: str) -> list[str]:
    return [os.path.join(root, text) for root in dict.fromkeys((Path.cwd(), *_tops()))]


def _tops() -> Iterator[Path]:
    """The tops of the project, and of the repository that it may be a part of."""
    yield project_root()
    here = Path.cwd().resolve()
    yield from (one for one in (here, *here.parents) if (one / ".git").exists())


def _near_file(text: str) -> str:
    """The file that may have been meant: one with that name elsewhere, or with a name like it."""
    known = list(_project_files())
    name = Path(text).name
    same = [path for path in known if Path(path).name == name]
    near = difflib.get_close_matches(text, same or known, n=1, cutoff=0.0 if same else 0.6)
    if not near:
        alike = difflib.get_close_matches(name, {Path(path).name for path in known}, n=1)
        near = [path for path in known if alike and Path(path).name == alike[0]]
    return f"; did you mean {near[0]!r}?" if near else f" (looked from {Path.cwd()})"


def _project_files() -> Iterator[str]:
    """Files below the project's top, as they would be named from here; hidden ones are not."""
    seen = 0
    here = Path.cwd()
    for directory, folders, files in os.walk(project_root()):
        folders[:] = sorted(one for one in folders if not _is_skipped(one))
        for name in sorted(files):
            if not name.startswith(".") and not name.endswith(".pyc"):
                yield os.path.relpath(os.path.join(directory, name), here)
        seen += len(files)
        if seen > _MOST_FILES:
            return


def _is_skipped(folder: str) -> bool:
    return folder.startswith((".", "__")) or folder in _SKIPPED or folder.endswith(".egg-info")


def _check_is_there(line: int, statements: Statements, place: Path, why: str) -> None:
    count = len(statements.texts)
    if not 1 <= line <= count:
        has = f"has lines 1 to {count}" if count else "is empty"
        raise UserError(f"{why}: there is no line {line}; {place.name} {has}")


def _nearest(line: int, known: Iterable[int]) -> str:
    lines = sorted(known)
    before = [one for one in lines if one < line][-1:]
    after = [one for one in lines if one > line][:1]
    if not before and not after:
        return "; the file has no statement"
    if before and after:
        return f"; the nearest statements are {before[0]} and {after[0]}"
    return f"; the nearest statement is {(before or after)[0]}"
