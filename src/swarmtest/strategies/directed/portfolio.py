"""A swarm of strategies: all that work take turns (directed swarm, section 8.2).

"One reasonable approach is to extend the diversity-centric ideas of swarm testing to strategy
selection, and run in parallel directed tests for a change set using all of the viable strategies."
The members are the nine of the paper, less those that would propose the same as another. One whose
tests are all invalid retires, and the others share its tests.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.strategies.directed.adaptive import Adaptive
from swarmtest.strategies.directed.aim import Aim
from swarmtest.strategies.directed.directed import Controlled, Directed
from swarmtest.strategies.directed.merging import MERGES, Merging, merged
from swarmtest.strategies.directed.single import SINGLES, fitted, propose
from swarmtest.strategies.strategy import LearningStrategy, Strategy

PATIENCE = 10
"""So many tests of a member, all invalid, and it retires."""


class Portfolio:
    """The paper's strategies in turn, as far as they differ and give valid tests.

    >>> from swarmtest.strategies.directed.aim import Goal
    >>> full = Aim((Goal("event:full"),), triggers={"push"}, suppressors={"pop"})
    >>> space, portfolio = Space(["push", "pop", "add"]), Portfolio([full])
    >>> [portfolio.ask(space, trial, Stream(0, trial)).origin for trial in range(3)]
    ['half-swarm/round-robin 0', 'no-suppressors/round-robin 0', 'triggers-only/round-robin 0']
    """

    strategy_name: ClassVar[str] = "portfolio"
    wants: ClassVar[frozenset[str]] = frozenset()
    """It needs to know no hits."""

    def __init__(self, aims: Iterable[Aim], mergings: Mapping[str, Merging] | None = None) -> None:
        """`mergings`: the merged aims of each way to merge, if they are known."""
        self.aims = tuple(aims)
        if not self.aims:
            raise UserError("a portfolio needs something to aim at: no aim is given")
        self.mergings = dict(mergings or {merge: merged(self.aims, merge) for merge in MERGES})
        self.notes: list[str] = []
        """Who retired, and why."""
        self._members: list[_Member] = []
        self._active: list[_Member] = []
        self._asked = 0
        self._pending: dict[int, _Member] = {}
        self._space: Space | None = None

    def prepare(self, space: Space) -> None:
        """Find the members that differ in a space."""
        if self._space == space:
            return
        self._space = space
        seen: set[Any] = set()
        self._members = []
        for merge, merging in self.mergings.items():
            for single in SINGLES:
                plans = [fitted(single, a.triggers, a.suppressors, space) for a in merging.aims]
                key = tuple(plan.rates for plan in plans)
                if key not in seen:
                    seen.add(key)
                    self._members.append(_Member(single, merge, merging.aims))
        self._active = list(self._members)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """A configuration of the member whose turn it is."""
        if self._space is not space:
            self.prepare(space)
        member = self._active[self._asked % len(self._active)]
        self._asked += 1
        self._pending[trial] = member
        return member.propose(space, rng)

    def tell(self, result: Result) -> None:
        """Retire a member that gives only invalid tests, unless it is the last."""
        member = self._pending.pop(result.trial, None)
        if member is None or not member.told(result) or len(self._active) == 1:
            return
        if member in self._active:
            self._active.remove(member)
            reason = f" ({result.missing})" if result.missing else ""
            self.notes.append(f"{member.name} gave only invalid tests{reason}; it is left out")

    def to_plan(self) -> dict[str, Any]:
        """Plain data from which `from_plan` makes the same strategy, without merging again."""
        return {
            "strategy": self.strategy_name,
            "aims": [aim.to_json() for aim in self.aims],
            "mergings": {merge: one.to_json() for merge, one in self.mergings.items()},
        }

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any]) -> Portfolio:
        """The strategy that `to_plan` described."""
        mergings = {merge: Merging.from_json(one) for merge, one in plan["mergings"].items()}
        return cls(map(Aim.from_json, plan["aims"]), mergings)


@dataclasses.dataclass
class _Member:
    """One of the nine, with its own round-robin and what came of its tests."""

    single: str
    merge: str
    aims: tuple[Aim, ...]
    turn: int = 0
    invalid: int = 0
    holds: bool = False
    """Whether a test of it was valid."""

    @property
    def name(self) -> str:
        """As in tables: ``half-swarm/aggressive``."""
        return f"{self.single}/{self.merge}"

    def propose(self, space: Space, rng: Stream) -> Proposal:
        """A configuration for the next of its aims."""
        number = self.turn % len(self.aims)
        self.turn += 1
        return propose(self.single, self.aims[number], space, rng, f"{self.name} {number}")

    def told(self, result: Result) -> bool:
        """Whether it should retire now."""
        if result.verdict is not Verdict.INVALID:
            self.holds = True
        self.invalid += 1
        return not self.holds and self.invalid >= PATIENCE


# -------------------------------------------------------------------------------------------------
# Directed strategies as plain data, so that a stored campaign can go on.
#
# What a directed strategy aims at is too much for the text that names a strategy; a campaign keeps
# it
# as its *plan*.

STRATEGIES = ("adaptive", "portfolio", *SINGLES)
"""What can be asked for by name, the default first."""
_KINDS: dict[str, Any] = {"directed": Directed, "portfolio": Portfolio, "adaptive": Adaptive}


def directed_strategy(
    name: str, aims: Sequence[Aim], merge: str = "", weighted: bool = True
) -> LearningStrategy:
    """The directed strategy of this name for these aims.

    `merge` is for the strategies of the paper; aggressive unless given.
    """
    if name not in STRATEGIES:
        raise UserError(f"no directed strategy is called {name!r}{did_you_mean(name, STRATEGIES)}")
    if merge and merge not in MERGES:
        raise UserError(f"no way of merging is called {merge!r}{did_you_mean(merge, MERGES)}")
    if name in SINGLES:
        return Directed(aims, name, merge or "aggressive")
    if merge:
        raise UserError(f"strategy {name} decides itself what to merge: leave --merge out")
    return Portfolio(aims) if name == "portfolio" else Adaptive(aims, weighted=weighted)


def strategy_of_plan(plan: Mapping[str, Any]) -> Strategy:
    """The strategy that a campaign's plan describes."""
    kind = plan.get("strategy", "")
    if kind == "controlled":
        directed = strategy_of_plan(plan["directed"])
        assert isinstance(directed, LearningStrategy)
        return Controlled(directed, plan["undirected"], plan["share"])
    if kind not in _KINDS:
        raise UserError(f"the campaign's plan has a strategy {kind!r} that is not known here")
    made: Strategy = _KINDS[kind].from_plan(plan)
    return made
