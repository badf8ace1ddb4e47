"""`Store`, the interface that every store implements, and the names of stores.

What every store guarantees:

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

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode

from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.core.targets import Source, Target
from swarmtest.store.fault_groups import FaultDecision
from swarmtest.store.loose_blocks import BlockLayout, PackedBlock, features_of
from swarmtest.store.records import (
    CampaignRecord,
    FaultEvent,
    FaultRecord,
    ProgressPoint,
    ReductionRecord,
    TestRecord,
    TrialRecord,
    WorkerRecord,
)

if TYPE_CHECKING:  # blocks need numpy, which a command that shows a list need not load
    from swarmtest.store.blocks import FeatureSummary, HitSummary, TrialBlock

SCHEMA = "swarmtest"
"""The default PostgreSQL schema; a URL can name another one with ``?schema=``."""

TOTALS = ("trials", "passed", "failed", "invalid", "steps", "skipped", "cpu_ns", "wall_ns")
"""The fields of a summary."""

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


def no_campaign(campaign: int, url: str, latest: Sequence[int]) -> str:
    """Return the message for a missing campaign.

    `latest` are the numbers of up to 21 campaigns that exist, newest first.

    >>> no_campaign(9, "x.db", [3, 2, 1])
    'no campaign 9 in x.db: it has 1, 2, 3'
    """
    if not latest:
        return f"no campaign {campaign} in {url}: it has none yet; run `swarmtest run` first"
    more = "..., " if len(latest) > 20 else ""
    numbers = ", ".join(map(str, latest[19::-1]))
    return f"no campaign {campaign} in {url}: it has {more}{numbers}"


def no_trial(campaign: int, trial: int, url: str, there: Sequence[Any]) -> str:
    """Return the message for a missing trial.

    `there` is the number of trials that exist, the lowest and the highest number.
    """
    count, low, high = there
    existing = f"it has {count}, numbered {low} to {high}" if count else "it has none yet"
    return f"campaign {campaign} in {url} has no trial {trial}: {existing}"


def damaged(url: str, where: str, error: Exception) -> str:
    """Return the message for something in a store that cannot be decoded.

    >>> damaged("x.db", "the seed of campaign 3", ValueError("no number"))
    'store x.db is damaged: the seed of campaign 3 cannot be read (ValueError: no number): \
`swarmtest doctor x.db` says what is lost'
    """
    why = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"store {url} is damaged: {where} cannot be read ({why}): "
        f"`swarmtest doctor {url}` says what is lost"
    )


_TO_WRITE = (
    "add_campaign",
    "update_campaign",
    "campaigns",
    "delete_campaign",
    "record",
    "add_hits",
    "trials",
    "note_worker",
    "workers",
    "faults",
    "add_reduction",
    "reductions",
    "tests",
    "target_ids",
    "targets",
    "add_sources",
    "sources",
    "watched_targets",
    "close",
)
"""The methods without a default."""


class Store:
    """A store of campaigns.

    A store of your own derives from this class, sets `url` and writes these methods:

    - campaigns: `add_campaign`, `update_campaign`, `campaigns`, `delete_campaign`
    - trials: `record`, `add_hits`, `trials`
    - what belongs to a campaign: `faults`, `tests`, `add_reduction`, `reductions`, `note_worker`,
      `workers`
    - targets and files: `target_ids`, `targets`, `add_sources`, `sources`, `watched_targets`
    - `close`

    The other methods have defaults that use these. Override those that can be faster: the defaults
    of `blocks`, `trial_numbers`, `summary`, `progress`, `hit_summary` and `feature_summary` read
    all trials. Without `add_fault_events` and `fault_events`, faults cannot be marked and are
    never called fixed. A class without one of the methods says so when it is used:

    >>> class ListStore(Store):
    ...     url = "a list"
    ...     def add_campaign(self, campaign): return 1
    >>> ListStore()
    Traceback (most recent call last):
    ...
    swarmtest.UserError: ListStore: an incomplete store, it has no method update_campaign: write \
def update_campaign(self, campaign, **changes)
    """

    url: str = ""
    """The name of this store on the command line, without a password."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Create a store; raise `UserError` if its class does not define what it has to."""
        for method in _TO_WRITE:
            if getattr(cls, method) is getattr(Store, method):
                parameters = inspect.signature(getattr(Store, method)).parameters.values()
                plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
                raise UserError(
                    f"{cls.__qualname__}: an incomplete store, it has no method {method}: write "
                    f"def {method}{inspect.Signature(plain)}"
                )
        return super().__new__(cls)

    # To be written.

    def add_campaign(self, campaign: CampaignRecord) -> int:
        """Store a new campaign and return its number."""
        raise NotImplementedError

    def update_campaign(self, campaign: int, **changes: Any) -> None:
        """Change `status`, `options`, `wall_seconds`, `cpu_seconds` or `outside` of a campaign."""
        raise NotImplementedError

    def campaigns(self) -> list[CampaignRecord]:
        """Return all campaigns, oldest first."""
        raise NotImplementedError

    def delete_campaign(self, campaign: int) -> None:
        """Delete a campaign and everything that belongs to it, and free the disk space."""
        raise NotImplementedError

    def record(
        self,
        campaign: int,
        trials: Sequence[TrialRecord],
        faults: Sequence[FaultRecord] = (),
        tests: Sequence[TestRecord] = (),
    ) -> None:
        """Store a batch in one transaction."""
        raise NotImplementedError

    def add_hits(self, campaign: int, hits: Mapping[int, Iterable[int]]) -> None:
        """Add targets, by id, to the hits of trials: those found later, such as killed mutants."""
        raise NotImplementedError

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
        raise NotImplementedError

    def note_worker(self, campaign: int, worker: WorkerRecord) -> None:
        """Store the latest report of a worker in place of its previous one."""
        raise NotImplementedError

    def workers(self, campaign: int) -> list[WorkerRecord]:
        """Return the latest report of each of the campaign's workers, sorted by name."""
        raise NotImplementedError

    def faults(self, campaign: int) -> list[FaultRecord]:
        """Return the campaign's faults with their counts, in the order of their first trials."""
        raise NotImplementedError

    def add_reduction(self, campaign: int, reduction: ReductionRecord) -> None:
        """Store a reduced test of a fault unless a better one is stored."""
        raise NotImplementedError

    def reductions(self, campaign: int) -> list[ReductionRecord]:
        """Return the campaign's reductions, in the order of their faults' ids."""
        raise NotImplementedError

    def tests(self, campaign: int) -> Iterator[TestRecord]:
        """Stream the tests that were kept on request, in the order of their trials."""
        raise NotImplementedError

    def target_ids(self, targets: Sequence[Target]) -> list[int]:
        """Return the ids of targets, in the same order; new targets get new ids."""
        raise NotImplementedError

    def targets(self, ids: Iterable[int] | None = None) -> dict[int, Target]:
        """Return targets by id; all targets when `ids` is None."""
        raise NotImplementedError

    def add_sources(self, campaign: int, sources: Iterable[Source]) -> None:
        """Store files that a campaign watches; a file that is stored already is only linked."""
        raise NotImplementedError

    def sources(self, campaign: int) -> list[Source]:
        """Return the files that a campaign watched, as they were then, sorted by path."""
        raise NotImplementedError

    def watched_targets(self, campaign: int) -> dict[int, Target]:
        """Return the targets in a campaign's sources by id, hit or not."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the file or connection; the store cannot be used afterwards."""
        raise NotImplementedError

    # With defaults.

    @property
    def recorded(self) -> Store:
        """The same store, with faults as they were recorded, whatever was decided about them."""
        return self

    def fault_decisions(self) -> list[FaultDecision]:
        """Return the decisions which recorded faults are one, in the order of the faults' ids."""
        return []

    def decide_faults(
        self, decisions: Sequence[FaultDecision], forget: Sequence[FaultDecision] = ()
    ) -> None:
        """Store decisions in place of earlier ones of the same faults, and take others back."""
        raise UserError(f"{self.url}: this kind of store keeps no decisions about faults")

    @property
    def keeps_fault_events(self) -> bool:
        """Whether the store defines `add_fault_events` and `fault_events`."""
        return type(self).add_fault_events is not Store.add_fault_events

    def add_fault_events(self, events: Sequence[FaultEvent]) -> None:
        """Store what happened to faults; an event that is stored already is not stored again."""
        raise UserError(
            f"store {self.url} keeps no history of faults: its class {type(self).__qualname__} "
            "defines no add_fault_events"
        )

    def fault_events(self, subject: str | None = None) -> list[FaultEvent]:
        """Return what happened to the faults of a subject, or of all, in the order of time.

        `delete_campaign` deletes the events of a subject together with its last campaign. Until
        then they stay, with the number 0 in place of that of the deleted campaign.
        """
        return []

    def integrity(self) -> list[str]:
        """Return what the database itself finds wrong with its files, a line for each."""
        return []

    def fault_ids(self) -> list[tuple[int, str]]:
        """Return the number of each campaign with the ids of its faults, in order."""
        numbers = self.campaign_numbers()
        return [(number, fault.id) for number in numbers for fault in self.faults(number)]

    def campaign_numbers(self) -> list[int]:
        """Return the numbers of all campaigns, oldest first, also of damaged ones."""
        return [record.id for record in self.campaigns()]

    def campaign(self, campaign: int) -> CampaignRecord:
        """Return a campaign; raise a `UserError` that lists the campaigns if there is none."""
        campaigns = self.campaigns()
        for record in campaigns:
            if record.id == campaign:
                return record
        raise UserError(no_campaign(campaign, self.url, [each.id for each in reversed(campaigns)]))

    def trial(self, campaign: int, trial: int) -> TrialRecord:
        """Return one trial; raise a `UserError` if it does not exist."""
        for record in self.trials(campaign, after=trial - 1, limit=1):
            if record.trial == trial:
                return record
        numbers = list(self.trial_numbers(campaign))
        there = (len(numbers), numbers[0], numbers[-1]) if numbers else (0, 0, 0)
        raise UserError(no_trial(campaign, trial, self.url, there))

    def chosen_trials(self, campaign: int, numbers: Iterable[int]) -> Iterator[TrialRecord]:
        """Stream the trials that have one of these numbers, in order; each block is read once."""
        import numpy as np

        wanted = np.unique(np.fromiter(numbers, np.int64))
        for first, last, _ in self.block_ranges(campaign):
            inside = wanted[(wanted >= first) & (wanted <= last)]
            if len(inside):
                block = next(self.blocks(campaign, after=first - 1))
                yield from block.records(np.flatnonzero(np.isin(block.numbers, inside)))

    def trial_numbers(self, campaign: int) -> Iterator[int]:
        """Stream the numbers of all recorded trials in order; `resume` does not run them again."""
        return (record.trial for record in self.trials(campaign))

    def record_blocks(
        self,
        campaign: int,
        blocks: Sequence[PackedBlock],
        trials: Sequence[TrialRecord] = (),
        faults: Sequence[FaultRecord] = (),
        tests: Sequence[TestRecord] = (),
    ) -> None:
        """Store a batch in one transaction, in which workers have packed trials into blocks."""
        from swarmtest.store.blocks.codec import unpack_whole

        layout = self._block_layout(campaign)
        unpacked = [each for block in blocks for each in unpack_whole(block, layout).records()]
        self.record(campaign, [*unpacked, *trials], faults, tests)

    def merge_blocks(self, campaign: int, *, running: bool = False) -> None:
        """Tidy up after many small batches, if the store keeps trials in larger units.

        `running`: trials with numbers between those that are stored may still arrive.
        """

    def blocks(self, campaign: int, *, after: int = -1, hits: bool = True) -> Iterator[TrialBlock]:
        """Stream the trials with numbers above `after` as columns, in the order of their numbers.

        Without `hits`, a store need not read them; the column `hits` of the blocks cannot be used.
        """
        from swarmtest.store.blocks import TrialBlock, split_records

        features = self._block_layout(campaign).features
        records = self.trials(campaign, after=after)
        return (TrialBlock.from_records(chunk, features) for chunk in split_records(records))

    def packed_blocks(self, campaign: int) -> Iterator[PackedBlock]:
        """Stream the trials of a campaign as blocks that `record_blocks` of another store takes."""
        from swarmtest.store.blocks.codec import pack_block

        layout = self._block_layout(campaign)
        return (pack_block(block, layout) for block in self.blocks(campaign))

    def _block_layout(self, campaign: int) -> BlockLayout:
        """Return what blocks need to know about a campaign."""
        record = self.campaign(campaign)
        return BlockLayout(features_of(record.space), record.seed)

    def hit_summary(self, campaign: int) -> HitSummary:
        """Return how often each target was hit, and by which trial first."""
        from swarmtest.store.blocks.summaries import summarise_hits

        return summarise_hits(self.blocks(campaign))

    def feature_summary(self, campaign: int) -> FeatureSummary:
        """Return how often each feature was enabled and used."""
        from swarmtest.store.blocks.summaries import summarise_features

        features = self._block_layout(campaign).features
        return summarise_features(self.blocks(campaign, hits=False), features)

    def block_ranges(self, campaign: int) -> list[tuple[int, int, int]]:
        """Return the first and last trial of each block, and how many trials it has, in order."""
        from swarmtest.store.blocks import BLOCK_SIZE

        numbers = list(self.trial_numbers(campaign))
        chunks = [numbers[i : i + BLOCK_SIZE] for i in range(0, len(numbers), BLOCK_SIZE)]
        return [(chunk[0], chunk[-1], len(chunk)) for chunk in chunks]

    def summary(self, campaign: int) -> dict[str, int]:
        """Return totals: trials, passed, failed, invalid, steps, skipped, cpu_ns, wall_ns."""
        totals = dict.fromkeys(TOTALS, 0)
        for record in self.trials(campaign):
            totals["trials"] += 1
            totals[Verdict(record.verdict).label] += 1
            for name in ("steps", "skipped", "cpu_ns", "wall_ns"):
                totals[name] += getattr(record, name)
        return totals

    def progress(self, campaign: int, buckets: int = 200) -> list[ProgressPoint]:
        """Return the cumulative findings at about `buckets` evenly spaced trials."""
        newest = next(self.trials(campaign, newest_first=True, limit=1), None)
        if newest is None:
            return []
        width = -(-(newest.trial + 1) // buckets)
        first_trials = [fault.first_trial for fault in self.faults(campaign)]
        points = []
        tests = failed = cpu_ns = 0
        for bucket, records in groupby(self.trials(campaign), lambda each: each.trial // width):
            for record in records:
                tests += 1
                failed += record.verdict == Verdict.FAILED
                cpu_ns += record.cpu_ns
            last = min((bucket + 1) * width - 1, newest.trial)
            faults = sum(first <= last for first in first_trials)
            points.append(ProgressPoint(last, tests, failed, faults, cpu_ns))
        return points

    def test(self, campaign: int, trial: int) -> str | None:
        """Return the JSON of a stored test (kept on request, or a fault's shortest), or None."""
        kept = {record.trial: record.test for record in self.tests(campaign)}
        shortest = {fault.trial: fault.test for fault in self.faults(campaign)}
        return kept.get(trial) or shortest.get(trial)

    def __enter__(self) -> Self:
        """Return the store, which is closed at the end of the ``with`` statement."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the store."""
        self.close()
