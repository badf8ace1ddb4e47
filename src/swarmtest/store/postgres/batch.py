"""Write to PostgreSQL: texts, faults and tests, targets and their files.

Writers of the same campaign may run at the same time. They lock rows in the same order (the
campaign, faults, tests, each sorted), so that they cannot deadlock.

PostgreSQL's text holds every character except NUL, which is stored as ``␀0``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

from swarmtest.core.targets import Source, Target
from swarmtest.store.postgres.connection import Connection
from swarmtest.store.records import FaultRecord, ReductionRecord, TestRecord
from swarmtest.store.sql import (
    ADD_CAMPAIGN_SOURCE,
    ADD_REDUCTION,
    TARGET,
    checked_target,
    compressed,
    storable,
)

_MARK = "\u2400"
"""The symbol for NUL; the symbol itself is stored twice."""


@overload
def encode_text(text: str) -> str: ...
@overload
def encode_text(text: None) -> None: ...
@overload
def encode_text(text: str | None) -> str | None: ...
def encode_text(text: str | None) -> str | None:
    """Return text as PostgreSQL can hold it.

    >>> encode_text("one\\0two"), encode_text("\\ud800")
    ('one␀0two', '\\\\ud800')
    """
    if text is None:
        return None
    text = storable(text)
    if _MARK in text or "\0" in text:
        return text.replace(_MARK, 2 * _MARK).replace("\0", f"{_MARK}0")
    return text


@overload
def decode_text(text: str) -> str: ...
@overload
def decode_text(text: None) -> None: ...
@overload
def decode_text(text: str | None) -> str | None: ...
def decode_text(text: str | None) -> str | None:
    """Return the text that `encode_text` has encoded.

    >>> decode_text(encode_text("one\\0two ␀0")) == "one\\0two ␀0"
    True
    """
    if text is None or _MARK not in text:
        return text
    parts = text.split(2 * _MARK)
    return _MARK.join(part.replace(f"{_MARK}0", "\0") for part in parts)


def encode_row(row: Iterable[Any]) -> tuple[Any, ...]:
    """Return a row with all its texts encoded."""
    return tuple(encode_text(value) if isinstance(value, str) else value for value in row)


def decode_row(row: Iterable[Any]) -> tuple[Any, ...]:
    """Return a row with all its texts decoded."""
    return tuple(decode_text(value) if isinstance(value, str) else value for value in row)


def with_marks(query: str) -> str:
    """Return a query of `swarmtest.store.sql` with psycopg's mark for each value."""
    return query.replace("?", "%s")


def executing(connection: Connection) -> Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]:
    """Return a function that runs a statement of `swarmtest.store` and returns its rows.

    In a pipeline, statements without rows are sent without waiting for the one before.
    """

    def execute(query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = connection.execute(with_marks(query), encode_row(values), binary=True)
        return cursor.fetchall() if query.lstrip().startswith("SELECT") else []

    return execute


# Batches.

# Better: a test that can be replayed before none, then the shorter, then the earlier one.
_BETTER = """(excluded.test IS NULL, excluded.size, excluded.trial)
           < (faults.test IS NULL, faults.size, faults.trial)"""
_SHORTEST = ("details", "trial", "size", "test", "code")
_ADD_FAULT = f"""
INSERT INTO faults (campaign, id, kind, signature, details, first_trial, trial, size, test, code)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (campaign, id) DO UPDATE SET
    first_trial = least(faults.first_trial, excluded.first_trial),
    {
    ", ".join(
        f"{name} = CASE WHEN {_BETTER} THEN excluded.{name} ELSE faults.{name} END"
        for name in _SHORTEST
    )
}
"""


def insert_faults(connection: Connection, campaign: int, faults: Iterable[FaultRecord]) -> None:
    """Insert faults; a stored fault keeps its lowest first trial and its shortest test."""
    rows = [
        (
            *(campaign, *map(encode_text, f[:4]), f.first_trial, f.trial, f.size),
            *map(encode_text, (f.test, f.code)),
        )
        for f in sorted(faults, key=lambda fault: fault.id)
    ]
    _execute_all(connection, _ADD_FAULT, rows)


def insert_reduction(connection: Connection, campaign: int, reduction: ReductionRecord) -> None:
    """Insert a reduction unless the fault has a better one."""
    connection.execute(with_marks(ADD_REDUCTION), (campaign, *encode_row(reduction)))


def insert_tests(connection: Connection, campaign: int, tests: Iterable[TestRecord]) -> None:
    """Insert whole tests; tests that are stored already stay unchanged."""
    rows = sorted((campaign, test.trial, encode_text(test.test)) for test in tests)
    insert = "INSERT INTO tests (campaign, trial, test) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
    _execute_all(connection, insert, rows)


def _execute_all(connection: Connection, query: str, rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(query, rows)


# Targets and their files.

_FIND = """
SELECT place, id
FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS asked (kind, name, source, place)
JOIN targets ON md5(targets.name) = md5(asked.name) AND targets.kind = asked.kind
            AND targets.source = asked.source
"""
_INSERT = f"""
INSERT INTO targets ({TARGET})
SELECT {TARGET} FROM unnest(
    %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[]
) WITH ORDINALITY AS new ({TARGET}, place) ORDER BY place
ON CONFLICT DO NOTHING
"""
# Only one process adds targets at a time: a skipped sequence number would leave a gap in the ids,
# and dense ids make small bitmaps.
_LOCK_TARGETS = "SELECT pg_advisory_xact_lock('targets'::regclass::oid::bigint)"
_LOCK_SOURCES = "SELECT pg_advisory_xact_lock('sources'::regclass::oid::bigint)"


def insert_targets(connection: Connection, targets: Sequence[Target]) -> list[int]:
    """Insert the targets that are not stored yet; return the ids of all, in order."""
    requested = [_encoded_target(target) for target in targets]
    distinct = list(dict.fromkeys(requested))
    ids = _stored_ids(connection, distinct)
    if len(ids) < len(distinct):
        connection.execute(_LOCK_TARGETS)
        ids = _stored_ids(connection, distinct)  # another process may have added some meanwhile
        missing = [target for target in reversed(distinct) if target not in ids]
        new = {(target.kind, target.name, target.source): target for target in missing}
        if new:
            columns = zip(*reversed(new.values()), strict=True)
            connection.execute(_INSERT, [list(column) for column in columns])
            ids = _stored_ids(connection, distinct)
    return [ids[target] for target in requested]


def _encoded_target(target: Target) -> Target:
    return Target._make(encode_row(checked_target(target)))


def _stored_ids(connection: Connection, targets: Sequence[Target]) -> dict[Target, int]:
    kinds = [target.kind for target in targets]
    names = [target.name for target in targets]
    sources = [target.source for target in targets]
    stored = connection.execute(_FIND, [kinds, names, sources]).fetchall()
    return {targets[position - 1]: id for position, id in stored}


def insert_sources(connection: Connection, campaign: int, sources: Iterable[Source]) -> None:
    """Store files, and that a campaign watches them."""
    connection.execute(_LOCK_SOURCES)
    for source in sources:
        connection.execute(
            "INSERT INTO sources (id, path, text) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            (source.id, encode_text(source.path), compressed(source)),
        )
        values = (campaign, source.id, encode_text(source.place))
        connection.execute(with_marks(ADD_CAMPAIGN_SOURCE), values)


def forget_sources(connection: Connection) -> None:
    """Delete the files that no campaign watches any more, and the targets in them."""
    connection.execute(_LOCK_SOURCES)
    connection.execute(
        "DELETE FROM sources WHERE NOT EXISTS "
        "(SELECT FROM campaign_sources WHERE campaign_sources.source = sources.id)"
    )
    connection.execute(
        "DELETE FROM targets WHERE source <> '' AND NOT EXISTS "
        "(SELECT FROM sources WHERE sources.id = targets.source)"
    )
