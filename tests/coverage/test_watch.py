"""Watching tests: what each one reached, and what belongs to none."""

from __future__ import annotations

import pickle

import pytest

from swarmtest import UserError
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.scope import Scope, parse_scope
from swarmtest.coverage.watch import Coverage

TEXT = """
def helper():
    return 1

CONSTANT = helper()

def run(x):
    if x:
        return CONSTANT
    return 0
"""


def test_what_imports_reach_belongs_to_no_test(project, reached):
    project.write(watched=TEXT)
    coverage = project.watch("watched")
    module = project.load("watched")
    coverage.begin()
    outside = sorted(coverage.catalogue.targets[n].line for n in coverage.outside)
    assert outside == [1, 2, 4, 6]
    assert reached(coverage, lambda: module.run(1)) == ["line:watched.py:7", "line:watched.py:8"]


def test_a_module_that_a_test_imports_adds_only_what_the_test_calls(project, reached):
    project.write(watched=TEXT)
    coverage = project.watch("watched")
    coverage.begin()
    hit = reached(coverage, lambda: project.load("watched").run(0))
    assert {"line:watched.py:7", "line:watched.py:9"} <= set(hit)
    assert "line:watched.py:4" not in hit


def test_each_test_has_its_own_hits(project, reached):
    project.write(watched=TEXT)
    coverage = project.watch("watched", kinds=("line", "branch"))
    run = project.load("watched").run
    assert "branch:watched.py:7->8" in reached(coverage, lambda: run(1))
    assert "branch:watched.py:7->8" not in reached(coverage, lambda: run(0))
    assert reached(coverage, lambda: None) == []


def test_targets_tell_where_they_are(project):
    project.write(watched=TEXT)
    coverage = project.watch("watched", kinds=("line", "block", "branch"))
    project.load("watched")
    coverage.begin()
    (branch,) = [t for t in coverage.catalogue.targets if str(t) == "branch:watched.py:7->8"]
    assert (branch.file, branch.line, branch.function) == ("watched.py", 7, "run")
    assert branch.content
    assert coverage.catalogue.sources[branch.source].text.startswith("def helper")


def test_code_that_moves_keeps_its_content_hash(project):
    contents = []
    for text in (TEXT, "\n\n# moved\n" + TEXT.replace("helper", "other")):
        project.write(watched=text)
        coverage = project.watch("watched", kinds=("line", "block", "branch"))
        project.load("watched")
        coverage.begin()
        contents.append([t.content for t in coverage.catalogue.targets if t.function == "run"])
        coverage.uninstall()
    assert contents[0] == contents[1]


def test_options_travel_to_workers():
    options = CoverageOptions(("line", "path"), ("shop",), "ast", "here", "there")
    assert CoverageOptions.from_plain(options.to_plain()) == options
    assert pickle.loads(pickle.dumps(options)) == options


def test_nothing_watched_is_said(project):
    coverage = project.watch("never_imported")
    coverage.begin()
    assert "imported no module that is watched" in coverage.problems[-1]


@pytest.mark.parametrize(
    ("kinds", "said"), [("lines", "'line'"), ("", "needs a kind"), ("line,brunch", "branch")]
)
def test_a_kind_that_does_not_exist_is_refused(kinds, said):
    with pytest.raises(UserError, match=said):
        Coverage(kinds)


def test_an_unknown_way_to_probe_is_refused():
    with pytest.raises(UserError, match="choose from auto, ast, monitoring"):
        Coverage(CoverageOptions(probes="magic"))


def test_a_name_that_is_neither_module_nor_path_is_refused():
    with pytest.raises(UserError, match="neither the name of a module nor a path"):
        parse_scope(["no/such/place"])


def test_a_name_chooses_a_package_but_not_its_namesakes():
    scope = Scope(names=("shop",))
    assert scope.chooses("shop.cart", "x.py")
    assert not scope.chooses("shopping", "x.py")


def test_the_default_is_what_is_here_without_what_is_installed(project):
    scope = parse_scope([])
    assert scope.chooses("mine", str(project.root / "mine.py"))
    installed = project.root / ".venv/lib/python3.11/site-packages/other.py"
    assert not scope.chooses("other", str(installed))
