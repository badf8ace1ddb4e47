"""A share of the tests to each of several strategies.

``mixture:default=0.1,coin=0.9`` is how "always include C_D" is said (swarm testing, section 2.2).
Shares are exact in every thousand trials, in a shuffled order, and each member counts its own
trials, so that a covering array inside a mixture still runs through its rows in turn.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from typing import Any

from swarmtest.errors import UserError
from swarmtest.result import Result
from swarmtest.seeds import Stream, key_of
from swarmtest.space import Proposal, Space
from swarmtest.strategies.strategy import (
    Strategy,
    parse_strategy,
    register,
    split_arguments,
    strategy_text,
)

_BLOCK = 1000


@register("mixture")
class Mixture:
    """Several strategies, each with its share of the tests.

    >>> mixture = Mixture({"default": 0.1, "coin": 0.9})
    >>> strategy_text(mixture)
    'mixture:default=0.1,coin=0.9'
    """

    def __init__(self, shares: Mapping[str, float]) -> None:
        if not shares or min(shares.values()) < 0 or not sum(shares.values()) > 0:
            raise UserError("strategy 'mixture': needs strategies with shares above 0")
        total = sum(shares.values())
        self.shares = {text: share / total for text, share in shares.items()}
        self._members: list[Strategy] = [parse_strategy(text) for text in shares]
        self._turns, self._before = _schedule(list(self.shares.values()))
        self._asked: dict[int, Strategy] = {}
        if any(hasattr(member, "tell") for member in self._members):
            self.tell = self._tell

    @classmethod
    def parse_parameters(cls, arguments: str) -> dict[str, Any]:
        """``default=0.1,coin(p=0.3)=0.9``: a strategy and its share; per cent work too."""
        shares = {}
        for text, share in split_arguments(arguments, "mixture"):
            try:
                number = float(share[:-1]) / 100 if share.endswith("%") else float(share)
            except ValueError:
                raise UserError(
                    f"strategy 'mixture': {text!r} needs a share like 0.1 or 10%, not {share!r}"
                ) from None
            shares[text] = number
        return {"shares": shares}

    def parameters_text(self) -> str:
        """The parameters as `parse_parameters` reads them."""
        pairs = zip(self._members, self.shares.values(), strict=True)
        return ",".join(f"{_called(strategy_text(m))}={share:.6g}" for m, share in pairs)

    def prepare(self, space: Space) -> None:
        """Let every member prepare."""
        for member in self._members:
            if hasattr(member, "prepare"):
                member.prepare(space)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """The proposal of the member whose turn it is."""
        block, at = divmod(trial, _BLOCK)
        number = self._turns[at]
        turn = block * self._turns.count(number) + self._before[at]
        member = self._members[number]
        answer = member.ask(space, turn, rng)
        if hasattr(member, "tell"):
            self._asked[trial] = member
        name = strategy_text(member)
        if not isinstance(answer, Proposal):
            return Proposal(answer, (), name)
        inner = f"{name}/{answer.origin}" if answer.origin not in ("", name) else name
        return dataclasses.replace(answer, origin=inner)

    def _tell(self, result: Result) -> None:
        member = self._asked.pop(result.trial, None)
        if member is not None:
            member.tell(result)  # type: ignore[attr-defined]


def _called(text: str) -> str:
    name, _, arguments = text.partition(":")
    return f"{name}({arguments})" if arguments else name


def _schedule(shares: list[float]) -> tuple[list[int], list[int]]:
    """Whose turn it is at each place of a block, and how many turns it had before in the block."""
    ends = [round(_BLOCK * sum(shares[: i + 1])) for i in range(len(shares))]
    turns = [next(n for n, end in enumerate(ends) if at < end) for at in range(_BLOCK)]
    random.Random(key_of("mixture")).shuffle(turns)
    had = [0] * len(shares)
    before = []
    for number in turns:
        before.append(had[number])
        had[number] += 1
    return turns, before
