"""Map the lines of a file to the lines of an earlier version of it.

No two lines come from the same old line. Lines that differ only in indentation are the same. A line
is recognised, in this order, as

- *same*: the diff of the versions has the line in common;
- *moved*: it left one place and appears in another, together with at least two more lines, or it is
  long enough and occurs nowhere else;
- *edited*: between lines that stayed, it took the place of another line: the only one there, or a
  similar one.

The diff is a patience diff: lines that occur once in both versions are anchors; the longest run of
anchors in the same order splits the texts, and each piece is treated in the same way. If a piece
has no such line, its rarest common line is used. `difflib` gives results as good, but takes
quadratic time.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from swarmtest.languages.text_lines import lines_of

# The patience diff.

_OCCURRENCES = 16
"""How many occurrences of a frequent line are tried as anchors."""
_MOST_WORK = 3_000_000
"""How many lines are looked at. Texts with few different lines could take quadratic time; what is
left when this much is done counts as changed."""

Pair = tuple[int, int]


def common_lines(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Pair]:
    """Return pairs of positions of the same line, ascending in both texts, counted from 0.

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
    """Yield where two versions differ.

    >>> list(hunks(["a", "b"], ["a", "x", "y", "b"]))
    [Hunk(old=range(2, 2), new=range(2, 4))]
    """
    a, c = 0, 0
    for i, j in [*common_lines(old, new), (len(old), len(new))]:
        if i > a or j > c:
            yield Hunk(range(a + 1, i + 1), range(c + 1, j + 1))
        a, c = i + 1, j + 1


class _Piece(NamedTuple):
    """A piece of both texts: lines a to b of the old one, c to d of the new one."""

    a: int
    b: int
    c: int
    d: int


def _anchors(old: Sequence[Hashable], new: Sequence[Hashable], piece: _Piece) -> list[Pair]:
    """Return pairs of positions that split a piece."""
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
    position = {line: j for j, line in enumerate(new[c:d], start=c) if line in once}
    return _ascending(
        [(i, position[line]) for i, line in enumerate(old[a:b], start=a) if line in once]
    )


def _ascending(pairs: list[Pair]) -> list[Pair]:
    """Return the longest chain of pairs that ascend in both positions; the first already do."""
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
    """Return where the longest run of common lines around an occurrence of a line begins."""
    a, b, c, d = piece
    in_old = [i for i in range(a, b) if old[i] == line][:_OCCURRENCES]
    in_new = [j for j in range(c, d) if new[j] == line][:_OCCURRENCES]
    longest, start = 0, (a, c)
    for i in in_old:
        for j in in_new:
            up = 0
            while i - up > a and j - up > c and old[i - up - 1] == new[j - up - 1]:
                up += 1
            down = 1
            while i + down < b and j + down < d and old[i + down] == new[j + down]:
                down += 1
            if up + down > longest:
                longest, start = up + down, (i - up, j - up)
    return start


# The mapping.

How = Literal["same", "moved", "edited"]

_BLOCK = 3
"""Lines that are too common to be recognised one by one are recognised if this many move
together."""
_LONG = 12
"""The length from which a line is recognised elsewhere: longer than ``return x`` or ``else:``."""
_SIMILAR = 0.6
_SIMILAR_IN_PLACE = 0.4
_FEW = 3
"""If at most this many lines replace as many others, they are paired even if not similar."""
_MOST_PAIRS = 10_000
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class OldLine:
    """Where a line was, and how it was recognised."""

    line: int
    how: How


Mapping = dict[int, OldLine]


def old_lines(old_text: str, new_text: str) -> Mapping:
    """Return, for lines of the new text, the lines of the old text that they come from.

    >>> mapping = old_lines("a = 1\\nb = 2\\nc = 3\\n", "import os\\na = 1\\nb = 5\\nc = 3\\n")
    >>> mapping[2], mapping[3]
    (OldLine(line=1, how='same'), OldLine(line=2, how='edited'))
    >>> 1 in mapping
    False
    """
    old = [line.strip() for line in lines_of(old_text)]
    new = [line.strip() for line in lines_of(new_text)]
    same = common_lines(old, new)
    moved = _moved(old, new, same)
    edited = _edited(old, new, same, moved)
    mapping: Mapping = {}
    ways: tuple[tuple[How, Iterable[tuple[int, int]]], ...] = (
        ("same", same),
        ("moved", moved),
        ("edited", edited),
    )
    for how, pairs in ways:
        mapping |= {j + 1: OldLine(i + 1, how) for i, j in pairs}
    return dict(sorted(mapping.items()))


def share_in_common(old_text: str, new_text: str) -> float:
    """Return how similar two texts are: the share of lines, without blank ones, that both have.

    >>> share_in_common("a\\nb\\n", "b\\n\\na\\nc\\nd\\n")
    0.6666666666666666
    """
    old = Counter(line for text in lines_of(old_text) if (line := text.strip()))
    new = Counter(line for text in lines_of(new_text) if (line := text.strip()))
    total = old.total() + new.total()
    return 2 * (old & new).total() / total if total else float(old_text == new_text)


def _moved(
    old: Sequence[str], new: Sequence[str], same: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return pairs of lines that moved elsewhere, alone or together."""
    stayed_old, stayed_new = {i for i, _ in same}, {j for _, j in same}
    gone = [i for i in range(len(old)) if i not in stayed_old]
    come = [j for j in range(len(new)) if j not in stayed_new]
    free_old, free_new = set(gone), set(come)
    departures = _positions_of_unique({i: old[i] for i in gone if old[i]})
    arrivals = _positions_of_unique({j: new[j] for j in come if new[j]})
    all_old, all_new = Counter(old), Counter(new)
    pairs: list[tuple[int, int]] = []
    for text, j in arrivals.items():
        i = departures.get(text)
        if i is None or i not in free_old or j not in free_new:
            continue
        block = _block(old, new, i, j, free_old, free_new)
        texts = [text for old_line, _ in block if (text := old[old_line])]
        recognisable = any(
            len(text) >= _LONG and all_old[text] == all_new[text] == 1 for text in texts
        )
        if recognisable or len(texts) >= _BLOCK:
            pairs += block
            free_old.difference_update(old_line for old_line, _ in block)
            free_new.difference_update(new_line for _, new_line in block)
    return pairs


def _positions_of_unique(texts: dict[int, str]) -> dict[str, int]:
    """Return the position of each text that occurs only once."""
    counts = Counter(texts.values())
    return {text: position for position, text in texts.items() if counts[text] == 1}


def _block(
    old: Sequence[str],
    new: Sequence[str],
    i: int,
    j: int,
    free_old: set[int],
    free_new: set[int],
) -> list[tuple[int, int]]:
    """Return the lines around a pair that moved with it."""
    first = 0
    while _goes_along(old, new, i + first - 1, j + first - 1, free_old, free_new):
        first -= 1
    last = 0
    while _goes_along(old, new, i + last + 1, j + last + 1, free_old, free_new):
        last += 1
    return [(i + step, j + step) for step in range(first, last + 1)]


def _goes_along(
    old: Sequence[str],
    new: Sequence[str],
    i: int,
    j: int,
    free_old: set[int],
    free_new: set[int],
) -> bool:
    return i in free_old and j in free_new and old[i] == new[j]


def _edited(
    old: Sequence[str],
    new: Sequence[str],
    same: Sequence[tuple[int, int]],
    moved: Iterable[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Return pairs of lines where one took the place of the other, between lines that stayed."""
    gone, come = {i for i, _ in moved}, {j for _, j in moved}
    pairs: list[tuple[int, int]] = []
    a, c = 0, 0
    for i, j in [*same, (len(old), len(new))]:
        before = [line for line in range(a, i) if old[line] and line not in gone]
        after = [line for line in range(c, j) if new[line] and line not in come]
        if before and after:
            pairs += _aligned(old, new, before, after)
        a, c = i + 1, j + 1
    return pairs


def _aligned(
    old: Sequence[str], new: Sequence[str], before: list[int], after: list[int]
) -> list[tuple[int, int]]:
    """Return which new lines between two lines that stayed replaced which old ones."""
    if len(before) == len(after) <= _FEW:
        return list(zip(before, after, strict=True))
    if len(before) == len(after):
        pairs = zip(before, after, strict=True)
        in_place = [(i, j) for i, j in pairs if _similarity(old[i], new[j]) >= _SIMILAR_IN_PLACE]
        if 2 * len(in_place) >= len(before):
            return in_place
    if len(before) * len(after) > _MOST_PAIRS:
        return []
    # A single line that was replaced, or a single replacement, needs less similarity.
    least = _SIMILAR_IN_PLACE if min(len(before), len(after)) == 1 else _SIMILAR
    return _best_alignment(
        [[_similarity(old[i], new[j]) for j in after] for i in before], before, after, least
    )


def _best_alignment(
    similarity: list[list[float]], before: list[int], after: list[int], least: float
) -> list[tuple[int, int]]:
    """Return the pairs, in the same order on both sides, with the largest total similarity."""
    rows, columns = len(before), len(after)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            paired = similarity[i][j] + best[i + 1][j + 1] if similarity[i][j] >= least else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs = []
    i = j = 0
    while i < rows and j < columns:
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            pairs.append((before[i], after[j]))
            i, j = i + 1, j + 1
    return pairs


def _similarity(line: str, other: str) -> float:
    """Return the share of words and punctuation that two lines have in common."""
    words, others = Counter(_WORD.findall(line)), Counter(_WORD.findall(other))
    total = words.total() + others.total()
    return 2 * (words & others).total() / total if total else 0.0
