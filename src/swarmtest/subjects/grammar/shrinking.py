"""Smaller trees of the same grammar, for tests that fail.

Moves, from the root down, until none works any more:

1. a rule's tree becomes the smallest one of its rule (or, in the end, of any alternative of it, and
   such a one that keeps what it can of the tree);
2. a rule's tree becomes one of its own subtrees of the same rule;
3. a repetition loses items that are not needed, and the first of ``x ("," x)*`` makes place for the
   next;
4. a token's text becomes shorter and plainer.

Every move makes the tree smaller in tokens, then in characters, then in nodes, then in plainness,
so this ends; and every tree that is tried is one of the grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from swarmtest.core.errors import UserError
from swarmtest.reducer.reducer import minimised
from swarmtest.subjects.grammar.growth import Tree, tokens_of
from swarmtest.subjects.grammar.model import (
    Alternative,
    Grammar,
    Item,
    Ref,
    Repeat,
    Terminal,
    base_of,
    needed_rules,
)
from swarmtest.subjects.grammar.token_texts import TokenTexts, simplicity

# -------------------------------------------------------------------------------------------------
# The smallest tree of every rule and every alternative, for reduction.
#
# Smallest: fewest tokens, then least depth. A tree's cost is greater than that of each of its
# subtrees, so building one from the best alternatives always ends.

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


# -------------------------------------------------------------------------------------------------

Path: TypeAlias = tuple[int, ...]


class Shrinker:
    """One reduction: the smallest interesting tree so far, and what was tried.

    `interesting` is asked about trees of the grammar, never twice about the same text.
    """

    def __init__(
        self,
        grammar: Grammar,
        texts: dict[Terminal, TokenTexts],
        tree: Tree,
        interesting: Callable[[Tree], bool],
    ) -> None:
        self._grammar = grammar
        self._texts = texts
        self._smallest = SmallestTrees(grammar, texts)
        self._interesting = interesting
        self._tried: dict[tuple[str, ...], bool] = {}
        self.tree = checked(grammar, tree)

    def run(self) -> Tree:
        """The smallest tree that the moves lead to."""
        for thorough in (False, True):
            while self._round(thorough):
                pass
        return self.tree

    def _round(self, thorough: bool) -> bool:
        before = self.tree
        self._visit((), thorough)
        if thorough:
            for path in [*_tokens(self.tree)]:
                self._shorten_token(path)
        return self.tree != before

    def _visit(self, path: Path, thorough: bool) -> None:
        if _at(self.tree, path)[0] < 0:
            self._shorten_repeat(path)
        else:
            self._simplify_rule(path, thorough)
            while self._hoist(path, thorough) or self._move_up(path):
                pass
        for place in range(1, len(_at(self.tree, path))):
            if isinstance(_at(self.tree, path)[place], list):
                self._visit((*path, place), thorough)

    def _simplify_rule(self, path: Path, thorough: bool) -> None:
        rule = self._grammar.rules[self._rule_at(path)]
        if self._replace(path, self._smallest.of_rule(rule.number)) or not thorough:
            return
        node = _at(self.tree, path)
        trees = [self._smallest.of_alternative(a.number) for a in rule.alternatives]
        trees += [self._recast(node, a) for a in rule.alternatives if a.number != node[0]]
        for tree in sorted(trees, key=_size):
            if self._replace(path, tree):
                return

    def _recast(self, node: Tree, alternative: Alternative) -> Tree:
        """Another alternative with what the tree has for it."""
        tree = self._smallest.of_alternative(alternative.number)
        spare = [child for child in node[1:] if isinstance(child, list) and child[0] >= 0]
        for place, item in enumerate(alternative.items, start=1):
            if isinstance(item, Ref):
                rules = [self._grammar.alternatives[child[0]].rule for child in spare]
                if item.rule in rules:
                    tree[place] = spare.pop(rules.index(item.rule))
        return tree

    def _hoist(self, path: Path, thorough: bool) -> bool:
        """Put a subtree of the same rule in a tree's place; the smallest first."""
        node, rule = _at(self.tree, path), self._rule_at(path)
        found = [*self._subtrees(node, rule, thorough)]
        return any(self._replace(path, inner) for inner in sorted(found, key=_size))

    def _move_up(self, path: Path) -> bool:
        """Let a repetition's first item take the place of a tree of the same rule beside it."""
        node = _at(self.tree, path)
        for place, child in enumerate(node):
            if not isinstance(child, list) or child[0] < 0:
                continue
            rule = self._grammar.alternatives[child[0]].rule
            for other in range(1, len(node)):
                moved = self._without_first(node[other], rule)
                if moved is not None:
                    inner, rest = moved
                    new = [*node]
                    new[place], new[other] = inner, rest
                    if self._replace(path, new):
                        return True
        return False

    def _without_first(self, node: Any, rule: int) -> tuple[Tree, Tree] | None:
        """What a repetition's first item has of a rule, and the repetition without that item."""
        if not isinstance(node, list) or node[0] >= 0:
            return None
        if len(node) - 1 <= self._grammar.repeats[-1 - node[0]].low:
            return None
        found = next(self._subtrees([0, node[1]], rule, False), None)
        return None if found is None else (found, [node[0], *node[2:]])

    def _subtrees(self, node: Tree, rule: int, nested: bool) -> Iterator[Tree]:
        """The subtrees of a rule below a node; `nested`: also those in one another."""
        for child in node[1:]:
            if isinstance(child, list):
                same = child[0] >= 0 and self._grammar.alternatives[child[0]].rule == rule
                if same:
                    yield child
                if nested or not same:
                    yield from self._subtrees(child, rule, nested)

    def _shorten_repeat(self, path: Path) -> None:
        code, *items = _at(self.tree, path)
        low = self._grammar.repeats[-1 - code].low
        if len(items) <= low:
            return

        def still(kept: Sequence[Any]) -> bool:
            return len(kept) >= low and self._holds(_with(self.tree, path, [code, *kept]))

        self.tree = _with(self.tree, path, [code, *minimised(items, still)])

    def _shorten_token(self, path: Path) -> None:
        terminal = self._terminal_at(path)
        if not terminal.pattern:
            return
        texts = self._texts[terminal]

        def still(text: str) -> bool:
            return texts.takes(text) and self._holds(_with(self.tree, path, text))

        text = _at(self.tree, path)
        plain = sorted({texts.smallest, *texts.notable}, key=simplicity)
        simpler = (t for t in plain if simplicity(t) < simplicity(text))
        short = next(filter(still, simpler), "")
        if not short:
            short = "".join(minimised(text, lambda kept: still("".join(kept))))
            short = self._plainer(short, still)
        self.tree = _with(self.tree, path, short)

    def _plainer(self, text: str, still: Callable[[str], bool]) -> str:
        """The text with the plainest characters that do."""
        for place in range(len(text)):
            for plain in "0a":
                changed = f"{text[:place]}{plain}{text[place + 1 :]}"
                if simplicity(changed) < simplicity(text) and still(changed):
                    text = changed
                    break
        return text

    def _replace(self, path: Path, new: Tree) -> bool:
        if _size(new) >= _size(_at(self.tree, path)):
            return False
        tree = _with(self.tree, path, new)
        if not self._holds(tree):
            return False
        self.tree = tree
        return True

    def _holds(self, tree: Tree) -> bool:
        key = tuple(tokens_of(tree))
        if key not in self._tried:
            self._tried[key] = self._interesting(tree)
        return self._tried[key]

    def _rule_at(self, path: Path) -> int:
        number: int = _at(self.tree, path)[0]
        return self._grammar.alternatives[number].rule

    def _terminal_at(self, path: Path) -> Terminal:
        code = _at(self.tree, path[:-1])[0]
        if code < 0:
            item: Item = self._grammar.repeats[-1 - code].item
        else:
            item = self._grammar.alternatives[code].items[path[-1] - 1]
        assert isinstance(item, Terminal)
        return item


def checked(grammar: Grammar, tree: Any) -> Tree:
    """The tree, if it is one of this grammar."""
    if not _is_of_rule(grammar, tree, 0):
        raise UserError(f"this test is not one of the grammar {grammar.path}: was it edited since?")
    return tree  # type: ignore[no-any-return]


def _is_of_rule(grammar: Grammar, tree: Any, rule: int) -> bool:
    if not isinstance(tree, list) or not tree or type(tree[0]) is not int:
        return False
    if not 0 <= tree[0] < len(grammar.alternatives):
        return False
    alternative = grammar.alternatives[tree[0]]
    return (
        alternative.rule == rule
        and len(tree) == len(alternative.items) + 1
        and all(
            _is_of_item(grammar, c, i) for c, i in zip(tree[1:], alternative.items, strict=True)
        )
    )


def _is_of_item(grammar: Grammar, tree: Any, item: Item) -> bool:
    if isinstance(item, Repeat):
        return (
            isinstance(tree, list)
            and tree[:1] == [-1 - item.number]
            and item.low <= len(tree) - 1 <= (item.high if item.high is not None else len(tree))
            and all(_is_of_item(grammar, child, item.item) for child in tree[1:])
        )
    base = base_of(item)
    return _is_of_rule(grammar, tree, base.rule) if isinstance(base, Ref) else isinstance(tree, str)


def _at(tree: Any, path: Path) -> Any:
    for place in path:
        tree = tree[place]
    return tree


def _with(tree: Any, path: Path, new: Any) -> Any:
    """The tree with another one at a place; the rest is shared."""
    if not path:
        return new
    place, *rest = path
    return [*tree[:place], _with(tree[place], tuple(rest), new), *tree[place + 1 :]]


def _tokens(tree: Tree, path: Path = ()) -> Iterator[Path]:
    for place, child in enumerate(tree):
        if isinstance(child, str):
            yield (*path, place)
        elif isinstance(child, list):
            yield from _tokens(child, (*path, place))


def _size(tree: Any) -> tuple[int, int, int]:
    """Tokens, characters, nodes."""
    tokens = tokens_of(tree)
    return len(tokens), sum(map(len, tokens)), _nodes(tree)


def _nodes(tree: Tree) -> int:
    return 1 + sum(_nodes(child) for child in tree if isinstance(child, list))
