"""Files that are locked, damaged, foreign, full or read-only: one clear line each."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from store_examples import CAMPAIGN, fault, finish, python, trial, trials

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Target, pack_hits, unpack_hits
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import ReductionRecord, TrialRecord
from swarmtest.store.schema import SQLITE, statements
from swarmtest.store.sqlite.store import SqliteStore

Opener = Callable[..., Store]
NOBODY = 65534


def shell(path: Path, *commands: str) -> list[tuple[object, ...]]:
    """What a person with the sqlite3 shell would do; the rows of the last command."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [connection.execute(command).fetchall() for command in commands][-1]


def one_line(error: pytest.ExceptionInfo[UserError], *words: str) -> bool:
    text = str(error.value)
    return "\n" not in text and all(word in text for word in words)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one campaign of 3,000 trials."""
    path = tmp_path / "swarmtest.db"
    with open_store(path) as store:
        number = store.add_campaign(CAMPAIGN)
        store.record(number, trials(0, 3000), [fault("f", 1)])
    return path


def test_the_usual_place_is_a_directory_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store() as store:
        assert store.url == os.path.join(".swarmtest", "swarmtest.db")
    assert (tmp_path / ".swarmtest" / "swarmtest.db").exists()


def test_a_store_is_named_like_in_sqlalchemy(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in (path, f"sqlite:///{path}", "sqlite:///swarmtest.db", f"/{path}"):
        with open_store(url, must_exist=True) as store:
            assert len(store.campaigns()) == 1


@pytest.mark.parametrize("name", ["what? 100%#1.db", "\u00fcber.db", os.fsdecode(b"\xff.db")])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    open_store(tmp_path / name).close()
    assert name in os.listdir(tmp_path)


@pytest.mark.parametrize("url", ["mysql://host/db", "sqlite://x.db", "sqlite:///", ""])
def test_a_name_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(UserError) as error:
        open_store(url)
    assert one_line(error, "swarmtest.db")


@pytest.mark.parametrize("options", [{"must_exist": True}, {"read_only": True}])
def test_reading_does_not_make_a_store(tmp_path: Path, options: dict[str, bool]) -> None:
    with pytest.raises(UserError) as error:
        open_store(tmp_path / "none" / "x.db", **options)
    assert one_line(error, "no store at", "run `swarmtest run` first or pass --store")
    assert list(tmp_path.iterdir()) == []


def test_a_person_with_the_sqlite3_shell_can_read_it(path: Path) -> None:
    query = """SELECT subject, strategy, sum(trials), sum(steps)
               FROM campaigns JOIN blocks ON campaigns.id = blocks.campaign GROUP BY campaigns.id"""
    steps = sum(t.steps for t in trials(0, 3000))
    assert shell(path, query) == [("examples/stack.py", "coin", 3000, steps)]
    assert shell(path, "SELECT key FROM meta ORDER BY key") == [("created",), ("created_by",)]


def test_the_file_is_set_up_for_speed_and_shrinking(path: Path) -> None:
    assert shell(path, "PRAGMA journal_mode") == [("wal",)]
    assert shell(path, "PRAGMA page_size") == [(8192,)]
    assert shell(path, "PRAGMA auto_vacuum") == [(2,)]


def test_counting_a_fault_reads_only_the_blocks_that_have_it(path: Path) -> None:
    query = "SELECT sum(trials) FROM block_faults WHERE campaign = 1 AND fault = 'f'"
    plan = str(shell(path, f"EXPLAIN QUERY PLAN {query}"))
    assert "SEARCH block_faults USING PRIMARY KEY (campaign=? AND fault=?)" in plan


def test_deleting_a_campaign_gives_the_space_back(path: Path) -> None:
    with open_store(path) as store:
        number = store.add_campaign(CAMPAIGN)
        store.record(number, [trial(i, hits=os.urandom(2500)) for i in range(1000)])
        before = path.stat().st_size + Path(f"{path}-wal").stat().st_size
        store.delete_campaign(number)
        assert before > 2_500_000
        assert path.stat().st_size + Path(f"{path}-wal").stat().st_size < 500_000
        assert store.summary(1)["trials"] == 3000


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = " + sys.argv[2])
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


@contextmanager
def held_by_another_process(path: Path, mode: str) -> Iterator[None]:
    process = python(HOLD, str(path), mode)
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    try:
        yield
    finally:
        finish(process)


def test_a_store_locked_by_another_process_can_be_read_but_not_written(
    path: Path, open_url: Opener
) -> None:
    with held_by_another_process(path, "NORMAL"):
        store = open_url(path, timeout=0.1)
        assert store.summary(1)["trials"] == 3000
        with pytest.raises(UserError) as error:
            store.record(1, trials(3000, 3010))
    assert one_line(error, "is locked by another process (waited 0.1 s)", "--store")
    store.record(1, trials(3000, 3010))
    assert store.summary(1)["trials"] == 3010


def test_a_store_that_another_process_keeps_to_itself_cannot_be_opened(path: Path) -> None:
    with held_by_another_process(path, "EXCLUSIVE"), pytest.raises(UserError) as error:
        open_store(path, timeout=0.1)
    assert one_line(error, "is locked by another process")


@pytest.mark.parametrize("content", [b"not a database, but long enough" * 99, b"short", b"\0" * 99])
def test_a_file_that_is_no_database_is_refused_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        open_store(path)
    assert one_line(error, str(path), "damaged or not a store", "move it away")
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store_but_only_for_writing(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.touch()
    with pytest.raises(UserError, match="no store at"):
        open_store(path, read_only=True)
    with open_store(path, must_exist=True) as store:
        assert store.add_campaign(CAMPAIGN) == 1


def test_overwritten_pages_are_reported_not_guessed_at(path: Path) -> None:
    with path.open("r+b") as file:
        size = path.stat().st_size
        for page in range(2, size // 16384):
            file.seek(page * 16384)
            file.write(os.urandom(16384))
    with pytest.raises(UserError) as error, open_store(path) as store:
        list(store.trials(1))
    assert one_line(error, "damaged", "malformed", ".recover")


def test_a_file_cut_short_is_reported(path: Path) -> None:
    os.truncate(path, 16384 * 3)
    with pytest.raises(UserError) as error, open_store(path) as store:
        list(store.trials(1))
    assert one_line(error, "damaged", "restore a backup")


def test_text_that_is_not_text_is_reported_as_damage(path: Path) -> None:
    shell(path, "UPDATE campaigns SET status = CAST(X'FF' AS TEXT)")
    with pytest.raises(UserError) as error, open_store(path) as store:
        store.campaigns()
    assert one_line(error, "damaged")


def test_a_block_that_ends_before_it_begins_is_reported_and_not_read_for_ever(path: Path) -> None:
    shell(path, "UPDATE blocks SET last = -7")
    with open_store(path, read_only=True) as store:
        with pytest.raises(UserError) as error:
            list(store.blocks(1))
        assert "damaged" in str(error.value)
        assert len(list(store.packed_blocks(1))) == 1


def test_a_store_of_a_newer_swarmtest_is_refused_and_left_alone(path: Path) -> None:
    shell(path, "PRAGMA user_version = 99")
    content = path.read_bytes()
    with pytest.raises(UserError) as error:
        open_store(path)
    assert one_line(error, "newer swarmtest (schema 99", "pip install -U swarmtest")
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    shell(path, "CREATE TABLE bookmarks (url TEXT)")
    content = path.read_bytes()
    with pytest.raises(UserError) as error:
        open_store(path)
    assert one_line(error, "SQLite file of another program", "it was not changed")
    assert path.read_bytes() == content


def test_a_directory_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        open_store(tmp_path)
    assert one_line(error, "is a directory", str(tmp_path / "swarmtest.db"))


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError) as error:
        open_store(tmp_path / "file" / "x.db")
    assert one_line(error, "cannot create directory", "--store")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 1 MB."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk to fill")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no small disk to fill: {done.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def record_for_ever(store: Store, number: int, batch: list[TrialRecord]) -> None:
    for start in itertools.count(0, len(batch)):
        store.record(number, [t._replace(trial=start + t.trial) for t in batch])


def test_a_full_disk_costs_the_batch_and_nothing_else(small_disk: Path) -> None:
    batch = [trial(i, hits=os.urandom(500)) for i in range(100)]
    with open_store(small_disk / "x.db") as store:
        number = store.add_campaign(CAMPAIGN)
        with pytest.raises(UserError) as error:
            record_for_ever(store, number, batch)
        kept = store.summary(number)["trials"]
        assert one_line(error, "the disk is full", "what was recorded before is safe")
        assert kept > 0
        assert kept % 100 == 0
        assert list(store.trial_numbers(number)) == list(range(kept))
        remount = ["mount", "-o", "remount,size=4m", str(small_disk)]
        subprocess.run(remount, check=True)
        store.record(number, [t._replace(trial=kept + t.trial) for t in batch])
    with open_store(small_disk / "x.db", read_only=True) as store:
        assert store.summary(number)["trials"] == kept + 100


def test_a_disk_without_room_for_a_new_store_is_reported(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * (1 << 20))
    with pytest.raises(UserError) as error:
        open_store(small_disk / "x.db")
    assert one_line(error, "the disk is full")


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that other users can reach, unlike pytest's."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)


@contextmanager
def an_ordinary_user() -> Iterator[None]:
    """Root may write everywhere, so be somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def read_only_copy(path: Path, directory: Path) -> Path:
    copy = directory / "swarmtest.db"
    shutil.copy(path, copy)
    copy.chmod(0o444)
    directory.chmod(0o555)
    return copy


def test_a_read_only_store_can_be_read(path: Path, public: Path) -> None:
    copy = read_only_copy(path, public)
    with an_ordinary_user(), open_store(copy, read_only=True) as store:
        assert store.summary(1)["trials"] == 3000


def test_a_read_only_store_cannot_be_written(path: Path, public: Path) -> None:
    copy = read_only_copy(path, public)
    with an_ordinary_user(), pytest.raises(UserError) as error, open_store(copy) as store:
        store.record(1, trials(3000, 3010))
    assert one_line(error, "is read-only for you", "--store")


def test_a_store_in_a_read_only_directory_cannot_be_written(path: Path, public: Path) -> None:
    copy = read_only_copy(path, public)
    copy.chmod(0o666)
    with an_ordinary_user(), pytest.raises(UserError) as error, open_store(copy) as store:
        store.record(1, trials(3000, 3010))
    assert one_line(error, f"directory {public} is read-only for you")


def test_a_new_store_in_a_read_only_directory_is_refused(public: Path) -> None:
    public.chmod(0o555)
    for place in (public / "x.db", public / "sub" / "x.db"):
        with an_ordinary_user(), pytest.raises(UserError) as error:
            open_store(place)
        assert one_line(error, str(public), "--store")


def test_a_store_opened_for_reading_never_writes(path: Path) -> None:
    with SqliteStore(path, read_only=True) as store:
        with pytest.raises(UserError):
            store.add_campaign(CAMPAIGN)
        assert len(store.campaigns()) == 1


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    """A store that an older swarmtest wrote, with one campaign, two trials and a target."""
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "schema_1.sql").read_text())
    connection.execute(
        "INSERT INTO campaigns VALUES (1, 'stack.py', 'coin', '7', 'finished', 1.0, 2.0, 3.0, "
        "'{}', ?)",
        (json.dumps(CAMPAIGN.space),),
    )
    for number, hits in ((0, None), (1, pack_hits([5]))):
        connection.execute(
            "INSERT INTO trials VALUES (1, ?, 0, NULL, 9, 0, 0, 0, 0, '', x'01', x'', x'', ?)",
            (number, hits),
        )
    connection.execute("INSERT INTO targets VALUES (5, 'event', 'stack was full')")
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_of_an_older_swarmtest_is_brought_up_to_date(
    old_file: Path, read_only: bool
) -> None:
    with open_store(str(old_file), read_only=read_only, must_exist=True) as store:
        first, second = store.trials(1)
        assert first.hits is None
        assert not first.missing
        assert unpack_hits(second.hits or b"") == [5]
        assert store.targets() == {5: Target("event", "stack was full")}
        assert store.campaign(1).outside is None
        assert store.sources(1) == []
        assert store.reductions(1) == []
        assert store.workers(1) == []
        assert (store.summary(1)["trials"], store.summary(1)["steps"]) == (2, 18)


def test_an_upgraded_store_has_the_columns_of_a_new_one(old_file: Path, tmp_path: Path) -> None:
    query = (
        'SELECT tables.name, columns.name, columns."notnull", columns.pk '
        "FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns "
        "WHERE tables.type = 'table' ORDER BY tables.name, columns.name"
    )
    open_store(old_file).close()
    open_store(tmp_path / "new.db").close()
    upgraded = shell(old_file, query)
    assert ("blocks", "columns", 1, 0) in upgraded
    assert upgraded == shell(tmp_path / "new.db", query)


@pytest.fixture
def file_of_version_2(tmp_path: Path) -> Path:
    """A store as the second version wrote it, with a fault."""
    path = tmp_path / "second.db"
    connection = sqlite3.connect(path)
    here = Path(__file__).parent
    connection.executescript((here / "schema_1.sql").read_text())
    for statement in (*statements(SQLITE, 1, to=2), "PRAGMA user_version = 2"):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO campaigns VALUES (1, 'stack.py', 'coin', '7', 'finished', 1.0, 2.0, 3.0, "
        "'{}', ?, NULL)",
        (json.dumps(CAMPAIGN.space),),
    )
    connection.execute("INSERT INTO faults VALUES (1, 'f', 'exit', 'boom', '', 0, 0, 9, '[9]')")
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_without_reductions_can_take_them(file_of_version_2: Path, read_only: bool) -> None:
    small = ReductionRecord("f", 0, before=9, size=1, test="[1]")
    with open_store(str(file_of_version_2), read_only=read_only, must_exist=True) as store:
        assert store.reductions(1) == []
        assert store.faults(1)[0].test == "[9]"
    with open_store(str(file_of_version_2)) as store:
        store.add_reduction(1, small)
        assert store.reductions(1) == [small]


def test_two_processes_may_bring_the_same_store_up_to_date(old_file: Path) -> None:
    code = (
        "import sys; from swarmtest.store import open_store; sys.stdin.readline()\n"
        "with open_store(sys.argv[1]) as store: print(len(list(store.trials(1))))"
    )
    processes = [python(code, str(old_file)) for _ in range(4)]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    assert [finish(process) for process in processes] == ["2\n"] * 4


def test_an_old_store_that_cannot_be_changed_says_so(old_file: Path, public: Path) -> None:
    copy = read_only_copy(old_file, public)
    with an_ordinary_user(), pytest.raises(UserError) as error:
        open_store(copy, read_only=True)
    assert one_line(
        error, "older swarmtest", "cannot be upgraded", "directory that you can write to"
    )
