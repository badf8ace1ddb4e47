"""Steps: how they are run, skipped, limited, and what they leave behind."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from swarmtest.core.result import Verdict
from swarmtest.coverage.native.compiler import compiler_command
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.processes.scratch import Scratch, empty


def run(made):
    return made.execute(made.space.default(), 1)


def alive(text: str) -> list[int]:
    """Processes with a text in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if text.encode() in words:
                found.append(int(entry.name))
    return found


def test_a_step_finds_what_earlier_ones_made(steps):
    made = steps(
        """
        [[steps]]
        name = "compile"
        run = ["sh", "-c", "tr a-z A-Z < {test} > {dir}/made"]
        [[steps]]
        run = ["sh", "-c", "cat made; exit 1"]
        """
    )
    assert "\nHELLO\n" in run(made).fault.details


def test_a_step_is_skipped_when_one_that_it_needs_did_not_succeed(steps):
    made = steps(
        """
        [[steps]]
        name = "compile"
        run = "false"
        on_exit = "ignore"
        [[steps]]
        name = "link"
        needs = "compile"
        run = "false"
        [[steps]]
        name = "run"
        needs = ["link"]
        run = "false"
        [[steps]]
        name = "last"
        run = ["sh", "-c", "exit 7"]
        """
    )
    result = run(made)
    assert result.fault.signature == "last: exit status 7"
    assert "step compile: exit status 1\n" in result.fault.details
    assert "step link: skipped: compile did not succeed\n" in result.fault.details
    assert "step run: skipped: link did not succeed\n" in result.fault.details


def test_a_program_that_no_step_made_is_skipped_if_an_earlier_step_failed(steps):
    made = steps(
        """
        [[steps]]
        name = "compile"
        run = "false"
        on_exit = "ignore"
        [[steps]]
        name = "run"
        run = "./made"
        """
    )
    assert run(made).verdict == Verdict.PASSED


def test_a_program_that_is_not_there_is_a_fault_if_all_seemed_well(steps):
    made = steps(
        """
        [[steps]]
        name = "compile"
        run = "true"
        [[steps]]
        name = "run"
        run = "./made"
        """
    )
    result = run(made)
    assert result.fault.signature == "run: cannot start ./made: No such file or directory"
    assert result.fault.kind == "exit"


def test_standard_input_environment_and_directory_can_be_given(steps, tmp_path):
    (tmp_path / "work").mkdir()
    made = steps(
        """
        [[steps]]
        run = ["sh", "-c", "tr h j; echo $X; pwd; basename {dir}; ls {test}; exit 1"]
        stdin = "{test}"
        env = { X = "in {here}" }
        cwd = "{here}/work"
        """
    )
    details = run(made).fault.details
    assert "\njello\n" in details
    assert "\nin {here}\n{here}/work\ntest\n{dir}/test\n" in details


def test_without_standard_input_there_is_nothing_to_read(steps):
    assert run(steps('[[steps]]\nrun = "cat"')).verdict == Verdict.PASSED


def test_other_exit_statuses_can_be_expected(steps):
    text = '[[steps]]\nrun = ["sh", "-c", "exit 3"]\nexpect = {}'
    assert run(steps(text.format("[0, 3]"))).verdict == Verdict.PASSED
    assert run(steps(text.format('"any"'))).verdict == Verdict.PASSED
    assert run(steps(text.format(2))).verdict == Verdict.FAILED


def test_when_time_is_up_everything_that_a_step_started_is_ended(steps):
    mark = f"4{os.getpid()}"
    made = steps(
        f"""
        [[steps]]
        run = ["sh", "-c", "sleep {mark} & sleep {mark}"]
        timeout = 0.3
        """
    )
    result = run(made)
    assert result.fault.signature == "step1: timeout"
    assert result.fault.kind == "timeout"
    assert alive(mark) == []


def test_a_process_that_left_its_group_is_ended_with_its_step(steps, tmp_path):
    subject = steps(
        """
        [[steps]]
        run = ["sh", "-c", '''
            setsid sh -c 'echo $$ > {here}/pid; exec sleep 1000' &
            until [ -s {here}/pid ]; do sleep 0.02; done
        ''']
        """
    )
    assert subject.execute(subject.space.default(), 1).verdict == Verdict.PASSED
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_the_time_of_processes_that_were_left_behind_is_told(steps):
    burn = (
        "import time\\nwhile time.process_time() < 0.3: pass\\nopen('done', 'w')\\ntime.sleep(60)"
    )
    subject = steps(
        f"""
        [[steps]]
        run = ["sh", "-c", 'python3 -S -c "$0" & until [ -e done ]; do sleep 0.02; done', "{burn}"]
        timeout = 60
        """
    )
    result = subject.execute(subject.space.default(), 1)
    assert result.verdict == Verdict.PASSED
    assert result.cpu_seconds > 0.3


def test_the_memory_limit_of_a_worker_is_none_for_its_commands(steps):
    """A program that was built with a sanitizer would not start."""
    subject = steps(
        """
        [[steps]]
        run = ["python3", "-S", "-c", "import mmap; mmap.mmap(-1, 8 << 30, mmap.MAP_PRIVATE)"]
        """
    )
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, before[1]))
    try:
        result = subject.execute(subject.space.default(), 1)
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] == 4 << 30
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
    assert result.verdict == Verdict.PASSED


def test_a_step_has_no_more_memory_than_it_is_given(steps):
    text = """
        [[steps]]
        run = ["{python}", "-S", "-c", "len(b'x' * (400 << 20))"]
        timeout = 60
        {memory}
        """
    roomy = steps(text.format(python=sys.executable, memory=""))
    assert run(roomy).verdict == Verdict.PASSED
    tight = steps(text.format(python=sys.executable, memory='memory = "200MB"'))
    assert run(tight).fault.signature == "step1: exit status 1: MemoryError"


def test_the_time_of_child_processes_is_told(steps):
    made = steps(
        '[[steps]]\nrun = ["sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"]'
    )
    assert 0.005 < run(made).cpu_seconds < 5


def test_seconds_are_the_sum_of_all_time_limits_for_four_runs(steps):
    made = steps('[[steps]]\nrun = "true"\ntimeout = 3\n[[steps]]\nrun = "true"\ntimeout = 4.5')
    assert made.seconds == 4 * (10 + 3 + 4.5)  # what is killed from outside runs again


KILL_ONCE = """
name=${0##*/}
echo >> "${0%/*}/runs"
mkdir "${0%/*}/killed-$name" 2> /dev/null && kill -s KILL $$
echo hello
"""


@pytest.mark.parametrize("command", ["{here}/step.sh", "sh -c '{here}/step.sh; exit $?'"])
def test_a_step_that_is_killed_once_costs_no_verdict(command, steps, tmp_path):
    made = steps(f'[[steps]]\nrun = "{command}"', step_sh=f"#!/bin/sh{KILL_ONCE}")
    result = run(made)
    assert (result.verdict, result.killed) == (Verdict.PASSED, True)
    assert run(made).killed is False
    assert len((tmp_path / "runs").read_text()) == 3


def test_a_generator_that_is_killed_once_makes_its_test(subject):
    made = subject(
        """
        [generate]
        command = "{here}/make.sh {seed} {features}"
        [features]
        a = "-a"
        [[steps]]
        run = "grep -q hello {test}"
        """,
        make_sh=f"#!/bin/sh{KILL_ONCE}",
    )
    result = run(made)
    assert (result.verdict, result.killed) == (Verdict.PASSED, True)


def test_a_step_that_is_killed_each_time_is_a_fault(steps, tmp_path):
    made = steps('[[steps]]\nrun = ["sh", "-c", "echo >> {here}/runs; kill -s TERM $$"]')
    result = run(made)
    assert (result.fault.signature, result.killed) == ("step1: SIGTERM", False)
    assert len((tmp_path / "runs").read_text()) == 4


def test_directories_of_tests_are_removed(steps):
    made = steps('[[steps]]\nrun = ["sh", "-c", "mkdir -p a/b; chmod 500 a; echo $PWD; exit 1"]')
    run(made)
    directory = made._scratch.directory
    assert [path for path in directory.rglob("*") if path.parent != directory] == []
    made.close()
    assert not directory.exists()


def test_a_directory_is_removed_even_if_a_test_took_the_right_to_do_so_away(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    place = Path(tempfile.mkdtemp())
    if os.getuid() == 0:
        os.chown(place, 65534, -1)
    pid = os.fork()
    if pid == 0:  # root may remove anything
        if os.getuid() == 0:
            os.setuid(65534)
        (place / "a" / "b").mkdir(parents=True)
        (place / "a" / "link").symlink_to(outside)
        (place / "a" / "b").chmod(0)
        (place / "a").chmod(0o500)
        (place / "c").mkdir(mode=0)
        empty(place)
        os._exit(bool(list(place.iterdir())))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    place.rmdir()
    assert outside.stat().st_mode & 0o777 == 0o500


def test_temporary_files_have_a_place_that_is_emptied_and_do_not_tell_faults_apart(steps):
    subject = steps(
        """
        [[steps]]
        name = "cc"
        run = ["sh", "-c", "file=$(mktemp); echo $file: error: odd >&2; echo $file; exit 1"]
        """
    )
    first, second = run(subject), run(subject)
    assert first.fault.signature == "cc: exit status 1: /tmp/…: error: odd"
    assert second.fault.signature == first.fault.signature
    assert os.listdir(subject._scratch.temporary) == []


def test_what_cannot_be_removed_is_not_there_for_the_next_test(tmp_path, monkeypatch):
    scratch = Scratch()
    (scratch.fresh("test") / "stuck").touch()

    def refuse(path, **options):
        raise PermissionError

    monkeypatch.setattr(os, "unlink", refuse)
    again = scratch.fresh("test")
    monkeypatch.undo()
    assert again.name == "test"
    assert list(again.iterdir()) == []
    scratch.close()


def test_a_test_may_remove_its_own_directory(steps):
    made = steps('[[steps]]\nrun = ["sh", "-c", "rm -rf $PWD"]')
    assert [run(made).verdict for _ in range(2)] == [Verdict.PASSED] * 2


SLOW = """
from swarmtest.subjects.command.subject import load_command_subject
made = load_command_subject("subject.toml")
print(made._scratch.directory, flush=True)
made.execute(made.space.default(), 1)
"""


def test_when_a_worker_is_killed_its_command_ends_and_its_files_are_removed(steps, tmp_path):
    mark = f"5{os.getpid()}"
    steps(f'[[steps]]\nrun = ["sh", "-c", "sleep {mark}; true"]\ntimeout = 60')
    worker = subprocess.Popen(
        [sys.executable, "-c", SLOW], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    with worker:
        assert worker.stdout
        directory = Path(worker.stdout.readline().strip())
        _until(lambda: alive(mark))
        assert directory.exists()
        worker.send_signal(signal.SIGKILL)
    _until(lambda: not alive(mark))
    _until(lambda: not directory.exists())


def _until(holds, seconds=60.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.mark.parametrize("kind", ["fast", "gcov"])
def test_lines_that_a_covered_program_reaches_are_told(steps, tmp_path, kind):
    if not (shutil.which("gcc") and shutil.which("addr2line")):
        pytest.skip("needs gcc and addr2line: apt-get install gcc binutils")
    (tmp_path / "prog.c").write_text(
        "#include <stdio.h>\n"
        "int main(int argc, char **argv) {\n"
        "  if (argc > 1)\n"
        '    puts("more");\n'
        "  else\n"
        '    puts("none");\n'
        "  return 0;\n"
        "}\n"
    )
    compiler = ["gcc", "--coverage"]
    if kind == "fast":
        compiler = [sys.executable, "-c", "from swarmtest.ui.cli import main; main()", "cc", "gcc"]
    subprocess.run([*compiler, "-o", "prog", "prog.c"], cwd=tmp_path, check=True)
    made = steps(
        """
        [[steps]]
        name = "with"
        run = "{here}/prog x"
        cover = true
        sources = ["prog.c"]
        [[steps]]
        name = "without"
        run = "{here}/prog"
        """
    )
    result = run(made)
    assert result.missing == ""
    (hits,) = result.covered
    lines = {target.line for target in hits.targets()}
    assert 4 in lines
    assert 6 not in lines
    in_a_fork = run_isolated(lambda: run(made), seconds=60)
    assert in_a_fork.covered[0].targets() == hits.targets()


def test_two_crashes_of_a_covered_program_are_two_faults(steps, tmp_path):
    if not (shutil.which("gcc") and shutil.which("addr2line")):
        pytest.skip("needs gcc and addr2line: apt-get install gcc binutils")
    (tmp_path / "prog.c").write_text(
        "#include <stdlib.h>\n"
        "__attribute__((noinline)) void first(void) { abort(); }\n"
        "__attribute__((noinline)) void second(void) { abort(); }\n"
        "int main(int argc, char **argv) { argc > 1 ? second() : first(); }\n"
    )
    subprocess.run(compiler_command(["gcc", "-o", "prog", "prog.c"]), cwd=tmp_path, check=True)
    step = '[[steps]]\nname = "run"\nrun = "{here}/prog WORD"\ncover = true\n'
    shown = [run(steps(step.replace("WORD", word))).fault for word in ("", "x")]
    assert [fault.signature for fault in shown] == ["run: SIGABRT [first]", "run: SIGABRT [second]"]
