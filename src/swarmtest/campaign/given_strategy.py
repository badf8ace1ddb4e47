"""The Hypothesis strategy behind `features()`, and the campaign that it records.

What came of a test is known when its `BuildContext` ends: the exception on its way then is the
verdict. In which phase Hypothesis's engine is, the engine knows; it is found among the callers.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from typing import Any

from hypothesis.control import cleanup, current_build_context
from hypothesis.errors import StopTest, UnsatisfiedAssumption
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.strategies import SearchStrategy

from swarmtest.campaign.given_tests import DrawnFeatures
from swarmtest.campaign.recorder import Recorder
from swarmtest.campaign.worker import Batch, Job, Worker
from swarmtest.result import Result, Verdict
from swarmtest.seeds import seed_of_test
from swarmtest.space import Configuration, Proposal, Space
from swarmtest.space.configuration import weighted
from swarmtest.store import CampaignRecord, Store, open_store
from swarmtest.strategies import Strategy, strategy_text
from swarmtest.subjects.rule_based.internals import skip_exceptions_to_reraise
from swarmtest.subjects.rule_based.own_frames import fault_in_own_frames

_FOLLOW = 2**-40
"""The odds that a draw does not follow the strategy: none, but it can still be shrunk."""
_BYTES = 6


class _NoSubject:
    """What stands where a `@given` test has no subject object."""

    def __init__(self, space: Space) -> None:
        self.space = space


class FeaturesStrategy(SearchStrategy[DrawnFeatures]):
    """Draws configurations of a space."""

    def __init__(self, space: Space, strategy: Strategy, record: bool | str | Store | None) -> None:
        super().__init__()
        self._space = space
        self._record = record
        self._campaign: GivenCampaign | None = None
        self._seen: set[int] = set()
        if hasattr(strategy, "prepare"):
            strategy.prepare(space)
        subject: Any = _NoSubject(space)
        self._worker = Worker(Job(subject, strategy, seed=0))

    def __repr__(self) -> str:
        return f"features({', '.join(map(repr, self._space.feature_names))})"

    def close(self) -> None:
        """Write what was recorded so far; the end of the process does that, too."""
        if self._campaign is not None:
            self._campaign.close()
            self._campaign = None

    def do_draw(self, data: Any) -> DrawnFeatures:
        number = int.from_bytes(data.draw_bytes(_BYTES, _BYTES), "big")
        proposal = self._worker.propose(number)
        features = DrawnFeatures(self._drawn(data, proposal.configuration))
        where = os.environ.get("SWARMTEST_RECORD") if self._record is None else self._record
        if where and features.configuration is proposal.configuration and self._is_fresh(number):
            self._watch(features, proposal, where)
        return features

    def _is_fresh(self, number: int) -> bool:
        """Whether the strategy's odds hold for this test.

        Not so if Hypothesis replays, shrinks or mutates an earlier one: mutations prefer tests with
        many choices, and so those with many features.
        """
        if number in self._seen or _phase() != "generate":
            return False
        self._seen.add(number)
        return True

    def _drawn(self, data: Any, wanted: Configuration) -> Configuration:
        """The configuration that was asked for, unless Hypothesis is shrinking or mutating it."""
        weights = []
        for weight in wanted.weights:
            included = data.draw_boolean(1 - _FOLLOW if weight else _FOLLOW)
            weights.append((weight or 1.0) if included else 0.0)
        if weights == list(wanted.weights):
            return wanted
        changed = weighted(self._space, weights, (), wanted.renormalised)
        broken = self._space.violated(changed.bits)
        if broken:
            data.mark_invalid(broken[0])
        return changed

    def _watch(
        self, features: DrawnFeatures, proposal: Proposal, where: bool | str | Store
    ) -> None:
        if self._campaign is None:
            test = current_build_context().wrapped_test
            name = f"{test.__module__}:{test.__name__}"
            self._campaign = GivenCampaign(self._worker, name, where)
        campaign = self._campaign
        cpu, wall = time.process_time_ns(), time.monotonic_ns()
        cleanup(lambda: campaign.note(features, proposal, sys.exc_info()[1], cpu, wall))


class GivenCampaign:
    """The tests of one `@given` test, kept in a store."""

    def __init__(self, worker: Worker, name: str, where: bool | str | Store) -> None:
        self._worker = worker
        self._tests = 0
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
        atexit.register(self.close)

    def note(
        self,
        features: DrawnFeatures,
        proposal: Proposal,
        error: BaseException | None,
        cpu_since: int,
        wall_since: int,
    ) -> None:
        """Keep what came of a test, unless it gave up or was skipped."""
        given_up = (StopTest, UnsatisfiedAssumption, *skip_exceptions_to_reraise())
        if isinstance(error, given_up):
            return
        names = self._worker.job.subject.space.feature_names
        used = tuple(features.used.get(name, 0) for name in names) if features.used else ()
        fault = fault_in_own_frames(error) if error is not None else None
        verdict = Verdict.FAILED if fault else Verdict.PASSED
        hits = tuple(f"event:{name}" for name in sorted(features.events))
        result = Result(verdict, fault, used, hits, sum(used))
        batch = Batch()
        seed = seed_of_test(self._worker.job.seed, self._tests)
        cpu, wall = time.process_time_ns() - cpu_since, time.monotonic_ns() - wall_since
        self._worker.note(batch, self._tests, proposal, seed, result, cpu, wall)
        self._recorder.add(self._worker.finished(batch).message())
        self._tests += 1

    def close(self) -> None:
        """Write what is not written yet."""
        atexit.unregister(self.close)
        self._recorder.flush()
        progress = self._recorder.progress
        self._store.update_campaign(
            self._number,
            status="finished",
            wall_seconds=time.monotonic() - self._begun,
            cpu_seconds=progress.cpu_seconds,
        )
        if self._own:
            self._store.close()


def _phase() -> str:
    """What Hypothesis's engine is doing: reuse, generate, shrink."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        runner = frame.f_locals.get("self") if "self" in frame.f_code.co_varnames else None
        if isinstance(runner, ConjectureRunner):
            return str(getattr(runner, "_current_phase", ""))
        frame = frame.f_back
    return ""
