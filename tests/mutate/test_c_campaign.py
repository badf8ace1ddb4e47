"""A C program and a campaign of its TOML file, as a user mutates them from the command line."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from c_programs import needs_gcc

pytest.importorskip("tree_sitter_c", reason="pip install 'swarmtest[c]'")
pytestmark = needs_gcc

PROGRAM = r"""
#include <stdio.h>
int main(void) {
  int c, sum = 0, last = 0;
  while ((c = getchar()) != EOF) {
    if (c == '+')
      sum += last;
    else if (c == '-')
      sum -= last;
    else
      last = c - '0';
  }
  printf("%d\n", sum);
  if (sum > 40)
    return 3;
  return 0;
}
"""
TOML = """
[generate]
command = "sh {here}/generate.sh {seed} {features}"

[features]
plus = "3+"
more = "7+"
minus = "2-"

[[steps]]
name = "sums"
run = "{here}/sums"
stdin = "{test}"
expect = [0, 3]

[mutate]
build = "gcc -O1 -o sums sums.c"
"""
GENERATE = """
seed=$1
shift
for i in 1 2 3 4 5 6 7 8; do
  seed=$(((seed * 1103515245 + 12345) % 65536))
  n=$((seed / 256 % ($# + 1)))
  [ $n = 0 ] && continue
  eval "echo \\$$n"
done
echo 0
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest) -> Path:
    place: Path = tmp_path_factory.mktemp("sums")
    (place / "sums.c").write_text(PROGRAM)
    (place / "sums.toml").write_text(TOML)
    (place / "generate.sh").write_text(GENERATE)
    subprocess.run(["gcc", "-o", "sums", "sums.c"], cwd=place, check=True)
    done = swarmtest("run", "sums.toml", "--tests", "60", "-s", "coin", cwd=place)
    assert done.returncode == 0, done.stderr
    done = swarmtest("mutate", "--tests", "12", cwd=place)
    assert done.returncode == 1, done.stderr
    (place / "mutate.txt").write_text(done.stdout)
    return place


def test_the_score_survivors_and_smallest_suite_are_told(place):
    text = (place / "mutate.txt").read_text()
    assert re.search(r"^\d\d% of \d+ mutants killed \(\d+\) by 12 tests$", text, re.MULTILINE)
    assert re.search(r"^  --- sums.c:\d+ main\n  -.*\n  \+", text, re.MULTILINE)
    assert re.search(r"^equivalent +\d+ +compile to the same code: left out$", text, re.MULTILINE)
    assert re.search(r"^\d+ tests? .* all that are killed: 1#", text, re.MULTILINE)
    assert re.search(r"^\d+ mutants? .* for all: ", text, re.MULTILINE)


def test_only_some_lines_and_operators_of_some_tests(place, swarmtest):
    done = swarmtest(
        *("mutate", "sums.c", "--lines", "sums.c:14", "--operators", "relational"),
        *("--first-kill", "--tests", "5", "--json"),
        cwd=place,
    )
    told = json.loads(done.stdout)
    assert {(one["line"], one["operator"]) for one in told["mutants"]} == {(14, "relational")}
    assert len(told["tests"]) == 5
    assert not told["complete"]


def test_only_what_was_changed_since_a_revision(place, swarmtest):
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for command in (["init", "-q"], ["add", "sums.c"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], cwd=place, check=True)
    (place / "sums.c").write_text(PROGRAM.replace("return 3", "return 2 + 1"))
    try:
        told = json.loads(swarmtest("mutate", "--diff", "HEAD", "--json", cwd=place).stdout)
    finally:
        (place / "sums.c").write_text(PROGRAM)
    assert {one["line"] for one in told["mutants"]} == {15}


def test_kills_have_roles(place, swarmtest):
    done = swarmtest("roles", "1", "--kind", "mutant", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "mutant:sums.c:9 " in done.stdout


def test_focus_aims_at_a_mutant(place, swarmtest):
    done = swarmtest("mutate", "--lines", "sums.c:9", "--json", cwd=place)
    mutant = json.loads(done.stdout)["mutants"][0]["id"]
    done = swarmtest("focus", "sums.toml", "--mutant", mutant, "--tests", "5", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 target aimed at" in done.stdout


@pytest.mark.parametrize("kept", ["mutants=2", "minimal-mutants=1"])
def test_a_passing_test_shrinks_to_what_kills_some_mutants(place, swarmtest, kept):
    killer = re.search(r"all that are killed: (1#\d+)", (place / "mutate.txt").read_text())
    assert killer
    test = killer[1]
    done = swarmtest("reduce", test, "--keep", kept, "--mutants", "20", cwd=place)
    assert done.returncode == 0, done.stderr
    sizes = re.search(r"from (\d+) lines to (\d+)", done.stdout)
    assert sizes
    before, after = sizes.groups()
    assert 0 < int(after) < int(before)


def test_python_files_are_no_part_of_it(place, swarmtest):
    done = swarmtest("mutate", "sums.py", cwd=place)
    assert done.returncode == 2
    assert "mutants are made of C files" in done.stderr
