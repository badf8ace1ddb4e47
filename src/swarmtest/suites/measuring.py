"""Making a campaign's tests again, seeing what they hit, and making them smaller.

Targets are numbers here: places in the list of those that count. Some cannot be measured in this
process (mutants of C, or of code that runs when a module is imported): of these only what was
recorded is known, so a test that is in the suite for one of them stays whole.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from swarmtest.campaign.isolated import run_isolated
from swarmtest.campaign.kept import Keep
from swarmtest.campaign.reducing import hits_of, reduce_test
from swarmtest.errors import UserError
from swarmtest.instrument.watch import Coverage
from swarmtest.mutation import Mutant, mutants_of
from swarmtest.mutation.killing import Killing
from swarmtest.mutation.loaded import live_files, source_of
from swarmtest.mutation.minimal import minimal_mutants
from swarmtest.result import Fault, Result, Verdict
from swarmtest.space import Configuration, Space
from swarmtest.store import CampaignRecord, Store
from swarmtest.subjects.subject import Subject
from swarmtest.suites.cover import needed
from swarmtest.suites.table import Table
from swarmtest.targets import Source

_QUICK = 0.2
"""Seconds: what is quicker is timed more than once."""


@dataclass(frozen=True)
class Look:
    """What came of one run of a test."""

    fault: Fault | None
    hits: frozenset[int]
    invalid: str = ""
    """Why it is no test; empty when it is."""


class Bench:
    """Runs tests of one campaign's subject, each in a process of its own."""

    def __init__(
        self,
        store: Store,
        record: CampaignRecord,
        subject: Subject,
        coverage: Coverage | None,
        table: Table,
        seconds: float,
    ) -> None:
        self._store = store
        self._record = record
        self.subject = subject
        self._coverage = coverage
        self._targets = table.targets
        self._hits = table.hits
        self._seconds = seconds
        self._keys = {target.key: i for i, target in enumerate(table.targets)}
        self._same_features = Space.from_json(record.space).feature_names == (
            subject.space.feature_names
        )

    # Tests of the campaign

    def test(self, trial: int) -> Any:
        """The test of a trial: kept, or made again from its seed."""
        kept = self._store.test(self._record.id, trial)
        if kept is not None:
            return json.loads(kept)
        if not self._same_features:
            raise UserError(
                f"{self.subject.name} has other features now than in campaign {self._record.id}: "
                "its tests cannot be made again; run a new campaign"
            )
        told = self._store.trial(self._record.id, trial)
        configuration = Configuration.from_bytes(self.subject.space, told.configuration)
        subject = self.subject
        made = run_isolated(
            lambda: Result(Verdict.PASSED, test=subject.test_of(configuration, told.seed)),
            self._seconds,
            quiet=True,
        )
        if made.test is None:
            raise UserError("it ends its process, and was not kept whole")
        return made.test

    # What they hit

    def look(self, test: Any, recorded: Collection[int] = ()) -> Look:
        """Run a test; `recorded`: what it hit in the campaign, if it is as it was there."""
        result, keys = hits_of(self.subject, test, self._coverage, self._seconds)
        invalid = result.missing or "it is invalid" if result.verdict == Verdict.INVALID else ""
        hits = {self._keys[key] for key in keys if key in self._keys}
        if self._killing is not None and result.verdict == Verdict.PASSED:
            killed = {mutant.id for mutant in self._killing.killed(test)}
            hits |= {place for place, mutant in self._mutants.items() if mutant.id in killed}
        hits |= self.unmeasured.intersection(recorded)
        return Look(result.fault, frozenset(hits), invalid)

    def seconds(self, test: Any) -> float:
        """What a test takes, without what it takes to watch it; 0 if it ends its process."""

        def timed() -> Result:
            took: list[float] = []
            while len(took) < 3 and sum(took) < _QUICK:  # a new process is slow at first
                begun = time.perf_counter()
                self.subject.replay(test)
                took.append(time.perf_counter() - begun)
            return Result(Verdict.PASSED, wall_seconds=min(took))

        return run_isolated(timed, self._seconds, quiet=True).wall_seconds

    @cached_property
    def unmeasured(self) -> frozenset[int]:
        """The targets that cannot be measured here."""
        mutants = {i for i, target in enumerate(self._targets) if target.kind == "mutant"}
        return frozenset(mutants - self._mutants.keys())

    @cached_property
    def _mutants(self) -> dict[int, Mutant]:
        """The mutants among the targets that can be switched on, by their places."""
        wanted = {
            (target.source, target.name.rpartition(" ")[2]): i
            for i, target in enumerate(self._targets)
            if target.kind == "mutant" and target.file.endswith(".py")
        }
        found: dict[int, Mutant] = {}
        sources = self._sources
        files = live_files([source_of(source.place) for source in sources]) if sources else []
        for source, file in zip(sources, files, strict=True):
            for mutant in mutants_of(file.source):
                place = wanted.get((source.id, mutant.id))
                if place is not None and file.switchable(mutant):
                    found[place] = mutant
        return found

    @cached_property
    def _sources(self) -> list[Source]:
        """The Python files that mutants among the targets lie in."""
        versions = {target.source for target in self._targets if target.kind == "mutant"}
        sources = self._store.sources(self._record.id)
        return [one for one in sources if one.id in versions and one.place.endswith(".py")]

    @cached_property
    def _killing(self) -> Killing | None:
        mutants = [*self._mutants.values()]
        places = sorted({os.path.realpath(one.place) for one in self._sources})
        return Killing(self.subject, mutants, places, self._seconds) if mutants else None

    # Making them smaller

    def reduced(
        self, test: Any, fault: Fault | None, own: Collection[int], share: float, budget: float
    ) -> tuple[Any, Look, bool] | None:
        """A smaller test that keeps its fault and a share of targets; None: it has to stay.

        With what it hits, and whether nothing more of it can go. Of its mutants only those are
        asked for whose killing kills the others, as far as the campaign knows; those that were lost
        all the same are asked for in another go.
        """
        if self.unmeasured.intersection(own):
            return None
        mutants = sorted(self._mutants.keys() & set(own))
        keys = frozenset(self._targets[i].key for i in own if i not in self._mutants)
        some = self._forcing(mutants) if share == 1 else mutants[: needed(share, len(mutants))]
        while True:
            reduced = reduce_test(
                self.subject,
                test,
                Keep(
                    fault=fault.id if fault else None,
                    targets=keys,
                    share=share,
                    mutants=tuple(self._mutants[i] for i in some),
                ),
                coverage=self._coverage,
                seconds=self._seconds,
                budget=budget,
            )
            look = self.look(reduced.test)
            lost = set(mutants) - look.hits
            if share < 1 or not lost or lost.issubset(some):
                return reduced.test, look, reduced.complete
            some = sorted({*some, *lost})

    def _forcing(self, mutants: Sequence[int]) -> list[int]:
        """The mutants that force the others to be killed, by all tests of the campaign."""
        return [mutants[i] for i in minimal_mutants(self._hits[:, list(mutants)].T)]
