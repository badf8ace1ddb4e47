"""What ``--strategies`` of a comparison says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from swarmtest.errors import UserError
from swarmtest.strategies import parse_strategy, strategy_text


def compared_strategies(texts: Sequence[str], baseline: str) -> list[str]:
    """The strategies that are compared, in their usual spelling, the baseline first."""
    pieces = [piece for text in texts for piece in split_strategies(text)]
    names = [strategy_text(parse_strategy(piece)) for piece in pieces]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--strategies names {name!r} twice")
    if len(names) < 2:
        raise UserError("a comparison needs two strategies: --strategies default,coin")
    if baseline:
        first = strategy_text(parse_strategy(baseline))
        if first not in names:
            raise UserError(f"--baseline {first}: not among --strategies {', '.join(names)}")
        names.remove(first)
        names.insert(0, first)
    return names


def split_strategies(text: str) -> list[str]:
    """Split at the commas that stand outside parentheses.

    >>> split_strategies("default, mixture(default=0.3,coin(p=0.3)=0.7)")
    ['default', 'mixture(default=0.3,coin(p=0.3)=0.7)']
    """
    pieces = [""]
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            pieces.append("")
        else:
            pieces[-1] += char
    pieces = [piece.strip() for piece in pieces]
    for piece in pieces:
        if re.match(r"\w+\s*=", _outside_parentheses(piece)):
            raise UserError(
                f"--strategies {text}: parameters with commas go in parentheses, like "
                "coin(p=0.3,n=100)"
            )
    return [piece for piece in pieces if piece]


def _outside_parentheses(text: str) -> str:
    before = ""
    while before != text:
        before, text = text, re.sub(r"\([^()]*\)", "", text)
    return text
