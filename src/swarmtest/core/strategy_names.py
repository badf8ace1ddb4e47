"""Strategies as text, ``coin:p=0.3`` or ``mixture:all-on=0.1,coin=0.9``, and their old names.

Stores and users' files keep the text of a strategy for years. `OLD_STRATEGY_NAMES` is the only
table of names that have changed. Stores apply it when they read a campaign, and `parse_strategy`
when it reads a text, so everything else sees only today's names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from swarmtest.core.errors import UserError

OLD_STRATEGY_NAMES = {"default": "all-on"}
"""Today's names of strategies, by the names that they had before."""

_NAMED = re.compile(r"\s*([\w-]+)\s*(?:(:)(.*)|(\()(.*)\)\s*)?", re.DOTALL)
"""A name, with its parameters after a colon or in parentheses."""


def current_strategy_text(text: str) -> str:
    """Return the text of a strategy with old names replaced by today's, also inside a mixture.

    >>> current_strategy_text("default"), current_strategy_text("coin:p=0.3")
    ('all-on', 'coin:p=0.3')
    >>> current_strategy_text("mixture:default=0.1,mixture(default=0.2,coin=0.8)=0.9")
    'mixture:all-on=0.1,mixture(all-on=0.2,coin=0.8)=0.9'
    >>> current_strategy_text("mine.py:Mine:default=3")
    'mine.py:Mine:default=3'
    """
    if not any(old in text for old in OLD_STRATEGY_NAMES):
        return text
    match = _NAMED.fullmatch(text)
    if match is None:
        return text
    name, colon, after_colon, _, in_parentheses = match.groups()
    arguments = after_colon or in_parentheses or ""
    if name == "mixture":
        arguments = ",".join(map(_current_share, split_at_commas(arguments)))
    name = OLD_STRATEGY_NAMES.get(name, name)
    if not arguments:
        return name
    return f"{name}:{arguments}" if colon else f"{name}({arguments})"


def _current_share(share: str) -> str:
    """Return a member of a mixture with its share, under today's name."""
    member, equals, number = share.rpartition("=")
    return f"{current_strategy_text(member)}{equals}{number}"


def split_at_commas(text: str) -> list[str]:
    """Split a text at its commas outside parentheses, and remove the space around the pieces.

    >>> split_at_commas("all-on, mixture(all-on=0.3,coin(p=0.3)=0.7)")
    ['all-on', 'mixture(all-on=0.3,coin(p=0.3)=0.7)']
    """
    pieces, depth, start = [], 0, 0
    for at, char in enumerate(text + ","):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            pieces.append(text[start:at].strip())
            start = at + 1
    if depth:
        pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def split_arguments(arguments: str, head: str) -> Iterator[tuple[str, str]]:
    """Yield the ``key=value`` pairs of the parameters of the strategy `head`.

    >>> list(split_arguments("p=0.3, n=100", "coin"))
    [('p', '0.3'), ('n', '100')]
    """
    if arguments.count("(") != arguments.count(")"):
        raise UserError(f"strategy {head!r}: parentheses do not match in {arguments!r}")
    for piece in split_at_commas(arguments):
        key, equals, value = piece.rpartition("=")
        if not equals:
            raise UserError(f"strategy {head!r}: write parameters as NAME=VALUE: {piece!r}")
        yield key.strip(), value.strip()
