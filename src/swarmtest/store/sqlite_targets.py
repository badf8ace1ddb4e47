"""Targets, and the files that they lie in, in SQLite."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Sequence

from swarmtest.errors import UserError
from swarmtest.store.batch import storable
from swarmtest.store.rows import FAR
from swarmtest.store.sqlite_file import SqliteFile
from swarmtest.targets import Source, Target

_COLUMNS = "kind, name, file, line, function, content, source, detail"
_INSERT = f"INSERT OR IGNORE INTO targets ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_FIND = "SELECT id FROM targets WHERE kind = ? AND name = ? AND source = ?"

FORGET_SOURCES = (
    "DELETE FROM sources WHERE id NOT IN (SELECT source FROM campaign_sources)",
    "DELETE FROM targets WHERE source != '' AND source NOT IN (SELECT id FROM sources)",
)
"""After campaigns are deleted: files that none watches any more, and what lies in them."""
_AT_A_TIME = 900
"""Ids in a query: SQLite took no more than 999 parameters once."""


def insert_targets(connection: sqlite3.Connection, targets: Sequence[Target]) -> list[int]:
    """Insert targets that are not there yet; answers the ids of all, in order."""
    rows = [_row(target) for target in targets]
    connection.executemany(_INSERT, rows)
    find = connection.execute
    return [find(_FIND, (row[0], row[1], row[6])).fetchone()[0] for row in rows]


def checked(target: Target) -> Target:
    """The target, if it has a kind and a name."""
    if not target.kind or not target.name:
        raise UserError(
            "a target is written kind:name, like 'event:stack was full', "
            f"not {target.name or target.kind!r}"
        )
    return target


def _row(target: Target) -> tuple[str, str, str, int, str, str, str, str]:
    checked(target)
    return (
        storable(target.kind),
        storable(target.name),
        storable(target.file),
        target.line,
        storable(target.function),
        target.content,
        target.source,
        storable(target.detail),
    )


def targets_by_id(file: SqliteFile, ids: Iterable[int] | None) -> dict[int, Target]:
    """Targets by id; all of them when no ids are given."""
    query = f"SELECT id, {_COLUMNS} FROM targets"
    if ids is None:
        rows = file.rows(f"{query} ORDER BY id")
    else:
        rows, wanted = [], sorted(id for id in ids if id <= FAR)
        for start in range(0, len(wanted), _AT_A_TIME):
            some = wanted[start : start + _AT_A_TIME]
            marks = ", ".join("?" * len(some))
            rows += file.rows(f"{query} WHERE id IN ({marks}) ORDER BY id", *some)
    return {row[0]: Target(*row[1:]) for row in rows}


def targets_of_campaign(file: SqliteFile, campaign: int) -> dict[int, Target]:
    """The targets that lie in a campaign's sources."""
    rows = file.rows(
        f"SELECT id, {_COLUMNS} FROM targets WHERE source IN "
        "(SELECT source FROM campaign_sources WHERE campaign = ?) ORDER BY id",
        campaign,
    )
    return {row[0]: Target(*row[1:]) for row in rows}


def insert_sources(
    connection: sqlite3.Connection, campaign: int, sources: Iterable[Source]
) -> None:
    """Keep files, and that a campaign watches them."""
    for source in sources:
        text = zlib.compress(source.text.encode(errors="surrogatepass"))
        connection.execute(
            "INSERT OR IGNORE INTO sources (id, path, text) VALUES (?, ?, ?)",
            (source.id, storable(source.path), text),
        )
        connection.execute(
            "INSERT INTO campaign_sources (campaign, source, place) VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET place = excluded.place WHERE excluded.place != ''",
            (campaign, source.id, storable(source.place)),
        )


def sources_of(file: SqliteFile, campaign: int) -> list[Source]:
    """The files that a campaign watched."""
    rows = file.rows(
        "SELECT path, text, place FROM sources JOIN campaign_sources ON source = id "
        "WHERE campaign = ? ORDER BY path",
        campaign,
    )
    return [
        Source(path, zlib.decompress(text).decode(errors="surrogatepass"), place)
        for path, text, place in rows
    ]
