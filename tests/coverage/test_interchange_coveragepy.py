"""Data of coverage.py: what it measured, and what it shows of what swarmtest measured."""

from __future__ import annotations

import ast
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from swarmtest.core.errors import UserError
from swarmtest.coverage.interchange.cobertura import read_cobertura
from swarmtest.coverage.interchange.coveragepy import read_coverage_data, write_coverage_data
from swarmtest.coverage.interchange.formats import Arc, FileCoverage, TestCoverage
from swarmtest.coverage.interchange.lcov import read_lcov

PROGRAM = '''\
"""Statements of every kind, most of which go somewhere."""
import sys


class Wrong(Exception):
    """Has no body but this."""


def kinds(a, b):
    try:
        if a == 1:
            raise Wrong
        elif a == 2:
            raise KeyError
    except Wrong:
        x = 1
    except KeyError:
        x = 2
    finally:
        x = 3
    for i in range(b):
        if i == 1:
            continue
        if (
            i == 3
            or i == 5
        ):
            break
    else:
        x = 4
    while b:
        b -= 1
    with open(__file__) as file:
        if a:
            return file.name
    match a:
        case 1:
            return 2
        case [x, y]:
            return 3
        case 0 if b:
            return 4
    x = [i for i in range(3) if i > 1]
    assert x, \\
        b
    try:
        return (lambda: 5)()
    finally:
        x = 6


def decorated(function):
    return function


@decorated
@decorated
def generator(n):
    while True:
        yield n
        n -= 1
        if not n: return


async def never(n):
    async for i in n:
        pass
    async with n:
        pass


class Choice:
    if sys.argv:
        x = 1
    else:
        x = 2


for i in range(3): pass
kinds(0, 0)
if len(sys.argv) > 1:
    kinds(1, 5)
    list(generator(3))
if __name__ == "__main__":
    pass
'''

Coverage = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "unused.py").write_text("if True:\n    x = 1\n")
    return tmp_path


@pytest.fixture
def coverage(project: Path) -> Coverage:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "coverage", *arguments]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
        return done.stdout

    return run


def decisions(path: Path) -> set[int]:
    """The lines on which a decision is made: where a condition, loop or case starts, or goes on."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.If | ast.While):
            lines |= {node.lineno, *range(node.test.lineno, (node.test.end_lineno or 0) + 1)}
        elif isinstance(node, ast.For | ast.AsyncFor):
            lines.add(node.lineno)
        elif isinstance(node, ast.match_case):
            lines.add(node.pattern.lineno)
    return lines


def only_decisions(tests: list[TestCoverage], lines: set[int]) -> list[TestCoverage]:
    """What swarmtest knows: the lines hit, and of arcs only those out of decisions."""
    return [
        TestCoverage(
            test.name,
            {
                path: (hit, frozenset(arc for arc in arcs if arc[0] in lines))
                for path, (hit, arcs) in test.files.items()
            },
        )
        for test in tests
    ]


def measure(coverage: Coverage, *options: str) -> None:
    coverage("run", "--source=.", "--context=one", *options, "program.py")
    coverage("run", "--source=.", "--context=two", "--append", *options, "program.py", "more")


@pytest.mark.parametrize("options", [("--branch",), ()], ids=["branches", "lines"])
def test_data_that_are_read_and_written_back_give_the_same_reports(
    project: Path, coverage: Coverage, options: tuple[str, ...]
) -> None:
    measure(coverage, *options)
    before = coverage("report", "-m"), everything(coverage)
    write_coverage_data(".coverage", [], read_coverage_data(".coverage"))
    assert (coverage("report", "-m"), everything(coverage)) == before
    assert "unused.py" in before[0]


def everything(coverage: Coverage) -> Any:
    """All that coverage.py can tell of each file, with the tests that hit each line."""
    report = coverage("json", "--show-contexts", "-q", "-o", "-")
    return json.loads(report, object_hook=with_contexts_in_order)["files"]


def with_contexts_in_order(part: dict[str, Any]) -> dict[str, Any]:
    contexts = part.get("contexts", {})
    return part | {"contexts": {line: sorted(tests) for line, tests in contexts.items()}}


def test_arcs_out_of_decisions_are_enough_for_a_right_report(
    project: Path, coverage: Coverage
) -> None:
    measure(coverage, "--branch")
    reports = [("report", "-m"), ("lcov", "-q", "-o", "-"), ("report", "-m", "--contexts=one")]
    before = [coverage(*arguments) for arguments in reports]
    tests = read_coverage_data(".coverage")
    known = only_decisions(tests, decisions(project / "program.py"))
    assert known != tests
    write_coverage_data(".coverage", [], known)
    assert [coverage(*arguments) for arguments in reports] == before
    assert "84->exit" in before[2], "partial branches are shown"


def test_files_alone_give_the_report_of_all_tests_together(
    project: Path, coverage: Coverage
) -> None:
    measure(coverage, "--branch")
    before = coverage("report", "-m")
    tests = only_decisions(read_coverage_data(".coverage"), decisions(project / "program.py"))
    lines: dict[int, int] = {}
    arcs: dict[Arc, int] = {}
    for test in tests:
        hit, taken = test.files["program.py"]
        lines |= {line: lines.get(line, 0) + 1 for line in hit}
        arcs |= {arc: arcs.get(arc, 0) + 1 for arc in taken}
    program = FileCoverage("program.py", lines | {14: 0}, arcs | {(13, 14): 0}, {})
    write_coverage_data(".coverage", [program, FileCoverage("unused.py", {1: 0}, {}, {})])
    assert coverage("report", "-m") == before
    assert coverage("html", "-q") == ""
    assert (project / "htmlcov" / "index.html").exists()


def test_a_body_on_the_line_of_its_class_is_missed_unless_its_arcs_are_given(
    project: Path, coverage: Coverage
) -> None:
    (project / "program.py").write_text("class Wrong(Exception): pass\nif Wrong:\n    x = 1\n")
    file = FileCoverage("program.py", {1: 1, 2: 1, 3: 1}, {(2, 3): 1, (2, -1): 0}, {})
    write_coverage_data(".coverage", [file])
    assert "1->2, 1->exit, 2->exit" in coverage("report", "-m")
    given = FileCoverage("program.py", file.lines, {**file.branches, (1, -1): 1, (1, 2): 1}, {})
    write_coverage_data(".coverage", [given])
    assert "   2->exit" in coverage("report", "-m")


def test_reports_of_coverage_py_are_read_as_what_it_measured(
    project: Path, coverage: Coverage
) -> None:
    measure(coverage, "--branch")
    [lcov, _] = read_lcov(coverage("lcov", "-q", "-o", "-"))
    [cobertura, _] = read_cobertura(coverage("xml", "-q", "-o", "-"))
    hits = [test.files["program.py"] for test in read_coverage_data(".coverage")]
    lines = {statement(line) for hit, _ in hits for line in hit}
    arcs = {(statement(start), statement(to)) for _, taken in hits for start, to in taken}
    assert lcov.lines == cobertura.lines
    assert {line for line, count in lcov.lines.items() if count} == lines & set(lcov.lines)
    out_of_with = {(34, 36)}  # measured as a step back to the `with`
    assert {arc for arc, n in lcov.branches.items() if n and arc[1] > 0} <= arcs | out_of_with
    assert taken_and_all(lcov) == taken_and_all(cobertura)
    assert lcov.functions["kinds"] == (9, 1)
    assert lcov.functions["never"] == (65, 0)


def statement(line: int) -> int:
    """The first line of the statement: the condition from line 24 on is the only long one hit."""
    return 24 if line in (25, 26) else line


def taken_and_all(file: FileCoverage) -> dict[int, tuple[int, int]]:
    """For each decision how many of its branches were taken, and how many it has."""
    counts: dict[int, tuple[int, int]] = {}
    for (line, _), count in file.branches.items():
        taken, total = counts.get(line, (0, 0))
        counts[line] = (taken + (count > 0), total + 1)
    return counts


def test_what_no_test_hit_but_was_hit_is_in_a_context_without_a_name(project: Path) -> None:
    file = FileCoverage("program.py", {1: 1, 2: 1, 3: 0}, {}, {})
    test = TestCoverage("one", {"program.py": (frozenset({2}), frozenset())})
    write_coverage_data(".coverage", [file], [test])
    rest = TestCoverage("", {"program.py": (frozenset({1}), frozenset())})
    assert read_coverage_data(".coverage") == [rest, test]


def test_paths_are_seen_from_the_root(project: Path) -> None:
    file = FileCoverage("src/a.py", {1: 1}, {}, {})
    write_coverage_data("data", [file], root="/elsewhere")
    assert [*read_coverage_data("data")[0].files] == ["/elsewhere/src/a.py"]
    assert [*read_coverage_data("data", root="/elsewhere")[0].files] == ["src/a.py"]


def test_no_coverage_at_all_is_a_file_of_coverage_py_too(project: Path) -> None:
    write_coverage_data(".coverage", [])
    assert read_coverage_data(".coverage") == [TestCoverage("", {})]


def test_a_source_that_is_reached_through_a_link_is_reported(
    project: Path, coverage: Coverage
) -> None:
    (project / "link").symlink_to(project, target_is_directory=True)
    file = FileCoverage("unused.py", {1: 1, 2: 1}, {}, {})
    write_coverage_data(".coverage", [file], root=project / "link")
    assert "100%" in coverage("report")
    assert [*read_coverage_data(".coverage", root=project / "link")[0].files] == ["unused.py"]


def test_every_one_of_many_tests_is_kept(project: Path) -> None:
    hit = (frozenset(range(1, 201)), frozenset((n, n + 1) for n in range(1, 200, 2)))
    tests = [TestCoverage(f"trial {n:03}", {"program.py": hit}) for n in range(300)]
    write_coverage_data(".coverage", [], tests)
    assert read_coverage_data(".coverage") == tests


def test_another_file_is_neither_read_nor_changed(project: Path) -> None:
    with closing(sqlite3.connect("other.db")) as other:
        other.execute("create table mine (x)")
    before = Path("other.db").read_bytes()
    with pytest.raises(UserError, match=r"^other\.db: not a data file of coverage\.py: no such"):
        read_coverage_data("other.db")
    assert Path("other.db").read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"!coverage.py: this is a private format{}", b"\0" * 99])
def test_what_is_no_database_is_refused(project: Path, content: bytes) -> None:
    Path("data").write_bytes(content)
    with pytest.raises(UserError, match=r"^data: not a data file of coverage\.py: [^\n]+$"):
        read_coverage_data("data")
    assert Path("data").read_bytes() == content


def test_data_of_another_version_are_refused(project: Path) -> None:
    write_coverage_data("data", [FileCoverage("a.py", {1: 1}, {}, {})])
    with closing(sqlite3.connect("data", isolation_level=None)) as data:
        data.execute("update coverage_schema set version = 99")
    with pytest.raises(UserError, match=r"^data: coverage\.py says: .*wrong schema: 99[^\n]*$"):
        read_coverage_data("data")


def test_a_file_that_was_cut_off_is_refused(project: Path) -> None:
    lines = dict.fromkeys(range(1, 5000), 1)
    write_coverage_data("data", [FileCoverage(f"{n}.py", lines, {}, {}) for n in range(50)])
    Path("data").write_bytes(Path("data").read_bytes()[:-12_000])
    with pytest.raises(UserError, match=r"^data: [^\n]+$"):
        read_coverage_data("data")


def test_a_directory_that_is_not_there_is_said_to_be_so(project: Path) -> None:
    with pytest.raises(UserError, match=r"^missing/data: "):
        write_coverage_data("missing/data", [FileCoverage("a.py", {1: 1}, {}, {})])


def test_without_coverage_py_the_user_is_told_what_to_install(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "coverage", None)
    with pytest.raises(UserError, match=r"^[^\n]*`pip install 'swarmtest\[coverage\]'`$"):
        write_coverage_data("data", [])
