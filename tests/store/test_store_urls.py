"""Names of stores, and that passwords in them are never shown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.compare.command import command_for_the_rest
from swarmtest.core.errors import UserError
from swarmtest.store import open_store
from swarmtest.store.interface import PostgresAddress, redacted


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
