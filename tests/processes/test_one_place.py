"""`swarmtest.processes` is the only place that forks, starts programs, waits for them and kills."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import swarmtest

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
DECLARED = {
    "race/control/watchdog.py": ({"signal.pthread_kill"}, THREADS),
    "race/native/coverage.py": ({"subprocess.run"}, TOOLS),
    "race/native/library.py": ({"subprocess.run"}, TOOLS),
    "race/accelerator.py": ({"subprocess.run"}, TOOLS),
    "coverage/native/gcov.py": ({"subprocess.run"}, TOOLS),
    "coverage/native/fast.py": ({"subprocess.run"}, TOOLS),
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
