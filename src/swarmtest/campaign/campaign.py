"""A campaign: what is tested, how, for how long, and where the results are stored.

`Campaign` puts the parts together: it resolves the subject and the strategy, chooses the executor,
runs the `CampaignLoop`, and returns an `Outcome`.
"""

from __future__ import annotations

import contextlib
import copy
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from swarmtest.campaign.budget import Budget, Limits, Progress, check_workers, usual_workers
from swarmtest.campaign.campaign_subject import (
    resolve,
    scoped_to_subject,
    version_of,
    with_constraints,
)
from swarmtest.campaign.executors.executor import (
    LOCAL,
    Executor,
    ExecutorChoice,
    InlineExecutor,
    choose_executor,
    warn_of_engine,
)
from swarmtest.campaign.executors.host import HostSetup
from swarmtest.campaign.executors.host_start import can_be_sent, job_maker
from swarmtest.campaign.executors.local import LocalExecutor
from swarmtest.campaign.executors.worker import CampaignJob, TrialRunner
from swarmtest.campaign.fault_list import FaultList
from swarmtest.campaign.liveness import PROCESS, this_process
from swarmtest.campaign.loop import CampaignLoop, Show
from swarmtest.campaign.recorder import Recorder
from swarmtest.campaign.subject_version import subject_version
from swarmtest.core.constraints import Constraint
from swarmtest.core.display import Displayed, ShownTable, in_notebook
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.coverage.kinds import parse_kinds
from swarmtest.coverage.options import CoverageOptions
from swarmtest.languages.user_objects import refuse_during_import
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord
from swarmtest.strategies.strategy import LearningStrategy, Strategy, as_strategy, strategy_text
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.machine.machine import Machine
from swarmtest.subjects.stored_reference import stored_reference
from swarmtest.subjects.subject import Subject, usual_strategy

if TYPE_CHECKING:
    from swarmtest.coverage.watch import Coverage

_FORKED_UP_TO = 300
"""A campaign of at most this many tests forks its workers: starting interpreters takes longer."""
_REHEARSED = 64
"""How many proposals are checked for weights that the subject cannot honour."""
_UNUSED_AFTER = 100
"""A feature is reported as unused if at least this many tests allowed it and none contained it."""


@dataclass(frozen=True)
class Outcome(Displayed):
    """The result of a campaign.

    It prints as a table of its faults, and a notebook shows that. `to_pandas` has a row per test,
    `faults.to_pandas` a row per fault, and `plot` draws what was found over time.

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
    opened: Store | None = field(default=None, repr=False, compare=False)
    """The store, if the caller opened it; it is then used as long as it is open."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[Store]:
        """Open the store to read it; a store that was passed to the campaign is used as it is."""
        if self.opened is not None:
            yield self.opened
            return
        if self.store == ":memory:":
            raise UserError(
                "the store of this campaign was in memory and is gone: pass a file or an open "
                "store to the campaign"
            )
        with open_store(self.store, must_exist=True, read_only=True) as store:
            yield store

    def shown_title(self) -> str:
        """Return how the campaign ended."""
        done = self.progress
        faults = plural(len(self.faults), "distinct fault")
        words = f"campaign {self.campaign}: {self.reason}: {plural(done.tests, 'test')}, {faults}"
        again = " (run it again to continue)" if self.interrupted else ""
        return ". ".join([words + again, *self.notes])

    def shown_tables(self) -> list[ShownTable]:
        """Return the table of faults."""
        return FaultList(self.faults).shown_tables() if self.faults else []

    def data_columns(self) -> Mapping[str, Any]:
        """Return a row per test: what it was, how it ended, and the weights of features."""
        from swarmtest.analysis.trial_columns import read_evidence, test_columns

        with self.reading() as store:
            return test_columns(read_evidence(store, [self.campaign]))


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
    ['AssertionError [Counter.up: assert self.n < 30]']
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
        executor: str | type[Executor] | ExecutorChoice = LOCAL,
        engine: str | ExecutorChoice | None = None,
    ) -> None:
        """Describe a campaign; nothing is imported, started or written before `run`.

        `watching` is a `Coverage` that is already installed in this process and has seen the
        program being imported. `executor` says where tests run, written as for ``--executor``, or
        is a class derived from `Executor`; `workers` is for the local executor only. `engine` is
        the old name of `executor`.

        A subject or a strategy that is given by name is loaded when it is first needed: by `run`,
        `rehearse` and `record`, or when `subject` or `strategy` is read.
        """
        self.executor = choose_executor(executor, engine)
        if workers is not None and not self.executor.is_local:
            raise UserError(
                f"--workers is for tests on this machine; {self.executor.text} has its own workers"
            )
        if isinstance(coverage, str):
            coverage = CoverageOptions(parse_kinds(coverage))
        self.coverage = scoped_to_subject(coverage, subject) if coverage is not None else None
        if self.coverage is not None:
            self.coverage.check()
        self._watching = watching
        self._installed: Coverage | None = None
        if watching is not None:
            self.coverage = watching.options
        self._given_subject, self._avoid = subject, tuple(avoid)
        self._loaded: tuple[SubjectReference | None, Subject] | None = None
        if not isinstance(subject, str | SubjectReference):
            self._loaded = with_constraints(resolve(subject), self._avoid)
        self._strategy = strategy
        if strategy is not None and not isinstance(strategy, str):
            as_strategy(strategy)  # raises an error if it is none
        self.budget = Budget(tests=budget) if isinstance(budget, int) else budget
        self.seed = seed
        self.workers = check_workers(usual_workers() if workers is None else workers)
        self.limits = limits or Limits()
        self.keep_tests = keep_tests
        self._store = store
        self._on_progress = on_progress
        self._number = 0
        self._version: str | None = None

    @property
    def subject(self) -> Subject:
        """What is tested; it is imported when this is first read."""
        return self._load()[1]

    @property
    def strategy(self) -> Strategy:
        """What chooses configurations."""
        if self._strategy is None or isinstance(self._strategy, str):
            self._strategy = as_strategy(self._strategy or usual_strategy(self.subject))
        return self._strategy

    @property
    def version(self) -> str:
        """The version of the subject: the commit of its repository, and installed packages."""
        if self._version is None:
            covered = self.coverage.cover if self.coverage is not None else ()
            self._version = subject_version(self.subject, covered)
        return self._version

    @property
    def engine(self) -> ExecutorChoice:
        """The old name of `executor`."""
        warn_of_engine("Campaign.engine")
        return self.executor

    def _load(self) -> tuple[SubjectReference | None, Subject]:
        """Import the subject, and before that, install coverage if tests run in this process."""
        if self._loaded is None:
            try:
                self._install_coverage()
                self._loaded = with_constraints(resolve(self._given_subject), self._avoid)
            except BaseException:
                self._uninstall_coverage()
                raise
        return self._loaded

    def _install_coverage(self) -> None:
        here = self.workers == 0 or self.executor.is_own
        if self.coverage is None or self._watching is not None or not here:
            return
        from swarmtest.coverage.watch import Coverage

        self._watching = self._installed = Coverage(self.coverage).install()

    def _uninstall_coverage(self) -> None:
        if self._installed is not None:
            self._installed.uninstall()

    @classmethod
    def resume(
        cls,
        store: Store,
        campaign: int,
        budget: Budget | None = None,
        workers: int | None = None,
        on_progress: Show | None = None,
        executor: str | type[Executor] | ExecutorChoice = LOCAL,
        engine: str | ExecutorChoice | None = None,
    ) -> Campaign:
        """Return a stored campaign that continues where it stopped; its subject is imported.

        It keeps its budget unless another is passed. `engine` is the old name of `executor`.
        """
        record = store.campaign(campaign)
        options = record.options
        if not options.get("subject"):
            raise UserError(
                f"campaign {campaign} tested {record.subject}, which cannot be imported by name; "
                "resume it from the program that defined it"
            )
        resumed = cls(
            stored_reference(options["subject"]),
            _stored_strategy(record),
            budget or Budget(**options["budget"]),
            record.seed,
            workers,
            store,
            limits=Limits(options["seconds"], options["memory"]),
            keep_tests=options["keep_tests"],
            coverage=_stored_coverage(options),
            on_progress=on_progress,
            executor=choose_executor(executor, engine),
        )
        if resumed.subject.space.to_json() != record.space:
            resumed._uninstall_coverage()
            raise UserError(
                f"campaign {campaign} cannot be resumed: {record.subject} has other features now; "
                "start a new campaign"
            )
        resumed._number = campaign
        return resumed

    def run(self) -> Outcome:
        """Run until the budget is reached or the user presses Ctrl-C."""
        refuse_during_import()
        try:
            # Also for a subject that was given as an object: it may import more later.
            self._install_coverage()
            self.rehearse()
            store = self._store
            opened = open_store(store) if store is None or isinstance(store, str) else store
            try:
                return self._run(opened)
            finally:
                if opened is not store:
                    opened.close()
        finally:
            self._uninstall_coverage()

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
        worker = TrialRunner(CampaignJob(self.subject, strategy, self.seed))
        worker.propose(0)
        if not self.subject.weighted:
            self._refuse_weights(worker)

    def _refuse_weights(self, worker: TrialRunner) -> None:
        proposed = (worker.propose(trial).configuration for trial in range(_REHEARSED))
        if any(configuration.fractional for configuration in proposed):
            raise UserError(
                f"strategy {strategy_text(self.strategy)} gives features weights, but those of "
                f"{self.subject.name} can only be on or off: use a strategy like coin or covering"
            )

    def _run(self, store: Store) -> Outcome:
        resumed = bool(self._number)
        executor = self._make_executor()
        try:
            if not resumed:
                self._number = store.add_campaign(self._running_record())
            wanted = getattr(self.strategy, "wants", None)
            recorder = Recorder(store, self._number, self.subject.space, wanted)
            show = self._on_progress or self._usual_view()
            loop = CampaignLoop(self._job(), self.budget, executor, recorder, show)
            if resumed:
                recorder.load()
                loop.skip(store.trial_numbers(self._number))
                loop.relearn(store, self._number)
                options = self._running_record().options | _kept_options(store, self._number)
                store.update_campaign(self._number, status="running", options=options)
            before = store.campaign(self._number).wall_seconds
            reason, interrupted = loop.until_done(before)
            status = "interrupted" if interrupted else "finished"
            recorder.flush()
            options = self.record().options | _kept_options(store, self._number)
            recorder.keep_times(status=status, options=options)
        except BaseException as error:
            if self._number:
                with contextlib.suppress(UserError):  # the store may be what went wrong
                    options = self.record().options | _kept_options(store, self._number)
                    store.update_campaign(self._number, status="interrupted", options=options)
            self.executor.refuse_mistake(error)
            raise
        finally:
            executor.close()
        return Outcome(
            self._number,
            store.url,
            recorder.progress,
            FaultList(store.faults(self._number)),
            reason,
            interrupted,
            self._unused(recorder),
            [*recorder.notes, *executor.notes, *getattr(self.strategy, "notes", ())],
            store if store is self._store else None,
        )

    def _usual_view(self) -> Show:
        """Return what shows the progress if the caller has no view: a bar in a notebook."""
        if not in_notebook():
            return lambda progress, faults: None
        from swarmtest.campaign.notebook_progress import NotebookProgress

        return NotebookProgress(self.budget)

    def _unused(self, recorder: Recorder) -> dict[str, int]:
        unused = recorder.unused(_UNUSED_AFTER)
        return {name: n for name, n in unused.items() if name not in self.subject.modes}

    def _job(self) -> CampaignJob:
        return CampaignJob(self.subject, self.strategy, self.seed, self.keep_tests, self._watching)

    def _running_record(self) -> CampaignRecord:
        """Return the record of this campaign while this process runs it."""
        record = self.record()
        return replace(record, options=record.options | {PROCESS: this_process()})

    def record(self) -> CampaignRecord:
        """Return the record with which a store keeps this campaign before it has run."""
        reference, _ = self._load()
        return CampaignRecord(
            subject=self.subject.name,
            strategy=strategy_text(self.strategy),
            seed=self.seed,
            space=self.subject.space.to_json(),
            options={
                "subject": reference.to_json() if reference else None,
                "budget": self.budget.to_json(),
                "seconds": self.limits.seconds_of(self.subject),
                "memory": self.limits.memory,
                "keep_tests": self.keep_tests,
                "coverage": self.coverage.to_plain() if self.coverage else None,
                "python": sys.version.split()[0],
                "machine": version_of(self.subject),
                "version": self.version,
                "part": self.subject.part,
                "plan": self.strategy.to_plan() if hasattr(self.strategy, "to_plan") else None,
            },
            created=time.time(),
        )

    def _make_executor(self) -> Executor:
        if self.executor.is_own:
            return self.executor.make_own(self._job())
        if not self.executor.is_local:
            return self._cluster_executor()
        if self.workers == 0:
            return InlineExecutor(self._job())
        make_job: Callable[[], CampaignJob] = self._job
        importable = self._watching is None and can_be_sent(self.strategy)
        reference = self._load()[0] if importable and not self._is_tiny() else None
        if reference is not None:
            make_job = self._job_elsewhere(reference)
        memory = self.limits.memory_bytes(self.workers)
        seconds, adapts = self.limits.seconds_of(self.subject), self.limits.adapt(self.subject)
        setup = HostSetup(make_job, seconds, memory, adapts=adapts)
        if self._watching is not None:
            return LocalExecutor(setup, self.workers, False, self._watching)
        coverage = self.coverage.to_plain() if self.coverage else None
        return LocalExecutor(setup, self.workers, reference is not None, coverage)

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

    def _job_elsewhere(self, reference: SubjectReference) -> Callable[[], CampaignJob]:
        """Return a function that makes the job in a process that must import the subject."""
        name, strategy = self.subject.name, self.strategy
        return job_maker(reference, name, strategy, self.seed, self.keep_tests)

    def _cluster_executor(self) -> Executor:
        reference, _ = self._load()
        if reference is None or self._watching is not None or not can_be_sent(self.strategy):
            raise UserError(
                f"{self.subject.name} cannot be tested at {self.executor.text}: workers have to "
                "import it and its strategy by name; put both into a module or a file of their own"
            )
        from swarmtest.campaign.executors.dask.scheduler import cluster_executor

        memory = self.limits.memory if isinstance(self.limits.memory, int) else None
        return cluster_executor(
            self.executor,
            reference,
            self._job_elsewhere,
            self.limits.seconds_of(self.subject),
            memory,
            self.coverage.to_plain() if self.coverage else None,
        )


def _stored_strategy(record: CampaignRecord) -> str | Strategy:
    plan = record.options.get("plan")
    if not plan:
        return record.strategy
    from swarmtest.strategies.directed.directed import strategy_of_plan

    return strategy_of_plan(plan)


def _kept_options(store: Store, campaign: int) -> dict[str, Any]:
    """Return the options that others add to a campaign, and that have to stay.

    The recorder adds the trials whose processes were killed, a watch that it may go on with it.
    """
    options = store.campaign(campaign).options
    return {name: options[name] for name in ("killed", "watch") if options.get(name) is not None}


def _stored_coverage(options: dict[str, Any]) -> CoverageOptions | None:
    plain = options.get("coverage")
    return CoverageOptions.from_plain(plain) if plain else None
