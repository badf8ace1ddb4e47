"""A mixture gives each of several strategies a share of the tests.

``mixture:all-on=0.1,coin=0.9`` includes the default configuration, as the swarm testing paper
recommends (section 2.2). Shares are exact in every thousand trials, in a shuffled order. Each
member counts its own trials, so that a covering array inside a mixture still runs through its rows
in turn.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from swarmtest.core.errors import UserError
from swarmtest.core.result import Result
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream, key_of
from swarmtest.core.space import Space
from swarmtest.core.strategy_names import split_arguments
from swarmtest.strategies.strategy import (
    LearningStrategy,
    Strategy,
    called_text,
    parse_strategy,
    register,
    strategy_text,
)

_BLOCK = 1000


T = TypeVar("T")


class Turns(Generic[T]):
    """Whose turn each trial is: a block of members, in a shuffled order, again and again.

    >>> turns = Turns(["coin", "coin", "all-on"], key="mine")
    >>> [turns.turn(trial) for trial in range(4)]
    [('all-on', 0), ('coin', 0), ('coin', 1), ('all-on', 1)]
    """

    def __init__(self, block: Sequence[T], key: str) -> None:
        """Shuffle the members of a block, in an order that follows from `key`."""
        self._members = list(block)
        random.Random(key_of(key)).shuffle(self._members)
        self._before = [self._members[:at].count(member) for at, member in enumerate(self._members)]

    def turn(self, trial: int) -> tuple[T, int]:
        """Return the member whose turn a trial is, and the member's own number of that trial."""
        block, at = divmod(trial, len(self._members))
        member = self._members[at]
        return member, block * self._members.count(member) + self._before[at]


@register("mixture")
class Mixture:
    """Several strategies, each with its share of the tests.

    >>> mixture = Mixture({"all-on": 0.1, "coin": 0.9})
    >>> strategy_text(mixture)
    'mixture:all-on=0.1,coin=0.9'
    """

    def __init__(self, shares: Mapping[str, float]) -> None:
        if not shares or min(shares.values()) < 0 or not sum(shares.values()) > 0:
            raise UserError("strategy 'mixture': needs strategies with shares above 0")
        total = sum(shares.values())
        self.shares = {text: share / total for text, share in shares.items()}
        self._members: list[Strategy] = [parse_strategy(text) for text in shares]
        ends = [round(_BLOCK * sum([*self.shares.values()][: n + 1])) for n in range(len(shares))]
        block = [next(n for n, end in enumerate(ends) if at < end) for at in range(_BLOCK)]
        self._turns = Turns(block, "mixture")
        rare = [text for n, text in enumerate(shares) if n not in block]
        if rare:
            raise UserError(f"strategy 'mixture': the share of {rare[0]!r} is below 1 in {_BLOCK}")
        if any(isinstance(member, LearningStrategy) for member in self._members):
            self.tell = self._tell

    @classmethod
    def parse_parameters(cls, arguments: str) -> dict[str, Any]:
        """Parse ``all-on=0.1,coin(p=0.3)=0.9``: strategies and their shares, also in percent."""
        shares: dict[str, float] = {}
        for text, share in split_arguments(arguments, "mixture"):
            try:
                number = float(share[:-1]) / 100 if share.endswith("%") else float(share)
            except ValueError:
                raise UserError(
                    f"strategy 'mixture': {text!r} needs a share like 0.1 or 10%, not {share!r}"
                ) from None
            if text in shares:
                raise UserError(f"strategy 'mixture': {text!r} is named twice")
            shares[text] = number
        return {"shares": shares}

    def parameters_text(self) -> str:
        """Return the parameters as `parse_parameters` reads them."""
        pairs = zip(self._members, self.shares.values(), strict=True)
        return ",".join(f"{called_text(m)}={share:.6g}" for m, share in pairs)

    def prepare(self, space: Space) -> None:
        """Let every member prepare."""
        for member in self._members:
            if hasattr(member, "prepare"):
                member.prepare(space)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Return the proposal of the member whose turn it is."""
        member, turn = self._turn(trial)
        answer = member.ask(space, turn, rng)
        name = strategy_text(member)
        if not isinstance(answer, Proposal):
            return Proposal(answer, (), name)
        inner = f"{name}/{answer.origin}" if answer.origin not in ("", name) else name
        return dataclasses.replace(answer, origin=inner)

    def _turn(self, trial: int) -> tuple[Strategy, int]:
        """Return the member whose turn a trial is, and the member's own number of that trial."""
        number, turn = self._turns.turn(trial)
        return self._members[number], turn

    def _tell(self, result: Result) -> None:
        member, turn = self._turn(result.trial)
        if isinstance(member, LearningStrategy):
            member.tell(result._replace(trial=turn))
