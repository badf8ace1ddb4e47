"""The parts of a test that are needed: fewer runs than delta debugging takes.

Galloping: walk through the parts from the back, and try to remove a stretch that is long enough to
succeed about every second time, judged by how many parts were needed lately. A stretch that cannot
go is halved until the part that is needed is found; that one is kept, and never tried again in this
walk. So n parts of which k are needed cost about k * log2(n / k) runs, near the information bound,
where ddmin costs several times that.

One walk leaves what cannot go *in the order of the walk*: a part whose reason was removed later may
have become free, so walks are repeated until one removes nothing. The last walk tries each part on
its own: the answer is 1-minimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Part = TypeVar("Part")

_DECAY = 0.9
"""How much of what was learnt about the share of needed parts stays after each one that was met."""


def minimised(
    parts: Sequence[Part], interesting: Callable[[Sequence[Part]], bool]
) -> tuple[Part, ...]:
    """The parts that are needed, in their order; without any one of them nothing is interesting.

    `interesting` holds for `parts` themselves; that is not checked.

    >>> minimised(range(100), lambda kept: {7, 42} <= set(kept))
    (7, 42)
    """
    kept = list(parts)
    if kept and interesting(()):
        return ()
    longest = len(kept)
    while True:
        before = len(kept)
        kept = _walk(kept, interesting, longest)
        if longest == 1 and len(kept) == before:
            return tuple(kept)
        longest = 1 if len(kept) == before or len(kept) < 8 else longest


def _walk(
    parts: list[Part], interesting: Callable[[Sequence[Part]], bool], longest: int
) -> list[Part]:
    """What is left after one walk from the back; no stretch is longer than `longest`."""
    kept = parts
    end = len(kept)
    removed, needed = 1.0, 1.0
    while end:
        # With a share p of needed parts, a stretch of ln 2 / p has none of them half of the time.
        length = max(1, min(end, longest, round(0.7 * (removed + needed) / needed)))
        gone = _removable(kept, end, length, interesting)
        kept = kept[: end - gone] + kept[end:]
        end -= gone
        removed += gone
        if gone < length:
            end -= 1
            removed, needed = removed * _DECAY, needed * _DECAY + 1
    return kept


def _removable(
    kept: list[Part], end: int, length: int, interesting: Callable[[Sequence[Part]], bool]
) -> int:
    """How many of the `length` parts before `end` can go, counted from `end` to the first needed.

    Each length that is found to work has been tried: what is removed is always known to be free.
    """
    works, fails = 0, length + 1
    tried = length
    while fails - works > 1:
        if interesting(kept[: end - tried] + kept[end:]):
            works = tried
        else:
            fails = tried
        tried = (works + fails) // 2
    return works
