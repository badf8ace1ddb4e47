"""The runs of a comparison: every strategy with every seed, one campaign each.

`plan_runs` turns the command line into a `Plan`, `run_all` runs it, and a `Speaker` reports
progress. Runs that the store already has need not be run again (`kept_run`).
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import click

from swarmtest.campaign.budget import Budget, Limits
from swarmtest.campaign.campaign import Campaign, Outcome
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.coverage.scope import is_as_it_was
from swarmtest.store.interface import Store, redacted
from swarmtest.store.records import CampaignRecord
from swarmtest.strategies.strategy import parse_strategy, strategy_text
from swarmtest.subjects.loading import SubjectReference
from swarmtest.ui.options import screen_width
from swarmtest.ui.run_options import parse_budget, parse_coverage, parse_seed, parse_subject
from swarmtest.ui.terminal.tables import command_text, wrapped
from swarmtest.ui.terminal.text import json_text

DEFAULT_TESTS = 1000
"""The tests of a run if no limit is given."""


@dataclass(frozen=True)
class Plan:
    """All runs of a comparison."""

    subject: SubjectReference
    strategies: list[str]
    seeds: range
    budget: Budget
    options: dict[str, Any]

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
            self.options["workers"],
            store,
            limits=Limits(self.options["timeout"]),
            coverage=parse_coverage(self.options),
        )


def plan_runs(path: str, options: dict[str, Any]) -> Plan:
    """Return the runs that the command line asks for; raise an error if one could not be run."""
    reference = parse_subject(path, options)
    if options["workers"] == 0:
        raise UserError("--workers 0: runs in one process are not independent; use 1 or more")
    budget = parse_budget(options) or Budget(tests=DEFAULT_TESTS)
    seed = parse_seed(options["seed"])
    seeds = range(seed, seed + options["repeat"])
    texts = options["strategies"] or [_usual_strategies(reference)]
    strategies = compared_strategies(texts, options["baseline"])
    plan = Plan(reference, strategies, seeds, budget, options)
    for strategy in plan.strategies:
        plan.campaign(strategy, seed).rehearse()
    return plan


def _usual_strategies(reference: SubjectReference) -> str:
    return "default,coin,layered" if reference.load().weighted else "default,coin"


def compared_strategies(texts: Sequence[str], baseline: str) -> list[str]:
    """Return the strategies to compare, in their usual spelling, the baseline first."""
    pieces = [piece for text in texts for piece in split_strategies(text)]
    names = [strategy_text(parse_strategy(piece)) for piece in pieces]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--strategies names {name!r} twice")
    if len(names) < 2:
        raise UserError("a comparison needs two strategies: --strategies default,coin")
    if baseline:
        first = strategy_text(parse_strategy(baseline))
        if first not in names:
            raise UserError(f"--baseline {first}: not among --strategies {', '.join(names)}")
        names.remove(first)
        names.insert(0, first)
    return names


def split_strategies(text: str) -> list[str]:
    """Split at the commas outside parentheses.

    >>> split_strategies("default, mixture(default=0.3,coin(p=0.3)=0.7)")
    ['default', 'mixture(default=0.3,coin(p=0.3)=0.7)']
    """
    pieces = [""]
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            pieces.append("")
        else:
            pieces[-1] += char
    pieces = [piece.strip() for piece in pieces]
    for piece in pieces:
        if re.match(r"\w+\s*=", _outside_parentheses(piece)):
            raise UserError(
                f"--strategies {text}: parameters with commas go in parentheses, like "
                "coin(p=0.3,n=100)"
            )
    return [piece for piece in pieces if piece]


def _outside_parentheses(text: str) -> str:
    before = ""
    while before != text:
        before, text = text, re.sub(r"\([^()]*\)", "", text)
    return text


@dataclass
class Done:
    """The runs that are done."""

    campaigns: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    unfinished: int = 0
    """The campaign that was interrupted, if any."""

    def keep(self, record: CampaignRecord) -> None:
        """Add a run that was in the store already."""
        self.campaigns.append(record.id)
        if not record.options.get("coverage") and _UNWATCHED not in self.notes:
            self.notes.append(_UNWATCHED)


_UNWATCHED = (
    "some runs were there already, and no code was watched (--coverage): only the machine is known "
    "to be the same as then, not the program"
)


def run_all(plan: Plan, store: Store, say: Speaker) -> Done:
    """Run every strategy with the first seed, then the next: a slow machine slows all alike."""
    done = Done()
    try:
        for seed in plan.seeds:
            for strategy in plan.strategies:
                campaign = plan.campaign(strategy, seed, store)
                earlier = kept_run(store, campaign) if plan.options["go_on"] else None
                if earlier and earlier.status == "finished":
                    done.keep(earlier)
                    say.kept(len(done.campaigns), plan.runs, earlier)
                    continue
                if earlier:
                    campaign = Campaign.resume(store, earlier.id, workers=plan.options["workers"])
                outcome = campaign.run()
                if outcome.interrupted:
                    done.interrupted, done.unfinished = True, outcome.campaign
                    return done
                done.campaigns.append(outcome.campaign)
                done.notes += [n for n in _notes(outcome) if n not in done.notes]
                say.ran(len(done.campaigns), plan.runs, strategy, seed, outcome)
    except KeyboardInterrupt:
        done.interrupted = True
    return done


def _notes(outcome: Outcome) -> list[str]:
    unused = [
        f"action {name!r} was allowed in {tests:,} tests of campaign {outcome.campaign} and never "
        "ran: its guard was never true (or its pool always empty)"
        for name, tests in outcome.unused.items()
    ]
    return [*outcome.notes, *unused]


def kept_run(store: Store, campaign: Campaign) -> CampaignRecord | None:
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


class Speaker:
    """Reports progress: lines for people, JSON lines for programs, or nothing."""

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self._quiet = quiet
        self._as_json = as_json

    def start(self, plan: Plan) -> None:
        """Report what is going to be run."""
        if self._as_json:
            fields = {"strategies": plan.strategies, "seeds": [*plan.seeds], "runs": plan.runs}
            self._event("start", subject=plan.subject.text, **fields)
        elif not self._quiet:
            default = "" if _has_limit(plan.options) else " (--tests says how many)"
            self._say(
                f"{plan.subject.text}: {', '.join(plan.strategies)}; "
                f"{plural(len(plan.seeds), 'repeat')}, {plural(plan.runs, 'run')}, "
                f"each until {plan.budget.describe()}{default}"
            )

    def ran(self, number: int, runs: int, strategy: str, seed: int, outcome: Outcome) -> None:
        """Report that one run is done."""
        progress = outcome.progress
        if self._as_json:
            self._event(
                "run",
                campaign=outcome.campaign,
                strategy=strategy,
                seed=seed,
                progress=asdict(progress),
            )
        elif not self._quiet:
            targets = f", {plural(progress.targets, 'target')}" if progress.targets else ""
            self._say(
                f"run {number} of {runs}: campaign {outcome.campaign}, {strategy}, seed {seed}: "
                f"{plural(progress.tests, 'test')}, {plural(progress.faults, 'fault')}{targets} "
                f"in {progress.wall_seconds:.1f} s"
            )
            if number == runs:
                click.echo()

    def kept(self, number: int, runs: int, record: CampaignRecord) -> None:
        """Report that one run was in the store already."""
        if self._as_json:
            fields = {"strategy": record.strategy, "seed": record.seed}
            self._event("kept", campaign=record.id, **fields)
        elif not self._quiet:
            self._say(
                f"run {number} of {runs}: campaign {record.id}, {record.strategy}, "
                f"seed {record.seed}: is there already"
            )
            if number == runs:
                click.echo()

    def again(self, campaigns: Sequence[int], store: str) -> None:
        """Print the command that shows the result without running anything."""
        if not self._as_json:
            click.echo(f"\nshow this again: {command_again(campaigns, store)}")

    def interrupted(self, plan: Plan, done: Done, store: str) -> None:
        """Report which runs are done, and how to run the rest."""
        rest = command_for_the_rest(sys.argv[1:], plan)
        if self._as_json:
            fields = {"campaigns": done.campaigns, "unfinished": done.unfinished or None}
            self._event("interrupted", **fields, rest=rest)
            return
        click.echo(f"interrupted: {len(done.campaigns)} of {plan.runs} runs are done, and kept")
        click.echo(f"run the rest: {rest}")
        if len(done.campaigns) >= 2:
            click.echo(f"compare what is done: {command_again(done.campaigns, store)}")

    def _say(self, text: str) -> None:
        click.echo(wrapped(text, screen_width(), "  "))

    def _event(self, kind: str, **fields: Any) -> None:
        click.echo(json_text({"event": kind} | fields))


def _has_limit(options: dict[str, Any]) -> bool:
    return any(options[name] is not None for name in ("tests", "wall", "cpu"))


def command_for_the_rest(words: Sequence[str], plan: Plan) -> str:
    """Return the command that was typed, so that it continues where it was interrupted."""
    more = [] if plan.options["go_on"] else ["--continue"]
    if plan.options["seed"] == "random":
        more += ["--seed", str(plan.seeds.start)]
    return shlex.join(["swarmtest", *map(redacted, words), *more])


def command_again(campaigns: Sequence[int], store: str) -> str:
    """Return the command that shows these campaigns again.

    >>> command_again([3, 4, 5, 8], ".swarmtest/swarmtest.db")
    'swarmtest compare 3-5 8'
    """
    groups: list[list[int]] = []
    for campaign in campaigns:
        if groups and campaign == groups[-1][-1] + 1:
            groups[-1].append(campaign)
        else:
            groups.append([campaign])
    words = [str(g[0]) if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in groups]
    return command_text(f"compare {' '.join(words)}", store)
