"""What any store must do, SQLite or another."""

from __future__ import annotations

import dataclasses
import itertools
import random
import signal
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_examples import BITS, CAMPAIGN, fault, finish, python, trial, trials

from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.core.targets import Source, Target, pack_hits, unpack_hits
from swarmtest.store import open_store
from swarmtest.store.blocks import TrialBlock
from swarmtest.store.blocks.codec import pack_block
from swarmtest.store.interface import Store
from swarmtest.store.loose_blocks import BlockLayout
from swarmtest.store.records import (
    FaultRecord,
    ReductionRecord,
    TestRecord,
    TrialRecord,
    pack_counts,
)

Opener = Callable[..., Store]

FULL = TrialRecord(
    trial=3,
    configuration=BITS,
    propensities=b"\0\0\0\x3f",
    origin="coin's \u00fcber",
    seed=2**63 - 1,
    verdict=1,
    fault="abcd1234",
    steps=50,
    skipped=2,
    used=pack_counts([3, 300]),
    hits=pack_hits([1, 70000]),
    cpu_ns=12,
    wall_ns=34,
)


def test_hits_that_are_found_out_later_are_added_to_those_there_are(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [FULL._replace(trial=0), FULL._replace(trial=1, hits=None)])
    store.add_hits(number, {0: [5, 70000], 1: [7]})
    store.add_hits(number, {1: [7]})
    assert [unpack_hits(t.hits or b"") for t in store.trials(number)] == [[1, 5, 70000], [7]]


def test_hits_of_a_trial_that_is_not_there_are_refused(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    with pytest.raises(UserError, match="17"):
        store.add_hits(number, {17: [1]})


def test_a_campaign_is_read_back_as_it_was_added(store: Store) -> None:
    before = dataclasses.replace(CAMPAIGN, seed=2**80, created=12.5)
    number = store.add_campaign(before)
    assert store.campaign(number) == dataclasses.replace(before, id=number)
    assert store.campaigns() == [store.campaign(number)]


def test_a_campaign_without_a_date_gets_todays(store: Store) -> None:
    assert store.campaign(store.add_campaign(CAMPAIGN)).created > 1e9


def test_a_campaign_can_be_finished(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.update_campaign(number, status="finished", wall_seconds=2.5, options={"p": 0.1})
    after = store.campaign(number)
    assert (after.status, after.wall_seconds, after.options) == ("finished", 2.5, {"p": 0.1})


def test_what_defines_a_campaign_cannot_change(store: Store) -> None:
    with pytest.raises(TypeError, match="seed"):
        store.update_campaign(store.add_campaign(CAMPAIGN), seed=8)


@pytest.mark.parametrize("size", [1, 2, 16, 49, 50, 51, 1234])
def test_trials_are_read_back_as_they_were_recorded(store: Store, size: int) -> None:
    number = store.add_campaign(CAMPAIGN)
    records = [
        FULL._replace(trial=i, seed=i, hits=FULL.hits if i % 3 else None) for i in range(size)
    ]
    store.record(number, records)
    assert list(store.trials(number)) == records
    assert list(store.trial_numbers(number)) == list(range(size))
    assert store.trial(number, 0) == records[0]


def test_a_verdict_is_kept_as_its_number(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [trial(0, verdict=Verdict.INVALID), trial(1, verdict=Verdict.PASSED)])
    assert [(t.verdict, type(t.verdict)) for t in store.trials(number)] == [(2, int), (0, int)]


def test_an_empty_batch_is_fine(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [])
    assert list(store.trials(number)) == []
    assert set(store.summary(number).values()) == {0}


def test_trials_can_be_picked_by_number_verdict_and_fault(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [trial(i, verdict=i % 3, fault=f"f{i % 6}" if i % 3 == 1 else None)
                          for i in range(2000)])  # fmt: skip
    assert [t.trial for t in store.trials(number, after=1996)] == [1997, 1998, 1999]
    assert [t.trial for t in store.trials(number, verdict=1)] == list(range(1, 2000, 3))
    assert [t.trial for t in store.trials(number, fault="f4")] == list(range(4, 2000, 6))
    assert [t.trial for t in store.trials(number, fault="f4", after=1990)] == [1996]


def test_a_summary_adds_up_the_trials(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    verdicts = [Verdict.PASSED, Verdict.FAILED, Verdict.FAILED, Verdict.INVALID]
    store.record(
        number,
        [trial(i, verdict=v, steps=10, skipped=1, cpu_ns=5, wall_ns=2**60)
         for i, v in enumerate(verdicts)],
    )  # fmt: skip
    assert store.summary(number) == {
        "trials": 4, "passed": 1, "failed": 2, "invalid": 1,
        "steps": 40, "skipped": 4, "cpu_ns": 20, "wall_ns": 2**62,
    }  # fmt: skip


def test_a_batch_that_arrives_twice_counts_once(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 100))
    store.record(number, [t._replace(steps=999) for t in trials(50, 150)])
    assert store.summary(number)["trials"] == 150
    assert [t.steps for t in store.trials(number)][:100] == [t.steps for t in trials(0, 100)]


def test_trials_that_come_in_any_order_and_in_parts_are_read_in_order(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    dice = random.Random(3)
    records = [trial(n, hits=pack_hits([n % 7, n])) for n in range(900)]
    batches = [records[n : n + 30] for n in range(0, 900, 15)]  # each trial in two of them
    dice.shuffle(batches)
    for batch in batches:
        store.record(number, dice.sample(batch, len(batch)))
    assert list(store.trials(number)) == records
    assert store.summary(number)["trials"] == 900
    firsts = [first for first, *_ in store.block_ranges(number)]
    assert firsts == sorted(firsts)


def test_small_batches_are_merged_into_few_blocks(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    records = [
        trial(n, verdict=n % 2, fault="f" if n % 2 else None, hits=pack_hits([n % 7]))
        for n in range(600)
    ]
    for start in range(0, 600, 5):
        store.record(number, records[start : start + 5], [fault("f", 1)])
    before = (store.summary(number), store.faults(number), store.progress(number))
    assert len(store.block_ranges(number)) == 120
    store.merge_blocks(number)
    assert store.block_ranges(number) == [(0, 599, 600)]
    assert list(store.trials(number)) == records
    assert (store.summary(number), store.faults(number), store.progress(number)) == before
    assert store.hit_summary(number).counts.tolist() == [86, 86, 86, 86, 86, 85, 85]
    assert [t.trial for t in store.trials(number, fault="f", after=590)] == [
        591,
        593,
        595,
        597,
        599,
    ]


def test_a_block_that_a_worker_packed_counts_once(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    records = [trial(n, hits=pack_hits([n % 7])) for n in range(300)]
    layout = BlockLayout(2, CAMPAIGN.seed)
    first, second = (
        pack_block(TrialBlock.from_records(part, 2), layout)
        for part in (records[:200], records[100:])
    )
    store.record(number, records[50:60])
    for packed in (first, second, first):
        store.record_blocks(number, [packed])
    assert list(store.trials(number)) == records
    assert store.hit_summary(number).counts.sum() == 300


def test_blocks_that_overlap_in_any_way_come_in_one_batch(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    records = [trial(n, hits=pack_hits([n % 7])) for n in range(600)]
    layout = BlockLayout(2, CAMPAIGN.seed)
    # Apart, side by side, reaching into each other, around another one, and the same again.
    parts = [(500, 600), (0, 80), (80, 160), (150, 260), (300, 400), (320, 330), (0, 80)]
    store.record(number, records[240:310])
    store.record(number, records[410:420])
    blocks = [
        pack_block(TrialBlock.from_records(records[start:end], 2), layout) for start, end in parts
    ]
    store.record_blocks(number, blocks)
    stored = [*range(400), *range(410, 420), *range(500, 600)]
    assert list(store.trials(number)) == [records[n] for n in stored]
    ranges = store.block_ranges(number)
    assert all(last < first for (_, last, _), (first, _, _) in itertools.pairwise(ranges))
    assert store.hit_summary(number).counts.sum() == len(stored)


def test_a_fault_keeps_its_first_trial_and_its_shortest_test(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(
        number, [trial(i, verdict=1, fault="f") for i in (5, 9)], [fault("f", 5, 30, "[5]")]
    )
    store.record(number, [trial(3, verdict=1, fault="f")], [fault("f", 3, 40, "[3]")])
    store.record(number, [], [fault("f", 9, 8, "[9]")])
    (found,) = store.faults(number)
    assert (found.first_trial, found.trial, found.size, found.test) == (3, 9, 8, "[9]")
    assert (found.details, found.count) == ("Traceback of trial 9", 3)


def test_a_test_that_can_be_replayed_beats_a_shorter_one_that_cannot(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [], [fault("f", 1, 0, None), fault("f", 2, 50, "[2]")])
    store.record(number, [], [fault("f", 3, 0, None)])
    (found,) = store.faults(number)
    assert (found.first_trial, found.trial, found.test) == (1, 2, "[2]")


def test_faults_come_in_the_order_in_which_they_were_found(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [], [fault("b", 7), fault("c", 2), fault("a", 5)])
    assert [f.id for f in store.faults(number)] == ["c", "a", "b"]


def test_kept_tests_and_shortest_tests_can_be_read(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 9), [fault("f", 4, test="[4]"), fault("g", 5, test=None)],
                 [TestRecord(2, "[2]")])  # fmt: skip
    assert [store.test(number, i) for i in (2, 4, 5, 6)] == ["[2]", "[4]", None, None]


def test_text_that_utf8_cannot_hold_does_not_cost_the_batch(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    broken = fault("f", 0)._replace(signature="bad \ud800", details="worse \udfff")
    store.record(number, trials(0, 2), [broken])
    assert store.faults(number)[0].signature == "bad \\ud800"
    assert store.summary(number)["trials"] == 2


SMALL = ReductionRecord(
    "f", 4, before=31, size=3, test="[3]", details="Traceback", runs=42, seconds=0.5, complete=True
)


def test_a_reduction_is_read_back_beside_the_test_that_it_was_made_from(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 9), [fault("f", 4, 31, "[31]")])
    store.add_reduction(number, SMALL)
    assert store.reductions(number) == [SMALL]
    assert store.reductions(number)[0].complete is True
    assert (store.faults(number)[0].test, store.test(number, 4)) == ("[31]", "[31]")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(several=st.permutations([
    SMALL,
    SMALL._replace(size=9, test="[9]"),
    SMALL._replace(complete=False, test="[incomplete]"),
    SMALL._replace(size=0, test=None, complete=False),
]))  # fmt: skip
def test_the_best_reduction_stays_in_whatever_order_they_come(
    store: Store, several: list[ReductionRecord]
) -> None:
    number = store.add_campaign(CAMPAIGN)
    for one in several:
        store.add_reduction(number, one)
    assert store.reductions(number) == [SMALL]


def test_reductions_that_keep_different_things_stand_side_by_side(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    other = SMALL._replace(criterion="coverage", size=20)
    store.add_reduction(number, SMALL)
    store.add_reduction(number, other)
    assert store.reductions(number) == [other, SMALL]


def test_a_reduction_with_text_that_utf8_cannot_hold_is_kept(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.add_reduction(number, SMALL._replace(details="worse \udfff"))
    assert store.reductions(number)[0].details == "worse \\udfff"


def test_a_deleted_campaign_takes_its_reductions_along(store: Store) -> None:
    one, two = store.add_campaign(CAMPAIGN), store.add_campaign(CAMPAIGN)
    store.add_reduction(one, SMALL)
    store.add_reduction(two, SMALL)
    store.delete_campaign(one)
    assert store.reductions(two) == [SMALL]
    with pytest.raises(UserError, match="no campaign"):
        store.reductions(one)


def test_campaigns_do_not_see_each_other(store: Store) -> None:
    one, two = store.add_campaign(CAMPAIGN), store.add_campaign(CAMPAIGN)
    store.record(one, trials(0, 5), [fault("f", 1)])
    store.record(two, trials(0, 7))
    assert (store.summary(one)["trials"], store.summary(two)["trials"]) == (5, 7)
    assert store.faults(two) == []


def test_deleting_a_campaign_leaves_the_others(store: Store) -> None:
    one, two = store.add_campaign(CAMPAIGN), store.add_campaign(CAMPAIGN)
    for number in (one, two):
        store.record(number, trials(0, 50), [fault("f", 1)], [TestRecord(1, "[]")])
    store.delete_campaign(two)
    assert [c.id for c in store.campaigns()] == [one]
    assert (store.summary(one)["trials"], len(store.faults(one))) == (50, 1)
    assert store.add_campaign(CAMPAIGN) not in (one, two)


@pytest.mark.parametrize("use", [
    lambda store, number: store.campaign(number),
    lambda store, number: store.update_campaign(number, status="finished"),
    lambda store, number: store.delete_campaign(number),
    lambda store, number: store.record(number, trials(0, 1)),
    lambda store, number: store.trials(number),
    lambda store, number: store.trial(number, 0),
    lambda store, number: store.trial_numbers(number),
    lambda store, number: store.summary(number),
    lambda store, number: store.faults(number),
    lambda store, number: store.test(number, 0),
    lambda store, number: store.reductions(number),
    lambda store, number: store.add_reduction(number, SMALL),
])  # fmt: skip
@pytest.mark.parametrize("number", [77, 10**30])
def test_an_unknown_campaign_is_an_error_that_tells_which_exist(
    store: Store, use: Callable[[Store, int], Any], number: int
) -> None:
    with pytest.raises(UserError, match=f"no campaign {number} in .*: it has none yet"):
        use(store, number)
    for _ in range(3):
        store.add_campaign(CAMPAIGN)
    with pytest.raises(UserError, match=f"no campaign {number} in .*: it has 1, 2, 3$"):
        use(store, number)


def test_of_many_campaigns_the_error_names_the_latest(store: Store) -> None:
    for _ in range(25):
        store.add_campaign(CAMPAIGN)
    with pytest.raises(UserError, match=r"it has \.\.\., 6, 7, .*, 25$"):
        store.campaign(26)


def test_an_unknown_trial_is_an_error_that_tells_which_exist(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    with pytest.raises(UserError, match="has no trial 5: it has none yet"):
        store.trial(number, 5)
    store.record(number, trials(0, 3))
    with pytest.raises(UserError, match="has no trial 5: it has 3, numbered 0 to 2"):
        store.trial(number, 5)


def test_a_target_keeps_its_id(store: Store, url: str, open_url: Opener) -> None:
    full, empty = Target("event", "full"), Target("event", "empty")
    line = Target("line", "a.py:3", "a.py", 3, "f", "c0ffee", "5eed", "detail")
    first = store.target_ids([full, line, full])
    again = open_url(url).target_ids([line, empty, full])
    assert first == [again[2], again[0], again[2]]
    assert len(set(again)) == 3
    assert store.targets() == dict(zip(again, [line, empty, full], strict=True))
    assert store.targets([first[1], 10**30]) == {first[1]: line}


def test_the_same_line_of_another_version_of_a_file_is_another_target(store: Store) -> None:
    before = Target("line", "a.py:3", "a.py", 3, source="before")
    after = Target("line", "a.py:3", "a.py", 3, source="after")
    assert len(set(store.target_ids([before, after]))) == 2


def test_the_files_that_a_campaign_watched_are_kept_as_they_were(store: Store) -> None:
    one, two = store.add_campaign(CAMPAIGN), store.add_campaign(CAMPAIGN)
    old, new = Source("a.py", "x = 1\n"), Source("a.py", "x = 2\n")
    store.add_sources(one, [old])
    store.add_sources(two, [old, new])
    in_old, in_new = (Target("line", "a.py:1", "a.py", 1, source=s.id) for s in (old, new))
    ids = store.target_ids([in_old, in_new, Target("event", "full")])
    assert store.sources(one) == [old]
    assert {source.text for source in store.sources(two)} == {old.text, new.text}
    assert store.watched_targets(one) == {ids[0]: in_old}
    assert store.watched_targets(two) == {ids[0]: in_old, ids[1]: in_new}


def test_a_campaign_knows_where_its_files_were(store: Store) -> None:
    one, two = store.add_campaign(CAMPAIGN), store.add_campaign(CAMPAIGN)
    store.add_sources(one, [Source("a.py", "x = 1\n", "/home/ann/a.py")])
    store.add_sources(two, [Source("a.py", "x = 1\n", "/home/bob/a.py")])
    store.add_sources(two, [Source("a.py", "x = 1\n")])
    assert [source.place for source in store.sources(one)] == ["/home/ann/a.py"]
    assert [source.place for source in store.sources(two)] == ["/home/bob/a.py"]


def test_deleting_a_campaign_forgets_files_that_no_other_watched(store: Store) -> None:
    one, two = store.add_campaign(CAMPAIGN), store.add_campaign(CAMPAIGN)
    shared, own = Source("a.py", "x = 1\n"), Source("b.py", "y = 1\n")
    store.add_sources(one, [shared, own])
    store.add_sources(two, [shared])
    in_shared, in_own = (
        Target("line", f"{s.path}:1", s.path, 1, source=s.id) for s in (shared, own)
    )
    event = Target("event", "full")
    store.target_ids([in_shared, in_own, event])
    store.delete_campaign(one)
    assert store.sources(two) == [shared]
    assert set(store.targets().values()) == {in_shared, event}


def test_a_target_without_a_kind_is_refused(store: Store) -> None:
    with pytest.raises(UserError, match=r"written kind:name.*not 'full'"):
        store.target_ids([Target.parse("full")])


def test_a_batch_that_fails_leaves_nothing_behind(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 100))

    def interrupted() -> Any:
        yield TestRecord(100, "[]")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.record(number, trials(100, 200), [fault("f", 100)], interrupted())
    assert store.summary(number)["trials"] == 100
    assert store.faults(number) == []
    store.record(number, trials(100, 200))
    assert store.summary(number)["trials"] == 200


def test_recording_goes_on_while_somebody_reads(store: Store, url: str, open_url: Opener) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 600))
    reading = open_url(url, read_only=True).trials(number)
    assert next(reading).trial == 0
    store.record(number, trials(600, 1200))
    assert sum(1 for _ in reading) == 1199


def test_reading_a_campaign_does_not_hold_all_of_it_in_memory(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    for start in range(0, 3000, 1000):
        hits = [(n, random.Random(n).randbytes(4000)) for n in range(start, start + 1000)]
        store.record(number, [trial(n, hits=packed) for n, packed in hits])
    tracemalloc.start()
    try:
        assert sum(len(t.hits or b"") for t in store.trials(number)) == 12_000_000
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()


WRITER = """
import sys
from store_examples import CAMPAIGN, trials
from swarmtest.store import open_store
from swarmtest.core.targets import Target
url, name = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with open_store(url) as store:
    number = store.add_campaign(CAMPAIGN)
    for start in range(0, 2000, 100):
        store.record(number, trials(start, start + 100))
        store.target_ids([Target("event", str(i)) for i in range(start // 100 + 5)])
        store.target_ids([Target(name, str(start))])
    print(number)
"""


def test_several_processes_can_write_at_once(new_url: str) -> None:
    """They even make the store at the same time."""
    names = ("one", "two", "three")
    writers = [python(WRITER, new_url, name) for name in names]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    numbers = {int(finish(writer)) for writer in writers}
    with open_store(new_url, must_exist=True) as store:
        assert {c.id for c in store.campaigns()} == numbers == {1, 2, 3}
        assert [list(store.trials(n)) for n in numbers] == [trials(0, 2000)] * 3
        assert len(set(store.targets().values())) == len(store.targets()) == 24 + 60


KILLED = """
import os, sys
from store_examples import CAMPAIGN, fault, trials
from swarmtest.store import open_store
def dies(batch):
    if batch == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
    yield from ()
store = open_store(sys.argv[1])
number = store.add_campaign(CAMPAIGN)
for batch in range(100):
    store.record(number, trials(batch * 70, batch * 70 + 70), [fault("f", batch)], dies(batch))
"""


def test_killing_a_writer_keeps_complete_batches(url: str) -> None:
    """It dies with the trials of its last batch written and not yet committed."""
    process = python(KILLED, url, "4")
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    with open_store(url, must_exist=True) as store:
        assert list(store.trials(1)) == trials(0, 4 * 70)
        assert len(store.faults(1)) == 1
        store.record(1, trials(0, 500))
        assert store.summary(1)["trials"] == 500


def _what_a_trial_says(number: int) -> tuple[TrialRecord, list[FaultRecord]]:
    """The same trial always says the same, however often it is run."""
    dice = random.Random(number)
    verdict = dice.randrange(3)
    if verdict != 1:
        return trial(number, verdict=verdict), []
    name = dice.choice("fgh")
    test = dice.choice([None, f"[{number}]"])
    record = trial(number, verdict=1, fault=name)
    return record, [fault(name, number, dice.randrange(4), test)]


batches = st.lists(st.lists(st.integers(0, 30), max_size=20), max_size=6)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches=batches, shuffled=st.randoms(use_true_random=False))
def test_the_order_and_repetition_of_batches_do_not_matter(
    store: Store, batches: list[list[int]], shuffled: random.Random
) -> None:
    messy = [*batches, *shuffled.sample(batches, len(batches) // 2)]
    shuffled.shuffle(messy)
    tidy = [[number] for number in sorted({n for batch in batches for n in batch})]
    read = []
    for way in (tidy, messy):
        number = store.add_campaign(CAMPAIGN)
        for batch in way:
            said = [_what_a_trial_says(n) for n in batch]
            store.record(number, [t for t, _ in said], [f for _, fs in said for f in fs])
        read.append((list(store.trials(number)), store.faults(number), store.summary(number)))
    assert read[0] == read[1]


blobs = st.binary(max_size=80)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
numbers = st.integers(-(2**63), 2**63 - 1)
any_trial = st.builds(
    TrialRecord, st.integers(0, 99), blobs, blobs, texts, numbers, st.integers(0, 2),
    st.none() | texts, st.integers(0, 2**40), st.integers(0, 9), blobs, st.none() | blobs,
    numbers, numbers,
)  # fmt: skip


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    records=st.lists(any_trial, max_size=5, unique_by=lambda t: t.trial),
    alike=any_trial,
    copies=st.integers(0, 60),
)
def test_any_trial_survives_the_store(
    store: Store, records: list[TrialRecord], alike: TrialRecord, copies: int
) -> None:
    batch = [*records, *(alike._replace(trial=100 + i) for i in range(copies))]
    number = store.add_campaign(CAMPAIGN)
    store.record(number, batch)
    assert list(store.trials(number)) == sorted(batch)
