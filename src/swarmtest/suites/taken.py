"""Tests on their way into a suite: what they hit together, which are needed, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.result import Fault
from swarmtest.suites.measuring import Look
from swarmtest.suites.table import Candidate


@dataclass(frozen=True)
class Taken:
    """A test that was run, whole or reduced."""

    candidate: Candidate
    data: Any
    look: Look
    before: int
    """The parts that it had in the campaign."""
    size: int
    """The parts that it has."""
    counts: bool = True
    """Whether what it hits is hit when the suite runs: not by a test that is skipped."""
    complete: bool = True
    """Whether nothing more of it can go."""

    @property
    def fault(self) -> Fault | None:
        """The fault that it is there for."""
        return self.look.fault

    @property
    def hits(self) -> frozenset[int]:
        """What it hits, as far as that counts."""
        return self.look.hits if self.counts else frozenset()

    @property
    def seconds(self) -> float:
        """Those of the campaign, in proportion to what is left: the same store, the same order."""
        return self.candidate.seconds * max(self.size, 1) / max(self.before, 1)


def together(tests: Iterable[Taken]) -> frozenset[int]:
    """What tests hit together."""
    return frozenset[int]().union(*(one.hits for one in tests))


def by_worth(tests: Sequence[Taken]) -> list[Taken]:
    """The same tests, each time the one that adds most per second; a fault counts as a target."""
    rest, order, kept = list(tests), [], frozenset[int]()
    while rest:
        best = max(rest, key=lambda one: (_worth(one, kept), -one.candidate.trial))
        rest.remove(best)
        order.append(best)
        kept |= best.hits
    return order


def _worth(one: Taken, kept: frozenset[int]) -> float:
    return (len(one.hits - kept) + (one.fault is not None)) / one.seconds


def needed_of(tests: Sequence[Taken], enough: int) -> list[Taken]:
    """Without tests that have become redundant, those that add least per second first."""
    left = list(tests)
    enough = min(enough, len(together(left)))
    for one in reversed(by_worth(left)):
        rest = [other for other in left if other is not one]
        if one.fault is None and len(together(rest)) >= enough:
            left = rest
    return left
