"""Adding up what tests reached."""

from __future__ import annotations

import json

import pytest

from swarmtest import UserError
from swarmtest.core.targets import Catalogue, Hits, Target
from swarmtest.coverage.totals import Tally

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
