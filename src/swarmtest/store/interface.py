"""The interface of a store, which SQLite and PostgreSQL implement, and the names of stores.

Contract:

- A store is used by one thread; several stores, in several processes, may be open on the same data.
- `record` is one transaction and idempotent: a trial that is already stored stays unchanged, so a
  batch that arrives twice counts once. A fault keeps its lowest first trial and its shortest test,
  whatever the order in which batches arrive.
- A fault's reduction never replaces the original test. Of several reductions with the same
  criterion, the smallest stays; of equally small ones, one that cannot be reduced further.
- After a lost connection, the store reconnects and repeats what it was doing, without counting
  anything twice.
- Every problem that the user can fix (locked, corrupt, newer schema, full disk, no such campaign)
  is a `swarmtest.UserError` of one line.
- A store's name may contain a password: text for people has gone through `redacted`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source, Target
from swarmtest.store.records import (
    CampaignRecord,
    FaultRecord,
    ProgressPoint,
    ReductionRecord,
    TestRecord,
    TrialRecord,
    WorkerRecord,
)

SCHEMA = "swarmtest"
"""The default PostgreSQL schema; a URL can name another one with ``?schema=``."""

_URL = re.compile(r"(?P<before>(?:-[^=]*=)?)(?P<scheme>[A-Za-z][\w+.-]*://)(?P<rest>.*)", re.DOTALL)
_SECRETS = ("password", "sslpassword", "oauth_client_secret")


def is_postgres(url: str) -> bool:
    """Return whether a store's name is that of a PostgreSQL database.

    >>> is_postgres("postgres://host/db"), is_postgres("store.db")
    (True, False)
    """
    return url.startswith(("postgresql://", "postgres://"))


def redacted(url: str) -> str:
    """Return a store's name, or a command-line word that contains one, without its password.

    The result still names the store, if the password is in ``~/.pgpass`` or PGPASSWORD.

    >>> redacted("postgresql://ann:secret@host:5432/db?sslmode=require&password=secret")
    'postgresql://ann@host:5432/db?sslmode=require'
    >>> redacted("--store=postgresql://ann:not/quoted@all?@host/db")
    '--store=postgresql://ann@host/db'
    >>> redacted("store.db")
    'store.db'
    """
    match = _URL.fullmatch(url)
    if match is None:
        return url
    rest = match["rest"]
    head, mark, query = rest.partition("?")
    # An unquoted '@', '/' or '?' in a password must not let a part of the password through.
    if "@" in query and not (_names_hosts(head) and _names_options(query)):
        head, mark, query = rest, "", ""
    if "@" in head:
        login, at, host = head.rpartition("@")
        head = login.partition(":")[0] + at + host
    options = [part for part in query.split("&") if part.partition("=")[0] not in _SECRETS]
    shown = "&".join(options)
    return f"{match['before']}{match['scheme']}{head}{mark if shown else ''}{shown}"


def _names_hosts(head: str) -> bool:
    """Return whether this is ``host:port,host:port/database``, with numbers for ports."""
    hosts, _, _ = head.partition("/")
    return all(re.fullmatch(r"(\[[^]]*\]|[^:]*)(:\d*)?", host) for host in hosts.split(","))


def _names_options(query: str) -> bool:
    return all(re.fullmatch(r"[a-z_]+=.*", option) for option in query.split("&"))


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The address of a PostgreSQL store.

    >>> PostgresAddress.parse("postgresql://ann:secret@host/db?schema=team")
    PostgresAddress(shown='postgresql://ann@host/db?schema=team', schema='team')
    """

    shown: str
    """For people: without the password."""
    conninfo: str
    """For libpq: with the password."""
    schema: str

    def __repr__(self) -> str:
        return f"PostgresAddress(shown={self.shown!r}, schema={self.schema!r})"

    @classmethod
    def parse(cls, url: str) -> PostgresAddress:
        """Parse a URL; the `UserError` for one that cannot be parsed repeats no password."""
        shown = redacted(url)
        head, _, query = url.partition("://")[2].partition("?")
        login, _, hosts = head.rpartition("@")
        if re.search("[@/]", login) or not _names_hosts(hosts):
            raise UserError(
                f"store {shown}: this URL cannot be read: it is written "
                "postgresql://USER@HOST:PORT/DATABASE, and a password with @ / ? : or % in it is "
                "better put into PGPASSWORD or ~/.pgpass"
            )
        pairs = parse_qsl(query, keep_blank_values=True)
        schema = unquote(dict(pairs).get("schema", SCHEMA)) or SCHEMA
        rest = urlencode([pair for pair in pairs if pair[0] != "schema"], quote_via=quote)
        return cls(shown, f"postgresql://{head}" + (f"?{rest}" if rest else ""), schema)


class Store(Protocol):
    """A store of campaigns.

    >>> from swarmtest import open_store
    >>> with open_store(":memory:") as store:
    ...     store.campaigns()
    []
    """

    url: str
    """The name of this store on the command line, without a password."""

    def add_campaign(self, campaign: CampaignRecord) -> int:
        """Store a new campaign and return its number."""

    def update_campaign(self, campaign: int, **changes: Any) -> None:
        """Change `status`, `options`, `wall_seconds`, `cpu_seconds` or `outside` of a campaign."""

    def campaign(self, campaign: int) -> CampaignRecord:
        """Return a campaign; raise a `UserError` that lists the campaigns if there is none."""

    def campaigns(self) -> list[CampaignRecord]:
        """Return all campaigns, oldest first."""

    def delete_campaign(self, campaign: int) -> None:
        """Delete a campaign and everything that belongs to it, and free the disk space."""

    def record(
        self,
        campaign: int,
        trials: Sequence[TrialRecord],
        faults: Sequence[FaultRecord] = (),
        tests: Sequence[TestRecord] = (),
    ) -> None:
        """Store a batch in one transaction."""

    def add_hits(self, campaign: int, hits: Mapping[int, Iterable[int]]) -> None:
        """Add targets, by id, to the hits of trials: those found later, such as killed mutants."""

    def trials(
        self,
        campaign: int,
        *,
        after: int = -1,
        before: int | None = None,
        verdict: int | None = None,
        fault: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[TrialRecord]:
        """Stream trials in the order of their numbers, all or a selection.

        Only numbers above `after` and below `before` are included. The first page of 50 is
        ``trials(campaign, limit=50)``, the next ``trials(campaign, after=last, limit=50)``; from
        the end, use ``newest_first=True`` with ``before=last``. Every page costs the same.
        """

    def trial(self, campaign: int, trial: int) -> TrialRecord:
        """Return one trial; raise a `UserError` if it does not exist."""

    def trial_numbers(self, campaign: int) -> Iterator[int]:
        """Stream the numbers of all recorded trials in order; `resume` does not run them again."""

    def summary(self, campaign: int) -> dict[str, int]:
        """Return totals: trials, passed, failed, invalid, steps, skipped, cpu_ns, wall_ns."""

    def progress(self, campaign: int, buckets: int = 200) -> list[ProgressPoint]:
        """Return the cumulative findings at about `buckets` evenly spaced trials."""

    def note_worker(self, campaign: int, worker: WorkerRecord) -> None:
        """Store the latest report of a worker in place of its previous one."""

    def workers(self, campaign: int) -> list[WorkerRecord]:
        """Return the latest report of each of the campaign's workers, sorted by name."""

    def faults(self, campaign: int) -> list[FaultRecord]:
        """Return the campaign's faults with their counts, in the order of their first trials."""

    def add_reduction(self, campaign: int, reduction: ReductionRecord) -> None:
        """Store a reduced test of a fault unless a better one is stored."""

    def reductions(self, campaign: int) -> list[ReductionRecord]:
        """Return the campaign's reductions, in the order of their faults' ids."""

    def test(self, campaign: int, trial: int) -> str | None:
        """Return the JSON of a stored test (kept on request, or a fault's shortest), or None."""

    def tests(self, campaign: int) -> Iterator[TestRecord]:
        """Stream the tests that were kept on request, in the order of their trials."""

    def target_ids(self, targets: Sequence[Target]) -> list[int]:
        """Return the ids of targets, in the same order; new targets get new ids."""

    def targets(self, ids: Iterable[int] | None = None) -> dict[int, Target]:
        """Return targets by id; all targets when `ids` is None."""

    def add_sources(self, campaign: int, sources: Iterable[Source]) -> None:
        """Store files that a campaign watches; a file that is stored already is only linked."""

    def sources(self, campaign: int) -> list[Source]:
        """Return the files that a campaign watched, as they were then, sorted by path."""

    def watched_targets(self, campaign: int) -> dict[int, Target]:
        """Return the targets in a campaign's sources by id, hit or not."""

    def close(self) -> None:
        """Close the file or connection; the store cannot be used afterwards."""

    def __enter__(self) -> Self:
        """Return the store, which is closed at the end of the ``with`` statement."""

    def __exit__(self, *exception: object) -> None: ...
