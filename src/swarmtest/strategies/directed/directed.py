"""Directed swarm testing: a single-target strategy for each of the (merged) aims, in turn.

The nine strategies of the paper (section 4) are the three of `single` times the three of `merge`.
Trial t is for aim t modulo the number of aims. It learns only one thing: that the configurations of
an aim give no valid tests, see `ladder`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from swarmtest.errors import UserError, did_you_mean
from swarmtest.result import Result
from swarmtest.seeds import Stream
from swarmtest.space import Proposal, Space
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.strategies.directed.ladder import Ladder, rungs_of
from swarmtest.strategies.directed.merging import MERGES, Merging, merged
from swarmtest.strategies.directed.single import HALF_SWARM, SINGLES, fitted, propose


class Directed:
    """Tests for aims: half-swarm, no-suppressors or triggers-only, with or without merging.

    >>> full = Aim((Goal("event:full"),), triggers={"push"}, suppressors={"pop"})
    >>> directed = Directed([full], single="no-suppressors")
    >>> print(directed.ask(Space(["push", "pop", "add"]), 0, Stream()).configuration)
    push -pop add
    """

    strategy_name: ClassVar[str] = "directed"
    wants: ClassVar[frozenset[str]] = frozenset()
    """It needs to know no hits."""

    def __init__(
        self,
        aims: Iterable[Aim],
        single: str = HALF_SWARM,
        merge: str = MERGES[0],
        merging: Merging | None = None,
    ) -> None:
        """`merging`: the merged aims, if they are known; merging anew may take a second."""
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
        """What could not be done as asked, and what is done instead."""
        self._space: Space | None = None
        self._ladders: list[Ladder] = []

    def prepare(self, space: Space) -> None:
        """Fit the aims to a space; what it does not allow is in `notes`."""
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
        """A configuration for the aim whose turn it is."""
        if self._space is not space:
            self.prepare(space)
        number = trial % len(self._ladders)
        ladder = self._ladders[number]
        ladder.asked(trial)
        kind = ladder.kind
        return propose(kind, self.merging.aims[number], space, rng, f"{kind} {number}")

    def tell(self, result: Result) -> None:
        """Go down a rung with an aim that gives only invalid tests."""
        if self._ladders:
            ladder = self._ladders[result.trial % len(self._ladders)]
            note = ladder.told(result.trial, result.verdict, result.missing)
            if note:
                self.notes.append(note)

    def parameters_text(self) -> str:
        """What `strategy_text` prints after the name."""
        return f"single={self.single},merge={self.merge}"

    def to_plan(self) -> dict[str, Any]:
        """Plain data from which `from_plan` makes the same strategy, without merging again."""
        return {
            "strategy": self.strategy_name,
            "single": self.single,
            "merge": self.merge,
            "aims": [aim.to_json() for aim in self.aims],
            "merging": self.merging.to_json(),
        }

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any]) -> Directed:
        """The strategy that `to_plan` described."""
        aims = map(Aim.from_json, plan["aims"])
        return cls(aims, plan["single"], plan["merge"], Merging.from_json(plan["merging"]))


def name_of(goals: Sequence[Goal]) -> str:
    """What goals are called in notes.

    >>> name_of([Goal("line:cart.py:9"), Goal("line:cart.py:12")])
    'line:cart.py:9 and 1 more'
    """
    more = f" and {len(goals) - 1} more" if len(goals) > 1 else ""
    return f"{goals[0].target}{more}" if goals else "an aim without goals"


def _meant(word: str, known: tuple[str, ...]) -> str:
    return f", not {word!r}{did_you_mean(word, known)}"
