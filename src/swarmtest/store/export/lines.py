"""The lines of an export, joined from texts that many of them share.

Neighbouring parts of a line become one part as long as few combinations of their texts occur: of
hundreds of values in a row, a few dozen texts are left to join.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.store.blocks.hits import BlockHits, unpacked
from swarmtest.store.export.columns import number_codes

_MOST_PAIRS = 1 << 16
"""Combinations of the texts of two parts that are counted."""
_WORD = 16
"""Targets that become one part."""
_ROWS_AT_ONCE = 64
"""Lines that become one text: a line with coverage can have a megabyte."""


class Texts(NamedTuple):
    """A part of each line."""

    texts: list[bytes]
    """The texts that occur."""
    places: npt.NDArray[Any]
    """For each line the place of its text."""


def join_neighbours(parts: Iterable[Texts]) -> list[Texts]:
    """Join neighbouring parts of lines that have few combinations.

    >>> flags = np.array([0, 1, 0, 1])
    >>> (joined,) = join_neighbours([Texts([b"a", b"b"], flags), Texts([b",", b";"], flags)])
    >>> joined.texts
    [b'a,', b'b;']
    """
    joined: list[Texts] = []
    for part in parts:
        both = _joined(joined[-1], part) if joined else None
        if both is None:
            joined.append(part)
        else:
            joined[-1] = both
    return joined


def _joined(left: Texts, right: Texts) -> Texts | None:
    """Return two parts as one; None if they have too many combinations to be worth it."""
    many = len(right.texts)
    if many == 1:
        return Texts([text + right.texts[0] for text in left.texts], left.places)
    if len(left.texts) == 1:
        return Texts([left.texts[0] + text for text in right.texts], right.places)
    if len(left.texts) * many > _MOST_PAIRS:
        return None
    found, index = number_codes(left.places * many + right.places)
    if len(found) > max(_WORD, len(index) // 8):
        return None
    return Texts([left.texts[n // many] + right.texts[n % many] for n in found.tolist()], index)


def join_lines(parts: Sequence[Texts], size: int) -> list[bytes]:
    """Return the rows of parts as text, some rows at a time."""
    columns = [np.array([*part.texts, None], object)[part.places] for part in parts]
    rows = np.stack(columns, axis=1) if columns else np.empty((size, 0), object)
    return [
        b"".join(rows[start : start + _ROWS_AT_ONCE].ravel().tolist())
        for start in range(0, size, _ROWS_AT_ONCE)
    ]


def hit_texts(hits: BlockHits, texts: Sequence[bytes], separator: bytes) -> list[Texts]:
    """Return the texts of the targets that each trial hit, with separators between them.

    `texts` has a text for each target, in the order in which they are to be joined.

    >>> from swarmtest.store.blocks.hits import invert_hits
    >>> hits = invert_hits([[3, 5], [], [5]])
    >>> parts = hit_texts(hits, [b"a", b"b"], b";")
    >>> join_lines(parts, 3)
    [b'a;bb']
    """
    flags = unpacked(hits.class_bits(), hits.size).view(np.uint8)
    parts = []
    for start in range(0, len(texts), _WORD):
        some = [separator + text for text in texts[start : start + _WORD]]
        codes = np.zeros(hits.size, np.uint16)
        for bit, number in enumerate(hits.classes[start : start + _WORD].tolist()):
            codes |= flags[number].astype(np.uint16) << np.uint16(bit)
        found, index = number_codes(codes)
        bits = np.unpackbits(
            found.astype("<u2").view(np.uint8).reshape(-1, 2), axis=1, bitorder="little"
        )
        parts.append(Texts([b"".join(compress(some, row)) for row in bits.tolist()], index))
    return _without_first(join_neighbours(parts), len(separator), hits.size)


def _without_first(parts: Iterable[Texts], length: int, size: int) -> list[Texts]:
    """Remove so many bytes from the beginning of each row."""
    begun = np.zeros(size, bool)
    shortened = []
    for texts, index in parts:
        is_first = (np.array([bool(text) for text in texts])[index]) & ~begun
        begun |= is_first
        if is_first.any():
            more = [*texts, *(text[length:] for text in texts)]
            shortened.append(Texts(more, index + is_first * len(texts)))
        else:
            shortened.append(Texts(texts, index))
    return shortened
