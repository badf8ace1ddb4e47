"""A campaign: what is tested, how, for how long, and where the results are stored.

`Campaign` puts the parts together: it resolves the subject and the strategy, chooses the executor,
runs the `Loop`, and returns an `Outcome`.
"""

from __future__ import annotations

import contextlib
import copy
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swarmtest.campaign.budget import Budget, Limits, Progress, usual_workers
from swarmtest.campaign.campaign_subject import avoiding, placed, resolve, version_of
from swarmtest.campaign.executors.executor import (
    LOCAL,
    Engine,
    EngineChoice,
    InlineEngine,
    parse_engine,
)
from swarmtest.campaign.executors.host import Setup
from swarmtest.campaign.executors.host_start import job_maker, travels
from swarmtest.campaign.executors.local import LocalEngine
from swarmtest.campaign.executors.worker import Job, Worker
from swarmtest.campaign.loop import Loop, Show
from swarmtest.campaign.recorder import Recorder
from swarmtest.core.constraints import Constraint
from swarmtest.core.errors import UserError
from swarmtest.coverage.kinds import parse_kinds
from swarmtest.coverage.options import CoverageOptions
from swarmtest.languages.user_objects import refuse_during_import
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord
from swarmtest.strategies.strategy import LearningStrategy, Strategy, as_strategy, strategy_text
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.machine.machine import Machine
from swarmtest.subjects.subject import Subject, usual_strategy

if TYPE_CHECKING:
    from swarmtest.coverage.watch import Coverage

_FORKED_UP_TO = 16
"""A campaign of at most this many tests forks its workers: starting interpreters takes longer."""
_REHEARSED = 64
"""How many proposals are checked for weights that the subject cannot honour."""
_UNUSED_AFTER = 100
"""A feature is reported as unused if at least this many tests allowed it and none contained it."""


@dataclass(frozen=True)
class Outcome:
    """The result of a campaign.

    >>> from swarmtest.campaign import Progress
    >>> Outcome(1, "store.db", Progress(tests=100), [], "all tests done").progress.tests
    100
    """

    campaign: int
    store: str
    progress: Progress
    faults: list[FaultRecord]
    reason: str
    """Why it stopped."""
    interrupted: bool = False
    unused: dict[str, int] = field(default_factory=dict)
    """Features that many tests allowed and none contained, with the number of those tests.

    The usual cause is a guard that is never true."""
    notes: list[str] = field(default_factory=list)
    """Messages for the user: what could not be watched, and what to do about it."""


class Campaign:
    """One subject, one strategy, one budget, one seed, one store.

    >>> from swarmtest import Machine, action
    >>> class Counter(Machine):
    ...     def start(self): self.n = 0
    ...     @action
    ...     def up(self): self.n += 1; assert self.n < 30
    ...     @action
    ...     def down(self): self.n -= 1
    >>> outcome = Campaign(Counter, "coin", Budget(tests=50), store=":memory:", workers=1).run()
    >>> [fault.signature for fault in outcome.faults]
    ['AssertionError [Counter.up]']
    """

    def __init__(
        self,
        subject: str | type[Machine] | SubjectReference | Subject,
        strategy: str | Strategy | None = None,
        budget: Budget | int = 1000,
        seed: int = 0,
        workers: int | None = None,
        store: str | Store | None = None,
        *,
        limits: Limits | None = None,
        keep_tests: bool = False,
        coverage: CoverageOptions | str | None = None,
        avoid: Sequence[Constraint] = (),
        watching: Coverage | None = None,
        on_progress: Show | None = None,
        engine: str | EngineChoice = LOCAL,
    ) -> None:
        """Create a campaign.

        `watching` is a `Coverage` that is already installed in this process and has seen the
        program being imported. `engine` says where tests run, written as for ``--engine``;
        `workers` is for the local engine only.
        """
        self.engine = parse_engine(engine) if isinstance(engine, str) else engine
        if workers is not None and not self.engine.is_local:
            raise UserError(
                f"--workers is for tests on this machine; {self.engine.text} has its own workers"
            )
        if isinstance(coverage, str):
            coverage = CoverageOptions(parse_kinds(coverage))
        self.coverage = placed(coverage, subject) if coverage is not None else None
        if self.coverage is not None:
            self.coverage.check()
        self._watching = watching
        self._installed: Coverage | None = None
        if watching is not None:
            self.coverage = watching.options
        elif self.coverage is not None and workers == 0:
            self._watching = self._installed = _install_coverage(self.coverage)
        self._reference, self.subject = avoiding(resolve(subject), tuple(avoid))
        strategy = strategy or usual_strategy(self.subject)
        self.strategy = as_strategy(strategy)
        self.budget = Budget(tests=budget) if isinstance(budget, int) else budget
        self.seed = seed
        self.workers = usual_workers() if workers is None else workers
        if self.workers < 0:
            raise UserError(f"workers is a number of processes, 0 for none, not {workers}")
        self.limits = limits or Limits()
        self.keep_tests = keep_tests
        self._store = store
        self._on_progress = on_progress or (lambda progress, faults: None)
        self._number = 0

    @classmethod
    def resume(
        cls,
        store: Store,
        campaign: int,
        budget: Budget | None = None,
        workers: int | None = None,
        on_progress: Show | None = None,
        engine: str | EngineChoice = LOCAL,
    ) -> Campaign:
        """Return a stored campaign that continues where it stopped.

        It keeps its budget unless another is passed.
        """
        record = store.campaign(campaign)
        options = record.options
        if not options.get("subject"):
            raise UserError(
                f"campaign {campaign} tested {record.subject}, which cannot be imported by name; "
                "resume it from the program that defined it"
            )
        resumed = cls(
            SubjectReference.from_json(options["subject"]),
            _stored_strategy(record),
            budget or Budget(**options["budget"]),
            record.seed,
            workers,
            store,
            limits=Limits(options["seconds"], options["memory"]),
            keep_tests=options["keep_tests"],
            coverage=_stored_coverage(options),
            on_progress=on_progress,
            engine=engine,
        )
        if resumed.subject.space.to_json() != record.space:
            raise UserError(
                f"campaign {campaign} cannot go on: {record.subject} has other features now; "
                "start a new campaign"
            )
        resumed._number = campaign
        return resumed

    def run(self) -> Outcome:
        """Run until the budget is reached or the user presses Ctrl-C."""
        refuse_during_import()
        self.rehearse()
        store = self._store
        opened = open_store(store) if store is None or isinstance(store, str) else store
        try:
            return self._run(opened)
        finally:
            if opened is not store:
                opened.close()

    def rehearse(self) -> None:
        """Raise a `UserError` if the subject or the strategy cannot work; no test is run."""
        problems = self.subject.check()
        if problems:
            raise UserError(problems[0])
        if hasattr(self.strategy, "prepare"):
            self.strategy.prepare(self.subject.space)
        strategy = self.strategy
        if isinstance(strategy, LearningStrategy):
            strategy = copy.deepcopy(strategy)  # it must not learn from the rehearsal
        worker = Worker(Job(self.subject, strategy, self.seed))
        worker.propose(0)
        if not self.subject.weighted:
            self._refuse_weights(worker)

    def _refuse_weights(self, worker: Worker) -> None:
        proposed = (worker.propose(trial).configuration for trial in range(_REHEARSED))
        if any(configuration.fractional for configuration in proposed):
            raise UserError(
                f"strategy {strategy_text(self.strategy)} gives features weights, and those of "
                f"{self.subject.name} are on or off: use a strategy like coin, covering or default"
            )

    def _run(self, store: Store) -> Outcome:
        resumed = bool(self._number)
        engine = self._engine()
        try:
            if not resumed:
                self._number = store.add_campaign(self.record())
            wanted = getattr(self.strategy, "wants", None)
            recorder = Recorder(store, self._number, self.subject.space, wanted)
            show = self._on_progress
            loop = Loop(self._job(), self.budget, engine, recorder, show)
            if resumed:
                recorder.load()
                loop.skip(store.trial_numbers(self._number))
                loop.relearn(store, self._number)
                store.update_campaign(self._number, status="running", options=self.record().options)
            before = store.campaign(self._number).wall_seconds
            reason, interrupted = loop.until_done(before)
            recorder.keep_times(status="interrupted" if interrupted else "finished")
        except BaseException:
            if self._number:
                with contextlib.suppress(UserError):  # the store may be what went wrong
                    store.update_campaign(self._number, status="interrupted")
            raise
        finally:
            engine.close()
            if self._installed is not None:
                self._installed.uninstall()
        return Outcome(
            self._number,
            store.url,
            recorder.progress,
            store.faults(self._number),
            reason,
            interrupted,
            recorder.unused(_UNUSED_AFTER),
            [*recorder.notes, *engine.notes, *getattr(self.strategy, "notes", ())],
        )

    def _job(self) -> Job:
        return Job(self.subject, self.strategy, self.seed, self.keep_tests, self._watching)

    def record(self) -> CampaignRecord:
        """Return the record with which a store keeps this campaign before it has run."""
        return CampaignRecord(
            subject=self.subject.name,
            strategy=strategy_text(self.strategy),
            seed=self.seed,
            space=self.subject.space.to_json(),
            options={
                "subject": self._reference.to_json() if self._reference else None,
                "budget": self.budget.to_json(),
                "seconds": self.limits.seconds_of(self.subject),
                "memory": self.limits.memory,
                "keep_tests": self.keep_tests,
                "coverage": self.coverage.to_plain() if self.coverage else None,
                "python": sys.version.split()[0],
                "machine": version_of(self.subject),
                "part": self.subject.part,
                "plan": self.strategy.to_plan() if hasattr(self.strategy, "to_plan") else None,
            },
            created=time.time(),
        )

    def _engine(self) -> Engine:
        if not self.engine.is_local:
            return self._cluster_engine()
        if self.workers == 0:
            return InlineEngine(self._job())
        make_job: Callable[[], Job] = self._job
        importable = self._watching is None and travels(self.strategy)
        reference = self._reference if importable and not self._is_tiny() else None
        if reference is not None:
            make_job = self._job_elsewhere(reference)
        memory = self.limits.memory_bytes(self.workers)
        setup = Setup(make_job, self.limits.seconds_of(self.subject), memory)
        if self._watching is not None:
            return LocalEngine(setup, self.workers, False, self._watching)
        coverage = self.coverage.to_plain() if self.coverage else None
        return LocalEngine(setup, self.workers, reference is not None, coverage)

    def _is_tiny(self) -> bool:
        """Return whether starting interpreters would probably take longer than the tests.

        Workers are then forked from this process, which has already loaded the subject. That is
        not possible with coverage (it needs a process that has not imported the subject yet), with
        a memory limit (the process must hold little), or if this process has other threads.
        """
        tests = self.budget.tests
        few = tests is not None and tests <= _FORKED_UP_TO
        plain = self.coverage is None and self.limits.memory == "auto"
        return few and plain and threading.active_count() == 1

    def _job_elsewhere(self, reference: SubjectReference) -> Callable[[], Job]:
        """Return a function that makes the job in a process that must import the subject."""
        name, strategy = self.subject.name, self.strategy
        return job_maker(reference, name, strategy, self.seed, self.keep_tests)

    def _cluster_engine(self) -> Engine:
        if self._reference is None or self._watching is not None or not travels(self.strategy):
            raise UserError(
                f"{self.subject.name} cannot go to {self.engine.text}: workers have to import it, "
                "and its strategy, by name; put both into a module or a file of their own"
            )
        from swarmtest.campaign.executors.dask.scheduler import cluster_engine

        memory = self.limits.memory if isinstance(self.limits.memory, int) else None
        return cluster_engine(
            self.engine,
            self._reference,
            self._job_elsewhere,
            self.limits.seconds_of(self.subject),
            memory,
            self.coverage.to_plain() if self.coverage else None,
        )


def _install_coverage(options: CoverageOptions) -> Coverage:
    """Install coverage for everything that is imported from now on."""
    from swarmtest.coverage.watch import Coverage

    return Coverage(options).install()


def _stored_strategy(record: CampaignRecord) -> str | Strategy:
    plan = record.options.get("plan")
    if not plan:
        return record.strategy
    from swarmtest.strategies.directed.portfolio import strategy_of_plan

    return strategy_of_plan(plan)


def _stored_coverage(options: dict[str, Any]) -> CoverageOptions | None:
    plain = options.get("coverage")
    return CoverageOptions.from_plain(plain) if plain else None
