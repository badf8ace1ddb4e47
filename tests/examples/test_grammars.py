"""The examples for grammars, as users run them."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import lark
import pytest

from swarmtest.core.configuration import Configuration
from swarmtest.languages.user_objects import load_module

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def sql() -> Iterator[ModuleType]:
    yield load_module(str(EXAMPLES / "sql.py"))
    sys.modules.pop("sql")


@pytest.fixture(scope="module")
def javascript() -> Iterator[ModuleType]:
    pytest.importorskip(
        "quickjs", reason="needs quickjs: pip install quickjs (wheels for Python 3.12 and older)"
    )
    yield load_module(str(EXAMPLES / "javascript.py"))
    sys.modules.pop("javascript")


def without(subject: Any, *names: str) -> Configuration:
    """Everything that can appear when some features are off."""
    off = sum(1 << subject.space.feature_number[name] for name in names)
    bits = subject.generator.graph.effective(subject.generator.graph.everything & ~off)
    kept = [n for n, name in enumerate(subject.space.feature_names) if bits >> n & 1]
    found: Configuration = subject.space.configuration(
        [subject.space.feature_names[n] for n in kept]
    )
    return found


def test_sql_programs_are_in_the_grammar(sql: ModuleType) -> None:
    parser = lark.Lark((EXAMPLES / "sql.lark").read_text(), parser="earley", lexer="dynamic")
    for seed in range(4):
        parser.parse(sql.sql.resized((10, 30)).test_of(sql.sql.space.default(), seed)["text"])


def test_sqlite_passes_and_most_statements_mean_something(sql: ModuleType) -> None:
    events: set[str] = set()
    for seed in range(60):
        result = sql.sql.execute(sql.sql.space.default(), seed)
        assert result.fault is None, result.test["text"]
        events.update(result.hits)
    assert len(events) > 60  # of SQLite's instructions


def test_what_is_left_out_of_sql_does_not_come(sql: ModuleType) -> None:
    configuration = without(sql.sql, "joined", "statement:create_table")
    assert "left_join" not in configuration
    for seed in range(30):
        text = sql.sql.test_of(configuration, seed)["text"]
        assert "JOIN" not in text
        assert "CREATE TABLE" not in text


def test_a_database_that_counts_wrongly_would_be_noticed(
    sql: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forgetful:
        def __init__(self, database: sqlite3.Connection) -> None:
            self.database = database

        def __getattr__(self, name: str) -> Any:
            return getattr(self.database, name)

        def execute(self, statement: str) -> Any:
            return self.database.execute(statement.replace("IS NULL", "IS 17"))

    connect = sqlite3.connect
    monkeypatch.setattr(sql.sqlite3, "connect", lambda *a, **k: Forgetful(connect(*a, **k)))
    with pytest.raises(sql.Disagreement, match="rows in all, but true, false and NULL are"):
        sql.run("SELECT * FROM t0 WHERE /*where*/ (c2 < 1)")


def test_quickjs_loses_a_text_that_is_spread_into_an_object(javascript: ModuleType) -> None:
    """A real bug of quickjs 1.19.4, found by the example's own campaign."""
    subject = javascript.javascript
    results = (subject.execute(subject.space.default(), seed) for seed in range(2000))
    failed = next((result for result in results if result.fault), None)
    if failed is None:
        assert javascript.quickjs.Context().eval('JSON.stringify({..."a"})') == '{"0":"a"}'
        pytest.skip("this version of quickjs has no such bug any more")
    assert failed.fault.signature.startswith("Disagreement: spread and assign")
    reduced = subject.reduced(failed.test, lambda test: subject.replay(test).fault == failed.fault)
    assert subject.generator.size(reduced["tree"]) <= 10


def test_most_javascript_programs_run(javascript: ModuleType) -> None:
    subject = javascript.javascript
    answers = [
        javascript.answers(subject.test_of(subject.space.default(), seed)["text"])
        for seed in range(100)
    ]
    assert sum(answer is not None for answer in answers) > 60
