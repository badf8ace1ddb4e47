"""The probes of a controlled run: closures, because they are passed more often than all else."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from swarmtest.threads.handing import Handing
from swarmtest.threads.raw import get_ident
from swarmtest.threads.sites import SITES


def deciding_access(control: Handing, sites: Collection[int] | None) -> Callable[..., Any]:
    """The probe of a run. This is the path that has to be fast."""
    state, decide, ident = control.state, control.decide, get_ident

    def access(site: int, obj: Any = None) -> Any:
        if ident() == state[2]:
            step = state[0] = state[0] + 1
            if step >= state[1]:
                decide(site, obj)
        return obj

    if sites is None:
        return access
    allowed = bytearray(len(SITES))
    for site in sites:
        allowed[site] = 1

    def chosen_access(site: int, obj: Any = None) -> Any:
        if ident() == state[2]:
            step = state[0] = state[0] + 1
            if step >= state[1] and (allowed[site] or control.must_stop()):
                decide(site, obj)
        return obj

    return chosen_access


def counting_access(control: Handing) -> Callable[..., Any]:
    """The probe of a run in feasible mode: threads are switched elsewhere."""
    state, ident = control.state, get_ident

    def access(site: int, obj: Any = None) -> Any:
        if ident() == state[2]:
            state[0] += 1
            if control.must_stop():
                control.decide(site, obj)
        return obj

    return access
