"""Directed strategies that learn during a campaign how to aim: a bandit, and a ladder.

The paper ends with "it is surprising how difficult it is to identify a single best strategy"
(section 8.2). `Adaptive` chooses none beforehand. It is a bandit whose arms are

- the paper's three single-target strategies, for each aim in turn and for merged aims in turn;
- triggers-only with the triggers that are *certain*: of dozens of features some look like triggers
  by chance, and each one that is not needed takes steps, and time, from those that are;
- the same at a low weight, if the subject supports weights: shorter tests, which often hit as well.

Each arm counts hits and CPU time; Thompson sampling chooses the one that promises most hits per CPU
second. So an arm that is useless for a target (triggers-only if the target needs a feature that
looks irrelevant) is abandoned after some tests, and the best one is found.

Invariants:

- No configuration contains a suppressor of the aim that it is for (as far as the space allows).
- At least `floor` of the tests are half-swarm tests for the aim whose goals were hit least, so that
  no goal starves and there are always new configurations.
- Its proposals depend only on the random streams and the results that it gets.

`Ladder` is for aims whose configurations give no valid test. Some generators make nothing valid of
very few features (directed swarm, section 4.1: triggers-only "may frequently fail"). After a few
tests that were all invalid, an aim goes down one rung:

    triggers-only -> half-swarm -> no-suppressors -> coin-without-suppressors -> coin

Each rung gives the generator more freedom than the one before; the last is undirected swarm
testing, which includes the suppressors. Rungs that are the same for an aim count as one (an aim
without triggers and suppressors has only the coin, or everything). After one valid test, the aim
stays where it is.
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
from swarmtest.strategies.directed.aim import (
    HALF_SWARM,
    NO_SUPPRESSORS,
    RUNGS,
    TRIGGERS_ONLY,
    Aim,
    Goal,
    fitted,
    propose,
)
from swarmtest.strategies.directed.merging import AGGRESSIVE, ROUND_ROBIN, Merging, merged

# The ladder.

ENOUGH = 5
"""A rung is given up after this many tests, all of them invalid."""


def rungs_of(single: str, aim: Aim, space: Space) -> tuple[str, ...]:
    """Return the rungs from `single` down that differ for this aim.

    >>> from swarmtest.strategies.directed.aim import Goal
    >>> full = Aim((Goal("event:full"),), suppressors={"pop"})
    >>> rungs_of("triggers-only", full, Space(["push", "pop", "add"]))
    ('half-swarm', 'no-suppressors', 'coin')
    """
    kinds: dict[tuple[float, ...], str] = {}
    for kind in RUNGS[RUNGS.index(single) :]:
        plan = fitted(kind, aim.triggers, aim.suppressors, space)
        kinds.setdefault(plan.rates, plan.kind)
    return tuple(kinds.values())


@dataclass
class Ladder:
    """The rungs of one aim, and the rung that it is on."""

    name: str
    """The name of the aim, for notes."""
    rungs: tuple[str, ...]
    at: int = 0
    _invalid: int = 0
    _was_valid: bool = False
    """Whether a test of this rung was valid."""
    _asked: dict[int, int] = field(default_factory=dict)
    """The rung of each trial whose result is not known yet."""

    @property
    def kind(self) -> str:
        """The kind of the next configuration."""
        return self.rungs[self.at]

    def note_proposal(self, trial: int) -> None:
        """Note that a test of the current rung was proposed."""
        if not self._was_valid:
            self._asked[trial] = self.at

    def note_result(self, trial: int, verdict: Verdict, why: str) -> str:
        """Count a result; return a note if the aim goes down a rung, otherwise an empty string.

        Trials that were not proposed here belong to an earlier run, which is resumed.
        """
        if self._was_valid or self._asked.pop(trial, self.at) != self.at:
            return ""
        if verdict is not Verdict.INVALID:
            self._was_valid = True
            self._asked.clear()
            return ""
        self._invalid += 1
        if self._invalid < ENOUGH or self.at + 1 == len(self.rungs):
            return ""
        given_up = self.kind
        self.at, self._invalid = self.at + 1, 0
        reason = f" ({why})" if why else ""
        return f"{self.name}: {given_up} gave only invalid tests{reason}; {self.kind} instead"


# The bandit.

_LOW_WEIGHT = 0.25
"""The weight of all features of a short test, and so the share of its steps that are run."""
_THROUGH_REWARD = 0.2
"""The reward for a hit of a goal's `through` target, until the goal has been hit often enough."""
_OFTEN = 12
"""After this many hits of a goal, its `through` targets no longer count."""
_LIKELY_PRIOR, _UNLIKELY_PRIOR = (1.0, 1.0), (0.5, 2.0)
"""The prior hits and misses of an arm. Triggers-only for merged aims hits most wherever it hits at
all (see ``benchmarks/directed.py``), so the other arms are tried where it does not: a few hundred
tests are too few to try everything."""
_PRIOR_TESTS = 2.0
"""The prior number of tests of an arm, with average cost."""


@dataclasses.dataclass
class _Arm:
    """A way to aim, with its own turn among the aims and its results."""

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
        """Its name in origins, such as ``certain triggers-only/aggressive``."""
        words = ("short " * self.short, "certain " * self.surest, self.single)
        return f"{''.join(words)}/{self.merge}"

    def propose(self, space: Space, rng: Stream) -> Proposal:
        """Propose a configuration for the next of its aims."""
        number = self.turn % len(self.aims)
        self.turn += 1
        origin = f"{self.name} {number}"
        proposal = propose(self.single, self.aims[number], space, rng, origin)
        if not self.short:
            return proposal
        low = [_LOW_WEIGHT * weight for weight in proposal.configuration.weights]
        return weigh(space, low, rng, proposal.propensities, origin)

    def promise(self, rng: Stream, usual: float) -> float:
        """Draw the arm's hits per second from its posterior; a test usually takes `usual`."""
        likely = self.single == TRIGGERS_ONLY and self.merge == AGGRESSIVE
        hits, misses = _LIKELY_PRIOR if likely else _UNLIKELY_PRIOR
        share = rng.betavariate(hits + self.reward, misses + self.tests - self.reward)
        cost = (self.seconds + _PRIOR_TESTS * usual) / (self.tests + _PRIOR_TESTS)
        return share / cost


class Adaptive:
    """A directed strategy that learns which way of aiming gives the most hits per CPU second.

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
        """Create the strategy.

        `weighted` says that the subject supports weights between 0 and 1; `merging` are the merged
        aims, if they are known already.
        """
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
        self._arms: list[_Arm] = []
        self._pending: dict[int, _Arm | None] = {}
        self._space: Space | None = None
        self._asked = 0
        self._tests = 0
        self._seconds = 0.0

    @property
    def wants(self) -> frozenset[str]:
        """The targets that it learns from."""
        return frozenset(name for goal in self._goals for name in (goal.target, *goal.through))

    def prepare(self, space: Space) -> None:
        """Find the arms that differ in this space."""
        same, self._space = self._space == space, space
        if same:
            return
        seen: set[Any] = set()
        self._arms = []
        for arm in self._all_arms():
            plans = [fitted(arm.single, a.triggers, a.suppressors, space) for a in arm.aims]
            key = (arm.short, frozenset(plan.rates for plan in plans))
            if key not in seen:
                seen.add(key)
                self._arms.append(arm)
        self.notes = sorted(
            {
                f"{', '.join(aim.targets[:3])}: {note}"
                for aim in self.aims
                for note in fitted(HALF_SWARM, aim.triggers, aim.suppressors, space).notes
            }
        )

    def _all_arms(self) -> Iterable[_Arm]:
        for merge, aims in ((AGGRESSIVE, self.merging.aims), (ROUND_ROBIN, self.aims)):
            surest = tuple(
                dataclasses.replace(a, triggers=a.surest, certain=frozenset()) for a in aims
            )
            yield _Arm(TRIGGERS_ONLY, merge, surest, surest=True)
            if self.weighted:
                yield _Arm(TRIGGERS_ONLY, merge, surest, short=True, surest=True)
            for single in (TRIGGERS_ONLY, HALF_SWARM, NO_SUPPRESSORS):
                yield _Arm(single, merge, aims)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose a configuration of the most promising arm, or, for `floor`, a half-swarm one."""
        if self._space is not space:
            self.prepare(space)
        self._asked += 1
        if int(self._asked * self.floor) > int((self._asked - 1) * self.floor):
            self._pending[trial] = None
            number = min(range(len(self.aims)), key=lambda n: self._fewest_hits(self.aims[n]))
            return propose(HALF_SWARM, self.aims[number], space, rng, f"floor {number}")
        usual = self._usual_seconds
        draws = rng.split("*ways")
        best = max(self._arms, key=lambda arm: arm.promise(draws, usual))
        self._pending[trial] = best
        return best.propose(space, rng)

    def tell(self, result: Result) -> None:
        """Count hits and time for the arm that proposed the test."""
        arm = self._pending.pop(result.trial, None)
        reward = self._reward(result)
        # A test may wait for a program that it started, whose CPU time is not known.
        seconds = max(result.cpu_seconds, result.wall_seconds, 1e-9)
        if result.verdict is Verdict.INVALID:
            # An invalid test may take no time; without this, it would look cheap.
            seconds = max(seconds, self._usual_seconds)
        self._tests += 1
        self._seconds += seconds
        if arm is not None:
            arm.tests += 1
            arm.reward += reward
            arm.seconds += seconds

    @property
    def _usual_seconds(self) -> float:
        return self._seconds / self._tests if self._tests else 1.0

    def _reward(self, result: Result) -> float:
        """Return the share of the goals that a test hit."""
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
        return _THROUGH_REWARD if near else 0.0

    def _fewest_hits(self, aim: Aim) -> int:
        return min(self._hits[target] for target in aim.targets)

    def to_plan(self) -> dict[str, Any]:
        """Return plain data from which `from_plan` makes the same strategy, without merging."""
        return {
            "strategy": self.strategy_name,
            "aims": [aim.to_json() for aim in self.aims],
            "floor": self.floor,
            "weighted": self.weighted,
            "merging": self.merging.to_json(),
        }

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any]) -> Adaptive:
        """Return the strategy that `to_plan` described."""
        aims = map(Aim.from_json, plan["aims"])
        return cls(aims, plan["floor"], plan["weighted"], Merging.from_json(plan["merging"]))
