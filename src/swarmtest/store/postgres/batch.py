"""Write to PostgreSQL: texts, batches of trials, targets and their files.

Trials are copied into a temporary table (COPY), and the new ones inserted from there.

Writers of the same campaign may run at the same time. They lock rows in the same order (trials,
blocks, faults, tests, each sorted), so that they cannot deadlock.

PostgreSQL's text holds every character except NUL, which is stored as ``␀0``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, overload

from swarmtest.core.targets import Source, Target
from swarmtest.store.interface import TOTALS
from swarmtest.store.postgres.connection import Connection
from swarmtest.store.records import FaultRecord, ReductionRecord, TestRecord, TrialRecord
from swarmtest.store.schema import BLOCK
from swarmtest.store.sql import (
    ADD_CAMPAIGN_SOURCE,
    ADD_REDUCTION,
    TARGET,
    TRIAL,
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
    if text is None or is_plain(text):
        return text
    parts = text.split(2 * _MARK)
    return _MARK.join(part.replace(f"{_MARK}0", "\0") for part in parts)


def is_plain(text: str | None) -> bool:
    """Return whether a stored text is the original text."""
    return text is None or _MARK not in text


def encode_row(row: Iterable[Any]) -> tuple[Any, ...]:
    """Return a row with all its texts encoded."""
    return tuple(encode_text(value) if isinstance(value, str) else value for value in row)


def decode_row(row: Iterable[Any]) -> tuple[Any, ...]:
    """Return a row with all its texts decoded."""
    return tuple(decode_text(value) if isinstance(value, str) else value for value in row)


def with_marks(query: str) -> str:
    """Return a query of `swarmtest.store.sql` with psycopg's mark for each value."""
    return query.replace("?", "%s")


# Batches.

_TYPES = {
    "origin": "text",
    "fault": "text",
    "missing": "text",
    "verdict": "int2",
    "configuration": "bytea",
    "propensities": "bytea",
    "used": "bytea",
    "hits": "bytea",
}
_COPY_TYPES = [_TYPES.get(name, "int8") for name in TrialRecord._fields]

_INCOMING = f"""
CREATE TEMPORARY TABLE IF NOT EXISTS incoming AS SELECT {TRIAL} FROM trials WITH NO DATA;
TRUNCATE incoming
"""
_MOVE = f"""
WITH new AS (
    INSERT INTO trials (campaign, {TRIAL}) SELECT %s, {TRIAL} FROM incoming
    ON CONFLICT DO NOTHING
    RETURNING campaign, trial / {BLOCK} AS block, verdict, steps, skipped, cpu_ns, wall_ns
)
INSERT INTO blocks (campaign, block, {", ".join(TOTALS)})
SELECT campaign, block, count(*), count(*) FILTER (WHERE verdict = 0),
       count(*) FILTER (WHERE verdict = 1), count(*) FILTER (WHERE verdict = 2),
       sum(steps), sum(skipped), sum(cpu_ns), sum(wall_ns)
FROM new GROUP BY campaign, block ORDER BY block
ON CONFLICT (campaign, block) DO UPDATE SET
    {", ".join(f"{name} = blocks.{name} + excluded.{name}" for name in TOTALS)}
"""

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


def insert_trials(connection: Connection, campaign: int, trials: Sequence[TrialRecord]) -> None:
    """Insert trials; trials that are stored already stay unchanged."""
    if not trials:
        return
    connection.execute(_INCOMING)
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY incoming ({TRIAL}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_COPY_TYPES)
            for trial in _rows(trials):
                copy.write_row(trial)
        cursor.execute(_MOVE, [campaign])


def _rows(trials: Sequence[TrialRecord]) -> Iterable[TrialRecord]:
    """Yield one row per trial number, the first one in `trials`, in the order of the numbers."""
    by_number = {trial.trial: trial for trial in reversed(trials)}
    for number in sorted(by_number):
        trial = by_number[number]
        if not all(map(_needs_no_encoding, (trial.origin, trial.fault, trial.missing))):
            trial = trial._replace(
                origin=encode_text(trial.origin),
                fault=encode_text(trial.fault),
                missing=encode_text(trial.missing),
            )
        yield trial


@functools.lru_cache(maxsize=4096)
def _needs_no_encoding(text: str | None) -> bool:
    """Return whether PostgreSQL can hold the text as it is."""
    return encode_text(text) == text


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
