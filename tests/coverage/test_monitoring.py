"""Lines by `sys.monitoring`: where there is no source, or when it is asked for."""

from __future__ import annotations

import compileall
import sys

import pytest

from swarmtest import UserError
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.watch import Coverage

TEXT = """
class Thing:
    def run(self, x):
        y = [
            i
            for i in range(x)
        ]
        if x:
            return y
        return None
"""
only_newer = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="sys.monitoring came with Python 3.12"
)


@only_newer
def test_lines_are_the_same_as_those_of_probes(project, reached):
    project.write(monitored=TEXT)
    hit = []
    for probes in ("ast", "monitoring"):
        coverage = project.watch("monitored", probes=probes)
        thing = project.load("monitored").Thing()
        coverage.begin()
        hit.append([sorted(reached(coverage, lambda t=thing, x=x: t.run(x))) for x in (0, 2, 0)])
        coverage.uninstall()
    assert hit[0] == hit[1]


@only_newer
def test_a_module_without_source_is_seen_by_its_lines(project, reached):
    project.write(bare="def f(x):\n    if x:\n        return 1\n    return 2\n")
    compileall.compile_file(project.root / "bare.py", legacy=True, quiet=1)
    (project.root / "bare.py").unlink()
    coverage = project.watch("bare")
    bare = project.load("bare")
    names = reached(coverage, lambda: bare.f(0))
    assert [name.rpartition(":")[2] for name in names] == ["2", "4"]
    assert coverage.problems == []


@only_newer
def test_the_place_for_a_tool_is_given_back(project):
    project.write(monitored=TEXT)
    for _ in range(8):
        coverage = project.watch("monitored", probes="monitoring")
        project.load("monitored")
        coverage.uninstall()


@only_newer
def test_other_kinds_cannot_be_monitored():
    with pytest.raises(UserError, match="lines only"):
        Coverage(CoverageOptions(kinds=("branch",), probes="monitoring"))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python can")
def test_an_older_python_says_that_it_cannot():
    with pytest.raises(UserError, match=r"3\.12"):
        Coverage(CoverageOptions(probes="monitoring"))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python can")
def test_a_module_without_source_is_said_by_an_older_python(project):
    project.write(bare="x = 1\n")
    compileall.compile_file(project.root / "bare.py", legacy=True, quiet=1)
    (project.root / "bare.py").unlink()
    coverage = project.watch("bare")
    assert project.load("bare").x == 1
    assert "bare has no source" in coverage.problems[0]
