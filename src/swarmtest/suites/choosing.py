"""Which whole tests are taken: those of faults first, then a cover of what is left."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swarmtest.errors import UserError
from swarmtest.suites.cover import Problem, greedy, greedy_in_time, needed
from swarmtest.suites.search import smallest
from swarmtest.suites.table import Candidate, Table

FAULTS = ("xfail", "fail", "skip", "none")
METHODS = ("exact", "greedy")


@dataclass(frozen=True)
class SuiteRequest:
    """What a suite has to keep, and how it is made.

    >>> SuiteRequest(keep=0.9).method
    'exact'
    >>> SuiteRequest(keep=90)
    Traceback (most recent call last):
    ...
    swarmtest.errors.UserError: keep is a share above 0, up to 1, not 90
    """

    keep: float = 1.0
    """The share of the targets that whole tests keep."""
    keep_parts: float = 1.0
    """The share of what a test was chosen for that is left when it is reduced."""
    kinds: tuple[str, ...] = ()
    """The kinds of targets that count, like line and mutant; ``coverage`` is all of that, and with
    ``fault`` alone only faults count; empty: all that the campaign has."""
    targets: tuple[str, ...] = ()
    """Patterns of targets that count, like ``line:shop/*``; empty: all."""
    seconds: float | None = None
    """What the suite may take; None: any time."""
    method: str = "exact"
    """``exact`` looks for the fewest tests, ``greedy`` takes the one that adds most."""
    faults: str = "xfail"
    """What tests that show a fault are in the file: expected to fail (strictly), tests that fail,
    skipped, or not there at all."""
    reduce: bool = True
    """Whether tests are made smaller."""
    budget: float = 30.0
    """Seconds for the reduction of one test."""

    def __post_init__(self) -> None:
        for name in ("keep", "keep_parts"):
            share = getattr(self, name)
            if not 0 < share <= 1:
                raise UserError(f"{name} is a share above 0, up to 1, not {share:g}")
        if self.seconds is not None and not self.seconds > 0:
            raise UserError(f"a suite cannot take {self.seconds:g} seconds")
        for name, known in (("faults", FAULTS), ("method", METHODS)):
            if getattr(self, name) not in known:
                raise UserError(f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r}")


@dataclass(frozen=True)
class Choice:
    """The whole tests of a suite."""

    tests: tuple[Candidate, ...]
    """Those of faults, then the others, those that add most first."""
    kept: int
    """How many of the table's targets they hit, as it was recorded."""
    method: str
    """How they were chosen."""
    at_least: int
    """So many tests it takes, as far as is known; 0: nothing is known."""
    no_time_for: int = 0
    """The tests of faults that the time is too short for."""


def choose(
    table: Table,
    fixed: Sequence[Candidate],
    request: SuiteRequest,
    without: Collection[int] = (),
    there: Collection[int] = (),
) -> Choice:
    """Tests that keep what is asked for, in addition to those of the trials that are `there`.

    `fixed` are taken anyway, as far as there is time; trials `without` never are.
    """
    usable = np.array([one.trial not in without or one.trial in there for one in table.tests], bool)
    problem = Problem.of(table.hits & usable[:, None])
    need = needed(request.keep, len(table.targets))
    problem = replace(problem, need=min(need, problem.total))
    taken = _fitting(fixed, request.seconds)
    trials = {*there, *(one.trial for one in taken)}
    first = [row for row, one in enumerate(table.tests) if one.trial in trials and usable[row]]
    left = problem.after(first) if first else problem
    rest, method, at_least = _cover(table, left, request, sum(one.seconds for one in taken))
    chosen = [row for row in _best_first(left, rest) if row not in first]
    return Choice(
        (*taken, *(table.tests[row] for row in chosen)),
        problem.kept([*first, *chosen]),
        method,
        len(taken) + at_least if at_least is not None else 0,
        len(fixed) - len(taken),
    )


def _fitting(fixed: Sequence[Candidate], seconds: float | None) -> list[Candidate]:
    """The tests of faults, as many as fit the time: quick ones first."""
    if seconds is None:
        return list(fixed)
    taken = set()
    left = seconds
    for one in sorted(fixed, key=lambda one: (one.seconds, one.trial)):
        if one.seconds <= left:
            taken.add(one.trial)
            left -= one.seconds
    return [one for one in fixed if one.trial in taken]


def _cover(
    table: Table, problem: Problem, request: SuiteRequest, spent: float
) -> tuple[list[int], str, int | None]:
    """Tests, how they were found, and how many it takes at least (None: not known)."""
    if request.seconds is not None:
        seconds = np.array([one.seconds for one in table.tests])
        left = request.seconds - spent
        found = greedy_in_time(problem, seconds, left) if problem.need > 0 else []
        return found, "greedy in time", None
    if request.method == "greedy":
        return greedy(problem), "greedy", None
    if problem.need <= 0:
        return [], "exact", 0
    fewest, at_least = smallest(problem)
    return fewest, "exact", at_least


def _best_first(problem: Problem, chosen: Sequence[int]) -> list[int]:
    """The same tests, each time the one that adds most to those before it."""
    only = sorted(chosen)
    part = replace(problem, rows=np.asfortranarray(problem.rows[only]), need=problem.total)
    order = [only[row] for row in greedy(part)]
    return [*order, *(row for row in only if row not in order)]
