"""coverage.py's own data file, `.coverage`: `coverage report`, `html`, `lcov`, `xml` read it.

What coverage.py (7.6.10 and newer) needs: it finds a file's statements and decisions in its
source, and takes from the data only which lines ran (with arcs: every positive end of an arc) and
which arcs out of a decision were taken. It never looks at other arcs. So a test's data are the arcs
out of its decisions and, for every other line that it hit, the arc `(-1, line)`: an entry, which
makes the line count as run and can be no decision's.

What it cannot show: how many times a line was hit, functions (it finds its own), lines that only
swarmtest thinks executable, and branches known by number only. What it shows as missed unless the
arcs are given: a ``def`` or ``class`` whose body is on the same line counts there as a decision
between the next line and the end of the body.
"""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from swarmtest.core.errors import UserError
from swarmtest.coverage.interchange.formats import Arc, FileCoverage, TestCoverage, number_of

if TYPE_CHECKING:
    from coverage import CoverageData

Hit = tuple[Collection[int], Collection[Arc]]


def write_coverage_data(
    path: Path | str,
    files: Iterable[FileCoverage],
    tests: Iterable[TestCoverage] | None = None,
    *,
    root: Path | str = "",
    branches: bool | None = None,
) -> None:
    """Write a `.coverage` file: a context per test, and one named "" for what no test accounts for.

    Relative paths of source files are seen from `root` (by default the current directory), as
    coverage.py keeps whole ones. An old file is replaced, and only once the new one is whole.
    `branches` says whether they were watched: coverage.py combines only data that agree in this.
    Unless given, it is whether there are any.

    >>> cart = FileCoverage("cart.py", {1: 1, 2: 0}, {}, {})
    >>> write_coverage_data("cart.coverage", [cart])
    >>> read_coverage_data("cart.coverage")
    [TestCoverage(name='', files={'cart.py': (frozenset({1}), frozenset())})]
    """
    files, tests = list(files), list(tests or ())
    rest = _hit_by_no_test(files, tests)
    contexts: list[tuple[str, Mapping[str, Hit]]] = [("", rest)]
    contexts += [(test.name, test.files) for test in tests]
    has_arcs = branches
    if has_arcs is None:
        has_arcs = any(file.branches for file in files) or any(
            arcs for _, hits in contexts for _, arcs in hits.values()
        )
    place = Path(path)
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        with _data_at(part, place) as data:
            for name, hits in contexts:
                _add(data, name, {_whole(file, root): hit for file, hit in hits.items()}, has_arcs)
            # Files of which nothing was hit are reported too, as not covered.
            data.touch_files({_whole(file, root) for _, hits in contexts for file in hits})
            data.write()
        os.replace(part, place)
    except OSError as error:
        raise UserError(f"{place}: cannot write the coverage data: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def read_coverage_data(path: Path | str, *, root: Path | str = "") -> list[TestCoverage]:
    """One test per context of a `.coverage` file; one named "" when it was made without contexts.

    Paths below `root` (by default the current directory) are given relative to it. Data that
    coverage.py measured has every step from one line to another as an arc, not only those out of
    decisions. A file that was measured but never run is in the first test, with nothing hit.

    >>> read_coverage_data("missing.coverage")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: missing.coverage: there is no such file
    """
    place = Path(path)
    _check(place)
    with _data_at(place, place) as data:
        data.read()
        measured = data.measured_files()
        hit = _lines_by_context(data, measured)
        found: dict[str, dict[str, tuple[frozenset[int], frozenset[Arc]]]] = {}
        for context in sorted(hit):
            data.set_query_context(context)
            found[context] = {
                _short(file, root): (frozenset(lines), _steps(data.arcs(file) or ()))
                for file, lines in sorted(hit[context].items())
            }
    never_run = measured.difference(*hit.values())
    first = found.setdefault(min(found, default=""), {})
    first |= {_short(file, root): (frozenset(), frozenset()) for file in sorted(never_run)}
    return [TestCoverage(name, files) for name, files in found.items()]


def _hit_by_no_test(files: list[FileCoverage], tests: list[TestCoverage]) -> dict[str, Hit]:
    """What the files show as hit and no test hit; every file is there, even with nothing."""
    lines = {file.path: {line for line, n in file.lines.items() if n} for file in files}
    arcs = {file.path: {arc for arc, n in file.branches.items() if n} for file in files}
    for test in tests:
        for path, (test_lines, test_arcs) in test.files.items():
            if path in lines:
                lines[path] -= test_lines
                arcs[path] -= test_arcs
    return {path: (lines[path], arcs[path]) for path in lines}


def _add(data: CoverageData, context: str, hits: Mapping[str, Hit], has_arcs: bool) -> None:
    data.set_context(context)
    if has_arcs:
        data.add_arcs({file: _with_entries(lines, arcs) for file, (lines, arcs) in hits.items()})
    else:
        data.add_lines({file: lines for file, (lines, _) in hits.items() if lines})


def _with_entries(lines: Collection[int], arcs: Collection[Arc]) -> set[Arc]:
    """The arcs, and one into each line that they leave out."""
    known = {arc for arc in arcs if number_of(arc[1]) is None}
    ends = {line for arc in known for line in arc}
    return known | {(-1, line) for line in lines if line not in ends}


def _lines_by_context(data: CoverageData, files: Iterable[str]) -> dict[str, dict[str, set[int]]]:
    hit: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for file in files:
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                hit[context][file].add(line)
    return hit


def _steps(arcs: Iterable[Arc]) -> frozenset[Arc]:
    """Arcs without entries and without steps that stay on a line: neither can be a decision's."""
    return frozenset((start, to) for start, to in arcs if start > 0 and start != to)


def _whole(file: str, root: Path | str) -> str:
    """As coverage.py names a file: from the top, without links."""
    return os.path.realpath(os.path.join(root, file))


def _short(file: str, root: Path | str) -> str:
    above = os.path.realpath(root)
    return os.path.relpath(file, above) if Path(file).is_relative_to(above) else file


def _check(path: Path) -> None:
    """Refuse what coverage.py would take for new data, and overwrite: another's database."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            database.execute("select version from coverage_schema").fetchone()
    except (sqlite3.Error, UnicodeError) as error:
        raise UserError(f"{path}: not a data file of coverage.py: {error}") from error


@contextmanager
def _data_at(path: Path, named: Path) -> Iterator[CoverageData]:
    """coverage.py's data at a path; what is wrong with them is told under a name."""
    try:
        from coverage.exceptions import CoverageException

        from coverage import CoverageData
    except ImportError as error:
        raise UserError(
            "coverage data need coverage.py: `pip install 'swarmtest[coverage]'`"
        ) from error
    data = CoverageData(str(path))
    try:
        yield data
    except (CoverageException, sqlite3.Error, UnicodeError) as error:
        raise UserError(f"{named}: coverage.py says: {' '.join(str(error).split())}") from error
    finally:
        data.close(force=True)
