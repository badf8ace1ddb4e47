"""Draw configurations under requirements: "this feature needs one of those", "one of these is on".

All constraints of a grammar are of this kind, and so are most others (`requires`, `mandatory`,
`at_least_one_of`): clauses that switch at most one feature off. For them, two allowed
configurations together are an allowed one again, so there is a *largest* allowed configuration
without the features that were switched off so far. It answers every question of a draw:

- A feature can be on if it is in the largest configuration.
- A feature can be off if what falls with it, because it needed it, is nothing that is on already.

Nothing is searched for, and nothing is looked at for a feature that no requirement hangs on. That
is many times faster than `constraints.Solver`, which answers the same questions for all clauses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from swarmtest.core.constraints import Masks

_Need = tuple[int, int, bool]
"""Features of which one is needed; the features that need it; whether every configuration does."""


class Requirements:
    """Clauses that switch at most one feature off, prepared for drawing.

    >>> needs = Requirements([(0b01, 0b10)], 2)  # feature 1 needs feature 0
    >>> needs.toss_in_turn([0, 1], [False, True], [0.5, 0.5])
    (0, (0.5, 0.0))
    >>> needs.toss_in_turn([1, 0], [False, True], [0.5, 0.5])
    (3, (1.0, 0.5))
    """

    def __init__(self, clauses: Iterable[Masks], features: int) -> None:
        """Take clauses that can hold together, each with at most one feature to switch off."""
        self._bits = [1 << number for number in range(features)]
        self._needs: list[list[_Need]] = [[] for _ in range(features)]
        heads: dict[int, int] = {}
        always = set()
        for on, off in clauses:
            if on & off:
                continue  # it always holds
            heads[on] = heads.get(on, 0) | off
            if not off:
                always.add(on)
        for on in heads:
            for number, bit in enumerate(self._bits):
                if on & bit:
                    self._needs[number].append((on, heads[on], on in always))
        largest: int | None = (1 << features) - 1
        for number, bit in enumerate(self._bits):
            if heads.get(0, 0) & bit and largest is not None and largest & bit:
                largest = self._without(largest, 0, number)
        assert largest is not None, "an unsatisfiable space is refused when it is built"
        self._largest = largest
        self._critical = 0
        for on in heads:
            left = on & largest
            if not left & (left - 1):
                self._critical |= left

    def toss_in_turn(
        self, order: Sequence[int], wished: Sequence[bool], rates: Sequence[float]
    ) -> tuple[int, tuple[float, ...]]:
        """Return the bits of a configuration, and the odds that each feature had at its turn.

        Each feature is switched as it is wished, unless that is impossible by then.
        """
        bits, needs = self._bits, self._needs
        chances = list(rates)
        largest, critical, true = self._largest, self._critical, 0
        for number in order:
            bit = bits[number]
            if not largest & bit:
                chances[number] = 0.0
            elif critical & bit:
                # It is the last of some that something needs.
                left = self._without(largest, true, number)
                if left is None:
                    chances[number] = 1.0
                    true |= bit
                elif wished[number]:
                    true |= bit
                else:
                    critical |= self._last_ones(left, largest ^ left)
                    largest = left
            elif wished[number]:
                true |= bit
            else:
                largest ^= bit
                for on, _, _ in needs[number]:
                    last = on & largest
                    if not last & (last - 1):
                        critical |= last
        return true, tuple(chances)

    def _without(self, largest: int, true: int, number: int) -> int | None:
        """Return the largest configuration without one more feature.

        Return None if that switches off a feature that is on, or what every configuration needs.
        """
        largest ^= 1 << number
        waiting = [number]
        while waiting:
            for on, heads, always in self._needs[waiting.pop()]:
                if on & largest:
                    continue
                lost = heads & largest
                if always or lost & true:
                    return None
                largest ^= lost
                while lost:
                    last = lost.bit_length() - 1
                    waiting.append(last)
                    lost ^= 1 << last
        return largest

    def _last_ones(self, largest: int, removed: int) -> int:
        """Return the features that are the last of some that something needs."""
        last_ones = 0
        while removed:
            number = removed.bit_length() - 1
            removed ^= 1 << number
            for on, _, _ in self._needs[number]:
                last = on & largest
                if not last & (last - 1):
                    last_ones |= last
        return last_ones
