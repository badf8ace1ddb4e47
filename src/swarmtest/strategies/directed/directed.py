"""Directed swarm testing: a single-target strategy for each of the (merged) aims, in turn.

The nine strategies of the paper (section 4) are the three of `single` times the three of `merge`.
Trial t is for aim t modulo the number of aims. `Directed` learns only one thing: that the
configurations of an aim give no valid tests, see `adaptive.Ladder`.

`Controlled` adds control tests for comparison. A ratio of hitting fractions says nothing if the two
were measured on different days, versions or machines. So a small share of a focused campaign's
tests is not directed: half of them are plain swarm tests, half have the default configuration. They
are spread evenly, they find faults like any other test, and their origin names them.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Result
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream, key_of
from swarmtest.core.space import Space
from swarmtest.strategies.directed.adaptive import Ladder, rungs_of
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.strategies.directed.merging import MERGES, Merging, merged
from swarmtest.strategies.directed.single import HALF_SWARM, SINGLES, fitted, propose
from swarmtest.strategies.enumeration import AllOn
from swarmtest.strategies.strategy import LearningStrategy, parse_strategy, strategy_text


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
        ladder.asked(trial)
        kind = ladder.kind
        return propose(kind, self.merging.aims[number], space, rng, f"{kind} {number}")

    def tell(self, result: Result) -> None:
        """Move an aim down a rung if it gives only invalid tests."""
        if self._ladders:
            ladder = self._ladders[result.trial % len(self._ladders)]
            note = ladder.told(result.trial, result.verdict, result.missing)
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
        self._turns = _schedule(share)
        self._before = _counts_before(self._turns)

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
        member, turn = self._turn(trial)
        answer = self._members[member].ask(space, turn, rng)
        proposal = answer if isinstance(answer, Proposal) else Proposal(answer)
        return proposal if member == _DIRECTED else dataclasses.replace(proposal, origin=member)

    def tell(self, result: Result) -> None:
        """Pass the results of directed tests on, with the directed strategy's own numbers."""
        member, turn = self._turn(result.trial)
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

    def _turn(self, trial: int) -> tuple[str, int]:
        """Return the member whose turn a trial is, and the member's own number of that trial."""
        block, at = divmod(trial, _BLOCK)
        member = self._turns[at]
        return member, block * self._turns.count(member) + self._before[at]


def _schedule(share: float) -> list[str]:
    each = round(_BLOCK * share / 2)
    turns = [UNDIRECTED] * each + [DEFAULT] * each + [_DIRECTED] * (_BLOCK - 2 * each)
    random.Random(key_of("controlled")).shuffle(turns)
    return turns


def _counts_before(turns: list[str]) -> list[int]:
    return [turns[:at].count(member) for at, member in enumerate(turns)]
