"""The fast path: programs built with `swarmtest cc` say what each test reached."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from native_programs import ABORT, CLASSIFY, HANG, KILL, NEGATIVE, QUIT, Build, lines, need

from swarmtest.core.errors import UserError
from swarmtest.coverage.native.program import Program

BOTH = pytest.mark.parametrize("compiler", ["gcc", "clang"])


@BOTH
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_a_run_says_which_blocks_it_began(build: Build, compiler: str, level: str) -> None:
    program = build(CLASSIFY, level, compiler=compiler)
    with Program([program], sources=["prog.c"]) as classify:
        assert classify.coverage == "fast"
        assert ABORT in lines(classify.run(b"13"))
        assert ABORT not in lines(classify.run(b"1"))


def test_a_target_names_file_line_and_function_relative_to_the_project(build: Build) -> None:
    with Program([build(CLASSIFY)]) as classify:
        run = classify.run(b"-5")
        assert run.hits
        (target,) = (t for t in run.hits.targets() if t.line == NEGATIVE)
        assert (str(target), target.file, target.function) == ("line:prog.c:7", "prog.c", "sign")
        assert classify.catalogue.sources[target.source].text == CLASSIFY


@BOTH
def test_lines_that_no_test_reached_are_targets_too(build: Build, compiler: str) -> None:
    with Program([build(CLASSIFY, compiler=compiler)]) as classify:
        classify.run(b"1")
        assert {NEGATIVE, ABORT, KILL, QUIT} <= {t.line for t in classify.catalogue.targets}


@BOTH
def test_every_test_starts_from_nothing(build: Build, compiler: str) -> None:
    with Program([build(CLASSIFY, compiler=compiler)]) as classify:
        runs = [classify.run(data) for data in (b"1", b"-1", b"1", b"-1")]
        assert runs[0].hits == runs[2].hits
        assert runs[1].hits == runs[3].hits
        assert NEGATIVE in lines(runs[1]) - lines(runs[0])


@pytest.mark.parametrize(
    ("number", "line"), [(13, ABORT), (17, KILL), (23, QUIT)], ids=["abort", "killed", "_exit"]
)
def test_coverage_survives_the_program(build: Build, number: int, line: int) -> None:
    with Program([build(CLASSIFY)]) as classify:
        run = classify.run(b"%d" % number)
        assert line in lines(run)
        assert run.missing == ""


def test_coverage_of_a_test_that_hangs_is_there_too(build: Build) -> None:
    with Program([build(CLASSIFY)], timeout=1) as classify:
        run = classify.run(b"19")
        assert run.timed_out
        assert HANG in lines(run)


def test_what_a_fork_of_the_program_reaches_counts(build: Build) -> None:
    source = """\
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  if (fork() == 0)
    exit(3);
  wait(0);
  return 0;
}
"""
    with Program([build(source)]) as forks:
        assert {6, 7} <= lines(forks.run(b""))


def test_threads_may_reach_the_same_blocks_at_once(build: Build) -> None:
    source = """\
#include <pthread.h>
static volatile long sum;
static void *work(void *p) {
  for (int i = 0; i < 200000; i++)
    if (i % 3)
      sum++;
  return p;
}
int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], 0);
  return 0;
}
"""
    with Program([build(source, "-pthread")]) as threads:
        runs = [threads.run(b"") for _ in range(5)]
        assert all(run.status == 0 for run in runs)
        assert all(lines(run) == lines(runs[0]) for run in runs)
        assert 6 in lines(runs[0])


@BOTH
def test_a_shared_library_built_with_swarmtest_cc_counts(build: Build, compiler: str) -> None:
    library = "int twice(int x) {\n  if (x > 3)\n    return 2 * x;\n  return x;\n}\n"
    build(library, "-shared", "-fPIC", compiler=compiler, name="libtwice.so")
    source = "int twice(int);\nint main(int n, char **v) {\n  return twice(n) - 2;\n}\n"
    flags = ("-L.", "-l:libtwice.so", "-Wl,-rpath,$ORIGIN")
    with Program([build(source, *flags, compiler=compiler), "word"]) as program:
        run = program.run(b"")
        assert run.status == 0
        assert run.hits
        names = {target.name for target in run.hits.targets()}
        assert "libtwice.so.c:4" in names
        assert "libtwice.so.c:3" not in names
        assert "libtwice.so.c:3" in {target.name for target in program.catalogue.targets}
        assert {name.partition(":")[0] for name in names} == {"libtwice.so.c", "prog.c"}


def test_the_sources_that_matter_may_all_lie_in_a_library(build: Build) -> None:
    build("int one(void) {\n  return 1;\n}\n", "-shared", "-fPIC", name="libone.so")
    source = "int one(void);\nint main(void) {\n  return one() - 1;\n}\n"
    program = build(source, "-L.", "-l:libone.so", "-Wl,-rpath,$ORIGIN")
    with Program([program], sources=["libone.so.c"]) as ones:
        run = ones.run(b"")
        assert run.hits
        assert {target.file for target in run.hits.targets()} == {"libone.so.c"}


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_functions_of_cplusplus_have_their_names(build: Build, compiler: str) -> None:
    need("g++")
    source = """\
#include <string>
struct Stack {
  int size = 0;
  void push(int by) {
    if (by > 0)
      size += by;
  }
};
int main(int n, char **) {
  Stack stack;
  stack.push(n);
  return std::to_string(stack.size).size() - 1;
}
"""
    with Program([build(source, compiler=compiler)]) as program:
        run = program.run(b"")
        assert run.hits
        functions = {target.line: target.function for target in run.hits.targets()}
        assert functions[6] == "Stack::push(int)"
        assert {target.file for target in program.catalogue.targets} == {"prog.cc"}


@pytest.mark.parametrize("flags", [("-static",), ("-no-pie",), ("-O2", "-flto")], ids=" ".join)
def test_how_a_program_is_linked_does_not_matter(build: Build, flags: tuple[str, ...]) -> None:
    with Program([build(CLASSIFY, *flags)]) as classify:
        assert ABORT in lines(classify.run(b"13"))
        assert ABORT not in lines(classify.run(b"1"))


def test_a_sanitizer_can_be_there_as_well(build: Build) -> None:
    source = "int main(int n, char **v) {\n  int a[2] = {0};\n  return a[n + 1];\n}\n"
    with Program([build(source, "-fsanitize=address")]) as program:
        run = program.run(b"")
        fault = run.fault()
        assert fault
        assert fault.signature == "AddressSanitizer: stack-buffer-overflow [main]"
        assert 2 in lines(run)


@BOTH
def test_without_swarmtest_the_program_runs_as_ever(build: Build, compiler: str) -> None:
    program = build(CLASSIFY, "-O2", compiler=compiler)
    done = subprocess.run([program], input=b"-7", capture_output=True, env={})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"-1\n", b"")


def test_a_program_that_was_rebuilt_is_looked_at_anew(build: Build) -> None:
    with Program([build(CLASSIFY)]) as before:
        assert NEGATIVE in lines(before.run(b"-1"))
    with Program([build("\n" + CLASSIFY)]) as after:
        assert NEGATIVE + 1 in lines(after.run(b"-1"))


def test_only_the_sources_that_matter_are_targets(build: Build, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "half.h").write_text("static int half(int x) { return x / 2; }\n")
    program = build('#include "lib/half.h"\nint main(void) {\n  return half(1);\n}\n')
    with Program([program], sources=["lib"]) as halves:
        run = halves.run(b"")
        assert run.hits
        assert [target.name for target in run.hits.targets()] == ["lib/half.h:1"]


def test_sources_that_match_nothing_are_refused(build: Build) -> None:
    with (
        Program([build(CLASSIFY)], sources=["lib"]) as classify,
        pytest.raises(
            UserError, match=r"no source file of .*prog matches .*lib.*; it has .*prog.c"
        ),
    ):
        classify.run(b"1")


def test_a_stripped_program_is_refused(build: Build) -> None:
    need("strip")
    program = build(CLASSIFY)
    subprocess.run(["strip", program], check=True)
    with (
        Program([program]) as classify,
        pytest.raises(UserError, match=r"prog has no debug information: build it with -g"),
    ):
        classify.run(b"1")


def test_a_program_built_without_coverage_is_refused(build: Build) -> None:
    program = build(CLASSIFY, wrapped=False)
    with pytest.raises(UserError, match=r"prog was built without coverage: .*`swarmtest cc`"):
        Program([program])


def test_fast_coverage_of_a_program_that_has_none_is_refused(build: Build) -> None:
    program = build(CLASSIFY, wrapped=False)
    with (
        Program([program], coverage="fast") as classify,
        pytest.raises(UserError, match=r"wrote no coverage: build it.*`swarmtest cc`"),
    ):
        classify.run(b"1")


def test_a_script_around_the_program_may_be_run(build: Build, tmp_path: Path) -> None:
    build(CLASSIFY)
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n./prog\n")
    script.chmod(0o755)
    with Program([script], coverage="fast") as wrapped:
        assert NEGATIVE in lines(wrapped.run(b"-1"))


def test_two_programs_at_once_do_not_meet(build: Build) -> None:
    program = build(CLASSIFY)
    with Program([program]) as one, Program([program]) as other:
        assert NEGATIVE in lines(one.run(b"-1"))
        assert NEGATIVE not in lines(other.run(b"1"))


def test_a_forked_process_has_memory_of_its_own(build: Build) -> None:
    with Program([build(CLASSIFY)]) as classify:
        classify.run(b"1")
        pid = os.fork()
        if pid == 0:
            correct = NEGATIVE in lines(classify.run(b"-1"))
            os._exit(0 if correct else 1)
        ours = [lines(classify.run(b"1")) for _ in range(5)]
        assert os.waitpid(pid, 0)[1] == 0
        assert all(NEGATIVE not in reached for reached in ours)
