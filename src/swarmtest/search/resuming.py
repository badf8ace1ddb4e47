"""What an earlier part of a search found, visit by visit, so that it can go on."""

from __future__ import annotations

from dataclasses import dataclass

from swarmtest.errors import UserError
from swarmtest.result import Result
from swarmtest.search.exploration import Exploration
from swarmtest.space import Configuration
from swarmtest.store import CampaignRecord, Store


@dataclass(frozen=True)
class EarlierVisit:
    """A point that was proposed, and the results that it gave then."""

    point: Configuration
    results: list[Result]


def earlier_visits(store: Store, campaign: int, wanted: CampaignRecord) -> dict[int, EarlierVisit]:
    """The visits of a campaign by their numbers, if it is one of the search that is wanted.

    Of several workers, one may have been stopped before others that began later were done.
    """
    record = store.campaign(campaign)
    for what, then, now in (
        ("space", record.space, wanted.space),
        ("engine", record.strategy, wanted.strategy),
        ("seed", record.seed, wanted.seed),
        ("keep", record.options.get("search", {}).get("keep"), wanted.options["search"]["keep"]),
    ):
        if then != now:
            shown = "" if what == "space" else f": {then} then, {now} now"
            raise UserError(f"campaign {campaign} was a search with another {what}{shown}")
    if not store.summary(campaign)["trials"]:
        return {}
    exploration = Exploration.load(store, campaign)
    found: dict[int, EarlierVisit] = {}
    for point in exploration.points:
        results = exploration.results(point)
        for run, result in zip(exploration.runs[point], results, strict=True):
            found.setdefault(run.visit, EarlierVisit(point, [])).results.append(result)
    return found
