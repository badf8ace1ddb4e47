"""Campaigns move between stores, there and back, and nothing is lost."""

from __future__ import annotations

import dataclasses
import itertools
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from postgres_server import Server
from store_examples import CAMPAIGN, SPACE, fault, trial, trials

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source, Target, pack_hits, unpack_hits
from swarmtest.store.content_hash import campaign_hash
from swarmtest.store.copies import copy_campaign
from swarmtest.store.interface import Store
from swarmtest.store.records import ReductionRecord, TestRecord, WorkerRecord, pack_floats

Opener = Callable[..., Store]


def fill(store: Store, size: int = 1500) -> int:
    """A campaign with something of everything."""
    record = dataclasses.replace(CAMPAIGN, status="finished", created=12.5, wall_seconds=1.5)
    number = store.add_campaign(record)
    source = Source("a.py", "x = 1\n\0\ud800", "/home/ann/a.py")
    lines = [source.target("line", str(n), n) for n in range(1, 40)]
    store.add_sources(number, [source])
    ids = store.target_ids([*lines, Target("event", "full")])
    shown = [
        trial(
            n,
            verdict=int(n % 7 == 3),
            fault="f" if n % 7 == 3 else None,
            hits=pack_hits([ids[n % 40], ids[-1]]) if n % 5 else None,
            used=b"\1" + bytes([n % 251]),
            origin="coin\0\u2400",
        )
        for n in range(size)
    ]
    store.record(number, shown, [fault("f", 3, 20), fault("f", 10, 9)], [TestRecord(5, '["\0"]')])
    store.add_reduction(number, ReductionRecord("f", 10, 9, 2, "[]", complete=True))
    store.note_worker(number, WorkerRecord("ant-1", "ant", 1, 5.0, 9.5, 40, "done"))
    store.update_campaign(number, outside=pack_hits(ids[:3]))
    return number


@pytest.fixture
def crowded(store: Store) -> Store:
    """A store in which ids are taken: others ran before."""
    store.target_ids([Target("event", f"another {i}") for i in range(100)])
    store.record(store.add_campaign(CAMPAIGN), trials(0, 10))
    return store


def test_a_campaign_comes_back_from_another_store_as_it_was(
    crowded: Store, open_url: Opener, tmp_path: Path
) -> None:
    here, back = open_url(tmp_path / "here.db"), open_url(tmp_path / "back.db")
    number = fill(here)
    there = copy_campaign(here, crowded, number)
    again = copy_campaign(crowded, back, there.number)
    assert there.hash == again.hash == campaign_hash(back, again.number)
    assert (there.trials, again.number) == (1500, 1)
    assert dataclasses.replace(crowded.campaign(there.number), outside=None, id=0) == (
        dataclasses.replace(here.campaign(number), outside=None, id=0)
    )
    for told in ("faults", "reductions", "workers", "sources", "summary", "progress"):
        assert getattr(back, told)(1) == getattr(here, told)(number)
    assert list(back.tests(1)) == list(here.tests(number))
    for before, after in zip(here.trials(number), back.trials(1), strict=True):
        assert after._replace(hits=None) == before._replace(hits=None)
        assert _names(back, after.hits) == _names(here, before.hits)
    assert _names(back, back.campaign(1).outside) == _names(here, here.campaign(number).outside)


def _names(store: Store, hits: bytes | None) -> set[Target]:
    return set(store.targets(unpack_hits(hits)).values()) if hits else set()


def test_what_was_copied_before_is_not_copied_again(store: Store, open_url: Opener) -> None:
    here = open_url(":memory:")
    number = fill(here, 50)
    first, second = copy_campaign(here, store, number), copy_campaign(here, store, number)
    assert (first.was_there, second.was_there) == (False, True)
    assert first.number == second.number
    assert len(store.campaigns()) == 1


def test_an_interrupted_copy_does_not_look_whole_and_can_be_finished(
    store: Store, open_url: Opener
) -> None:
    here = open_url(":memory:")
    number = fill(here, 6000)

    def interrupt(trials: int) -> None:
        if trials == 4096:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_campaign(here, store, number, interrupt)
    (unfinished,) = store.campaigns()
    assert unfinished.status == "copying"
    assert store.summary(unfinished.id)["trials"] == 4096
    copied = copy_campaign(here, store, number)
    assert (copied.number, copied.trials) == (unfinished.id, 6000)
    assert store.campaign(copied.number).status == "finished"
    assert campaign_hash(store, copied.number) == campaign_hash(here, number)


def test_a_copy_that_grew_meanwhile_is_not_taken_for_the_same(
    store: Store, open_url: Opener
) -> None:
    here = open_url(":memory:")
    number = fill(here, 50)
    before = copy_campaign(here, store, number)
    here.record(number, [trial(50)])
    after = copy_campaign(here, store, number)
    assert after.number != before.number
    assert (before.trials, after.trials) == (50, 51)


CHANGES: list[Callable[[Store, int], None]] = [
    lambda store, n: store.update_campaign(n, wall_seconds=9.0),
    lambda store, n: store.update_campaign(n, outside=None),
    lambda store, n: store.record(n, [trial(50)]),
    lambda store, n: store.record(n, [], [fault("f", 10, 2)]),
    lambda store, n: store.record(n, [], [], [TestRecord(6, "[]")]),
    lambda store, n: store.add_hits(n, {0: store.target_ids([Target("event", "full")])}),
    lambda store, n: store.add_sources(n, [Source("b.py", "y = 1\n")]),
    lambda store, n: store.add_reduction(n, ReductionRecord("f", 10, 9, 1, "[]")),
    lambda store, n: store.note_worker(n, WorkerRecord("bee-2", "bee", 2, 5.0, 9.5)),
]


def test_whatever_changes_changes_the_hash(open_url: Opener) -> None:
    store = open_url(":memory:")
    number = fill(store, 50)
    hashes = [campaign_hash(store, number)]
    for change in CHANGES:
        change(store, number)
        hashes.append(campaign_hash(store, number))
    assert all(before != after for before, after in itertools.pairwise(hashes))


OTHERWISE: dict[str, Any] = {
    "configuration": SPACE.configuration({"pop": 1, "level": "-O2"}).to_bytes(),
    "propensities": pack_floats([0.25]),
    "origin": "layered",
    "seed": 8,
    "verdict": 2,
    "fault": None,
    "steps": 8,
    "skipped": 8,
    "used": b"\1\2\4",
    "hits": b"no set",
    "cpu_ns": 8,
    "wall_ns": 8,
    "missing": "why",
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_whatever_is_different_in_a_trial_changes_the_hash(name: str, open_url: Opener) -> None:
    plain = trial(70, verdict=1, fault="f", used=b"\1\2\3", propensities=pack_floats([0.5]))
    hashes = []
    for value in (getattr(plain, name), OTHERWISE[name]):
        store = open_url(":memory:")
        number = store.add_campaign(dataclasses.replace(CAMPAIGN, created=1.0))
        store.record(number, [*trials(0, 70), plain._replace(**{name: value})])
        hashes.append(campaign_hash(store, number))
    assert hashes[0] != hashes[1]


def test_the_hash_does_not_depend_on_how_trials_are_cut_into_blocks(open_url: Opener) -> None:
    whole, cut = open_url(":memory:"), open_url(":memory:")
    number = fill(whole, 900)
    copied = copy_campaign(whole, cut, number)
    for each in cut.trials(copied.number):
        assert each.hits is None or unpack_hits(each.hits)
    pieces = open_url(":memory:")
    other = pieces.add_campaign(whole.campaign(number))
    pieces.add_sources(other, whole.sources(number))
    ids = pieces.target_ids([*whole.targets().values()])
    assert ids == [*whole.targets()]
    records = [*whole.trials(number)]
    for start in range(0, 900, 90):
        pieces.record(other, records[start : start + 90])
    pieces.record(other, (), whole.faults(number), [*whole.tests(number)])
    for reduction in whole.reductions(number):
        pieces.add_reduction(other, reduction)
    for worker in whole.workers(number):
        pieces.note_worker(other, worker)
    pieces.update_campaign(other, outside=whole.campaign(number).outside)
    assert len(pieces.block_ranges(other)) == 10
    assert len(whole.block_ranges(number)) == len(cut.block_ranges(copied.number)) == 1
    assert campaign_hash(pieces, other) == copied.hash == campaign_hash(cut, copied.number)


def test_blocks_are_copied_as_they_are(crowded: Store, open_url: Opener) -> None:
    here = open_url(":memory:")
    number = fill(here, 900)
    copied = copy_campaign(here, crowded, number)
    (before,), (after,) = here.packed_blocks(number), crowded.packed_blocks(copied.number)
    assert after == before._replace(targets=after.targets)


def test_hits_of_targets_that_are_gone_are_left_out_of_the_copy(
    store: Store, tmp_path: Path, open_url: Opener
) -> None:
    here = open_url(tmp_path / "here.db")
    number = fill(here, 300)
    here.close()
    connection = sqlite3.connect(tmp_path / "here.db")
    connection.execute("DELETE FROM targets WHERE id = 4")
    connection.commit()
    connection.close()
    here = open_url(tmp_path / "here.db")
    copied = copy_campaign(here, store, number)
    assert copied.unknown_targets == 1
    for before, after in zip(here.trials(number), store.trials(copied.number), strict=True):
        assert after._replace(hits=None) == before._replace(hits=None)
        assert (before.hits is None) == (after.hits is None)
        assert _names(store, after.hits) == _names(here, before.hits)


def test_a_copy_that_is_not_equal_stays_unfinished(
    server: Server, open_url: Opener, tmp_path: Path
) -> None:
    here = open_url(tmp_path / "here.db")
    there = open_url(server.emptied_url())
    number = fill(here, 50)

    def spoil(trials: int) -> None:
        server.execute("DELETE FROM shared.block_targets", "DELETE FROM shared.block_hits")

    with pytest.raises(
        UserError, match=r"differs from campaign 1 in .*: if that campaign is still running"
    ):
        copy_campaign(here, there, number, spoil)
    assert there.campaign(1).status == "copying"
