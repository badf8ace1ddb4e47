"""Rules as a grammar file has them: expressions, before groups become rules of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from swarmtest.subjects.grammar.model import Terminal


@dataclass(frozen=True, slots=True)
class Named:
    """A reference to a rule by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Several:
    """Expressions one after the other."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """Alternatives, each with its alias (empty if it has none)."""

    ways: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Times:
    """An expression `low` to `high` times; None: no limit."""

    part: Expression
    low: int
    high: int | None


Expression: TypeAlias = Terminal | Named | Several | OneOf | Times


def bare(expression: Expression) -> Expression:
    """An expression without brackets around a single part."""
    while True:
        match expression:
            case OneOf(((_, inner),)) | Several((inner,)):
                expression = inner
            case _:
                return expression


def ways_of(expression: Expression) -> Iterator[tuple[str, Expression]]:
    """The alternatives of a rule; those of nested groups that stand alone are its own."""
    if isinstance(expression, Several) and len(expression.parts) == 1:
        yield from ways_of(expression.parts[0])
    elif isinstance(expression, OneOf):
        for alias, way in expression.ways:
            inner = [*ways_of(way)]
            if alias or len(inner) == 1:
                yield alias or inner[0][0], way
            else:
                yield from inner
    else:
        yield "", expression


def spelled(expression: Expression) -> str:
    """An expression in a few characters, without spaces and commas.

    >>> spelled(Several((Named("expr"), Terminal("PLUS", "+"), Named("expr"))))
    'expr+expr'
    """
    match expression:
        case Terminal(name, text, pattern):
            plain = text and not pattern and not re.search(r"[\s,\"']", text)
            return text if plain else re.sub(r"[\s,]+", "_", re.sub("[\"']", "", name)) or "quote"
        case Named(name):
            return name.replace(",", "|")
        case Several(parts):
            return _joined([spelled(part) for part in parts]) or "empty"
        case OneOf(ways):
            words = [spelled(way) for _, way in ways]
            return f"({'|'.join(words)})" if len(words) > 1 else words[0]
        case Times(part, low, high):
            sign = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((low, high), f"~{low}..{high}")
            body = spelled(part)
            return f"({body}){sign}" if isinstance(bare(part), Several) else body + sign


def _joined(words: Sequence[str]) -> str:
    """Words with a hyphen where two of letters meet."""
    text, before = "", ""
    for word in words:
        # A sign after a word says how often it comes; alone it is a token.
        meets = re.match(r"[\w{]", word) and re.search(r"[\w}]$|.[?*+]$", before)
        text += f"-{word}" if meets else word
        before = word
    return text
