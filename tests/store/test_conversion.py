"""Stores with a row per trial, as versions before blocks wrote them, are converted exactly."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from pyroaring import BitMap
from store_examples import hash_by_records, python

from swarmtest.store import conversion, open_store
from swarmtest.store.checks import find_damage

HASHES = {
    1: "a3683a27046c8741b03167dab2cad796a392eb5784a4a498e11fa2708a45c480",
    2: "803c4a806168e2b7be4fe4d9e826663666e709c1054373364d8843663333f2df",
    3: "80fda84ae5055ea01fddf3e6333ece1117956536ce7bc96e6f4ea17c2aed86bf",
    4: "fbe716e4bcc2300e441a56b8ba170dd11c2a882a191ef59cdc2cf8f8c21c5429",
}
"""The hashes of the campaigns of `store_5.sql`, computed by the swarmtest that wrote them: `coin`,
`layered` and `activation` with coverage, and a campaign with trials as they should not be."""


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    """A store as version 5 wrote it."""
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript(Path(__file__).with_name("store_5.sql").read_text())
    connection.execute(f"PRAGMA application_id = {0x5357524D}")
    connection.execute("PRAGMA user_version = 5")
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("read_only", [False, True])
def test_every_campaign_is_converted_exactly(old_file: Path, read_only: bool) -> None:
    with open_store(old_file, read_only=read_only) as store:
        assert {n: hash_by_records(store, n) for n in store.campaign_numbers()} == HASHES
        assert [store.faults(n)[0].count for n in (1, 2, 4)] == [4, 4, 1]
        assert store.summary(1)["trials"] == 20


def test_values_that_no_campaign_writes_are_converted_too(old_file: Path) -> None:
    with open_store(old_file) as store:
        first, second, third = store.trials(4)
    assert (first.seed, first.wall_ns, first.used) == (-5, -8, b"\4" + (300).to_bytes(4, "little"))
    assert (second.configuration, second.propensities, second.seed) == (b"odd", bytes(3), 2**63 - 1)
    assert (second.hits, third.hits) == (None, BitMap().serialize())
    assert third.configuration == b'\3\xff\x0f["y"]'


def test_a_row_that_is_no_trial_is_left_out_and_the_doctor_says_so(old_file: Path) -> None:
    connection = sqlite3.connect(old_file)
    connection.execute("UPDATE trials SET configuration = 'x' WHERE campaign = 1 AND trial = 17")
    connection.commit()
    connection.close()
    with open_store(old_file) as store:
        assert [*store.trial_numbers(1)] == [n for n in range(20) if n != 17]
        damage = [str(each) for each in find_damage(store)]
    said = "campaign 1, trial 17: its configuration was not bytes, and was left out"
    assert any(said in each for each in damage)


def test_converting_many_trials_shows_progress(
    old_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(conversion, "_MANY", 50)
    monkeypatch.setattr(conversion, "_SHOW_SECONDS", 0.0)
    open_store(old_file).close()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"store {old_file}: 63 trials are converted to a smaller format, once"
    assert lines[1] == f"store {old_file}: 20 of 63 trials converted"
    assert lines[-1] == f"store {old_file}: all 63 trials converted"


def test_a_conversion_that_is_killed_leaves_the_old_store(old_file: Path) -> None:
    code = (
        "import os, sys\n"
        "from swarmtest.store import conversion, open_store\n"
        "conversion._Progress.end = lambda self: os.kill(os.getpid(), 9)\n"
        "open_store(sys.argv[1])"
    )
    process = python(code, str(old_file))
    process.communicate(timeout=120)
    assert process.returncode == -9
    with open_store(old_file) as store:
        assert {n: hash_by_records(store, n) for n in store.campaign_numbers()} == HASHES
