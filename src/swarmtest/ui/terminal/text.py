"""Text for people: untrusted text made printable, and long text made short."""

from __future__ import annotations

import json
import math
import sys
from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from swarmtest.core.formatting import printable as printable
from swarmtest.ui.terminal.output import unescaped

# Text that others wrote, and text that is too long.


def one_line(text: str) -> str:
    """Return a text as one printable line.

    >>> one_line("lost\\nfound")
    'lost found'
    """
    return printable(" ".join(text.split()))


def kind_and_signature(kind: str, signature: str) -> str:
    """Return a fault in words; a kind that the signature begins with is not repeated.

    >>> kind_and_signature("exit", "exit status 2"), kind_and_signature("exception", "KeyError")
    ('exit status 2', 'exception: KeyError')
    """
    line = one_line(signature)
    return line if line.startswith(kind) else f"{kind}: {line}"


def elided(text: str, most: int) -> str:
    """Return a text, cut in the middle if it is too long: both ends of a name are informative.

    >>> elided("a_very_long_name", 9)
    'a_ve…name'
    """
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def spans(numbers: Iterable[int]) -> str:
    """Return numbers as text, with neighbours joined to ranges.

    >>> spans([1, 2, 3, 7])
    '1-3, 7'
    """
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number - parts[-1][-1] <= 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{p[0]}-{p[-1]}" if p[-1] > p[0] else f"{p[0]}" for p in parts)


def folded_spans(numbers: Iterable[int], others: Iterable[int], room: int) -> str:
    """Return numbers as `spans` does, in a text of about `room` characters.

    If there are too many, neighbours with none of `others` between them are joined, and if there
    are still too many, the last ones are only counted.

    >>> folded_spans([1, 3, 5, 9], [7], room=8)
    '1-5, 9'
    >>> folded_spans(range(1, 200, 2), range(2, 200, 2), room=32)
    '1, 3, 5, 7, 9, and 95 more'
    """
    wanted = sorted(numbers)
    text = spans(wanted)
    if len(text) <= room:
        return text
    known = sorted(others)
    ends = [i for i, (a, b) in enumerate(pairwise(wanted)) if bisect(known, a) != bisect(known, b)]
    starts = [0, *(end + 1 for end in ends)]
    ranges = [
        f"{wanted[a]}-{wanted[b]}" if b > a else f"{wanted[a]}"
        for a, b in zip(starts, [*ends, len(wanted) - 1], strict=True)
    ]
    text = ", ".join(ranges)
    if len(text) <= room:
        return text
    shown = 0
    used = len(", and 99,999 more") - 2
    while shown < len(ranges) and used + len(ranges[shown]) + 2 <= room:
        used += len(ranges[shown]) + 2
        shown += 1
    shown = max(shown, 1)
    return f"{', '.join(ranges[:shown])}, and {len(ranges) - shown:,} more"


# Rows of a table.


def grouped(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the rows with the first column empty where it repeats the row before."""
    first_cells = [None, *(row[0] for row in rows)]
    return [
        ("" if row[0] == previous else row[0], *row[1:])
        for row, previous in zip(rows, first_cells, strict=False)
    ]


def json_text(data: Any) -> str:
    """Return plain data as standard JSON: infinities and NaN become null.

    >>> json_text({"low": float("nan"), "high": (1.5, float("inf"))})
    '{"low": null, "high": [1.5, null]}'
    """
    return json.dumps(_finite(data), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def can_show(characters: str) -> bool:
    """Return whether standard output can show these characters; it can if it has no encoding."""
    encoding = getattr(unescaped(sys.stdout), "encoding", None)
    try:
        characters.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
