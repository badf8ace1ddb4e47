"""The faults of a campaign, one page at a time: searched, sorted and in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from swarmtest.ui.dashboard.campaigns import whole
from swarmtest.ui.report.faults import FaultGroup, ReportedFault, fault_groups, group_name

FAULTS_PER_PAGE = 100
_GROUPS_SHOWN = 60
SORTS = {
    "first": "the order in which they appeared",
    "newest": "the newest first",
    "frequent": "the most frequent first",
    "rare": "the rarest first",
    "small": "the smallest test first",
}


@dataclass(frozen=True)
class FaultList:
    """One page of faults, and the queries of its neighbours."""

    faults: tuple[ReportedFault, ...]
    found: int
    """How many faults match the search, on all pages."""
    total: int
    number: int
    pages: int
    words: str
    group: str
    sort: str
    groups: tuple[tuple[FaultGroup, str], ...]
    """The largest groups, each with its query; empty if one page shows all faults."""
    more_groups: int
    older: str
    """The query of the next page; empty if there is none."""
    newer: str
    everything: str
    """The query without a search."""


def fault_list(faults: Sequence[ReportedFault], query: Mapping[str, str]) -> FaultList:
    """Return the page of faults that a query asks for.

    A query may have `page`, `sort`, `group` (the name of a group), and `words`, which must occur
    in the message, the kind or the id of a fault.
    """
    words, group = query.get("words", "").strip()[:200], query.get("group", "")
    sort = query.get("sort", "")
    if sort not in SORTS:
        sort = "first"
    found = [fault for fault in faults if _matches(fault, words, group)]
    _sort(found, sort)
    pages = max(-(-len(found) // FAULTS_PER_PAGE), 1)
    number = min(max(whole(query.get("page")) or 1, 1), pages)

    def link(**changed: object) -> str:
        values = {"words": words, "group": group, "sort": "" if sort == "first" else sort}
        return "?" + urlencode({name: v for name, v in (values | changed).items() if v})

    groups = fault_groups(faults) if len(faults) > FAULTS_PER_PAGE else []
    start = (number - 1) * FAULTS_PER_PAGE
    return FaultList(
        tuple(found[start : start + FAULTS_PER_PAGE]),
        len(found),
        len(faults),
        number,
        pages,
        words,
        group,
        sort,
        tuple((each, link(group=each.name, words="")) for each in groups[:_GROUPS_SHOWN]),
        max(len(groups) - _GROUPS_SHOWN, 0),
        link(page=number + 1) if number < pages else "",
        link(page=number - 1) if number > 1 else "",
        link(words="", group=""),
    )


def _matches(fault: ReportedFault, words: str, group: str) -> bool:
    if group and group_name(fault.record) != group:
        return False
    text = f"{fault.record.signature} {fault.record.kind} {fault.record.id} {fault.also}".lower()
    return all(word in text for word in words.lower().split())


def _sort(faults: list[ReportedFault], sort: str) -> None:
    faults.sort(key=lambda fault: fault.first, reverse=sort == "newest")
    if sort in ("frequent", "rare"):
        faults.sort(key=lambda fault: fault.count, reverse=sort == "frequent")
    elif sort == "small":
        faults.sort(key=lambda fault: fault.size)
