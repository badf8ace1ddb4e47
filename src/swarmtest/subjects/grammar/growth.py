"""Grow a random tree within a limit of tokens and depth, and print a tree as text.

A tree is JSON data: ``[alternative, child...]`` for a rule, ``[-1 - repetition, child...]`` for a
repetition, a text for a token. So every list starts with a number, and every text is a token.

To stay within the limits, an alternative is drawn by weight among those whose least number of
tokens and least depth still fit. The tokens that it does not need are divided at random among the
parts that can grow; the next part may use what one part leaves. Every nested rule takes one from
the remaining depth, and there is always an alternative that fits, so growing ends. If the limits of
depth and of tokens cannot both be kept, the depth is kept.

With nothing but chance, most texts would be as small as the grammar allows. So while many tokens
are left, alternatives and parts that can grow without limit are preferred.

`Printer` puts tokens side by side, with a space where they would run into each other. If the
grammar ignores nothing between tokens, nothing is put there. Otherwise tokens are separated, except
next to brackets, commas and the like, if no terminal of the grammar could read the two as one.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from swarmtest.core.errors import UserError
from swarmtest.subjects.grammar.model import (
    NEVER,
    Alternative,
    Grammar,
    Item,
    Layout,
    Repeat,
    Rule,
    RuleReference,
    Sizes,
    SizeTables,
    Terminal,
    endless_alternatives,
    needed_rules,
)
from swarmtest.subjects.grammar.token_texts import TokenTexts

Tree: TypeAlias = list[Any]

LONGEST = 1_000_000
"""A grammar is refused if its smallest text has more tokens than this."""
DEEPEST = 250
"""The most nested rules; deeper trees would exceed Python's limit of nested calls."""

_FIXED, _TOKEN, _RULE, _REPEAT = range(4)
_NO_ITEM_SHARE = 0.125
"""How often an unlimited repetition gets no more items than it needs, although it could."""

_RULES_PER_TOKEN = 50
"""The most rules to grow for each token of a text; after them, few tokens are preferred ..."""
_RULES_IN_DEPTH = 10
"""... and after this many times as many rules, the least depth."""
_MANY_SPARE = 8
"""With more spare tokens than this, what can grow without limit is preferred ..."""
_PREFERENCE = 0.875
"""... with this probability."""

_CLOSE_AFTER = "(["
_CLOSE_BEFORE = "),;]"
_MOST_CACHED = 20_000

_Step: TypeAlias = tuple[int, Any]
"""One item of an alternative: its kind (`_FIXED`, ...) and what that kind needs."""


@dataclass(frozen=True)
class _PreparedAlternative:
    """An alternative in the form that growing uses."""

    steps: tuple[_Step, ...]
    own: int
    """The number of its items that are tokens."""
    growing: int
    """The number of its items that can take more tokens than they need."""


_Options: TypeAlias = tuple[list[int], list[float], int, int, tuple[list[int], list[float]] | None]
"""The alternatives of a rule that are on: their numbers, the running sums of their weights, the
largest of their least numbers of tokens, the largest of their least depths; then numbers and sums
of those that can grow without limit, if only some can."""


class GrowthPlan(NamedTuple):
    """The part of the grammar that a configuration leaves."""

    options: Mapping[int, _Options]
    """By the number of the rule."""
    sizes: Sizes
    part_weights: Sequence[float]
    """By the number of the repetition."""


class _LazyOptions(dict[int, _Options]):
    """The options of rules, computed when a rule is first grown.

    A configuration may be used only once, and for only some of the rules.
    """

    __slots__ = ("_endless", "_on", "_rules", "_sizes")

    def __init__(
        self,
        rules: Sequence[Rule],
        endless: frozenset[int],
        on: Sequence[float],
        sizes: Sizes,
    ) -> None:
        self._rules, self._endless, self._on, self._sizes = rules, endless, on, sizes

    def __missing__(self, rule: int) -> _Options:
        on, tokens, depth = self._on, self._sizes.tokens, self._sizes.depth
        numbers = [a.number for a in self._rules[rule].alternatives]
        usable = [number for number in numbers if on[number] and tokens[number] < NEVER]
        endless = [number for number in usable if number in self._endless]
        some = endless and len(endless) < len(usable)
        options = self[rule] = (
            usable,
            [*accumulate(on[number] for number in usable)],
            max(tokens[number] for number in usable),
            max(depth[number] for number in usable),
            (endless, [*accumulate(on[number] for number in endless)]) if some else None,
        )
        return options


def _selector(places: Sequence[int]) -> Callable[[Sequence[float]], Sequence[float]]:
    """Return a function that returns what is at these places, in a third of a loop's time."""
    if len(places) < 2:  # then `itemgetter` does not return a tuple
        return partial(_selected, tuple(places))
    return itemgetter(*places)


def _selected(places: Sequence[int], values: Sequence[float]) -> Sequence[float]:
    return tuple(values[place] for place in places)


class Grower:
    """Grows random trees of one grammar.

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
        self._alternative_weights = _selector([number[a.feature] for a in grammar.alternatives])
        self._part_weights = _selector([number[repeat.feature] for repeat in grammar.repeats])
        self._prepared = [self._prepare(alternative) for alternative in grammar.alternatives]

    def plan(self, weights: Sequence[float]) -> GrowthPlan:
        """Return the plan for weights in the order of the grammar's features.

        Raise `UserError` if no text can be made with these weights.
        """
        every = (*weights, 1.0)  # the last weight is for what is not a feature: number -1
        on = self._alternative_weights(every)
        sizes = self.tables.sizes(on)
        if sizes.rule_tokens[0] >= NEVER:
            raise UserError(f"nothing can be generated: {self._missing(on, sizes)}")
        if sizes.rule_tokens[0] > LONGEST:
            long = f"every text has at least {sizes.rule_tokens[0]:,} tokens"
            raise UserError(f"nothing can be generated: {long}")
        if sizes.rule_depth[0] > DEEPEST:
            deep = f"every text has {sizes.rule_depth[0]} nested rules, and {DEEPEST} are possible"
            raise UserError(f"nothing can be generated: {deep}")
        options = _LazyOptions(self.grammar.rules, self._endless, on, sizes)
        return GrowthPlan(options, sizes, self._part_weights(every))

    def _missing(self, on: Sequence[float], sizes: Sizes) -> str:
        """Return why no text is possible: the first rule, from the start, without alternatives."""
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
        end = (
            f"one of these would end it: {', '.join(enough)}"
            if enough
            else "more features must be on"
        )
        return f"every way to write {owner!r} needs it again; {end}"

    def _works(self, on: Sequence[float]) -> bool:
        return self.tables.sizes(on).rule_tokens[0] < NEVER

    def grow(self, plan: GrowthPlan, rng: random.Random, tokens: int, depth: int) -> Tree:
        """Return a random tree with at most `depth` nested rules and about at most `tokens` tokens.

        A limit that is too small for any text is raised to the smallest that is not.
        """
        depth = max(depth, plan.sizes.rule_depth[0])
        tokens = max(tokens, plan.sizes.rule_tokens[0])
        most_rules = _RULES_PER_TOKEN * (tokens + _MANY_SPARE)
        return self._growing(plan, rng.random, most_rules)(0, tokens, depth)

    def _growing(
        self, plan: GrowthPlan, draw: Callable[[], float], most_rules: int
    ) -> Callable[[int, int, int], Tree]:
        """Return a function that grows a rule within a budget of tokens and a depth.

        After `most_rules` rules everything is kept as small as possible. Items that can be empty
        take nothing from the budget, so without this limit they could go on for very long. Where
        the fewest tokens take many nested rules, each of which needs several others, that is not
        enough: after many more rules, everything is kept as flat as possible.

        The functions are nested because they share the plan and the counters.
        """
        prepared, options, part_weights = self._prepared, plan.options, plan.part_weights
        least, rule_least = plan.sizes.tokens, plan.sizes.rule_tokens
        lowest, rule_lowest = plan.sizes.depth, plan.sizes.rule_depth
        made_tokens = grown_rules = 0

        def draw_fitting(rule: int, budget: int, depth: int) -> int:
            """Draw an alternative that fits; if none does, return the smallest within the depth."""
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
            nonlocal made_tokens, grown_rules
            grown_rules += 1
            if grown_rules > most_rules:
                budget = rule_least[rule]
                if grown_rules > _RULES_IN_DEPTH * most_rules:
                    depth = min(depth, rule_lowest[rule])
            numbers, sums, most, deepest, endless = options[rule]
            if most <= budget and deepest <= depth:
                if endless and budget > most + _MANY_SPARE and draw() < _PREFERENCE:
                    numbers, sums = endless
                if len(numbers) == 1:
                    number = numbers[0]
                else:
                    position = bisect_right(sums, draw() * sums[-1])
                    number = numbers[position if position < len(numbers) else -1]
            else:
                number = draw_fitting(rule, budget, depth)
            alternative = prepared[number]
            node: Tree = [number]
            made_tokens += alternative.own
            spare = budget - least[number]
            growing = alternative.growing
            for kind, part in alternative.steps:
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
                        # The first part, if `spare` is divided at random into `growing` parts.
                        share = int(spare * (1.0 - draw() ** (1.0 / (growing - 1))))
                    growing -= 1
                    before = made_tokens
                    if kind == _RULE:
                        needed = rule_least[part]
                        node.append(grow(part, needed + share, depth - 1))
                    else:
                        needed, child = grow_repetition(part, share, depth - 1, growing == 0)
                        node.append(child)
                    spare -= made_tokens - before - needed
            return node

        def grow_repetition(part: Any, spare: int, depth: int, last: bool) -> tuple[int, Tree]:
            """Grow a repetition with at most `spare` tokens more than it needs.

            Return the number of tokens that it needs, and its tree.
            """
            nonlocal made_tokens
            code, (kind, body), low, high, weight_at, endless = part
            rule = body if kind == _RULE else -1
            unit = rule_least[rule] if rule >= 0 else 1
            node: Tree = [code]
            room = 0
            if grown_rules <= most_rules and (rule < 0 or rule_lowest[rule] <= depth):
                room = spare // (unit or 1)
                if high is not None and room > high - low:
                    room = high - low
            if room > 0:
                wanted = last and endless and spare > unit + _MANY_SPARE
                count = low + extra_items(room, high, part_weights[weight_at], wanted)
            else:
                count = low
            if rule < 0:
                made_tokens += count
                node += [body] * count if kind == _FIXED else [body(draw) for _ in range(count)]
                return low, node
            spare -= (count - low) * unit
            for left in range(count, 0, -1):
                share = 0
                if spare > 0:
                    share = (
                        spare if left == 1 else int(spare * (1.0 - draw() ** (1.0 / (left - 1))))
                    )
                before = made_tokens
                node.append(grow(body, unit + share, depth))
                spare -= made_tokens - before - unit
            return low * unit, node

        def extra_items(room: int, high: int | None, weight: float, wanted: bool) -> int:
            """Draw how many items to add, up to `room`; every order of magnitude is as likely."""
            if weight < 1.0 and draw() >= weight:
                return 0
            if high == 1:
                return int(draw() < (_PREFERENCE if wanted else 0.5))
            if draw() < _NO_ITEM_SHARE:
                return 0
            return int((room + 1) ** draw())

        return grow

    def _prepare(self, alternative: Alternative) -> _PreparedAlternative:
        steps = tuple(map(self._step, alternative.items))
        own = sum(kind in (_FIXED, _TOKEN) for kind, _ in steps)
        return _PreparedAlternative(steps, own, len(steps) - own)

    def _rule_is_endless(self, rule: int) -> bool:
        return any(a.number in self._endless for a in self.grammar.rules[rule].alternatives)

    def _step(self, item: Item) -> _Step:
        if isinstance(item, RuleReference):
            return _RULE, item.rule
        if isinstance(item, Repeat):
            inner = self._step(item.item)
            endless = isinstance(item.item, RuleReference) and self._rule_is_endless(item.item.rule)
            return _REPEAT, (-1 - item.number, inner, item.low, item.high, item.number, endless)
        if item.pattern:
            return _TOKEN, self._texts[item].text
        return _FIXED, item.text


# Printing trees.


def tokens_of(tree: Tree) -> list[str]:
    """Return the tokens of a tree, in order.

    >>> tokens_of([0, "a", [-1, [2, "b"]]])
    ['a', 'b']
    """
    tokens: list[str] = []
    _collect_tokens(tree, tokens)
    return tokens


def _collect_tokens(tree: Tree, tokens: list[str]) -> None:
    for child in tree:
        if type(child) is str:
            tokens.append(child)
        elif type(child) is list:
            _collect_tokens(child, tokens)


class Printer:
    """Prints trees of one grammar."""

    def __init__(self, grammar: Grammar, texts: Mapping[Terminal, TokenTexts]) -> None:
        self.separators = _separators(grammar.ignored)
        self._layout = Layout(texts.values(), grammar.path) if grammar.indented else None
        self._fixed = {t.text for t in grammar.terminals if not t.pattern and len(t.text) > 1}
        self._texts = [*texts.values(), *_ignorable(grammar.ignored)]
        self._separator_cache: dict[tuple[str, str], str] = {}

    def text(self, tree: Tree) -> str:
        """Return the text of a tree."""
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
        cache = self._separator_cache
        for token in tokens:
            if before:
                key = before, token[0]
                separator = cache.get(key)
                if separator is None:
                    if len(cache) > _MOST_CACHED:
                        cache.clear()
                    separator = cache[key] = self._separator(before, token[0])
                yield separator
            yield token
            before = token

    def _separator(self, before: str, first: str) -> str:
        """Return what to put between a token and the next one, which starts with `first`."""
        if self._may_touch(before, first):
            return ""
        apart = (s for s in self.separators if not any(t.goes_on(before, s) for t in self._texts))
        return next(apart, self.separators[0])

    def _may_touch(self, before: str, first: str) -> bool:
        """Return whether a token that starts with `first` may stand right after another."""
        if before[-1] not in _CLOSE_AFTER and first not in _CLOSE_BEFORE:
            return False
        if any(
            t.startswith(before) and t[len(before) : len(before) + 1] == first for t in self._fixed
        ):
            return False
        return not any(before[0] in t.first and first in t.alphabet for t in self._texts)


def _separators(ignored: Iterable[str]) -> list[str]:
    """Return the white space that may stand between tokens, a space first."""
    patterns = [re.compile(pattern) for pattern in ignored]
    return [c for c in (" ", "\n", "\t") if any(pattern.fullmatch(c) for pattern in patterns)]


def _ignorable(ignored: Iterable[str]) -> list[Any]:
    return [TokenTexts("ignored", pattern) for pattern in ignored]
