"""Generate texts that a regular expression matches, with a preference for readable ones.

A text counts only if a lexer would accept all of it: `re.match` must match up to its end. What the
generator does not take into account (lookarounds, lazy repetitions, alternatives that hide others)
is handled by drawing another text. A pattern for which that does not work is refused when the
grammar is loaded.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Collection, Iterable, Sequence
from re import _constants as sre
from re import _parser as sre_parser
from typing import Any, TypeAlias

from swarmtest.core.errors import UserError

Draw: TypeAlias = Callable[[], float]
"""`random.Random.random`: returns a number from 0 to 1."""
Maker: TypeAlias = Callable[[Draw, dict[int, str]], str]
"""Makes a text for a part of a pattern, given the texts of the groups before it."""

_TRIES = 40
_SAMPLES = 60
_MORE = (0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 8, 11, 16)
"""How many more items than needed a repetition gets; one of these is drawn."""
_LETTERS = string.ascii_lowercase
_DIGITS = string.digits
_PLAIN = string.ascii_letters + _DIGITS
_MARKS = string.punctuation + " "
_ODD = "\t\n\r\x00\x7f\u00a0éß\u0301Ωж中\u200b\u2028\ud7ff\ufeff😀"
_NOTABLE = (
    *("0", "1", "2", "7", "10", "16", "255", "256", "1000", "32768", "65535", "65536", "-1"),
    *("2147483647", "2147483648", "4294967295", "9007199254740993", "9223372036854775807"),
    *("9223372036854775808", "18446744073709551616", "0.0", "0.1", "0.5", "1.5", "1e10", "1e308"),
    *("1e309", "1e-320", '""', "''", '"a"', "'a'", "0x0", "0xff", "0x7fffffff"),
)
"""Texts on which programs tend to fail; used if the pattern matches them."""
_NOTABLE_SHARE = 0.15
"""How often one of these is used."""


class TokenTexts:
    """Makes random texts for one terminal.

    >>> import random
    >>> number = TokenTexts("INT", "[0-9]+")
    >>> number.text(random.Random(3).random).isdigit(), number.smallest
    (True, '0')
    """

    def __init__(self, name: str, pattern: str, reserved: Collection[str] = (), where: str = ""):
        self.pattern = pattern
        shown = name if name.startswith("/") else f"{name} /{pattern}/"
        self.reserved: Collection[str] = ()
        """Texts that are other tokens, such as keywords."""
        try:
            self._match = re.compile(pattern).match
            parsed = sre_parser.parse(pattern)
            self._make = _sequence(parsed)
        except (re.error, OverflowError, RecursionError) as error:
            hint = r" (\p{...} is one of the package regex, not of re)" if r"\p" in pattern else ""
            message = f"{shown} is not a regular expression: {error}{hint}"
            raise UserError(f"{where}: {message}") from None
        except _UnsupportedError as error:
            raise UserError(f"{where}: {shown} cannot be generated: {error}") from None
        samples = self._samples()
        if sum(text in reserved for text in samples) < len(samples) / 4:
            # A name may not be a keyword; but a terminal that consists of keywords may.
            self.reserved = reserved
            samples = [text for text in samples if text not in reserved]
        self.notable = [text for text in _NOTABLE if self.takes(text)]
        if not samples:
            raise UserError(
                f"{where}: {shown} cannot be generated: none of {_SAMPLES} random texts "
                "matched it alone (a lookahead at its end, or too narrow a lookaround)"
            )
        self.smallest = min([*samples, *self.notable], key=simplicity)
        """A text that is as short and plain as possible."""
        self.first, self.alphabet, _ = _characters(parsed)
        """The characters that a text may start with, and those that it may contain."""

    def takes(self, text: str) -> bool:
        """Return whether a lexer would read all of this text as this token."""
        match = self._match(text)
        return bool(match and match.end() == len(text) and text and text not in self.reserved)

    def goes_on(self, text: str, separator: str) -> bool:
        """Return whether a lexer would read past a separator after this text, as in a comment."""
        possible = text[0] in self.first and separator in self.alphabet
        return possible and self.takes(text + separator)

    def text(self, draw: Draw) -> str:
        """Return a random text."""
        if self.notable and draw() < _NOTABLE_SHARE:
            return self.notable[int(draw() * len(self.notable))]
        for _ in range(_TRIES):
            text = self._make(draw, {})
            match = self._match(text)  # `takes`, inlined
            if match and match.end() == len(text) and text and text not in self.reserved:
                return text
        return self.smallest

    def _samples(self) -> list[str]:
        draw = random.Random(0).random
        return [text for _ in range(_SAMPLES) if self.takes(text := self._make(draw, {}))]


def simplicity(text: str) -> tuple[int, list[tuple[bool, bool, bool, str]]]:
    """Return a sort key that puts simpler texts first: shorter, then plainer.

    >>> sorted(["ab", "%", "b", "a"], key=simplicity)
    ['a', 'b', '%', 'ab']
    """
    return len(text), [
        (not c.isascii(), c not in _LETTERS + _DIGITS, c not in _PLAIN, c) for c in text
    ]


class _UnsupportedError(Exception):
    """A part of a pattern for which no text can be made."""


def _sequence(parts: Iterable[Any]) -> Maker:
    makers = [maker for part in parts if (maker := _part(*part)) is not None]
    if len(makers) == 1:
        return makers[0]
    return lambda draw, groups: "".join([make(draw, groups) for make in makers])


def _part(operation: Any, argument: Any) -> Maker | None:
    """Return the maker for one part of a pattern; None for a part that matches no text itself."""
    match operation:
        case sre.LITERAL:
            text = chr(argument)
            return lambda draw, groups: text
        case sre.NOT_LITERAL:
            return _one_of(_pool([(sre.NEGATE, None), (sre.LITERAL, argument)]))
        case sre.ANY:
            return _one_of(_weighted(c for c in _everything() if c != "\n"))
        case sre.IN:
            return _one_of(_pool(argument))
        case sre.BRANCH:
            return _branch([_sequence(way) for way in argument[1]])
        case sre.SUBPATTERN:
            return _group(argument[0], _sequence(argument[3]))
        case sre.ATOMIC_GROUP:
            return _sequence(argument)
        case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
            low, high, body = argument
            return _repeat(low, high, body)
        case sre.GROUPREF:
            return lambda draw, groups: groups.get(argument, "")
        case sre.AT | sre.ASSERT | sre.ASSERT_NOT:
            return None
    raise _UnsupportedError(f"it uses {str(operation).lower()}")


def _characters(parts: Iterable[Any]) -> tuple[set[str], set[str], bool]:
    """Return the first characters, all characters, and whether the text may be empty."""
    first: set[str] = set()
    every: set[str] = set()
    empty = True
    for operation, argument in parts:
        inner = _characters_of(operation, argument)
        if empty:
            first |= inner[0]
        every |= inner[1]
        empty = empty and inner[2]
    return first, every, empty


def _characters_of(operation: Any, argument: Any) -> tuple[set[str], set[str], bool]:
    match operation:
        case sre.BRANCH:
            ways = [_characters(way) for way in argument[1]]
            union: set[str] = set()
            return (
                union.union(*(w[0] for w in ways)),
                union.union(*(w[1] for w in ways)),
                any(w[2] for w in ways),
            )
        case sre.SUBPATTERN:
            return _characters(argument[3])
        case sre.ATOMIC_GROUP:
            return _characters(argument)
        case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
            first, every, empty = _characters(argument[2])
            return first, every, empty or argument[0] == 0
        case sre.AT | sre.ASSERT | sre.ASSERT_NOT:
            return set(), set(), True
        case sre.GROUPREF:
            return set(_everything()), set(_everything()), True
        case sre.LITERAL:
            return {chr(argument)}, {chr(argument)}, False
        case sre.IN:
            members = set(_pool(argument))
            return members, members, False
    return set(_everything()), set(_everything()), False


def _one_of(pool: str) -> Maker:
    count = len(pool)
    return lambda draw, groups: pool[int(draw() * count)]


def _branch(ways: Sequence[Maker]) -> Maker:
    count = len(ways)
    return lambda draw, groups: ways[int(draw() * count)](draw, groups)


def _group(number: int | None, inner: Maker) -> Maker:
    if number is None:
        return inner

    def make(draw: Draw, groups: dict[int, str]) -> str:
        groups[number] = text = inner(draw, groups)
        return text

    return make


def _repeat(low: int, high: Any, body: Any) -> Maker:
    most = max(low, min(int(high), low + _MORE[-1]))
    counts = [min(most, low + more) for more in _MORE]
    spread = len(counts)
    make = _sequence(body)
    pool = _single_pool(body)
    if pool is not None:
        size = len(pool)
        return lambda draw, groups: "".join(
            [pool[int(draw() * size)] for _ in range(counts[int(draw() * spread)])]
        )
    return lambda draw, groups: "".join(
        [make(draw, groups) for _ in range(counts[int(draw() * spread)])]
    )


def _single_pool(body: Any) -> str | None:
    """Return the characters of a repetition's body, if it is a single set."""
    if len(body) != 1:
        return None
    operation, argument = body[0]
    return _pool(argument) if operation is sre.IN else None


def _pool(members: Sequence[tuple[Any, Any]]) -> str:
    """Return the characters of a set, the readable ones several times."""
    negated = bool(members) and members[0][0] is sre.NEGATE
    rest = members[1:] if negated else members
    listed = [_members(operation, argument) for operation, argument in rest]
    if negated:
        barred = {c for characters, _ in listed for c in characters}
        tests = [test for _, test in listed]
        others = (c for c in _everything() if c not in barred and not any(t(c) for t in tests))
        return _weighted(others)
    return _weighted(c for characters, _ in listed for c in characters)


def _members(operation: Any, argument: Any) -> tuple[Iterable[str], Callable[[str], bool]]:
    """Return the characters of one member of a set, and a test whether it has a character."""
    match operation:
        case sre.LITERAL:
            return [chr(argument)], lambda c: ord(c) == argument
        case sre.RANGE:
            low, high = argument
            return _range(low, high), lambda c: low <= ord(c) <= high
        case sre.CATEGORY:
            test = _category(argument)
            return [c for c in _everything() if test(c)], test
    raise _UnsupportedError(f"its set has {str(operation).lower()}")


def _range(low: int, high: int) -> list[str]:
    """Return a range's characters; of a long range, common ones, its ends and a few others."""
    if high - low < 256:
        codes: Iterable[int] = range(low, high + 1)
    else:
        step = (high - low) // 32
        codes = {low, high, *range(low, high, step), *map(ord, _everything())}
    return [chr(c) for c in sorted(codes) if low <= c <= high and not 0xD800 <= c <= 0xDFFF]


def _category(category: Any) -> Callable[[str], bool]:
    names = {
        sre.CATEGORY_DIGIT: r"\d",
        sre.CATEGORY_NOT_DIGIT: r"\D",
        sre.CATEGORY_SPACE: r"\s",
        sre.CATEGORY_NOT_SPACE: r"\S",
        sre.CATEGORY_WORD: r"\w",
        sre.CATEGORY_NOT_WORD: r"\W",
    }
    match = re.compile(names[category]).match
    return lambda c: match(c) is not None


def _everything() -> str:
    return _PLAIN + _MARKS + _ODD


def _weighted(characters: Iterable[str]) -> str:
    """Return the characters, repeated by how readable they are: letters often, odd ones rarely."""
    unique = list(dict.fromkeys(characters))
    plain = [c for c in unique if c in _PLAIN]
    marks = [c for c in unique if c in _MARKS]
    odd = [c for c in unique if c not in _PLAIN and c not in _MARKS]
    if not plain:
        pool = [*marks * 8, *odd]
    else:
        letters = [c for c in plain if c in _LETTERS or c.isdigit()]
        pool = [*letters * 8, *plain * 8, *marks * 2, *odd[: len(plain)]]
    if not pool:
        raise _UnsupportedError("it has an empty set of characters")
    return "".join(pool)
