"""From the results of a point to rows of the store: a trial for each run.

A trial's origin says with which visit it came (``neighbour, visit 17``), its number is its seed's,
and its measures are kept as its test: what the store has no column for.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import Any

from swarmtest.campaign.recorder import Recorder
from swarmtest.campaign.worker import Batch, Job, Worker
from swarmtest.result import Result
from swarmtest.search.visits import Visit
from swarmtest.seeds import seed_of_test
from swarmtest.space import Proposal, Space
from swarmtest.store import Store, TrialRecord
from swarmtest.strategies import Strategy

_FLUSH_SECONDS = 0.5
_VISIT = re.compile(r"visit (\d+)$")


class Recording:
    """Writes a search's results into a campaign."""

    def __init__(
        self, store: Store, campaign: int, space: Space, engine: Strategy, seed: int
    ) -> None:
        self.recorder = Recorder(store, campaign, space)
        subject: Any = _OnlyASpace(space)
        self.worker = Worker(Job(subject, engine, seed))
        self._seed = seed
        self._flushed = time.monotonic()

    def add(self, visit: Visit, results: Sequence[Result]) -> list[str]:
        """Keep the results of a visit; the ids of faults that are new."""
        proposal, words = visit.proposal, f"visit {visit.number}"
        words = f"{proposal.origin}, {words}" if proposal.origin else words
        origin = Proposal(proposal.configuration, proposal.propensities, words)
        batch = Batch()
        for trial, result in enumerate(results, visit.first_trial):
            cpu, wall = int(result.cpu_seconds * 1e9), int(result.wall_seconds * 1e9)
            seed = seed_of_test(self._seed, trial)
            self.worker.note(batch, trial, origin, seed, result._replace(test=None), cpu, wall)
            if result.measures:
                batch.tests.append((trial, {"measures": dict(result.measures)}))
        new = self.recorder.add(self.worker.finished(batch).message())
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.recorder.flush()
            self._flushed = time.monotonic()
        return new


def visit_of(trial: TrialRecord) -> int:
    """The visit that a trial came with; -1 for a trial of another campaign than a search.

    >>> visit_of(TrialRecord(3, b"", origin="neighbour, visit 17"))
    17
    """
    found = _VISIT.search(trial.origin)
    return int(found[1]) if found else -1


def measures_of(store: Store, campaign: int, trial: int) -> dict[str, float]:
    """The measures that were kept with a trial."""
    told: Any = json.loads(store.test(campaign, trial) or "{}")
    return dict(told.get("measures", {})) if isinstance(told, dict) else {}


class _OnlyASpace:
    """What stands where a campaign has its subject: a point says which test runs."""

    def __init__(self, space: Space) -> None:
        self.space = space
