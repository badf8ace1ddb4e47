"""Which processes are killed after a test, which are spared, and who may fork and kill."""

from __future__ import annotations

import ast
import multiprocessing
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import swarmtest
from swarmtest.processes import tree
from swarmtest.processes.commands import capture
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.processes.scratch import Scratch

SLEEP = ("sleep", "977")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def orphan(directory: Path) -> int:
    """Start a process in a session of its own whose parent ends at once."""
    file = directory / "orphan"
    subprocess.run(
        ["sh", "-c", f'setsid sh -c \'echo $$ > "{file}.new"; mv "{file}.new" "{file}"; '
         "exec sleep 977' &"],
        check=True,
    )  # fmt: skip
    while not file.exists():
        time.sleep(0.001)
    return int(file.read_text())


def test_supervision_kills_what_came_and_spares_what_was_there(
    started: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    started.append(subprocess.Popen(SLEEP))
    with tree.Supervision():
        started.append(tree.spawn(SLEEP))
        stray = subprocess.Popen(SLEEP, start_new_session=True)
        daemon = orphan(tmp_path)
        assert is_alive(stray.pid)
        assert is_alive(daemon)
    assert [is_alive(process.pid) for process in started] == [True, True]
    assert not is_alive(stray.pid)
    assert not is_alive(daemon)
    stray.wait()


def test_a_check_after_a_test_spares_what_was_there(
    started: list[subprocess.Popen[bytes]],
) -> None:
    started.append(subprocess.Popen(SLEEP))
    check = tree.StrayCheck()
    started.append(tree.spawn(SLEEP))
    strays = [subprocess.Popen(SLEEP) for _ in range(3)]
    check.end_strays()
    assert [is_alive(process.pid) for process in started] == [True, True]
    assert not any(is_alive(stray.pid) for stray in strays)
    for stray in strays:
        stray.wait()


def test_a_check_goes_on_if_a_test_closes_its_file() -> None:
    def closing() -> bool:
        os.closerange(3, 100)
        stray = subprocess.Popen(SLEEP)
        tree.end_strays()
        return is_alive(stray.pid)

    # The answer's pipe is gone, so only a fork in the fork can tell.
    def checked() -> bool:
        check = tree.StrayCheck()
        os.close(check._file)
        stray = subprocess.Popen(SLEEP)
        check.end_strays()
        return is_alive(stray.pid)

    assert in_fork(checked, 30) is False
    with pytest.raises(NoAnswer):
        in_fork(closing, 30)


def _report(file: str) -> None:
    Path(file).write_text(str(os.getpid()))
    time.sleep(977)


def test_the_fork_server_of_multiprocessing_goes_on_without_what_it_forked(tmp_path: Path) -> None:
    def tests() -> list[bool]:
        alive = []
        for number in range(2):
            file = tmp_path / str(number)
            context = multiprocessing.get_context("forkserver")
            context.Process(target=_report, args=(str(file),)).start()
            while not (file.exists() and file.read_text()):
                time.sleep(0.001)
            tree.end_strays()
            deadline = time.monotonic() + 30  # the server, not we, waits for it
            while is_alive(int(file.read_text())) and time.monotonic() < deadline:
                time.sleep(0.001)
            alive.append(is_alive(int(file.read_text())))
        return alive

    assert in_fork(tests, 120) == [False, False]


@pytest.mark.parametrize("end", [lambda: time.sleep(977), os.abort, lambda: os._exit(3)])
def test_a_fork_that_ends_badly_leaves_nothing(end: Callable[[], object], tmp_path: Path) -> None:
    with pytest.raises(NoAnswer):
        in_fork(lambda: (orphan(tmp_path), end()), 3)
    assert not is_alive(int((tmp_path / "orphan").read_text()))


def test_the_directory_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    def ends() -> None:
        (tmp_path / "where").write_text(str(Scratch().fresh("test")))
        os.abort()

    with pytest.raises(NoAnswer, match="SIGABRT"):
        in_fork(ends, 30)
    assert not Path((tmp_path / "where").read_text()).exists()


def test_a_command_out_of_time_is_ended_with_what_holds_its_output() -> None:
    ended = capture(["sh", "-c", "echo hello; setsid sleep 977 & exec sleep 977"], 0.5)
    assert ended.status is None
    assert ended.stdout == b"hello\n"


# `swarmtest.processes` is the only place that forks, starts programs, waits for them and kills.

SOURCE = Path(swarmtest.__file__).parent
ANYWHERE = {
    "os": {
        *("fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen"),
        *("kill", "killpg", "wait", "wait3", "wait4", "waitid", "waitpid", "setpgid"),
    },
    "signal": {"pthread_kill", "pidfd_send_signal"},
    "subprocess": {"run", "call", "check_call", "check_output", "getoutput"},
}
"""Functions that must not even be mentioned; `subprocess.Popen` may, as the type of a value."""

THREADS = "it interrupts a thread of its own process"
TOOLS = "it waits for a tool that is no program under test: a compiler, gcov, git"
PROGRAM = "replaces what threads of the program under test call"
DECLARED = {
    "race/primitives/blocking.py": ({"os.waitpid"}, PROGRAM),
    "race/control/watchdog.py": ({"signal.pthread_kill"}, THREADS),
    "race/native/coverage.py": ({"subprocess.run"}, TOOLS),
    "race/native/library.py": ({"subprocess.run"}, TOOLS),
    "race/accelerator.py": ({"subprocess.run"}, TOOLS),
    "coverage/native/gcov.py": ({"subprocess.run"}, TOOLS),
    "coverage/native/compiler.py": ({"subprocess.run"}, TOOLS),
    "languages/git.py": ({"subprocess.run"}, TOOLS),
    "pytest_plugin/options.py": ({"subprocess.run"}, TOOLS),
}


def uses(text: str) -> Iterator[str]:
    """The functions that a module uses and that belong into `swarmtest.processes`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in ANYWHERE.get(node.value.id, ()):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "Popen":
                yield "subprocess.Popen"
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            for name in names & ({*ANYWHERE.get(node.module or "", ())} | {"Popen"}):
                yield f"{node.module}.{name}"


def test_no_other_module_forks_spawns_or_kills() -> None:
    found = {
        str(path.relative_to(SOURCE)): names
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "processes" and (names := {*uses(path.read_text())})
    }
    assert found == {path: names for path, (names, _) in DECLARED.items()}


def test_such_functions_are_seen() -> None:
    assert {*uses("import os\npid = os.fork()\nend = os.killpg\n")} == {"os.fork", "os.killpg"}
    assert {*uses("import subprocess\nsubprocess.Popen(['ls'])\n")} == {"subprocess.Popen"}
    assert {*uses("from subprocess import Popen, run\n")} == {"subprocess.Popen", "subprocess.run"}
    assert not {*uses("import subprocess\nprocess: subprocess.Popen[bytes]\ntext = 'os.fork()'\n")}


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="asks the kernel of Linux")
def test_a_fork_whose_parent_ended_before_it_could_ask_for_its_end_ends_as_well() -> None:
    reading, writing = os.pipe()
    parent = tree.fork()
    if parent == 0:
        pid = os.getpid()
        if tree.fork() == 0:
            while os.getppid() == pid:
                time.sleep(0.001)
            tree.die_with_parent()
            os.write(writing, b"alive")
        os._exit(0)
    os.close(writing)
    tree.reap(parent)
    with open(reading, "rb") as pipe:
        assert pipe.read() == b""
