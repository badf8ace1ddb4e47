"""Which accesses are to variables that several threads share, from what runs did."""

from __future__ import annotations

from collections.abc import Iterable

from swarmtest.threads import SITES, Site, TraceStep


def shared_sites(steps: Iterable[TraceStep]) -> frozenset[Site]:
    """The accesses to what two threads touch and one of them changes.

    What the thread that starts the others does before them is no sharing: it builds.
    """
    variables: dict[tuple[str, str], tuple[set[str], set[str], set[Site]]] = {}
    alone = True
    for step in steps:
        alone = alone and not begins(step)
        if step.site < 0:
            continue
        site = SITES[step.site]
        threads, kinds, sites = variables.setdefault(variable_of(site), (set(), set(), set()))
        sites.add(site)
        if not alone:
            threads.add(step.thread)
            kinds.add(site.kind)
    return frozenset(
        site
        for threads, kinds, sites in variables.values()
        if len(threads) > 1 and kinds != {"read"}
        for site in sites
    )


def begins(step: TraceStep) -> bool:
    """Whether main is not alone any more."""
    return step.thread != "main" or step.kind == "thread.start"


def variable_of(site: Site) -> tuple[str, str]:
    """What tells variables apart; two objects' attributes of the same name are not."""
    return site.what, site.name or site.variable
