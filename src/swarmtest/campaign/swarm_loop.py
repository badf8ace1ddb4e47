"""`swarm()`: configurations, storage and statistics for a hand-written random testing loop.

    for trial in swarm(["push", "pop", "add"], seed=1):
        ...
        if "pop" in trial: ...
        trial.record(failed=...)

Everything happens in the process of the loop: if the program under test crashes, the loop ends, and
what was recorded before is kept.
"""

from __future__ import annotations

import atexit
import random
import time
from collections.abc import Iterable, Iterator
from types import SimpleNamespace, TracebackType
from typing import Any, Self

from swarmtest.campaign.budget import Budget, Progress
from swarmtest.campaign.executors.worker import CampaignJob, RowBatch, TrialRunner, tell
from swarmtest.campaign.recorder import Recorder
from swarmtest.core.configuration import Configuration
from swarmtest.core.dimensions import Dimension
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import fault_of_exception
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import seed_of_test
from swarmtest.core.space import Space
from swarmtest.core.targets import Covered, Hits
from swarmtest.coverage.watch import Coverage
from swarmtest.languages.user_objects import refuse_during_import
from swarmtest.processes.tree import cpu_ns
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord
from swarmtest.strategies.strategy import LearningStrategy, Strategy, parse_strategy, strategy_text

_FLUSH_SECONDS = 0.5


class Trial:
    """One iteration of the loop: which features its test may use, and the test's result.

    As a context manager, it records an exception as a fault, and the loop goes on:

    >>> for trial in swarm(["push", "pop"], tests=3, store=":memory:"):
    ...     with trial:
    ...         stack = []
    ...         for _ in range(10):
    ...             match trial.choose():
    ...                 case "push": stack.append(trial.rng.random())
    ...                 case "pop" if stack: del stack[-1]
    """

    def __init__(self, number: int, seed: int, proposal: Proposal) -> None:
        self.number = number
        self.seed = seed
        self.configuration: Configuration = proposal.configuration
        self.rng = random.Random(seed)
        """The test's own random generator: a test that uses only this one can be repeated."""
        self.result: Result | None = None
        self.proposal = proposal
        self._names = self.configuration.included
        self._used: dict[str, int] = {}
        self._events: set[str] = set()
        self._covered: list[Hits] = []
        self._missing = ""
        self._skipped = 0

    def __contains__(self, name: str) -> bool:
        return name in self.configuration

    def __getitem__(self, name: str) -> Any:
        """Return a feature's weight or a setting's value."""
        return self.configuration[name]

    def choose(self) -> str | None:
        """Return one of the included features at random.

        Return None if a coin toss with the feature's weight says to skip this step.
        """
        name: str
        if self.configuration.renormalised:
            weights = [self.configuration[name] for name in self._names]
            (name,) = self.rng.choices(self._names, weights)
        else:
            name = self.rng.choice(self._names)
            weight = self.configuration[name]
            if weight < 1 and self.rng.random() >= weight:
                self._skipped += 1
                return None
        self.use(name)
        return name

    def use(self, name: str, times: int = 1) -> None:
        """Count a feature as used that was not picked by `choose`."""
        names = self.configuration.space.feature_names
        if name not in names:
            raise UserError(f"there is no feature {name!r}{did_you_mean(name, names)}")
        if times < 0:
            raise UserError(f"times={times}: a feature is used 0 times or more")
        self._used[name] = self._used.get(name, 0) + times

    def event(self, name: str) -> None:
        """Record that something happened in this test: a target."""
        self._events.add(name)

    def cover(self, run: Covered) -> None:
        """Record what a native program reached in this test (`swarmtest.coverage.Program.run`)."""
        hits = run.hits  # read once: a library forgets what was read
        if hits is not None:
            self._covered.append(hits)
        self._missing = run.missing or self._missing

    def record(self, failed: bool | str | BaseException = False, steps: int | None = None) -> None:
        """Record the result of this test; an exception or a text names the fault."""
        if self.result is not None:
            raise UserError(f"trial {self.number} was already recorded")
        fault = None
        if isinstance(failed, BaseException):
            fault = fault_of_exception(failed)
        elif failed:
            fault = Fault("reported", failed if isinstance(failed, str) else "failed")
        used = tuple(self._used.get(n, 0) for n in self.configuration.space.feature_names)
        self.result = Result(
            Verdict.FAILED if fault else Verdict.PASSED,
            fault,
            used,
            tuple(f"event:{name}" for name in sorted(self._events)),
            sum(used) if steps is None else steps,
            self._skipped,
            covered=tuple(self._covered),
            missing=self._missing,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> bool:
        if isinstance(error, UserError) or not isinstance(error, Exception | None):
            return False
        if self.result is None:
            self.record(failed=error or False)
        return error is not None


class swarm:
    """An iterable of trials; after the loop, `progress` and `faults` say what was found.

    >>> trials = swarm(["push", "pop"], seed=1, tests=20, store=":memory:")
    >>> for trial in trials:
    ...     trial.record(failed="pop" not in trial and "overflow")
    >>> trials.progress.tests, [fault.signature for fault in trials.faults]
    (20, ['overflow'])
    """

    def __init__(
        self,
        features: Iterable[Dimension | str] | Space,
        seed: int = 0,
        strategy: str | Strategy = "layered",
        tests: int | None = 1000,
        seconds: float | None = None,
        store: str | Store | None = None,
        name: str = "loop",
        coverage: Coverage | None = None,
    ) -> None:
        self.space = features if isinstance(features, Space) else Space(features)
        self.strategy = parse_strategy(strategy) if isinstance(strategy, str) else strategy
        self.seed = seed
        self._budget = Budget(tests=tests, wall_seconds=seconds)
        self._name = name
        self._store = store
        self._coverage = coverage
        self.campaign = 0
        """The campaign's number in the store, once the loop runs."""
        self.progress = Progress()
        self.faults: list[FaultRecord] = []

    def __iter__(self) -> Iterator[Trial]:
        refuse_during_import()
        if hasattr(self.strategy, "prepare"):
            self.strategy.prepare(self.space)
        passed = self._store
        store = open_store(passed) if passed is None or isinstance(passed, str) else passed
        self.campaign = store.add_campaign(self._record())
        recorder = Recorder(store, self.campaign, self.space)
        self.progress = recorder.progress

        def finish() -> None:
            atexit.unregister(finish)
            recorder.flush()
            self.faults = store.faults(self.campaign)
            status = "finished" if self.progress.reached(self._budget) else "interrupted"
            store.update_campaign(
                self.campaign,
                status=status,
                wall_seconds=self.progress.wall_seconds,
                cpu_seconds=self.progress.cpu_seconds,
            )
            recorder.open = False
            if store is not passed:
                store.close()

        # An exception that leaves the loop keeps this generator alive in its traceback, so the
        # `finally` below may never run; what was recorded must still reach the store.
        atexit.register(finish)
        try:
            yield from self._trials(recorder)
        finally:
            if recorder.open:
                finish()

    def _trials(self, recorder: Recorder) -> Iterator[Trial]:
        subject: Any = SimpleNamespace(space=self.space)  # the user's loop has no subject object
        worker = TrialRunner(
            CampaignJob(subject, self.strategy, self.seed, coverage=self._coverage)
        )
        if self._coverage is not None:
            recorder.add(worker.introduction().message())
        begun = flushed = time.monotonic()
        number = 0
        while not self.progress.reached(self._budget):
            cpu, wall = cpu_ns(), time.monotonic_ns()
            proposal = worker.propose(number)
            trial = Trial(number, seed_of_test(self.seed, number), proposal)
            if self._coverage is not None:
                self._coverage.reset()
            try:
                yield trial
            except GeneratorExit:
                # The loop was left by `break` or an exception; a recorded trial still counts.
                if trial.result is not None:
                    self._note(worker, recorder, trial, cpu, wall)
                raise
            if trial.result is None:
                raise UserError(
                    f"trial {number} was not recorded: call trial.record(failed=...) in the loop, "
                    "or put its body under `with trial:`"
                )
            self._note(worker, recorder, trial, cpu, wall)
            now = time.monotonic()
            self.progress.wall_seconds = now - begun
            if now - flushed > _FLUSH_SECONDS:
                recorder.flush()
                flushed = now
            number += 1

    def _note(
        self, worker: TrialRunner, recorder: Recorder, trial: Trial, cpu_since: int, wall_since: int
    ) -> None:
        assert trial.result is not None
        result = trial.result
        if self._coverage is not None:
            result = result._replace(covered=(self._coverage.take(), *result.covered))
        batch = RowBatch()
        cpu = cpu_ns() - cpu_since
        wall = time.monotonic_ns() - wall_since
        worker.note(batch, trial.number, trial.proposal, trial.seed, result, cpu, wall)
        recorder.add(worker.complete(batch).message())
        if isinstance(self.strategy, LearningStrategy):
            tell(self.strategy, recorder.latest_results())

    def _record(self) -> CampaignRecord:
        return CampaignRecord(
            subject=self._name,
            strategy=strategy_text(self.strategy),
            seed=self.seed,
            space=self.space.to_json(),
            options={
                "subject": None,
                "budget": self._budget.to_json(),
                "coverage": self._coverage.options.to_plain() if self._coverage else None,
            },
            created=time.time(),
        )
