"""Make a failing schedule minimal: as few switches as possible, and those as late as possible.

Leaving out one switch at a time ends at a schedule of which each switch is needed, but a smaller
one may fail too: two switches that can only be dropped together, or one elsewhere that does the
work of three. So the result of that search is improved in four steps, each within a budget of runs:

1. try its subsets, the smallest first;
2. try each single switch of the program, then pairs of switches, where it has more;
3. replace two of its switches by another one;
4. move each switch to a later probe of its thread, as long as the fault shows.

The second step is exhaustive for small programs, so no schedule with one or two switches is missed
there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from swarmtest.race.control.schedulers import Switch
from swarmtest.reducer.reducer import minimised

_MOST_SUBSETS = 600
MOST_RUNS = 4_000
_MOST_LATER = 40
_ROUND_TIMES = (0.001, 0.01, 0.1, 1.0)

Switches = tuple[Switch, ...]
Shows = Callable[[Sequence[Switch]], bool]


@dataclass(frozen=True)
class Extent:
    """How far the threads of a run come, which says where switches are possible.

    >>> extent = Extent({"main": 2, "main.1": 1})
    >>> [str(switch) for switch in extent.switches()]
    ['main before 2 -> main.1', 'main before 1 -> main.1', 'main.1 before 1 -> main']
    """

    lengths: dict[str, int]
    """How many probes each thread passes."""
    forced: Switches = ()
    """Where threads cannot continue, and several others are able to."""
    steps: dict[str, int] = field(default_factory=dict)
    """How many steps each task of an event loop makes."""

    def switches(self) -> Iterator[Switch]:
        """Return all switches that a schedule may contain, late ones first within a thread."""
        threads = list(self.lengths)
        for switch, following in itertools.product(self.forced, threads):
            if following not in (switch.next, switch.thread):
                yield replace(switch, next=following, site="", nth=0)
        for thread, length in self.lengths.items():
            for at, following in itertools.product(range(length, 0, -1), threads):
                if following != thread:
                    yield Switch(thread, at, following)
        for task, count in self.steps.items():
            for at, following in itertools.product(range(count, 0, -1), self.steps):
                if following != task:
                    yield Switch(task, at, following, step=True)

    def joined(self, other: Extent) -> Extent:
        """Return the extent of two runs together."""
        lengths, steps = _most(self.lengths, other.lengths), _most(self.steps, other.steps)
        places = {(switch.thread, switch.at): switch for switch in (*self.forced, *other.forced)}
        return Extent(lengths, tuple(places.values()), steps)


def _most(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    names = dict.fromkeys((*first, *second))
    return {name: max(first.get(name, 0), second.get(name, 0)) for name in names}


def minimal_switches(
    switches: Sequence[Switch],
    shows: Shows,
    extent_of: Callable[[Sequence[Switch]], Extent],
    most_runs: int = MOST_RUNS,
) -> Switches:
    """Return few and late switches that still show a fault.

    `shows` runs the program with some switches; `extent_of` tells how far its threads come then.
    After `most_runs`, nothing more is tried than to leave out one switch after the other.

    >>> def shows(switches): return any(switch.at == 3 for switch in switches) or len(switches) == 2
    >>> both = Switch("main", 1, "main.1"), Switch("main.1", 1, "main")
    >>> minimal_switches(both, shows, lambda switches: Extent({"main": 4, "main.1": 4}))[0].at
    3
    """
    search = _Search(shows, most_runs)
    small = search.fewest_of(tuple(minimised(switches, search.shows)))
    if len(small) > 1:
        extent = extent_of(()).joined(extent_of(small))
        small = search.other_switches(small, extent)
    if not small:
        return small
    small = search.round_times(small)
    if all(switch.step or switch.late for switch in small):
        return small
    return search.late(small, extent_of(small).lengths)


class _Search:
    """A search for a smaller schedule, which runs no schedule twice."""

    def __init__(self, shows: Shows, most_runs: int) -> None:
        self._shows = shows
        self._most_runs = most_runs
        self._known: dict[frozenset[Switch], bool] = {}
        self.runs = 0

    def shows(self, switches: Sequence[Switch]) -> bool:
        """Return whether switches show the fault."""
        key = frozenset(replace(switch, site="", nth=0) for switch in switches)
        if key not in self._known:
            self.runs += 1
            self._known[key] = self._shows(switches)
        return self._known[key]

    def fewest_of(self, switches: Switches) -> Switches:
        """Return a smallest subset that shows the fault."""
        tried = 0
        for count in range(len(switches) - 1):
            for subset in itertools.combinations(switches, count):
                tried += 1
                if tried > _MOST_SUBSETS or self.runs > self._most_runs:
                    return switches
                if self.shows(subset):
                    return subset
        return switches

    def other_switches(self, small: Switches, extent: Extent) -> Switches:
        """Return fewer switches, which may be others, if there are any."""
        possible = list(extent.switches())
        ways: list[Iterable[Switches]] = [((switch,) for switch in possible)]
        if len(small) > 2:
            ways += [
                ((*kept, switch) for kept in _without(small, 2) for switch in possible),
                itertools.combinations(possible, 2),
            ]
        for way in ways:
            for switches in way:
                if self.runs > self._most_runs:
                    return small
                if len(switches) < len(small) and self.shows(_in_order(switches)):
                    return self.other_switches(_in_order(switches), extent)
        return small

    def round_times(self, switches: Switches) -> Switches:
        """Return the switches with the smallest round times by which timers must be late."""
        for i, switch in enumerate(switches):
            for seconds in _ROUND_TIMES if switch.late else ():
                rounded = (*switches[:i], replace(switch, late=seconds), *switches[i + 1 :])
                if self.shows(rounded):
                    switches = rounded
                    break
        return switches

    def late(self, switches: Switches, lengths: dict[str, int]) -> Switches:
        """Return the switches moved to later probes, as far as they show the fault there."""
        for i in reversed(range(len(switches))):
            switch = switches[i]
            if switch.forced or switch.step or switch.late:
                continue
            last = min(lengths.get(switch.thread, 0), switch.at + _MOST_LATER)
            for at in range(last, switch.at, -1):
                moved = replace(switch, at=at, site="", nth=0)
                candidate = (*switches[:i], moved, *switches[i + 1 :])
                if self.runs > self._most_runs:
                    return switches
                if self.shows(candidate):
                    switches = candidate
                    break
        return switches


def _without(switches: Switches, count: int) -> Iterator[Switches]:
    """Return the switches without some of them."""
    yield from itertools.combinations(switches, len(switches) - count)


def _in_order(switches: Iterable[Switch]) -> Switches:
    """Return switches in an order in which each thread's own follow each other."""
    return tuple(sorted(switches, key=lambda switch: switch.at))
