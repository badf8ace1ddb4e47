"""Changed lines of C are counted as they are: with code, without code, continuing a statement."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from native_programs import need

from swarmtest.coverage.native.compiler import compiler_command

BEFORE = """\
#include <stdio.h>
static int divide(int a, int b) {
  return a / (b + 1);
}
int main(void) {
  int a, b;
  if (scanf("%d %d", &a, &b) != 2)
    return 1;
  printf("%d\\n", divide(a, b));
  return 0;
}
"""
BODY = """\
  int unused;
  int quotient = a / (b + 1);
  /* what is left */
  int rest;
  rest = a % (b + 1);
  if (rest > 100) {
    printf("%d %d\\n",
           rest,
           quotient);
    return -1;
  } else {
    quotient += 0;
  }
  return quotient;
"""
MACHINE = """\
from swarmtest import Machine, action, integers
from swarmtest.coverage import Program

program = Program(["./calc"], fork_server=True)


class Calc(Machine):
    steps = 2

    @action(a=integers(0, 9), b=integers(0, 9))
    def divide(self, a, b):
        self.cover(program.run(f"{a} {b}".encode()))

    @action
    def nonsense(self):
        self.cover(program.run(b"?"))
"""


def swarmtest(*words: str) -> str:
    command = [sys.executable, "-m", "swarmtest", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def build() -> None:
    subprocess.run(compiler_command(["gcc", "-o", "calc", "calc.c"]), check=True)


def test_a_changed_line_of_c_is_hit_when_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("gcc", "addr2line")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWARMTEST_STORE", str(tmp_path / "calc.db"))
    Path("calc.c").write_text(BEFORE)
    Path("test_calc.py").write_text(MACHINE)
    build()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run([*git, "add", "calc.c", "test_calc.py"], check=True)
    subprocess.run([*git, "commit", "-qm", "before"], check=True)
    swarmtest("run", "test_calc.py", "--tests", "100", "--workers", "1")
    Path("calc.c").write_text(BEFORE.replace("  return a / (b + 1);\n", BODY))
    build()
    words = ("--diff", "HEAD", "--tests", "60", "--workers", "1", "--json")
    outcome = json.loads(swarmtest("focus", "test_calc.py", *words))
    hits = {
        target["target"].removeprefix("line:calc.c:"): sum(
            target[way]["hits"] for way in ("directed", "undirected", "default")
        )
        for target in outcome["targets"]
    }
    assert {line for line, count in hits.items() if count} >= {"4", "7", "8", "14", "16"}
    assert {line for line, count in hits.items() if not count} == {"9", "12"}
    assert not {"3", "5", "6", "10", "11", "13", "15"} & hits.keys()
    assert any("the compiler made no code of it" in text for text in outcome["unusable"])
