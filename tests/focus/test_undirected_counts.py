"""How often undirected tests hit a target is known from all of them, not only from coin tosses."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyroaring import BitMap

from swarmtest import Campaign, open_store
from swarmtest.core.configuration import Configuration
from swarmtest.coverage.options import CoverageOptions
from swarmtest.focus.history import History, history_of
from swarmtest.focus.planning import PlannedTarget
from swarmtest.focus.undirected import earlier_count, earlier_default_count
from swarmtest.store import Store
from swarmtest.subjects.loading import SubjectReference

MACHINE = """
from swarmtest import Machine, action

class Pile(Machine):
    steps = 20

    def start(self):
        self.height = 0

    @action
    def put(self):
        self.height += 1
        if self.height == 6:
            self.event("high")
        assert self.height < 9, "too high"

    @action
    def take(self):
        self.height = max(0, self.height - 1)

    @action
    def clear(self):
        self.height = 0

    @action
    def look(self):
        pass

    @action
    def count(self):
        pass
"""
HIGH = PlannedTarget("event:high")
TRUTH = 0.152
"""The share of 30,000 coin-toss tests that hit it (0.148 to 0.156, with 95% confidence)."""


def run(store: Store, strategy: str, tests: int, seed: int = 1) -> None:
    options = CoverageOptions(("line",), cover=("pile",))
    Campaign("pile.py", strategy, tests, seed, workers=1, store=store, coverage=options).run()


def history(store: Store) -> History:
    subject = SubjectReference("pile.py").load()
    known = history_of(store, subject.name, subject.space, 0.95)
    assert known is not None
    return known


@pytest.fixture(autouse=True)
def pile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory with a machine."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "pile.py"
    file.write_text(MACHINE)
    return file


def test_coin_tosses_count_as_they_are() -> None:
    with open_store(":memory:") as store:
        run(store, "coin", 400)
        counted = earlier_count(history(store), HIGH, "coin")
        ids = [id for id, one in store.targets().items() if str(one) == "event:high"]
        hits = [BitMap.deserialize(one.hits) for one in store.trials(1) if one.hits]
    assert (counted.hits, counted.tests) == (sum(ids[0] in hit for hit in hits), 400)


@pytest.mark.parametrize("strategy", ["sized", "coin:p=0.7", "layered"])
def test_tests_of_other_strategies_are_weighed_as_if_coins_had_been_tossed(strategy: str) -> None:
    with open_store(":memory:") as store:
        run(store, strategy, 2000)
        counted = earlier_count(history(store), HIGH, "coin")
    assert 500 < counted.tests < 2000
    deviation = (TRUTH * (1 - TRUTH) / counted.tests) ** 0.5
    assert abs(counted.fraction - TRUTH) < 3.5 * deviation


def test_tests_that_left_nothing_to_chance_do_not_count() -> None:
    with open_store(":memory:") as store:
        run(store, "all-on", 50)
        run(store, "coin", 60)
        assert earlier_count(history(store), HIGH, "coin").tests == 60


def test_faults_are_counted_too() -> None:
    with open_store(":memory:") as store:
        run(store, "coin", 1000)
        fault = store.faults(1)[0]
        counted = earlier_count(history(store), PlannedTarget(f"fault:{fault.id}"), "coin")
    assert (counted.hits, counted.tests) == (fault.count, 1000)


def test_tests_of_code_that_has_changed_since_do_not_count(pile: Path) -> None:
    with open_store(":memory:") as store:
        run(store, "coin", 50)
        pile.write_text(MACHINE.replace("== 6", "== 7"))
        assert earlier_count(history(store), HIGH, "coin").tests == 0


def test_tests_with_all_features_on_count_whatever_their_strategy() -> None:
    with open_store(":memory:") as store:
        run(store, "all-on", 60)
        run(store, "coin", 300)
        known = history(store)
        counted = earlier_default_count(known, HIGH)
        space = known.study.evidence.spaces[0]
        [high] = [id for id, target in store.targets().items() if str(target) == "event:high"]
        trials = [trial for campaign in (1, 2) for trial in store.trials(campaign)]
    default = [
        t for t in trials if len(Configuration.from_bytes(space, t.configuration).included) == 5
    ]
    hits = sum(high in BitMap.deserialize(t.hits) for t in default if t.hits)
    assert len(default) > 60, "the coin also made some"
    assert (counted.hits, counted.tests) == (hits, len(default))
    low, above = counted.interval()
    assert low < counted.fraction < above
