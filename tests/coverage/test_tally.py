"""Adding up what tests reached."""

from __future__ import annotations

import json

import pytest

from swarmtest import UserError
from swarmtest.core.targets import Catalogue, Hits, Target
from swarmtest.coverage.totals import SuiteCoverage, Tally

LINES = [Target("line", f"a.py:{n}", "a.py", n, "f" if n > 1 else "") for n in (1, 2, 3)]
BRANCH = Target("branch", "a.py:2->exit(1)", "a.py", 2, "f")


@pytest.fixture
def tally():
    made = Tally()
    made.know([*LINES, BRANCH])
    made.add_outside(LINES[:1])
    catalogue = Catalogue([*LINES, BRANCH])
    made.add(Hits.of(catalogue, [1]), "one")
    made.add(Hits.of(catalogue, [1, 3]), "two")
    return made


def test_shares_count_imports_and_tests(tally):
    assert tally.shares() == {"line": (2, 3), "branch": (1, 1)}
    assert tally.summary() == "line 2 of 3 (67%), branch 1 of 1 (100%)"


def test_files_tell_how_many_tests_hit_what(tally):
    (file,) = tally.files()
    assert file.lines == {1: 1, 2: 2, 3: 0}
    assert file.branches == {(2, -1): 1}
    assert file.functions == {"f": (2, 2)}


def test_tests_tell_their_lines_and_branches(tally):
    one, two = tally.test_coverages()
    assert one.files == {"a.py": (frozenset({2}), frozenset())}
    assert two.files == {"a.py": (frozenset({2}), frozenset({(2, -1)}))}


def test_what_two_processes_saw_is_added_up(tally):
    both = Tally()
    for _ in range(2):
        both.merge(json.loads(json.dumps(tally.to_plain())))
    assert both.counts[both.catalogue.number(LINES[1])] == 4
    assert both.shares() == tally.shares()
    assert both.tests == tally.tests


def test_nothing_at_all(tmp_path):
    assert Tally().summary() == "nothing was reached"
    for name in ("a.json", "a.lcov", "a.xml", ".coverage"):
        Tally().write(str(tmp_path / name))
        assert (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["x.json", "x.lcov", "x.xml", "x.db"])
def test_a_place_that_cannot_be_written_is_refused(tally, tmp_path, name):
    with pytest.raises(UserError, match="missing"):
        tally.write(str(tmp_path / "missing" / name))


def _report(since: int, targets: list[Target], tests: dict[str, list[int]]) -> str:
    """What a process named w reports; each test hits the targets with its numbers."""
    counts = {number: 1 for hit in tests.values() for number in hit}
    return json.dumps(("w", since, (targets, counts, [], tests, {})))


REPORTS = [
    _report(0, LINES[:2], {"one": [0, 1]}),
    _report(2, [], {"two": [1]}),
    _report(2, LINES[2:], {"three": [0, 2]}),
    _report(3, [], {"four": [2]}),
]


@pytest.fixture
def suite():
    made = SuiteCoverage("line", ["colorsys"])
    yield made
    made._coverage.uninstall()


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]])
def test_reports_of_a_process_may_arrive_in_any_order(suite, tmp_path, order):
    for i in order:
        suite.merge(REPORTS[i])
    suite.write(str(tmp_path / "a.json"))
    written = json.loads((tmp_path / "a.json").read_text())
    assert [target["tests"] for target in written["targets"]] == [2, 2, 2]
    assert set(written["tests"]) == {"one", "two", "three", "four"}
    assert not any("is missing" in problem for problem in suite.problems())


def test_a_report_that_never_arrives_is_said(suite):
    suite.merge(REPORTS[0])
    suite.merge(REPORTS[3])
    assert (
        "coverage of four is missing: an earlier report of its process did not arrive"
        in suite.problems()
    )
