"""Draw configurations under requirements: "this feature needs one of those", "one of these is on".

All constraints of a grammar are of this kind, and so are most others (`requires`, `mandatory`,
`at_least_one_of`): clauses that switch at most one feature off. For them, two allowed
configurations together are an allowed one again, so there is a *largest* allowed configuration
without the features that were switched off so far. It answers every question of a draw:

- A feature can be on if it is in the largest configuration.
- A feature can be off if what falls with it, because it needed it, is nothing that is on already.

Nothing is searched for. That is many times faster than `constraints.Solver`, which answers the same
questions for all clauses. And a feature is looked at closely only if it is *critical*: the last one
left of some of which one is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from swarmtest.core.constraints import Masks

_OPEN, _CRITICAL, _GONE = range(3)
"""What is known of a feature: nothing; that it is critical; that it can no longer be on."""


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
        bits = self._bits = [1 << number for number in range(features)]
        self._always = 1 << features
        """A feature more, which is always on: it needs what every configuration needs."""
        heads: dict[int, int] = {}
        for on, off in clauses:
            if not on & off:  # otherwise it always holds
                heads[on] = heads.get(on, 0) | (off or self._always)
        # A need: features of which one has to be on, and those that need it.
        self._needed = [*heads]
        self._heads = [*heads.values()]
        self._head_numbers = [
            [number for number, bit in enumerate(bits) if off & bit] for off in self._heads
        ]
        self._needs_of = [tuple(i for i, on in enumerate(heads) if on & bit) for bit in bits]
        largest = self._always - 1
        for number, bit in enumerate(bits):
            if heads.get(0, 0) & bit and largest & bit:
                fallen = self._falling(number, largest, self._always)
                assert fallen is not None, "an unsatisfiable space is refused when it is built"
                largest ^= sum(bits[each] for each in fallen)
        self._largest = largest
        # For each need, one number says how many of its features are left, and which is the last:
        # each counts as `one`, plus its own number, which is less.
        self._one = 1 << features.bit_length()
        self._worth = [self._one + number for number in range(features)]
        self._left = [
            sum(self._worth[number] for number, bit in enumerate(bits) if on & largest & bit)
            for on in heads
        ]
        self._state = [_OPEN if largest & bit else _GONE for bit in bits]
        for left in self._left:
            if self._one <= left < 2 * self._one:
                self._state[left - self._one] = _CRITICAL

    def toss_in_turn(
        self, order: Sequence[int], wished: Sequence[bool], rates: Sequence[float]
    ) -> tuple[int, tuple[float, ...]]:
        """Return the bits of a configuration, and the odds that each feature had at its turn.

        Each feature is switched as it is wished, unless that is impossible by then.
        """
        bits, heads, needs_of, worth = self._bits, self._heads, self._needs_of, self._worth
        one, two = self._one, 2 * self._one
        chances, state, left = list(rates), self._state[:], self._left[:]
        largest, true = self._largest, self._always
        for number in order:
            if not state[number]:
                if wished[number]:
                    true |= bits[number]
                else:
                    largest ^= bits[number]
                    for need in needs_of[number]:
                        left[need] = last = left[need] - worth[number]
                        if last < two:
                            state[last - one] = _CRITICAL
            elif state[number] == _GONE:
                chances[number] = 0.0
            else:
                lost = 0
                for need in needs_of[number]:
                    if left[need] < two:
                        lost |= heads[need]
                fallen: Sequence[int] | None
                if lost & true:
                    fallen = None
                elif lost & largest:
                    fallen = self._falling(number, largest, true)
                else:
                    fallen = (number,)
                if fallen is None:
                    chances[number] = 1.0
                    true |= bits[number]
                elif wished[number]:
                    true |= bits[number]
                else:
                    for each in fallen:
                        largest ^= bits[each]
                        state[each] = _GONE
                        for need in needs_of[each]:
                            left[need] = last = left[need] - worth[each]
                            if one <= last < two:
                                state[last - one] = _CRITICAL
        return true ^ self._always, tuple(chances)

    def _falling(self, number: int, largest: int, true: int) -> list[int] | None:
        """Return the features that switching one off takes out of the largest configuration.

        Return None if one of them is on.
        """
        bits, needed, heads, needs_of = self._bits, self._needed, self._heads, self._needs_of
        largest ^= bits[number]
        falling = [number]
        for each in falling:  # it grows meanwhile
            for need in needs_of[each]:
                if needed[need] & largest:
                    continue
                if heads[need] & true:
                    return None
                if heads[need] & largest:
                    for head in self._head_numbers[need]:
                        if largest & bits[head]:
                            largest ^= bits[head]
                            falling.append(head)
        return falling
