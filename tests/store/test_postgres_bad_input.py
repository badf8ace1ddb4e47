"""Databases that cannot be used: one clear line each, with what was tried and no password."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from postgres_server import Server
from store_examples import CAMPAIGN

from swarmtest.core.errors import UserError
from swarmtest.store import open_store

SQL = Path(__file__).parents[2] / "docs" / "stores.md"


def refusal(url: str, **options: bool) -> str:
    """The line that is said when a store is opened and written to."""
    with pytest.raises(UserError) as error, open_store(url, timeout=2, **options) as store:
        store.add_campaign(CAMPAIGN)
    said = str(error.value)
    assert "\n" not in said
    assert "secret" not in said
    return said


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        said = refusal(f"postgresql://ann:secret@127.0.0.1:{port}/tests")
    assert f"tried 127.0.0.1 port {port} as ann, database tests" in said
    assert "the database cannot be reached" in said
    assert "Connection refused" in said


def test_a_host_that_does_not_exist_is_named() -> None:
    said = refusal("postgresql://ann:secret@nowhere.invalid/tests")
    assert "tried nowhere.invalid port 5432 as ann" in said


def test_a_wrong_password_is_called_that(server: Server) -> None:
    server.let_in("right")
    said = refusal(server.new_url("with_password", "secret"))
    assert "wrong user or password" in said
    assert "PGPASSWORD or ~/.pgpass" in said
    assert "no password supplied" not in said


def test_a_password_may_come_from_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.let_in("right")
    url = server.new_url("with_password")
    assert "wrong user or password" in refusal(url)
    monkeypatch.setenv("PGPASSWORD", "right")
    with open_store(url) as store:
        assert store.campaigns() == []
        assert "right" not in store.url


def test_a_database_that_does_not_exist_is_named(server: Server) -> None:
    said = refusal(server.new_url().replace("/postgres?", "/nothing?"))
    assert "there is no such database" in said
    assert "database nothing" in said
    assert "`createdb`" in said


def test_a_user_that_does_not_exist_is_named(server: Server) -> None:
    said = refusal(server.new_url("nobody_here"))
    assert "the server has no such user" in said
    assert "as nobody_here" in said


def test_an_option_that_does_not_exist_is_refused(server: Server) -> None:
    said = refusal(server.new_url() + "&sslmood=require")
    assert "this URL has an unknown option in it" in said


@pytest.fixture
def team(server: Server) -> Server:
    """A store with the roles of the documentation: bob reads, ann writes, eve has no rights."""
    server.execute("DROP SCHEMA IF EXISTS swarmtest CASCADE")
    for role in ("ann", "bob", "eve", "swarmtest_writer", "swarmtest_reader"):
        if server.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'"):
            server.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    with open_store(server.url("swarmtest")) as store:
        store.add_campaign(CAMPAIGN)
    page = SQL.read_text()
    statements = page.partition("```sql\n")[2].partition("```")[0].split(";\n")
    server.execute(*(one for one in statements if one.strip()), "CREATE ROLE eve LOGIN")
    return server


def test_a_reader_can_read_and_nothing_else(team: Server) -> None:
    url = team.url("swarmtest", "bob")
    with open_store(url, read_only=True) as store:
        assert len(store.campaigns()) == 1
        assert store.summary(1)["trials"] == 0
    said = refusal(url)
    assert "is read-only for you" in said
    assert "permission denied" in said


def test_a_store_opened_for_reading_is_not_written_by_a_writer_either(team: Server) -> None:
    assert "is read-only for you" in refusal(team.url("swarmtest", "ann"), read_only=True)


def test_a_user_whom_an_administrator_made_read_only_stays_so(team: Server) -> None:
    team.execute("ALTER ROLE ann SET default_transaction_read_only = on")
    assert "is read-only for you (cannot execute" in refusal(team.url("swarmtest", "ann"))


def test_a_writer_can_do_everything_but_change_the_schema(team: Server) -> None:
    from store_examples import fault, trials

    from swarmtest.core.targets import Source, Target
    from swarmtest.store.records import FaultEvent, ReductionRecord, TestRecord, WorkerRecord
    from swarmtest.store.schema import VERSION

    url = team.url("swarmtest", "ann")
    with open_store(url) as store:
        number = store.add_campaign(CAMPAIGN)
        store.record(number, trials(0, 30), [fault("f", 3)], [TestRecord(3, "[]")])
        store.add_hits(number, {3: store.target_ids([Target("event", "full")])})
        store.add_sources(number, [Source("a.py", "x = 1\n")])
        store.add_reduction(number, ReductionRecord("f", 3, 9, 2, "[]"))
        store.note_worker(number, WorkerRecord("ant-1", "ant", 1, 5.0, 9.5))
        store.add_fault_events([FaultEvent("s", "f", "seen", 5.0)])
        store.update_campaign(number, status="finished")
        store.delete_campaign(number)
    team.execute("UPDATE swarmtest.swarmtest_version SET version = 3")
    said = refusal(url)
    assert f"its schema is 3, this swarmtest needs {VERSION}, and you may not change it" in said
    assert "let the owner of the database open it once" in said


def test_somebody_without_rights_is_told_whom_to_ask(team: Server) -> None:
    said = refusal(team.url("swarmtest", "eve"), read_only=True)
    assert "cannot be read by you: ask its owner for the rights of a reader" in said


def test_somebody_who_may_not_make_tables_is_told_so(team: Server) -> None:
    said = refusal(team.new_url("eve"))
    assert "there are no tables yet, and you may not create them" in said
    assert "permission denied for database" in said


def test_without_the_extra_it_is_named() -> None:
    code = "import sys; sys.modules['psycopg'] = None\nfrom swarmtest.ui.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "list", "--store", "postgresql://ann:secret@host/db"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "swarmtest: store postgresql://ann@host/db: PostgreSQL stores need an extra package: "
        "pip install 'swarmtest[postgres]'\n"
    )
