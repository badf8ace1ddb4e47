"""`tools/run_tests.py`: the tests in parts, each in a pytest of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOOL = Path(__file__).parents[2] / "tools" / "run_tests.py"


def start(place: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(TOOL), *words, "--", "-p", "no:swarmtest.pytest_plugin"],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def suite(place: Path, **files: str) -> Path:
    for name, text in files.items():
        file = place / "tests" / name / f"test_{name}.py"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return place


def test_counts_of_all_parts_are_added_up(tmp_path: Path) -> None:
    suite(
        tmp_path,
        first="def test_a(): pass\ndef test_b(): pass\n",
        second="import pytest\n@pytest.mark.skip(reason='later')\ndef test_c(): pass\n",
    )
    tool = start(tmp_path)
    out, _ = tool.communicate()
    assert tool.returncode == 0
    assert "[1/2] " in out
    assert "tests/first/test_first.py: 2 passed in" in out
    assert "==== 2 passed, 1 skipped in " in out.splitlines()[-1]


def test_a_part_that_fails_is_shown_whole_and_others_run(tmp_path: Path) -> None:
    suite(tmp_path, first="def test_a(): assert 1 == 2\n", second="def test_b(): pass\n")
    tool = start(tmp_path)
    out, _ = tool.communicate()
    assert tool.returncode == 1
    assert "assert 1 == 2" in out
    assert "FAILED tests/first/test_first.py::test_a - assert 1 == 2" in out.splitlines()[-2]
    assert "==== 1 failed, 1 passed in " in out.splitlines()[-1]


def test_a_part_that_ends_without_a_result_is_a_failure(tmp_path: Path) -> None:
    suite(tmp_path, first="import os\nos._exit(0)\n", second="def test_b(): pass\n")
    tool = start(tmp_path)
    out, _ = tool.communicate()
    assert tool.returncode == 1
    assert "tests/first/test_first.py: no result" in out


def test_ctrl_c_ends_the_parts_too(tmp_path: Path, until: Callable[..., Any]) -> None:
    waits = "import os, pathlib, time\ndef test_a():\n"
    waits += "    pathlib.Path('pid').write_text(str(os.getpid()))\n    time.sleep(1000)\n"
    suite(tmp_path, first=waits)
    tool = start(tmp_path)
    pid = until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "a test")
    tool.send_signal(signal.SIGINT)
    tool.communicate()
    assert tool.returncode == 130
    assert not Path("/proc", pid).exists()
