"""Lines that a user names: ``cart.py:120``, ``cart.py:100-140``."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.focus.found import Found, Wanted
from swarmtest.focus.statements import Statements, statements_of
from swarmtest.instrument.scope import project_root, shown_path

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
