"""The smallest tree of every rule and every alternative, for reduction.

Smallest: fewest tokens, then least depth. A tree's cost is greater than that of each of its
subtrees, so building one from the best alternatives always ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swarmtest.subjects.grammar.growing import Tree
from swarmtest.subjects.grammar.model import (
    Alternative,
    Grammar,
    Ref,
    Repeat,
    Terminal,
    needed_rules,
)
from swarmtest.subjects.grammar.token_texts import TokenTexts

_NEVER = (1 << 40, 1 << 40)


class SmallestTrees:
    """Makes the smallest trees of one grammar."""

    def __init__(self, grammar: Grammar, texts: Mapping[Terminal, TokenTexts]) -> None:
        self.grammar = grammar
        self._texts = texts
        self._best = self._best_alternatives()

    def of_rule(self, rule: int) -> Tree:
        """The smallest tree of a rule."""
        return self.of_alternative(self._best[rule])

    def of_alternative(self, number: int) -> Tree:
        """The smallest tree that starts with an alternative."""
        node: Tree = [number]
        for item in self.grammar.alternatives[number].items:
            if isinstance(item, Repeat):
                node.append([-1 - item.number, *(self._made(item.item) for _ in range(item.low))])
            else:
                node.append(self._made(item))
        return node

    def _made(self, item: Terminal | Ref) -> Any:
        if isinstance(item, Ref):
            return self.of_rule(item.rule)
        return self._texts[item].smallest if item.pattern else item.text

    def _best_alternatives(self) -> list[int]:
        rules = self.grammar.rules
        costs = [_NEVER] * len(rules)
        best = [0] * len(rules)
        changed = True
        while changed:
            changed = False
            for alternative in self.grammar.alternatives:
                cost = _cost(alternative, costs)
                if cost < costs[alternative.rule]:
                    costs[alternative.rule], best[alternative.rule] = cost, alternative.number
                    changed = True
        return best


def _cost(alternative: Alternative, costs: list[tuple[int, int]]) -> tuple[int, int]:
    needed = [costs[rule] for rule in needed_rules(alternative)]
    own = sum(
        item.low if isinstance(item, Repeat) else 1
        for item in alternative.items
        if isinstance(item.item if isinstance(item, Repeat) else item, Terminal)
    )
    return own + sum(n[0] for n in needed), 1 + max((n[1] for n in needed), default=0)
