"""Of the colourings with the same number of colours, one whose merged aims fix few features.

A merged aim fixes the triggers and suppressors of all its members, and what is fixed is not varied.
So each aim moves to where it adds the least, as long as the sum over all aims of what is fixed
beside them falls. No aim ever gets a colour that was not used before.
"""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.strategies.directed.aim import Aim

_ROUNDS = 3


def leaner(aims: Sequence[Aim], colours: Sequence[int]) -> list[int]:
    """The colours after moving aims, one by one, to where fewer features are fixed.

    >>> push, pop = Aim((), {"push"}), Aim((), {"pop"}, {"push"})
    >>> leaner([push, pop, Aim((), {"pop"})], [0, 1, 0])
    [0, 1, 1]
    """
    found = list(colours)
    groups: dict[int, _Group] = {}
    for aim, colour in zip(aims, found, strict=True):
        groups.setdefault(colour, _Group()).add(aim)
    for _ in range(_ROUNDS):
        moved = False
        for number, aim in enumerate(aims):
            home = groups[found[number]]
            saved = home.cost - home.cost_without(aim)
            costs = {
                colour: group.cost_with(aim) - group.cost
                for colour, group in groups.items()
                if group is not home and group.has_room_for(aim)
            }
            best = min(costs, key=costs.__getitem__, default=None)
            if best is not None and costs[best] < saved:
                home.remove(aim)
                groups[best].add(aim)
                found[number], moved = best, True
        if not moved:
            break
    return found


class _Group:
    """The aims of one colour; its cost is how many features are fixed, counted once per aim."""

    def __init__(self) -> None:
        self._size = 0
        self._triggered_by: dict[str, int] = {}
        self._suppressed_by: dict[str, int] = {}

    @property
    def cost(self) -> int:
        return self._size * (len(self._triggered_by) + len(self._suppressed_by))

    def cost_with(self, aim: Aim) -> int:
        new = len(aim.triggers - self._triggered_by.keys())
        new += len(aim.suppressors - self._suppressed_by.keys())
        return (self._size + 1) * (len(self._triggered_by) + len(self._suppressed_by) + new)

    def cost_without(self, aim: Aim) -> int:
        gone = sum(self._triggered_by[name] == 1 for name in aim.triggers)
        gone += sum(self._suppressed_by[name] == 1 for name in aim.suppressors)
        return (self._size - 1) * (len(self._triggered_by) + len(self._suppressed_by) - gone)

    def has_room_for(self, aim: Aim) -> bool:
        triggered, suppressed = self._triggered_by, self._suppressed_by
        return suppressed.keys().isdisjoint(aim.triggers) and triggered.keys().isdisjoint(
            aim.suppressors
        )

    def add(self, aim: Aim) -> None:
        self._size += 1
        for counts, names in self._counts(aim):
            for name in names:
                counts[name] = counts.get(name, 0) + 1

    def remove(self, aim: Aim) -> None:
        self._size -= 1
        for counts, names in self._counts(aim):
            for name in names:
                counts[name] -= 1
                if not counts[name]:
                    del counts[name]

    def _counts(self, aim: Aim) -> list[tuple[dict[str, int], frozenset[str]]]:
        return [(self._triggered_by, aim.triggers), (self._suppressed_by, aim.suppressors)]
