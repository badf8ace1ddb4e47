"""Control tests among directed ones: undirected and default tests, for comparison.

A ratio of hitting fractions says nothing if the two were measured on different days, versions or
machines. So a small share of a focused campaign's tests is not directed: half of them are plain
swarm tests, half have the default configuration. They are spread evenly, they find faults like any
other test, and their origin names them.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from swarmtest.errors import UserError
from swarmtest.result import Result
from swarmtest.seeds import Stream, key_of
from swarmtest.space import Proposal, Space
from swarmtest.strategies.default import Default
from swarmtest.strategies.strategy import LearningStrategy, parse_strategy, strategy_text

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
            DEFAULT: Default(),
        }
        self._turns = _schedule(share)
        self._before = _counts_before(self._turns)

    @property
    def strategy_source(self) -> tuple[str, str]:
        """How it is named: like the directed strategy, control tests are only said."""
        head, _, arguments = strategy_text(self.directed).partition(":")
        return head, arguments

    @property
    def wants(self) -> frozenset[str]:
        """The targets that the directed strategy learns from."""
        wanted: frozenset[str] = getattr(self.directed, "wants", frozenset())
        return wanted

    @property
    def notes(self) -> list[str]:
        """What the directed strategy has to say."""
        return list(getattr(self.directed, "notes", ()))

    def prepare(self, space: Space) -> None:
        """Let the directed strategy prepare."""
        if hasattr(self.directed, "prepare"):
            self.directed.prepare(space)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """The proposal of whose turn it is."""
        who, turn = self._turn(trial)
        answer = self._members[who].ask(space, turn, rng)
        proposal = answer if isinstance(answer, Proposal) else Proposal(answer)
        return proposal if who == _DIRECTED else dataclasses.replace(proposal, origin=who)

    def tell(self, result: Result) -> None:
        """Tell the directed strategy of its own tests, by its own count of them."""
        who, turn = self._turn(result.trial)
        if who == _DIRECTED:
            self.directed.tell(result._replace(trial=turn))

    def to_plan(self) -> dict[str, Any]:
        """Everything that is needed to make it again."""
        return {
            "strategy": "controlled",
            "directed": self.directed.to_plan(),  # type: ignore[attr-defined]
            "undirected": self._undirected_text,
            "share": self.share,
        }

    def _turn(self, trial: int) -> tuple[str, int]:
        """Whose turn a trial is, and the how-manieth of that member."""
        block, at = divmod(trial, _BLOCK)
        who = self._turns[at]
        return who, block * self._turns.count(who) + self._before[at]


def _schedule(share: float) -> list[str]:
    each = round(_BLOCK * share / 2)
    turns = [UNDIRECTED] * each + [DEFAULT] * each + [_DIRECTED] * (_BLOCK - 2 * each)
    random.Random(key_of("controlled")).shuffle(turns)
    return turns


def _counts_before(turns: list[str]) -> list[int]:
    return [turns[:at].count(who) for at, who in enumerate(turns)]
