"""Targets, and the files that they lie in, in PostgreSQL."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from swarmtest.core.targets import Source, Target
from swarmtest.store.postgres.batch import kept, told, told_row
from swarmtest.store.postgres.connection import Connection, PostgresServer, Row
from swarmtest.store.sql import FAR
from swarmtest.store.sqlite.store import checked

_COLUMNS = "kind, name, file, line, function, content, source, detail"
_FIND = """
SELECT place, id
FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS asked (kind, name, source, place)
JOIN targets ON md5(targets.name) = md5(asked.name) AND targets.kind = asked.kind
            AND targets.source = asked.source
"""
_INSERT = f"""
INSERT INTO targets ({_COLUMNS})
SELECT {_COLUMNS} FROM unnest(
    %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[]
) WITH ORDINALITY AS new ({_COLUMNS}, place) ORDER BY place
ON CONFLICT DO NOTHING
"""
# Only one process adds targets at a time: a skipped sequence number would leave a gap in the ids,
# and dense ids make small bitmaps.
_LOCK_TARGETS = "SELECT pg_advisory_xact_lock('targets'::regclass::oid::bigint)"
_LOCK_SOURCES = "SELECT pg_advisory_xact_lock('sources'::regclass::oid::bigint)"


def insert_targets(connection: Connection, targets: Sequence[Target]) -> list[int]:
    """Insert the targets that are not stored yet; return the ids of all, in order."""
    requested = [_row(target) for target in targets]
    rows = list(dict.fromkeys(requested))
    ids = _stored_ids(connection, rows)
    if len(ids) < len(rows):
        connection.execute(_LOCK_TARGETS)
        ids = _stored_ids(connection, rows)  # another process may have added some meanwhile
        new = {row[:2] + row[6:7]: row for row in reversed(rows) if row not in ids}
        if new:
            connection.execute(_INSERT, _columns(list(reversed(new.values()))))
            ids = _stored_ids(connection, rows)
    return [ids[row] for row in requested]


def _row(target: Target) -> tuple[Any, ...]:
    return tuple(kept(value) if isinstance(value, str) else value for value in checked(target))


def _columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _stored_ids(
    connection: Connection, rows: Sequence[tuple[Any, ...]]
) -> dict[tuple[Any, ...], int]:
    kinds, names, _, _, _, _, sources, _ = _columns(rows)
    stored = connection.execute(_FIND, [kinds, names, sources]).fetchall()
    return {rows[position - 1]: id for position, id in stored}


def targets_by_id(server: PostgresServer, ids: Iterable[int] | None) -> dict[int, Target]:
    """Return targets by id; all targets when `ids` is None."""
    query = f"SELECT id, {_COLUMNS} FROM targets"
    if ids is None:
        return _targets(server.rows(f"{query} ORDER BY id"))
    possible = [id for id in ids if id <= FAR]
    return _targets(server.rows(f"{query} WHERE id = ANY(%s::bigint[]) ORDER BY id", possible))


def targets_of_campaign(server: PostgresServer, campaign: int) -> dict[int, Target]:
    """Return the targets in a campaign's sources."""
    rows = server.rows(
        f"SELECT id, {_COLUMNS} FROM targets WHERE source <> '' AND source IN "
        "(SELECT source FROM campaign_sources WHERE campaign = %s) ORDER BY id",
        campaign,
    )
    return _targets(rows)


def _targets(rows: Iterable[Row]) -> dict[int, Target]:
    return {row[0]: Target._make(told_row(row[1:])) for row in rows}


def insert_sources(connection: Connection, campaign: int, sources: Iterable[Source]) -> None:
    """Store files, and that a campaign watches them."""
    connection.execute(_LOCK_SOURCES)
    for source in sources:
        text = zlib.compress(source.text.encode(errors="surrogatepass"))
        connection.execute(
            "INSERT INTO sources (id, path, text) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            (source.id, kept(source.path), text),
        )
        connection.execute(
            "INSERT INTO campaign_sources (campaign, source, place) VALUES (%s, %s, %s) "
            "ON CONFLICT (campaign, source) DO UPDATE SET place = excluded.place "
            "WHERE excluded.place <> ''",
            (campaign, source.id, kept(source.place)),
        )


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


def sources_of(server: PostgresServer, campaign: int) -> list[Source]:
    """Return the files that a campaign watched."""
    rows = server.rows(
        "SELECT path, text, place FROM sources JOIN campaign_sources ON source = id "
        "WHERE campaign = %s ORDER BY path",
        campaign,
    )
    return [
        Source(told(path), zlib.decompress(text).decode(errors="surrogatepass"), told(place))
        for path, text, place in rows
    ]
