"""The shape of a message: what stays of it when the same bug shows with other values.

Numbers, quoted text, addresses, paths, UUIDs, names like ``k5``, reprs, and the number of elements
of a list vary from test to test. They are replaced by marks, so that the same bug has the same
shape.
"""

from __future__ import annotations

import re

LONGEST = 160
"""Characters of a shape; what is longer is cut."""

_VALUE = (
    r"(?:(?:[\w.]+[=:] ?)?"  # a field: x=1, name: 'n'
    r"(?:#|'…'|None|True|False|…|<[\w.]+ …>|-?inf|nan"
    r"|(?:[A-Za-z_][\w.]*)?(?:\[…\]|\(…\)|\{…\})|\w*#\w*))"
)
_PAIR = rf"{_VALUE}(?:: {_VALUE})?"
_IN_BRACKETS = (
    (re.compile(rf"\[(?:{_PAIR}(?:, ?{_PAIR})*,?|…?)\]"), "[…]"),
    (re.compile(rf"\((?:{_PAIR}(?:, ?{_PAIR})*,?|…)\)|(?<!\w)\(\)"), "(…)"),
    (re.compile(rf"\{{(?:{_PAIR}(?:, ?{_PAIR})*,?|…?)\}}"), "{…}"),
)
_DEEPEST = 12
"""How many brackets inside each other are followed."""

_VARYING = (
    (
        re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"),
        "#",
    ),
    (re.compile(r"0x[0-9a-fA-F]+"), "0x?"),
    (re.compile(r"(?<!\w)[bBrRuU]{0,2}'[^'\n]*'(?!\w)|(?<!\w)[bBrRuU]?\"[^\"\n]*\"(?!\w)"), "'…'"),
    (re.compile(r"(?<![\w.])(?:/[\w.+~-]+){2,}/?"), "/…"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b"), "#"),
    (re.compile(r"(?<![A-Za-z_0-9])-?(?!0x\?)\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)"), "#"),
    (re.compile(r"(?<![A-Za-z_0-9])-?(?!0x\?)\d+(?:\.\d+)?(?:e[+-]?\d+)?"), "#"),
    (re.compile(r"<([\w.]+) [^<>\n]*>"), r"<\1 …>"),
)
_NUMBERED_NAME = re.compile(r"\b(?!0x\?)([A-Za-z_]+)\d+\b")
_REPEATED = re.compile(r"(#|'…'|<[\w.]+ …>|[A-Za-z_][\w.]*(?:\(…\)|\[…\]))(?:(?:, | )\1)+")


def normalised(message: str) -> str:
    """Return the shape of a message, in one line.

    >>> normalised("index 17 out of range for <Stack at 0x7f3a>")
    'index # out of range for <Stack …>'
    >>> normalised("[Interval(1, 5), Interval(2, 9)] != []")
    '[…] != […]'
    """
    for pattern, instead in _VARYING:
        message = pattern.sub(instead, message)
    for _ in range(_DEEPEST):
        before = message
        for pattern, instead in _IN_BRACKETS:
            message = pattern.sub(instead, message)
        if message == before:
            break
    message = _REPEATED.sub(r"\1", message)
    # Random text may contain lone surrogates, which neither UTF-8 nor a store accepts.
    message = " ".join(message.encode(errors="backslashreplace").decode().split())
    return message if len(message) <= LONGEST else message[: LONGEST - 1] + "…"


def shape_of(message: str) -> str:
    """Return the shape of an exception's message; a number in a name does not count either.

    In what compilers print, it does: they name types and programs such as ``cc1``.

    >>> shape_of("no such key: k5 in /var/lib/shop/cart.db")
    'no such key: k# in /…'
    """
    return normalised(_NUMBERED_NAME.sub(r"\1#", message))


def first_line(message: str) -> str:
    """Return the first line with something in it.

    The lines after it are often a picture of a state, which differs from test to test.

    >>> first_line("\\nOverlaps ancestor\\n  Node(3)\\n")
    'Overlaps ancestor'
    """
    return next((line for line in message.splitlines() if line.strip()), "")
