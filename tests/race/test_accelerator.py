"""The C probe is built where it can be, and says why where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from swarmtest.race import accelerator


def status(**environment: str) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from swarmtest.race import accelerator_status; print(accelerator_status())",
        ],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_it_is_built_once_and_kept(tmp_path: Path) -> None:
    if not status().startswith("C"):
        pytest.skip(f"needs the C probe: {status()}")
    first = status(XDG_CACHE_HOME=str(tmp_path))
    built = Path(first.removeprefix("C: "))
    assert built.is_relative_to(tmp_path)
    made = built.stat().st_mtime_ns
    assert status(XDG_CACHE_HOME=str(tmp_path)) == first
    assert built.stat().st_mtime_ns == made


def test_without_a_compiler_python_does_it_and_says_so(tmp_path: Path) -> None:
    assert status(PATH=str(tmp_path), CC="").startswith("Python: no C compiler on the PATH")


@pytest.fixture
def include(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in place of the one with Python's header files, and a cache that is empty."""
    headers = tmp_path / "include"
    headers.mkdir()
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(headers)})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CC", "false")
    return headers


def test_a_compiler_that_fails_is_told(include: Path) -> None:
    (include / "Python.h").touch()
    module, reason = accelerator._loaded.__wrapped__()
    assert module is None
    assert reason.startswith("the C probe cannot be built: ")


def test_what_to_install_for_missing_headers_is_told(include: Path) -> None:
    module, reason = accelerator._loaded.__wrapped__()
    assert module is None
    assert reason.startswith(f"no Python.h in {include}: install Python's header files")
    assert reason.endswith("apt-get install python3-dev")


def test_one_that_came_with_the_package_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not status().startswith("C"):
        pytest.skip(f"needs the C probe: {status()}")
    accelerator.build(tmp_path / accelerator.FILE)
    monkeypatch.setattr(accelerator, "SOURCE", tmp_path / "_probe.c")
    monkeypatch.setenv("CC", "false")
    module, reason = accelerator._loaded.__wrapped__()
    assert not reason
    assert module
    assert module.__file__ == str(tmp_path / accelerator.FILE)
