"""sqlglot reads random SQL programs and writes them in other dialects: productions are features.

The grammar is that of examples/sql.py. What sqlglot refuses with an error of its own is a correct
outcome; the oracle is that no other exception comes.
"""

from __future__ import annotations

import logging
from pathlib import Path

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize import normalize
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.simplify import simplify

from swarmtest.subjects import GrammarSubject

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it warns of what it cannot write
GRAMMAR = Path(__file__).resolve().parents[2] / "examples" / "sql.lark"
WRITTEN = ("postgres", "mysql", "tsql")
COLUMNS = {"c0": "INT", "c1": "TEXT", "c2": "REAL"}
SCHEMA: dict[str, object] = dict.fromkeys(("t0", "t1", "t2", "v0"), COLUMNS)


def run(program: str) -> None:
    """Read a program's statements, write them, and rewrite those that are queries."""
    for statement in program.split(";"):
        if not statement.strip():
            continue
        try:
            tree = sqlglot.parse_one(statement, read="sqlite")
            for dialect in WRITTEN:
                tree.sql(dialect)
            if isinstance(tree, sqlglot.exp.Query):
                simplify(normalize(qualify(tree, dialect="sqlite", schema=SCHEMA))).sql("duckdb")
        except SqlglotError:
            continue


sql_dialects = GrammarSubject(str(GRAMMAR), run, length=(10, 150))
