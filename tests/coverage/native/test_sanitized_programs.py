"""Programs that were built with sanitizers, and programs that should have been."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from native_programs import Build, lines, need, signature

from swarmtest import Campaign, Machine, action
from swarmtest.campaign import Limits
from swarmtest.coverage.native.compiler import compiler_command
from swarmtest.coverage.native.program import Program
from swarmtest.processes.perturbation import perturbed_memory

BOTH = pytest.mark.parametrize("compiler", ["gcc", "clang"])

WORKS = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char *keep(int size) {
  char *block = malloc(size);
  memset(block, 1, size);
  return block;
}
int main(void) {
  int x = 0;
  char *small = keep(8), *volatile big;
  if (scanf("%d", &x) != 1)
    return 2;
  if (x == 1)
    free(small);
  if (x < 3)
    printf("%d\\n", small[2]);
  if (x == 4)
    return x << 40;
  while (x == 5)
    big = keep(1 << 22);
  return 0;
}
"""
"""1 reads freed memory, 4 shifts too far, 5 takes memory without end."""


@pytest.fixture
def sanitized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Build a program with ``swarmtest cc --sanitize address,undefined``."""
    monkeypatch.chdir(tmp_path)

    def make(source: str, compiler: str = "gcc", sanitize: str = "address,undefined") -> Path:
        need(compiler, "addr2line")
        (tmp_path / "prog.c").write_text(source)
        words = [compiler, "-o", "prog", "prog.c"]
        subprocess.run(compiler_command(words, sanitize), check=True)
        return tmp_path / "prog"

    return make


@BOTH
@pytest.mark.parametrize("server", [False, True])
def test_a_report_names_the_error_and_its_functions(
    sanitized: Build, compiler: str, server: bool
) -> None:
    with Program([sanitized(WORKS, compiler)], fork_server=server) as program:
        assert program.run(b"2").fault() is None
        freed = program.run(b"1")
        assert "heap-use-after-free" in signature(freed)
        assert "[main]" in signature(freed)
        assert 16 in lines(freed)
        shifted = program.run(b"4")
        assert "shift" in signature(shifted)
        assert shifted.status != 4  # it ended at its first error


@BOTH
@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize("memory", ["auto", 1 << 30])
def test_a_sanitized_program_runs_in_a_machine(
    sanitized: Build, compiler: str, server: bool, memory: int | str, tmp_path: Path
) -> None:
    program = Program([sanitized(WORKS, compiler)], fork_server=server)

    class Runner(Machine):
        steps = 1

        @action
        def run(self) -> None:
            run = program.run(b"1")
            self.cover(run)
            assert run.fault() is None, signature(run)

    store = str(tmp_path / "run.db")
    limits = Limits(memory=memory)
    outcome = Campaign(Runner, "default", 3, workers=1, store=store, limits=limits).run()
    (fault,) = outcome.faults
    assert "heap-use-after-free" in fault.signature


@pytest.mark.parametrize("server", [False, True])
def test_a_sanitized_program_is_ended_when_it_holds_too_much(
    sanitized: Build, server: bool
) -> None:
    with Program([sanitized(WORKS)], fork_server=server, memory=200 << 20) as program:
        run = program.run(b"5")
        assert run.out_of_memory
        assert not run.timed_out
        assert signature(run) == "out of memory"
        assert 21 in lines(run)
        assert program.run(b"2").fault() is None


def test_the_limit_of_a_worker_is_the_limit_of_a_sanitized_program(
    sanitized: Build, tmp_path: Path
) -> None:
    program = Program([sanitized(WORKS)], timeout=60)

    class Runner(Machine):
        steps = 1

        @action
        def run(self) -> None:
            run = program.run(b"5")
            assert not run.out_of_memory, "too much"

    store = str(tmp_path / "run.db")
    limits = Limits(memory=256 << 20)
    outcome = Campaign(Runner, "default", 1, workers=1, store=store, limits=limits).run()
    assert ["too much" in fault.signature for fault in outcome.faults] == [True]


def test_a_program_without_sanitizer_has_its_address_space_limited(build: Build) -> None:
    source = """\
#include <stdlib.h>
int main(void) {
  char *volatile block = malloc(1 << 30);
  return block ? 0 : 3;
}
"""
    with Program([build(source)], memory=200 << 20, fork_server=True) as program:
        run = program.run(b"")
        assert (run.status, run.out_of_memory) == (3, False)


@BOTH
def test_a_program_that_is_run_by_hand_has_the_options(sanitized: Build, compiler: str) -> None:
    leaks = "#include <stdlib.h>\nint main(void) {\n  return malloc(8) == 0;\n}\n"
    program = sanitized(leaks, compiler)
    clean = {"PATH": "/usr/bin:/bin"}
    assert subprocess.run([program], env=clean, check=False).returncode == 0
    shown = subprocess.run(
        [program], env=clean | {"ASAN_OPTIONS": "help=1"}, capture_output=True, check=False
    )
    assert b"detect_stack_use_after_return" in shown.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("adress", "no sanitizer 'adress'; did you mean 'address'?"),
        ("address,thread", "--sanitize: address and thread cannot be in one program"),
        (",", "--sanitize needs one or more of address, undefined, memory, thread, leak"),
    ],
)
def test_a_wrong_sanitizer_gets_one_line(words: str, message: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "swarmtest", "cc", "--sanitize", words, "gcc", "a.c"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_freed_memory_is_filled_while_memory_is_perturbed(build: Build) -> None:
    source = """\
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  unsigned char *block = malloc(100), *volatile freed = block;
  block[50] = 7;
  free(block);
  printf("%d", freed[50]);
  return 0;
}
"""
    program = Program([build(source, "-w")])
    assert program.run(b"").stdout == b"7"
    program.close()
    with perturbed_memory() as perturbed, Program([build(source, "-w")]) as program:
        assert perturbed
        assert program.run(b"").stdout == b"165"


MACHINE = """\
from swarmtest import Machine, action
from swarmtest.coverage import Program

program = Program(["./prog"], coverage="none")


class Cells(Machine):
    steps = 12

    def start(self):
        self.words = ""

    def send(self, word):
        self.words += word
        run = program.run(self.words.encode())
        assert run.fault() is None, run.fault().signature

    @action
    def release(self):
        self.send("f")

    @action
    def junk(self):
        self.send("j")

    @action
    def read(self):
        self.send("r")
"""
CELLS = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  char steps[100] = "";
  int *cell = malloc(64), freed = 0;
  cell[8] = 7;
  if (scanf("%99s", steps) != 1)
    return 0;
  for (char *step = steps; *step; step++) {
    if (*step == 'f' && !freed++)
      free(cell);
    if (*step == 'j')
      memset(malloc(64), 0, 64);
    if (*step == 'r' && cell[8] != 7)
      abort();
  }
  return 0;
}
"""


def test_reading_freed_memory_is_reduced_to_freeing_and_reading(build: Build) -> None:
    """Without perturbation, something else has to be written where the freed memory was."""
    build(CELLS, "-w")
    Path("cells.py").write_text(MACHINE)
    outcome = Campaign("cells.py", "default", 60, seed=1, workers=1, store="cells.db").run()
    (fault,) = outcome.faults
    words = [sys.executable, "-m", "swarmtest", "reduce", fault.id, "--store", "cells.db"]
    words += ["--coverage", "none", "-o", "small.json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    steps = json.loads(Path("small.json").read_text())["steps"]
    assert [action for action, _ in steps] == ["release", "read"]
    # It is replayed as it was reduced.
    words = [sys.executable, "-m", "swarmtest", "replay", "small.json", "--store", "cells.db"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "SIGABRT" in done.stdout
