"""From a tree to its text: tokens side by side, with a space where they would run into each other.

Where a grammar ignores nothing between tokens, nothing is put there. Otherwise tokens are kept
apart, but for brackets, commas and the like, and only where no terminal of the grammar could read
the two as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from swarmtest.subjects.grammar.growing import Tree
from swarmtest.subjects.grammar.layout import Layout
from swarmtest.subjects.grammar.model import Grammar, Terminal
from swarmtest.subjects.grammar.token_texts import TokenTexts

_CLOSE_AFTER = "(["
_CLOSE_BEFORE = "),;]"
_MOST_KNOWN = 20_000


def tokens_of(tree: Tree) -> list[str]:
    """The tokens of a tree, in order.

    >>> tokens_of([0, "a", [-1, [2, "b"]]])
    ['a', 'b']
    """
    found: list[str] = []
    _collect(tree, found)
    return found


def _collect(tree: Tree, found: list[str]) -> None:
    for child in tree:
        if type(child) is str:
            found.append(child)
        elif type(child) is list:
            _collect(child, found)


class Printer:
    """Writes trees of one grammar."""

    def __init__(self, grammar: Grammar, texts: Mapping[Terminal, TokenTexts]) -> None:
        self.separators = _separators(grammar.ignored)
        self._layout = Layout(texts.values(), grammar.path) if grammar.indented else None
        self._fixed = {t.text for t in grammar.terminals if not t.pattern and len(t.text) > 1}
        self._texts = [*texts.values(), *_ignorable(grammar.ignored)]
        self._known: dict[tuple[str, str], str] = {}

    def text(self, tree: Tree) -> str:
        """The text of a tree."""
        tokens = tokens_of(tree)
        if self._layout is None:
            return "".join(self._spaced(tokens))
        lines = self._layout.lines(tokens)
        return "".join(piece for line, end in lines for piece in (*self._spaced(line), end))

    def _spaced(self, tokens: Iterable[str]) -> Iterator[str]:
        if not self.separators:
            yield from tokens
            return
        before = ""
        known = self._known
        for token in tokens:
            if before:
                key = before, token[0]
                between = known.get(key)
                if between is None:
                    if len(known) > _MOST_KNOWN:
                        known.clear()
                    between = known[key] = self._between(before, token[0])
                yield between
            yield token
            before = token

    def _between(self, before: str, first: str) -> str:
        """What separates a token from the next, by its first character."""
        if self._may_touch(before, first):
            return ""
        apart = (s for s in self.separators if not any(t.goes_on(before, s) for t in self._texts))
        return next(apart, self.separators[0])

    def _may_touch(self, before: str, first: str) -> bool:
        """Whether a token may stand right after another, by its first character."""
        if before[-1] not in _CLOSE_AFTER and first not in _CLOSE_BEFORE:
            return False
        if any(
            t.startswith(before) and t[len(before) : len(before) + 1] == first for t in self._fixed
        ):
            return False
        return not any(before[0] in t.first and first in t.alphabet for t in self._texts)


def _separators(ignored: Iterable[str]) -> list[str]:
    """What may stand between tokens, the plainest first."""
    patterns = [re.compile(pattern) for pattern in ignored]
    return [c for c in (" ", "\n", "\t") if any(pattern.fullmatch(c) for pattern in patterns)]


def _ignorable(ignored: Iterable[str]) -> list[Any]:
    return [TokenTexts("ignored", pattern) for pattern in ignored]
