"""Text that others wrote, made fit to be looked at; long things made short."""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, what turns the direction of writing round, and halves of characters."""


def printable(text: str) -> str:
    """The text with what cannot be seen, or must not be in a file, spelt out.

    >>> printable("a\\x00b")
    'a\\\\x00b'
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """The text without what cannot be seen, on one line.

    >>> one_line("lost\\nfound")
    'lost found'
    """
    return printable(" ".join(text.split()))


def kind_and_signature(kind: str, signature: str) -> str:
    """A fault in words; a kind that the signature begins with is not said twice.

    >>> kind_and_signature("exit", "exit status 2"), kind_and_signature("exception", "KeyError")
    ('exit status 2', 'exception: KeyError')
    """
    told = one_line(signature)
    return told if told.startswith(kind) else f"{kind}: {told}"


def elided(text: str, most: int) -> str:
    """The text, cut in the middle if it is too long: both ends of a name tell.

    >>> elided("a_very_long_name", 9)
    'a_ve…name'
    """
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def spans(numbers: Iterable[int]) -> str:
    """Numbers, neighbours together.

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
