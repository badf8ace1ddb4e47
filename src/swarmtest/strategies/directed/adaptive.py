"""Learning where to aim while it runs: a bandit over ways to aim.

The paper ends with "it is surprising how difficult it is to identify a single best strategy"
(section 8.2). Here none is chosen beforehand. The ways are

- the paper's three single-target strategies, for each aim in turn and for merged aims in turn;
- triggers-only with the triggers that are *certain*: of dozens of features some look like triggers
  by chance, and each one that is not needed takes steps, and time, from those that are;
- the same at a low weight, where weights mean something: shorter tests, which often hit as well.

Each has a count of hits and of CPU time; Thompson sampling chooses the one that promises most hits
per CPU second. What is useless for a target (triggers-only where the target needs something that
looks irrelevant) is given up after some tests; what is best is found without asking for it.

Invariants:

- No configuration contains a suppressor of the aim that it is for (as far as the space allows).
- At least `floor` of the tests are half-swarm tests for the aim whose goals were hit least: no goal
  starves, and there is always fresh variety.
- What it does depends on the streams it is given and on what it was told, on nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from swarmtest.core.errors import UserError
from swarmtest.core.result import Result, Verdict
from swarmtest.core.sampling import Proposal, weigh
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.strategies.directed.merging import AGGRESSIVE, ROUND_ROBIN, Merging, merged
from swarmtest.strategies.directed.single import (
    HALF_SWARM,
    NO_SUPPRESSORS,
    RUNGS,
    TRIGGERS_ONLY,
    fitted,
    propose,
)

# -------------------------------------------------------------------------------------------------
# Where an aim goes when its configurations give no valid test.
#
# Some generators make nothing valid of very few features (directed swarm, section 4.1: triggers-
# only
# "may frequently fail"). After a few tests that were all invalid, an aim goes down one rung:
#
# triggers-only -> half-swarm -> no-suppressors -> coin-without-suppressors -> coin
#
# Each rung leaves the generator more freedom than the one before; the last is undirected swarm
# testing, and no longer keeps the suppressors out. Rungs that come to the same for an aim are one
# (an aim without triggers and suppressors has only the coin, or everything). One valid test, and
# the aim stays where it is.

ENOUGH = 5
"""So many tests of a rung, all invalid, and it is given up."""


def rungs_of(single: str, aim: Aim, space: Space) -> tuple[str, ...]:
    """The rungs from `single` down that differ for this aim.

    >>> from swarmtest.strategies.directed.aim import Goal
    >>> full = Aim((Goal("event:full"),), suppressors={"pop"})
    >>> rungs_of("triggers-only", full, Space(["push", "pop", "add"]))
    ('half-swarm', 'no-suppressors', 'coin')
    """
    found: dict[tuple[float, ...], str] = {}
    for kind in RUNGS[RUNGS.index(single) :]:
        plan = fitted(kind, aim.triggers, aim.suppressors, space)
        found.setdefault(plan.rates, plan.kind)
    return tuple(found.values())


@dataclass
class Ladder:
    """The rungs of one aim, and on which one it stands."""

    name: str
    """The aim's, for notes."""
    rungs: tuple[str, ...]
    at: int = 0
    _invalid: int = 0
    _holds: bool = False
    """Whether a test of this rung was valid."""
    _asked: dict[int, int] = field(default_factory=dict)
    """On which rung each trial was asked for that has not been told yet."""

    @property
    def kind(self) -> str:
        """The kind of configuration that comes next."""
        return self.rungs[self.at]

    def asked(self, trial: int) -> None:
        """A test of the present rung is on its way."""
        if not self._holds:
            self._asked[trial] = self.at

    def told(self, trial: int, verdict: Verdict, why: str) -> str:
        """What came of a test; a note when that makes the aim go down a rung, else nothing.

        Trials that nobody asked for are those of an earlier run that is resumed.
        """
        if self._holds or self._asked.pop(trial, self.at) != self.at:
            return ""
        if verdict is not Verdict.INVALID:
            self._holds = True
            self._asked.clear()
            return ""
        self._invalid += 1
        if self._invalid < ENOUGH or self.at + 1 == len(self.rungs):
            return ""
        given_up = self.kind
        self.at, self._invalid = self.at + 1, 0
        reason = f" ({why})" if why else ""
        return f"{self.name}: {given_up} gave only invalid tests{reason}; {self.kind} instead"


# -------------------------------------------------------------------------------------------------

_LOW_WEIGHT = 0.25
"""Of all features of a short test: so many of its steps are run."""
_THROUGH = 0.2
"""What a hit of a stand-in counts, until its goal has been hit often enough."""
_OFTEN = 12
"""Hits of a goal after which its stand-in no longer counts."""
_HOPE, _DOUBT = (1.0, 1.0), (0.5, 2.0)
"""Hits and misses that a way is thought to have had before its first test. Triggers alone, of
merged aims, hit most wherever they hit at all (see ``benchmarks/directed.py``), so the other ways
are tried where they do not: a few hundred tests are too few to try everything."""
_BORROWED = 2.0
"""Tests of average cost that a way is thought to have had before its first."""


@dataclasses.dataclass
class _Way:
    """A way to aim, with its own turns, and what came of its tests."""

    single: str
    merge: str
    aims: tuple[Aim, ...]
    short: bool = False
    surest: bool = False
    turn: int = 0
    tests: int = 0
    reward: float = 0.0
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """As it is told: ``certain triggers-only/aggressive``."""
        words = ("short " * self.short, "certain " * self.surest, self.single)
        return f"{''.join(words)}/{self.merge}"

    def propose(self, space: Space, rng: Stream) -> Proposal:
        """A configuration for the next of its aims."""
        number = self.turn % len(self.aims)
        self.turn += 1
        origin = f"{self.name} {number}"
        proposal = propose(self.single, self.aims[number], space, rng, origin)
        if not self.short:
            return proposal
        low = [_LOW_WEIGHT * weight for weight in proposal.configuration.weights]
        return weigh(space, low, rng, proposal.propensities, origin)

    def promise(self, rng: Stream, usual: float) -> float:
        """Hits per second, drawn from what may be true; `usual` seconds for a test."""
        likely = self.single == TRIGGERS_ONLY and self.merge == AGGRESSIVE
        hits, misses = _HOPE if likely else _DOUBT
        share = rng.betavariate(hits + self.reward, misses + self.tests - self.reward)
        cost = (self.seconds + _BORROWED * usual) / (self.tests + _BORROWED)
        return share / cost


class Adaptive:
    """Directed tests that go to where hits per CPU second are found to be most.

    >>> from swarmtest.strategies.directed.aim import Goal
    >>> full = Aim((Goal("event:full"),), triggers={"push"}, suppressors={"pop"})
    >>> "pop" in Adaptive([full]).ask(Space(["push", "pop", "add"]), 0, Stream()).configuration
    False
    """

    strategy_name: ClassVar[str] = "adaptive"

    def __init__(
        self,
        aims: Iterable[Aim],
        floor: float = 0.05,
        weighted: bool = True,
        merging: Merging | None = None,
    ) -> None:
        """`weighted`: weights between 0 and 1 mean something. `merging`: if it is known already."""
        self.aims = tuple(aims)
        if not self.aims:
            raise UserError("strategy 'adaptive' needs something to aim at: no aim is given")
        if not 0 <= floor <= 1:
            raise UserError(f"strategy 'adaptive': floor is from 0 to 1, not {floor:g}")
        self.floor = floor
        self.weighted = weighted
        self.merging = merging or merged(self.aims, AGGRESSIVE)
        self.notes: list[str] = []
        self._hits = {goal.target: 0 for aim in self.aims for goal in aim.goals}
        self._goals = tuple({g.target: g for aim in self.aims for g in aim.goals}.values())
        self._ways: list[_Way] = []
        self._pending: dict[int, _Way | None] = {}
        self._space: Space | None = None
        self._asked = 0
        self._tests = 0
        self._seconds = 0.0

    @property
    def wants(self) -> frozenset[str]:
        """The targets that it learns from."""
        return frozenset(name for goal in self._goals for name in (goal.target, *goal.through))

    def prepare(self, space: Space) -> None:
        """Find the ways that differ in a space."""
        same, self._space = self._space == space, space
        if same:
            return
        known: set[Any] = set()
        self._ways = []
        for way in self._all_ways():
            plans = [fitted(way.single, a.triggers, a.suppressors, space) for a in way.aims]
            key = (way.short, frozenset(plan.rates for plan in plans))
            if key not in known:
                known.add(key)
                self._ways.append(way)
        self.notes = sorted(
            {
                f"{', '.join(aim.targets[:3])}: {note}"
                for aim in self.aims
                for note in fitted(HALF_SWARM, aim.triggers, aim.suppressors, space).notes
            }
        )

    def _all_ways(self) -> Iterable[_Way]:
        for merge, aims in ((AGGRESSIVE, self.merging.aims), (ROUND_ROBIN, self.aims)):
            surest = tuple(
                dataclasses.replace(a, triggers=a.surest, certain=frozenset()) for a in aims
            )
            yield _Way(TRIGGERS_ONLY, merge, surest, surest=True)
            if self.weighted:
                yield _Way(TRIGGERS_ONLY, merge, surest, short=True, surest=True)
            for single in (TRIGGERS_ONLY, HALF_SWARM, NO_SUPPRESSORS):
                yield _Way(single, merge, aims)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """A configuration of the way that promises most, or a fresh one for who was hit least."""
        if self._space is not space:
            self.prepare(space)
        self._asked += 1
        if int(self._asked * self.floor) > int((self._asked - 1) * self.floor):
            self._pending[trial] = None
            number = min(range(len(self.aims)), key=lambda n: self._least(self.aims[n]))
            return propose(HALF_SWARM, self.aims[number], space, rng, f"floor {number}")
        usual = self._usual_seconds
        draws = rng.split("*ways")
        way = max(self._ways, key=lambda one: one.promise(draws, usual))
        self._pending[trial] = way
        return way.propose(space, rng)

    def tell(self, result: Result) -> None:
        """Count hits and time for the way that the test came from."""
        way = self._pending.pop(result.trial, None)
        reward = self._reward(result)
        # What a test waits for may be a program that it started, whose CPU time nobody tells.
        seconds = max(result.cpu_seconds, result.wall_seconds, 1e-9)
        if result.verdict is Verdict.INVALID:
            # A test that ends before it begins takes no time: that is no bargain.
            seconds = max(seconds, self._usual_seconds)
        self._tests += 1
        self._seconds += seconds
        if way is not None:
            way.tests += 1
            way.reward += reward
            way.seconds += seconds

    @property
    def _usual_seconds(self) -> float:
        return self._seconds / self._tests if self._tests else 1.0

    def _reward(self, result: Result) -> float:
        """The share of the goals that a test hit."""
        if result.verdict is Verdict.INVALID:
            return 0.0
        hit = set(result.hits)
        if result.fault is not None:
            hit.add(f"fault:{result.fault.id}")
        return sum(self._worth(goal, hit) for goal in self._goals) / len(self._goals)

    def _worth(self, goal: Goal, hit: set[str]) -> float:
        if goal.target in hit:
            self._hits[goal.target] += 1
            return 1.0
        near = self._hits[goal.target] < _OFTEN and any(name in hit for name in goal.through)
        return _THROUGH if near else 0.0

    def _least(self, aim: Aim) -> int:
        return min(self._hits[target] for target in aim.targets)

    def to_plan(self) -> dict[str, Any]:
        """Plain data from which `from_plan` makes the same strategy, without merging again."""
        return {
            "strategy": self.strategy_name,
            "aims": [aim.to_json() for aim in self.aims],
            "floor": self.floor,
            "weighted": self.weighted,
            "merging": self.merging.to_json(),
        }

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any]) -> Adaptive:
        """The strategy that `to_plan` described."""
        aims = map(Aim.from_json, plan["aims"])
        return cls(aims, plan["floor"], plan["weighted"], Merging.from_json(plan["merging"]))
