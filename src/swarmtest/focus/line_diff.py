"""Which lines two versions of a text have in common, fast: a patience diff.

Lines that occur once in both versions are anchors; the longest run of anchors in the same order
splits the texts, and each piece is treated alike. Where a piece has no such line, its rarest common
line does. `difflib` does as well, but takes quadratic time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

_OCCURRENCES = 16
"""Of a line that occurs often, how many occurrences are tried as anchors."""
_MOST_WORK = 3_000_000
"""Lines looked at. Texts made of a few different lines could take quadratic time; what is left
when the work is done counts as changed."""

Pair = tuple[int, int]


def common_lines(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Pair]:
    """Pairs of places of the same line, ascending in both; places count from 0.

    >>> common_lines(["a", "b", "c"], ["a", "x", "c"])
    [(0, 0), (2, 2)]
    """
    pairs: list[Pair] = []
    left = [_Piece(0, len(old), 0, len(new))]
    work = 0
    while left and work < _MOST_WORK:
        a, b, c, d = left.pop()
        while a < b and c < d and old[a] == new[c]:
            pairs.append((a, c))
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
            pairs.append((b, d))
        if a == b or c == d:
            continue
        work += b - a + d - c
        anchors = _anchors(old, new, _Piece(a, b, c, d))
        for i, j in anchors:
            left.append(_Piece(a, i, c, j))
            a, c = i, j
        if anchors:
            left.append(_Piece(a, b, c, d))
    return sorted(pairs)


class Hunk(NamedTuple):
    """Lines `old` of one version that became lines `new` of the other; both count from 1."""

    old: range
    new: range


def hunks(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[Hunk]:
    """Where two versions differ.

    >>> list(hunks(["a", "b"], ["a", "x", "y", "b"]))
    [Hunk(old=range(2, 2), new=range(2, 4))]
    """
    a, c = 0, 0
    for i, j in [*common_lines(old, new), (len(old), len(new))]:
        if i > a or j > c:
            yield Hunk(range(a + 1, i + 1), range(c + 1, j + 1))
        a, c = i + 1, j + 1


class _Piece(NamedTuple):
    a: int
    b: int
    c: int
    d: int


def _anchors(old: Sequence[Hashable], new: Sequence[Hashable], piece: _Piece) -> list[Pair]:
    a, b, c, d = piece
    in_old, in_new = Counter(old[a:b]), Counter(new[c:d])
    common = in_old.keys() & in_new.keys()
    if not common:
        return []
    once = {line for line in common if in_old[line] == in_new[line] == 1}
    if not once:
        rarest = min(
            (line for line in dict.fromkeys(old[a:b]) if line in common),
            key=lambda line: in_old[line] * in_new[line],
        )
        return [_longest_run(old, new, piece, rarest)]
    places = {line: j for j, line in enumerate(new[c:d], start=c) if line in once}
    return _ascending(
        [(i, places[line]) for i, line in enumerate(old[a:b], start=a) if line in once]
    )


def _ascending(pairs: list[Pair]) -> list[Pair]:
    """The most pairs that ascend in both places; they ascend in the first as they come."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(last[length - 1] if length else -1)
        ends[length:] = [j, *ends[length + 1 :]]
        last[length:] = [number, *last[length + 1 :]]
    chain = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def _longest_run(
    old: Sequence[Hashable], new: Sequence[Hashable], piece: _Piece, line: Hashable
) -> Pair:
    """Where the longest run of common lines around an occurrence of a line begins."""
    a, b, c, d = piece
    places: dict[Hashable, list[int]] = defaultdict(list)
    for j in range(c, d):
        if new[j] == line:
            places[line].append(j)
    longest, start = 0, (a, c)
    tried = [i for i in range(a, b) if old[i] == line][:_OCCURRENCES]
    for i in tried:
        for j in places[line][:_OCCURRENCES]:
            up = 0
            while i - up > a and j - up > c and old[i - up - 1] == new[j - up - 1]:
                up += 1
            down = 1
            while i + down < b and j + down < d and old[i + down] == new[j + down]:
                down += 1
            if up + down > longest:
                longest, start = up + down, (i - up, j - up)
    return start
