"""Run a comparison: every strategy with every seed, one campaign each.

`run_comparison` does everything. Its two halves can also be called on their own: `plan_comparison`
checks the request without running anything, and `ComparisonPlan.run` runs the campaigns that the
store does not have yet, reports each one through a callback, and compares them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from swarmtest.analysis.intervals import normal_quantile
from swarmtest.campaign.budget import Budget, Limits, Progress
from swarmtest.campaign.campaign import Campaign, Outcome
from swarmtest.campaign.campaign_subject import resolve
from swarmtest.compare.comparison import Comparison, compare_campaigns
from swarmtest.core.errors import UserError
from swarmtest.core.strategy_names import split_at_commas
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.scope import is_as_it_was
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.strategies.strategy import parse_strategy, strategy_text
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.machine.machine import Machine
from swarmtest.subjects.subject import Subject

DEFAULT_TESTS = 1000
"""The tests of a run if no limit is given."""
DEFAULT_REPEATS = 10


@dataclass(frozen=True)
class ComparisonRun:
    """A run of a comparison that is done, for a progress display."""

    number: int
    """Which of the runs it is, counted from 1."""
    runs: int
    """The number of runs of the whole comparison."""
    campaign: int
    strategy: str
    seed: int
    progress: Progress | None
    """What the campaign did; None if the store had it already, so that nothing was run."""


@dataclass
class ComparisonRuns:
    """The result of running a comparison."""

    store: str
    """The URL of the store that holds the campaigns."""
    campaigns: list[int] = field(default_factory=list)
    """The campaigns that are done, in the order in which they were run."""
    notes: list[str] = field(default_factory=list)
    """What a reader has to know before believing the numbers, one line each."""
    interrupted: bool = False
    """Whether Ctrl-C stopped the comparison; the runs that are done are in the store."""
    unfinished: int = 0
    """The campaign that was interrupted, if any."""
    comparison: Comparison | None = None
    """The comparison of the runs; None if they were interrupted."""


@dataclass(frozen=True)
class ComparisonPlan:
    """The runs of a comparison: every strategy with every seed."""

    subject: str | type[Machine] | SubjectReference | Subject
    strategies: tuple[str, ...]
    """The strategies in their usual spelling, the baseline first if one was named."""
    seeds: range
    budget: Budget
    """The budget of each run."""
    baseline: str = ""
    """The baseline that was named, in its usual spelling."""
    workers: int | None = None
    limits: Limits = field(default_factory=Limits)
    coverage: CoverageOptions | str | None = None

    @property
    def runs(self) -> int:
        """Return the number of runs."""
        return len(self.strategies) * len(self.seeds)

    def campaign(self, strategy: str, seed: int, store: Store | None = None) -> Campaign:
        """Return the campaign of one run."""
        return Campaign(
            self.subject,
            strategy,
            self.budget,
            seed,
            self.workers,
            store,
            limits=self.limits,
            coverage=self.coverage,
        )

    def run(
        self,
        store: str | Store | None = None,
        *,
        reuse: bool = False,
        confidence: float = 0.95,
        progress: Callable[[ComparisonRun], None] | None = None,
    ) -> ComparisonRuns:
        """Run every strategy with the first seed, then with the next, and compare the campaigns.

        The strategies take turns so that a slow machine slows all alike. The arguments are those of
        `run_comparison`.
        """
        normal_quantile(confidence)  # raises the error for a bad value before anything runs
        opened = open_store(store) if store is None or isinstance(store, str) else store
        try:
            done = ComparisonRuns(opened.url)
            try:
                self._run_campaigns(opened, done, reuse, progress or (lambda run: None))
            except KeyboardInterrupt:
                done.interrupted = True
            if not done.interrupted:
                done.comparison = compare_campaigns(
                    opened, done.campaigns, self.baseline, confidence, done.notes
                )
            return done
        finally:
            if opened is not store:
                opened.close()

    def _run_campaigns(
        self,
        store: Store,
        done: ComparisonRuns,
        reuse: bool,
        report: Callable[[ComparisonRun], None],
    ) -> None:
        for seed in self.seeds:
            for strategy in self.strategies:
                campaign = self.campaign(strategy, seed, store)
                number = len(done.campaigns) + 1
                earlier = matching_campaign(store, campaign) if reuse else None
                if earlier and earlier.status == "finished":
                    done.campaigns.append(earlier.id)
                    _add_notes(done, _notes_on_reuse(earlier))
                    report(ComparisonRun(number, self.runs, earlier.id, strategy, seed, None))
                    continue
                if earlier:
                    campaign = Campaign.resume(store, earlier.id, workers=self.workers)
                outcome = campaign.run()
                if outcome.interrupted:
                    done.interrupted, done.unfinished = True, outcome.campaign
                    return
                done.campaigns.append(outcome.campaign)
                _add_notes(done, _notes_on_outcome(outcome))
                report(
                    ComparisonRun(
                        number, self.runs, outcome.campaign, strategy, seed, outcome.progress
                    )
                )


def run_comparison(
    subject: str | type[Machine] | SubjectReference | Subject,
    strategies: str | Sequence[str] = (),
    budget: Budget | int = DEFAULT_TESTS,
    repeats: int = DEFAULT_REPEATS,
    seed: int = 0,
    store: str | Store | None = None,
    *,
    baseline: str = "",
    confidence: float = 0.95,
    workers: int | None = None,
    limits: Limits | None = None,
    coverage: CoverageOptions | str | None = None,
    reuse: bool = False,
    progress: Callable[[ComparisonRun], None] | None = None,
) -> ComparisonRuns:
    """Run strategies repeatedly on a subject and compare what they find.

    Each run is an ordinary campaign in the store. `budget` is the budget of one run; the seeds are
    `seed`, `seed` + 1 and so on, `repeats` of them. `strategies` are texts, because each run needs
    a strategy that has learnt nothing; the default is ``all-on,coin``, and ``layered`` too if the
    features have weights. With `reuse`, runs that the store already has are not
    repeated, and one that was interrupted is continued. `progress` is called after every run.

    Bad requests raise a `UserError` before anything runs. Ctrl-C ends the comparison; the result
    then has the runs that are done, and no comparison.

    >>> from swarmtest import Machine, action
    >>> class Counter(Machine):
    ...     def start(self): self.n = 0
    ...     @action
    ...     def up(self): self.n += 1; assert self.n < 30
    ...     @action
    ...     def down(self): self.n -= 1
    >>> done = run_comparison(Counter, ["all-on", "coin"], 20, repeats=2, store=":memory:")
    >>> done.campaigns, done.comparison.baseline
    ([1, 2, 3, 4], 'all-on')
    """
    plan = plan_comparison(
        subject,
        strategies,
        budget,
        repeats,
        seed,
        baseline=baseline,
        workers=workers,
        limits=limits,
        coverage=coverage,
    )
    return plan.run(store, reuse=reuse, confidence=confidence, progress=progress)


def plan_comparison(
    subject: str | type[Machine] | SubjectReference | Subject,
    strategies: str | Sequence[str] = (),
    budget: Budget | int = DEFAULT_TESTS,
    repeats: int = DEFAULT_REPEATS,
    seed: int = 0,
    *,
    baseline: str = "",
    workers: int | None = None,
    limits: Limits | None = None,
    coverage: CoverageOptions | str | None = None,
) -> ComparisonPlan:
    """Return the runs of a comparison; raise a `UserError` if one of them could not be run."""
    if workers == 0:
        raise UserError("--workers 0: runs in one process are not independent; use 1 or more")
    if repeats < 1:
        raise UserError(f"a comparison needs at least one run of each strategy, not {repeats}")
    texts = [strategies] if isinstance(strategies, str) else strategies
    plan = ComparisonPlan(
        subject,
        tuple(compared_strategies(texts or [_usual_strategies(subject)], baseline)),
        range(seed, seed + repeats),
        Budget(tests=budget) if isinstance(budget, int) else budget,
        baseline and strategy_text(parse_strategy(baseline)),
        workers,
        limits or Limits(),
        coverage,
    )
    for strategy in plan.strategies:
        plan.campaign(strategy, seed).rehearse()
    return plan


def _usual_strategies(subject: str | type[Machine] | SubjectReference | Subject) -> str:
    return "all-on,coin,layered" if resolve(subject)[1].weighted else "all-on,coin"


def compared_strategies(texts: Sequence[str], baseline: str) -> list[str]:
    """Return the strategies to compare, in their usual spelling, the baseline first."""
    pieces = [piece for text in texts for piece in split_strategies(text)]
    names = [strategy_text(parse_strategy(piece)) for piece in pieces]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--strategies names {name!r} twice")
    if len(names) < 2:
        raise UserError("a comparison needs two strategies: --strategies all-on,coin")
    if baseline:
        first = strategy_text(parse_strategy(baseline))
        if first not in names:
            raise UserError(f"--baseline {first}: not among --strategies {', '.join(names)}")
        names.remove(first)
        names.insert(0, first)
    return names


def split_strategies(text: str) -> list[str]:
    """Split at the commas outside parentheses.

    >>> split_strategies("all-on, mixture(all-on=0.3,coin(p=0.3)=0.7)")
    ['all-on', 'mixture(all-on=0.3,coin(p=0.3)=0.7)']
    """
    pieces = split_at_commas(text)
    for piece in pieces:
        if re.match(r"\w+\s*=", _outside_parentheses(piece)):
            raise UserError(
                f"--strategies {text}: parameters with commas go in parentheses, like "
                "coin(p=0.3,n=100)"
            )
    return pieces


def _outside_parentheses(text: str) -> str:
    before = ""
    while before != text:
        before, text = text, re.sub(r"\([^()]*\)", "", text)
    return text


def matching_campaign(store: Store, campaign: Campaign) -> CampaignRecord | None:
    """Return the campaign in the store that is the same as this one, preferably a finished one.

    The subject, features, strategy, seed, budget, options, Python and version of the machine must
    be the same, and if code was watched, the version of the program.
    """
    wanted = campaign.record()
    options = json.loads(json.dumps(wanted.options))
    same = [
        record
        for record in store.campaigns()
        if record.options == options
        and all(getattr(record, name) == getattr(wanted, name) for name in _SAME)
        and record.status in ("finished", "interrupted")
        and all(map(is_as_it_was, store.sources(record.id)))
    ]
    return max(same, key=lambda record: (record.status == "finished", record.id), default=None)


_SAME = ("subject", "space", "strategy", "seed")


def _add_notes(done: ComparisonRuns, notes: Sequence[str]) -> None:
    done.notes += [note for note in notes if note not in done.notes]


def _notes_on_reuse(record: CampaignRecord) -> list[str]:
    if record.options.get("coverage"):
        return []
    return [
        "some runs were in the store already, and no code was watched (--coverage): only the "
        "machine is known to be the same as then, not the program"
    ]


def _notes_on_outcome(outcome: Outcome) -> list[str]:
    unused = [
        f"action {name!r} was allowed in {tests:,} tests of campaign {outcome.campaign} and never "
        "ran: its guard was never true (or its pool always empty)"
        for name, tests in outcome.unused.items()
    ]
    return [*outcome.notes, *unused]
