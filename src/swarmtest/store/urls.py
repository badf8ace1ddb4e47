"""Names of stores: what may be shown of them, and what a PostgreSQL one says.

Invariant: what leaves this module as text for people has gone through `redacted`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode

from swarmtest.errors import UserError

SCHEMA = "swarmtest"
"""The PostgreSQL schema that the tables are in when the URL names none with ``?schema=``."""

_URL = re.compile(r"(?P<before>(?:-[^=]*=)?)(?P<scheme>[A-Za-z][\w+.-]*://)(?P<rest>.*)", re.DOTALL)
_SECRETS = ("password", "sslpassword", "oauth_client_secret")


def is_postgres(url: str) -> bool:
    """Whether a store's name is that of a PostgreSQL database.

    >>> is_postgres("postgres://host/db"), is_postgres("store.db")
    (True, False)
    """
    return url.startswith(("postgresql://", "postgres://"))


def redacted(url: str) -> str:
    """A store's name, or a word of a command line that has one, without the password in it.

    What is left still names the store, for whoever has the password in ``~/.pgpass`` or PGPASSWORD.

    >>> redacted("postgresql://ann:secret@host:5432/db?sslmode=require&password=secret")
    'postgresql://ann@host:5432/db?sslmode=require'
    >>> redacted("--store=postgresql://ann:not/quoted@all?@host/db")
    '--store=postgresql://ann@host/db'
    >>> redacted("store.db")
    'store.db'
    """
    found = _URL.fullmatch(url)
    if found is None:
        return url
    rest = found["rest"]
    head, mark, query = rest.partition("?")
    # An '@', '/' or '?' that belongs to a password but was not quoted must not let it through.
    if "@" in query and not (_names_hosts(head) and _names_options(query)):
        head, mark, query = rest, "", ""
    if "@" in head:
        login, at, place = head.rpartition("@")
        head = login.partition(":")[0] + at + place
    kept = [part for part in query.split("&") if part.partition("=")[0] not in _SECRETS]
    shown = "&".join(kept)
    return f"{found['before']}{found['scheme']}{head}{mark if shown else ''}{shown}"


def _names_hosts(head: str) -> bool:
    """Whether this is ``host:port,host:port/database``, with numbers for ports."""
    hosts, _, _ = head.partition("/")
    return all(re.fullmatch(r"(\[[^]]*\]|[^:]*)(:\d*)?", host) for host in hosts.split(","))


def _names_options(query: str) -> bool:
    return all(re.fullmatch(r"[a-z_]+=.*", option) for option in query.split("&"))


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a PostgreSQL store is.

    >>> PostgresAddress.parse("postgresql://ann:secret@host/db?schema=team")
    PostgresAddress(shown='postgresql://ann@host/db?schema=team', schema='team')
    """

    shown: str
    """For people: without a password."""
    conninfo: str
    """For libpq: with it."""
    schema: str

    def __repr__(self) -> str:
        return f"PostgresAddress(shown={self.shown!r}, schema={self.schema!r})"

    @classmethod
    def parse(cls, url: str) -> PostgresAddress:
        """What a URL says; a `UserError` that does not repeat a password if it makes no sense."""
        shown = redacted(url)
        head, _, query = url.partition("://")[2].partition("?")
        login, _, place = head.rpartition("@")
        if re.search("[@/]", login) or not _names_hosts(place):
            raise UserError(
                f"store {shown}: this URL cannot be read: it is written "
                "postgresql://USER@HOST:PORT/DATABASE, and a password with @ / ? : or % in it is "
                "better put into PGPASSWORD or ~/.pgpass"
            )
        pairs = parse_qsl(query, keep_blank_values=True)
        schema = unquote(dict(pairs).get("schema", SCHEMA)) or SCHEMA
        rest = urlencode([pair for pair in pairs if pair[0] != "schema"], quote_via=quote)
        return cls(shown, f"postgresql://{head}" + (f"?{rest}" if rest else ""), schema)
