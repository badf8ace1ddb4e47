"""The fork server: the program starts once; every test is a fork of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from native_programs import ABORT, CLASSIFY, HANG, KILL, NEGATIVE, Build, has_ended, lines

from swarmtest.core.errors import UserError
from swarmtest.coverage.native.program import Program

BOTH = pytest.mark.parametrize("compiler", ["gcc", "clang"])


@BOTH
def test_a_fork_gives_what_a_new_process_gives(build: Build, compiler: str) -> None:
    program = build(CLASSIFY, compiler=compiler)
    inputs = [b"1", b"-1", b"13", b"1", b"17", b"x", b"23", b"-1"]
    with Program([program]) as fresh, Program([program], fork_server=True) as forked:
        for data in inputs:
            one, other = fresh.run(data), forked.run(data)
            assert (one.status, one.signal, one.stdout) == (
                other.status,
                other.signal,
                other.stdout,
            )
            assert lines(one) == lines(other)


def test_what_runs_before_main_counts_for_every_test(build: Build) -> None:
    source = """\
static int ready;
__attribute__((constructor)) static void prepare(void) {
  ready = 1;
}
int main(void) {
  return !ready;
}
"""
    with Program([build(source)], fork_server=True) as program:
        assert all({3, 6} <= lines(program.run(b"")) for _ in range(3))


def test_a_test_that_hangs_is_ended_and_the_next_one_runs(build: Build) -> None:
    with Program([build(CLASSIFY)], fork_server=True, timeout=2) as classify:
        run = classify.run(b"19")
        assert run.timed_out
        assert run.signal == signal.SIGKILL
        assert HANG in lines(run)
        assert classify.run(b"5").stdout == b"1\n"


def test_the_input_may_be_a_file(build: Build) -> None:
    source = """\
#include <stdio.h>
int main(int n, char **words) {
  FILE *file = fopen(words[1], "r");
  int c = fgetc(file);
  putchar(c);
  return 0;
}
"""
    with Program([build(source), "{test}"], fork_server=True) as program:
        assert [program.run(data).stdout for data in (b"a", b"bcd", b"e")] == [b"a", b"b", b"e"]


def test_big_input_and_output_pass_through(build: Build) -> None:
    source = "#include <stdio.h>\nint main(void) {\n  for (int c; (c = getchar()) != EOF;)\n"
    source += "    putchar(c);\n  return 0;\n}\n"
    data = bytes(range(256)) * 3000
    with Program([build(source, "-O2")], fork_server=True) as cat:
        assert cat.run(data).stdout == data
        assert cat.run(b"small").stdout == b"small"


def test_what_a_test_leaves_behind_is_ended(build: Build, until: Callable[..., bool]) -> None:
    source = """\
#include <stdio.h>
#include <unistd.h>
int main(void) {
  pid_t child = fork();
  if (child == 0)
    sleep(1000);
  printf("%d", (int)child);
  return 0;
}
"""
    with Program([build(source)], fork_server=True) as program:
        left = int(program.run(b"").stdout)
        until(lambda: has_ended(left), "the process that was left behind ends")


def test_a_server_that_was_killed_is_replaced(build: Build) -> None:
    source = """\
#include <stdio.h>
#include <unistd.h>
int main(void) {
  printf("%d", (int)getppid());
  return 0;
}
"""
    with Program([build(source)], fork_server=True) as program:
        first = int(program.run(b"").stdout)
        assert int(program.run(b"").stdout) == first
        os.kill(first, signal.SIGKILL)
        run = program.run(b"")
        assert int(run.stdout) != first
        assert 4 in lines(run)


def test_a_forked_process_starts_a_server_of_its_own(build: Build) -> None:
    with Program([build(CLASSIFY)], fork_server=True) as classify:
        classify.run(b"1")
        pid = os.fork()
        if pid == 0:
            correct = all(NEGATIVE in lines(classify.run(b"-1")) for _ in range(20))
            classify.close()
            os._exit(0 if correct else 1)
        ours = [lines(classify.run(b"1")) for _ in range(20)]
        assert os.waitpid(pid, 0)[1] == 0
        assert all(NEGATIVE not in reached for reached in ours)


def test_a_server_needs_no_coverage(build: Build) -> None:
    with Program([build(CLASSIFY)], coverage="none", fork_server=True) as classify:
        run = classify.run(b"-7")
        assert (run.stdout, run.hits, run.missing) == (b"-1\n", None, "coverage is off")


def test_a_program_may_ignore_the_end_of_its_children(build: Build) -> None:
    source = """\
#include <signal.h>
#include <stdio.h>
__attribute__((constructor)) static void prepare(void) {
  signal(SIGCHLD, SIG_IGN);
}
int main(void) {
  puts(signal(SIGCHLD, SIG_DFL) == SIG_IGN ? "ignored" : "not ignored");
  return 0;
}
"""
    with Program([build(source)], fork_server=True) as program:
        assert [program.run(b"").stdout for _ in range(3)] == [b"ignored\n"] * 3


PERSISTENT = """\
#include <stdio.h>
#include <stdlib.h>
int swarmtest_next(void);
static int started;
int main(void) {
  started++;
  while (swarmtest_next()) {
    int x = 0, read = scanf("%d", &x);
    if (x == 13)
      abort();
    printf("%d %d %d\\n", x, read, started++);
  }
  return 0;
}
"""


def test_one_process_may_run_several_tests(build: Build) -> None:
    with Program([build(PERSISTENT)], persistent=3) as program:
        printed = [program.run(b"%d" % number).stdout.split() for number in range(7)]
        assert [int(words[0]) for words in printed] == [0, 1, 2, 3, 4, 5, 6]
        assert [int(words[2]) for words in printed] == [1, 2, 3, 1, 2, 3, 1]


def test_tests_of_one_process_have_hits_of_their_own(build: Build) -> None:
    with Program([build(PERSISTENT)], persistent=100) as program:
        runs = [program.run(data) for data in (b"1", b"13", b"1", b"2")]
        assert runs[1].signal == signal.SIGABRT
        assert [10 in lines(run) for run in runs] == [False, True, False, False]
        assert lines(runs[0]) == lines(runs[2]) == lines(runs[3])


def test_a_persistent_program_runs_once_without_swarmtest(build: Build) -> None:
    with Program([build(PERSISTENT)]) as program:
        assert program.run(b"4").stdout == b"4 1 1\n"


def test_a_program_that_cannot_serve_is_refused(build: Build) -> None:
    plain = build(CLASSIFY, wrapped=False)
    with (
        Program([plain], coverage="none", fork_server=True) as classify,
        pytest.raises(UserError, match=r"did not start as a fork server: .* built with swarmtest"),
    ):
        classify.run(b"1")
    with (
        Program([build(CLASSIFY)], persistent=10) as classify,
        pytest.raises(UserError, match=r"did not start as a fork server: .*swarmtest_next"),
    ):
        classify.run(b"1")


def test_a_server_has_one_command_line(build: Build) -> None:
    with (
        Program([build(CLASSIFY)], fork_server=True) as classify,
        pytest.raises(UserError, match="a fork server has one command line"),
    ):
        classify.run(b"1", ["--more"])


@BOTH
def test_crash_after_crash_keeps_its_coverage(build: Build, compiler: str) -> None:
    with Program([build(CLASSIFY, compiler=compiler)], fork_server=True) as classify:
        for _ in range(10):
            assert ABORT in lines(classify.run(b"13"))
            assert KILL in lines(classify.run(b"17"))
