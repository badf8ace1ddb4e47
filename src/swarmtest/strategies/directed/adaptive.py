"""Directed strategies that learn during a campaign how to aim: a bandit, and a ladder.

The paper ends with "it is surprising how difficult it is to identify a single best strategy"
(section 8.2). `Adaptive` begins with the one that is best wherever it works, triggers-only for
merged aims, and leaves it only on evidence. It is a bandit whose arms (`arms.Arms`) are

- for each merged aim: triggers-only, half-swarm and no-suppressors;
- triggers-only with the triggers that are *certain*: of dozens of features some look like triggers
  by chance, and each one that is not needed takes steps, and time, from those that are; and the
  same with a coin for each trigger that is not certain;
- triggers-only for one of the aims that were merged, since a merged aim has more features;
- triggers-only and no-suppressors for all aims at once. Aims conflict if a feature triggers one
  and suppresses the other, but many suppressors only take steps from what is needed, and a test
  that hits everything is worth more than tests that take turns;
- triggers-only at low weights, if the subject supports weights: shorter tests, which often hit as
  well.

The most promising arm is that with most hits per CPU second. Of two tests, one takes the best arm
for all goals. The other is for the merged aim whose turn it is, so that no aim is forgotten because
another one is easier.

Invariants:

- No configuration contains a suppressor of the aim that it is for (as far as the space allows).
  Where it is for all aims, only suppressors that trigger none of them are left out.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from swarmtest.core.errors import UserError
from swarmtest.core.result import Result, Verdict
from swarmtest.core.sampling import Proposal, weigh
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.strategies.directed.aim import (
    HALF_SWARM,
    RUNGS,
    Aim,
    Goal,
    fitted,
    propose,
)
from swarmtest.strategies.directed.arms import (
    ALONE,
    CERTAIN,
    HALF,
    LENGTHS,
    PLAIN,
    REST,
    SINGLE_OF_KIND,
    TOGETHER,
    TOSSED,
    Arm,
    Arms,
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

_THROUGH_REWARD = 0.2
"""The reward for a hit of a goal's `through` target, until the goal has been hit often enough."""
_OFTEN = 12
"""After this many hits of a goal, its `through` targets no longer count."""
FLOOR = 0.02
"""The default share of half-swarm tests for the aim whose goals were hit least."""
_TURNS = 2
"""Of so many tests, one is for the merged aim whose turn it is; the others are for the best arm."""


def _lean(aim: Aim) -> Aim:
    return dataclasses.replace(aim, triggers=aim.surest, certain=frozenset())


def _united(aims: Sequence[Aim]) -> Aim:
    """Return an aim at everything at once: what triggers one aim is on, also if it suppresses."""
    triggers = frozenset[str]().union(*(aim.surest for aim in aims))
    suppressors = frozenset[str]().union(*(aim.suppressors for aim in aims)) - triggers
    return Aim(tuple(goal for aim in aims for goal in aim.goals), triggers, suppressors)


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
        floor: float = FLOOR,
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
        self._arms = Arms((), ())
        self._own = [frozenset(aim.targets) for aim in self.merging.aims]
        self._own.append(frozenset(goal.target for goal in self._goals))
        self._pending: dict[int, int] = {}
        self._space: Space | None = None
        self._asked = self._turn = 0
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
        self._arms = Arms([*self._different(space)], [len(aim.goals) for aim in self.merging.aims])
        self.notes = sorted(
            {
                f"{', '.join(aim.targets[:3])}: {note}"
                for aim in self.aims
                for note in fitted(HALF_SWARM, aim.triggers, aim.suppressors, space).notes
            }
        )

    def _different(self, space: Space) -> Iterator[Arm]:
        """Yield the arms that differ in this space."""
        seen: set[Any] = set()
        lengths = range(len(LENGTHS)) if self.weighted else range(1)
        for kind, group, aim, place in self._ways():
            single = SINGLE_OF_KIND[kind]
            doubtful = aim.triggers - aim.surest if kind == TOSSED else frozenset()
            plan = fitted(single, aim.triggers, aim.suppressors, space, doubtful)
            if (group, plan.rates) not in seen:
                seen.add((group, plan.rates))
                size = sum(plan.rates)
                for length in lengths if kind not in (HALF, REST) else range(1):
                    yield Arm(kind, length, group, aim, place, size)

    def _ways(self) -> Iterator[tuple[int, int, Aim, str]]:
        """Yield kind, group and aim of all arms, and the end of their origins."""
        numbers = {target: n for n, aim in enumerate(self.aims) for target in aim.targets}
        for group, aim in enumerate(self.merging.aims):
            place = f"{AGGRESSIVE} {group}"
            yield PLAIN, group, aim, place
            yield CERTAIN, group, _lean(aim), place
            if aim.triggers:
                yield TOSSED, group, aim, place
            for number in dict.fromkeys(numbers[target] for target in aim.targets):
                yield ALONE, group, _lean(self.aims[number]), f"{ROUND_ROBIN} {number}"
            yield HALF, group, aim, place
            yield REST, group, aim, place
        if len(self.merging.aims) > 1 and all(aim.triggers for aim in self.aims):
            group, aim = len(self.merging.aims), _united(self.aims)
            yield TOGETHER, group, aim, "all 0"
            yield REST, group, aim, "all 0"

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose a configuration of the most promising arm, or, for `floor`, a half-swarm one."""
        if self._space is not space:
            self.prepare(space)
        self._asked += 1
        if int(self._asked * self.floor) > int((self._asked - 1) * self.floor):
            number = min(range(len(self.aims)), key=lambda n: self._fewest_hits(self.aims[n]))
            return propose(HALF_SWARM, self.aims[number], space, rng, f"floor {number}")
        self._turn += 1
        turn, is_free = divmod(self._turn, _TURNS)
        groups = len(self.merging.aims)
        position = self._arms.best(
            rng.split("*ways"), None if is_free or groups == 1 else turn % groups
        )
        self._pending[trial] = position
        return self._proposal(self._arms.arms[position], space, rng)

    def _proposal(self, arm: Arm, space: Space, rng: Stream) -> Proposal:
        proposal = propose(SINGLE_OF_KIND[arm.kind], arm.aim, space, rng, arm.origin)
        if not arm.length:
            return proposal
        low = [LENGTHS[arm.length] * weight for weight in proposal.configuration.weights]
        return weigh(space, low, rng, proposal.propensities, arm.origin)

    def tell(self, result: Result) -> None:
        """Count hits and time for the arm that proposed the test."""
        position = self._pending.pop(result.trial, None)
        worth = self._worths(result)
        # A subject that waits for a program may not know that program's CPU time.
        seconds = max(result.cpu_seconds or result.wall_seconds, 1e-9)
        if result.verdict is Verdict.INVALID:
            # An invalid test may take no time; without this, it would look cheap.
            seconds = max(seconds, self._usual_seconds)
        self._tests += 1
        self._seconds += seconds
        if position is not None:
            own = self._own[self._arms.arms[position].group]
            self._arms.note(
                position,
                sum(worth.values()) / len(self._goals),
                sum(value for name, value in worth.items() if name in own) / len(own),
                seconds,
            )

    @property
    def _usual_seconds(self) -> float:
        return self._seconds / self._tests if self._tests else 1.0

    def _worths(self, result: Result) -> dict[str, float]:
        """Return what a test is worth for each goal that it hit or came near."""
        if result.verdict is Verdict.INVALID:
            return {}
        hit = set(result.hits)
        if result.fault is not None:
            hit.add(f"fault:{result.fault.id}")
        worths = ((goal.target, self._worth(goal, hit)) for goal in self._goals)
        return {target: worth for target, worth in worths if worth}

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
