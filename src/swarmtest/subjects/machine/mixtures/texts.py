"""Texts and bytes that are drawn more often than others.

About half of the texts have independent letters. The others are repeated, equal or nearly equal to
one that the test has used, or a constant of the program. A text without an alphabet may have any
character, and is often put together from parts that parsers care about.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from swarmtest.subjects.machine.mixtures.program_random import (
    ProgramRandom,
    compared_in,
    constants_of,
    used_value,
)

_ODD = (
    *("\0", "\n", "\r\n", "\t", " ", "\x0b", "\x1c", "\x85", "\x7f", "\xa0", "\u2028", "\ufeff"),
    *("é", "e\u0301", "ß", "İ", "ı", "ſ", "Σ", "ς", "ﬁ", "Ǆ", "א", "\u202e", "\u200d", "٣", "²"),
    *("漢", "\uff11", "\ud800", "\udc80", "\udfff", "😀", "👩\u200d👩", "\U0010ffff", "\uffff"),
)
_PIECES = (
    *("a", "b", "A", "0", "1", "-1", "+1", "12", "007", "1.5", ".5", "1.", "1e9", "1e999", "0x1f"),
    *("NaN", "inf", "-0", "1_000", "true", "None", "null", "''", '""', "'", '"', "\\", "\\n"),
    *("(", ")", "()", "[", "]", "[]", "{", "}", "{}", "<", ">", "<a>", "</a>", "<!--", "-->"),
    *(",", ";", ":", "=", "==", "a=b", "a: b", "&", "&amp;", "#", "%", "%20", "%s", "$", "@", "!"),
    *("/", "//", "..", "../", "/a/b", "http://a/", "?q=1", "a@b.c", "*", "**", "|", "~", "^", "`"),
    *(" ", "  ", "\n", "\n\n", "\t", "\r", "\r\n", "2024-02-29", "23:59:60", "T", "Z", "-", "--"),
    *("_", "__init__", ".", "...", "\x00", "é", "\ufeff"),
)
"""What languages, formats and protocols are made of."""


def mixed_text(
    rng: random.Random, alphabet: Sequence[str], letters: frozenset[str], low: int, high: int
) -> str:
    """Draw a text over an alphabet that is repeated, known or nearly known.

    >>> set(mixed_text(random.Random(1), "ab", frozenset("ab"), 1, 5)) <= {"a", "b"}
    True
    """
    share = rng.random()
    if share < 0.4:
        text = _repeated(rng, alphabet, low, high)
    elif share < 0.6:
        text = _known(rng, low, high)
    else:
        text = used_value(rng, str) or ""
        if share > 0.75:
            text = nearly(rng, text, alphabet)
    if not (low <= len(text) <= high and letters.issuperset(text)):
        text = "".join(rng.choices(alphabet, k=low + int(rng.random() * (high - low + 1))))
    return text


def any_text(rng: random.Random, low: int, high: int) -> str:
    """Draw a text of any characters.

    >>> len(any_text(random.Random(3), 2, 10)) in range(2, 11)
    True
    """
    share = rng.random()
    if share < 0.12:
        text = _known(rng, low, high)
    elif share < 0.2:
        text = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=_size(rng, low, high)))
    elif share < 0.28:
        return "".join(chr(_code_point(rng)) for _ in range(_size(rng, low, high)))
    elif share < 0.36:
        text = _repeated(rng, _PIECES if rng.random() < 0.7 else _ODD, low, high)
    elif share < 0.46:
        text = "".join(rng.choices(_ODD, k=_size(rng, low, high)))
    elif share < 0.56:
        text = used_value(rng, str) or ""
        text = nearly(rng, text, _PIECES) if rng.random() < 0.6 else text
    else:
        few = rng.choices(_PIECES, k=1 + int(rng.random() * 4))
        text = "".join(rng.choices(few, k=1 + int(rng.random() * max(1, min(high, 12)))))
    if len(text) < low:
        text += "".join(rng.choices("ab \n", k=low - len(text)))
    return text[:high]


def _code_point(rng: random.Random) -> int:
    """Draw a code point; the short ones in any encoding are as likely as the long ones."""
    return int(rng.random() * (0x80, 0x100, 0x800, 0x10000, 0x110000)[int(rng.random() * 5)])


def _size(rng: random.Random, low: int, high: int) -> int:
    return low + int(rng.random() * (high - low + 1))


def _repeated(rng: random.Random, alphabet: Sequence[str], low: int, high: int) -> str:
    """Return one to three letters again and again, sometimes with another end."""
    unit = "".join(rng.choices(alphabet, k=1 + int(rng.random() ** 2 * 3)))
    size = high if rng.random() < 0.2 else _size(rng, low, high)
    text = (unit * (size // max(1, len(unit)) + 1))[:size]
    if text and rng.random() < 0.2:
        text = text[:-1] + alphabet[int(rng.random() * len(alphabet))][:1]
    return text


def _known(rng: random.Random, low: int, high: int) -> str:
    """Return a text that the program has compared with, or that its source mentions."""
    compared: Sequence[Any] = ()
    if rng.random() < 0.4:
        compared = [value for value in compared_in(rng) if type(value) is str]
    if not compared:
        constants = constants_of(rng)
        compared = constants.compared_texts if rng.random() < 0.6 else constants.texts
        compared = compared or constants.texts
    return str(compared[int(rng.random() * len(compared))]) if compared else ""


def nearly(rng: random.Random, text: str, alphabet: Sequence[str]) -> str:
    """Return a text that differs in one place.

    >>> nearly(random.Random(2), "abc", "x") != "abc"
    True
    """
    at = int(rng.random() * (len(text) + 1))
    letter = alphabet[int(rng.random() * len(alphabet))]
    way = int(rng.random() * 6)
    if way == 0:
        return text[:at] + letter + text[at:]
    if way == 1:
        return text[:at] + text[at + 1 :]
    if way == 2:
        return text[:at] + letter + text[at + 1 :]
    if way == 3:
        return text + text
    return text.swapcase() if way == 4 else text + letter


def mixed_binary(rng: random.Random, low: int, high: int) -> bytes:
    """Draw bytes that are repeated, known, nearly known, or text.

    >>> len(mixed_binary(random.Random(5), 0, 4)) <= 4
    True
    """
    share = rng.random()
    if share < 0.4:
        unit = bytes(rng.choices((0, 1, 0x7F, 0x80, 0xFF, 10, 13, 32, 65), k=1 + (share < 0.1)))
        size = _size(rng, low, high)
        data = (unit * (size + 1))[:size]
    elif share < 0.6:
        data = any_text(rng, low, high).encode(errors="surrogatepass")[:high]
    else:
        data = used_value(rng, bytes) or b""
        if share < 0.75 or not data:
            known = [value for value in compared_in(rng) if type(value) is bytes]
            known += constants_of(rng).binaries
            data = known[int(rng.random() * len(known))] if known else b""
        if share > 0.9 and data:
            at = int(rng.random() * len(data))
            data = data[:at] + bytes([data[at] ^ 1 << int(rng.random() * 8)]) + data[at + 1 :]
    return data if low <= len(data) <= high else rng.randbytes(_size(rng, low, high))


def note(rng: random.Random, value: Any) -> None:
    """Remember a value that the test uses."""
    if isinstance(rng, ProgramRandom):
        rng.note(value)
