"""What a suite is chosen from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source, Target, pack_hits
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord, TrialRecord
from swarmtest.suite.selection import SuiteRequest, choose
from swarmtest.suite.suite import Candidate, read_table


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store(":memory:") as opened:
        opened.add_campaign(CampaignRecord("shop.py", "coin", 1, {"dimensions": []}))
        yield opened


def fill(store: Store, *rows: tuple[str, str | None], steps: tuple[int, ...] = ()) -> None:
    """Trials that hit events called by letters, and the fault that each shows."""
    letters = "abcdefgh"
    ids = store.target_ids([Target("event", letter) for letter in letters])
    trials = [
        TrialRecord(
            number,
            b"",
            verdict=int(fault is not None),
            fault=fault,
            steps=steps[number] if steps else 10,
            hits=pack_hits(ids[letters.index(one)] for one in hit) if hit else None,
            wall_ns=1000 * (number + 1),
        )
        for number, (hit, fault) in enumerate(rows)
    ]
    names = {fault for _, fault in rows if fault}
    faults = [FaultRecord(name, "exit", name, "", 0, 0, 1, "{}") for name in sorted(names)]
    store.record(1, trials, faults)


def names(targets: tuple[Target, ...]) -> str:
    return "".join(target.name for target in targets)


def test_of_tests_that_hit_the_same_the_shortest_stands_for_all(store: Store) -> None:
    fill(store, ("ab", None), ("ab", None), ("c", None), steps=(9, 4, 9))
    table = read_table(store, 1)
    assert [one.trial for one in table.tests] == [1, 2]
    assert names(table.targets) == "abc"
    assert table.trials == 3


def test_a_failing_test_counts_only_for_what_no_passing_test_hits(store: Store) -> None:
    fill(store, ("ab", None), ("abc", "f1"), ("b", "f1"))
    table = read_table(store, 1)
    found = {one.trial: table.hits[row].sum() for row, one in enumerate(table.tests)}
    assert found == {0: 2, 1: 1}


def test_a_failing_test_does_not_count_for_mutants(store: Store) -> None:
    fill(store, ("a", None), ("b", "f1"))
    (mutant,) = store.target_ids([Target("mutant", "cart.py:1 x")])
    store.add_hits(1, {1: [mutant]})
    assert "mutant" not in {target.kind for target in read_table(store, 1).targets}


def test_tests_of_some_faults_are_not_looked_at(store: Store) -> None:
    fill(store, ("a", None), ("b", "f1"), ("c", "f2"))
    assert names(read_table(store, 1, without={"f1"}).targets) == "ac"


def test_only_some_targets_count(store: Store) -> None:
    fill(store, ("ab", None), ("c", None))
    assert names(read_table(store, 1, patterns=["event:[bc]"]).targets) == "bc"
    with pytest.raises(UserError, match=r"no target of kind 'evnt'; did you mean 'event'\?"):
        read_table(store, 1, kinds=["evnt"])


def test_lines_of_a_file_that_has_changed_are_left_out_and_said_so(
    store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "cart.py"
    file.write_text("x = 1\n")
    old = Source("cart.py", "x = 0\n", str(file))
    new = Source("cart.py", "x = 1\n", str(file))
    store.add_sources(1, [old, new])
    ids = store.target_ids([old.target("line", "1", 1), new.target("line", "1", 1)])
    store.record(1, [TrialRecord(0, b"", hits=pack_hits(ids))])
    table = read_table(store, 1)
    assert [target.source for target in table.targets] == [new.id]
    assert "another version of cart.py" in table.notes[0]


def test_tests_of_faults_are_taken_first_and_what_they_hit_is_kept(store: Store) -> None:
    fill(store, ("a", None), ("c", "f1"), ("b", None), ("cd", "f1"))
    fixed = Candidate(3, 10, 1e-6, "f1")
    table = read_table(store, 1, fixed=[3])
    choice = choose(table, [fixed], SuiteRequest())
    assert [one.trial for one in choice.tests] == [3, 0, 2]
    assert choice.kept == 4
    assert choice.at_least == 3


def test_part_of_the_targets_takes_fewer_tests(store: Store) -> None:
    fill(store, ("abc", None), ("d", None), ("e", None), ("f", None))
    table = read_table(store, 1)
    assert len(choose(table, [], SuiteRequest()).tests) == 4
    half = choose(table, [], SuiteRequest(keep=0.5))
    assert [one.trial for one in half.tests] == [0]


def test_a_test_that_cannot_be_used_is_replaced_by_others(store: Store) -> None:
    fill(store, ("abc", None), ("ab", None), ("c", None))
    table = read_table(store, 1)
    choice = choose(table, [], SuiteRequest(), without={0})
    assert sorted(one.trial for one in choice.tests) == [1, 2]


def test_a_suite_in_time_fits_the_time(store: Store) -> None:
    fill(store, ("ab", None), ("c", None), ("d", None))
    choice = choose(read_table(store, 1), [], SuiteRequest(seconds=3.5e-6))
    assert sum(one.seconds for one in choice.tests) <= 3.5e-6
    assert choice.kept == 3
    assert choice.method == "greedy in time"


def test_faults_for_which_there_is_no_time_are_told(store: Store) -> None:
    fill(store, ("ab", None))
    slow, quick = Candidate(7, 1, 5.0, "f1"), Candidate(8, 1, 0.1, "f2")
    choice = choose(read_table(store, 1), [slow, quick], SuiteRequest(seconds=1.0))
    assert [one.trial for one in choice.tests] == [8, 0]
    assert choice.no_time_for == 1


def test_what_is_there_already_is_not_chosen_again(store: Store) -> None:
    fill(store, ("ab", None), ("bc", None), ("d", None))
    choice = choose(read_table(store, 1), [], SuiteRequest(), there=[0])
    assert [one.trial for one in choice.tests] == [1, 2]
    assert choice.kept == 4


def test_coverage_is_all_kinds_that_watching_tells_and_fault_is_none(store: Store) -> None:
    fill(store, ("ab", None))
    ids = store.target_ids([Target("line", "1"), Target("branch", "1"), Target("mutant", "x")])
    store.add_hits(1, {0: ids})
    assert {one.kind for one in read_table(store, 1, ["coverage"]).targets} == {"branch", "line"}
    assert read_table(store, 1, ["fault"]).targets == ()


def test_coverage_that_is_not_there_is_told(store: Store) -> None:
    fill(store, ("ab", None))
    with pytest.raises(UserError, match=r"hit no target of kind 'coverage' \(it has: event\)"):
        read_table(store, 1, ["coverage"])
