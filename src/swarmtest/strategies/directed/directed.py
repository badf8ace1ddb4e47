"""Directed swarm testing: a single-target strategy for each of the (merged) aims, in turn.

The nine strategies of the paper (section 4) are its three single-target strategies times its three
ways to merge aims. Trial t is for aim t modulo the number of aims. `Directed` learns only one
thing: that the configurations of an aim give no valid tests, see `adaptive.Ladder`.

`Controlled` adds control tests for comparison. A ratio of hitting fractions says nothing if the two
were measured on different days, versions or machines. So a small share of a focused campaign's
tests is not directed: half of them are plain swarm tests, half have the default configuration. They
are spread evenly, they find faults like any other test, and their origin names them.

`Portfolio` lets several strategies take turns (section 8.2): "One reasonable approach is to extend
the diversity-centric ideas of swarm testing to strategy selection, and run in parallel directed
tests for a change set using all of the viable strategies." Its members are the nine strategies,
without those that would propose the same as another. A member whose tests are all invalid retires,
and the others share its tests.

`directed_strategy` makes directed strategies by name, and `strategy_of_plan` from the *plan* of a
stored campaign, so that it can be resumed: the aims of a directed strategy are too much for the
text that names a strategy.
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
from swarmtest.strategies.directed.adaptive import Adaptive, Ladder, rungs_of
from swarmtest.strategies.directed.aim import HALF_SWARM, SINGLES, Aim, Goal, fitted, propose
from swarmtest.strategies.directed.merging import MERGES, Merging, merged
from swarmtest.strategies.mixture import Turns
from swarmtest.strategies.simple import AllOn
from swarmtest.strategies.strategy import LearningStrategy, Strategy, parse_strategy, strategy_text


class Directed:
    """A strategy that aims at targets: half-swarm, no-suppressors or triggers-only.

    >>> full = Aim((Goal("event:full"),), triggers={"push"}, suppressors={"pop"})
    >>> directed = Directed([full], single="no-suppressors")
    >>> print(directed.ask(Space(["push", "pop", "add"]), 0, Stream()).configuration)
    push -pop add
    """

    strategy_name: ClassVar[str] = "directed"
    wants: ClassVar[frozenset[str]] = frozenset()
    """It learns from no hits."""

    def __init__(
        self,
        aims: Iterable[Aim],
        single: str = HALF_SWARM,
        merge: str = MERGES[0],
        merging: Merging | None = None,
    ) -> None:
        """Create the strategy; `merging` are the merged aims, if they are known already."""
        if single not in SINGLES:
            raise UserError(f"single is one of {', '.join(SINGLES)}{_meant(single, SINGLES)}")
        if merge not in MERGES:
            raise UserError(f"merge is one of {', '.join(MERGES)}{_meant(merge, MERGES)}")
        self.aims = tuple(aims)
        if not self.aims:
            raise UserError("directed tests need something to aim at: no aim is given")
        self.single, self.merge = single, merge
        self.merging = merging or merged(self.aims, merge)
        self.notes: list[str] = []
        """Messages for the user: what was not possible, and what is done instead."""
        self._space: Space | None = None
        self._ladders: list[Ladder] = []

    def prepare(self, space: Space) -> None:
        """Fit the aims to a space, and add what the space does not allow to `notes`."""
        if self._space == space:
            return
        aims = self.merging.aims
        notes: dict[str, list[Goal]] = {}
        for aim in aims:
            for note in fitted(self.single, aim.triggers, aim.suppressors, space).notes:
                notes.setdefault(note, []).extend(aim.goals)
        self.notes += [f"{name_of(goals)}: {note}" for note, goals in notes.items()]
        self._ladders = [
            Ladder(name_of(aim.goals), rungs_of(self.single, aim, space)) for aim in aims
        ]
        self._space = space

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose a configuration for the aim whose turn it is."""
        if self._space is not space:
            self.prepare(space)
        number = trial % len(self._ladders)
        ladder = self._ladders[number]
        ladder.note_proposal(trial)
        kind = ladder.kind
        return propose(kind, self.merging.aims[number], space, rng, f"{kind} {number}")

    def tell(self, result: Result) -> None:
        """Move an aim down a rung if it gives only invalid tests."""
        if self._ladders:
            ladder = self._ladders[result.trial % len(self._ladders)]
            note = ladder.note_result(result.trial, result.verdict, result.missing)
            if note:
                self.notes.append(note)

    def parameters_text(self) -> str:
        """Return what `strategy_text` prints after the name."""
        return f"single={self.single},merge={self.merge}"

    def to_plan(self) -> dict[str, Any]:
        """Return plain data from which `from_plan` makes the same strategy, without merging."""
        return {
            "strategy": self.strategy_name,
            "single": self.single,
            "merge": self.merge,
            "aims": [aim.to_json() for aim in self.aims],
            "merging": self.merging.to_json(),
        }

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any]) -> Directed:
        """Return the strategy that `to_plan` described."""
        aims = map(Aim.from_json, plan["aims"])
        return cls(aims, plan["single"], plan["merge"], Merging.from_json(plan["merging"]))


def name_of(goals: Sequence[Goal]) -> str:
    """Return a name for goals, for use in notes.

    >>> name_of([Goal("line:cart.py:9"), Goal("line:cart.py:12")])
    'line:cart.py:9 and 1 more'
    """
    more = f" and {len(goals) - 1} more" if len(goals) > 1 else ""
    return f"{goals[0].target}{more}" if goals else "an aim without goals"


def _meant(word: str, known: tuple[str, ...]) -> str:
    return f", not {word!r}{did_you_mean(word, known)}"


# Control tests.

UNDIRECTED, DEFAULT = "undirected", "default"
"""The origins of control tests."""
_DIRECTED = "directed"
_BLOCK = 200


class Controlled:
    """A directed strategy, with a share of control tests.

    >>> from swarmtest.strategies.directed.directed import Directed
    >>> from swarmtest.strategies.directed.aim import Aim, Goal
    >>> strategy = Controlled(Directed([Aim((Goal("event:full"),), {"push"}, {"pop"})]), share=0.1)
    >>> origins = [strategy.ask(Space(["push", "pop"]), t, Stream(0, t)).origin for t in range(200)]
    >>> origins.count("undirected"), origins.count("default")
    (10, 10)
    """

    def __init__(
        self, directed: LearningStrategy, undirected: str = "coin", share: float = 0.1
    ) -> None:
        if not 0 <= share <= 0.9:
            raise UserError(f"the share of control tests is from 0 to 0.9, not {share:g}")
        self.directed = directed
        self.share = share
        self._undirected_text = undirected
        self._members = {
            _DIRECTED: directed,
            UNDIRECTED: parse_strategy(undirected),
            DEFAULT: AllOn(),
        }
        each = round(_BLOCK * share / 2)
        controls = [UNDIRECTED] * each + [DEFAULT] * each
        self._turns = Turns([*controls, *[_DIRECTED] * (_BLOCK - 2 * each)], "controlled")

    @property
    def strategy_source(self) -> tuple[str, str]:
        """The name and arguments of the directed strategy, which are also its own."""
        head, _, arguments = strategy_text(self.directed).partition(":")
        return head, arguments

    @property
    def wants(self) -> frozenset[str]:
        """The targets that the directed strategy learns from."""
        names: frozenset[str] = getattr(self.directed, "wants", frozenset())
        return names

    @property
    def notes(self) -> list[str]:
        """The messages of the directed strategy."""
        return list(getattr(self.directed, "notes", ()))

    def prepare(self, space: Space) -> None:
        """Let the directed strategy prepare."""
        if hasattr(self.directed, "prepare"):
            self.directed.prepare(space)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Return the proposal of the member whose turn it is."""
        member, turn = self._turns.turn(trial)
        answer = self._members[member].ask(space, turn, rng)
        proposal = answer if isinstance(answer, Proposal) else Proposal(answer)
        return proposal if member == _DIRECTED else dataclasses.replace(proposal, origin=member)

    def tell(self, result: Result) -> None:
        """Pass the results of directed tests on, with the directed strategy's own numbers."""
        member, turn = self._turns.turn(result.trial)
        if member == _DIRECTED:
            self.directed.tell(result._replace(trial=turn))

    def to_plan(self) -> dict[str, Any]:
        """Return plain data from which `strategy_of_plan` makes the same strategy."""
        return {
            "strategy": "controlled",
            "directed": self.directed.to_plan(),  # type: ignore[attr-defined]
            "undirected": self._undirected_text,
            "share": self.share,
        }


# A portfolio of directed strategies.


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
