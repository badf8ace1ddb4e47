"""A portfolio of directed strategies that take turns (directed swarm, section 8.2).

"One reasonable approach is to extend the diversity-centric ideas of swarm testing to strategy
selection, and run in parallel directed tests for a change set using all of the viable strategies."
The members are the nine strategies of the paper, without those that would propose the same as
another. A member whose tests are all invalid retires, and the others share its tests.

The module also makes directed strategies by name, and from the *plan* of a stored campaign, so that
it can be resumed: the aims of a directed strategy are too much for the text that names a strategy.
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
"""A member retires after this many tests, all of them invalid."""


class Portfolio:
    """A strategy that runs the paper's strategies in turn if they differ and give valid tests.

    >>> from swarmtest.strategies.directed.aim import Goal
    >>> full = Aim((Goal("event:full"),), triggers={"push"}, suppressors={"pop"})
    >>> space, portfolio = Space(["push", "pop", "add"]), Portfolio([full])
    >>> [portfolio.ask(space, trial, Stream(0, trial)).origin for trial in range(3)]
    ['half-swarm/round-robin 0', 'no-suppressors/round-robin 0', 'triggers-only/round-robin 0']
    """

    strategy_name: ClassVar[str] = "portfolio"
    wants: ClassVar[frozenset[str]] = frozenset()
    """It learns from no hits."""

    def __init__(self, aims: Iterable[Aim], mergings: Mapping[str, Merging] | None = None) -> None:
        """Create the portfolio; `mergings` are the merged aims by way to merge, if known."""
        self.aims = tuple(aims)
        if not self.aims:
            raise UserError("a portfolio needs something to aim at: no aim is given")
        self.mergings = dict(mergings or {merge: merged(self.aims, merge) for merge in MERGES})
        self.notes: list[str] = []
        """Messages for the user: which members retired, and why."""
        self._members: list[_Member] = []
        self._active: list[_Member] = []
        self._asked = 0
        self._pending: dict[int, _Member] = {}
        self._space: Space | None = None

    def prepare(self, space: Space) -> None:
        """Find the members that differ in this space."""
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
        """Return the proposal of the member whose turn it is."""
        if self._space is not space:
            self.prepare(space)
        member = self._active[self._asked % len(self._active)]
        self._asked += 1
        self._pending[trial] = member
        return member.propose(space, rng)

    def tell(self, result: Result) -> None:
        """Retire a member that gives only invalid tests, unless it is the last one."""
        member = self._pending.pop(result.trial, None)
        if member is None or not member.should_retire(result) or len(self._active) == 1:
            return
        if member in self._active:
            self._active.remove(member)
            reason = f" ({result.missing})" if result.missing else ""
            self.notes.append(f"{member.name} gave only invalid tests{reason}; it is left out")

    def to_plan(self) -> dict[str, Any]:
        """Return plain data from which `from_plan` makes the same strategy, without merging."""
        return {
            "strategy": self.strategy_name,
            "aims": [aim.to_json() for aim in self.aims],
            "mergings": {merge: merging.to_json() for merge, merging in self.mergings.items()},
        }

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any]) -> Portfolio:
        """Return the strategy that `to_plan` described."""
        mergings = {merge: Merging.from_json(data) for merge, data in plan["mergings"].items()}
        return cls(map(Aim.from_json, plan["aims"]), mergings)


@dataclasses.dataclass
class _Member:
    """One of the nine strategies, with its own turn among the aims and its results."""

    single: str
    merge: str
    aims: tuple[Aim, ...]
    turn: int = 0
    results: int = 0
    was_valid: bool = False
    """Whether any of its tests was valid."""

    @property
    def name(self) -> str:
        """Its name in tables, such as ``half-swarm/aggressive``."""
        return f"{self.single}/{self.merge}"

    def propose(self, space: Space, rng: Stream) -> Proposal:
        """Propose a configuration for the next of its aims."""
        number = self.turn % len(self.aims)
        self.turn += 1
        return propose(self.single, self.aims[number], space, rng, f"{self.name} {number}")

    def should_retire(self, result: Result) -> bool:
        """Count a result and return whether the member should retire now."""
        if result.verdict is not Verdict.INVALID:
            self.was_valid = True
        self.results += 1
        return not self.was_valid and self.results >= PATIENCE


# Directed strategies by name, and from a stored plan.

STRATEGIES = ("adaptive", "portfolio", *SINGLES)
"""The names of the directed strategies, the default first."""
_CLASSES: dict[str, Any] = {"directed": Directed, "portfolio": Portfolio, "adaptive": Adaptive}


def directed_strategy(
    name: str, aims: Sequence[Aim], merge: str = "", weighted: bool = True
) -> LearningStrategy:
    """Return the directed strategy with this name for these aims.

    `merge` is for the strategies of the paper; the default is aggressive.
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
    """Return the strategy that a campaign's plan describes."""
    kind = plan.get("strategy", "")
    if kind == "controlled":
        directed = strategy_of_plan(plan["directed"])
        assert isinstance(directed, LearningStrategy)
        return Controlled(directed, plan["undirected"], plan["share"])
    if kind not in _CLASSES:
        raise UserError(f"the campaign's plan has a strategy {kind!r} that is not known here")
    strategy: Strategy = _CLASSES[kind].from_plan(plan)
    return strategy
