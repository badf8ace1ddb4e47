"""Pages of trials, progress and workers: what a page about a running campaign asks any store."""

from __future__ import annotations

import random

import pytest
from store_examples import CAMPAIGN, fault, trial, trials

from swarmtest.core.errors import UserError
from swarmtest.store.interface import Store
from swarmtest.store.records import WorkerRecord

ANT = WorkerRecord("ant-17", "ant", 17, started=5.0, last_seen=9.5, tests=40, state="working")


def test_a_page_of_trials_goes_on_where_the_last_one_ended(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 1200))
    assert [t.trial for t in store.trials(number, limit=3)] == [0, 1, 2]
    assert [t.trial for t in store.trials(number, after=2, limit=3)] == [3, 4, 5]
    assert sum(1 for _ in store.trials(number, limit=1100)) == 1100
    assert list(store.trials(number, limit=0)) == []


def test_the_newest_trials_can_come_first(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [trial(i, verdict=i % 2) for i in range(1200)])
    newest = store.trials(number, newest_first=True)
    assert [t.trial for t in newest] == list(range(1199, -1, -1))
    page = store.trials(number, newest_first=True, before=1198, limit=2, verdict=1)
    assert [t.trial for t in page] == [1197, 1195]


def test_a_span_of_trials_leaves_out_both_of_its_ends(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 20))
    assert [t.trial for t in store.trials(number, after=3, before=6)] == [4, 5]


def test_progress_of_a_small_campaign_has_a_point_per_trial(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    shown = [trial(0, cpu_ns=5), trial(1, verdict=1, fault="f", cpu_ns=5), trial(3, cpu_ns=5)]
    store.record(number, shown, [fault("f", 1)])
    assert [tuple(p) for p in store.progress(number)] == [
        (0, 1, 0, 0, 5),
        (1, 2, 1, 1, 10),
        (3, 3, 1, 1, 15),
    ]


@pytest.mark.parametrize("size", [7, 99, 100, 101, 2345])
@pytest.mark.parametrize("buckets", [1, 10, 200])
def test_progress_ends_with_the_summary_in_about_as_many_points_as_asked_for(
    store: Store, size: int, buckets: int
) -> None:
    number = store.add_campaign(CAMPAIGN)
    names = ["f", "g", "h"]
    store.record(
        number,
        [trial(i, verdict=i % 2, fault=names[i % 3] if i % 2 else None) for i in range(size)],
        [fault(name, first) for name, first in zip(names, (3, 1, 5), strict=True)],
    )
    points, total = store.progress(number, buckets), store.summary(number)
    assert 1 <= len(points) <= buckets
    assert points == sorted(points)
    last = (size - 1, total["trials"], total["failed"], 3, total["cpu_ns"])
    assert tuple(points[-1]) == last


def test_totals_do_not_depend_on_how_often_and_in_which_order_trials_came(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    dice = random.Random(1)
    records = [trial(i, verdict=i % 3, wall_ns=i) for i in range(1000)]
    for _ in range(12):
        store.record(number, [*dice.sample(records, 300), records[17], records[17]])
    store.record(number, records)
    assert store.summary(number) == {
        "trials": 1000,
        "passed": 334,
        "failed": 333,
        "invalid": 333,
        "steps": sum(t.steps for t in records),
        "skipped": 0,
        "cpu_ns": sum(t.cpu_ns for t in records),
        "wall_ns": 499500,
    }


def test_a_campaign_without_trials_has_no_progress(store: Store) -> None:
    assert store.progress(store.add_campaign(CAMPAIGN)) == []


def test_a_worker_is_known_by_what_it_said_last(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    later = ANT._replace(last_seen=12.5, tests=90, state="idle")
    bee = ANT._replace(name="bee-3", host="bee", pid=3)
    for said in (bee, ANT, later):
        store.note_worker(number, said)
    assert store.workers(number) == [later, bee]


def test_a_worker_whose_clock_was_set_back_is_still_heard(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.note_worker(number, ANT)
    earlier = ANT._replace(last_seen=3.5, tests=50)
    store.note_worker(number, earlier)
    assert store.workers(number) == [earlier]


def test_workers_belong_to_their_campaign(store: Store) -> None:
    one, two = store.add_campaign(CAMPAIGN), store.add_campaign(CAMPAIGN)
    store.note_worker(one, ANT)
    assert store.workers(two) == []
    store.delete_campaign(one)
    with pytest.raises(UserError, match="no campaign"):
        store.workers(one)
    with pytest.raises(UserError, match="no campaign"):
        store.note_worker(one, ANT)
    with pytest.raises(UserError, match="no campaign"):
        store.progress(one)
