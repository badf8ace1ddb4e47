"""Stores with damaged bytes: every command says what is wrong in one line."""

from __future__ import annotations

import os
import shutil
import sqlite3

import pytest
from damaged_stores import (
    COLUMNS,
    MACHINE,
    commands,
    flip_byte,
    run_command,
    set_column,
    set_trials,
)

from swarmtest.store import open_store

DAMAGE = [
    *("campaigns-space-text", "campaigns-options-list", "campaigns-seed-text"),
    *("campaigns-created-large", "campaigns-outside-bytes", "blocks-columns-bytes"),
    *("blocks-columns-nothing", "blocks-features-bytes", "blocks-last-large"),
    *("block_targets-targets-bytes", "block_hits-hits-bytes", "block_faults-trials-bytes"),
    *("faults-test-text", "faults-signature-bytes", "tests-test-text", "reductions-test-text"),
    *("sources-text-bytes", "sources-path-bytes", "targets-kind-bytes", "blocks-trials-bytes"),
]
"""Table, column and kind of value."""

BAD_TRIALS = {
    "hits": b"\x07\xff\x00",
    "configuration": b"",
    "used": b"\x07\xff\x00",
    "propensities": b"\x07\xff\x00",
    "verdict": 9,
    "steps": -5,
}
"""Fields of a trial that no campaign would write."""

VALUES = {
    "text": '{"\x01',
    "bytes": b"\x07\xff\x00",
    "large": 2**62,
    "nothing": b"",
    "list": "[1]",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory, swarmtest):
    """A directory with a store of a campaign with coverage, a fault and a reduction."""
    place = tmp_path_factory.mktemp("damage")
    (place / "stack.py").write_text(MACHINE)
    words = ("-n", 300, "-j", 1, "-s", "coin", "--coverage", "line", "--cover", ".", "--keep-tests")
    ran = swarmtest("run", "stack.py", *words, "--store", "s.db", cwd=place)
    assert ran.returncode == 1, ran.stderr
    connection = sqlite3.connect(place / "s.db")
    connection.execute("PRAGMA journal_mode = DELETE")
    counts = {t: connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in COLUMNS}
    connection.close()
    assert all(counts[table] for table in COLUMNS if table != "workers"), counts
    return place


@pytest.fixture
def store(sound, tmp_path, monkeypatch):
    monkeypatch.chdir(sound)
    return shutil.copy(sound / "s.db", tmp_path / "store.db")


def one_line_each(store, tmp_path, chosen=("list", "faults", "growth", "export")):
    """Run commands; each that is refused says why in one line."""
    for words in commands(store, tmp_path / "report.html"):
        if words[0] not in chosen:
            continue
        status, _, err = run_command(*words)
        assert status in (0, 1, 2), words
        if status == 2:
            assert len(err.splitlines()) == 1, (words, err)
            assert err.startswith("swarmtest: "), words


@pytest.mark.parametrize("seed", range(6))
def test_a_flipped_bit_gives_no_traceback(store, tmp_path, seed):
    flip_byte(store, seed)
    one_line_each(store, tmp_path)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_column_gives_one_line_and_the_doctor_finds_it(store, tmp_path, damage):
    table, column, kind = damage.split("-")
    set_column(store, table, column, VALUES[kind])
    one_line_each(store, tmp_path)
    status, out, _ = run_command("doctor", str(store))
    assert status == 1
    assert "is damaged: `swarmtest doctor" in out


@pytest.mark.parametrize("field", BAD_TRIALS)
def test_a_damaged_trial_gives_one_line_and_the_doctor_names_it(store, tmp_path, field):
    set_trials(store, {17: {field: BAD_TRIALS[field]}})
    one_line_each(store, tmp_path)
    status, out, _ = run_command("doctor", str(store))
    assert status == 1
    assert "campaign 1, trial 17: " in out


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("columns", "campaign 1, trials 0 to 299: cannot be read"),
        ("hits", "campaign 1, trials 0 to 299: their hits cannot be read"),
    ],
)
def test_a_changed_byte_of_a_block_is_noticed_and_said(store, tmp_path, part, said):
    table = "blocks" if part == "columns" else "block_hits"
    set_trials(store, {})  # into one block
    connection = sqlite3.connect(store)
    ((data,),) = connection.execute(f"SELECT {part} FROM {table}").fetchall()
    changed = bytearray(data)
    changed[len(changed) // 2] ^= 4
    connection.execute(f"UPDATE {table} SET {part} = ?", (bytes(changed),))
    connection.commit()
    connection.close()
    saved = tmp_path / "saved.db"
    status, out, _ = run_command("doctor", str(store), "--repair", str(saved))
    assert status == 1
    assert said in out
    assert "its checksum is wrong" in out
    with open_store(saved) as opened:
        trials = list(opened.trials(1))
    assert len(trials) == (300 if part == "hits" else 0)
    assert {trial.missing for trial in trials} <= {"its hits were damaged in the store"}


def test_the_message_names_the_store_the_campaign_and_the_trial(store):
    set_trials(store, {17: {"hits": b"\x00\xff"}})
    status, _, err = run_command("export", "1", "-f", "jsonl", "--store", str(store))
    assert status == 2
    assert f"store {store} is damaged: campaign 1, trial 17: its hits cannot be decoded" in err
    assert f"`swarmtest doctor {store}`" in err


def test_a_bug_on_a_sound_store_is_still_a_traceback(store, monkeypatch):
    def fail(*arguments):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("swarmtest.ui.commands.list.campaign_rows", fail)
    with pytest.raises(ZeroDivisionError):
        run_command("list", "--store", str(store))


def test_a_negative_schema_version_is_damage(store):
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA user_version = -5")
    connection.close()
    status, _, err = run_command("list", "--store", str(store))
    assert status == 2
    assert "its schema version is -5" in err


def test_the_doctor_says_that_a_store_is_sound(store):
    assert run_command("doctor", str(store)) == (
        0, f"{store} is sound: 1 campaign, 300 trials\n", ""
    )  # fmt: skip


def test_a_page_that_cannot_be_read_costs_only_its_trials(store, tmp_path):
    with open_store(store) as opened:  # more blocks than fit a page
        trial = opened.trial(1, 0)
        opened.record(1, [trial._replace(trial=1000 + 100 * n) for n in range(500)])
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    number, size = last_page_of_trials(store)
    data = bytearray(store.read_bytes())
    data[(number - 1) * size : (number - 1) * size + 8] = b"\xff" * 8
    store.write_bytes(data)
    saved = tmp_path / "saved.db"
    status, out, _ = run_command("doctor", str(store), "--repair", str(saved))
    assert status == 1
    assert "some trials cannot be read" in out
    with open_store(str(saved)) as opened:
        left = opened.summary(1)["trials"]
        assert len(opened.faults(1)) == 1
    assert 0 < left < 800
    assert f"{left} trials saved" in out
    assert run_command("doctor", str(saved))[0] == 0


def last_page_of_trials(store):
    """Return the number of the last page with trials, and the size of a page."""
    connection = sqlite3.connect(store)
    query = "SELECT max(pageno) FROM dbstat WHERE name = 'blocks' AND pagetype = 'leaf'"
    try:
        (number,) = connection.execute(query).fetchone()
    except sqlite3.OperationalError:
        pytest.skip("this SQLite was built without dbstat")
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    return number, size


def test_a_repaired_store_has_everything_that_was_sound(store, tmp_path):
    set_trials(store, {3: {"hits": b"\x00\xff"}, 4: {"verdict": 9}})
    saved = tmp_path / "saved.db"
    status, out, _ = run_command("doctor", str(store), "--repair", str(saved))
    assert status == 1
    assert "campaign 1 -> 1: 299 trials saved, 1 trial lost" in out
    with open_store(str(store)) as old, open_store(str(saved)) as new:
        before = {trial.trial: trial for trial in old.trials(1)}
        after = {trial.trial: trial for trial in new.trials(1)}
        assert set(before) - set(after) == {4}
        assert after[3].missing == "its hits were damaged in the store"
        assert after[3].configuration == before[3].configuration
        same = set(after) - {3}
        assert [after[n].seed for n in same] == [before[n].seed for n in same]
        assert new.reductions(1) == old.reductions(1)
        assert [*new.tests(1)] == [*old.tests(1)]
        assert new.sources(1) == old.sources(1)


def test_repair_does_not_overwrite_a_file(store):
    status, _, err = run_command("doctor", str(store), "--repair", str(store))
    assert status == 2
    assert "exists already" in err


def overwrite(store, start, data):
    with open(store, "r+b") as file:
        file.seek(start)
        file.write(data)


HEADERS = {
    "it does not begin as an SQLite file": (0, b"X"),
    "its size of a page is 512": (16, b"\x02\x00"),
    "its read format is 9": (18, b"\x09\x09"),
    "its schema version is wrong": (60, b"\xff\xff\xff\xfb"),
    "it does not say that swarmtest wrote it": (68, b"\0\0\0\7"),
    "its text encoding is 0": (0, bytes(100)),
    "that of a new store stands in for it": (0, bytes(4096)),
}


@pytest.mark.parametrize("says", HEADERS)
def test_a_damaged_header_costs_nothing_of_the_campaigns(store, tmp_path, says):
    overwrite(store, *HEADERS[says])
    before = store.read_bytes()
    status, out, err = run_command("doctor", str(store))
    assert (status, err) == (1, "")
    assert "the header of the file: " in out
    assert says in out
    saved = tmp_path / "saved.db"
    status, out, _ = run_command("doctor", str(store), "--repair", str(saved))
    assert "campaign 1 -> 1: 300 trials saved\n" in out
    assert run_command("doctor", str(saved))[1] == f"{saved} is sound: 1 campaign, 300 trials\n"
    assert store.read_bytes() == before, "the damaged store is not changed"


def test_what_is_left_of_a_file_that_was_cut_is_saved(store, tmp_path):
    os.truncate(store, store.stat().st_size * 3 // 4)
    saved = tmp_path / "saved.db"
    status, out, _ = run_command("doctor", str(store), "--repair", str(saved))
    assert status == 1
    assert "pages are there" in out
    with open_store(str(saved)) as opened:
        assert opened.summary(1)["trials"] > 0


@pytest.mark.parametrize("content", [b"no store\n" * 5000, b"SQLite format 3\0" + bytes(100_000)])
def test_the_doctor_says_that_nothing_can_be_read(tmp_path, content):
    (tmp_path / "s.db").write_bytes(content)
    status, _, err = run_command("doctor", str(tmp_path / "s.db"))
    assert status == 2
    assert "nothing in it can be read" in err


def test_a_file_of_another_program_is_not_taken_for_a_damaged_store(tmp_path):
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute("CREATE TABLE songs (title)")
    connection.execute("PRAGMA application_id = 7")
    connection.commit()
    connection.close()
    status, _, err = run_command("doctor", str(tmp_path / "s.db"))
    assert status == 2
    assert "of another program" in err


def test_a_pipe_is_not_a_store(tmp_path):
    os.mkfifo(tmp_path / "s.db")
    for words in (["list", "--store"], ["doctor"]):
        status, _, err = run_command(*words, str(tmp_path / "s.db"))
        assert status == 2
        assert "is not a file, but a device or a pipe" in err


def test_options_of_a_campaign_that_have_another_form_are_damage(store, tmp_path):
    connection = sqlite3.connect(store)
    connection.execute('UPDATE campaigns SET options = \'{"subject": "evil.py", "killed": 7}\'')
    connection.commit()
    connection.close()
    for command in ("list", "show", "growth", "faults"):
        status, _, err = run_command(command, "--store", str(store))
        assert status == 0 or "its option 'subject' is not what it should be" in err, command
    saved = tmp_path / "saved.db"
    assert run_command("doctor", str(store), "--repair", str(saved))[0] == 1
    with open_store(str(saved)) as opened:
        assert opened.campaign(1).options == {}


def test_a_message_with_a_line_break_of_a_store_stays_one_line(store):
    connection = sqlite3.connect(store)
    connection.execute("UPDATE campaigns SET options = '{}', subject = 'a' || char(10) || 'b'")
    connection.commit()
    connection.close()
    status, _, err = run_command("replay", "1#0", "--store", str(store))
    assert status == 2
    assert "campaign 1 tested a\\nb, which" in err


def test_a_copy_of_a_damaged_store_says_what_is_damaged(store, tmp_path):
    set_column(store, "workers", "host", b"\x07")
    status, _, err = run_command("copy", str(store), str(tmp_path / "copy.db"))
    assert status == 2
    assert f"store {store} is damaged: campaign 1, worker" in err
    assert len(err.splitlines()) == 1


def test_trials_of_which_nothing_is_left_take_little_time_and_have_no_number(store, tmp_path):
    connection = sqlite3.connect(store)
    roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_master"))
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    for table in ("blocks", "block_faults", "block_targets", "block_hits"):
        overwrite(store, (roots[table] - 1) * size, b"\xff" * 100)
    status, out, _ = run_command("doctor", str(store), "--repair", str(tmp_path / "saved.db"))
    assert status == 1
    assert "campaign 1: how many trials are lost is not known" in out
    assert "campaign 1 -> 1: 0 trials saved\n" in out


@pytest.mark.parametrize("value", [b"\x07", "[]"])
@pytest.mark.parametrize("column", ["first", "last"])
def test_a_block_that_reaches_nowhere_is_told(store, column, value):
    set_column(store, "blocks", column, value)
    status, out, err = run_command("doctor", str(store))
    assert status == 1
    assert "campaign 1, a block of trials: it reaches from" in out
    for words in (["show", "1"], ["triage", "1"], ["roles", "1", "--json"]):
        status, _, err = run_command(*words, "--store", str(store))
        assert status in (0, 2)
        assert "Traceback" not in err
