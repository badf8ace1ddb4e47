"""The interface of a store, which SQLite and PostgreSQL implement.

Contract:

- A store is used by one thread; several stores, in several processes, may be open on the same data.
- `record` is one transaction and idempotent: a trial that is already there stays as it is, so a
  batch that arrives twice counts once. A fault keeps its lowest first trial and its shortest test,
  whatever the order in which batches arrive.
- A fault's reduction never replaces the test it was made from. Of several that keep the same, the
  smallest stays; of equally small ones, one of which nothing more can go.
- A lost connection is made again, and what it was lost in is done again without counting twice.
- Everything that is the user's to mend (locked, corrupt, newer schema, full disk, no such campaign)
  is a `swarmtest.UserError` of one line.
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

# -------------------------------------------------------------------------------------------------
# Names of stores: what may be shown of them, and what a PostgreSQL one says.
#
# Invariant: what leaves this module as text for people has gone through `redacted`.

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


# -------------------------------------------------------------------------------------------------


class Store(Protocol):
    """Where campaigns are kept.

    >>> from swarmtest import open_store
    >>> with open_store(":memory:") as store:
    ...     store.campaigns()
    []
    """

    url: str
    """How a person would name this store on the command line, without a password."""

    def add_campaign(self, campaign: CampaignRecord) -> int:
        """Keep a new campaign and give it its number."""

    def update_campaign(self, campaign: int, **changes: Any) -> None:
        """Change `status`, `options`, `wall_seconds`, `cpu_seconds` or `outside` of a campaign."""

    def campaign(self, campaign: int) -> CampaignRecord:
        """One campaign; a number that is not there is a `UserError` that tells which are."""

    def campaigns(self) -> list[CampaignRecord]:
        """All campaigns, oldest first."""

    def delete_campaign(self, campaign: int) -> None:
        """Forget a campaign with all that belongs to it, and give the space back."""

    def record(
        self,
        campaign: int,
        trials: Sequence[TrialRecord],
        faults: Sequence[FaultRecord] = (),
        tests: Sequence[TestRecord] = (),
    ) -> None:
        """Keep a batch, in one transaction."""

    def add_hits(self, campaign: int, hits: Mapping[int, Iterable[int]]) -> None:
        """Add targets (by id) to what trials hit: what was found out later, like killed mutants."""

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
        """Trials in order of their numbers, streamed, all or those that are picked.

        `after` and `before` leave out these numbers and what is below, or above. A page is
        ``trials(campaign, limit=50)``, the next ``trials(campaign, after=last, limit=50)``; from
        the end, ``newest_first=True`` with ``before=last``. Any page costs the same.
        """

    def trial(self, campaign: int, trial: int) -> TrialRecord:
        """One trial; a `UserError` if it is not there."""

    def trial_numbers(self, campaign: int) -> Iterator[int]:
        """The numbers of all recorded trials, in order: what `resume` need not run again."""

    def summary(self, campaign: int) -> dict[str, int]:
        """Totals: trials, passed, failed, invalid, steps, skipped, cpu_ns, wall_ns."""

    def progress(self, campaign: int, buckets: int = 200) -> list[ProgressPoint]:
        """What was found by about so many of its trials, evenly spread over their numbers."""

    def note_worker(self, campaign: int, worker: WorkerRecord) -> None:
        """Keep what a worker says of itself, in place of what it said before."""

    def workers(self, campaign: int) -> list[WorkerRecord]:
        """The campaign's workers as they last spoke, by name."""

    def faults(self, campaign: int) -> list[FaultRecord]:
        """The campaign's faults, each with its count, in order of their first trial."""

    def add_reduction(self, campaign: int, reduction: ReductionRecord) -> None:
        """Keep a fault's test made smaller, unless a better one is there."""

    def reductions(self, campaign: int) -> list[ReductionRecord]:
        """The campaign's reductions, in order of their faults' ids."""

    def test(self, campaign: int, trial: int) -> str | None:
        """The JSON of a test that is kept whole (asked for, or a fault's shortest), or None."""

    def tests(self, campaign: int) -> Iterator[TestRecord]:
        """The tests that were asked to be kept whole, in order of their trials, streamed."""

    def target_ids(self, targets: Sequence[Target]) -> list[int]:
        """The ids of targets, in their order; those not yet known get one."""

    def targets(self, ids: Iterable[int] | None = None) -> dict[int, Target]:
        """Targets by id; all of them when no ids are given."""

    def add_sources(self, campaign: int, sources: Iterable[Source]) -> None:
        """Keep files that a campaign watches; what is kept already is only noted."""

    def sources(self, campaign: int) -> list[Source]:
        """The files that a campaign watched, as they were then, in order of their paths."""

    def watched_targets(self, campaign: int) -> dict[int, Target]:
        """The targets that lie in a campaign's sources, hit or not, by id."""

    def close(self) -> None:
        """Let go of the file or connection; the store is not used afterwards."""

    def __enter__(self) -> Self:
        """A store closes itself at the end of a ``with`` statement."""

    def __exit__(self, *exception: object) -> None: ...
