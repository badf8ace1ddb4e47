"""gcov: programs built with --coverage; what is missing is said, never taken for empty."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from native_programs import ABORT, CLASSIFY, NEGATIVE, Build, lines, need

from swarmtest.core.errors import UserError
from swarmtest.coverage.native.gcov import major_version
from swarmtest.coverage.native.program import Program


@pytest.fixture
def covered(build: Build) -> Path:
    """The example, built with --coverage."""
    need("gcov")
    return build(CLASSIFY, "--coverage", wrapped=False)


def test_a_run_says_which_lines_it_executed(covered: Path) -> None:
    with Program([covered]) as classify:
        assert classify.coverage == "gcov"
        run = classify.run(b"-1")
        assert lines(run) == {5, 6, 7, 10, 11, 12, 14, 16, 18, 21, 23, 24}
        assert lines(classify.run(b"1")) == {5, 6, 8, 10, 11, 12, 14, 16, 18, 21, 23, 24}
        assert ABORT in {target.line for target in classify.catalogue.targets}
        assert run.hits
        functions = {target.line: target.function for target in run.hits.targets()}
        assert (functions[NEGATIVE], functions[24]) == ("sign", "main")


def test_the_build_tree_stays_clean(covered: Path) -> None:
    with Program([covered]) as classify:
        classify.run(b"1")
    assert sorted(path.suffix for path in covered.parent.iterdir()) == ["", ".c", ".gcno"]


@pytest.mark.parametrize("level", ["-O0", "-O1"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_fast_path_names_lines_that_gcov_names_too(
    covered: Path, build: Build, compiler: str, level: str
) -> None:
    fast = build(CLASSIFY, level, compiler=compiler)
    with Program([fast]) as quick:
        blocks = {data: lines(quick.run(data)) for data in (b"1", b"-1", b"x")}
    slow = build(CLASSIFY, level, "--coverage", wrapped=False)
    with Program([slow]) as classify:
        for data, began in blocks.items():
            executed = lines(classify.run(data))
            # A block that begins at a closing brace is one that gcov does not count.
            known = {target.line for target in classify.catalogue.targets}
            assert began & known <= executed
            assert len(began & known) >= len(executed) / 4


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (17, "killed by signal 9, before it wrote coverage"),
        (19, "killed at its time limit, before it wrote coverage"),
        (23, r"ended \(exit status 4\) without writing coverage"),
    ],
)
def test_a_program_that_wrote_no_coverage_still_counts(build: Build, number: int, why: str) -> None:
    need("gcov")
    # Newer gcc writes coverage in _exit; a way out that no library sees is the same everywhere.
    source = CLASSIFY.replace("_exit(4)", "syscall(231, 4)").replace(
        "#include <unistd.h>", "#define _GNU_SOURCE\n#include <unistd.h>"
    )
    program = build(source, "--coverage", "-w", wrapped=False)
    with Program([program], timeout=2) as classify:
        run = classify.run(b"%d" % number)
        assert run.hits is None
        assert re.search(why, run.missing)
        assert classify.run(b"1").hits


def test_processes_in_parallel_do_not_meet(covered: Path) -> None:
    with Program([covered]) as classify:
        classify.run(b"1")
        children = []
        for data, has in ((b"-1", True), (b"1", False)):
            pid = os.fork()
            if pid == 0:
                runs = [classify.run(data) for _ in range(8)]
                correct = all((NEGATIVE in lines(run)) == has for run in runs)
                os._exit(0 if correct else 1)
            children.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]


def test_several_objects_are_read_in_one_go(build: Build, tmp_path: Path) -> None:
    need("gcov")
    (tmp_path / "half.c").write_text("int half(int x) {\n  return x / 2;\n}\n")
    source = "int half(int);\nint main(void) {\n  return half(1);\n}\n"
    program = build(source, "half.c", "--coverage", wrapped=False)
    with Program([program]) as halves, Program([program], sources=["half.c"]) as only_half:
        run, less = halves.run(b""), only_half.run(b"")
        assert run.hits
        assert less.hits
        assert {target.file for target in run.hits.targets()} == {"half.c", "prog.c"}
        assert [target.name for target in less.hits.targets()] == ["half.c:1", "half.c:2"]


def test_missing_notes_are_named(covered: Path) -> None:
    (notes,) = covered.parent.glob("*.gcno")
    notes.unlink()
    with (
        Program([covered]) as classify,
        pytest.raises(UserError, match=rf"{notes} is missing: build with --coverage .*objects="),
    ):
        classify.run(b"1")


def test_a_build_tree_that_was_moved_can_be_named(covered: Path, tmp_path: Path) -> None:
    (notes,) = covered.parent.glob("*.gcno")
    moved = tmp_path / "elsewhere" / "objects"
    moved.mkdir(parents=True)
    shutil.move(notes, moved / notes.name)
    with Program([covered], objects=tmp_path / "elsewhere") as classify:
        assert NEGATIVE in lines(classify.run(b"-1"))
    with (
        Program([covered], objects="/usr/include/linux") as classify,
        pytest.raises(UserError, match=r"no prog.*gcno below /usr/include/linux"),
    ):
        classify.run(b"1")


def test_notes_of_another_gcc_are_refused(covered: Path) -> None:
    (notes,) = covered.parent.glob("*.gcno")
    data = bytearray(notes.read_bytes())
    data[5:8] = b"29A"  # gcc 9.2, on a little-endian machine
    notes.write_bytes(data)
    with (
        Program([covered]) as classify,
        pytest.raises(UserError, match=r"written by gcc 9.2, but gcov is .*: install gcov-9"),
    ):
        classify.run(b"1")


def test_notes_of_another_build_are_refused(covered: Path, build: Build) -> None:
    kept = covered.read_bytes()
    build("\n" + CLASSIFY, "--coverage", wrapped=False)
    covered.write_bytes(kept)
    with (
        Program([covered]) as classify,
        pytest.raises(UserError, match=r"prog and its .gcno files are of different builds"),
    ):
        classify.run(b"1")


def test_clangs_notes_are_refused(build: Build) -> None:
    program = build(CLASSIFY, "-c", "--coverage", compiler="clang", wrapped=False)
    (notes,) = program.parent.glob("*.gcno")
    with pytest.raises(UserError, match=r"prog.gcno was written by clang.*`swarmtest cc clang`"):
        major_version(notes)


def test_a_crash_is_a_fault_and_its_coverage_is_missing(covered: Path) -> None:
    with Program([covered]) as classify:
        run = classify.run(b"13")
        assert run.signal == signal.SIGABRT
        fault = run.fault()
        assert fault
        assert fault.signature == "SIGABRT"
        assert run.hits is None
        assert run.missing == "killed by signal 6, before it wrote coverage"
