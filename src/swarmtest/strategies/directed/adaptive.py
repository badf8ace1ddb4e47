"""Learning where to aim while it runs: a model of hits per CPU second, and Thompson sampling.

The paper ends with "it is surprising how difficult it is to identify a single best strategy"
(section 8.2). Here none is chosen beforehand: the candidates are what the paper's strategies would
propose, for each aim and for the merged aims, and what lies around and between (`candidates`); a
model of what they hit and what they cost is learnt from every result (`rate_model`).

Invariants:

- No configuration contains a suppressor of the aim that it is for (as far as the space allows).
- At least `floor` of the tests are fresh draws with nearly all triggers and a few other features,
  for the merged aims in turn and for the goal that was hit least: no goal starves, and there is
  always variety. (Half-swarm tests there took 11 to 15% of the hits where triggers-only is best.)
- A goal that was hit rarely counts for more, so not all goes to the goals that are easy.
- What it does depends on the streams it is given and on what it was told, on nothing else.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from swarmtest.errors import UserError
from swarmtest.result import Result, Verdict
from swarmtest.seeds import Stream
from swarmtest.space import Proposal, Space, toss
from swarmtest.strategies.directed.aim import Aim
from swarmtest.strategies.directed.candidates import WEIGHTS, Candidate, Candidates, row_of
from swarmtest.strategies.directed.directed import name_of
from swarmtest.strategies.directed.merging import AGGRESSIVE, merged
from swarmtest.strategies.directed.rate_model import Floats
from swarmtest.strategies.directed.single import HALF_SWARM, fitted

_THROUGH = 0.2
"""What a hit of a stand-in counts, until its goal has been hit often enough."""
_OFTEN = 12
"""Hits of a goal after which its stand-in no longer counts."""
_AMONG = 24
"""The candidates among which one is chosen."""
_BLOCK = 16
"""Configurations that are chosen at a time: choosing one by one would cost several times more."""
_PARENTS = 32
"""Tests with more hits than usual, the latest, around which candidates are drawn."""
_EVENING_OUT = 0.5
"""A goal counts in proportion to its hitting fraction to the power of minus this."""


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
        floor: float = 0.2,
        weighted: bool = True,
        merging: Iterable[Aim] | None = None,
    ) -> None:
        """`weighted`: whether the subject knows weights between 0 and 1.

        `merging`: the merged aims, if they are known; merging anew may take a second.
        """
        self.aims = tuple(aims)
        if not self.aims:
            raise UserError("adaptive tests need something to aim at: no aim is given")
        if not 0 <= floor <= 1:
            raise UserError(f"the floor is a share of the tests, from 0 to 1, not {floor:g}")
        self.floor, self.weighted = floor, weighted
        self.merging = tuple(merged(self.aims, AGGRESSIVE).aims if merging is None else merging)
        self.notes: list[str] = []
        """What a user should know."""
        goals = [goal for aim in self.aims for goal in aim.goals]
        self._aim_of = {g.target: n for n, aim in enumerate(self.aims) for g in aim.goals}
        self._goal = {target: number for number, target in enumerate(self._aim_of)}
        self._through = [(self._goal[g.target], name) for g in goals for name in g.through]
        self.wants = frozenset(self._goal) | {name for _, name in self._through}
        """The targets that it learns from."""
        self.everything = (*self.aims, *(aim for aim in self.merging if aim not in self.aims))
        """All aims that tests are for, by the numbers that origins name."""
        self._hits = np.zeros(len(self._goal))
        self._tests = 0
        self._asked = 0
        self._floored = 0
        self._merged_of_goal = {
            self._goal[goal.target]: number
            for number, aim in enumerate(self.merging)
            for goal in aim.goals
        }
        self._queue: list[tuple[Candidate, str]] = []
        self._asked_for: dict[int, Candidate] = {}
        self._parents: deque[Candidate] = deque(maxlen=_PARENTS)
        self._space: Space | None = None

    def prepare(self, space: Space) -> None:
        """Get ready for a space."""
        if self._space == space:
            return
        self._space = space
        for aim in self.aims:
            for note in fitted(HALF_SWARM, aim.triggers, aim.suppressors, space).notes:
                self.notes.append(f"{name_of(aim.goals)}: {note}")
        weights = WEIGHTS if self.weighted else WEIGHTS[:1]
        self._candidates = Candidates(self.everything, space, weights)
        self._model = self._candidates.model(list(self._aim_of.values()))
        self._merged = [self.everything.index(aim) for aim in self.merging]
        self._queue.clear()

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """A configuration that seems best, or a fresh one for the goals that were hit least."""
        if not space.features:
            return toss(space, (), rng, "adaptive")
        if self._space is not space:
            self.prepare(space)
        if not self._queue:
            self._queue = self._block(rng)
        chosen, name = self._queue.pop()
        self._asked_for[trial] = chosen
        return self._candidates.propose(chosen, rng, f"adaptive {name} {chosen.aim}")

    def tell(self, result: Result) -> None:
        """Learn from a test, whoever asked for it."""
        if result.configuration is None or not result.configuration.space.features:
            return
        if self._space is None:
            self.prepare(result.configuration.space)
        hits = self._rewards(result)
        self._hits += hits
        self._tests += 1
        asked = self._asked_for.pop(result.trial, None)
        if asked is not None and hits.sum() * self._tests > self._hits.sum():
            self._parents.append(asked)
        constrained = result.configuration.space.clauses  # which may change what was asked for
        row = row_of(result.configuration) if asked is None or constrained else asked.row
        # What is not valid is often soon done: that must not make it look like a bargain.
        valid = result.verdict is not Verdict.INVALID
        self._model.learn(row, hits, result.cpu_seconds if valid else 0.0)

    def parameters_text(self) -> str:
        """What `strategy_text` prints after the name."""
        return f"floor={self.floor:g},weighted={'yes' if self.weighted else 'no'}"

    def to_plan(self) -> dict[str, Any]:
        """Plain data from which `from_plan` makes the same strategy, without merging again."""
        return {
            "strategy": self.strategy_name,
            "floor": self.floor,
            "weighted": self.weighted,
            "aims": [aim.to_json() for aim in self.aims],
            "merging": [aim.to_json() for aim in self.merging],
        }

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any]) -> Adaptive:
        """The strategy that `to_plan` described; it has learnt nothing yet."""
        aims, merging = map(Aim.from_json, plan["aims"]), map(Aim.from_json, plan["merging"])
        return cls(aims, plan["floor"], plan["weighted"], merging)

    def _block(self, rng: Stream) -> list[tuple[Candidate, str]]:
        """What comes next: fresh draws for the floor, and the best of many candidates each."""
        self._model.take_in()
        draws, weights = np.random.default_rng(rng.getrandbits(64)), self._goal_weights()
        self._asked += _BLOCK
        fresh = max(math.ceil(self.floor * self._asked) - self._floored, 0)
        found = []
        if fresh:
            sparse = self._candidates.sparse([self._next_of_floor() for _ in range(fresh)], draws)
            best = self._model.best(sparse.rows, weights, draws)
            found += [(one, "floor") for one in sparse.chosen(best)]
        if fresh < _BLOCK:
            aims = self._some_aims(_BLOCK - fresh, draws)
            parents = (
                [
                    self._parents[number]
                    for number in draws.integers(len(self._parents), size=len(aims) // 3).tolist()
                ]
                if self._parents
                else []
            )
            around = self._candidates.around(aims, parents, _AMONG, draws)
            best = self._model.best(around.rows, weights, draws)
            found += [(one, "model") for one in around.chosen(best)]
        order = draws.permutation(len(found)).tolist()
        return [found[number] for number in order]

    def _next_of_floor(self) -> int:
        """The merged aims in turn, and every other time that of the goal that was hit least."""
        turn, second = divmod(self._floored, 2)
        self._floored += 1
        number = turn % len(self._merged)
        if second:
            number = self._merged_of_goal[int(self._hits.argmin())]
        return self._merged[number]

    def _some_aims(self, groups: int, draws: np.random.Generator) -> npt.NDArray[np.int64]:
        """Aims for candidates: every other one a merged aim."""
        count = groups * _AMONG
        merged_ones = draws.choice(self._merged, size=count)
        any_ones = draws.integers(len(self.everything), size=count)
        return np.where(draws.random(count) < 0.5, merged_ones, any_ones)

    def _goal_weights(self) -> Floats:
        fractions = (self._hits + 1) / (self._tests + 2)
        weights: Floats = fractions**-_EVENING_OUT
        weights /= weights.mean()
        return weights

    def _rewards(self, result: Result) -> Floats:
        rewards = np.zeros(len(self._hits))
        if result.verdict is Verdict.INVALID:
            return rewards
        for number, name in self._through:
            if self._hits[number] < _OFTEN and name in result.hits:
                rewards[number] = _THROUGH
        names = (*result.hits, f"fault:{result.fault.id}") if result.fault else result.hits
        for name in names:
            number = self._goal.get(name, -1)
            if number >= 0:
                rewards[number] = 1.0
        return rewards
