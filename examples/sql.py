"""Random SQL programs against SQLite, with oracles that need no second database.

    swarmtest run examples/sql.py --time 60s

A program passes if SQLite survives it, answers every statement with rows or an error of its own,
and has a sound database file in the end. Besides, where a program asks ``... WHERE /*where*/ p``:

- the rows where p holds, where it does not and where it is NULL are all the rows (ternary logic
  partitioning: Rigger and Su, "Finding Bugs in Database Systems via Query Partitioning", 2020);
- as many rows have a p that is true when it is computed for each row, so that no index or rewritten
  condition comes in (NoREC: the same authors, 2020).

The virtual machine's instructions that a program was compiled to are events, so campaigns can tell
how much of SQLite it reached. No prepared statement is used twice for this: these programs showed
that in SQLite 3.40.1 a prepared ``EXPLAIN INSERT``, stepped again after a VACUUM, reads freed
memory.
"""

import contextlib
import sqlite3

from swarmtest.subjects import GrammarSubject

TABLES = """
CREATE TABLE t0 (c0, c1, c2);
CREATE TABLE t1 (c0 INT, c1 TEXT COLLATE NOCASE, c2 REAL);
CREATE TABLE t2 (c0 INTEGER PRIMARY KEY, c1 TEXT UNIQUE, c2 BLOB NOT NULL DEFAULT 0);
CREATE INDEX i2 ON t1 (c1, c0 DESC);
CREATE VIEW v0 AS SELECT c1 AS c0, c0 AS c1, c2 FROM t1 WHERE c0 IS NOT NULL;
INSERT INTO t0 VALUES (1, 'a', NULL), ('1', 1.5, x'00'), (NULL, -1, 'B'), (0, '', 'a ');
INSERT INTO t1 VALUES (1, 'A', 0.5), (2, 'a', NULL), (NULL, 'b', -1.0), (0, NULL, 1e300);
INSERT INTO t2 VALUES (1, 'x', 1), (2, NULL, 'y'), (-3, '', x'ff');
"""
MARK = "/*where*/"
ROWS = 2_000
STEPS = 200_000
"""Instructions of the virtual machine after which a statement is interrupted."""


class Disagreement(AssertionError):
    """The same question had two answers."""


def run(program: str) -> set[str]:
    """Run a program; raise if SQLite is wrong; tell the instructions it was compiled to."""
    database = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
    database.set_progress_handler(lambda: 1, STEPS)
    database.executescript(TABLES)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
    reached: set[str] = set()
    try:
        for statement in program.split(";"):
            if statement.strip():
                reached |= run_statement(database, statement.strip())
        check_database(database)
    finally:
        database.close()
    return reached


def run_statement(database: sqlite3.Connection, statement: str) -> set[str]:
    """Run one statement; what SQLite refuses is fine."""
    try:
        compiled = database.execute(f"EXPLAIN {statement}").fetchall()
        database.execute(statement).fetchmany(ROWS)
        if MARK in statement:
            check_condition(database, *statement.split(MARK))
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.InternalError) or "disk image" in str(error):
            raise AssertionError(f"SQLite says: {error}") from error
        return set()
    return {row[1] for row in compiled}


def check_condition(database: sqlite3.Connection, query: str, condition: str) -> None:
    """Ask how many rows meet a condition, in ways that must agree."""
    table = query.removesuffix("WHERE ").replace("SELECT *", "", 1)

    def count(answer: str, where: str = "") -> int:
        return database.execute(f"SELECT {answer} {table} {where}").fetchone()[0] or 0

    everything = count("COUNT(*)")
    held = count("COUNT(*)", f"WHERE ({condition})")
    parts = (
        held,
        count("COUNT(*)", f"WHERE NOT ({condition})"),
        count("COUNT(*)", f"WHERE ({condition}) IS NULL"),
    )
    if sum(parts) != everything:
        raise Disagreement(f"{everything} rows in all, but true, false and NULL are {parts}")
    computed = count(f"SUM(({condition}) IS TRUE)")
    if computed != held:
        raise Disagreement(f"WHERE finds {held} rows, but the condition is true for {computed}")


def check_database(database: sqlite3.Connection) -> None:
    """The file has to be sound whatever was done to it."""
    with contextlib.suppress(sqlite3.OperationalError):  # no transaction was open
        database.execute("ROLLBACK")
    try:
        (answer,) = database.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.OperationalError:
        return  # interrupted: too large a database to look through
    assert answer == "ok" or "NULL value in" in answer or "CHECK constraint" in answer, answer


sql = GrammarSubject("sql.lark", run, length=(10, 150))
