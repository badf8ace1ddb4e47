"""Which lines are targets of a native program: those with code, each with the block it is in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from native_programs import Build, lines, need

from swarmtest.coverage.native.program import Program
from swarmtest.languages.text_lines import continued_statement

BOTH = pytest.mark.parametrize("compiler", ["gcc", "clang"])

STEPS = """\
#include <stdio.h>
/* A comment. */
static int steps(int n) {
  int sum;
  sum = n;
  sum += 2;
  sum *= 3;

  if (n > 5) {
    sum -= 1;
    sum ^= 7;
    printf("%d %d\\n",
           sum,
           n);
  } else {
    sum--;
    sum++;
  }
  return sum;
}
int main(void) {
  int n = 0;
  if (scanf("%d", &n) != 1)
    return 9;
  return steps(n) & 1;
}
"""
ALWAYS, LARGE, SMALL = {5, 6, 7, 9, 19, 22, 23, 25}, {10, 11, 12}, {16, 17}


@BOTH
def test_a_line_that_begins_no_block_runs_with_its_block(build: Build, compiler: str) -> None:
    with Program([build(STEPS, "-O0", compiler=compiler)]) as program:
        large, small = lines(program.run(b"9")), lines(program.run(b"3"))
        assert large >= ALWAYS | LARGE
        assert not large & SMALL
        assert small >= ALWAYS | SMALL
        assert not small & LARGE


@BOTH
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_a_line_without_code_is_no_target(build: Build, compiler: str, level: str) -> None:
    with Program([build(STEPS, level, compiler=compiler)]) as program:
        program.run(b"9")
        targets = {target.line for target in program.catalogue.targets}
        assert not targets & {1, 2, 4, 8}
        assert {10, 12, 24} & targets


def test_the_lines_are_those_of_gcov(build: Build, tmp_path: Path) -> None:
    need("gcov")
    fast = build(STEPS, "-O0")
    subprocess.run(["gcc", "--coverage", "-o", "counted", "prog.c"], check=True)
    with Program([fast]) as program, Program([tmp_path / "counted"]) as counted:
        for data in (b"9", b"3", b""):
            here, there = program.run(data), counted.run(data)
            both = {target.line for target in program.catalogue.targets}
            both &= {target.line for target in counted.catalogue.targets}
            assert lines(here) & both == lines(there) & both
        missing = {target.line for target in counted.catalogue.targets} - both
        assert not missing


@pytest.mark.parametrize(
    ("line", "head"), [(12, 12), (13, 12), (14, 12), (4, 0), (8, 0), (15, 0), (18, 0)]
)
def test_a_line_that_continues_a_statement_has_the_line_of_the_statement(
    line: int, head: int
) -> None:
    known = ALWAYS | LARGE | SMALL
    assert (line if line in known else continued_statement(STEPS.split("\n"), line, known)) == head
