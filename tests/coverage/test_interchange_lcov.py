"""Tracefiles of LCOV: those of other tools, those with tests, and those that are broken."""

from __future__ import annotations

import pytest

from swarmtest.core.errors import UserError
from swarmtest.coverage.interchange.formats import FileCoverage, TestCoverage, unnamed
from swarmtest.coverage.interchange.lcov import read_lcov, read_lcov_tests, write_lcov

OF_GENINFO = """\
TN:first_run
SF:/src/pick.c
VER:1
FN:4,pick
FN:9,main
FNDA:3,pick
FNDA:1,main
FNF:2
FNH:2
BRDA:5,0,0,2
BRDA:5,0,1,1
BRDA:5,1,0,-
BRF:3
BRH:2
DA:4,3,1BzCIRkD6hC4ZPHf0ENvBA
DA:5,3
DA:6,0
LF:3
LH:2
end_of_record
"""
OF_LCOV_2 = """\
# written by lcov 2.3
TN:
SF:/src/pick.cpp
FNL:0,4,8
FNA:0,3,pick(int, int)
FNL:1,9
FNA:1,0,main
BRDA:5,e0,a > b,2
BRDA:5,U0,excluded,7
MCDC:5,2,t,1,0,a
MCF:2
MCH:1
DA:5,2
end_of_record
"""
OF_COVERAGE_PY = """\
SF:shop/cart.py
DA:1,1
DA:3,1
LF:2
LH:2
FN:1,4,Cart.add
FNDA:1,Cart.add
BRDA:3,0,jump to line 4,1
BRDA:3,0,return from function 'add',0
BRDA:9,0,exit the module,-
end_of_record
"""


def test_a_tracefile_of_geninfo_is_read() -> None:
    assert read_lcov(OF_GENINFO) == [
        FileCoverage(
            "/src/pick.c",
            {4: 3, 5: 3, 6: 0},
            {(5, unnamed(0)): 2, (5, unnamed(1)): 1, (5, unnamed(2)): 0},
            {"pick": (4, 3), "main": (9, 1)},
        )
    ]


def test_a_tracefile_of_lcov_2_is_read_without_the_branches_it_left_out() -> None:
    assert read_lcov(OF_LCOV_2) == [
        FileCoverage(
            "/src/pick.cpp",
            {5: 2},
            {(5, unnamed(0)): 2},
            {"pick(int, int)": (4, 3), "main": (9, 0)},
        )
    ]


def test_a_tracefile_of_coverage_py_says_where_branches_go() -> None:
    [file] = read_lcov(OF_COVERAGE_PY)
    assert file.branches == {(3, 4): 1, (3, unnamed(0)): 0, (9, -1): 0}
    assert file.functions == {"Cart.add": (1, 1)}


def test_branches_that_have_only_numbers_are_written_as_numbers() -> None:
    numbered = FileCoverage("pick.c", {5: 1}, {(5, unnamed(0)): 1, (5, unnamed(1)): 0}, {})
    assert "BRDA:5,0,0,1\nBRDA:5,0,1,0\n" in write_lcov([numbered])


def test_windows_line_ends_and_blank_lines_are_read() -> None:
    assert read_lcov("SF:a.py\r\n\r\nDA:1,2\r\nend_of_record\r\n")[0].lines == {1: 2}


def test_branches_of_a_line_that_never_ran_are_marked_as_never_reached() -> None:
    assert "BRDA:3,0,jump to line 4,-\n" in write_lcov(
        [FileCoverage("a.py", {3: 0, 4: 0}, {(3, 4): 0}, {})]
    )


def test_several_runs_of_a_file_are_added_up() -> None:
    [file] = read_lcov(OF_GENINFO + OF_GENINFO)
    assert file.lines == {4: 6, 5: 6, 6: 0}
    assert file.functions == {"pick": (4, 6), "main": (9, 2)}
    assert file.branches[5, unnamed(0)] == 4


def test_each_test_has_its_own_hits() -> None:
    lines = FileCoverage("a.py", {1: 2, 2: 1, 3: 0}, {(1, 2): 1, (1, 3): 0}, {"f": (1, 2)})
    both = TestCoverage("both", {"a.py": (frozenset({1, 2}), frozenset({(1, 2)}))})
    one = TestCoverage("one", {"a.py": (frozenset({1}), frozenset())})
    text = write_lcov([lines], [both, one])
    assert read_lcov_tests(text) == [both, one]
    assert read_lcov(text) == [lines]


def test_what_no_test_accounts_for_is_the_hits_of_a_test_without_a_name() -> None:
    file = FileCoverage("a.py", {1: 2, 2: 1}, {}, {})
    test = TestCoverage("one", {"a.py": (frozenset({1, 2}), frozenset())})
    rest = TestCoverage("", {"a.py": (frozenset({1}), frozenset())})
    assert read_lcov_tests(write_lcov([file], [test])) == [rest, test]


def test_line_ends_in_names_cannot_forge_lines() -> None:
    text = write_lcov([FileCoverage("a\nDA:1,1", {2: 0}, {}, {"f\n": (2, 0)})])
    assert read_lcov(text) == [FileCoverage("a?DA:1,1", {2: 0}, {}, {"f?": (2, 0)})]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", "cov.info:1: 'hello' is not LCOV: a file's record starts with SF:<path>"),
        ("DA:1,1\n", "cov.info:1: 'DA:1,1' is not LCOV: a file's record starts with SF:<path>"),
        ("SF:a\n\x00\x01\n", "cov.info:2: '\\x00\\x01' is not a line of the record of a: known"),
        ("SF:a\nSF:b\n", "cov.info:2: 'SF:b' is not a line of the record of a: known are FN, "),
        ("SF:a\nDA:1\n", "cov.info:2: 'DA:1' should be DA:<line>,<count>[,<checksum>]"),
        ("SF:a\nDA:1,-3\n", "cov.info:2: 'DA:1,-3' should be DA:<line>,<count>[,<checksum>]"),
        ("SF:a\nDA:1,²\n", "cov.info:2: 'DA:1,²' should be DA:<line>,<count>[,<checksum>]"),
        ("SF:a\nBRDA:1,0,2\n", "cov.info:2: 'BRDA:1,0,2' should be BRDA:<line>,<block>,<branch>,"),
        ("SF:a\nBRDA:1,x,0,1\n", "cov.info:2: 'BRDA:1,x,0,1' should be BRDA:<line>,<block>,"),
        ("SF:a\nFNDA:1,f\n", "cov.info:2: 'FNDA:1,f' should be FNDA:<count>,<function of an FN "),
        ("SF:a\nFNA:0,1,f\n", "cov.info:2: 'FNA:0,1,f' should be FNA:<number of an FNL line>,"),
        ("SF:a\nFN:1\n", "cov.info:2: 'FN:1' should be FN:<first line>,[<last line>,]<function>"),
        ("SF:a\nDA:1,1\n", "cov.info:3: ends within the record of a"),
        ("x" * 1000, f"cov.info:1: '{'x' * 57}...' is not LCOV: a file's record starts with"),
    ],
)
def test_what_is_broken_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        read_lcov(text, "cov.info")
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_nothing_is_no_coverage() -> None:
    assert read_lcov("") == []
    assert write_lcov([]) == ""
