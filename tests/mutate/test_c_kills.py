"""Mutants of C programs that are really built and run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from c_programs import given_all, needs_gcc, outcomes, written

from swarmtest.core.errors import UserError
from swarmtest.mutate.kill_matrix import CRASHED, FAILED, NOT_RUN, PASSED, SLOW
from swarmtest.mutate.native.build import BuiltMutants
from swarmtest.mutate.native.generation import c_mutants_of
from swarmtest.mutate.native.kill_matrix import native_kill_matrix

pytest.importorskip("tree_sitter_c", reason="pip install 'swarmtest[c]'")
pytestmark = needs_gcc

READ = """\
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
  FILE *file = fopen(words[1], "r");
  int n = 0;
  if (fscanf(file, "%d", &n) != 1)
    return 9;
  {body}
  return 0;
}
"""


def reading(body: str) -> dict[str, str]:
    """A program that reads a number n."""
    return {"prog.c": READ.replace("{body}", body)}


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def nothing_is_left_behind(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    place = tmp_path_factory.mktemp("tmp")
    monkeypatch.setattr("tempfile.tempdir", str(place))
    yield
    assert [one for one in os.listdir(place) if "mutants" in one] == []


def test_a_mutant_is_killed_by_what_it_prints(tmp_path: Path) -> None:
    subject = written(tmp_path, reading('printf("%d", n + 2);'))
    matrix = native_kill_matrix(subject, given_all("2", "3"), operators="arithmetic")
    found = outcomes(matrix)
    assert found['printf("%d", n * 2);'] == [PASSED, FAILED]
    assert found['printf("%d", n - 2);'] == [FAILED, FAILED]
    assert matrix.score == 1


def test_a_mutant_is_killed_by_its_exit_status(tmp_path: Path) -> None:
    subject = written(tmp_path, reading("if (n > 3) return 7;"))
    matrix = native_kill_matrix(subject, given_all("3", "9"), operators="relational")
    assert outcomes(matrix)["if (n >= 3) return 7;"] == [FAILED, PASSED]


def test_a_mutant_is_killed_by_the_files_that_it_writes(tmp_path: Path) -> None:
    body = 'if (n > 3) fputs("more", fopen("out", "w"));'
    subject = written(tmp_path, reading(body))
    matrix = native_kill_matrix(subject, given_all("3", "9"), operators="relational")
    assert outcomes(matrix)[body.replace(">", "<")] == [PASSED, FAILED]


def test_a_mutant_that_crashes_and_one_that_never_ends_are_killed(tmp_path: Path) -> None:
    body = "if (n > 3)\n    abort();\n  while (n < 3)\n    putchar(n++);"
    subject = written(tmp_path, reading(body))
    matrix = native_kill_matrix(subject, given_all("2"), operators="negate,increments")
    found = outcomes(matrix)
    assert found["if (!(n > 3))"] == [CRASHED]
    assert found["putchar(n--);"] == [SLOW]
    assert [mutant.operator for mutant in matrix.endless] == ["increments"]


def test_a_test_runs_only_mutants_that_it_reaches(tmp_path: Path) -> None:
    subject = written(tmp_path, reading("if (n > 3)\n    return n - 1;"))
    matrix = native_kill_matrix(subject, given_all("1", "9"), operators="arithmetic")
    assert outcomes(matrix)["return n + 1;"] == [NOT_RUN, FAILED]
    assert matrix.reached.tolist() == [[False, True]] * len(matrix.mutants)


def test_mutants_that_compile_to_the_same_are_left_out(tmp_path: Path) -> None:
    body = "int unused = n + 1;\n  if (n * 1 == 2) return 1;"
    subject = written(tmp_path, reading(body))
    matrix = native_kill_matrix(subject, given_all("2"), operators="arithmetic")
    # Four of `unused`, and `n / 1`; n + 1 == 2 and n - 1 == 2 and n % 1 == 2 are something else.
    assert matrix.equivalent == 5
    assert len(matrix.mutants) + matrix.duplicate == 3


def test_mutants_that_do_not_compile_are_counted(tmp_path: Path) -> None:
    subject = written(tmp_path, reading("char *p = words[0] + n;\n  return *p;"))
    matrix = native_kill_matrix(subject, given_all("0"), operators="arithmetic")
    assert matrix.not_compiled == 3  # a pointer times, by and modulo a number
    assert [mutant.after.strip() for mutant in matrix.mutants] == ["char *p = words[0] - n;"]


def test_constants_that_the_compiler_needs_are_mutated_too(tmp_path: Path) -> None:
    subject = written(tmp_path, reading("static int table[] = {1, 0};\n  return table[n];"))
    (path,) = {mutant.path for mutant in c_mutants_of(tmp_path / "prog.c")}
    tests = given_all("0", "1")
    matrix = native_kill_matrix(subject, tests, operators="integers", lines={path: {8}})
    found = outcomes(matrix)
    assert found["static int table[] = {2, 0};"] == [FAILED, PASSED]
    assert found["static int table[] = {1, -1};"] == [PASSED, FAILED]


def test_one_program_with_all_mutants_tells_what_one_program_each_tells(tmp_path: Path) -> None:
    body = """\
  int sum = 0, i;
  for (i = 0; i < n && sum < 50; i++) {
    sum += i % 3 ? i << 1 : 7;
    if (sum == 9) { sum--; continue; } else sum ^= 1;
  }
  printf("%d", sum);"""
    subject = written(tmp_path, reading(body))
    operators = "logical,bitwise,negate,increments"
    mutants = c_mutants_of(tmp_path / "prog.c", operators)
    tests = list(given_all("0", "4", "9").values())
    with BuiltMutants(subject, mutants) as together:
        assert together.selectable == len(together.mutants) > 5
        at_once = [together.kills(test) for test in tests]
    with BuiltMutants(subject, mutants, one_by_one=True) as apart:
        assert apart.selectable == 0
        assert [apart.kills(test) for test in tests] == at_once
    assert [len(killed) for killed in at_once] == sorted(len(killed) for killed in at_once)


def test_an_else_behind_a_directive_does_no_harm(tmp_path: Path) -> None:
    """What the compiler says about the `else` has to do with the `if` before it."""
    body = "\n#ifndef A\n  if (n > 3)\n    return 1;\n  else\n#endif\n    return n + 4;"
    subject = written(tmp_path, reading(body))
    mutants = c_mutants_of(tmp_path / "prog.c", "arithmetic,relational,delete")
    with BuiltMutants(subject, mutants) as built:
        assert built.selectable >= 4
        (test,) = given_all("2").values()
        assert "return n - 4;" in {mutant.after.strip() for mutant in built.kills(test)}


def test_a_program_of_several_files_is_built_by_make(tmp_path: Path) -> None:
    files = {
        "prog.c": '#include "twice.h"\n' + READ.replace("{body}", "return twice(n) - 1;"),
        "twice.c": '#include "twice.h"\nint twice(int n) { return n + n; }\n',
        "twice.h": "int twice(int n);\n",
        "Makefile": (
            "prog: prog.o twice.o\n\t$(CC) -o prog prog.o twice.o\n"
            "%.o: %.c twice.h\n\t$(CC) -Wall -Werror -O2 -c $<\n"
        ),
    }
    subject = written(tmp_path, files, build="make prog")
    matrix = native_kill_matrix(subject, given_all("3"), operators="arithmetic")
    found = outcomes(matrix)
    assert found["return twice(n) + 1;"] == [FAILED]
    assert found["int twice(int n) { return n - n; }"] == [FAILED]
    assert {mutant.path.rpartition("/")[2] for mutant in matrix.mutants} == {"prog.c", "twice.c"}
    assert not (tmp_path / "prog").exists(), "it is built in a copy"


def test_nothing_is_compiled_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "calls"
    compiler = tmp_path / "bin" / "gcc"
    compiler.parent.mkdir()
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {shutil.which("gcc")} "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{compiler.parent}:{os.environ['PATH']}")
    subject = written(tmp_path, reading("return n + 2 < 9;"))

    def compilations() -> int:
        log.unlink(missing_ok=True)
        native_kill_matrix(subject, given_all("3"), operators="arithmetic,relational")
        return sum(" -O3 " in line for line in log.read_text().splitlines())

    assert compilations() > 10
    assert compilations() == 1  # the program itself


def test_a_test_that_never_ends_the_same_way_is_left_out(tmp_path: Path) -> None:
    body = 'if (n > 3) { FILE *r = fopen("/dev/urandom", "r"); while (n--) printf("%d", getc(r)); }'
    subject = written(tmp_path, reading(body))
    matrix = native_kill_matrix(subject, given_all("2", "30"), operators="relational")
    assert matrix.tests == ("2",)
    assert list(matrix.left_out.values()) == [("30",)]


def test_a_sample_is_of_mutants_that_are_worth_running(tmp_path: Path) -> None:
    subject = written(tmp_path, reading("int unused = n + 1 - 2 * 3;\n  return n * 4 + 5 - 6;"))
    matrix = native_kill_matrix(subject, given_all("3"), sample=5, operators="arithmetic")
    assert len(matrix.mutants) == 5
    assert matrix.population > 5
    low, high = matrix.interval()
    assert low < matrix.score <= high


@pytest.mark.parametrize(
    ("build", "mutate", "said"),
    [
        ("", "", r"say how it is built: a table \[mutate\]"),
        ("gcc -o prog gone.c", "", "build failed without a mutant: .*gone.c"),
        ("true", "", "does not compile it with a compiler that is called by its name"),
        ("sleep 1000", "seconds = 0.5", r"build failed without a mutant: not done after 0.5 s"),
        ("gcc -o prog prog.c", 'files = ["src/*.c"]', r"no file is called src/\*\.c"),
        ("gcc -o other prog.c", "", "no step runs what .* builds"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    tmp_path: Path, build: str, mutate: str, said: str
) -> None:
    written(tmp_path, reading("return n;"))
    shutil.copy(shutil.which("true") or "", tmp_path / "prog")
    subject = written(tmp_path, {}, build=build, mutate=mutate)
    with pytest.raises(UserError, match=said) as error:
        native_kill_matrix(subject, given_all("3"), operators="integers")
    assert "\n" not in str(error.value)


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    subject = written(tmp_path, {**reading("return n;"), "other.c": "int other = 1;\n"})
    with pytest.raises(UserError, match=r"other.c: the build of prog.toml does not compile it"):
        native_kill_matrix(subject, given_all("3"), [str(tmp_path / "other.c")])


def test_a_mutant_of_a_file_that_was_changed_since_is_refused(tmp_path: Path) -> None:
    subject = written(tmp_path, reading("return n + 1;"))
    mutants = c_mutants_of(tmp_path / "prog.c", "arithmetic")
    written(tmp_path, reading("return n;"))
    with pytest.raises(UserError, match="no longer exists: the file was changed since"):
        BuiltMutants(subject, mutants)
