"""coverage.py's data file `.coverage`, which `coverage report`, `html`, `lcov` and `xml` read.

What coverage.py (7.6.10 and newer) needs: it finds the statements and decisions of a file in its
source, and takes from the data only which lines ran (with arcs: both ends of an arc, if positive)
and which arcs out of a decision were taken. It ignores other arcs. So a test's data are the arcs
out of its decisions and, for every other line that it hit, the arc `(-1, line)`: an entry, which
makes the line count as run and cannot belong to a decision.

What it cannot show: how many times a line was hit, functions (it finds them itself), lines that
only swarmtest considers executable, and branches of which only the number is known. What it shows
as missed unless the arcs are in the data: a ``def`` or ``class`` whose body is on the same line,
which it counts as a decision between the next line and the end of the body.
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
    """Write a `.coverage` file: a context per test, and one named "" for what no test hit.

    Relative paths of source files refer to `root` (by default the current directory), because
    coverage.py keeps absolute ones. An old file is replaced when the new one is complete.
    `branches` says whether branches were watched: coverage.py combines only data that agree in
    this. By default it is whether there are any.

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
    output = Path(path)
    part = output.with_name(f"{output.name}.{os.getpid()}.part")
    try:
        with _data_at(part, output) as data:
            for name, hits in contexts:
                by_path = {_absolute(file, root): hit for file, hit in hits.items()}
                _add_context(data, name, by_path, has_arcs)
            # Files without hits are reported too, as not covered.
            data.touch_files({_absolute(file, root) for _, hits in contexts for file in hits})
            data.write()
        os.replace(part, output)
    except OSError as error:
        raise UserError(f"{output}: cannot write the coverage data: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def read_coverage_data(path: Path | str, *, root: Path | str = "") -> list[TestCoverage]:
    """Return a test per context of a `.coverage` file; one named "" if it has no contexts.

    Paths below `root` (by default the current directory) are returned relative to it. Data that
    coverage.py measured has every step from one line to another as an arc, not only those out of
    decisions. A file that was measured but never run is in the first test, with nothing hit.

    >>> read_coverage_data("missing.coverage")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: missing.coverage: there is no such file
    """
    path = Path(path)
    _check_format(path)
    with _data_at(path, path) as data:
        data.read()
        measured = data.measured_files()
        hit = _lines_by_context(data, measured)
        tests: dict[str, dict[str, tuple[frozenset[int], frozenset[Arc]]]] = {}
        for context in sorted(hit):
            data.set_query_context(context)
            tests[context] = {
                _relative(file, root): (frozenset(lines), _steps(data.arcs(file) or ()))
                for file, lines in sorted(hit[context].items())
            }
    never_run = measured.difference(*hit.values())
    first = tests.setdefault(min(tests, default=""), {})
    first |= {_relative(file, root): (frozenset(), frozenset()) for file in sorted(never_run)}
    return [TestCoverage(name, files) for name, files in tests.items()]


def _hit_by_no_test(files: list[FileCoverage], tests: list[TestCoverage]) -> dict[str, Hit]:
    """Return what was hit in each file but by no test; every file is listed."""
    lines = {file.path: {line for line, n in file.lines.items() if n} for file in files}
    arcs = {file.path: {arc for arc, n in file.branches.items() if n} for file in files}
    for test in tests:
        for path, (test_lines, test_arcs) in test.files.items():
            if path in lines:
                lines[path] -= test_lines
                arcs[path] -= test_arcs
    return {path: (lines[path], arcs[path]) for path in lines}


def _add_context(data: CoverageData, context: str, hits: Mapping[str, Hit], has_arcs: bool) -> None:
    data.set_context(context)
    if has_arcs:
        data.add_arcs({file: _with_entries(lines, arcs) for file, (lines, arcs) in hits.items()})
    else:
        data.add_lines({file: lines for file, (lines, _) in hits.items() if lines})


def _with_entries(lines: Collection[int], arcs: Collection[Arc]) -> set[Arc]:
    """Return the arcs with known destinations, and an entry to each line that they leave out."""
    named = {arc for arc in arcs if number_of(arc[1]) is None}
    ends = {line for arc in named for line in arc}
    return named | {(-1, line) for line in lines if line not in ends}


def _lines_by_context(data: CoverageData, files: Iterable[str]) -> dict[str, dict[str, set[int]]]:
    hit: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for file in files:
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                hit[context][file].add(line)
    return hit


def _steps(arcs: Iterable[Arc]) -> frozenset[Arc]:
    """Return arcs without entries and steps that stay on a line: no decision has such arcs."""
    return frozenset((start, to) for start, to in arcs if start > 0 and start != to)


def _absolute(file: str, root: Path | str) -> str:
    """Return a file's path as coverage.py has it: absolute, without symbolic links."""
    return os.path.realpath(os.path.join(root, file))


def _relative(file: str, root: Path | str) -> str:
    """Return a file's path relative to `root` if it is below, else unchanged."""
    above = os.path.realpath(root)
    return os.path.relpath(file, above) if Path(file).is_relative_to(above) else file


def _check_format(path: Path) -> None:
    """Raise `UserError` if a file is not coverage.py's.

    coverage.py would take another program's database for an empty one, and overwrite it.
    """
    if not path.is_file():
        raise UserError(f"{path}: there is no such file")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            database.execute("select version from coverage_schema").fetchone()
    except (sqlite3.Error, UnicodeError) as error:
        raise UserError(f"{path}: not a data file of coverage.py: {error}") from error


@contextmanager
def _data_at(path: Path, named: Path) -> Iterator[CoverageData]:
    """Open coverage.py's data at a path; errors name the file `named`."""
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
