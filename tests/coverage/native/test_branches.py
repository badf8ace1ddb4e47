"""Branches of native programs: which ways decisions went, as pairs of lines."""

from __future__ import annotations

import pytest
from native_programs import Build, lines, need

from swarmtest.core.targets import Hits
from swarmtest.coverage.native.library import Library
from swarmtest.coverage.native.program import Program
from swarmtest.coverage.watch import Coverage

BOTH = pytest.mark.parametrize("compiler", ["gcc", "clang"])

DECISIONS = """\
#include <stdio.h>
static int down(int n) {
  if (n > 5)
    n--;
  n *= 3;
  if (n == 6 || n == 9)
    return 1;
  for (int i = 0; i < n; i++)
    n--;
  return n > 4 ? down(n - 3) : 0;
}
int main(void) {
  int n = 0;
  while (scanf("%d", &n) == 1)
    if (down(n))
      puts("one");
  return 0;
}
"""
ONE = {"3->5", "6->6", "6->8", "8->9", "8->10", "10->10", "14->15", "14->17", "15->14"}
TWO = {"3->5", "6->7", "14->15", "14->17", "15->16"}
SEVEN = ONE - {"15->14"} | TWO | {"3->4"}
"""The ways for the numbers 1, 2 and 7; 7 calls the function for 1 and 2 as well."""


def branches(hits: Hits | None) -> set[str]:
    assert hits is not None
    return {t.name.rpartition(":")[2] for t in hits.targets() if t.kind == "branch"}


@BOTH
def test_the_ways_that_decisions_went_are_targets(build: Build, compiler: str) -> None:
    path = build(DECISIONS, "-O0", compiler=compiler)
    with Program([path], branches=True, fork_server=True) as program:
        for _ in range(2):  # a test leaves nothing for the next
            assert branches(program.run(b"").hits) == {"14->17"}
            assert branches(program.run(b"2").hits) == TWO
            assert branches(program.run(b"1").hits) == ONE
        known = {t.name for t in program.catalogue.targets if t.kind == "branch"}
        assert known == {f"prog.c:{name}" for name in SEVEN | ONE}


@BOTH
def test_a_function_that_calls_itself_between_its_decisions(build: Build, compiler: str) -> None:
    path = build(DECISIONS, "-O0", compiler=compiler)
    with Program([path], branches=True) as program:
        assert branches(program.run(b"7").hits) == SEVEN


@BOTH
def test_lines_are_the_same_with_and_without_branches(build: Build, compiler: str) -> None:
    path = build(DECISIONS, "-O2", compiler=compiler)
    with Program([path]) as plain, Program([path], branches=True) as program:
        for data in (b"", b"1", b"2", b"7"):
            hits = program.run(data).hits
            assert hits is not None
            at = {target.line for target in hits.targets() if target.kind == "line"}
            assert at == lines(plain.run(data))
            assert branches(hits)
        assert not branches(plain.run(b"7").hits)


def test_a_way_through_a_table_of_jumps_is_a_target_once_it_is_taken(build: Build) -> None:
    cases = "".join(f'  case {n}: puts("{n}"); break;\n' for n in range(8))
    start = "#include <stdio.h>\nint main(void) {\n  switch (getchar() - '0') {\n"
    path = build(f"{start}{cases}  }}\n  return 0;\n}}\n", "-O0")
    with Program([path], branches=True) as program:
        assert branches(program.run(b"2").hits) == {"3->6"}
        assert branches(program.run(b"5").hits) == {"3->9"}
        assert branches(program.run(b"x").hits) == {"3->13"}


def test_a_campaign_with_branch_coverage_has_them(build: Build) -> None:
    path = build(DECISIONS, "-O0")
    with Program([path]) as program:
        assert not branches(program.run(b"2").hits)
        with Coverage("line,branch", cover=["nothing"]):
            assert branches(program.run(b"2").hits) == TWO
        assert not branches(program.run(b"2").hits)


@BOTH
def test_a_library_in_the_process_has_them(build: Build, compiler: str) -> None:
    need(compiler)
    source = "int half(int n) {\n  if (n % 2)\n    return -1;\n  return n / 2;\n}\n"
    path = build(source, "-shared", "-fPIC", compiler=compiler, name=f"libhalf{compiler}.so")
    library = Library(path, branches=True)
    for _ in range(2):
        assert library.functions.half(4) == 2
        assert branches(library.hits) == {"2->4"}
        assert library.functions.half(3) == -1
        assert branches(library.hits) == {"2->3"}
