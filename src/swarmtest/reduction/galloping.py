"""The parts that are needed, for those who have a criterion and no other wishes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from swarmtest.reduction.reducer import Reducer

Part = TypeVar("Part")


def minimised(
    parts: Sequence[Part], interesting: Callable[[Sequence[Part]], bool]
) -> tuple[Part, ...]:
    """The parts that are needed, in their order; without any one of them nothing is interesting.

    `interesting` holds for `parts` themselves; that is not checked.

    >>> minimised(range(100), lambda kept: {7, 42} <= set(kept))
    (7, 42)
    """
    found = Reducer(parts, interesting, checked=False).run()
    if found.interrupted:
        raise KeyboardInterrupt
    return found.parts
