"""Growing a random tree within a budget of tokens and depth.

A tree is JSON data: ``[alternative, child...]`` for a rule, ``[-1 - repetition, child...]`` for a
repetition, a text for a token. So every list starts with a number, and every text is a token.

How sizes are kept: an alternative is drawn, by weight, among those whose least tokens and least
depth fit what is left. The tokens that it does not need are shared out at random between the parts
that can grow; what one part leaves, the next may use. Every step down spends one of the depth, and
there is always an alternative that fits it, so growing ends. Where depth and tokens cannot both be
kept, depth is.

Left to chance alone, most texts would be as small as the grammar allows. So while many tokens are
left, alternatives and parts that can grow without end are preferred to those that cannot.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from swarmtest.core.errors import UserError
from swarmtest.subjects.grammar.model import (
    Alternative,
    Grammar,
    Item,
    Layout,
    Ref,
    Repeat,
    Rule,
    Terminal,
    needed_rules,
)
from swarmtest.subjects.grammar.sizes import NEVER, Sizes, SizeTables, endless_alternatives
from swarmtest.subjects.grammar.token_texts import TokenTexts

Tree: TypeAlias = list[Any]

LONGEST = 1_000_000
"""Tokens of the smallest text of a grammar that is still worth making."""
DEEPEST = 250
"""Nested rules; deeper trees would end in Python's limit of nested calls."""

_FIXED, _TOKEN, _RULE, _REPEAT = range(4)
_NOTHING = 0.125
"""How often a part that may come any number of times does not come, though it could."""

_RULES_PER_TOKEN = 50
"""Rules that a text may take for each of its tokens."""
_ROOMY = 8
"""Tokens to spare from which on what can grow is preferred,"""
_PREFERENCE = 0.875
"""so often."""

_Step: TypeAlias = tuple[int, Any]


@dataclass(frozen=True)
class _Way:
    """An alternative, ready to be grown."""

    steps: tuple[_Step, ...]
    own: int
    """Tokens that stand in it."""
    growing: int
    """Parts that can take more tokens than they need."""


_Options: TypeAlias = tuple[list[int], list[float], int, int, tuple[list[int], list[float]] | None]
"""Numbers of the alternatives that are on, running sums of weights, their largest least sizes; then
numbers and sums of those that can grow, if only some can."""


@dataclass(frozen=True)
class Plan:
    """What a configuration leaves of the grammar."""

    options: Mapping[int, _Options]
    """By the rule's number."""
    sizes: Sizes
    part_weights: Sequence[float]
    """By the repetition's number."""


class _OptionsOfRules(dict[int, _Options]):
    """Made when a rule is first met: a configuration may be used once, for a part of the rules."""

    def __init__(
        self, rules: Sequence[Rule], endless: frozenset[int], on: Sequence[float], sizes: Sizes
    ) -> None:
        self._rules, self._endless, self._on, self._sizes = rules, endless, on, sizes

    def __missing__(self, rule: int) -> _Options:
        on, tokens, depth = self._on, self._sizes.tokens, self._sizes.depth
        numbers = [a.number for a in self._rules[rule].alternatives]
        kept = [number for number in numbers if on[number] and tokens[number] < NEVER]
        endless = [number for number in kept if number in self._endless]
        some = endless and len(endless) < len(kept)
        found = self[rule] = (
            kept,
            [*accumulate(on[number] for number in kept)],
            max(tokens[number] for number in kept),
            max(depth[number] for number in kept),
            (endless, [*accumulate(on[number] for number in endless)]) if some else None,
        )
        return found


class Grower:
    """Grows trees of one grammar.

    >>> from swarmtest.subjects.grammar.generator import load_grammar
    >>> generator = load_grammar('start: "x" | "(" start ")"', length=9)
    >>> generator.text(generator.generate({"start:x": 1, "start:(start)": 0}, seed=1))
    'x'
    """

    def __init__(self, grammar: Grammar, texts: Mapping[Terminal, TokenTexts]) -> None:
        self.grammar = grammar
        self.tables = SizeTables(grammar)
        self._texts = texts
        self._endless = endless_alternatives(grammar)
        number = {name: n for n, name in enumerate(grammar.features)} | {"": -1}
        self._alternative_features = [number[a.feature] for a in grammar.alternatives]
        self._part_features = [number[repeat.feature] for repeat in grammar.repeats]
        self._ways = [self._way(alternative) for alternative in grammar.alternatives]

    def plan(self, weights: Sequence[float]) -> Plan:
        """What a configuration leaves, by weights in the order of the grammar's features.

        Refused if nothing can be made from it.
        """
        every = (*weights, 1.0)  # what is no feature has number -1
        on = [every[number] for number in self._alternative_features]
        sizes = self.tables.sizes(on)
        if sizes.rule_tokens[0] >= NEVER:
            raise UserError(f"nothing can be generated: {self._missing(on, sizes)}")
        if sizes.rule_tokens[0] > LONGEST:
            long = f"every text has at least {sizes.rule_tokens[0]:,} tokens"
            raise UserError(f"nothing can be generated: {long}")
        if sizes.rule_depth[0] > DEEPEST:
            deep = f"every text has {sizes.rule_depth[0]} nested rules, and {DEEPEST} are possible"
            raise UserError(f"nothing can be generated: {deep}")
        options = _OptionsOfRules(self.grammar.rules, self._endless, on, sizes)
        return Plan(options, sizes, [every[number] for number in self._part_features])

    def _missing(self, on: Sequence[float], sizes: Sizes) -> str:
        """Why nothing can be made: the first rule that lacks an alternative, on the way down."""
        number = 0
        seen: list[int] = []
        while number not in seen:
            seen.append(number)
            rule = self.grammar.rules[number]
            ways = [a for a in rule.alternatives if on[a.number]]
            if not ways:
                names = ", ".join(a.feature for a in rule.alternatives)
                return f"{rule.owner!r} needs one of {names}"
            needed = needed_rules(ways[0])
            endless = [other for other in needed if sizes.rule_tokens[other] >= NEVER]
            if not endless:
                return f"every way to write {rule.owner!r} is too long"
            number = endless[0]
        owner = self.grammar.rules[number].owner
        enough = [
            a.feature
            for a in self.grammar.alternatives
            if not on[a.number] and self._works([*on[: a.number], 1.0, *on[a.number + 1 :]])
        ]
        end = f"one of these would end it: {', '.join(enough)}" if enough else "more has to be on"
        return f"every way to write {owner!r} needs it again; {end}"

    def _works(self, on: Sequence[float]) -> bool:
        return self.tables.sizes(on).rule_tokens[0] < NEVER

    def grow(self, plan: Plan, rng: random.Random, tokens: int, depth: int) -> Tree:
        """A tree of about at most so many tokens, and at most so many nested rules."""
        depth = max(depth, plan.sizes.rule_depth[0])
        tokens = max(tokens, plan.sizes.rule_tokens[0])
        rules = _RULES_PER_TOKEN * (tokens + _ROOMY)
        return self._growing(plan, rng.random, rules)(0, tokens, depth)

    def _growing(
        self, plan: Plan, draw: Callable[[], float], most_rules: int
    ) -> Callable[[int, int, int], Tree]:
        """A function that grows a rule within a budget of tokens and a depth.

        After so many rules everything is kept small: what can be empty takes nothing from the
        budget, and could go on and on.
        """
        ways, options, part_weights = self._ways, plan.options, plan.part_weights
        least, rule_least = plan.sizes.tokens, plan.sizes.rule_tokens
        lowest, rule_lowest = plan.sizes.depth, plan.sizes.rule_depth
        made = rules = 0

        def fitting(rule: int, budget: int, depth: int) -> int:
            """An alternative that fits; if none does, the cheapest that keeps the depth."""
            numbers, sums, _, _, _ = options[rule]
            before = [0.0, *sums]
            fits = [
                (number, sums[i] - before[i])
                for i, number in enumerate(numbers)
                if least[number] <= budget and lowest[number] <= depth
            ]
            if not fits:
                low = [number for number in numbers if lowest[number] <= depth]
                return min(low, key=lambda number: (least[number], lowest[number]))
            at = draw() * sum(weight for _, weight in fits)
            for number, weight in fits:
                at -= weight
                if at < 0:
                    return number
            return fits[-1][0]

        def grow(rule: int, budget: int, depth: int) -> Tree:
            nonlocal made, rules
            rules += 1
            if rules > most_rules:
                budget = rule_least[rule]
            numbers, sums, most, deepest, endless = options[rule]
            if most <= budget and deepest <= depth:
                if endless and budget > most + _ROOMY and draw() < _PREFERENCE:
                    numbers, sums = endless
                if len(numbers) == 1:
                    number = numbers[0]
                else:
                    place = bisect_right(sums, draw() * sums[-1])
                    number = numbers[place if place < len(numbers) else -1]
            else:
                number = fitting(rule, budget, depth)
            way = ways[number]
            node: Tree = [number]
            made += way.own
            spare = budget - least[number]
            growing = way.growing
            for kind, part in way.steps:
                if kind == _FIXED:
                    node.append(part)
                elif kind == _TOKEN:
                    node.append(part(draw))
                else:
                    if spare <= 0:
                        share = 0
                    elif growing == 1:
                        share = spare
                    else:
                        share = int(spare * (1.0 - draw() ** (1.0 / (growing - 1))))
                    growing -= 1
                    before = made
                    if kind == _RULE:
                        needed = rule_least[part]
                        node.append(grow(part, needed + share, depth - 1))
                    else:
                        needed, child = repeated(part, share, depth - 1, growing == 0)
                        node.append(child)
                    spare -= made - before - needed
            return node

        def repeated(part: Any, spare: int, depth: int, last: bool) -> tuple[int, Tree]:
            """The tokens that a repetition needs, and one with `spare` more at most."""
            nonlocal made
            code, (kind, body), low, high, weight_at, endless = part
            rule = body if kind == _RULE else -1
            unit = rule_least[rule] if rule >= 0 else 1
            node: Tree = [code]
            room = 0
            if rules <= most_rules and (rule < 0 or rule_lowest[rule] <= depth):
                room = spare // (unit or 1)
                if high is not None and room > high - low:
                    room = high - low
            if room > 0:
                wanted = last and endless and spare > unit + _ROOMY
                count = low + drawn(room, high, part_weights[weight_at], wanted)
            else:
                count = low
            if rule < 0:
                made += count
                node += [body] * count if kind == _FIXED else [body(draw) for _ in range(count)]
                return low, node
            spare -= (count - low) * unit
            for left in range(count, 0, -1):
                share = 0
                if spare > 0:
                    share = (
                        spare if left == 1 else int(spare * (1.0 - draw() ** (1.0 / (left - 1))))
                    )
                before = made
                node.append(grow(body, unit + share, depth))
                spare -= made - before - unit
            return low * unit, node

        def drawn(room: int, high: int | None, weight: float, wanted: bool) -> int:
            """How many more than needed, of at most `room`; every order of size is as likely."""
            if weight < 1.0 and draw() >= weight:
                return 0
            if high == 1:
                return int(draw() < (_PREFERENCE if wanted else 0.5))
            if draw() < _NOTHING:
                return 0
            return int((room + 1) ** draw())

        return grow

    def _way(self, alternative: Alternative) -> _Way:
        steps = tuple(map(self._step, alternative.items))
        own = sum(kind in (_FIXED, _TOKEN) for kind, _ in steps)
        return _Way(steps, own, len(steps) - own)

    def _rule_is_endless(self, rule: int) -> bool:
        return any(a.number in self._endless for a in self.grammar.rules[rule].alternatives)

    def _step(self, item: Item) -> _Step:
        if isinstance(item, Ref):
            return _RULE, item.rule
        if isinstance(item, Repeat):
            inner = self._step(item.item)
            endless = isinstance(item.item, Ref) and self._rule_is_endless(item.item.rule)
            return _REPEAT, (-1 - item.number, inner, item.low, item.high, item.number, endless)
        if item.pattern:
            return _TOKEN, self._texts[item].text
        return _FIXED, item.text


# -------------------------------------------------------------------------------------------------
# From a tree to its text: tokens side by side, with a space where they would run into each other.
#
# Where a grammar ignores nothing between tokens, nothing is put there. Otherwise tokens are kept
# apart, but for brackets, commas and the like, and only where no terminal of the grammar could
# read
# the two as one.

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
