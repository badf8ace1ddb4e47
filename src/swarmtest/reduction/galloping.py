"""The parts that are needed, for those who have a criterion and no other wishes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from swarmtest.reduction.reducer import Reducer

Part = TypeVar("Part")


class AskedAs:
    """A criterion on one thing, for whoever answers questions on what is made of it.

    If nothing (None) is made of it, it is not interesting.

    >>> still = AskedAs(lambda text: "x" in text, "".join)
    >>> still(["a", "x"])
    True
    """

    def __init__(self, interesting: Callable[[Any], bool], make: Callable[[Any], Any]) -> None:
        self._interesting = interesting
        self._make = make

    def __call__(self, parts: Any) -> bool:
        made = self._make(parts)
        return made is not None and self._interesting(made)

    def ahead(self, many: Iterable[Any]) -> None:
        """Pass on what is likely to be asked next, to those who want to know."""
        ahead = getattr(self._interesting, "ahead", None)
        if ahead is not None:
            ahead(made for made in map(self._make, many) if made is not None)


def minimised(
    parts: Sequence[Part],
    interesting: Callable[[Sequence[Part]], bool],
    needs: Sequence[Collection[int]] = (),
) -> tuple[Part, ...]:
    """The parts that are needed, in their order; without any one of them nothing is interesting.

    `interesting` holds for `parts` themselves; that is not checked. `needs`: see `Reducer`.

    >>> minimised(range(100), lambda kept: {7, 42} <= set(kept))
    (7, 42)
    """
    found = Reducer(parts, interesting, needs=needs, checked=False).run()
    if found.interrupted:
        raise KeyboardInterrupt
    return found.parts
