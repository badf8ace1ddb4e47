"""A search that goes on, and a run of a search that is made again."""

from __future__ import annotations

import itertools
import re
from typing import Any

import click

from swarmtest.campaign import Budget
from swarmtest.campaign.isolated import run_isolated
from swarmtest.cli.options import existing_store
from swarmtest.cli.run_options import parse_budget
from swarmtest.cli.search import run_searches
from swarmtest.errors import UserError
from swarmtest.report.search import point_text, signed
from swarmtest.report.terminal import plural
from swarmtest.result import Result, Verdict
from swarmtest.search.executors.wrapping import once
from swarmtest.search.fitness import Fitness
from swarmtest.search.reading import SpaceFile, load_space
from swarmtest.search.results import combination_of, combined
from swarmtest.search.visits import Visit
from swarmtest.space import Configuration, Proposal
from swarmtest.store import CampaignRecord, Store

_LONGEST = 600.0
"""Seconds for a run that nothing else bounds."""
_KEPT = ("fitness", "keep", "combine", "workers")
_LIMITS = ("points", "seconds", "reach", "faults")
"""What `Search` takes that is kept with its campaign."""


def resume_search(store: Store, record: CampaignRecord, options: dict[str, Any]) -> int:
    """``swarmtest resume``: go on with a search, perhaps to other limits."""
    file = _space_file(record, f"Search(...).run(resume={record.id})")
    kept = record.options["search"]
    told = {name: kept[name] for name in _KEPT if name in kept}
    told |= {"engine": record.strategy, "file": kept["file"]}
    told |= {"workers": options["workers"]} if options["workers"] else {}
    told |= {name: file.search[name] for name in ("before", "after") if name in file.search}
    told |= _limits(parse_budget(options)) or {n: kept[n] for n in _LIMITS if n in kept}
    shown = not options["quiet"] and not options["as_json"]
    again = options | {"resume": record.id, "repeats": 1, "seed": str(record.seed)}
    return run_searches(file.space, told, store, again, shown)


def _limits(budget: Budget | None) -> dict[str, Any]:
    """The limits of a campaign as those of a search: its tests are points."""
    if budget is None:
        return {}
    if budget.cpu_seconds or budget.saturation:
        raise UserError("a search ends after --tests (its points), --time, -x or --max-faults")
    told = {"points": budget.tests, "seconds": budget.wall_seconds, "faults": budget.faults}
    return {name: value for name, value in told.items() if value is not None}


def searched_trial(name: str, store: str | None) -> tuple[CampaignRecord, int] | None:
    """The campaign and the trial that a person names, if it is one of a search."""
    if re.fullmatch(r"\d+#\d+", name):
        campaign, trial = map(int, name.split("#"))
        with existing_store(store) as opened:
            record = opened.campaign(campaign)
        return (record, trial) if "search" in record.options else None
    if not re.fullmatch(r"[0-9a-f]{8}", name):
        return None
    with existing_store(store) as opened:
        shown = [
            (record, fault.first_trial)
            for record in opened.campaigns()
            for fault in opened.faults(record.id)
            if fault.id == name
        ]
    is_search = bool(shown) and all("search" in record.options for record, _ in shown)
    return shown[-1] if is_search else None


def replay_trial(
    record: CampaignRecord, number: int, store: str | None, timeout: float | None, no_run: bool
) -> int:
    """Run a test at a point again, with the seed that it had."""
    file = _space_file(record, "the test itself, with its settings,")
    if file.space.to_json() != record.space:
        raise UserError(
            f"{record.options['search']['file']} describes another space now than when campaign "
            f"{record.id} searched it, so {record.id}#{number} cannot be run again"
        )
    with existing_store(store) as opened:
        trial = opened.trial(record.id, number)
    point = Configuration.from_bytes(file.space, trial.configuration)
    click.echo(f"{record.id}#{number}, {trial.origin}: seed {trial.seed}")
    click.echo(f"  {point_text(point.to_json())}")
    if no_run:
        return 0
    result = run_isolated(
        lambda: _plain(_result(record, file, point, trial.trial, trial.seed)), timeout or _LONGEST
    )
    click.echo("\n" + _told(result, trial.fault or ""))
    return int(result.verdict == Verdict.FAILED)


def _result(
    record: CampaignRecord, file: SpaceFile, point: Configuration, trial: int, seed: int
) -> Result:
    executor, kept = file.space.executor(point), record.options["search"]
    if kept["keep"] == "all":
        return once(executor).run(point, itertools.chain([seed], itertools.count(seed + 1)))[0]
    seeds = Visit(0, Proposal(point), trial).seeds(record.seed, many_of_one=True)
    combine = combination_of(kept.get("combine", "cumulated"), Fitness(kept["fitness"]))
    return combined(executor.run(point, seeds), combine)


def _plain(result: Result) -> Result:
    """Only what is told of it."""
    hits = {*result.hits, *(str(one) for hits in result.covered for one in hits.targets())}
    return result._replace(hits=tuple(hits), covered=(), configuration=None, test=None)


def _told(result: Result, recorded: str) -> str:
    numbers = [f"{name} {signed(value)}" for name, value in result.measures.items()]
    numbers += [plural(len(result.hits), "target")] if result.hits else []
    if result.verdict == Verdict.INVALID:
        return f"invalid: {result.missing}"
    lines = [f"passes: {', '.join(numbers) or 'it measures nothing'}"]
    if result.fault is not None:
        lines = [result.fault.details.rstrip()] if result.fault.details else []
        lines.append(f"fails: fault {result.fault.id}: {result.fault.signature}")
    same = (result.fault.id if result.fault else "") == recorded
    was = f"fault {recorded}" if recorded else "a pass"
    lines.append("the same as recorded" if same else f"not what was recorded: {was}")
    return "\n".join(lines)


def _space_file(record: CampaignRecord, instead: str) -> SpaceFile:
    file = record.options["search"].get("file")
    if not file:
        raise UserError(
            f"campaign {record.id} is a search that Python code made: call {instead} in the "
            f"program that has the space of {record.subject}"
        )
    return load_space(file)
