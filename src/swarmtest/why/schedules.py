"""Explain a race: which switches between threads it needs, where they may be, and to which thread.

The parts of such a test are the switches of its schedule. Each is left out, made sooner and later,
and made to other threads; then further switches are made at random places. The schedule is edited
as the plain data that the test holds, so nothing of `swarmtest.race` is imported here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.core.seeds import key_of
from swarmtest.why.explanation import (
    IRRELEVANT,
    SUPPRESSOR,
    UNCLEAR,
    Explanation,
    InsertionFact,
    OrderFact,
    StepFact,
    ValueFact,
    share_interval,
)
from swarmtest.why.variant_runs import VariantOutcome, VariantRuns

FORMAT = "swarmtest threads test 1"
_FURTHEST = 40
"""How many places sooner or later a switch is tried at most."""
_MOST_INSERTIONS = 40
"""Further switches of one thread that are tried."""
_LEAST_EFFECT = 0.1
_ACCESSES = {"read": "reads", "write": "writes"}

Switch = dict[str, Any]
"""A switch of a schedule as plain data: thread, at, next, forced, site, nth."""


def schedule_of(test: Any) -> list[Switch] | None:
    """Return the switches of a test of threads; None if it is another kind of test.

    Raise `UserError` if it is a run with noise, which has no schedule.
    """
    if not isinstance(test, Mapping) or test.get("format") != FORMAT:
        return None
    schedule = test.get("schedule")
    if not isinstance(schedule, Mapping):
        raise UserError(
            "the fault was seen with noise, and no schedule of it is known: there is nothing to "
            "make experiments on; `swarmtest roles` has the statistics"
        )
    return list(schedule["switches"])


def explain_schedule(test: Any, fault: Fault, runs: VariantRuns, seed: int) -> Explanation:
    """Explain a race by changing the switches of its schedule."""
    study = _Schedule(test, schedule_of(test) or [], runs, seed)
    runs.check(test, study.test([]))
    steps: list[StepFact] = []
    places: list[ValueFact] = []
    insertions: list[InsertionFact] = []
    with runs.limited(runs.budget.runs):
        study.drop_unneeded()
        steps += [StepFact(switch_words(s), switch_line(s)) for s in study.switches]
        for at in range(len(study.switches)):
            fact = study.places(at)
            places += [fact] if fact is not None else []
            steps[at] = study.with_other_threads(at, steps[at])
        insertions += study.insertions()
    kept = sum(fact.runs - fact.gone for fact in insertions)
    return Explanation(
        fault.id,
        tuple(steps),
        # A schedule has its switches in this order, and none of them can be left out.
        tuple(OrderFact(at - 1, at, 0) for at in range(1, len(steps))),
        tuple(places),
        insertions=tuple(insertions),
        kept=kept,
        variants=sum(fact.runs for fact in insertions),
        runs=runs.runs,
        cpu_seconds=runs.cpu_seconds,
        seed=seed,
        is_complete=not runs.is_spent,
        is_schedule=True,
        notes=_notes(runs),
    )


def _notes(runs: VariantRuns) -> tuple[str, ...]:
    if not runs.is_flaky:
        return ()
    return (
        f"the schedule shows the fault in {runs.shown} of {runs.checks} runs: it depends on more "
        "than the order of threads",
    )


@dataclass
class _Schedule:
    """A failing schedule under study."""

    whole: Any
    switches: list[Switch]
    runs: VariantRuns
    seed: int

    def test(self, switches: Sequence[Switch]) -> Any:
        schedule = {**self.whole["schedule"], "switches": list(switches)}
        return {key: v for key, v in self.whole.items() if key != "explanation"} | {
            "schedule": schedule
        }

    def holds(self, switches: Sequence[Switch]) -> bool | None:
        """Return whether a schedule shows the fault.

        Return None if it shows another one, or if a switch could not be made.
        """
        test = self.test(switches)
        outcome = self.runs.outcome(test)
        if not self.runs.was_followed(test):
            return None
        if outcome.is_kept:
            return True
        return False if outcome is VariantOutcome.GONE else None

    def with_switch(self, number: int, **changes: Any) -> list[Switch]:
        # The name of the place is left out: a replay would find the old place by it.
        changed = {**self.switches[number], "site": "", "nth": 0, **changes}
        return [*self.switches[:number], changed, *self.switches[number + 1 :]]

    def drop_unneeded(self) -> None:
        for at in reversed(range(len(self.switches))):
            shorter = self.switches[:at] + self.switches[at + 1 :]
            if self.holds(shorter):
                self.switches = shorter

    def places(self, at: int) -> ValueFact | None:
        """Find how much sooner and later a switch may come; None if it cannot be moved."""
        switch = self.switches[at]
        if switch["forced"]:
            return None
        sooner, tried = self._reach(at, -1)
        later, tried_later = self._reach(at, 1)
        kept, runs = sooner + later, tried + tried_later
        if not runs:
            return None
        kind = "some" if kept else "exactly"
        return ValueFact(at, "place", kind, _reach_words(sooner, later), kept, runs)

    def _reach(self, at: int, direction: int) -> tuple[int, int]:
        """Return how far a switch can be moved in a direction, and the runs that showed it."""
        probe = self.switches[at]["at"]
        for distance in range(1, _FURTHEST + 1):
            if probe + direction * distance < 1:
                return distance - 1, distance - 1
            if not self.holds(self.with_switch(at, at=probe + direction * distance)):
                return distance - 1, distance
        return _FURTHEST, _FURTHEST

    def with_other_threads(self, at: int, step: StepFact) -> StepFact:
        """Return a step with the other threads that may continue in place of the one named."""
        named = self.switches[at]["next"]
        others = [t for t in self._threads() if t not in (named, self.switches[at]["thread"])]
        kept = [t for t in others if self.holds(self.with_switch(at, next=t))]
        return StepFact(step.feature, step.line, tuple(kept), len(others))

    def _threads(self) -> list[str]:
        """Return the threads that the schedule and its timeline name."""
        rows = self.whole.get("explanation", {}).get("rows", ())
        names = {row["thread"] for row in rows if row["thread"]}
        names |= {switch[end] for switch in self.switches for end in ("thread", "next")}
        return sorted(names)

    def insertions(self) -> Iterator[InsertionFact]:
        """Make one more switch of each thread at random places; yield what that does."""
        threads = self._threads()
        probes = max((switch["at"] for switch in self.switches), default=0) + 12
        for thread in threads if len(threads) > 1 else ():
            rng = random.Random(key_of(f"why:{self.seed}:switches of {thread}"))
            gone = runs = 0
            places = [(at, t) for at in range(1, probes) for t in threads if t != thread]
            for at, other in rng.sample(places, min(len(places), _MOST_INSERTIONS)):
                extra = {"thread": thread, "at": at, "next": other}
                extra |= {"forced": False, "site": "", "nth": 0}
                answer = self.holds(_with_extra(self.switches, extra))
                if answer is not None:
                    runs += 1
                    gone += not answer
            if runs:
                low, high = share_interval(gone, runs)
                yield InsertionFact(
                    f"a further switch away from {thread}", _role(gone, low), gone, runs, low, high
                )


def _role(gone: int, low: float) -> str:
    if not gone:
        return IRRELEVANT
    return SUPPRESSOR if low > _LEAST_EFFECT else UNCLEAR


def _with_extra(switches: Sequence[Switch], extra: Switch) -> list[Switch]:
    """Return the schedule with one more switch, where its thread comes to that place.

    >>> first = {"thread": "main.1", "at": 5}
    >>> [s["at"] for s in _with_extra([first], {"thread": "main.1", "at": 3})]
    [3, 5]
    """
    own = [at for at, switch in enumerate(switches) if switch["thread"] == extra["thread"]]
    at = next((at for at in own if switches[at]["at"] > extra["at"]), len(switches))
    return [*switches[:at], extra, *switches[at:]]


def switch_words(switch: Switch) -> str:
    """Say a switch in words.

    >>> switch_words({"thread": "main.1", "at": 5, "next": "main.2", "forced": False,
    ...               "site": "shop.py Flight.sell write self.sold", "nth": 1})
    'main.1 stops before it writes self.sold in Flight.sell (shop.py) and main.2 goes on'
    """
    if switch["forced"]:
        return f"{switch['next']} goes on when {switch['thread']} cannot"
    return f"{switch['thread']} stops {_where(switch)} and {switch['next']} goes on"


def _where(switch: Switch) -> str:
    words = str(switch["site"]).split(" ", 3)
    nth = int(switch["nth"])
    again = f" for the {nth}. time" if nth > 1 else ""
    if len(words) == 4 and words[2] in _ACCESSES:
        path, function, access, variable = words
        return f"before it {_ACCESSES[access]} {variable} in {function} ({path}){again}"
    return f"at {switch['site']}{again}" if switch["site"] else f"before its probe {switch['at']}"


def switch_line(switch: Switch) -> str:
    """Return a switch as schedules print it."""
    when = f"cannot go on after {switch['at']}" if switch["forced"] else f"before {switch['at']}"
    site = f" ({switch['site']})" if switch["site"] else ""
    return f"{switch['thread']} {when} -> {switch['next']}{site}"


def _reach_words(sooner: int, later: int) -> str:
    """Say how far a switch may be moved.

    >>> _reach_words(2, 0), _reach_words(0, 0)
    ('may come up to 2 places sooner', 'has to be exactly there')
    """
    ways = [
        f"up to {'any number of' if count >= _FURTHEST else count} "
        f"{'place' if count == 1 else 'places'} {word}"
        for count, word in ((sooner, "sooner"), (later, "later"))
        if count
    ]
    return f"may come {' or '.join(ways)}" if ways else "has to be exactly there"
