"""The options of the pytest plugin, and workers of pytest-xdist that crash."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from pytest_processes import WITHOUT_HYPOTHESIS, pytest_words


def run(place: Path, *options: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    words = pytest_words(*WITHOUT_HYPOTHESIS, "-q", "-p", "swarmtest.pytest_plugin", *options)
    return subprocess.run(words, cwd=place, env=kept, capture_output=True, text=True, timeout=60)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['src']\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "shop.py").write_text(
        "import os\ndef f(x):\n    if x == 2:\n        os.abort()\n    return x\n"
    )
    (tmp_path / "test_shop.py").write_text(
        "import pytest, shop\n@pytest.mark.parametrize('x', range(5))\ndef test_f(x): shop.f(x)\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--swarm-cover", "shop"], "--swarm-cover needs --swarm-coverage"),
        (["--swarm-coverage", ""], "--swarm-coverage needs a kind"),
        (["--swarm-coverage", "line", "--swarm-cover", ""], "--swarm-cover needs a name"),
        (
            ["--swarm-coverage", "line", "--swarm-cover", "shpo"],
            "--swarm-cover shpo: there is no module 'shpo'; did you mean 'shop'?",
        ),
        (["--swarm-coverage", "line", "--swarm-coverage-file", "x.txt"], "is written as .json"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    place: Path, options: list[str], words: str
) -> None:
    done = run(place, *options)
    assert done.returncode == 4
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_worker_that_crashes_takes_only_the_coverage_of_its_last_test_with_it(
    place: Path,
) -> None:
    done = run(place, "--swarm-coverage", "line", "--swarm-cover", "shop", "-n", "1")
    lost = "swarmtest: coverage of test_shop.py::test_f[2] is missing: its process died"
    assert lost in done.stdout, done.stdout + done.stderr
    told = json.loads((place / "swarm-coverage.json").read_text())
    assert sorted(told["tests"]) == [f"test_shop.py::test_f[{x}]" for x in (0, 1, 3, 4)]
    lines = {target["line"]: target["tests"] for target in told["targets"]}
    assert lines[3] == 4
