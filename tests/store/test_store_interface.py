"""A store of one's own; names of stores, without their passwords; packed columns."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from installed_packages import install
from store_examples import CAMPAIGN, fault, trial, trials

from swarmtest.compare.command import command_for_the_rest
from swarmtest.core.errors import UserError
from swarmtest.core.targets import pack_hits, unpack_hits
from swarmtest.store import open_store
from swarmtest.store.fault_lives import fault_lives, keep_history
from swarmtest.store.interface import PostgresAddress, Store, redacted
from swarmtest.store.records import (
    FaultEvent,
    TestRecord,
    pack_counts,
    pack_floats,
    unpack_counts,
    unpack_floats,
)

TO_WRITE = [
    "add_campaign", "update_campaign", "campaigns", "delete_campaign", "record", "add_hits",
    "trials", "note_worker", "workers", "faults", "add_reduction", "reductions", "tests",
    "target_ids", "targets", "add_sources", "sources", "watched_targets", "close",
]  # fmt: skip


def delegating(method: str) -> Callable[..., Any]:
    return lambda self, *values, **options: getattr(self.store, method)(*values, **options)


class OwnStore(Store):
    """Only what has to be written, by asking another store."""

    def __init__(self) -> None:
        self.store = open_store(":memory:")
        self.url = "own"


for name in TO_WRITE:
    setattr(OwnStore, name, delegating(name))


@pytest.fixture
def own() -> OwnStore:
    store = OwnStore()
    number = store.add_campaign(CAMPAIGN)
    failed = [
        trial(n, verdict=1, fault="f", cpu_ns=n, used=b"\1\2\0", hits=pack_hits([n, 5]))
        for n in (1003, 1203)
    ]
    store.record(number, [*trials(0, 1000), trial(1001, verdict=2), *failed], [fault("f", 1003)])
    store.record(number, [], [], [TestRecord(5, "[5]")])
    return store


@pytest.mark.parametrize("method", TO_WRITE)
def test_an_incomplete_store_says_which_method_is_missing(method: str) -> None:
    class Incomplete(OwnStore):
        pass

    setattr(Incomplete, method, getattr(Store, method))
    words = rf"Incomplete: an incomplete store, it has no method {method}: write def {method}\(self"
    with pytest.raises(UserError, match=words):
        Incomplete()


def test_what_need_not_be_written_answers_as_the_stores_of_swarmtest_do(own: OwnStore) -> None:
    with own as store:
        assert store.campaign(1) == own.store.campaign(1)
        assert store.trial(1, 1003) == own.store.trial(1, 1003)
        assert list(store.trial_numbers(1)) == list(own.store.trial_numbers(1))
        assert store.summary(1) == own.store.summary(1)
        for buckets in (10, 200, 5000):
            points = {point.trial: point for point in own.store.progress(1, buckets)}
            for point in store.progress(1, buckets):
                assert points.get(point.trial, point) == point
        assert store.progress(1, 5000) == own.store.progress(1, 5000)
        assert [store.test(1, n) for n in (5, 1003, 7)] == [
            own.store.test(1, n) for n in (5, 1003, 7)
        ]
        blocks = [list(each.blocks(1, after=900)) for each in (store, own.store)]
        assert [[*map(tuple, chain(*(b.records() for b in each)))] for each in blocks] == [
            [*map(tuple, store.trials(1, after=900))]
        ] * 2
        for name in ("targets", "counts", "first"):
            sums = [getattr(each.hit_summary(1), name) for each in (store, own.store)]
            assert sums[0].tolist() == sums[1].tolist() != []
        for name in ("enabled", "offered", "used", "steps"):
            sums = [getattr(each.feature_summary(1), name) for each in (store, own.store)]
            assert sums[0].tolist() == sums[1].tolist() != []
        with pytest.raises(UserError, match="no campaign 9 in own: it has 1"):
            store.campaign(9)
        with pytest.raises(UserError, match="has no trial 2000: it has 1003, numbered 0 to 1203"):
            store.trial(1, 2000)


SHELF = """
from swarmtest.store import SqliteStore

class ShelfStore(SqliteStore):
    def __init__(self, url, read_only=False, *, must_exist=False, timeout=30.0):
        super().__init__(":memory:")
        self.url = url
"""


def test_an_installed_package_may_offer_a_store_for_a_scheme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "swarmtest.stores", "shelf = shelves:ShelfStore", shelves=SHELF)
    with open_store("shelf://upper/left") as store:
        assert store.url == "shelf://upper/left"
        assert store.add_campaign(CAMPAIGN) == 1


@pytest.mark.parametrize(("text", "said"), [
    ("raise OSError('no wood')", "cannot load stores with names like shelf://.*OSError: no wood"),
    ("class ShelfStore: pass", "is not a store: name a class that derives from swarmtest.store"),
])  # fmt: skip
def test_an_offered_store_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shelves", raising=False)
    install(tmp_path, "swarmtest.stores", "shelf = shelves:ShelfStore", shelves=text)
    with pytest.raises(UserError, match=said):
        open_store("shelf://upper/left")


@pytest.mark.parametrize(("url", "shown"), [
    ("postgresql://ann:pw@host/db", "postgresql://ann@host/db"),
    ("postgres://ann:pw@h1:1,h2:2/db?sslmode=require", "postgres://ann@h1:1,h2:2/db?sslmode=require"),
    ("postgresql://ann:p%40w@[::1]:5432/db", "postgresql://ann@[::1]:5432/db"),
    ("postgresql://host/db?user=ann&password=pw", "postgresql://host/db?user=ann"),
    ("postgresql:///?service=tests", "postgresql:///?service=tests"),
    ("postgresql://ann:pw@/db?host=/run/x&schema=s", "postgresql://ann@/db?host=/run/x&schema=s"),
    ("postgresql+psycopg://ann:pw@host/db", "postgresql+psycopg://ann@host/db"),
    ("mysql://ann:pw@host/db", "mysql://ann@host/db"),
    ("postgresql://host:5432/db?user=a@b", "postgresql://host:5432/db?user=a@b"),
    ("--store=postgresql://ann:pw@host/db", "--store=postgresql://ann@host/db"),
    (".swarmtest/swarmtest.db", ".swarmtest/swarmtest.db"),
    ("sqlite:///a@b:c.db", "sqlite:///a@b:c.db"),
])  # fmt: skip
def test_a_store_is_shown_without_its_password(url: str, shown: str) -> None:
    assert redacted(url) == shown


@settings(max_examples=300)
@given(st.text("ab@/?:%#&= ", max_size=12))
def test_not_even_a_password_that_was_not_quoted_is_shown(noise: str) -> None:
    url = f"postgresql://ann:SEC{noise}RET@host/db"
    assert "SEC" not in redacted(url)
    assert "RET" not in redacted(url)
    said = _said_of(url)
    assert "SEC" not in said
    assert "RET" not in said


def _said_of(url: str) -> str:
    try:
        return repr(PostgresAddress.parse(url))
    except UserError as error:
        return str(error)


@pytest.mark.parametrize("url", [
    "mysql://me:secret@host/db",
    "postgresql+asyncpg://me:secret@h/d",
    "postgresql:/me:secret@host/db",
    "postgres:me:secret@host/db",
    "sqlite:/secret.db",
])  # fmt: skip
def test_a_store_of_another_kind_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(UserError, match="a store is named by a path like") as error:
        open_store(url)
    assert "secret" not in str(error.value)


def test_the_schema_is_not_for_libpq() -> None:
    address = PostgresAddress.parse("postgresql://ann@host/db?schema=team&sslmode=require")
    assert address.schema == "team"
    assert address.conninfo == "postgresql://ann@host/db?sslmode=require"


def test_the_command_for_the_rest_of_a_comparison_has_no_password() -> None:
    words = ["compare", "stack.py", "--store", "postgresql://ann:secret@host/db", "--runs=2"]
    rest = command_for_the_rest(words, {"go_on": False, "seed": "random"}, seed=7)
    assert rest == (
        "swarmtest compare stack.py --store postgresql://ann@host/db --runs=2 --continue --seed 7"
    )


# The compact columns hold what was put in.


@given(st.lists(st.integers(0, 255) | st.integers(0, 2**32 - 1), max_size=40))
def test_counts_come_back(counts: list[int]) -> None:
    assert unpack_counts(pack_counts(counts)) == tuple(counts)


def test_small_counts_take_a_byte_each() -> None:
    assert len(pack_counts([0, 255, 7])) == 4


@given(st.lists(st.floats(0, 1, width=32), max_size=40))
def test_probabilities_come_back(values: list[float]) -> None:
    assert unpack_floats(pack_floats(values)) == tuple(values)


@given(st.sets(st.integers(0, 2**32 - 1), max_size=40))
def test_hits_come_back_in_order(ids: set[int]) -> None:
    assert unpack_hits(pack_hits(ids)) == sorted(ids)


def test_a_count_that_is_negative_is_refused() -> None:
    with pytest.raises(struct.error):
        pack_counts([-1])


def test_a_store_of_ones_own_need_not_keep_events() -> None:
    store = OwnStore()
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 5), [fault("f", 1)])
    keep_history(store, number)
    assert not store.keeps_fault_events
    assert fault_lives(store, CAMPAIGN.subject)["f"].state == "open"
    with pytest.raises(UserError, match="keeps no history of faults: its class OwnStore"):
        store.add_fault_events([FaultEvent("stack.py", "f", "known", 1.0)])
