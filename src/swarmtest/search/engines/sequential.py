"""All points, one after the other: in the space's order, or in one that looks random."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream, mixed
from swarmtest.core.space import Space
from swarmtest.search.engines.engine import Walk, chances
from swarmtest.search.space import size_of

# -------------------------------------------------------------------------------------------------
# All numbers below a size, each once, in an order that looks random and takes no memory.
#
# A Feistel network turns a number of b bits into another one, and back: whatever its round
# function
# is, no two numbers meet. Those that fall beyond the size are sent through again until they do not
# ("cycle walking": Black and Rogaway, "Ciphers with arbitrary finite domains", 2002), which keeps
# it
# one to one. With at most four times as many numbers as needed, that takes four turns on average
# at
# worst.

_ROUNDS = 6
_WORD = (1 << 64) - 1


class Permutation:
    """A pseudo-random order of ``range(size)``; `at` tells any place of it at once.

    >>> order = Permutation(10, key=1)
    >>> sorted(order.at(place) for place in range(10)) == list(range(10))
    True
    >>> Permutation(10**30, key=1).at(5) < 10**30
    True
    """

    def __init__(self, size: int, key: int) -> None:
        self.size = size
        self._half = max(1, ((size - 1).bit_length() + 1) // 2)
        self._mask = (1 << self._half) - 1
        self._keys = [mixed((key + number) & _WORD) for number in range(_ROUNDS)]

    def at(self, place: int) -> int:
        """The number at a place."""
        if not 0 <= place < self.size:
            raise IndexError(f"a place is from 0 to {self.size - 1}, not {place}")
        number = self._through(place)
        while number >= self.size:
            number = self._through(number)
        return number

    def _through(self, number: int) -> int:
        left, right = number >> self._half, number & self._mask
        for key in self._keys:
            left, right = right, left ^ (_stirred(right, key, self._half) & self._mask)
        return left << self._half | right


def _stirred(number: int, key: int, bits: int) -> int:
    """As many well-stirred bits as are asked for, of a number of as many."""
    found = mixed((number & _WORD) ^ key)
    if bits <= 64:
        return found
    state = found
    while number := number >> 64:
        state = mixed(state ^ (number & _WORD))
    for _ in range(bits // 64):
        state = mixed(state + 1 & _WORD)
        found = found << 64 | state
    return found


# -------------------------------------------------------------------------------------------------


@dataclass
class Sequential:
    """Every point of the space, in its order; then there is nothing left.

    >>> from swarmtest import Integer
    >>> space = Space([Integer("n", 1, 3)])
    >>> engine = Sequential()
    >>> [engine.ask(space, trial, Stream()).configuration["n"] for trial in range(3)]
    [1, 2, 3]
    """

    strategy_name: ClassVar[str] = "sequential"

    _walk: Walk | None = field(default=None, init=False, repr=False, compare=False)

    def prepare(self, space: Space) -> None:
        """Start from the first point."""
        self._walk = Walk(space, lambda place: place)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """The point whose turn it is."""
        if self._walk is None:
            self.prepare(space)
        assert self._walk is not None
        return Proposal(self._walk.at(trial))


@dataclass
class RandomOrder:
    """Every point of the space once, in random order, however large the space is.

    The order is a pseudo-random permutation that is computed, not stored.

    >>> from swarmtest import Integer
    >>> space = Space([Integer("n", 1, 10**12)])
    >>> engine = RandomOrder()
    >>> len({engine.ask(space, trial, Stream(1)).configuration["n"] for trial in range(1000)})
    1000
    """

    strategy_name: ClassVar[str] = "random"

    _walk: Walk | None = field(default=None, init=False, repr=False, compare=False)

    def prepare(self, space: Space) -> None:
        """Forget the order of another space or campaign."""
        self._walk = None

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """The point whose turn it is."""
        if self._walk is None:
            order = Permutation(size_of(space), rng.of_campaign(0).getrandbits(64))
            self._walk = Walk(space, order.at)
        point = self._walk.at(trial)
        return Proposal(point, chances(space, point))
