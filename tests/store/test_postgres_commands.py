"""Commands on a PostgreSQL store: what they do, and that they never show a password."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from postgres_server import Server
from pytest_processes import pytest_words

from swarmtest.store import open_store
from swarmtest.store.content_hash import campaign_hash

Run = Callable[..., subprocess.CompletedProcess[str]]

STACK = """
from swarmtest import Machine, action

class Stack(Machine):
    steps = 40

    def start(self):
        self.items = []

    @action
    def push(self):
        self.items.append(1)
        assert len(self.items) < 12, "full"

    @action
    def pop(self):
        if self.items:
            self.items.pop()
"""
SECRET = "hunter2secret"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "stack.py").write_text(STACK)
    return tmp_path


@pytest.fixture
def secret_url(server: Server) -> str:
    """A store whose URL has a password, which the server asks for."""
    server.let_in(SECRET)
    server.emptied_url()
    return server.url("shared", "with_password", SECRET)


def everything_in(server: Server, schema: str) -> str:
    """All rows of all tables of a schema, as text."""
    names = f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'"
    return "".join(
        str(server.execute(f"SELECT one::text FROM {schema}.{table} AS one"))
        for (table,) in server.execute(names)
    )


def test_a_password_in_the_url_is_neither_shown_nor_kept(
    server: Server, secret_url: str, place: Path, swarmtest: Run
) -> None:
    quick = ("--no-reduce", "--store", secret_url)
    commands: list[tuple[Any, ...]] = [
        ("run", "stack.py", "--tests", 80, "--coverage", "line", *quick),
        ("resume", 1, "--tests", 100, *quick),
        ("list", "--store", secret_url),
        ("show", 1, "--store", secret_url),
        ("faults", 1, "--store", secret_url),
        ("roles", 1, "--store", secret_url),
        ("coverage", 1, "--store", secret_url),
        ("report", 1, "-o", "report.html", "--store", secret_url),
        ("suite", 1, "-o", "test_suite.py", "--no-reduce", "--store", secret_url),
        ("export", 1, "-o", "trials.jsonl", "--store", secret_url),
        ("replay", "9#9", "--store", secret_url),
        ("show", 77, "--store", secret_url),
        ("copy", secret_url, "copy.db"),
        ("copy", secret_url, secret_url),
    ]
    for words in commands:
        done = swarmtest(*words, cwd=place)
        assert SECRET not in done.stdout + done.stderr, words
        assert "Traceback" not in done.stderr, done.stderr
    for file in place.rglob("*"):
        assert file.is_dir() or SECRET.encode() not in file.read_bytes(), file
    assert {"report.html", "test_suite.py", "copy.db"} < {file.name for file in place.iterdir()}
    kept = everything_in(server, "shared")
    assert "stack.py" in kept
    assert SECRET not in kept


def test_a_command_to_type_names_the_store_without_its_password(
    secret_url: str, place: Path, swarmtest: Run
) -> None:
    done = swarmtest("run", "stack.py", "--tests", 50, "--no-reduce", "--store", secret_url,
                     cwd=place)  # fmt: skip
    assert "--store 'postgresql://with_password@/postgres?host=" in done.stdout


def test_the_same_seed_gives_the_same_trials_in_both_stores(
    server: Server, place: Path, swarmtest: Run, rows: Callable[..., list[dict[str, Any]]]
) -> None:
    stores = ["here.db", server.emptied_url()]
    for store in stores:
        words = ("run", "stack.py", "--tests", 150, "--seed", 5, "--coverage", "line")
        done = swarmtest(*words, "--no-reduce", "--store", store, cwd=place)
        assert done.returncode == 1, done.stderr
    assert rows(place / "here.db") == rows(stores[1])


def test_a_campaign_moves_to_a_database_and_back(
    server: Server, place: Path, swarmtest: Run
) -> None:
    url = server.emptied_url()
    swarmtest("run", "stack.py", "--tests", 60, "--coverage", "line", cwd=place)
    there = swarmtest("copy", ".swarmtest/swarmtest.db", url, cwd=place)
    back = swarmtest("copy", url, "back.db", "--campaign", 1, cwd=place)
    assert there.stdout == back.stdout
    with open_store(place / "back.db") as store:
        digest = campaign_hash(store, 1)
    assert there.stdout == f"campaign 1 -> 1: 60 trials, sha256 {digest} equal\n"
    resumed = swarmtest("resume", 1, "--tests", 80, "--no-reduce", "--store", url, cwd=place)
    assert "80 tests" in resumed.stdout


def test_copying_needs_two_stores_and_something_to_copy(
    place: Path, swarmtest: Run, refused: Callable[..., str]
) -> None:
    open_store(place / "empty.db").close()
    refused(swarmtest("copy", "empty.db", "other.db", cwd=place), "holds no campaign yet")
    refused(swarmtest("copy", "nothing.db", "other.db", cwd=place), "no store at nothing.db")
    swarmtest("run", "stack.py", "--tests", 5, cwd=place)
    here = ".swarmtest/swarmtest.db"
    refused(swarmtest("copy", here, f"./{here}", cwd=place), "is both FROM and TO")
    refused(swarmtest("copy", here, "other.db", "-c", 7, cwd=place), "no campaign 7")
    assert not (place / "other.db").exists()


def test_a_reader_sees_everything_and_cannot_run(
    server: Server, place: Path, swarmtest: Run, refused: Callable[..., str]
) -> None:
    url = server.emptied_url()
    swarmtest("run", "stack.py", "--tests", 60, "--no-reduce", "--store", url, cwd=place)
    server.execute(
        "DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'looker') THEN "
        "DROP OWNED BY looker; DROP ROLE looker; END IF; END $$",
        "CREATE ROLE looker LOGIN",
        "GRANT USAGE ON SCHEMA shared TO looker",
        "GRANT SELECT ON ALL TABLES IN SCHEMA shared TO looker",
    )
    looking = server.url("shared", "looker")
    for words in (("list",), ("roles", 1), ("report", 1, "-o", "report.html")):
        done = swarmtest(*words, "--store", looking, cwd=place)
        assert done.returncode == 0, done.stderr
    for other in (("run", "stack.py", "--tests", 5), ("delete", 1, "--yes")):
        refused(swarmtest(*other, "--store", looking, cwd=place), "is read-only for you")


def test_pytest_keeps_its_campaigns_in_a_database_too(secret_url: str, place: Path) -> None:
    (place / "test_stack.py").write_text(STACK)
    words = ["--swarm-tests", "60", "--swarm-store", secret_url, "test_stack.py"]
    done = subprocess.run(
        pytest_words("-q", "-p", "no:cacheprovider", *words),
        cwd=place,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "1 failed" in done.stdout
    assert "--store 'postgresql://with_password@/postgres?host=" in done.stdout
    assert SECRET not in done.stdout + done.stderr
    with open_store(secret_url) as store:
        assert store.summary(1)["trials"] == 60
