"""Branches of native programs: which ways decisions went, as pairs of lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from native_programs import Build, lines, need

from swarmtest.core.targets import Hits
from swarmtest.coverage.native import blocks
from swarmtest.coverage.native.branches import branches_of
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


@BOTH
def test_a_library_can_be_watched_again_in_another_way(build: Build, compiler: str) -> None:
    need(compiler)
    loop = "  for (int i = 0; i < n; i++)\n    s += i;\n"
    source = f"int sum(int n) {{\n  int s = 0;\n{loop}  return s;\n}}\n"
    path = build(source, "-shared", "-fPIC", compiler=compiler, name=f"libsum{compiler}.so")
    ways = {"3->4", "3->5"}
    for wanted in (False, True, False):
        library = Library(path, branches=wanted)
        for _ in range(2):
            assert library.functions.sum(1000) == 499500  # its loop stops reporting
            hits = library.hits
            assert branches(hits) == (ways if wanted else set())
            assert {target.line for target in hits.targets()} >= {3, 4, 5}


AARCH64 = """\
0000000000400230 <f>:
  400260:	bl	400400 <__sanitizer_cov_trace_pc_guard>
  4002b8:	ldur	w8, [x29, #-8]
  4002bc:	subs	w8, w8, #0x6
  4002c0:	b.ne	4002d4 <f+0xf8>  // b.any
  4002c4:	b	4002c8 <f+0xec>
  4002c8:	ldur	x0, [x29, #-40]
  4002cc:	bl	400400 <__sanitizer_cov_trace_pc_guard>
  4002d0:	b	4002f8 <f+0x11c>
  4002d4:	ldr	x0, [sp, #32]
  4002d8:	bl	400400 <__sanitizer_cov_trace_pc_guard>
  4002dc:	str	wzr, [x29, #-8]
  4002f8:	ldur	x0, [x29, #-32]
  4002fc:	bl	400400 <__sanitizer_cov_trace_pc_guard>
  400300:	ret
"""
"""What clang makes of ``if (n != 6) n = 0; return n;``: each way has a block."""


def test_the_code_of_aarch64_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = {0x4002C0: 2, 0x4002CC: 2, 0x4002D8: 3, 0x4002FC: 4}
    places = {address: ("a.c", line, "f") for address, line in lines.items()}
    monkeypatch.setattr(blocks, "binutils", lambda command: AARCH64.splitlines())
    monkeypatch.setattr(blocks, "places_of", lambda binary, addresses: places)
    (tmp_path / "a.out").write_text(AARCH64)
    found = branches_of(str(tmp_path / "a.out"), [0x400230, 0x4002C8, 0x4002D4, 0x4002F8])
    ways = {(branch.source, branch.destination, branch.line, branch.to) for branch in found.known}
    assert ways == {(0x400230, 0x4002C8, 2, 4), (0x400230, 0x4002D4, 2, 3)}
