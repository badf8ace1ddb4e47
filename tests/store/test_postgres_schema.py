"""PostgreSQL's tables: created, upgraded, refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from postgres_server import Server
from store_examples import CAMPAIGN, finish, python, trial, trials

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Target, pack_hits
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.schema import POSTGRES, SQLITE, VERSION, Dialect, statements

psycopg = pytest.importorskip("psycopg", reason="pip install 'swarmtest[postgres]'")

Opener = Callable[..., Store]
HERE = Path(__file__).parent


@contextmanager
def connected(server: Server, schema: str) -> Iterator[Any]:
    place = f"postgresql://postgres@/postgres?host={server.directory}"
    with psycopg.connect(place) as connection:
        connection.execute(f"SET search_path TO {schema}")
        yield connection


def schema_of(url: str) -> str:
    return url.rpartition("=")[2]


@pytest.fixture
def schema_3(server: Server) -> str:
    """A store as PostgreSQL's first schema was, with a campaign of 250 trials and a fault."""
    url = server.new_url()
    schema = schema_of(url)
    server.execute(f"CREATE SCHEMA {schema}")
    with connected(server, schema) as connection:
        connection.execute((HERE / "postgres_schema_3.sql").read_text())
        connection.execute(
            "INSERT INTO campaigns (subject, strategy, seed, status, created, wall_seconds, "
            "cpu_seconds, options, space) "
            "VALUES ('stack.py', 'coin', '7', 'finished', 1.0, 2.0, 3.0, '{}', %s)",
            [json.dumps(CAMPAIGN.space)],
        )
        for number in range(250):
            connection.execute(
                "INSERT INTO trials VALUES (1, %s, %s, %s, 9, 1, 5, 6, 0, '', '\\x01', '', '', %s)",
                [number, int(number == 8), "f" if number == 8 else None, pack_hits([1])],
            )
        connection.execute("INSERT INTO faults VALUES (1, 'f', 'exit', 'boom', '', 8, 8, 9, '[9]')")
        connection.execute(
            "INSERT INTO targets (kind, name, source, file, line, function, content, detail) "
            "VALUES ('event', 'stack was full', '', '', 0, '', '', '')"
        )
    return url


@pytest.fixture
def schema_4(server: Server, schema_3: str) -> str:
    """The same store, brought to schema 4 by a swarmtest that used Alembic."""
    with connected(server, schema_of(schema_3)) as connection:
        connection.execute((HERE / "postgres_schema_4.sql").read_text())
    return schema_3


def tables(server: Server, schema: str) -> set[str]:
    query = f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'"
    return {name for (name,) in server.execute(query)}


def columns(server: Server, url: str) -> list[tuple[Any, ...]]:
    return server.execute(
        "SELECT table_name, column_name, data_type, is_nullable, collation_name "
        f"FROM information_schema.columns WHERE table_schema = '{schema_of(url)}' "
        "AND table_name <> 'alembic_version' ORDER BY table_name, ordinal_position"
    )


def indexes(server: Server, url: str) -> list[tuple[Any, ...]]:
    schema = schema_of(url)
    return server.execute(
        f"SELECT replace(indexdef, '{schema}', '') FROM pg_indexes WHERE schemaname = '{schema}' "
        "AND tablename <> 'alembic_version' ORDER BY indexname"
    )


def test_an_upgraded_store_has_the_tables_of_a_new_one(
    server: Server, schema_3: str, open_url: Opener
) -> None:
    new = server.new_url()
    open_url(new)
    open_url(schema_3)
    assert columns(server, schema_3) == columns(server, new)
    assert indexes(server, schema_3) == indexes(server, new)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_of_the_first_schema_is_brought_up_to_date(
    schema_3: str, open_url: Opener, read_only: bool
) -> None:
    store = open_url(schema_3, must_exist=True, read_only=read_only)
    total = store.summary(1)
    assert (total["trials"], total["failed"], total["steps"], total["cpu_ns"]) == (
        250, 1, 2250, 1250
    )  # fmt: skip
    assert store.progress(1, buckets=2)[-1].faults == 1
    assert store.workers(1) == []
    assert store.faults(1)[0].test == "[9]"
    assert store.targets() == {1: Target("event", "stack was full")}


def test_a_store_that_was_brought_up_to_date_goes_on(schema_3: str, open_url: Opener) -> None:
    store = open_url(schema_3)
    store.record(1, [trial(n) for n in range(240, 310)])
    assert store.summary(1)["trials"] == 310
    assert store.add_campaign(CAMPAIGN) == 2


@pytest.mark.parametrize(("dialect", "first"), [(SQLITE, 1), (POSTGRES, 3)])
def test_a_step_leads_from_every_version_to_the_next(dialect: Dialect, first: int) -> None:
    for version in range(first, VERSION):
        assert statements(dialect, version, version + 1)
    assert statements(dialect, VERSION) == []


def test_a_store_of_alembic_is_upgraded_and_used(
    server: Server, schema_4: str, open_url: Opener
) -> None:
    before = tables(server, schema_of(schema_4))
    with open_store(schema_4, read_only=True) as reader:
        assert reader.summary(1)["trials"] == 250
    store = open_url(schema_4)
    store.record(1, [trial(n) for n in range(240, 310)])
    assert store.summary(1)["trials"] == 310
    new = {
        "swarmtest_version",
        "block_faults",
        "block_targets",
        "block_hits",
        "fault_events",
        "fault_decisions",
    }
    assert tables(server, schema_of(schema_4)) == (before | new) - {"trials"}


def test_an_upgraded_store_of_alembic_is_not_too_old_for_an_older_swarmtest(
    server: Server, schema_3: str
) -> None:
    open_store(schema_3).close()
    schema = schema_of(schema_3)
    assert server.execute(f"SELECT version_num FROM {schema}.alembic_version") == [(str(VERSION),)]
    assert server.execute(f"SELECT version FROM {schema}.swarmtest_version") == [(VERSION,)]


def test_two_processes_may_bring_the_same_store_up_to_date(schema_3: str) -> None:
    code = (
        "import sys; from swarmtest.store import open_store; sys.stdin.readline()\n"
        "with open_store(sys.argv[1]) as store: print(store.summary(1)['trials'])"
    )
    processes = [python(code, schema_3) for _ in range(3)]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    assert [finish(process) for process in processes] == ["250\n"] * 3


@pytest.mark.parametrize("alembic", [False, True])
def test_a_store_of_a_newer_swarmtest_is_refused(
    server: Server, schema_4: str, alembic: bool
) -> None:
    url = schema_4
    if alembic:
        server.execute(f"UPDATE {schema_of(url)}.alembic_version SET version_num = '99'")
    else:
        url = server.new_url()
        open_store(url).close()
        server.execute(f"UPDATE {schema_of(url)}.swarmtest_version SET version = 99")
    for options in ({}, {"read_only": True}):
        with pytest.raises(UserError, match=r"newer swarmtest \(schema 99; .*pip install -U"):
            open_store(url, **options)


def test_a_schema_of_another_program_is_left_alone(server: Server) -> None:
    for table in ("campaigns (id int)", "alembic_version (version_num text)"):
        url = server.new_url()
        schema = schema_of(url)
        server.execute(
            f"CREATE SCHEMA {schema}",
            f"CREATE TABLE {schema}.{table}",
        )
        if "alembic" in table:
            server.execute(f"INSERT INTO {schema}.alembic_version VALUES ('ae10c2f4')")
        with pytest.raises(
            UserError, match="has tables of another program, which were not changed"
        ):
            open_store(url)
        assert len(tables(server, schema)) == 1


@pytest.mark.parametrize("options", [{"must_exist": True}, {"read_only": True}])
def test_reading_does_not_make_a_store(server: Server, options: dict[str, bool]) -> None:
    url = server.new_url()
    with pytest.raises(UserError, match=r"no store at .*run `swarmtest run` first"):
        open_store(url, **options)
    assert tables(server, schema_of(url)) == set()


def test_without_a_name_the_schema_is_called_swarmtest(server: Server) -> None:
    server.execute("DROP SCHEMA IF EXISTS swarmtest CASCADE")
    with open_store(f"postgresql://postgres@/postgres?host={server.directory}") as store:
        store.record(store.add_campaign(CAMPAIGN), trials(0, 3))
    assert "blocks" in tables(server, "swarmtest")
    server.execute("DROP SCHEMA swarmtest CASCADE")
