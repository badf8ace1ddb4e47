"""`swarmtest cc` behaves as the compiler that it wraps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from native_programs import CLASSIFY, NEGATIVE, lines, need

from swarmtest.core.errors import UserError
from swarmtest.coverage.native.compiler import compiler_command
from swarmtest.coverage.native.program import Program

WRAPPER = """
import sys
from swarmtest.ui.commands.cc import cc
from swarmtest.core.errors import UserError
try:
    cc.main(sys.argv[1:], prog_name="swarmtest cc", standalone_mode=False)
except UserError as error:
    sys.exit(f"swarmtest: {error}")
"""
Compile = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compile:
    """Run ``swarmtest cc`` in a directory with an example."""
    need("gcc", "addr2line")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.c").write_text(CLASSIFY)
    return lambda *words: subprocess.run(
        [sys.executable, "-c", WRAPPER, *words], capture_output=True, text=True
    )


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compiling_and_linking_can_be_two_commands(cc: Compile, compiler: str) -> None:
    need(compiler)
    assert cc(compiler, "-O1", "-c", "prog.c").returncode == 0
    done = cc(compiler, "-o", "prog", "prog.o")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with Program(["./prog"]) as classify:
        assert classify.coverage == "fast"
        assert classify.run(b"-1").stdout == b"-1\n"


def test_it_can_stand_for_cc_in_a_build(cc: Compile, tmp_path: Path) -> None:
    need("make")
    wrapper = tmp_path / "wrapper.py"
    wrapper.write_text(WRAPPER)
    (tmp_path / "Makefile").write_text("prog: prog.o\n\t$(CC) -o prog prog.o\n")
    subprocess.run(["make", "-s", f"CC={sys.executable} {wrapper} gcc"], check=True)
    with Program(["./prog"]) as classify:
        assert NEGATIVE in lines(classify.run(b"-1"))


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("-dumpmachine",),
        ("-E", "-P", "prog.c"),
        ("-print-prog-name=ld",),
        ("-fsyntax-only", "prog.c"),
    ],
    ids=" ".join,
)
def test_what_does_not_link_is_the_compilers_own_business(
    cc: Compile, words: tuple[str, ...]
) -> None:
    done = cc("gcc", *words)
    plain = subprocess.run(["gcc", *words], capture_output=True, text=True)
    assert done.returncode == plain.returncode == 0
    assert done.stderr == plain.stderr
    assert done.stdout == plain.stdout


def test_errors_of_the_compiler_come_through(cc: Compile, tmp_path: Path) -> None:
    (tmp_path / "wrong.c").write_text("int main(void) { return x; }\n")
    done = cc("gcc", "-o", "wrong", "wrong.c")
    assert done.returncode == 1
    assert "wrong.c:1:" in done.stderr


def test_source_on_standard_input_can_be_compiled(tmp_path: Path, cc: Compile) -> None:
    command = [sys.executable, "-c", WRAPPER, "gcc", "-x", "c", "-o", "prog", "-"]
    subprocess.run(command, input=CLASSIFY, text=True, check=True)
    with Program(["./prog"]) as classify:
        assert classify.run(b"5").stdout == b"1\n"


def test_code_can_know_that_it_is_built_for_swarmtest(cc: Compile, tmp_path: Path) -> None:
    (tmp_path / "knows.c").write_text("int main(void) { return SWARMTEST - 1; }\n")
    assert cc("gcc", "-o", "knows", "knows.c").returncode == 0
    assert subprocess.run(["./knows"]).returncode == 0


def test_a_compiler_that_is_not_there_is_named(cc: Compile) -> None:
    done = cc("no-such-cc", "-o", "prog", "prog.c")
    assert done.stderr == (
        "swarmtest: no compiler 'no-such-cc' on the PATH: install it, or name another\n"
    )


def test_something_that_is_no_compiler_is_refused(cc: Compile) -> None:
    assert "true is neither gcc nor clang" in cc("true", "prog.c").stderr


def test_a_missing_compiler_name_is_explained(cc: Compile) -> None:
    assert "needs a compiler: swarmtest cc gcc -o prog prog.c" in cc("-o", "prog").stderr
    assert "needs a compiler" in cc().stderr


def test_help_shows_examples(cc: Compile) -> None:
    assert 'CC="swarmtest cc gcc" ./configure && make' in cc("--help").stdout


def test_other_systems_are_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError, match="works on Linux only"):
        compiler_command(["gcc", "-c", "a.c"])
