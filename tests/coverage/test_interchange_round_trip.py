"""Whatever coverage there is, each format gives back what was written in it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.core.errors import UserError
from swarmtest.coverage.interchange.cobertura import read_cobertura, write_cobertura
from swarmtest.coverage.interchange.coveragepy import read_coverage_data, write_coverage_data
from swarmtest.coverage.interchange.formats import Arc, FileCoverage, TestCoverage, unnamed
from swarmtest.coverage.interchange.lcov import read_lcov, read_lcov_tests, write_lcov

PRINTABLE = st.characters(
    exclude_categories=("C", "Z"), exclude_characters="/,"
)  # as in the names of files, functions and tests
NAMES = st.text(PRINTABLE, min_size=1, max_size=8)
PATHS = st.lists(NAMES.filter(lambda name: name not in (".", "..")), min_size=1, max_size=3).map(
    "/".join
)
LINES = st.integers(1, 40)
COUNTS = st.integers(0, 1000)
Hit = tuple[frozenset[int], frozenset[Arc]]


@st.composite
def file_coverages(draw: st.DrawFn, path: str) -> FileCoverage:
    lines = draw(st.dictionaries(LINES, COUNTS, max_size=12))
    branches: dict[Arc, int] = {}
    for line in draw(st.sets(st.sampled_from(sorted(lines)))) if lines else ():
        ends = draw(st.sets(LINES | LINES.map(lambda n: -n), max_size=3)) - {line}
        ends |= {unnamed(number) for number in range(draw(st.integers(0, 2)))}
        branches |= {(line, to): draw(COUNTS) for to in ends}
    functions = draw(st.dictionaries(NAMES, st.tuples(LINES, COUNTS), max_size=3))
    return FileCoverage(path, lines, branches, functions)


@st.composite
def hits(draw: st.DrawFn) -> Hit:
    """What a test hit in a file: something, and both ends of every arc."""
    lines = draw(st.frozensets(LINES, min_size=1, max_size=12))
    ends = st.sampled_from(sorted(lines))
    arcs = draw(st.frozensets(st.tuples(ends, ends | LINES.map(lambda n: -n)), max_size=8))
    return lines, frozenset((start, to) for start, to in arcs if start != to)


FILES = st.lists(PATHS, unique=True, max_size=3).flatmap(
    lambda paths: st.tuples(*(file_coverages(path) for path in paths)).map(list)
)
TESTS = st.dictionaries(
    NAMES, st.dictionaries(PATHS, hits(), min_size=1, max_size=3), max_size=3
).map(lambda tests: [TestCoverage(name, files) for name, files in sorted(tests.items())])


def summed(tests: list[TestCoverage]) -> list[FileCoverage]:
    lines: dict[str, Counter[int]] = {}
    arcs: dict[str, Counter[Arc]] = {}
    for test in tests:
        for path, (test_lines, test_arcs) in test.files.items():
            lines.setdefault(path, Counter()).update(test_lines)
            arcs.setdefault(path, Counter()).update(test_arcs)
    return [FileCoverage(path, lines[path], arcs[path], {}) for path in lines]


@settings(max_examples=50, deadline=None)
@given(FILES)
def test_lcov_keeps_files(files: list[FileCoverage]) -> None:
    assert read_lcov(write_lcov(files)) == files


@settings(max_examples=50, deadline=None)
@given(TESTS)
def test_lcov_keeps_tests_and_their_sum(tests: list[TestCoverage]) -> None:
    files = summed(tests)
    text = write_lcov(files, tests)
    assert read_lcov_tests(text) == tests
    assert read_lcov(text) == files


@settings(max_examples=50, deadline=None)
@given(FILES)
def test_cobertura_keeps_files_but_not_how_often_a_branch_was_taken(
    files: list[FileCoverage],
) -> None:
    kept = [
        dataclasses.replace(file, branches={arc: min(1, n) for arc, n in file.branches.items()})
        for file in files
    ]
    read = read_cobertura(write_cobertura(files))
    assert sorted(read, key=lambda file: file.path) == sorted(kept, key=lambda file: file.path)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("coverage") / ".coverage"


@settings(max_examples=20, deadline=None)
@given(tests=TESTS.filter(bool))
def test_coverage_data_keeps_tests(place: Path, tests: list[TestCoverage]) -> None:
    write_coverage_data(place, [], tests)
    assert read_coverage_data(place) == tests


@settings(max_examples=20, deadline=None)
@given(tests=TESTS.filter(bool))
def test_coverage_data_without_tests_keep_what_any_of_them_hit(
    place: Path, tests: list[TestCoverage]
) -> None:
    files = summed(tests)
    write_coverage_data(place, files)
    expected = {file.path: (frozenset(file.lines), frozenset(file.branches)) for file in files}
    assert read_coverage_data(place) == [TestCoverage("", expected)]


FILE = FileCoverage(
    "a.py", {1: 2, 3: 0}, {(1, 3): 0, (1, -1): 2, (1, unnamed(0)): 0}, {"f": (1, 2)}
)
TEST = TestCoverage("one", {"a.py": (frozenset({1}), frozenset({(1, -1)}))})


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """With a piece cut out, and another put there."""
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    return whole[:start] + draw(st.binary(max_size=5) | st.just(b"9" * 5000)) + whole[end:]


@settings(deadline=None)
@given(damaged(write_lcov([FILE], [TEST]).encode()))
def test_a_damaged_tracefile_is_read_or_refused(data: bytes) -> None:
    with suppress(UserError):
        read_lcov(data.decode(errors="replace"))


@settings(deadline=None)
@given(damaged(write_cobertura([FILE]).encode()))
def test_a_damaged_report_is_read_or_refused(data: bytes) -> None:
    with suppress(UserError):
        read_cobertura(data)


@settings(deadline=None, max_examples=50)
@given(chance=st.randoms())
def test_damaged_coverage_data_are_read_or_refused(place: Path, chance: Random) -> None:
    write_coverage_data(place, [FILE], [TEST])
    data = bytearray(place.read_bytes())
    for _ in range(chance.randrange(1, 200)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    place.write_bytes(data)
    with suppress(UserError):
        read_coverage_data(place)
