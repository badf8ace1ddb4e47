"""The Hypothesis strategy behind `features()`, and the campaign that it records.

Hypothesis draws a few bytes, with which the swarm strategy chooses a configuration, and then, for
each feature, whether it is on, with odds that follow that choice. So Hypothesis can shrink the
configuration feature by feature.

The verdict of a test is known when its `BuildContext` ends: it is the exception that is then being
handled. Which test is running, and in which phase, is known only to objects of Hypothesis, which
are found in the frames of the callers.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from types import SimpleNamespace
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from hypothesis.control import cleanup
from hypothesis.core import StateForActualGivenExecution
from hypothesis.errors import StopTest, UnsatisfiedAssumption
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.strategies import SearchStrategy

from swarmtest.campaign.executors.worker import CampaignJob, RowBatch, TrialRunner
from swarmtest.campaign.hypothesis_features import DrawnFeatures
from swarmtest.campaign.recorder import Recorder
from swarmtest.core.configuration import Configuration, weighted
from swarmtest.core.result import Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import seed_of_test
from swarmtest.core.space import Space
from swarmtest.processes.tree import cpu_ns
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.strategies.strategy import Strategy, strategy_text
from swarmtest.subjects.hypothesis.internals import fault_in_own_frames, skip_exceptions_to_reraise

_DEVIATION = 2**-40
"""The odds that a draw does not follow the strategy: practically 0, but the draw can be shrunk."""
_NUMBER_BYTES = 6

_Key: TypeAlias = tuple[str, bool | str | Store, str, str]
_CAMPAIGNS: dict[_Key, GivenCampaign] = {}
"""The campaigns that this process records, by test, store, space and strategy."""
_DRAWN: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""How many configurations each running test has drawn so far."""


class FeaturesStrategy(SearchStrategy[DrawnFeatures]):
    """A Hypothesis strategy that draws configurations of a space."""

    def __init__(self, space: Space, strategy: Strategy, record: bool | str | Store | None) -> None:
        super().__init__()
        self._space = space
        self._record = record
        self._opened: set[_Key] = set()
        if hasattr(strategy, "prepare"):
            strategy.prepare(space)
        subject: Any = SimpleNamespace(space=space)  # a `@given` test has no subject object
        self._kind = (json.dumps(space.to_json(), sort_keys=True), strategy_text(strategy))
        self._worker = TrialRunner(CampaignJob(subject, strategy, seed=0))

    def __repr__(self) -> str:
        return f"features({', '.join(map(repr, self._space.feature_names))})"

    def close(self) -> None:
        """Write what was recorded so far; this also happens at the end of the process."""
        for key in self._opened & _CAMPAIGNS.keys():
            _CAMPAIGNS.pop(key).close()

    def do_draw(self, data: Any) -> DrawnFeatures:
        number = int.from_bytes(data.draw_bytes(_NUMBER_BYTES, _NUMBER_BYTES), "big")
        proposal = self._worker.propose(number)
        features = DrawnFeatures(self._drawn(data, proposal.configuration))
        where = os.environ.get("SWARMTEST_RECORD") if self._record is None else self._record
        if where:
            _DRAWN[data] = _DRAWN.get(data, 0) + 1
            unchanged = features.configuration is proposal.configuration
            generated = unchanged and _phase() == "generate"
            campaign = self._campaign_of(data, where) if generated else None
            if campaign is not None and campaign.is_new(number):
                cpu, wall = cpu_ns(), time.monotonic_ns()
                cleanup(lambda: campaign.note(features, proposal, sys.exc_info()[1], cpu, wall))
        return features

    def _campaign_of(self, data: Any, where: bool | str | Store) -> GivenCampaign:
        """Return the campaign of the test that is drawing now.

        One strategy may serve several tests, and a test may make a new strategy each time it runs.
        """
        name = _name_of_test()
        if _DRAWN[data] > 1:
            name = f"{name} ({_DRAWN[data]})"
        key = (name, where, *self._kind)
        if key not in _CAMPAIGNS:
            _CAMPAIGNS[key] = GivenCampaign(self._worker, name, where)
        self._opened.add(key)
        return _CAMPAIGNS[key]

    def _drawn(self, data: Any, wanted: Configuration) -> Configuration:
        """Return the wanted configuration, or what Hypothesis shrinks or mutates it to."""
        weights = []
        for weight in wanted.weights:
            included = data.draw_boolean(1 - _DEVIATION if weight else _DEVIATION)
            weights.append((weight or 1.0) if included else 0.0)
        if weights == list(wanted.weights):
            return wanted
        changed = weighted(self._space, weights, (), wanted.renormalised)
        broken = self._space.violated(changed.bits)
        if broken:
            data.mark_invalid(broken[0])
        return changed


class GivenCampaign:
    """The campaign of one `@given` test, recorded in a store."""

    def __init__(self, worker: TrialRunner, name: str, where: bool | str | Store) -> None:
        self._worker = worker
        self._tests = 0
        self._seen: set[int] = set()
        self._own = isinstance(where, bool | str)
        if isinstance(where, bool | str):
            self._store = open_store(None if isinstance(where, bool) else where)
        else:
            self._store = where
        space = worker.job.subject.space
        self._number = self._store.add_campaign(
            CampaignRecord(
                subject=name,
                strategy=strategy_text(worker.job.strategy),
                seed=worker.job.seed,
                space=space.to_json(),
                options={"subject": None, "budget": {}, "coverage": None},
                created=time.time(),
            )
        )
        self._recorder = Recorder(self._store, self._number, space)
        self._begun = time.monotonic()
        if self._own:
            atexit.register(self.close)

    def is_new(self, number: int) -> bool:
        """Return whether no earlier test drew this number.

        If Hypothesis repeats or mutates an earlier test, the strategy's odds do not hold: mutations
        prefer tests with many choices, and so those with many features.
        """
        before = len(self._seen)
        self._seen.add(number)
        return len(self._seen) > before

    def note(
        self,
        features: DrawnFeatures,
        proposal: Proposal,
        error: BaseException | None,
        cpu_since: int,
        wall_since: int,
    ) -> None:
        """Record the result of a test, unless it gave up or was skipped."""
        given_up = (StopTest, UnsatisfiedAssumption, *skip_exceptions_to_reraise())
        if isinstance(error, given_up):
            return
        names = self._worker.job.subject.space.feature_names
        used = tuple(features.used.get(name, 0) for name in names) if features.used else ()
        fault = fault_in_own_frames(error) if error is not None else None
        verdict = Verdict.FAILED if fault else Verdict.PASSED
        hits = tuple(f"event:{name}" for name in sorted(features.events))
        result = Result(verdict, fault, used, hits, sum(used))
        batch = RowBatch()
        seed = seed_of_test(self._worker.job.seed, self._tests)
        cpu, wall = cpu_ns() - cpu_since, time.monotonic_ns() - wall_since
        self._worker.note(batch, self._tests, proposal, seed, result, cpu, wall)
        self._recorder.add(self._worker.complete(batch).message())
        self._tests += 1
        if not self._own:
            self._write()  # the store's owner may close it at any time

    def close(self) -> None:
        """If the store was opened here, write the rest and close it."""
        if self._own:
            atexit.unregister(self.close)
            self._write()
            self._store.close()

    def _write(self) -> None:
        self._recorder.flush()
        progress = self._recorder.progress
        self._store.update_campaign(
            self._number,
            status="finished",
            wall_seconds=time.monotonic() - self._begun,
            cpu_seconds=progress.cpu_seconds,
        )


def _name_of_test() -> str:
    test = _among_callers(StateForActualGivenExecution).wrapped_test
    inner = test.hypothesis.inner_test
    return f"{test.__module__}:{inner.__qualname__.rpartition('<locals>.')[2]}"


def _phase() -> str:
    """Return what Hypothesis's engine is doing: reuse, generate, shrink."""
    return str(getattr(_among_callers(ConjectureRunner), "_current_phase", ""))


def _among_callers(kind: type) -> Any:
    """Return the `self` of the nearest caller that is a method of this class, or None."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        candidate = frame.f_locals.get("self") if "self" in frame.f_code.co_varnames else None
        if isinstance(candidate, kind):
            return candidate
        frame = frame.f_back
    return None
