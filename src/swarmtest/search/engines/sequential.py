"""All points, one after the other: in the space's order, or in a pseudo-random one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream, mixed
from swarmtest.core.space import Space
from swarmtest.search.engines.engine import Walk, chances
from swarmtest.search.space import size_of

_ROUNDS = 6
_WORD = (1 << 64) - 1


@dataclass
class Sequential:
    """Proposes every point of the space, in the space's order.

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
        """Return the next point."""
        if self._walk is None:
            self.prepare(space)
        assert self._walk is not None
        return Proposal(self._walk.at(trial))


@dataclass
class RandomOrder:
    """Proposes every point of the space once, in random order, however large the space is.

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
        """Return the next point."""
        if self._walk is None:
            order = Permutation(size_of(space), rng.of_campaign(0).getrandbits(64))
            self._walk = Walk(space, order.at)
        point = self._walk.at(trial)
        return Proposal(point, chances(space, point))


# A pseudo-random permutation that takes no memory.
#
# A Feistel network maps numbers of b bits one to one, whatever its round function is. Numbers
# beyond the size are mapped again until they are below it ("cycle walking": Black and Rogaway,
# "Ciphers with arbitrary finite domains", 2002), which keeps the map one to one. The network has at
# most four times as many numbers as needed, so this takes at worst four rounds on average.


class Permutation:
    """A pseudo-random order of ``range(size)``; `at` computes any position of it directly.

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
        """Return the number at a position."""
        if not 0 <= place < self.size:
            raise IndexError(f"a place is from 0 to {self.size - 1}, not {place}")
        number = self._network(place)
        while number >= self.size:
            number = self._network(number)
        return number

    def _network(self, number: int) -> int:
        left, right = number >> self._half, number & self._mask
        for key in self._keys:
            left, right = right, left ^ (_mixed_bits(right, key, self._half) & self._mask)
        return left << self._half | right


def _mixed_bits(number: int, key: int, bits: int) -> int:
    """Return `bits` well-mixed bits of a number of that many bits."""
    result = mixed((number & _WORD) ^ key)
    if bits <= 64:
        return result
    state = result
    while number := number >> 64:
        state = mixed(state ^ (number & _WORD))
    for _ in range(bits // 64):
        state = mixed(state + 1 & _WORD)
        result = result << 64 | state
    return result
