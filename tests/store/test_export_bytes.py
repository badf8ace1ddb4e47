"""Exports, which read blocks, write the bytes that a loop over the trials would write."""

from __future__ import annotations

import io
import random

import pytest
from export_by_trials import export_by_trials
from store_examples import CAMPAIGN, SPACE, fault, trial

from swarmtest.core.configuration import RENORMALISED
from swarmtest.core.result import Verdict
from swarmtest.core.targets import Target, pack_hits
from swarmtest.store import open_store
from swarmtest.store.export import FORMATS, columns, export_campaign
from swarmtest.store.interface import Store
from swarmtest.store.records import ReductionRecord, TrialRecord, pack_counts, pack_floats

NAMES = (
    *(f"a.py:{line}" for line in range(60)),
    *('say "no"', "one, two", "two\nlines", "\x1b[31m", "a;b", "é"),
)
KINDS = ("line", "event", "=cmd", "-1+f(2)", " @x", "+1")
"""The last four begin like formulas of a spreadsheet."""


def random_trial(random: random.Random, number: int, targets: list[int]) -> TrialRecord:
    """A trial with anything that a worker, or another program, may have written."""
    weights = random.choice(
        ({"push": 1}, {"pop": 1}, {"push": 0.25, "pop": 1}, {"push": random.random()})
    )
    settings = {"fsync": random.random() < 0.5, "level": random.choice(("-O0", "-O2"))}
    configuration = SPACE.configuration(weights | settings)
    packed = random.choice((configuration.to_bytes(), b"\2\xff" + b'[true,"-O0"]'))
    if configuration.fractional and random.random() < 0.5:
        packed = SPACE.configuration(weights | settings | {RENORMALISED: True}).to_bytes()
    failed = random.random() < 0.2
    return trial(
        number,
        configuration=packed,
        propensities=random.choice(
            (b"", pack_floats([0.5]), pack_floats([0.1, 1 / 3]), pack_floats([0.5, 0.1, 0.2]))
        ),
        origin=random.choice(("coin", "", "=1+2", "a\x1bb", 'half, "x"')),
        seed=random.choice((random.getrandbits(62), 0, -1)),
        verdict=Verdict.FAILED if failed else random.choice((Verdict.PASSED, Verdict.INVALID)),
        fault=random.choice("fg") if failed else None,
        steps=random.randrange(3) * 40_000,
        used=random.choice(
            (b"", b"\1", pack_counts([3, 0]), pack_counts([1, 70_000]), b"\1\5", b"\1\5\6\7")
        ),
        hits=random.choice(
            (None, pack_hits([]), pack_hits(sorted(random.sample(targets, random.randrange(40)))))
        ),
        cpu_ns=random.choice((0, random.randrange(10**6), 10**13 + 7)),
    )


@pytest.fixture
def campaign(store: Store) -> int:
    """A campaign in which all this occurs, in several blocks."""
    choose = random.Random(5)
    number = store.add_campaign(CAMPAIGN)
    targets = [Target(kind, name) for name in NAMES for kind in KINDS]
    choose.shuffle(targets)
    ids = [*store.target_ids(targets), 10**6]  # the last one has no name
    trials = [random_trial(choose, trial, ids) for trial in range(0, 900, 3)]
    store.record(number, trials[:200], [fault("f", 3), fault("g", 6)])
    store.record(number, trials[200:])
    failed = next(each for each in trials if each.fault == "f")
    small = ReductionRecord("f", failed.trial, before=9, size=1, test='["\\u001b"]', complete=True)
    store.add_reduction(number, small)
    return number


def exported(store: Store, campaign: int, format: str) -> bytes:
    out = io.BytesIO()
    export_campaign(store, campaign, format, out)
    return out.getvalue()


@pytest.mark.parametrize("format", FORMATS)
def test_blocks_are_exported_as_their_trials_would_be(
    store: Store, campaign: int, format: str
) -> None:
    assert exported(store, campaign, format) == export_by_trials(store, campaign, format)


@pytest.mark.parametrize("format", FORMATS)
def test_a_block_whose_hits_do_not_fit_is_exported_in_parts(
    store: Store, campaign: int, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = exported(store, campaign, format)
    monkeypatch.setattr(columns, "_MOST_FLAGS", 10_000)
    assert exported(store, campaign, format) == whole


def test_row_groups_do_not_depend_on_blocks() -> None:
    with open_store(":memory:") as store:
        number = store.add_campaign(CAMPAIGN)
        for start in range(0, 20_001, 3_000):
            end = min(start + 3_000, 20_001)
            store.record(number, [trial(n, steps=n % 7) for n in range(start, end)])
        assert exported(store, number, "parquet") == export_by_trials(store, number, "parquet")
