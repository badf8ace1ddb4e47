"""Running a native program: its input, its output, its end; with no coverage in the way."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from native_programs import has_ended

from swarmtest.core.errors import UserError
from swarmtest.coverage.native.program import Program, ProgramRun
from swarmtest.processes.commands import OUTPUT_LIMIT


def python(program: str, *words: str, **options: object) -> Program:
    return Program([sys.executable, "-c", program, *words], coverage="none", **options)  # type: ignore[arg-type]


def test_the_input_comes_on_standard_input_or_in_a_file() -> None:
    with (
        Program(["cat"], coverage="none") as by_input,
        Program(["cat", "{test}"], coverage="none") as by_file,
    ):
        for data in (b"one", b"", b"\0\xff two"):
            assert by_input.run(data).stdout == by_file.run(data).stdout == data


def test_the_file_can_have_an_ending() -> None:
    with Program(["echo", "--in={test}"], coverage="none", suffix=".c") as echo:
        assert echo.run(b"").stdout.startswith(b"--in=/")
        assert echo.run(b"").stdout.endswith(b"test.c\n")


def test_a_run_can_have_arguments_of_its_own() -> None:
    with Program(["echo", "a"], coverage="none") as echo:
        assert echo.run(b"", ["b", "c"]).stdout == b"a b c\n"
        assert echo.run(b"").stdout == b"a\n"


def test_big_input_that_is_not_read_and_big_output_do_no_harm() -> None:
    data = b"x" * 5_000_000
    with Program(["true"], coverage="none") as ignores, Program(["cat"], coverage="none") as cat:
        assert ignores.run(data).status == 0
        assert cat.run(data).stdout == data[:OUTPUT_LIMIT]


def test_output_without_end_is_cut_and_the_program_is_ended() -> None:
    with Program(["yes"], coverage="none", timeout=1) as endless:
        run = endless.run(b"")
        assert run.timed_out
        assert run.wall_seconds < 60
        assert len(run.stdout) == OUTPUT_LIMIT


def test_exit_status_signal_and_time_limit_are_told_apart() -> None:
    with python("import sys; sys.exit(int(input()))") as program:
        assert program.run(b"3").status == 3
    with python("import os; os.kill(os.getpid(), 11)") as program:
        assert (program.run(b"").status, program.run(b"").signal) == (None, signal.SIGSEGV)
    with Program(["sleep", "1000"], coverage="none", timeout=0.2) as program:
        assert program.run(b"").timed_out


def test_what_a_program_leaves_behind_is_ended(until: Callable[..., bool]) -> None:
    leaves = "import subprocess; print(subprocess.Popen(['sleep', '1000']).pid)"
    with python(leaves) as program:
        run = program.run(b"")
        assert run.wall_seconds < 60
        until(lambda: has_ended(int(run.stdout)), "the process that was left behind ends")


def test_time_is_measured() -> None:
    with python("import time; time.sleep(0.2); sum(range(3_000_000))") as program:
        run = program.run(b"")
        assert run.wall_seconds > 0.2
        assert 0 < run.cpu_seconds < 30


def test_memory_can_be_limited() -> None:
    with python("x = bytearray(10**10)", memory=1 << 30) as program:
        assert b"MemoryError" in program.run(b"").stderr


def test_environment_and_directory_are_the_users(tmp_path: Path) -> None:
    where = "import os; print(os.environ['COLOUR'], os.getcwd())"
    with python(where, env={"COLOUR": "blue"}, cwd=tmp_path) as program:
        assert program.run(b"").stdout.decode().split() == ["blue", str(tmp_path.resolve())]


def test_without_coverage_hits_are_missing_not_empty() -> None:
    with Program(["true"], coverage="none") as program:
        run = program.run(b"")
        assert (run.hits, run.missing) == (None, "coverage is off")


def test_nothing_is_left_in_the_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Program(["cat", "{test}"], coverage="none") as cat:
        cat.run(b"x")
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("run", "kind", "signature"),
    [
        (ProgramRun(0, stderr=b"warning: x"), None, None),
        (ProgramRun(1), None, None),
        (ProgramRun(None, signal=9, timed_out=True), "timeout", "timeout"),
        (ProgramRun(None, signal=8), "signal", "SIGFPE"),
        (
            ProgramRun(None, signal=6, stderr=b"prog: a.c:7: f: Assertion `n > 3' failed.\n"),
            "signal",
            "SIGABRT: Assertion `n > 3' failed in f (a.c)",
        ),
        (
            ProgramRun(
                1, stderr=b"==9==\nSUMMARY: AddressSanitizer: heap-use-after-free /x/a.c:3 in f\n"
            ),
            "exit",
            "AddressSanitizer: heap-use-after-free [f]",
        ),
        (
            ProgramRun(0, stderr=b"a.c:3:9: runtime error: shift exponent 77 is too large\n"),
            "exit",
            "UndefinedBehaviorSanitizer: shift exponent # is too large (a.c)",
        ),
    ],
)
def test_the_same_bug_has_the_same_signature(
    run: ProgramRun, kind: str | None, signature: str | None
) -> None:
    fault = run.fault()
    assert (fault and fault.kind, fault and fault.signature) == (kind, signature)


def test_a_command_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match=r"no program '\./missing'"):
        Program(["./missing"], coverage="none")
    with pytest.raises(UserError, match="no program ''"):
        Program([], coverage="none")


def test_a_file_that_cannot_be_executed_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "broken"
    script.write_text("#!/nowhere/interpreter\n")
    script.chmod(0o755)
    with (
        Program([script], coverage="none") as program,
        pytest.raises(UserError, match=r"cannot start .*broken: No such file or directory"),
    ):
        program.run(b"")


def test_a_program_that_was_closed_does_not_run() -> None:
    with Program(["true"], coverage="none") as program:
        program.run(b"")
    with pytest.raises(UserError, match="this Program was closed"):
        program.run(b"")


def test_coverage_has_to_be_one_of_the_known_ways() -> None:
    with pytest.raises(UserError, match=r"no such coverage: 'gconv'; did you mean 'gcov'"):
        Program(["true"], coverage="gconv")
