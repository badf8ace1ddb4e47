"""Libraries that Python calls in its own process, and harnesses of libFuzzer."""

from __future__ import annotations

import ast
import ctypes
import gc
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from native_programs import Build, lines, need, signature

from swarmtest import Campaign, Machine, action, integers, swarm
from swarmtest.core.errors import UserError
from swarmtest.core.targets import Catalogue, Hits
from swarmtest.coverage.native.collector import LineNumbers
from swarmtest.coverage.native.compiler import compiler_command
from swarmtest.coverage.native.library import Library
from swarmtest.coverage.native.program import Program
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.store import open_store

BOTH = pytest.mark.parametrize("compiler", ["gcc", "clang"])

LIBRARY = """\
#include <stdlib.h>
int classify(int x) {
  int result = 0;
  for (int i = 0; i < 3; i++)
    result += i;
  if (x < 0)
    return -1;
  if (x == 13)
    abort();
  return result;
}
"""
NEGATIVE, ABORT, POSITIVE = 7, 9, 10


def library(build: Build, compiler: str = "gcc", *flags: str) -> Library:
    path = build(LIBRARY, "-shared", "-fPIC", *flags, compiler=compiler, name=f"lib{compiler}.so")
    return Library(path)


def reached(hits: Hits) -> set[int]:
    return {target.line for target in hits.targets()}


@BOTH
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_call_says_what_it_reached(build: Build, compiler: str, level: str) -> None:
    classify = library(build, compiler, level)
    assert classify.functions.classify(5) == 3
    here = reached(classify.hits)
    assert 8 in here
    assert NEGATIVE not in here
    classify.functions.classify(-5)
    assert reached(classify.hits) != here
    assert reached(classify.hits) == set()
    assert {8, ABORT} <= {target.line for target in classify.catalogue.targets}


@BOTH
def test_every_call_reports_again(build: Build, compiler: str) -> None:
    classify = library(build, compiler)
    classify.functions.classify(5)
    first = reached(classify.hits)
    for _ in range(20):
        classify.functions.classify(5)
        assert reached(classify.hits) == first


def test_a_fork_has_hits_of_its_own(build: Build) -> None:
    classify = library(build)
    pid = os.fork()
    if pid == 0:
        classify.functions.classify(-1)
        os._exit(0 if NEGATIVE in reached(classify.hits) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert reached(classify.hits) == set()


def test_a_machine_covers_a_library_and_survives_its_crashes(build: Build) -> None:
    classify = library(build)

    class Caller(Machine):
        steps = 5

        @action(x=integers(-20, 20))
        def call(self, x: int) -> None:
            classify.functions.classify(x)
            self.cover(classify)

    outcome = Campaign(Caller, "default", 60, seed=1, workers=2, store="calls.db").run()
    assert ["SIGABRT" in fault.signature for fault in outcome.faults] == [True]
    with open_store("calls.db") as store:
        known = store.watched_targets(1)
        hit = {
            known[id].line for block in store.blocks(1) for ids in block.hits.sets() for id in ids
        }
        assert {NEGATIVE, POSITIVE} <= hit
        crashes = [trial for trial in store.trials(1) if trial.fault]
        assert all(trial.missing for trial in crashes)


def test_an_own_loop_covers_a_library(build: Build) -> None:
    classify = library(build)
    for trial in swarm(["negative"], tests=3, store=":memory:"):
        classify.functions.classify(-3)
        trial.cover(classify)
        trial.record()
        assert trial.result is not None
        assert NEGATIVE in reached(trial.result.covered[0])


EXTENSION = """\
#include <Python.h>
static PyObject *half(PyObject *self, PyObject *number) {
  long value = PyLong_AsLong(number);
  if (value % 2)
    Py_RETURN_NONE;
  return PyLong_FromLong(value / 2);
}
static PyMethodDef methods[] = {{"half", half, METH_O, ""}, {0, 0, 0, 0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "halves", 0, -1, methods};
PyMODINIT_FUNC PyInit_halves(void) {
  return PyModule_Create(&module);
}
"""


def test_an_extension_module_is_a_library(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    import sysconfig

    headers = sysconfig.get_paths()["include"]
    if not Path(headers, "Python.h").exists():
        pytest.skip("needs Python's header files: apt-get install python3-dev")
    path = build(EXTENSION, "-shared", "-fPIC", f"-I{headers}", name="halves.so")
    monkeypatch.syspath_prepend(str(path.parent))
    import halves  # type: ignore[import-not-found]

    watched = Library(halves, sources=["halves.so.c"])
    assert halves.half(8) == 4
    assert reached(watched.hits) >= {3, 4, 6}
    assert halves.half(3) is None
    assert 5 in reached(watched.hits)


def test_what_is_no_library_is_refused(build: Build) -> None:
    plain = build(LIBRARY, "-shared", "-fPIC", wrapped=False, name="plain.so")
    with pytest.raises(UserError, match="was built without coverage: build it with `swarmtest cc"):
        Library(plain)
    program = build("int main(void) {\n  return 0;\n}\n")
    with pytest.raises(UserError, match="cannot load"):
        Library(program)


HARNESS = """\
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
static int ready;
int LLVMFuzzerInitialize(int *count, char ***words) {
  ready = *count > 0 && (*words)[0] != 0;
  return 0;
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!ready)
    exit(9);
  if (size > 3 && data[0] == 'b' && data[1] == 'u' && data[2] == 'g')
    abort();
  if (size == 2)
    return data[2];
  return 0;
}
"""


@BOTH
@pytest.mark.parametrize("persistent", [0, 100])
def test_a_harness_of_libfuzzer_is_a_program(build: Build, compiler: str, persistent: int) -> None:
    program = build(HARNESS, "-fsanitize=fuzzer", compiler=compiler)
    with Program([program], persistent=persistent) as fuzz:
        assert fuzz.run(b"fine").fault() is None
        assert fuzz.run(b"").status == 0
        crash = fuzz.run(b"bugs")
        assert signature(crash).startswith("SIGABRT")
        assert 13 in lines(crash)
        assert 13 not in lines(fuzz.run(b"bag!"))


def test_a_read_behind_the_input_is_seen(build: Build) -> None:
    program = build(HARNESS, "-fsanitize=fuzzer,address", compiler="clang")
    with Program([program], persistent=10) as fuzz:
        assert "heap-buffer-overflow" in signature(fuzz.run(b"ab"))


def test_a_harness_runs_the_files_on_its_command_line(build: Build) -> None:
    program = build(HARNESS, "-fsanitize=fuzzer")
    Path("good").write_bytes(b"good")
    Path("bad").write_bytes(b"bug!")
    assert subprocess.run([program, "good"], check=False).returncode == 0
    assert subprocess.run([program, "good", "bad"], check=False).returncode == -6


def test_cc_of_a_harness_needs_no_libfuzzer(tmp_path: Path) -> None:
    need("clang")
    command = compiler_command(["clang", "-fsanitize=fuzzer,undefined", "-c", "fuzz.c"])
    assert "-fsanitize=undefined" in command
    assert not any("fuzzer" in word for word in command)


LOOPS = """\
int loops(int n, int odd) {
  volatile int sum = 0;
  for (int i = 0; i < n; i++) {
    if (i % 2 == odd)
      sum += i;
    else
      sum -= i;
  }
  return sum;
}
"""


@BOTH
def test_blocks_that_run_often_report_in_every_test(build: Build, compiler: str) -> None:
    """Their calls are overwritten during a test, in a process with one thread."""
    path = build(LOOPS, "-O1", "-shared", "-fPIC", compiler=compiler, name="libloops.so")
    looped = Library(path)

    def tests() -> list[set[int]]:
        reached_lines = []
        for rounds in (1000, 0, 1000, 2):
            looped.functions.loops(rounds, 0)
            reached_lines.append(reached(looped.hits))
        return reached_lines

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, repr(tests()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    many, none, again, few = ast.literal_eval(os.read(reader, 1 << 16).decode())
    os.close(reader)
    os.close(writer)
    assert many == again == few
    assert {5, 7} <= many
    assert not {5, 7} & none
    assert tests() == [many, none, again, few], "with several threads, calls stay as they are"


def test_a_persistent_process_reports_blocks_that_run_often(build: Build) -> None:
    harness = LOOPS + (
        "int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) {\n"
        "  return loops(size ? data[0] * 100 : 0, 0) && 0;\n}\n"
    )
    program = build(harness, "-fsanitize=fuzzer", "-O1")
    with Program([program], persistent=1000) as looped:
        many, none, again = (lines(looped.run(data)) for data in (b"a", b"", b"a"))
    assert many == again
    assert {5, 7} <= many - none


def test_a_library_that_nobody_watches_any_more_goes_on(build: Build) -> None:
    path = build(
        "int twice(int n) { return n > 0 ? 2 * n : 0; }", "-shared", "-fPIC", name="libtwice.so"
    )
    functions = ctypes.CDLL(str(path))

    def twice() -> Any:
        Library(path)
        gc.collect()
        return functions.twice(4) + functions.twice(-4)

    outcome: object = run_isolated(twice, seconds=60)
    assert outcome == 8


def test_the_headers_of_python_are_of_the_system() -> None:
    lines = LineNumbers(Catalogue())
    headers = sysconfig.get_path("include", vars={"installed_base": sys.base_prefix})
    assert lines.number(f"{headers}/object.h", 3, "") is None
    assert lines.number("/home/me/include/object.h", 3, "") == 0
