"""All numbers below a size, each once, in an order that looks random and takes no memory.

A Feistel network turns a number of b bits into another one, and back: whatever its round function
is, no two numbers meet. Those that fall beyond the size are sent through again until they do not
("cycle walking": Black and Rogaway, "Ciphers with arbitrary finite domains", 2002), which keeps it
one to one. With at most four times as many numbers as needed, that takes four turns on average at
worst.
"""

from __future__ import annotations

from swarmtest.seeds import mixed

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
