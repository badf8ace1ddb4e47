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
  is a `swarmtest.errors.UserError` of one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

from swarmtest.store.records import (
    CampaignRecord,
    FaultRecord,
    ProgressPoint,
    ReductionRecord,
    TestRecord,
    TrialRecord,
    WorkerRecord,
)
from swarmtest.targets import Source, Target


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
