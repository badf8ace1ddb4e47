"""Set-up says in one line what is missing, and installs no more than is asked for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from debian_packages import need

ROOT = Path(__file__).parents[2]


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=ROOT, env=os.environ | env, capture_output=True, text=True, check=False
    )


@pytest.fixture
def as_user(tmp_path: Path) -> str:
    """A PATH on which nobody is root."""
    script(tmp_path / "bin" / "id", "echo 1000")
    return f"{tmp_path / 'bin'}:{os.environ['PATH']}"


def test_an_old_python_is_one_clear_line(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    script(old, 'case "$2" in *platform*) echo 3.9.2 ;; *) exit 1 ;; esac')
    done = run("sh", "tools/setup.sh", PYTHON=str(old), VENV=str(tmp_path / "venv"))
    assert done.returncode == 2
    assert done.stderr == (
        f"swarmtest needs Python 3.11 or newer, and {old} is 3.9.2: set PYTHON=/path/to/python\n"
    )
    assert not (tmp_path / "venv").exists()


def test_a_python_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    """Another one is not used instead: it was asked for."""
    gone = str(tmp_path / "python3")
    done = run("sh", "tools/setup.sh", PYTHON=gone, VENV=str(tmp_path / "venv"))
    assert done.returncode == 2
    assert f"there is no {gone}: set PYTHON=" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_headers_are_looked_for_and_not_only_commands(tmp_path: Path, as_user: str) -> None:
    """Without them csmith, gcc and Python are there, and compile nothing."""
    venv = tmp_path / "venv"
    script(
        venv / "bin" / "python",
        f'case "$2" in *sysconfig*) echo {tmp_path} ;; *) echo "/usr 3.99" ;; esac',
    )
    for tool in ("gcc", "g++", "addr2line", "make", "clang", "csmith", "dpkg-source"):
        script(tmp_path / "bin" / tool, "exit 0")
    script(tmp_path / "bin" / "llvm-symbolizer", "exit 0")
    env = {"PATH": as_user, "VENV": str(venv), "SYSTEM_HEADERS": str(tmp_path)}
    done = run("sh", "tools/compilers.sh", **env)
    assert done.returncode == 0
    assert done.stderr == (
        "missing: stdio.h csmith.h Python.h; tests of native programs that need them are skipped\n"
        "(apt-get install libc6-dev libcsmith-dev python3.99-dev)\n"
    )
    (tmp_path / "csmith").mkdir()
    for header in ("stdio.h", "csmith/csmith.h", "Python.h"):
        (tmp_path / header).touch()
    assert run("sh", "tools/compilers.sh", **env).stderr == ""


def test_the_demo_installs_no_tools_of_developers(tmp_path: Path) -> None:
    need("make")

    def steps(goal: str) -> list[str]:
        done = run("make", "-n", goal, f"VENV={tmp_path / 'venv'}", MAKEFLAGS="")
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        return [line.partition("tools/")[2] for line in lines if "tools/" in line]

    assert steps("demo") == ["setup.sh", "demo.sh"]
    tools = ["setup.sh", "setup.sh dev", "compilers.sh", "browser.sh", "run_tests.py"]
    assert steps("unit") == tools


def test_make_fresh_explains_itself_to_anybody(as_user: str) -> None:
    need("make")
    told = run("make", "fresh", "COMMAND=--help", PATH=as_user, MAKEFLAGS="")
    assert told.returncode == 0
    assert "make fresh PYTHON_VERSION=3.13" in told.stdout
    refused = run("bash", "tools/fresh-machine.sh", "true", PATH=as_user)
    assert refused.returncode == 2
    assert refused.stderr.startswith("fresh-machine: run it as root: ")
