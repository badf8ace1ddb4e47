"""Run a focused campaign, from the targets a user names to the outcome.

The steps: find the targets in the code (`request`); read what earlier campaigns say about them
(`history`), or run an undirected baseline first if they say nothing; plan aims (`planning`); run a
directed campaign with some undirected control tests; count the hits (`measurement`); and for a
diff, run the failing tests on the base version, too (`base_version`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field, replace

from swarmtest.campaign.budget import Budget, Limits
from swarmtest.campaign.campaign import Campaign, Outcome
from swarmtest.campaign.campaign_subject import resolve, scoped_to_subject
from swarmtest.campaign.executors.executor import LOCAL, Executor, ExecutorChoice, choose_executor
from swarmtest.campaign.loop import Show
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.scope import shown_path
from swarmtest.coverage.watch import Coverage
from swarmtest.focus.base_version import BaseCheck, BaseVerdict, baseline_of, rest_of
from swarmtest.focus.history import History, changed_features, history_of
from swarmtest.focus.known_faults import WatchedCode, is_imported
from swarmtest.focus.measurement import (
    DIRECTED,
    count_hits,
    focused_faults,
    focused_targets,
    split_unwatched,
)
from swarmtest.focus.outcome import FocusOutcome
from swarmtest.focus.planning import HOT, AimPlanner, FocusPlan, TestShape
from swarmtest.focus.request import FocusRequest
from swarmtest.languages.git import base_of
from swarmtest.languages.places import NothingToAimAt, ResolvedTargets
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord
from swarmtest.strategies.directed.directed import (
    STRATEGIES,
    Controlled,
    Directed,
    directed_strategy,
)
from swarmtest.strategies.strategy import Strategy, parse_strategy
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.machine.machine import Machine
from swarmtest.subjects.machine.subject import MachineSubject
from swarmtest.subjects.subject import Subject

SWARM = "coin"
"""The undirected strategy of the baseline and of the control tests."""


@dataclass
class Focus:
    """One subject, tested with tests aimed at the targets of a request.

    >>> from swarmtest import Machine, action, open_store
    >>> class Pile(Machine):
    ...     steps = 20
    ...     def start(self): self.height = 0
    ...     @action
    ...     def put(self):
    ...         self.height += 1
    ...         if self.height == 9: self.event("high")
    ...     @action
    ...     def take(self): self.height = max(0, self.height - 1)
    ...     @action
    ...     def look(self): pass
    >>> with open_store(":memory:") as store:
    ...     request = FocusRequest(target=("event:high",))
    ...     outcome = Focus(Pile, request, store, Budget(tests=500), workers=0).run()
    >>> outcome.targets[0].triggers, outcome.targets[0].suppressors
    (('put',), ('take',))
    """

    subject: str | type[Machine] | SubjectReference | Subject
    request: FocusRequest
    store: Store
    budget: Budget = field(default_factory=lambda: Budget(tests=10_000, wall_seconds=60.0))
    strategy: str = STRATEGIES[0]
    merge: str = ""
    seed: int = 0
    workers: int | None = None
    executor: str | type[Executor] | ExecutorChoice = LOCAL
    """Where tests run, as for `Campaign`."""
    limits: Limits = field(default_factory=Limits)
    coverage: CoverageOptions | None = None
    """What to watch; unless given, what the data's campaigns watched, or lines of the program."""
    baseline: Budget | None = None
    """The budget of a baseline campaign; unless given, 2,000 tests or a quarter of the time."""
    fresh: bool = False
    """Whether to run a baseline even if there is data."""
    control: float = 0.1
    """The share of control tests."""
    hot: float = HOT
    """Targets that more than this share of the tests hit need no help."""
    confidence: float = 0.95
    check_base: bool = True
    """Whether to run failing tests on the base version, too; only for a diff."""
    watching: Coverage | None = None
    """What watches this process already, if the subject is given as an object: workers are forks,
    as in `Campaign`."""
    reference: SubjectReference | None = None
    """How another process finds the subject, if it is given as an object."""
    say: Callable[[str], None] = lambda line: None
    """Called with one line of text for each step of the work."""
    shown_by: Callable[[Budget], Show] | None = None
    """Returns what shows the progress of a campaign with that budget."""
    outcome: Outcome | None = field(default=None, init=False)
    """The outcome of the directed campaign, once it has run."""
    _baseline_outcome: Outcome | None = field(default=None, init=False)
    _begun: float = field(default=0.0, init=False)
    engine: InitVar[str | ExecutorChoice | None] = None
    """The old name of `executor`."""

    def __post_init__(self, engine: str | ExecutorChoice | None) -> None:
        self.executor = choose_executor(self.executor, engine)

    def run(self) -> FocusOutcome:
        """Find the targets, plan aims, run the directed campaign, and count hits."""
        self._begun = time.monotonic()
        if self.strategy not in STRATEGIES:
            directed_strategy(self.strategy, ())  # raises the error for an unknown name
        targets = self.request.resolve()
        named, subject = resolve(self.subject)
        history = self._history(subject, targets)
        planner = AimPlanner(history, self._watched_code(subject, history), self.hot)
        rare = tuple(planner.rare()) if self.request.rare else ()
        plan = planner.plan((ResolvedTargets(rare) + targets).wanted, targets.names)
        self._refuse_nothing(plan, targets)
        campaign = self._campaign(subject, plan, history)
        self._announce(campaign, plan, history)
        self.outcome = outcome = campaign.run()
        verdicts = self._base_verdicts(self.reference or named, subject, targets)
        stopped = outcome.interrupted or verdicts is None
        # A run cannot observe which mutants it kills.
        visible = [t for t in plan.targets if not t.name.startswith("mutant:")]
        seen, unseen = split_unwatched(self.store, outcome.campaign, visible)
        counted = count_hits(self.store, outcome.campaign, [target.name for target in seen])
        pooled = not self.request.rare
        return FocusOutcome(
            subject=subject.name,
            campaign=outcome.campaign,
            strategy=self._strategy_words(plan),
            base=self.request.diff,
            targets=focused_targets(seen, counted, history, SWARM, pooled),
            faults=focused_faults(
                self.store, outcome.campaign, self._faults(), counted, verdicts or {}
            ),
            unusable=(*targets.unusable, *unseen),
            notes=(
                *outcome.notes,
                *_about_merging(campaign.strategy),
                *_about_mutants(plan, outcome.campaign),
            ),
            tests=outcome.progress.tests,
            directed_tests=counted.tests[DIRECTED] if plan.aims else 0,
            invalid=outcome.progress.invalid,
            distinct_configurations=len(counted.configurations),
            merged_aims=_merged_aims(campaign.strategy),
            cpu_seconds=outcome.progress.cpu_seconds,
            wall_seconds=outcome.progress.wall_seconds,
            data_campaigns=history.campaigns,
            interrupted=stopped,
        )

    @property
    def campaigns(self) -> list[int]:
        """Return the campaigns that were run: the directed one, then its baseline, if any."""
        runs = [
            outcome for outcome in (self.outcome, self._baseline_outcome) if outcome is not None
        ]
        return [outcome.campaign for outcome in runs]

    # The data that roles come from.

    def _history(self, subject: Subject, targets: ResolvedTargets) -> History:
        """Return the earlier tests; run a baseline first if they cannot be used."""
        history = None if self.fresh else self._earlier(subject)
        why = self._why_no_data(subject, history, targets)
        if not why:
            assert history is not None
            tests = history.study.evidence.n
            self.say(f"data: {tests:,} tests of {_campaigns(history.campaigns)}")
            return history
        budget = self.baseline or baseline_of(self.budget)
        self.say(f"{why}: a baseline first, {budget.describe()}")
        self._baseline_outcome = outcome = self._new_campaign(SWARM, budget, subject, history).run()
        done = f"baseline: campaign {outcome.campaign}, {outcome.progress.tests:,} tests"
        if outcome.interrupted:
            self.say(f"{done}, interrupted: they are kept, and the next focus uses them")
            raise KeyboardInterrupt
        faults = len(outcome.faults)
        self.say(f"{done}, {faults} distinct fault{'s' * (faults != 1)}")
        history = self._earlier(subject, only=outcome.campaign if self.fresh else None)
        assert history is not None
        history.study.require_variation()
        return history

    def _earlier(self, subject: Subject, only: int | None = None) -> History | None:
        return history_of(self.store, subject.name, subject.space, self.confidence, only)

    def _why_no_data(
        self, subject: Subject, history: History | None, targets: ResolvedTargets
    ) -> str:
        """Say why earlier campaigns cannot be used; empty if they can."""
        if self.fresh:
            return "fresh data was requested"
        if history is None:
            return changed_features(self.store, subject.name, subject.space) or "no data yet"
        if not history.study.chances.vary:
            return "earlier campaigns left no feature to chance, so they show no triggers"
        if (targets.wanted or self.request.rare) and not history.has_lines:
            return "earlier campaigns watched no lines"
        unwatched = self._all_unwatched(subject, history, targets)
        return f"earlier campaigns did not watch {unwatched}" if unwatched else ""

    def _all_unwatched(self, subject: Subject, history: History, targets: ResolvedTargets) -> str:
        """Return a file that will be watched from now on, if no file was watched before.

        Empty if earlier tests watched one of the files, or if tests cannot be seen to reach one.
        """
        places = sorted({line.place for line in targets.wanted})
        code = self._watched_code(subject, history)
        if any(history.versions(p) or code.why_unseen(p) or not is_imported(p) for p in places):
            return ""
        return shown_path(places[0]) if places else ""

    def _free_seed(self, subject: Subject) -> int:
        """Return a seed that no earlier campaign of the subject used; it would repeat its tests."""
        taken = {record.seed for record in self.store.campaigns() if record.subject == subject.name}
        return next(
            seed for seed in range(self.seed, self.seed + len(taken) + 1) if seed not in taken
        )

    def _coverage(self, history: History | None) -> CoverageOptions | None:
        if self.coverage is not None or self.watching is not None:
            return self.coverage
        text = getattr(self.subject, "text", self.subject)
        if isinstance(text, str) and text.endswith(".toml"):
            return None  # the subject's own build steps watch native code
        for campaign in reversed(history.campaigns if history else ()):
            options = self.store.campaign(campaign).options.get("coverage")
            if options:
                return CoverageOptions.from_plain(options)
        return scoped_to_subject(CoverageOptions(("line",)), self.subject)

    def _watched_code(self, subject: Subject, history: History) -> WatchedCode:
        watched = self.watching.options if self.watching else self._coverage(history)
        harness = os.path.realpath(subject.harness) if subject.harness else ""
        return WatchedCode(watched.scope() if watched else None, harness)

    # The directed campaign.

    def _refuse_nothing(self, plan: FocusPlan, targets: ResolvedTargets) -> None:
        """Raise an error if there is no aim, unless a target is hit often anyway."""
        if plan.aims:
            return
        if not plan.targets:
            raise NothingToAimAt("; ".join(targets.unusable) or "no target was named")
        if any(target.cause == "hot" for target in plan.targets):
            return
        first, *others = sorted(plan.targets, key=lambda target: target.cause != "no data")
        more = f" (and {len(others)} more)" if others else ""
        message = f"{first.name}{more} cannot be aimed at: {first.dropped}"
        if first.cause == "no data":
            message += (
                "; run more tests with coverage first (--fresh --baseline-tests N), or name code "
                "that leads to it"
            )
        raise NothingToAimAt(message)

    def _campaign(self, subject: Subject, plan: FocusPlan, history: History) -> Campaign:
        strategy: Strategy = parse_strategy(SWARM)
        if plan.aims:
            directed = directed_strategy(self.strategy, plan.aims, self.merge, subject.weighted)
            strategy = Controlled(directed, SWARM, self.control)
        cpu = self._baseline_outcome.progress.cpu_seconds if self._baseline_outcome else 0.0
        budget = rest_of(self.budget, time.monotonic() - self._begun, cpu)
        return self._new_campaign(strategy, budget, subject, history, plan.shape)

    def _shaped_subject(
        self, subject: Subject, shape: TestShape | None
    ) -> str | type[Machine] | SubjectReference | Subject:
        """Return the subject, with tests of a shape if it can be loaded with such tests."""
        reference = (
            SubjectReference(self.subject) if isinstance(self.subject, str) else self.subject
        )
        fits = isinstance(reference, SubjectReference) and isinstance(subject, MachineSubject)
        if shape is None or not fits:
            return self.subject
        assert isinstance(reference, SubjectReference)
        return replace(reference, steps=shape.steps, repeats=shape.repeats, values=shape.values)

    def _new_campaign(
        self,
        strategy: str | Strategy,
        budget: Budget,
        subject: Subject,
        history: History | None,
        shape: TestShape | None = None,
    ) -> Campaign:
        return Campaign(
            self._shaped_subject(subject, shape),
            strategy,
            budget,
            self._free_seed(subject),
            self.workers,
            self.store,
            limits=self.limits,
            coverage=self._coverage(history),
            watching=self.watching,
            on_progress=self.shown_by(budget) if self.shown_by else None,
            executor=self.executor,
        )

    def _announce(self, campaign: Campaign, plan: FocusPlan, history: History) -> None:
        aimed = sum(target.aimed for target in plan.targets)
        if not plan.aims:
            all_hot = all(target.cause == "hot" for target in plan.targets)
            which = "every target" if all_hot else "every target that tests reach"
            self.say(f"{which} is hit often anyway, so the tests are not directed")
        self.say(
            f"{campaign.subject.name}: {aimed} of {len(plan.targets)} "
            f"target{'s' * (len(plan.targets) != 1)} aimed at, "
            f"strategy {self._strategy_words(plan)}, seed {campaign.seed}, until "
            f"{campaign.budget.describe()}"
        )

    def _strategy_words(self, plan: FocusPlan) -> str:
        """Return the strategy as a user asks for it."""
        if not plan.aims:
            return SWARM
        return f"{self.strategy}, merge {self.merge}" if self.merge else self.strategy

    # The results.

    def _faults(self) -> list[FaultRecord]:
        """Return the faults of this run, including those of its baseline."""
        runs = [
            outcome for outcome in (self._baseline_outcome, self.outcome) if outcome is not None
        ]
        return list({fault.id: fault for outcome in runs for fault in outcome.faults}.values())

    def _base_verdicts(
        self, reference: SubjectReference | None, subject: Subject, targets: ResolvedTargets
    ) -> dict[str, BaseVerdict] | None:
        """Return the base version's verdict on each fault; None if the user interrupted it."""
        faults = self._faults()
        assert self.outcome is not None
        asked = self.request.diff and self.check_base and not self.outcome.interrupted
        if not (asked and faults) or reference is None:
            return {}
        self.say(f"running the shortest test of each fault on {self.request.diff} too")
        changed = tuple(sorted({line.place for line in targets.wanted}))
        seconds = self.limits.seconds_of(subject)
        check = BaseCheck(base_of(self.request.diff), reference, subject.harness, changed, seconds)
        try:
            return check.verdicts(faults)
        except KeyboardInterrupt:
            return None


def _campaigns(numbers: Sequence[int]) -> str:
    return f"campaign{'s' * (len(numbers) != 1)} {', '.join(map(str, numbers))}"


def _merged_aims(strategy: Strategy) -> int:
    directed = getattr(strategy, "directed", None)
    return len(directed.merging.aims) if isinstance(directed, Directed) else 0


def _about_merging(strategy: Strategy) -> list[str]:
    """Say how few merged aims there could be, if it is not proven that there are no fewer."""
    merging = getattr(getattr(strategy, "directed", None), "merging", None)
    if merging is None or merging.proven:
        return []
    return [
        f"targets are merged into {len(merging.aims)} aims; {merging.lower_bound} might be enough "
        f"({merging.how})"
    ]


def _about_mutants(plan: FocusPlan, campaign: int) -> list[str]:
    """Say how to find out which mutants the tests kill, which a run cannot observe."""
    if not any(target.name.startswith("mutant:") for target in plan.targets):
        return []
    return [f"which mutants these tests kill: swarmtest mutate --campaign {campaign}"]
