"""Crashes of native programs are told apart by the functions that they interrupt."""

from __future__ import annotations

from pathlib import Path

import pytest
from native_programs import Build, lines, signature

from swarmtest import Campaign
from swarmtest.coverage.native.program import Program

BOTH = pytest.mark.parametrize("compiler", ["gcc", "clang"])

SITES = """\
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define APART __attribute__((noinline))
static int *volatile nothing;
APART int first(int x) { return nothing[x] + 1; }
APART int second(int x) { return nothing[x] * 3; }
APART int parse(int x) { int r = x & 1 ? first(x) : second(x); return r ^ 5; }
APART int depth(int x) { char r[200]; memset(r, x, 200); return depth(x + 1) + r[x & 7]; }
APART void give_up(void) { abort(); }
APART int divide(int a, int b) { return a / b; }
APART void check(int x) { assert(x != 7); }
APART int jump(void) { int (*volatile f)(void) = (int (*)(void))8; return f() + 1; }
static void handler(int number) { _Exit(number); }
int main(void) {
  int x = 0;
  if (scanf("%d", &x) != 1)
    return 2;
  switch (x) {
  case 1: case 2: return parse(x);
  case 3: return depth(1);
  case 4: give_up(); break;
  case 5: return divide(x, x - 5);
  case 6: signal(SIGSEGV, handler); return parse(1);
  case 7: check(x); break;
  case 8: return jump();
  case 9: return raise(SIGKILL);
  }
  return 0;
}
"""
EXPECTED = {
    b"1": "SIGSEGV [first < parse]",
    b"2": "SIGSEGV [second < parse]",
    b"3": "SIGSEGV [depth]",
    b"4": "SIGABRT [give_up]",
    b"5": "SIGFPE [divide]",
    b"7": "SIGABRT: Assertion `x != 7' failed in check (prog.c)",
    b"8": "SIGSEGV [jump]",
    b"9": "SIGKILL",
}


@BOTH
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_a_signal_has_the_functions_that_it_interrupted(
    build: Build, compiler: str, level: str
) -> None:
    program = build(SITES, level, "-w", compiler=compiler)
    with Program([program], fork_server=True) as forked:
        shown = {data: signature(forked.run(data)) for data in EXPECTED}
    shown[b"3"] = shown[b"3"].replace("[depth < parse]", "[depth]")
    assert shown == EXPECTED


def test_a_new_process_shows_the_same(build: Build) -> None:
    with Program([build(SITES, "-w")]) as program:
        assert {data: signature(program.run(data)) for data in EXPECTED} == EXPECTED


def test_a_crash_keeps_its_coverage_and_the_next_test_has_none_of_it(build: Build) -> None:
    with Program([build(SITES, "-w")], fork_server=True) as program:
        crash = program.run(b"1")
        assert crash.stack[:3] == ("first", "parse", "main")
        assert 8 in lines(crash)
        fine = program.run(b"0")
        assert (fine.stack, fine.fault()) == ((), None)


def test_a_program_that_handles_its_signals_is_left_alone(build: Build) -> None:
    with Program([build(SITES, "-w")], fork_server=True) as program:
        run = program.run(b"6")
        assert (run.status, run.signal, run.fault()) == (11, 0, None)


def test_a_crash_in_a_library_names_its_functions(build: Build) -> None:
    source = "int *volatile p;\nint inner(void) {\n  return *p;\n}\nint outer(void) {\n"
    source += "  return inner() + 1;\n}\n"
    build(source, "-shared", "-fPIC", name="libcrash.so")
    main = "int outer(void);\nint main(void) {\n  return outer();\n}\n"
    program = build(main, "-L.", "-l:libcrash.so", "-Wl,-rpath,$ORIGIN")
    with Program([program]) as crashes:
        assert signature(crashes.run(b"")) == "SIGSEGV [inner < outer]"


def test_what_is_printed_before_the_first_test_is_of_no_test(build: Build) -> None:
    source = """\
#include <stdio.h>
__attribute__((constructor)) static void begin(void) {
  fprintf(stderr, "begin\\n");
}
int main(void) {
  fprintf(stderr, "test\\n");
  return 0;
}
"""
    with Program([build(source)], fork_server=True) as program:
        assert [program.run(b"").stderr for _ in range(2)] == [b"test\n"] * 2


def test_two_crashes_of_one_program_are_two_faults(build: Build) -> None:
    build(SITES, "-w")
    Path("gen.py").write_text(
        "from swarmtest import generator\n"
        "from swarmtest.coverage import Program\n"
        "program = Program(['./prog'], fork_server=True)\n"
        "@generator(features=['odd', 'even'], run=program)\n"
        "def numbers(rng, features) -> str:\n"
        "    return rng.choice([*'1' * ('odd' in features), *'2' * ('even' in features)])\n"
    )
    outcome = Campaign("gen.py", "coin", 40, seed=1, workers=1, store="gen.db").run()
    assert {fault.signature for fault in outcome.faults} == {EXPECTED[b"1"], EXPECTED[b"2"]}
