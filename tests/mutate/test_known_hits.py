"""What the store knows of a campaign's lines spares tests that reach no mutant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from swarmtest import Campaign, open_store
from swarmtest.mutate.campaign_tests import draw_trials, trials_that_reach
from swarmtest.mutate.generation import draw_mutants
from swarmtest.mutate.kill_matrix import KillMatrix
from swarmtest.mutate.loaded_files import source_of
from swarmtest.mutate.mutation import mutate_campaign
from swarmtest.store.interface import Store
from swarmtest.subjects.loading import SubjectReference

COUNTER = """\
STEP = 1


class Counter:
    def __init__(self):
        self.n = 0

    def up(self):
        self.n += STEP

    def down(self):
        self.n -= 1
"""
MACHINE = """\
from known_counter import Counter
from swarmtest import Machine, action, invariant


class Counting(Machine):
    steps = 6

    def start(self):
        self.counter, self.n = Counter(), 0

    @action
    def up(self):
        self.counter.up()
        self.n += 1

    @action
    def down(self):
        self.counter.down()
        self.n -= 1

    @invariant
    def is_right(self):
        assert self.counter.n == self.n
"""
DOWN = {"known_counter.py": {12}}


@pytest.fixture
def store(forget: Callable[[], None]) -> Iterator[Store]:
    Path("known_counter.py").write_text(COUNTER)
    Path("counting.py").write_text(MACHINE)
    with open_store("store.db") as opened:
        yield opened


def campaign(store: Store, **options: object) -> int:
    """The same 40 tests each time; some of them never count down."""
    made = Campaign("counting.py", "coin", 40, seed=1, store=store, workers=1, **options)  # type: ignore[arg-type]
    return made.run().campaign


def needed(store: Store, number: int, lines: dict[str, set[int]] | None) -> tuple[int, int]:
    """How many tests are run on the mutants of these lines, of how many."""
    record = store.campaign(number)
    subject = SubjectReference.from_json(record.options["subject"]).load()
    drawn = draw_mutants([source_of("known_counter.py")], lines=lines)
    trials = draw_trials(store, number, 1000, 0)
    return len(trials_that_reach(store, record, subject, drawn, trials)), len(trials)


def kills(matrix: KillMatrix) -> dict[tuple[str, int], bool]:
    """Whether a trial kills a mutant."""
    return {
        (mutant.id, int(test.partition("#")[2])): bool(matrix.killed[row, column])
        for row, mutant in enumerate(matrix.mutants)
        for column, test in enumerate(matrix.tests)
    }


def test_tests_that_reach_no_mutant_are_not_run_and_the_matrix_is_the_same(store: Store) -> None:
    watched, plain = campaign(store, coverage="line"), campaign(store)
    some, count = needed(store, watched, DOWN)
    assert 0 < some < count
    with_hits = mutate_campaign(store, watched, ["known_counter.py"], lines=DOWN)
    without = mutate_campaign(store, plain, ["known_counter.py"], lines=DOWN)
    assert len(with_hits.tests) == len(without.tests) == count
    assert kills(with_hits) == kills(without)
    assert any(kills(without).values())


def test_without_coverage_all_tests_are_run(store: Store) -> None:
    some, count = needed(store, campaign(store), DOWN)
    assert some == count


def test_a_mutant_of_what_runs_at_import_needs_all_tests(store: Store) -> None:
    some, count = needed(store, campaign(store, coverage="line"), {"known_counter.py": {1, 12}})
    assert some == count


@pytest.mark.parametrize("file", ["known_counter.py", "counting.py"])
def test_a_file_that_was_edited_since_needs_all_tests(store: Store, file: str) -> None:
    number = campaign(store, coverage="line")
    Path(file).write_text(Path(file).read_text() + "\n# edited\n")
    some, count = needed(store, number, DOWN)
    assert some == count
