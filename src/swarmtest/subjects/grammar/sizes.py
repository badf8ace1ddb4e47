"""Compute how small the trees of each rule can be, and which alternatives can grow without limit.

The least number of tokens and the least depth of a rule are least fixed points, given the
alternatives that are on. A rule that cannot be finished with these has size `NEVER`. Rules are
visited in an order for which one round is enough when everything is on, and a few rounds otherwise:
a configuration costs well under a millisecond.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from swarmtest.subjects.grammar.model import (
    Alternative,
    Grammar,
    Item,
    Repeat,
    RuleReference,
    Terminal,
    base_of,
    needed_rules,
)

NEVER = 1 << 40
"""The size of a rule that cannot be finished; larger than any real size."""

_Row: TypeAlias = tuple[int, int, tuple[tuple[int, int], ...]]
"""An alternative: its number, its own tokens, and each rule that it needs with how many times."""


@dataclass(frozen=True)
class Sizes:
    """The least sizes of rules and alternatives, by number; depth counts nested rules."""

    rule_tokens: Sequence[int]
    rule_depth: Sequence[int]
    tokens: Sequence[int]
    """The least tokens of each alternative."""
    depth: Sequence[int]
    """The least depth of each alternative."""


class SizeTables:
    """The data that sizes are computed from, prepared once for a grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self.rules = len(grammar.rules)
        self.alternatives = len(grammar.alternatives)
        self._rows: list[tuple[int, list[_Row]]] = [
            (rule.number, [_row(alternative) for alternative in rule.alternatives])
            for rule in grammar.rules
        ]
        everything = self.sizes([True] * self.alternatives)
        self._rows.sort(key=lambda entry: everything.rule_depth[entry[0]])

    def sizes(self, on: Sequence[object]) -> Sizes:
        """Return the sizes when only the alternatives with a true value in `on` may be used."""
        rule_tokens, rule_depth = [NEVER] * self.rules, [NEVER] * self.rules
        tokens, depth = [NEVER] * self.alternatives, [NEVER] * self.alternatives
        rows = [(rule, [row for row in entry if on[row[0]]]) for rule, entry in self._rows]
        changed = True
        while changed:
            changed = False
            for rule, entry in rows:
                least, lowest = rule_tokens[rule], rule_depth[rule]
                for number, own, needed in entry:
                    size, level = own, 0
                    for other, times in needed:
                        size += rule_tokens[other] * times
                        if rule_depth[other] > level:
                            level = rule_depth[other]
                    level += 1
                    tokens[number], depth[number] = size, level
                    if size < least:
                        least = size
                    if level < lowest:
                        lowest = level
                if least < rule_tokens[rule] or lowest < rule_depth[rule]:
                    rule_tokens[rule], rule_depth[rule] = least, lowest
                    changed = True
        return Sizes(rule_tokens, rule_depth, tokens, depth)


def _row(alternative: Alternative) -> _Row:
    needed = Counter(needed_rules(alternative))
    bases = [(i.item, i.low) if isinstance(i, Repeat) else (i, 1) for i in alternative.items]
    own = sum(times for base, times in bases if isinstance(base, Terminal))
    return alternative.number, own, tuple(needed.items())


def endless_alternatives(grammar: Grammar) -> frozenset[int]:
    """Return the alternatives whose trees can grow without limit, by recursion or repetition."""
    inside = {
        rule.number: {
            base.rule
            for alternative in rule.alternatives
            for item in alternative.items
            if isinstance(base := base_of(item), RuleReference)
        }
        for rule in grammar.rules
    }
    endless = {rule for rule in inside if rule in _reached(inside, inside[rule])}
    alternatives: set[int] = set()
    while True:
        before = len(alternatives)
        for alternative in grammar.alternatives:
            if any(_is_endless(item, endless) for item in alternative.items):
                alternatives.add(alternative.number)
                endless.add(alternative.rule)
        if len(alternatives) == before:
            return frozenset(alternatives)


def _is_endless(item: Item, endless: set[int]) -> bool:
    base = base_of(item)
    unlimited = isinstance(item, Repeat) and item.high is None
    return unlimited or (isinstance(base, RuleReference) and base.rule in endless)


def _reached(inside: Mapping[int, set[int]], first: set[int]) -> set[int]:
    reached: set[int] = set()
    waiting = list(first)
    while waiting:
        rule = waiting.pop()
        if rule not in reached:
            reached.add(rule)
            waiting += inside[rule]
    return reached
