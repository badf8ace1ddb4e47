"""The plugin, in a real pytest: what each test of a suite reached."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from contextlib import closing

import pytest
from pytest_processes import WITHOUT_HYPOTHESIS, pytest_words

PYTEST = pytest_words(*WITHOUT_HYPOTHESIS, "-q", "-p", "swarmtest.pytest_plugin")
SUITE = {
    "conftest.py": "import shop\n",
    "shop.py": "def f(x):\n    if x:\n        return 1\n    return 2\n",
    "test_shop.py": """
        import pytest, shop

        @pytest.fixture
        def one():
            return shop.f(1)

        def test_fixture(one): assert one == 1
        def test_zero(): assert shop.f(0) == 2
        @pytest.mark.parametrize("x", [0, 1])
        def test_both(x): shop.f(x)
        def test_nothing(): pass
        def test_failing(): assert shop.f(1) == 3
        """,
}


@pytest.fixture
def run(project):
    def start(*arguments, files=SUITE, cover="shop", kinds="line,branch"):
        project.write(files)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        watched = ["--swarm-coverage", kinds, *(["--swarm-cover", cover] if cover else [])]
        return subprocess.run(
            [*PYTEST, *watched, *arguments],
            cwd=project.root,
            env=kept,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return start


def lines_of(file):
    data = json.loads(file.read_text())
    return {
        test: sorted(
            data["targets"][n]["line"] for n in hit if data["targets"][n]["kind"] == "line"
        )
        for test, hit in data["tests"].items()
    }


EXPECTED = {
    "test_shop.py::test_fixture": [2, 3],
    "test_shop.py::test_zero": [2, 4],
    "test_shop.py::test_both[0]": [2, 4],
    "test_shop.py::test_both[1]": [2, 3],
    "test_shop.py::test_nothing": [],
    "test_shop.py::test_failing": [2, 3],
}


@pytest.mark.parametrize("workers", [[], ["-n", "2"], ["-p", "no:xdist"]], ids=" ".join)
def test_each_test_is_told_with_what_it_reached(run, project, workers):
    done = run("--swarm-coverage-file", "out.json", *workers)
    assert "1 failed, 5 passed" in done.stdout, done.stdout + done.stderr
    assert "swarmtest: line 4 of 4 (100%), branch 2 of 2 (100%) -> out.json" in done.stdout
    assert "no chosen module" not in done.stdout
    assert lines_of(project.root / "out.json") == EXPECTED


def test_a_coverage_py_file_has_a_context_per_test(run, project):
    run("--swarm-coverage-file", ".coverage")
    with closing(sqlite3.connect(project.root / ".coverage")) as data, data:
        contexts = {row[0] for row in data.execute("select context from context")}
    assert set(EXPECTED) - {"test_shop.py::test_nothing"} <= contexts


@pytest.mark.parametrize(("file", "text"), [("out.lcov", "DA:2,"), ("out.xml", "<coverage")])
def test_other_formats_by_their_endings(run, project, file, text):
    run("--swarm-coverage-file", file)
    assert text in (project.root / file).read_text()


def test_without_the_option_nothing_is_watched_or_written(project):
    project.write(SUITE)
    done = subprocess.run(
        PYTEST,
        cwd=project.root,
        capture_output=True,
        text=True,
    )
    assert "swarmtest:" not in done.stdout
    assert not (project.root / "swarm-coverage.json").exists()


def test_the_default_is_what_is_here(run, project):
    done = run(cover="")
    assert "line 4 of 4" in done.stdout, done.stdout
    assert (project.root / "swarm-coverage.json").exists()


def test_a_wrong_kind_is_one_line(run):
    done = run(kinds="lime")
    assert done.returncode == 4
    assert "no kind of coverage is called 'lime'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_module_that_is_never_imported_is_said(run):
    assert "swarmtest: no chosen module was imported" in run(cover="colorsys").stdout


def test_a_place_that_cannot_be_written_is_said(run):
    done = run("--swarm-coverage-file", "no/such/place.json")
    assert "no/such/place.json: cannot be written" in done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr


def test_modules_that_fail_to_import_fail_as_ever(run):
    done = run(files={**SUITE, "shop.py": "def f(:\n"})
    assert "SyntaxError" in done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr
