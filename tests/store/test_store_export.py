"""Exports hold what the store holds, in words that other tools understand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from store_examples import CAMPAIGN, SPACE, fault, python, trial

from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.core.targets import Target, pack_hits
from swarmtest.store import open_store
from swarmtest.store.export import FORMATS, export_campaign
from swarmtest.store.interface import Store
from swarmtest.store.records import ReductionRecord, pack_counts, pack_floats


@pytest.fixture
def campaign(store: Store) -> int:
    """Three trials: one passed, one failed, one of which little is known."""
    number = store.add_campaign(CAMPAIGN)
    ids = store.target_ids([Target("event", "full"), Target("line", "a.py:3")])
    weighted = SPACE.configuration({"push": 1, "pop": 0.25, "fsync": True, "level": "-O2"})
    records = [
        trial(
            0,
            configuration=weighted.to_bytes(),
            propensities=pack_floats([0.5, 0.1]),
            origin="coin",
            used=pack_counts([3, 300]),
            hits=pack_hits(ids),
            cpu_ns=1_500_000,
            wall_ns=2_000_000,
        ),
        trial(1, verdict=Verdict.FAILED, fault="f", propensities=pack_floats([0.5])),
        trial(2, verdict=Verdict.INVALID),
    ]
    store.record(number, records, [fault("f", 1)])
    return number


def exported(store: Store, campaign: int, format: str) -> io.BytesIO:
    out = io.BytesIO()
    export_campaign(store, campaign, format, out)
    return io.BytesIO(out.getvalue())


def test_jsonl_nests_what_belongs_together(store: Store, campaign: int) -> None:
    rows = list(map(json.loads, exported(store, campaign, "jsonl")))
    assert rows[0] == {
        "campaign": campaign,
        "trial": 0,
        "seed": 0,
        "verdict": "passed",
        "fault": None,
        "signature": None,
        "fault_state": None,
        "steps": 20,
        "skipped": 0,
        "cpu_ms": 1.5,
        "wall_ms": 2.0,
        "origin": "coin",
        "configuration": {"push": 1, "pop": pytest.approx(0.25, abs=1e-4), "fsync": True,
                          "level": "-O2"},
        "used": {"push": 3, "pop": 300},
        "propensity": {"push": 0.5, "pop": 0.1},
        "hits": ["event:full", "line:a.py:3"],
        "reduced": None,
    }  # fmt: skip
    assert (rows[1]["verdict"], rows[1]["fault"], rows[1]["signature"]) == (
        "failed", "f", "Error: f",
    )  # fmt: skip
    assert rows[1]["fault_state"] == "open"
    assert rows[1]["propensity"] == {"push": 0.5, "pop": 0.5}
    assert (rows[2]["verdict"], rows[2]["propensity"], rows[2]["used"]) == ("invalid", {}, {})


def test_csv_has_a_column_per_value(store: Store, campaign: int) -> None:
    text = exported(store, campaign, "csv").getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert list(rows[0])[:12] == [
        "campaign", "trial", "seed", "verdict", "fault", "signature", "fault_state", "steps",
        "skipped", "cpu_ms", "wall_ms", "origin",
    ]  # fmt: skip
    assert list(rows[0])[12:] == [
        "weight.push", "weight.pop", "setting.fsync", "setting.level", "used.push", "used.pop",
        "propensity.push", "propensity.pop", "hits", "reduced.before", "reduced.size",
        "reduced.runs", "reduced.complete", "reduced.test",
    ]  # fmt: skip
    assert (rows[0]["setting.level"], rows[0]["used.pop"]) == ("-O2", "300")
    assert rows[0]["hits"] == "event:full;line:a.py:3"
    assert (rows[1]["weight.push"], rows[1]["weight.pop"]) == ("1", "0")
    assert (rows[1]["signature"], rows[2]["propensity.pop"]) == ("Error: f", "")


def test_parquet_has_typed_columns(store: Store, campaign: int) -> None:
    table = pq.read_table(exported(store, campaign, "parquet"))
    kinds = {field.name: str(field.type) for field in table.schema}
    assert (kinds["setting.fsync"], kinds["setting.level"]) == ("bool", "string")
    assert (kinds["weight.pop"], kinds["used.pop"]) == ("double", "int64")
    rows = table.to_pylist()
    assert rows[0]["hits"] == ["event:full", "line:a.py:3"]
    assert rows[0]["setting.fsync"] is True
    assert rows[0]["propensity.pop"] == 0.1
    assert (rows[2]["used.push"], rows[2]["hits"], rows[2]["fault"]) == (None, [], None)


def test_all_formats_agree(store: Store, campaign: int) -> None:
    flat = pq.read_table(exported(store, campaign, "parquet")).to_pylist()
    nested = list(map(json.loads, exported(store, campaign, "jsonl")))
    text = exported(store, campaign, "csv").getvalue().decode()
    lines = list(csv.DictReader(io.StringIO(text)))

    def facts(row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in ("trial", "seed", "verdict", "steps", "cpu_ms"))

    assert list(map(facts, flat)) == list(map(facts, nested)) == list(map(facts, lines))


@pytest.mark.parametrize("format", FORMATS)
def test_a_campaign_without_trials_exports_no_rows(store: Store, format: str) -> None:
    number = store.add_campaign(CAMPAIGN)
    out = io.BytesIO()
    assert export_campaign(store, number, format, out) == 0
    if format == "parquet":
        assert pq.read_table(io.BytesIO(out.getvalue())).num_rows == 0
    else:
        assert out.getvalue().count(b"\n") == (1 if format == "csv" else 0)


def test_parquet_is_written_in_row_groups(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [trial(i) for i in range(10_001)])
    out = io.BytesIO()
    assert export_campaign(store, number, "parquet", out) == 10_001
    assert pq.ParquetFile(io.BytesIO(out.getvalue())).num_row_groups == 2


def test_an_unknown_format_suggests_the_nearest(store: Store, campaign: int) -> None:
    with pytest.raises(UserError, match="unknown export format 'cvs'; did you mean 'csv'"):
        export_campaign(store, campaign, "cvs", io.BytesIO())


def test_an_unknown_campaign_cannot_be_exported(store: Store) -> None:
    with pytest.raises(UserError, match="no campaign 9"):
        export_campaign(store, 9, "csv", io.BytesIO())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk always full")
@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_is_reported(store: Store, campaign: int, format: str) -> None:
    with (
        open("/dev/full", "wb", buffering=0) as out,
        pytest.raises(UserError, match="could not be written: No space left on device"),
    ):
        export_campaign(store, campaign, format, out)


WITHOUT_PYARROW = """
import io, sys
sys.modules["pyarrow"] = None
from store_examples import CAMPAIGN
from swarmtest.core.errors import UserError
from swarmtest.store import open_store
from swarmtest.store.export import export_campaign
from swarmtest.store import open_store
with open_store(":memory:") as store:
    try:
        export_campaign(store, store.add_campaign(CAMPAIGN), "parquet", io.BytesIO())
    except UserError as error:
        print(error)
"""


def test_parquet_without_pyarrow_tells_what_to_install() -> None:
    printed, _ = python(WITHOUT_PYARROW).communicate(timeout=60)
    assert printed.strip() == (
        "Parquet needs pyarrow: `pip install 'swarmtest[parquet]'`, or export csv or jsonl"
    )


def test_opening_a_store_does_not_load_pyarrow() -> None:
    code = "import sys, swarmtest.store; print('pyarrow' in sys.modules)"
    assert python(code).communicate(timeout=60)[0].strip() == "False"


@pytest.fixture
def reduced(store: Store, campaign: int) -> int:
    """The same campaign, and the test of its fault made small."""
    small = ReductionRecord("f", 1, before=9, size=2, test='["a", "b"]', runs=5, complete=True)
    store.add_reduction(campaign, small)
    return campaign


def test_the_trial_that_was_made_small_has_what_is_left(store: Store, reduced: int) -> None:
    rows = list(map(json.loads, exported(store, reduced, "jsonl")))
    small = {"before": 9, "size": 2, "runs": 5, "complete": True, "test": ["a", "b"]}
    assert [row["reduced"] for row in rows] == [None, small, None]


def test_tables_have_what_is_left_of_a_test_as_json(store: Store, reduced: int) -> None:
    text = exported(store, reduced, "csv").getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["reduced.size"] for row in rows] == ["", "2", ""]
    table = pq.read_table(exported(store, reduced, "parquet")).to_pylist()
    assert [row["reduced.complete"] for row in table] == [None, True, None]
    assert rows[1]["reduced.test"] == table[1]["reduced.test"] == '["a", "b"]'


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_campaign_exports_the_same_bytes_whatever_the_ids_of_its_targets(
    store: Store, format: str
) -> None:
    targets = [Target("event", "full"), Target("line", "a.py:3"), Target("line", "b.py:1")]
    # Another campaign, or another worker, may have been the first to hit some of them.
    store.target_ids(targets[2:])
    ids = store.target_ids(targets)
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [trial(0, hits=pack_hits(sorted(ids)))])

    names = exported(store, number, format).getvalue()
    with open_store(":memory:") as other:
        other_ids = other.target_ids(targets)
        again = other.add_campaign(CAMPAIGN)
        other.record(again, [trial(0, hits=pack_hits(sorted(other_ids)))])
        assert exported(other, again, format).getvalue() == names


def test_a_text_in_a_csv_is_never_a_formula(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [trial(0, origin="=cmd|' /C calc'!A0"), trial(1, origin="\t@SUM(1)")])
    text = exported(store, number, "csv").getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["origin"] for row in rows] == ["'=cmd|' /C calc'!A0", "'\t@SUM(1)"]
    assert [row["seed"] for row in rows] == ["0", "31"]


@pytest.mark.parametrize("character", ["\x1b", "\x7f", "\x9b", "\u202e", "\u2028", "\u2066"])
def test_json_lines_give_back_what_a_terminal_would_obey(store: Store, character: str) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [trial(0, origin=f"a{character}b")])
    written = exported(store, number, "jsonl").getvalue().decode()
    assert character not in written
    assert json.loads(written)["origin"] == f"a{character}b"
